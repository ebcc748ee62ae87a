"""The disk, files and limits of commands again, for a gateway of an ordinary user (SEC-6, TOOL-5).

What CI runs belongs to root. These tests are the same as there, where the user makes a difference:
the supervisor of an ordinary user may not look everywhere, and cgroups are not to be had. One
process runs them all.
"""

import asyncio
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.support.users import MISSING, ROOT, python_of_others

BACKENDS = ("bubblewrap", "landlock")
_DISK = "tests/hostile/test_commands_disk.py"
_CONCEALED = "tests/hostile/test_commands_concealed.py::test_a_command_that_conceals_what_it_writes"
_FILES = "tests/hostile/test_commands_files.py"
_KNOWN = "tests/hostile/test_commands.py::test_known_limits_are_those_that_are_said_and_no_more"
_LIMITS = "tests/contract/sandbox/test_trees_and_limits.py"
_OTHER_NAME = f"{_FILES}::test_a_note_gets_no_other_name_in_the_working_folder"
_FILLED = f"{_DISK}::test_a_command_that_fills_the_disk_is_ended"
CHOSEN = (
    f"{_FILLED}[BACKEND-in a closed folder]",
    f"{_FILLED}[BACKEND-in a folder that is only listed]",
    f"{_CONCEALED}_is_ended[BACKEND-open in a process whose memory is closed]",
    f"{_CONCEALED}_is_ended[BACKEND-open in a process whose program nobody may read]",
    f"{_DISK}::test_the_commands_of_a_session_share_the_quota[BACKEND]",
    f"{_DISK}::test_no_file_grows_beyond_the_limit_of_a_file[BACKEND]",
    f"{_OTHER_NAME}[BACKEND-link-owner]",
    f"{_OTHER_NAME}[BACKEND-exchange-owner]",
    f"{_FILES}::test_no_device_of_the_host_comes_in_through_an_open_file[BACKEND]",
    f"{_FILES}::test_a_socket_in_a_granted_folder_can_be_reached_only_with_namespaces[BACKEND]",
    f"{_KNOWN}[BACKEND]",
    f"{_LIMITS}::test_a_fork_bomb_is_stopped[BACKEND]",
    f"{_LIMITS}::test_a_memory_bomb_is_stopped[BACKEND]",
)

_OUTCOMES: dict[str, tuple[str, str]] = {}


async def outcome_of(chosen: str) -> tuple[str, str]:
    """How a test ended, and why if it did not pass. All of them are run once."""
    if not _OUTCOMES:
        _OUTCOMES.update(await _ran())
    return _OUTCOMES.get(chosen, ("not run", ", ".join(_OUTCOMES)))


async def _ran() -> dict[str, tuple[str, str]]:
    python, path = python_of_others("pytest", "hypothesis", "aiohttp")
    if not python:
        pytest.skip(MISSING)
    folder = Path(tempfile.mkdtemp(prefix="hostile-"))
    user = os.geteuid()
    other: dict[str, Any] = {}
    if user == 0:
        # Nobody else's, because the limit of processes counts all that this user runs.
        user = 60_000 + os.getpid() % 5_000
        other = {"user": user, "group": user, "extra_groups": []}
        os.chown(folder, user, user)
    every = [one.replace("BACKEND", backend) for backend in BACKENDS for one in CHOSEN]
    try:
        process = await asyncio.create_subprocess_exec(
            *(python, "-m", "tests.hostile.as_ordinary_user", str(folder), *every),
            cwd=ROOT,
            env={
                "PYTHONDONTWRITEBYTECODE": "1",
                "PYTHONPATH": path,
                "PATH": os.environ["PATH"],
                "HOME": str(folder),
            },
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            **other,
        )
        async with asyncio.timeout(600):
            said, complaint = await process.communicate()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    assert process.returncode == 0, complaint.decode()[-2000:]
    told = json.loads(said)
    assert told["user"] == user != 0
    return {name: (ended[0], ended[1]) for name, ended in told["ended"].items()}


def _name(chosen: str) -> str:
    return chosen.partition("::test_")[2].replace("[BACKEND", "").replace("]", "")


@pytest.mark.requirement("SEC-6", "TOOL-5")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("chosen", CHOSEN, ids=_name)
async def test_it_holds_for_an_ordinary_user(backend: str, chosen: str) -> None:
    outcome, why = await outcome_of(chosen.replace("BACKEND", backend))
    if outcome == "skipped":
        pytest.skip(why)
    assert outcome == "passed", why
