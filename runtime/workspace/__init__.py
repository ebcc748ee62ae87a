"""The workspace: the folder of files that say who the agent is and what it knows."""
