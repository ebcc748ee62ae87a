"""Finding a process tree and signalling it without ever hitting a reused pid (TSK-5, TSK-6).

Everything here reads /proc. Where there is none, `supported` says so and nothing is found.
"""

import contextlib
import os
import select
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from adapters.sandbox import threads
from runtime.ports.sandbox import TASK_TOKEN, ProcessIdentity

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """One process. `started_ticks` is field 22 of proc(5) stat."""

    pid: int
    ppid: int
    pgid: int
    session: int
    state: str
    started_ticks: int


@dataclass(frozen=True, slots=True)
class Member:
    """A process of a tree; `depth` below its head, None when only the token tells."""

    process: ProcessInfo
    depth: int | None


def supported() -> bool:
    """Whether processes can be listed here."""
    return (_PROC / "self" / "stat").exists()


def read_process(pid: int) -> ProcessInfo | None:
    """The process with this pid, or None when there is none (any more)."""
    try:
        text = (_PROC / str(pid) / "stat").read_text("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    # The program's name stands in brackets and may hold anything, brackets and spaces included.
    fields = text[text.rindex(")") + 2 :].split()
    return ProcessInfo(
        pid=pid,
        state=fields[0],
        ppid=int(fields[1]),
        pgid=int(fields[2]),
        session=int(fields[3]),
        started_ticks=int(fields[19]),
    )


def list_processes() -> dict[int, ProcessInfo]:
    """Every process that is visible, zombies included."""
    if not supported():
        return {}
    pids = [int(path.name) for path in _PROC.iterdir() if path.name.isdecimal()]
    found = (read_process(pid) for pid in pids)
    return {process.pid: process for process in found if process is not None}


def find_tree(identity: ProcessIdentity) -> list[Member]:
    """The living members of a tree: by descent from its head, by session, by inherited token.

    The head counts only if it started when `identity` says, so a reused pid matches nothing.
    """
    table = list_processes()
    head = table.get(identity.pid)
    depths: dict[int, int] = {}
    if head is not None and head.started_ticks == identity.started_ticks:
        depths = _descendants(table, head)
    members: list[Member] = []
    for process in table.values():
        if process.pid == os.getpid() or threads.is_dead(process.pid, process.state.encode()):
            continue
        depth = depths.get(process.pid)
        if depth is not None or _carries(process, identity.token):
            members.append(Member(process, depth))
    return members


def _descendants(table: dict[int, ProcessInfo], head: ProcessInfo) -> dict[int, int]:
    children: dict[int, list[int]] = {}
    for process in table.values():
        children.setdefault(process.ppid, []).append(process.pid)
    depths = {head.pid: 0}
    todo = [head.pid]
    while todo:
        parent = todo.pop()
        for pid in children.get(parent, ()):
            if pid not in depths:
                depths[pid] = depths[parent] + 1
                todo.append(pid)
    return depths


def _carries(process: ProcessInfo, token: str) -> bool:
    # A first thread that has left shows no environment; the others do.
    shown = (process.pid,) if process.state not in "ZX" else threads.living(process.pid)
    for thread in shown:
        # Gone, or another user's: then it is no process of ours.
        with contextlib.suppress(OSError):
            environ = (_PROC / str(thread) / "environ").read_bytes()
            if f"{TASK_TOKEN}={token}".encode() in environ.split(b"\0"):
                return True
    return False


def send(processes: Iterable[ProcessInfo], number: signal.Signals) -> int:
    """Signal each process that is still the one that was listed; how many were reached.

    The handle is opened first and the start time compared after, so that the pid cannot change
    its meaning between the check and the signal.
    """
    return sum(_send_one(process, number) for process in processes)


def await_end(targets: Iterable[ProcessInfo], within_s: float) -> None:
    """Block until all of `targets` have ended, or for `within_s` seconds; not for an event loop."""
    poll = select.poll()
    handles: set[int] = set()
    for target in targets:
        with contextlib.suppress(OSError):
            handles.add(os.pidfd_open(target.pid))
    try:
        for handle in handles:
            # A pidfd becomes readable when its process ends.
            poll.register(handle, select.POLLIN)
        left = set(handles)
        while left and (ended := poll.poll(within_s * 1000)):
            for handle, _ in ended:
                poll.unregister(handle)
                left.discard(handle)
    finally:
        for handle in handles:
            os.close(handle)


def _send_one(process: ProcessInfo, number: signal.Signals) -> bool:
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:
        return False
    try:
        now = read_process(process.pid)
        if now is None or now.started_ticks != process.started_ticks:
            return False
        signal.pidfd_send_signal(handle, number)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(handle)
