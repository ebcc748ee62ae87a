"""Where subagents work: worktrees, and the files of long results."""
