"""The agent: builds what the model sees, and alternates model and tools until it has an answer."""
