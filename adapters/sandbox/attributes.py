"""Modes, owners and times of files, and watches on them, which Landlock does not see.

The supervisor opens the file that a call means, looks where it really lies, and makes the change
itself if the rules let the command write there (or read, for a watch): nothing is looked up twice,
so there is no race to win. Standard library only, as in `launch_spec`.
"""

import ctypes
import errno
import os
import stat
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from adapters.sandbox import process_calls
from adapters.sandbox.process_calls import leader_of

_AT_FDCWD = -100
_AT_SYMLINK_NOFOLLOW, _AT_EMPTY_PATH = 0x100, 0x1000
_IN_DONT_FOLLOW = 0x02000000
_LONGEST_PATH = 4096
_MODE_BITS = 0o1777
# Commands may write to devices, and those are the host's.
_KINDS = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFIFO, stat.S_IFLNK)
_UNCHANGED = 0xFFFFFFFF
_TIMESPECS = struct.Struct("<4q")
_PIDFD_GETFD = 438
_LIBC = ctypes.CDLL(None, use_errno=True)


class Rights(NamedTuple):
    """What a rule of the view allows below its path."""

    read: bool
    write: bool


@dataclass(frozen=True, slots=True)
class Call(process_calls.Call):
    """A question about a file; `rules` say where its command may read and write."""

    rules: dict[str, Rights]


@dataclass(frozen=True, slots=True)
class _Spot:
    """The indices of the arguments that say which file is meant."""

    directory: int | None
    path: int | None
    flags: int | None = None
    follow: bool = True


def _memory(pid: int, address: int, size: int) -> bytes:
    with Path(f"/proc/{pid}/mem").open("rb") as memory:
        found = os.pread(memory.fileno(), size, address)
    if len(found) != size:
        raise OSError(errno.EFAULT, "not mapped")
    return found


def _read_path(pid: int, address: int) -> bytes:
    found = b""
    with Path(f"/proc/{pid}/mem").open("rb") as memory:
        while b"\0" not in found and len(found) < _LONGEST_PATH:
            # Page by page: the next page need not be mapped.
            size = 4096 - (address + len(found)) % 4096
            more = os.pread(memory.fileno(), size, address + len(found))
            if not more:
                raise OSError(errno.EFAULT, "the path ends nowhere")
            found += more
    path, end, _ = found.partition(b"\0")
    if not end:
        raise OSError(errno.ENAMETOOLONG, "the path is too long")
    return path


def _open(call: Call, spot: _Spot) -> int:
    """A descriptor of the file that is meant, for looking only."""
    directory = _AT_FDCWD if spot.directory is None else call.number(spot.directory)
    flags = 0 if spot.flags is None else call.arguments[spot.flags]
    look = os.O_PATH | os.O_CLOEXEC
    if not spot.follow or flags & _AT_SYMLINK_NOFOLLOW:
        look |= os.O_NOFOLLOW
    at = f"/proc/{call.pid}/" + ("cwd" if directory == _AT_FDCWD else f"fd/{directory}")
    address = 0 if spot.path is None else call.arguments[spot.path]
    path = _read_path(call.pid, address) if address else b""
    if not path:
        # futimens(3) passes no path; an empty one means the descriptor only if a flag says so.
        if address and not flags & _AT_EMPTY_PATH:
            raise FileNotFoundError(errno.ENOENT, "an empty path")
        return os.open(at, os.O_PATH | os.O_CLOEXEC)
    if path.startswith(b"/"):
        return os.open(_as_seen_by(call.pid, path), look)
    base = os.open(at, os.O_PATH | os.O_CLOEXEC)
    try:
        return os.open(path, look, dir_fd=base)
    finally:
        os.close(base)


def _as_seen_by(thread: int, path: bytes) -> bytes:
    """The path with the links that lead everybody to himself replaced: libraries change the mode
    of an open file through them."""
    for link, target in (
        (b"/proc/self", f"/proc/{thread}"),
        (b"/proc/thread-self", f"/proc/{thread}"),
        (b"/dev/fd", f"/proc/{thread}/fd"),
    ):
        if path == link or path.startswith(link + b"/"):
            return target.encode() + path[len(link) :]
    return path


def _rights(rules: dict[str, Rights], real: str) -> Rights:
    above = (path for path in rules if real == path or real.startswith(f"{path}/"))
    return rules.get(max(above, key=len, default=""), Rights(read=False, write=False))


def _opened(call: Call, spot: _Spot, change: Callable[[Call, int], int]) -> int:
    file = _open(call, spot)
    try:
        call.still_asked()
        return change(call, file)
    finally:
        os.close(file)


def _allowed(call: Call, file: int) -> Rights:
    return _rights(call.rules, str(Path(f"/proc/self/fd/{file}").readlink()))


def _owned(call: Call, file: int) -> os.stat_result:
    if not _allowed(call, file).write:
        raise PermissionError(errno.EPERM, "outside of what may be written")
    found = os.fstat(file)
    if stat.S_IFMT(found.st_mode) not in _KINDS:
        raise PermissionError(errno.EPERM, "a device or a socket")
    # The supervisor of a root gateway could change anybody's files, its command cannot.
    if found.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "not the owner")
    return found


