"""Tasks: what a session has to do, and commands that run in the background (TSK-1, TOOL-6)."""
