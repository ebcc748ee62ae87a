"""Signals reach the process that was meant, or nobody (TOOL-5)."""

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace

import pytest

from adapters.sandbox import process_tree
from runtime.ports.sandbox import TASK_TOKEN, ProcessIdentity

pytestmark = pytest.mark.skipif(
    not process_tree.supported(), reason="there is no /proc here: run on Linux"
)


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    """Waits for input that never comes; its name has brackets and spaces to parse past."""
    child = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, env={TASK_TOKEN: "made-up-token"})
    yield child
    child.kill()
    child.communicate()


def found(child: "subprocess.Popen[bytes]") -> process_tree.ProcessInfo:
    process = process_tree.read_process(child.pid)
    assert process is not None
    return process


@pytest.mark.requirement("TOOL-5")
def test_a_reused_pid_is_not_signalled(sleeper: "subprocess.Popen[bytes]") -> None:
    process = found(sleeper)
    earlier = replace(process, started_ticks=process.started_ticks - 1)
    assert process_tree.send([earlier], signal.SIGKILL) == 0
    assert sleeper.poll() is None
    assert process_tree.send([process], signal.SIGKILL) == 1
    assert sleeper.wait(30) == -signal.SIGKILL


@pytest.mark.requirement("TOOL-5")
def test_a_tree_is_found_by_head_or_by_token(sleeper: "subprocess.Popen[bytes]") -> None:
    process = found(sleeper)

    def pids(identity: ProcessIdentity) -> list[int]:
        return [member.pid for member in process_tree.find_tree(identity)]

    right = ProcessIdentity(process.pid, process.started_ticks, "made-up-token")
    assert pids(right) == [process.pid]
    assert pids(replace(right, token="another")) == [process.pid]
    assert pids(replace(right, started_ticks=1)) == [process.pid]
    assert pids(replace(right, started_ticks=1, token="another")) == []
    assert pids(replace(right, started_ticks=1, token="made-up")) == []


@pytest.mark.requirement("TOOL-5")
def test_a_process_that_is_gone_is_nobody(sleeper: "subprocess.Popen[bytes]") -> None:
    process = found(sleeper)
    assert process.ppid == os.getpid()
    sleeper.kill()
    sleeper.communicate()
    assert process_tree.read_process(process.pid) is None
    assert process_tree.send([process], signal.SIGTERM) == 0
