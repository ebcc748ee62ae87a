"""The way in: one unit decides access, dedupes, and enqueues a message or applies it."""
