"""Features: each is a slice of its own, and none imports another."""
