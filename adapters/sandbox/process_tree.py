"""Finding a process tree and signalling it without ever hitting a reused pid (TSK-5, TSK-6).

Everything here reads /proc. Where there is none, `supported` says so and nothing is found.
"""

import contextlib
import os
import select
import signal
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from adapters.sandbox import threads
from runtime.ports.sandbox import TASK_TOKEN, ProcessIdentity

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """One process. `group`, `session` and `started_ticks` are the fields 5, 6 and 22 of proc(5)
    stat; a group or session whose leader is outside of this view of /proc is 0."""

    pid: int
    ppid: int
    state: str
    started_ticks: int
    group: int = 0
    session: int = 0


def supported() -> bool:
    """Whether processes can be listed here."""
    return (_PROC / "self" / "stat").exists()


def read_process(pid: int) -> ProcessInfo | None:
    """The process with this pid, or None when there is none (any more)."""
    try:
        fields = threads.stat_fields(str(_PROC / str(pid)))
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    return ProcessInfo(
        pid,
        int(fields[1]),
        fields[0].decode(),
        started_ticks=int(fields[19]),
        group=int(fields[2]),
        session=int(fields[3]),
    )


def list_processes() -> dict[int, ProcessInfo]:
    """Every process that is visible, zombies included."""
    if not supported():
        return {}
    pids = [int(path.name) for path in _PROC.iterdir() if path.name.isdecimal()]
    found = (read_process(pid) for pid in pids)
    return {process.pid: process for process in found if process is not None}


def find_tree(
    identity: ProcessIdentity, known: Collection[ProcessInfo] = ()
) -> dict[ProcessInfo, int | None]:
    """The living members of a tree: by descent from its head, by inherited token, and by the
    process groups and sessions of those. With each its depth below the head, None where descent
    does not tell it. `known` were members a moment ago: by what they were known may be gone.

    The head counts only if it started when `identity` says, so a reused pid matches nothing. The
    number of a group counts only while a member is in it: others may have taken it since.
    """
    table = list_processes()
    head = table.get(identity.pid)
    depths: dict[int, int] = {}
    if head is not None and head.started_ticks == identity.started_ticks:
        depths = _descendants(table, head)
    others = (each for each in table.values() if each.pid not in depths)
    carriers = {each.pid for each in others if _carries(each, identity.token)}
    stayed = {each.pid for each in known if _is_same(each, table.get(each.pid))}
    found = _with_groups(table, depths.keys() | carriers | stayed)
    return {
        process: depths.get(process.pid)
        for process in table.values()
        if process.pid in found
        and process.pid != os.getpid()
        and not threads.is_dead(process.pid, process.state.encode())
    }


def _is_same(before: ProcessInfo, now: ProcessInfo | None) -> bool:
    return now is not None and now.started_ticks == before.started_ticks


def _with_groups(table: dict[int, ProcessInfo], members: Collection[int]) -> set[int]:
    """These and whoever shares a group or a session with one of them: nobody can join a session
    from outside, so what lost both its parent and its token is known by that."""
    own = read_process(os.getpid())
    nobodys = {0} if own is None else {0, own.group, own.session}
    groups = {table[pid].group for pid in members} - nobodys
    sessions = {table[pid].session for pid in members} - nobodys
    shared = (each for each in table.values() if each.group in groups or each.session in sessions)
    return set(members) | {process.pid for process in shared}


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
    if not token:
        return False
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
        if not _is_same(process, read_process(process.pid)):
            return False
        signal.pidfd_send_signal(handle, number)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(handle)
