"""Rows of subagents. Statements only."""
