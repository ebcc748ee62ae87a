"""Personas: the identity that a session is given instead of the workspace's own (CTX-11)."""