def _set_mode(call: Call, file: int, *, mode: int) -> int:
    if stat.S_ISLNK(_owned(call, file).st_mode):
        raise OSError(errno.EOPNOTSUPP, "a link has no mode")
    Path(f"/proc/self/fd/{file}").chmod(call.arguments[mode] & _MODE_BITS)
    return 0


def _set_owner(call: Call, file: int, *, owner: int) -> int:
    """Only to what a process without capabilities may give: itself and its groups."""
    _owned(call, file)
    user, group = (call.arguments[owner + each] & _UNCHANGED for each in (0, 1))
    if user not in (_UNCHANGED, os.geteuid()):
        raise PermissionError(errno.EPERM, "not this user")
    if group not in (_UNCHANGED, os.getegid(), *os.getgroups()):
        raise PermissionError(errno.EPERM, "not a group of this user")
    os.chown(
        f"/proc/self/fd/{file}",
        -1 if user == _UNCHANGED else user,
        -1 if group == _UNCHANGED else group,
    )
    return 0


def _set_times(call: Call, file: int, *, times: int) -> int:
    _owned(call, file)
    address = call.arguments[times]
    given = None if address == 0 else _times(call, address)
    path = f"/proc/self/fd/{file}".encode()
    if _LIBC.utimensat(ctypes.c_int(_AT_FDCWD), path, given, ctypes.c_int(0)) != 0:
        raise OSError(ctypes.get_errno(), "utimensat")
    return 0


def _times(call: Call, address: int) -> bytes:
    """Two timespecs from what the call gave: those, two timevals, or two seconds."""
    if call.name == "utimensat":
        return _memory(call.pid, address, _TIMESPECS.size)
    if call.name == "utime":
        accessed, modified = struct.unpack("<2q", _memory(call.pid, address, 16))
        return _TIMESPECS.pack(accessed, 0, modified, 0)
    seconds, micros, modified, more = _TIMESPECS.unpack(_memory(call.pid, address, _TIMESPECS.size))
    if not (0 <= micros < 10**6 and 0 <= more < 10**6):
        raise OSError(errno.EINVAL, "not a time")
    return _TIMESPECS.pack(seconds, micros * 1000, modified, more * 1000)


def _watch(call: Call, file: int) -> int:
    """Watch a file for the command, on its own inotify descriptor."""
    if not _allowed(call, file).read:
        raise PermissionError(errno.EACCES, "outside of what may be read")
    events = _descriptor_of(call.pid, call.number(0))
    try:
        mask = ctypes.c_uint32(call.arguments[2] & ~_IN_DONT_FOLLOW)
        path = f"/proc/self/fd/{file}".encode()
        watch: int = _LIBC.inotify_add_watch(ctypes.c_int(events), path, mask)
        if watch < 0:
            raise OSError(ctypes.get_errno(), "inotify_add_watch")
        return watch
    finally:
        os.close(events)


def _descriptor_of(thread: int, descriptor: int) -> int:
    """A copy of another process's descriptor."""
    handle = os.pidfd_open(leader_of(thread))
    try:
        copy: int = _LIBC.syscall(_PIDFD_GETFD, handle, descriptor, 0)
        if copy < 0:
            raise OSError(ctypes.get_errno(), "pidfd_getfd")
        return copy
    finally:
        os.close(handle)


def _change(change: Callable[[Call, int], int], spot: _Spot) -> Callable[[Call], int]:
    return partial(_opened, spot=spot, change=change)


def _inotify(call: Call) -> int:
    follow = not call.arguments[2] & _IN_DONT_FOLLOW
    return _opened(call, _Spot(None, 1, follow=follow), _watch)


CHANGES: dict[str, Callable[[Call], int]] = {
    "chmod": _change(partial(_set_mode, mode=1), _Spot(None, 0)),
    "fchmod": _change(partial(_set_mode, mode=1), _Spot(0, None)),
    "fchmodat": _change(partial(_set_mode, mode=2), _Spot(0, 1)),
    "fchmodat2": _change(partial(_set_mode, mode=2), _Spot(0, 1, 3)),
    "chown": _change(partial(_set_owner, owner=1), _Spot(None, 0)),
    "lchown": _change(partial(_set_owner, owner=1), _Spot(None, 0, follow=False)),
    "fchown": _change(partial(_set_owner, owner=1), _Spot(0, None)),
    "fchownat": _change(partial(_set_owner, owner=2), _Spot(0, 1, 4)),
    "utimensat": _change(partial(_set_times, times=2), _Spot(0, 1, 3)),
    "utime": _change(partial(_set_times, times=1), _Spot(None, 0)),
    "utimes": _change(partial(_set_times, times=1), _Spot(None, 0)),
    "inotify_add_watch": _inotify,
}
"""How each call that is asked about is answered; the value is what the call returns."""
