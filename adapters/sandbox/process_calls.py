"""Calls about another process, allowed on the command's own tree only.

Everything below the supervisor is the command's: orphans are inherited by the supervisor, so that
nobody leaves the tree. The supervisor itself is not in it. Standard library only, as in
`launch_spec`.
"""

import ctypes
import errno
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from adapters.sandbox import system_calls, threads

_MOST_GENERATIONS = 100_000
# PRIO_PROCESS and IOPRIO_WHO_PROCESS.
_ONE_PROCESS = {"setpriority": 0, "ioprio_set": 1, "ioprio_get": 1}


@dataclass(frozen=True, slots=True)
class Call:
    """One question: who asks (a thread of this host), which call, and its six arguments.

    `still_asked` raises `OSError` when the caller is gone, and its pid perhaps another's.
    """

    pid: int
    name: str
    arguments: list[int]
    still_asked: Callable[[], None]

    def number(self, index: int) -> int:
        """An argument as the C int that it is."""
        return ctypes.c_int(self.arguments[index]).value


def _parent_and_group(pid: int) -> tuple[int, int]:
    """Raises `ProcessLookupError` when there is none."""
    try:
        _, parent, group, *_ = threads.stat_fields(f"/proc/{pid}")
    except OSError:
        raise ProcessLookupError(errno.ESRCH, "no such process") from None
    return int(parent), int(group)


def is_own(pid: int) -> bool:
    """Whether this process or thread lives below the supervisor, which is this process.

    Raises `ProcessLookupError` when there is none.
    """
    parent = _parent_and_group(pid)[0]
    for _ in range(_MOST_GENERATIONS):
        if parent == os.getpid():
            return True
        if parent <= 1:
            return False
        try:
            parent = _parent_and_group(parent)[0]
        except ProcessLookupError:
            # It ended while its line was climbed; its child has another parent now.
            return is_own(pid)
    return False


def _require_own(pid: int) -> None:
    if pid <= 0 or not is_own(pid):
        raise PermissionError(errno.EPERM, "not a process of this command")


def leader_of(pid: int) -> int:
    """The process that a thread belongs to."""
    try:
        text = Path(f"/proc/{pid}/status").read_text("utf-8", "replace")
    except OSError:
        raise ProcessLookupError(errno.ESRCH, "no such process") from None
    return int(text.partition("\nTgid:")[2].split(None, 1)[0])


def _send(pid: int, number: int) -> None:
    """Signal a process of the command. The handle is opened first: a reused pid is not hit."""
    handle = os.pidfd_open(pid)
    try:
        _require_own(pid)
        signal.pidfd_send_signal(handle, number)
    finally:
        os.close(handle)


def _members(*, group: int | None, besides: int) -> Iterator[int]:
    for path in Path("/proc").iterdir():
        if path.name.isdecimal() and (pid := int(path.name)) != besides:
            with suppress(ProcessLookupError):
                if group in (None, _parent_and_group(pid)[1]) and is_own(pid):
                    yield pid


def _kill(call: Call) -> int:
    target, number = call.number(0), call.number(1)
    call.still_asked()
    if target > 0:
        _send(leader_of(target), number)
        return 0
    caller = leader_of(call.pid)
    if target == -1:
        members = list(_members(group=None, besides=caller))
    else:
        members = list(_members(group=-target or _parent_and_group(caller)[1], besides=0))
    if not members:
        raise ProcessLookupError(errno.ESRCH, "no such process group")
    # The caller last: afterwards it may be gone, and with it its question.
    for pid in sorted(members, key=lambda each: each == caller):
        with suppress(ProcessLookupError):
            _send(pid, number)
    return 0


def _signal_thread(call: Call) -> int | None:
    """tkill(tid, sig) and those that name the process first, as tgkill(tgid, tid, sig)."""
    at = 0 if call.name in ("tkill", "rt_sigqueueinfo") else 1
    thread = call.number(at)
    if leader_of(thread) == leader_of(call.pid):
        # Its own, so it lives as long as the question: nobody else can have got the number.
        return None
    if call.name == "rt_tgsigqueueinfo":
        raise PermissionError(errno.EPERM, "only threads of its own")
    call.still_asked()
    _send(leader_of(thread), call.number(at + 1))
    return 0


def _signal_handle(call: Call) -> int:
    handle, number = call.number(0), call.number(1)
    try:
        text = Path(f"/proc/{call.pid}/fdinfo/{handle}").read_text()
    except OSError:
        raise OSError(errno.EBADF, "not a handle of a process") from None
    _, found, rest = text.partition("\nPid:")
    if not found:
        raise OSError(errno.EBADF, "not a handle of a process")
    pid = int(rest.split(None, 1)[0])
    if pid <= 0:
        raise ProcessLookupError(errno.ESRCH, "no such process")
    call.still_asked()
    _send(pid, number)
    return 0


def _on_process(call: Call) -> None:
    """Let it go on: the number cannot change any more, and the process is the command's."""
    _require_own(call.number(0))


def _priority(call: Call) -> None:
    if call.number(0) != _ONE_PROCESS[call.name]:
        raise PermissionError(errno.EPERM, "only of single processes")
    _require_own(call.number(1))


JUDGES: dict[str, Callable[[Call], int | None]] = {
    "kill": _kill,
    "tkill": _signal_thread,
    "tgkill": _signal_thread,
    "rt_sigqueueinfo": _signal_thread,
    "rt_tgsigqueueinfo": _signal_thread,
    "pidfd_send_signal": _signal_handle,
    "pidfd_open": _on_process,
    **dict.fromkeys(_ONE_PROCESS, _priority),
    **dict.fromkeys(system_calls.ON_A_PROCESS, _on_process),
}
"""A judge returns the call's value, or None to let it go on."""
