"""Bringing a workspace of the older layout into the newer one, once (TOOL-5).

Formerly the agent's files lay beside what instructs it. Now they lie in the working folder, so
everything at the top of the workspace that is no known place is moved there, with its names and
its shape: a folder that was called ``files`` becomes ``files/files``.

A kill at any moment leaves a state from which the next start goes on. The items are collected in
``.gatehouse/moving``; when all are there, the mark ``.gatehouse/layout`` is written and the folder
gets its name. With the mark nothing is moved ever again: what somebody puts beside the known
places later stays where it is. Nothing is overwritten, no link is followed and no content copied.
"""

import errno
import fcntl
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from runtime.domain.errors import Unavailable
from runtime.domain.worktrees import FOLDER as WORKTREES
from runtime.workspace.layout import FILES, place_named

_OWN: Final = ".gatehouse"
_MOVING: Final = "moving"
_MARK: Final = "layout"
_VERSION: Final = b"2\n"
_LEFT_ALONE: Final = re.compile(r"lost\+found|\.gatehouse-[0-9a-f]+\.tmp|(?P<of>.+)\.bak-[0-9]+")
"""What belongs to the file system of a volume, what the gateway was writing when it was killed, and
the earlier versions of known files, which are as private as these are."""
_OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def make_layout(home: Path) -> tuple[str, ...]:
    """See that the workspace at `home` has its working folder; the names of what was moved there.

    `home` exists. Several gateways may do this at once. Blocks on files. Raises `Unavailable` with
    everything that cannot be moved; what was moved until then is not lost, and the next start goes
    on.
    """
    try:
        with _opened(home) as top:
            if _is_done(top):
                return ()
            with _own(top) as own, _alone(own):
                return _make(home, top, own)
    except OSError as error:
        raise Unavailable(
            f"The workspace {home} cannot get its working folder {FILES}/: {_said(error)}.",
            hint=f"{_OWN}/ and {FILES}/ in it must be folders that the user who runs the gateway "
            "may write.",
        ) from error


def to_be_moved(home: Path) -> tuple[str, ...]:
    """What `make_layout` would move; none where the workspace is not there. Changes nothing."""
    try:
        with _opened(home) as top:
            if _there(top, f"{_OWN}/{_MARK}") or _has_shape(top):
                return ()
            return tuple(_items(top))
    except OSError:
        return ()


def _is_done(top: int) -> bool:
    return _there(top, f"{_OWN}/{_MARK}") and _is_folder(top, FILES)


def _has_shape(top: int) -> bool:
    """Whether it lost nothing but its mark, as by a copy without hidden folders."""
    moving = _there(top, f"{_OWN}/{_MOVING}")
    return not moving and _items(top) == [FILES] and _is_folder(top, FILES)


def _make(home: Path, top: int, own: int) -> tuple[str, ...]:
    moved: tuple[str, ...] = ()
    if not (_there(own, _MARK) or _has_shape(top)):
        moved = _collect(home, own, top)
        _mend_worktrees(home)
    _mark(own)
    _name(top, own)
    return moved


def _items(top: int) -> list[str]:
    """What is to be moved, sorted."""
    names = os.listdir(top)
    return sorted(name for name in names if place_named(name) is None and not _stays(name))


def _stays(name: str) -> bool:
    found = _LEFT_ALONE.fullmatch(name)
    return found is not None and (found["of"] is None or place_named(found["of"]) is not None)


def _collect(home: Path, own: int, top: int) -> tuple[str, ...]:
    with suppress(FileExistsError):
        os.mkdir(_MOVING, 0o700, dir_fd=own)
    moving = os.open(_MOVING, _OPEN, dir_fd=own)
    failed: list[str] = []
    try:
        for name in _items(top):
            try:
                _rename(top, name, moving, name)
            except FileNotFoundError:
                continue
            except OSError as error:
                failed.append(f"{name} ({_said(error)})")
        moved = tuple(sorted(os.listdir(moving)))  # noqa: PTH208 - of an open directory
        os.fsync(moving)
    finally:
        os.close(moving)
    os.fsync(top)
    if failed:
        raise Unavailable(
            f"Not everything in {home} can be moved into its working folder {FILES}/: "
            f"{', '.join(failed)}.",
            hint=f"Make these movable for the user that runs the gateway, or take them out of "
            f"{home}; what is mounted there belongs to {home / FILES}. What was moved already is "
            f"in {home / _OWN / _MOVING}. Then start again: it goes on where it stopped.",
        )
    return moved


def _name(top: int, own: int) -> None:
    """Give the collected folder its name; or make one where there is none."""
    if not _there(top, FILES):
        with suppress(FileNotFoundError):
            _rename(own, _MOVING, top, FILES)
            os.fsync(own)
        with suppress(FileExistsError):
            os.mkdir(FILES, 0o700, dir_fd=top)
        os.fsync(top)
    if not _is_folder(top, FILES):
        raise NotADirectoryError(errno.ENOTDIR, f"{FILES} is not a folder")


def _mend_worktrees(home: Path) -> None:
    """Let the worktrees of subagents find their repository, which is in the working folder now."""
    real = os.path.realpath(home)
    before, after = f"gitdir: {real}/.git/", f"gitdir: {real}/{FILES}/.git/"
    for link in (home / WORKTREES).glob("*/.git"):
        if link.is_symlink() or link.parent.is_symlink() or not link.is_file():
            continue
        said = link.read_text(errors="surrogateescape")
        if said.startswith(before):
            _write(link, said.replace(before, after, 1))


def _write(path: Path, text: str) -> None:
    making = path.with_name(f".git.{os.getpid()}.tmp")
    making.write_text(text, errors="surrogateescape")
    making.replace(path)


def _mark(own: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    making = f"{_MARK}.{os.getpid()}.tmp"
    handle = os.open(making, flags, 0o600, dir_fd=own)
    try:
        os.write(handle, _VERSION)
        os.fsync(handle)
    finally:
        os.close(handle)
    os.rename(making, _MARK, src_dir_fd=own, dst_dir_fd=own)
    os.fsync(own)


def _there(directory: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _is_folder(directory: int, name: str) -> bool:
    """Whether it is a folder, or a link of its owner's to one."""
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=directory).st_mode)
    except FileNotFoundError:
        return False


@contextmanager
def _opened(home: Path) -> Iterator[int]:
    handle = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield handle
    finally:
        os.close(handle)


@contextmanager
def _own(top: int) -> Iterator[int]:
    with suppress(FileExistsError):
        os.mkdir(_OWN, 0o700, dir_fd=top)
    handle = os.open(_OWN, _OPEN, dir_fd=top)
    try:
        yield handle
    finally:
        os.close(handle)


@contextmanager
def _alone(own: int) -> Iterator[None]:
    """One at a time among all gateways that share the workspace; the kernel frees it on a kill.

    A file system without locks leaves only the renames, of which one wins and the other finds
    nothing to do.
    """
    with suppress(OSError):
        fcntl.flock(own, fcntl.LOCK_EX)
    yield


def _rename(source: int, name: str, target: int, new: str) -> None:
    """Rename; nothing is replaced, and nobody else puts anything there meanwhile."""
    if _there(target, new) and _there(source, name):
        raise FileExistsError(errno.EEXIST, "something of this name was moved before")
    os.rename(name, new, src_dir_fd=source, dst_dir_fd=target)


def _said(error: OSError) -> str:
    return error.strerror or type(error).__name__
