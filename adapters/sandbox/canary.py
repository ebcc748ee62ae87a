"""What a sandbox must let a command do, and what it must not, tried from inside.

The source of this module is run by itself, by an interpreter that finds nothing else of the
gateway. It prints one JSON object: what became of each attempt, "done" or an error.
"""

import errno
import json
import mmap
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

OLDEST_GIT = (2, 34)


def attempt(what: Callable[[], object]) -> str:
    """Do it; "done", or what the system said."""
    try:
        what()
    except (OSError, subprocess.SubprocessError) as error:
        return f"{type(error).__name__}: {error}"
    return "done"


def list_all(folders: list[str]) -> None:
    """List the working folder and each root."""
    for folder in (".", *folders):
        os.scandir(folder).close()


def create(scratch: Path) -> None:
    """Make a folder with a file and a link in it."""
    scratch.mkdir()
    (scratch / "deep").mkdir()
    (scratch / "file").write_bytes(b"x" * 4096)
    (scratch / "link").symlink_to("file")


def rename(scratch: Path) -> None:
    """Rename a file, also into another folder."""
    (scratch / "file").rename(scratch / "renamed")
    (scratch / "renamed").rename(scratch / "deep" / "file")


def map_file(scratch: Path) -> None:
    """Map a file into memory and change it there."""
    path = scratch / "deep" / "file"
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[0:4] = b"done"
        mapped.flush()


def use_git(scratch: Path) -> None:
    """Make a repository, where git is installed."""
    git = shutil.which("git")
    if not git:
        return
    if _told_by_variables(git) != "told" or _version(git) < OLDEST_GIT:
        # What a repository configures is switched off by these variables (POL-9). Older versions
        # take none, or drop them in submodules.
        raise OSError(errno.ENOSYS, "git 2.34 or newer is needed: this one ignores our settings")
    for words in (("init", "--quiet"), ("status", "--short")):
        done = _run(git, *words, folder=scratch)
        if done.returncode:
            raise OSError(done.returncode, done.stderr.strip()[-200:])


def _version(git: str) -> tuple[int, ...]:
    """The first two numbers of git's version; none where it does not say them."""
    found = re.match(r"git version (\d+)\.(\d+)", _run(git, "version").stdout)
    return tuple(map(int, found.groups())) if found else ()


def _told_by_variables(git: str) -> str:
    """What git finds of a setting that only its environment has."""
    name = "gatehouse.canary"
    told = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": name, "GIT_CONFIG_VALUE_0": "told"}
    return _run(git, "config", "--get", name, told=told).stdout.strip()


def _run(
    *command: str, folder: Path | None = None, told: dict[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, **(told or {})}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def write_to(paths: list[str]) -> None:
    """Open each file for writing, or make a file in each folder; one that works is enough."""
    refused = OSError()
    for path in paths:
        try:
            if not Path(path).is_dir():
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
                return
            made = Path(path) / f".gatehouse-canary-{os.getpid()}"
            made.touch(exist_ok=False)
        except OSError as error:
            refused = error
            continue
        made.unlink()
        return
    raise refused


def main() -> None:
    """Try everything that the first argument names."""
    asked = json.loads(sys.argv[1])
    scratch = Path(asked["scratch"])
    found: dict[str, object] = {
        "list": attempt(lambda: list_all(asked["folders"])),
        "create": attempt(lambda: create(scratch)),
        "rename": attempt(lambda: rename(scratch)),
        "map": attempt(lambda: map_file(scratch)),
        "git": attempt(lambda: use_git(scratch)),
        "remove": attempt(lambda: shutil.rmtree(scratch)),
        "write_outside": attempt(lambda: write_to(asked["closed"])),
        # A file system of its own may be there: whoever runs the canary looks for the file.
        "write_above": attempt(lambda: Path(asked["above"]).touch()),
        "read_hidden": attempt(lambda: Path(asked["hidden"]).read_bytes()),
        "network": attempt(
            lambda: socket.create_connection(("127.0.0.1", asked["port"]), 5).close()
        ),
        "environment": sorted(os.environ),
    }
    print(json.dumps(found))  # noqa: T201 - its answer


if __name__ == "__main__":
    main()
