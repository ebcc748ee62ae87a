"""Deleted files that a process keeps are counted, or known to be there uncounted (SEC-6)."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from adapters.sandbox.deleted_files import Holdings

pytestmark = [
    pytest.mark.requirement("SEC-6"),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc: run it on Linux"),
]
MADE = """
import ctypes, mmap, os, socket
f = os.open('f', os.O_CREAT | os.O_RDWR)
os.write(f, bytes(65536))
ours, theirs = socket.socketpair()
memory = mmap.mmap(-1, 4096)
"""
UNNAMED = "os.unlink('f');"
MAPPED = """
C = ctypes.CDLL(None)
C.mmap.restype = ctypes.c_void_p
C.mmap(None, ctypes.c_size_t(4096), 1, 2, f, ctypes.c_long(0))
os.unlink('f')
os.close(f)
"""
QUEUED = f"{UNNAMED} socket.send_fds(ours, [b'x'], [f]); os.close(f)"
KEPT = {
    "nothing": ("os.close(f)", 0, False),
    "a file with a name": ("", 0, False),
    "an open file": (UNNAMED, 65536, False),
    "a mapped file": (MAPPED, 0, True),
    "a queued handle": (QUEUED, 0, True),
    "a received handle": (f"{QUEUED}; socket.recv_fds(theirs, 1, 1)", 65536, False),
}
"""What is kept, what is counted of it, and whether there may be more."""


@contextmanager
def holder(text: str, folder: Path) -> Iterator[int]:
    """A process that did this and waits."""
    script = f"{MADE}\n{text}\nprint('up', flush=True)\ninput()\n"
    arguments = [sys.executable, "-I", "-S", "-c", script]
    with subprocess.Popen(
        arguments, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        yield process.pid
        process.communicate(b"\n")


@pytest.mark.parametrize("kept", KEPT)
def test_what_a_process_keeps_is_counted_or_known(kept: str, tmp_path: Path) -> None:
    text, size, conceal = KEPT[kept]
    with holder(text, tmp_path) as pid:
        held = Holdings((pid,))
    assert (held.size > 0) == (size > 0)
    assert held.size >= size
    assert held.conceal == conceal


@pytest.mark.parametrize("ends", [True, False])
def test_a_thread_that_ended_meanwhile_conceals_nothing(
    monkeypatch: pytest.MonkeyPatch, *, ends: bool
) -> None:
    """The kernel refuses a handle of a thread that is gone as it refuses a closed one."""
    with subprocess.Popen(["/bin/sleep", "100"]) as process:

        def refused(_self: Holdings, _thread: Path) -> None:
            if ends:
                process.kill()
                process.wait()
            raise PermissionError

        monkeypatch.setattr(Holdings, "_look_at_handles", refused)
        assert Holdings([process.pid]).conceal is not ends
        process.kill()
