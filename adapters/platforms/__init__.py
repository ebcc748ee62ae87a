"""What the adapters of chat platforms have in common."""
