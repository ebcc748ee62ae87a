"""Ending a tree that is not this process's child: one that an earlier gateway left (TSK-6)."""

import asyncio
import os
import signal
from collections.abc import Iterable
from contextlib import suppress

from adapters.sandbox import process_tree
from adapters.sandbox.process_tree import ProcessInfo
from runtime.ports.clock import Clock
from runtime.ports.sandbox import ProcessIdentity, TreeEnd

_KILL_WAIT_S = 5.0


async def end_tree(identity: ProcessIdentity, *, grace_s: float, clock: Clock) -> TreeEnd:
    """SIGTERM, `grace_s` seconds of `clock`, SIGKILL to whatever `identity` still matches."""
    if not process_tree.supported():
        return TreeEnd(False, matched_target=False, signal_sent=False, supported=False)
    first = await asyncio.to_thread(process_tree.find_tree, identity)
    sent = process_tree.send(first, signal.SIGTERM)
    await _gone(first, grace_s, clock)
    left = await asyncio.to_thread(process_tree.find_tree, identity, first)
    if left:
        sent += process_tree.send(left, signal.SIGKILL)
        await _gone(left, _KILL_WAIT_S, clock)
        left = await asyncio.to_thread(process_tree.find_tree, identity, left)
    return TreeEnd(
        confirmed=not left,
        matched_target=bool(first),
        signal_sent=sent > 0,
        supported=True,
        remaining_pids=tuple(sorted(process.pid for process in left)),
    )


async def _gone(targets: Iterable[ProcessInfo], within: float, clock: Clock) -> None:
    """Return when all of `targets` have ended, or after `within` seconds of `clock`."""
    loop = asyncio.get_running_loop()
    done = asyncio.Event()
    handles: set[int] = set()

    def ended(handle: int) -> None:
        loop.remove_reader(handle)
        os.close(handle)
        handles.discard(handle)
        if not handles:
            done.set()

    for target in targets:
        with suppress(OSError):
            handle = os.pidfd_open(target.pid)
            handles.add(handle)
            # A pidfd becomes readable when its process ends.
            loop.add_reader(handle, ended, handle)
    if not handles or within <= 0:
        done.set()
    timer = clock.call_later(within, done.set)
    try:
        await done.wait()
    finally:
        timer.cancel()
        for handle in list(handles):
            ended(handle)
