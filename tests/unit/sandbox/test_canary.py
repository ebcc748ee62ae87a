"""What the canary says of a machine's git."""

from pathlib import Path

import pytest

from adapters.sandbox import canary


def put_git(folder: Path, text: str) -> None:
    """A program of the name git, and no other on the PATH."""
    program = folder / "git"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)


def _git(version: str) -> str:
    """A git that takes settings from its environment."""
    said = f'echo "git version {version}"'
    return f'if [ "$1" = version ]; then {said}; else echo "$GIT_CONFIG_VALUE_0"; fi'


@pytest.mark.requirement("POL-9")
def test_a_git_that_reads_no_settings_from_variables_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for text in ("exit 0", _git("2.33.8"), _git("of a vendor"), 'echo "git version 2.39"'):
        put_git(tmp_path, text)
        assert "git 2.34 or newer is needed" in canary.attempt(lambda: canary.use_git(tmp_path))
    put_git(tmp_path, _git("2.34.1"))
    assert canary.attempt(lambda: canary.use_git(tmp_path)) == "done"


@pytest.mark.requirement("POL-9")
def test_a_machine_without_git_needs_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert canary.attempt(lambda: canary.use_git(tmp_path)) == "done"
