"""The sockets by which the command line reaches the gateways of its own home (OPS-12).

Each process listens on one of its own in `<home>/run`, a folder that is closed to others. Who
connects is nobody yet: a token is needed here as anywhere else.
"""

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

FOLDER: Final = "run"
LONGEST: Final = 100
"""Bytes of a path that a socket's address surely holds; Linux has room for 107 (unix(7))."""
PATIENCE_S: Final = 2.0


@contextmanager
def listening(home: Path) -> Iterator[socket.socket]:
    """A socket of this process's own, gone after the block. Raises `OSError`.

    It gets its name once it listens, so that nobody takes it for one that was left behind.
    """
    folder = home / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    _remove_left_behind(folder)
    name = secrets.token_hex(4)
    waiting, place = folder / f".{name}", folder / f"{name}.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as made:
        try:
            with reachable(waiting) as address:
                made.bind(address)
            waiting.chmod(0o600)
            made.listen(128)
            made.setblocking(False)
            waiting.rename(place)
            yield made
        finally:
            for path in (waiting, place):
                path.unlink(missing_ok=True)


def live(home: Path) -> list[Path]:
    """The sockets of a home behind which a gateway listens, the newest first."""
    found = [path for path in _named(home / FOLDER) if _answers(path)]
    return sorted(found, key=_made, reverse=True)


@contextmanager
def reachable(path: Path) -> Iterator[str]:
    """A path as a socket's address has room for it, for as long as the block.

    Raises `OSError` for a path that is too long where the system offers no shorter way to it.
    """
    if len(os.fsencode(path)) <= LONGEST:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        short = Path(f"/proc/self/fd/{folder}")
        if not short.exists():
            raise OSError(None, f"the path {path} is too long for a socket; choose a shorter home")
        yield str(short / path.name)
    finally:
        os.close(folder)


def _named(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.suffix == ".sock"]
    except OSError:
        return []


def _made(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _answers(path: Path) -> bool:
    """Whether somebody listens; a busy one counts."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(PATIENCE_S)
        try:
            with reachable(path) as address:
                probe.connect(address)
        except (BlockingIOError, TimeoutError):
            return True
        except OSError:
            return False
    return True


def _remove_left_behind(folder: Path) -> None:
    """Sockets of processes that were killed."""
    for path in _named(folder):
        if not _answers(path):
            with suppress(OSError):
                path.unlink()
