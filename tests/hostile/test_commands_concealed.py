"""Deleted files that no walk finds count for the quota all the same, or are bounded (SEC-6)."""

import os
import shlex
from pathlib import Path

import pytest

from runtime.ports.sandbox import SandboxLimits
from tests.contract.sandbox.conftest import PYTHON, Bench
from tests.hostile.test_commands_disk import MB, QUOTA, clock, confined, groups, program, run
from tests.scenario.gateway.disks import disk

__all__ = ["clock", "confined", "groups"]
SIZE = 2_000_000
OWN = f"""
import ctypes, os, signal, socket, sys, threading, time
def unnamed():
    file = os.open('f', os.O_CREAT | os.O_RDWR)
    os.unlink('f')
    return file
def grow(file):
    while True:
        os.write(file, bytes(500000))
        time.sleep(0.01)
ours, theirs = socket.socketpair()
def each_by_a_stranger(keep):
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for _ in range(100):
        if os.fork() == 0:
            file = unnamed()
            os.write(file, bytes({SIZE}))
            socket.send_fds(ours, [b'x'], [file])
            os._exit(0)
        keep()
        time.sleep(0.02)
"""
"""What strangers write is counted nowhere: nobody waits for them."""
MAP = """
C = ctypes.CDLL(None)
C.mmap.restype = ctypes.c_void_p
def keep():
    (file,) = socket.recv_fds(theirs, 1, 1)[1]
    C.mmap(None, ctypes.c_size_t(4096), 1, 2, file, ctypes.c_long(0))
    os.close(file)
each_by_a_stranger(keep)
"""
UNREADABLE = f"""
cp {PYTHON} p
chmod 111 p
exec ./p -I -S -c {shlex.quote(OWN + "grow(unnamed())")}
"""
CONCEALED = {
    "handles of strangers in the queue of a socket": program(
        f"{OWN}\neach_by_a_stranger(lambda: None)"
    ),
    "files of strangers that are mapped": program(OWN + MAP),
    "open in a process whose memory is closed": program(
        f"{OWN}\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\ngrow(unnamed())"
    ),
    "open in a process whose program nobody may read": UNREADABLE,
}
"""Each would go on for long. The last two are concealed from an ordinary user alone."""
BLOCKED = """
def hold(file):
    out, into = os.pipe()
    os.write(into, bytes(65536))
    ready.release()
    os.sendfile(into, file, 0, 4096)
ready = threading.Semaphore(0)
for _ in range(100):
    file = unnamed()
    os.write(file, bytes(SIZE))
    threading.Thread(target=hold, args=(file,), daemon=True).start()
    ready.acquire()
    time.sleep(0.02)
    os.close(file)
"""


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("how", CONCEALED)
async def test_a_command_that_conceals_what_it_writes_is_ended(confined: Bench, how: str) -> None:
    ended = await run(confined, CONCEALED[how])
    assert (ended.limit, ended.signal) == ("disk", 9)


@pytest.mark.requirement("SEC-6")
async def test_what_no_process_shows_is_bounded_by_the_reserve_and_the_commands_end(
    confined: Bench, tmp_path: Path
) -> None:
    """A named limit: a file that only a system call in progress holds is not found. It is written
    to a disk that counts nobody's writes, where the quota alone would never end it."""
    text = BLOCKED.replace("SIZE", str(SIZE))
    with disk(tmp_path / "workspace", megabytes=8 * QUOTA) as small:
        before = os.statvfs(small.path).f_bavail
        confined.limits = SandboxLimits(disk_bytes=QUOTA * MB, free_bytes=3 * QUOTA * MB)
        _, ended = await confined.run(program(OWN + text))
        # Beyond the quota several times over, and ended for the reserve.
        assert (ended.limit, ended.signal) == ("free_space", 9)
        assert os.statvfs(small.path).f_bavail == before
