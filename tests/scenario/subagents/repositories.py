"""A workspace that is a git repository, for the tests of worktrees; and the sandbox for them."""

import subprocess
from pathlib import Path

import pytest

from adapters.sandbox.probe import choose
from adapters.system.clock import SystemClock
from runtime.ports.sandbox import Sandbox
from runtime.workspace.layout import FILES

_ME = ("-c", "user.name=Test", "-c", "user.email=test@example.org")


def git(folder: Path, *words: str) -> str:
    """Run git as a person would, and give what it said."""
    done = subprocess.run(
        ["git", *_ME, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout


def repository(path: Path, **files: str) -> Path:
    """The working folder of the workspace below `path`, with one commit of a plan."""
    workspace = path / "workspace" / FILES
    workspace.mkdir(parents=True)
    git(workspace, "init", "--quiet", "--initial-branch=main")
    for name, text in {"plan.md": "old\n", **files}.items():
        (workspace / name).write_text(text)
    git(workspace, "add", "--all")
    git(workspace, "commit", "--quiet", "--message=First")
    return workspace


async def confined(name: str = "bubblewrap") -> Sandbox:
    """A sandbox that confines commands."""
    sandbox = await choose("landlock" if name == "landlock" else "bubblewrap", clock=SystemClock())
    if sandbox.name != name:
        pytest.skip(f"{name} does not work here; see `gatehouse doctor` for what to install")
    return sandbox
