"""A small disk of its own for a test: it can be filled to the last byte, or made read-only."""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Disk:
    """A mounted file system."""

    path: Path

    def fill(self) -> None:
        """Leave no byte free."""
        with (self.path / "filler").open("ab", buffering=0) as filler:
            size = 64 * 1024
            while size:
                try:
                    filler.write(b"\0" * size)
                except OSError:
                    size //= 2

    def free(self) -> None:
        """Give the space back."""
        (self.path / "filler").unlink()

    def read_only(self) -> None:
        """Take no writes from now on."""
        _mount("-o", "remount,ro", str(self.path))


@contextmanager
def log_in_use(database: Path) -> Iterator[None]:
    """Somebody reads a SQLite database, so its log cannot begin anew, and grows with each write:
    on a full disk there is then no room in it either."""
    with closing(sqlite3.connect(database, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM inputs").fetchone()
        yield


@contextmanager
def disk(path: Path, *, megabytes: int) -> Iterator[Disk]:
    """A file system of this size at `path`. Skips where this user may not mount one."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("a disk that is full needs a small tmpfs: run the tests as root")
    path.mkdir(exist_ok=True)
    mounted = _mount("-t", "tmpfs", "-o", f"size={megabytes}m", "gatehouse-test", str(path))
    if mounted.returncode:
        pytest.skip(f"a tmpfs cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield Disk(path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def _mount(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
