"""What a call of a subagent waits for, beside its own children: its parent, and other agents."""
