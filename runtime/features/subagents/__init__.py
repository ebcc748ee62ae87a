"""Subagents: children of a session, in trees (contract ids SUB-1 to SUB-25)."""
