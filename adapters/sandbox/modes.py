"""Changing file modes for a command, because Landlock does not see chmod(2).

The command's filter turns each such call into a question to its supervisor. The supervisor opens
the file that is meant, looks where it really lies, and changes it itself if the rules let the
command write there: nothing is looked up twice, so there is no race to win. Standard library only,
as in `spec`.
"""

import ctypes
import errno
import os
import stat
import struct
from contextlib import suppress
from dataclasses import dataclass
from fcntl import ioctl
from pathlib import Path

_RECEIVE, _SEND, _STILL_VALID = 0xC0502100, 0xC0182101, 0x40082102
# struct seccomp_notif: id, pid, flags, nr, arch, instruction pointer, six arguments.
_QUESTION = struct.Struct("<QIIiIQ6Q")
_ANSWER = struct.Struct("<QqiI")
_AT_FDCWD = -100
_AT_SYMLINK_NOFOLLOW = 0x100
_LONGEST_PATH = 4096
_MODE_BITS = 0o1777
# system call number -> which arguments are (directory, path, mode, flags); both architectures.
_CALLS = {
    90: (None, 0, 1, None),  # chmod, x86_64
    91: (0, None, 1, None),  # fchmod, x86_64
    52: (0, None, 1, None),  # fchmod, aarch64
    268: (0, 1, 2, None),  # fchmodat, x86_64
    53: (0, 1, 2, None),  # fchmodat, aarch64
    452: (0, 1, 2, 3),  # fchmodat2
}


@dataclass(frozen=True, slots=True)
class _Target:
    """The file that a call means: an open descriptor of it, or a path below a descriptor."""

    directory: int
    path: bytes | None
    mode: int
    follow: bool


class ModeBroker:
    """Answers the questions of one filter; `rules` say where its command may write."""

    def __init__(self, listener: int, rules: dict[str, bool]) -> None:
        self.listener = listener
        self._rules = rules

    def answer_one(self) -> None:
        """Take one question and answer it; a caller that died meanwhile is passed over."""
        buffer = bytearray(_QUESTION.size)
        with suppress(OSError):
            ioctl(self.listener, _RECEIVE, buffer)
            question, pid, _, number, _, _, *arguments = _QUESTION.unpack(buffer)
            try:
                self._change(question, pid, _target(pid, number, arguments))
                error = 0
            except OSError as refused:
                error = -(refused.errno or errno.EPERM)
            ioctl(self.listener, _SEND, _ANSWER.pack(question, 0, error, 0))

    def _change(self, question: int, pid: int, target: _Target) -> None:
        file = _open(pid, target)
        try:
            # The pid was not reused while it was read, if its question still stands.
            ioctl(self.listener, _STILL_VALID, struct.pack("<Q", question))
            mine = os.fstat(file)
            if not self._writable(str(Path(f"/proc/self/fd/{file}").readlink())):
                raise PermissionError(errno.EACCES, "outside of what may be written")
            if mine.st_uid != os.geteuid():
                raise PermissionError(errno.EPERM, "not the owner")
            if stat.S_ISLNK(mine.st_mode):
                raise OSError(errno.EOPNOTSUPP, "a link has no mode")
            Path(f"/proc/self/fd/{file}").chmod(target.mode)
        finally:
            os.close(file)

    def _writable(self, real: str) -> bool:
        nearest = ""
        for path in self._rules:
            inside = real == path or real.startswith(f"{path}/")
            if inside and len(path) > len(nearest):
                nearest = path
        return self._rules.get(nearest, False)


def _target(pid: int, number: int, arguments: list[int]) -> _Target:
    if number not in _CALLS:
        raise OSError(errno.ENOSYS, "not a call that changes a mode")
    directory, path, mode, flags = _CALLS[number]
    flag = arguments[flags] if flags is not None else 0
    return _Target(
        directory=_AT_FDCWD if directory is None else ctypes.c_int(arguments[directory]).value,
        path=None if path is None else _read_path(pid, arguments[path]),
        mode=arguments[mode] & _MODE_BITS,
        follow=not flag & _AT_SYMLINK_NOFOLLOW,
    )


def _read_path(pid: int, address: int) -> bytes:
    memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        found = b""
        while b"\0" not in found and len(found) < _LONGEST_PATH:
            # Page by page: the next page need not be mapped.
            more = os.pread(memory, 4096 - (address + len(found)) % 4096, address + len(found))
            if not more:
                raise OSError(errno.EFAULT, "the path ends nowhere")
            found += more
    finally:
        os.close(memory)
    path, end, _ = found.partition(b"\0")
    if not end:
        raise OSError(errno.ENAMETOOLONG, "the path is too long")
    return path


def _open(pid: int, target: _Target) -> int:
    follow = 0 if target.follow else os.O_NOFOLLOW
    at = f"/proc/{pid}/" + ("cwd" if target.directory == _AT_FDCWD else f"fd/{target.directory}")
    if target.path is None:
        return os.open(at, os.O_PATH | os.O_CLOEXEC)
    if not target.path:
        raise FileNotFoundError(errno.ENOENT, "an empty path")
    if target.path.startswith(b"/"):
        return os.open(target.path, os.O_PATH | os.O_CLOEXEC | follow)
    base = os.open(at, os.O_PATH | os.O_CLOEXEC)
    try:
        return os.open(target.path, os.O_PATH | os.O_CLOEXEC | follow, dir_fd=base)
    finally:
        os.close(base)
