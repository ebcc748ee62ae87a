"""What the worktree of a subagent is called: a folder and a branch, both after its session."""

from typing import Final

FOLDER: Final = ".gatehouse/worktrees"
"""Below the workspace: tools may read there, and only the agent of a worktree writes in it."""


def folder_of(session_id: str) -> str:
    """Where it is, relative to the workspace."""
    return f"{FOLDER}/{session_id}"


def branch_of(session_id: str) -> str:
    """The branch that is checked out there."""
    return f"gatehouse/{session_id}"


def words(session_id: str, state: str | None) -> str:
    """What the one who started an agent is told of its worktree; nothing where it has none."""
    place = f"{folder_of(session_id)} (branch {branch_of(session_id)})"
    match state:
        case None:
            return ""
        case "kept":
            return f"Its changes are kept in the worktree {place}."
        case "open":
            return f"What it changed, if anything, stays in the worktree {place}."
        case _:
            return "It changed nothing in its worktree, which is removed."
