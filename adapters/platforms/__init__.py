"""What the adapters of chat platforms, and other clients, have in common."""
