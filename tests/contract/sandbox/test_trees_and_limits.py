"""Whole process trees end, and every bomb is stopped (TOOL-5)."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.sandbox import process_tree, threads
from adapters.sandbox.cgroups import Cgroups
from adapters.sandbox.command_process import Plan
from adapters.sandbox.landlock import Landlock
from adapters.sandbox.orphan_trees import end_tree
from adapters.sandbox.unconfined import Unconfined
from runtime.ports.sandbox import TASK_TOKEN, ProcessIdentity, SandboxLimits, SandboxProcess
from tests.contract.sandbox.conftest import COMMANDS, Bench, HandClock, build, drain, read_until

IGNORES_TERM = "trap '' TERM; echo up; while :; do sleep 1000; done"
FAMILY = (
    f'(bash -c "{IGNORES_TERM}" &) ; setsid bash -c "{IGNORES_TERM}" & '
    f'env -i /usr/bin/setsid /bin/bash -c "{IGNORES_TERM}" & {IGNORES_TERM}'
)
"""A grandchild, a child in another session, one that lost the token as well, and the shell."""
LEADERLESS = """
import ctypes, os, sys, threading, time
if os.fork():
    time.sleep(1000)
os.setsid()
left = ctypes.c_int(1)
def stay():
    while left.value:
        time.sleep(0.01)
    print('up', flush=True)
    while True:
        time.sleep(1000)
threading.Thread(target=stay).start()
tell, leave = {'x86_64': (218, 60)}.get(os.uname().machine, (96, 93))
call = ctypes.CDLL(None).syscall
# set_tid_address(2): the kernel clears it when the thread leaves.
call(tell, ctypes.byref(left))
call(leave, 0)
"""
"""A child in another session whose first thread leaves while another one stays."""
FORKS = """
import os, signal
made = 0
for _ in range(200):
    try:
        if os.fork() == 0:
            signal.pause()
    except OSError:
        break
    made += 1
print(made, flush=True)
signal.pause()
"""

THREADS = """
import signal, threading
made = 0
try:
    for _ in range(200):
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        made += 1
except RuntimeError:
    pass
print(made, flush=True)
signal.pause()
"""


def members(process: SandboxProcess) -> list[process_tree.ProcessInfo]:
    return list(process_tree.find_tree(process.identity))


@contextmanager
def watched(pid: int) -> Iterator[asyncio.Event]:
    """An event that is set when the process has ended."""
    handle = os.pidfd_open(pid)
    gone = asyncio.Event()
    asyncio.get_running_loop().add_reader(handle, gone.set)
    try:
        yield gone
    finally:
        asyncio.get_running_loop().remove_reader(handle)
        os.close(handle)


def open_descriptors() -> list[str]:
    return sorted(path.name for path in Path("/proc/self/fd").iterdir())


@pytest.mark.requirement("TOOL-5")
async def test_it_runs_in_a_process_group_of_its_own(launched: Bench) -> None:
    command = launched.command(COMMANDS["obedient"])
    async with asyncio.timeout(180), await launched.sandbox.start(command) as process:
        await read_until(process, "up")
        tree = members(process)
        assert len(tree) >= 2
        assert os.getpgid(0) not in {os.getpgid(each.pid) for each in tree}
        assert os.getsid(0) not in {os.getsid(each.pid) for each in tree}


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize("how", ["timeout", "terminate", "cancel", "leave"])
async def test_the_whole_tree_ends(launched: Bench, how: str) -> None:
    command = launched.command(FAMILY)
    async with asyncio.timeout(300):
        async with await launched.sandbox.start(command) as process:
            await read_until(process, "up", 4)
            tree = members(process)
            # The supervisor and four shells; their `sleep` may be just starting.
            assert len(tree) >= 5
            if how == "timeout":
                launched.clock.advance(60)
                assert (await process.wait()).timed_out
            elif how == "terminate":
                end = await process.terminate(0)
                assert (end.confirmed, end.remaining_pids) == (True, ())
            elif how == "cancel":
                async with asyncio.TaskGroup() as tasks:
                    waiting = tasks.create_task(process.wait(), name="wait")
                    await asyncio.to_thread(lambda: None)
                    waiting.cancel()
        assert members(process) == []
        for each in tree:
            now = process_tree.read_process(each.pid)
            assert now is None or now.started_ticks != each.started_ticks


@pytest.mark.requirement("TOOL-5")
async def test_what_a_command_held_is_given_back_once_though_the_wait_is_cancelled(
    launched: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second time would close descriptors whose numbers others have by then."""
    given_back, begun, go_on = list[Plan](), threading.Event(), threading.Event()
    free = Plan.free

    def slowly(plan: Plan) -> None:
        given_back.append(plan)
        begun.set()
        go_on.wait(20)
        free(plan)

    monkeypatch.setattr(Plan, "free", slowly)
    async with asyncio.timeout(180):
        async with await launched.sandbox.start(launched.command("exit 3")) as process:
            waiting = asyncio.create_task(process.wait(), name="wait")
            await asyncio.to_thread(begun.wait, 20)
            waiting.cancel()
            await asyncio.wait({waiting})
            again = asyncio.create_task(process.wait(), name="wait again")
            await asyncio.to_thread(lambda: None)
            go_on.set()
            assert (await again).code == 3
    assert len(given_back) == 1


@pytest.mark.requirement("TOOL-5", "SEC-6")
@pytest.mark.parametrize("how", ["timeout", "terminate", "token"])
async def test_a_process_ends_although_its_first_thread_left_before(
    launched: Bench, how: str
) -> None:
    """It looks dead by its pid, but its other threads go on."""
    async with (
        asyncio.timeout(180),
        await launched.sandbox.start(launched.python(LEADERLESS)) as process,
    ):
        await read_until(process, "up")
        # It is told a moment before the state changes.
        tree = members(process)
        while all(each.state != "Z" for each in tree):
            tree = members(process)
        if how == "timeout":
            launched.clock.advance(60)
            assert (await process.wait()).timed_out
        elif how == "terminate":
            end = await process.terminate(0)
            assert (end.confirmed, end.remaining_pids) == (True, ())
        else:
            lost = replace(process.identity, started_ticks=1)
            found = list(process_tree.find_tree(lost))
            assert sum(each.state == "Z" for each in found) == 1
            assert (await process.terminate(0)).confirmed
        assert members(process) == []
        assert not any(threads.living(each.pid) for each in tree)


@pytest.mark.requirement("TOOL-5")
async def test_what_the_command_leaves_behind_ends_with_it(launched: Bench) -> None:
    """The output ends too, although the left one still held it open."""
    async with asyncio.timeout(180):
        command = launched.command("setsid sleep 1000 & sleep 1000 & echo done")
        async with await launched.sandbox.start(command) as process:
            assert await drain(process) == "done\n"
            assert (await process.wait()).code == 0
            assert members(process) == []


@pytest.mark.requirement("TOOL-5")
async def test_a_tree_ends_when_the_gateway_is_killed(launched: Bench, tmp_path: Path) -> None:
    """A SIGKILL runs no handler: the supervisor sees that its gateway is gone."""
    script = Path(__file__).with_name("gateway_to_kill.py")
    gateway = await asyncio.create_subprocess_exec(
        sys.executable,
        str(script),
        launched.sandbox.name,
        str(launched.workspace),
        stdout=asyncio.subprocess.PIPE,
        env={"PYTHONPATH": str(Path(__file__).parents[3]), "PATH": os.environ["PATH"]},
    )
    async with asyncio.timeout(300):
        assert gateway.stdout is not None
        pid, ticks, token, temporary = (await gateway.stdout.readline()).decode().split()
        identity = ProcessIdentity(int(pid), int(ticks), token)
        assert process_tree.find_tree(identity)
        with watched(identity.pid) as gone:
            gateway.kill()
            await gateway.wait()
            await gone.wait()
        end = await launched.sandbox.end_tree(identity, 0)
    assert (end.confirmed, end.remaining_pids) == (True, ())
    # Nobody else is left to remove it, and /tmp is the namespaced command's own.
    assert temporary == "/tmp" or not tmp_path.joinpath(temporary).exists()


@pytest.mark.requirement("TOOL-5")
async def test_a_tree_is_ended_by_its_identity_alone(launched: Bench) -> None:
    """And by the whole of it: the same pid with another start time or token matches nothing."""
    command = launched.command(COMMANDS["obedient"])
    async with asyncio.timeout(180), await launched.sandbox.start(command) as process:
        await read_until(process, "up")
        wrong = replace(process.identity, started_ticks=1, token="another")
        missed = await launched.sandbox.end_tree(wrong, 0)
        assert (missed.confirmed, missed.matched_target, missed.signal_sent) == (True, False, False)
        assert members(process)
        async with asyncio.TaskGroup() as tasks:
            ending = tasks.create_task(launched.sandbox.end_tree(process.identity, 5), name="end")
            await process.wait()
            end = await ending
        assert (end.confirmed, end.matched_target, end.signal_sent) == (True, True, True)
        assert members(process) == []


@pytest.mark.requirement("TOOL-5")
async def test_a_killed_supervisor_frees_nobody(launched: Bench) -> None:
    """Not even a member that lost its token, if it is in the command's cgroup."""
    command = launched.command(FAMILY)
    async with asyncio.timeout(300), await launched.sandbox.start(command) as process:
        await read_until(process, "up", 4)
        in_cgroup = launched.groups.pids is not None or launched.groups.memory is not None
        with ExitStack() as watching:
            tree = [watching.enter_context(watched(each.pid)) for each in members(process)]
            os.kill(process.identity.pid, signal.SIGKILL)
            ended = await process.wait()
            assert ended.signal == 9
            assert members(process) == []
            for gone in tree if in_cgroup else ():
                await gone.wait()


@pytest.mark.requirement("TSK-5")
async def test_what_lost_its_parent_and_its_token_is_found_by_its_group(launched: Bench) -> None:
    """The supervisor is gone, so that descent tells nothing; one member still has the token."""
    lost = f'env -i /bin/bash -c "{IGNORES_TERM}"'
    command = launched.command(f"({lost} &); (sleep 1000 & echo up; wait) & wait")
    async with asyncio.timeout(300), await launched.sandbox.start(command) as process:
        await read_until(process, "up", 2)
        with ExitStack() as watching:
            tree = [watching.enter_context(watched(each.pid)) for each in members(process)]
            os.kill(process.identity.pid, signal.SIGKILL)
            end = await launched.sandbox.end_tree(process.identity, 0)
            assert (end.confirmed, end.remaining_pids) == (True, ())
            for gone in tree:
                await gone.wait()


@pytest.mark.requirement("TSK-5", "TSK-6")
async def test_who_took_a_number_is_never_hit() -> None:
    """Neither a process and its children under the pid of the head, nor the group of that number,
    nor one that took a pid between the look and the signal; and no token matches nothing."""
    other = await asyncio.create_subprocess_exec(
        *("/bin/sh", "-c", "sleep 1000 >/dev/null & echo up; wait"),
        stdout=asyncio.subprocess.PIPE,
        env={"PATH": os.environ["PATH"], TASK_TOKEN: ""},
        start_new_session=True,
    )
    try:
        assert other.stdout is not None
        await other.stdout.readline()
        now = process_tree.read_process(other.pid)
        assert now is not None
        for token in ("", "another"):
            identity = ProcessIdentity(other.pid, now.started_ticks - 1, token)
            assert process_tree.find_tree(identity) == {}
            end = await end_tree(identity, grace_s=0, clock=HandClock())
            assert (end.confirmed, end.matched_target, end.signal_sent) == (True, False, False)
        earlier = replace(now, started_ticks=now.started_ticks - 1)
        assert process_tree.send([earlier], signal.SIGKILL) == 0
        assert other.returncode is None
        assert process_tree.send([now], signal.SIGKILL) == 1
        assert await other.wait() == -signal.SIGKILL
        # Its child still is in the group of that number, which has no leader any more.
        identity = ProcessIdentity(other.pid, now.started_ticks - 1, "another")
        assert process_tree.find_tree(identity) == {}
    finally:
        os.killpg(other.pid, signal.SIGKILL)


def at_most(limit: int) -> int:
    """The processes that a command may have at the same time. An ordinary user's limit counts all
    that the user runs when the command starts: what ends meanwhile makes room for more."""
    if os.geteuid() == 0:
        return limit
    own = [path for path in Path("/proc").glob("[0-9]*") if is_own(path)]
    return limit + sum(len(list((path / "task").glob("*"))) for path in own)


def is_own(process: Path) -> bool:
    """Whether a process is this user's; one that has ended is nobody's."""
    try:
        return process.stat().st_uid == os.getuid()
    except FileNotFoundError:
        return False


@pytest.mark.requirement("TOOL-5")
async def test_a_fork_bomb_is_stopped(launched: Bench, groups: Cgroups) -> None:
    """While it holds what it has, the gateway's user can start programs and commands."""
    if groups.pids is None and os.geteuid() == 0 and not launched.sandbox.confines:
        pytest.skip("no pids cgroup is writable, and root has no other limit: mount one writable")
    launched.limits = SandboxLimits(processes=32)
    bomb, most = launched.python(FORKS), at_most(32)
    async with asyncio.timeout(300), await launched.sandbox.start(bomb) as process:
        assert 0 < int(await read_until(process, "\n")) <= most
        beside = await asyncio.create_subprocess_exec("/bin/true")
        assert await beside.wait() == 0
        assert (await launched.run("echo hi"))[0] == "hi\n"
        assert (await process.terminate(5)).confirmed
        ended = await process.wait()
    if groups.pids is not None:
        assert ended.limit == "processes"


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize("name", ["bubblewrap", "landlock"])
async def test_without_a_cgroup_processes_are_limited_for_root_as_well(
    name: str, tmp_path: Path, clock: HandClock
) -> None:
    """By what the supervisor answers at each fork; an ordinary user has RLIMIT_NPROC."""
    (tmp_path / "workspace").mkdir()
    bench = Bench(await build(name, clock, Cgroups()), clock, tmp_path)
    assert "NOTHING" not in bench.sandbox.describe()
    bench.limits = SandboxLimits(processes=32)
    least = 8 if os.geteuid() == 0 else 0
    for bomb in (FORKS, THREADS):
        most = at_most(32)
        async with (
            asyncio.timeout(300),
            await bench.sandbox.start(bench.python(bomb)) as process,
        ):
            assert least < int(await read_until(process, "\n")) <= most
            assert (await bench.run("echo hi"))[0] == "hi\n"
            assert (await process.terminate(5)).confirmed
            await process.wait()
    # One after the other there may be any number.
    output, ended = await bench.run("for i in $(seq 100); do /bin/true; done; echo done")
    assert (output, ended.code) == ("done\n", 0)


@pytest.mark.requirement("TOOL-5")
async def test_a_memory_bomb_is_stopped(launched: Bench, groups: Cgroups) -> None:
    launched.limits = SandboxLimits(memory_bytes=128 * 1024**2)
    output, ended = await launched.run(launched.python("len(b'x' * 1024**3); print('survived')"))
    assert "survived" not in output
    assert ended.code != 0
    if groups.memory is not None:
        assert (ended.signal, ended.limit) == (9, "memory")


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize("kind", [Landlock, Unconfined])
async def test_without_a_cgroup_a_memory_bomb_meets_the_address_space(
    kind: type[Landlock | Unconfined], tmp_path: Path, clock: HandClock
) -> None:
    (tmp_path / "workspace").mkdir()
    bench = Bench(kind(clock, cgroups=Cgroups()), clock, tmp_path)
    bench.limits = SandboxLimits(memory_bytes=256 * 1024**2)
    output, ended = await bench.run(bench.python("len(b'x' * 1024**3); print('survived')"))
    assert "MemoryError" in output
    assert ended.code == 1
    assert "RLIMIT_AS" in bench.sandbox.describe()


@pytest.mark.requirement("TOOL-5")
async def test_a_file_cannot_grow_past_its_limit(launched: Bench) -> None:
    launched.limits = SandboxLimits(file_bytes=100_000)
    _, ended = await launched.run("exec head -c 5000000 /dev/zero > file")
    assert (launched.workspace / "file").stat().st_size <= 100_000
    assert (ended.signal, ended.limit) == (signal.SIGXFSZ, "file_size")


@pytest.mark.requirement("TOOL-5")
async def test_open_files_are_limited(launched: Bench) -> None:
    launched.limits = SandboxLimits(open_files=40)
    script = "import os; held = [os.open('/dev/null', 0) for _ in range(60)]"
    output, ended = await launched.run(launched.python(script))
    assert "Too many open files" in output
    assert ended.code == 1


@pytest.mark.requirement("TOOL-5")
async def test_a_limit_that_was_not_met_is_not_named(launched: Bench) -> None:
    _, ended = await launched.run("true")
    assert (ended.code, ended.limit) == (0, None)


@pytest.mark.requirement("TOOL-5")
async def test_twenty_commands_at_once(launched: Bench) -> None:
    async with asyncio.TaskGroup() as tasks:
        runs = [
            tasks.create_task(launched.run(f"echo {n} | tee out{n}"), name=f"command {n}")
            for n in range(20)
        ]
    assert [run.result()[0] for run in runs] == [f"{n}\n" for n in range(20)]
    assert len(list(launched.workspace.iterdir())) == 20


@pytest.mark.requirement("TOOL-5")
async def test_no_descriptor_is_left_open(launched: Bench) -> None:
    await launched.run("true")
    before = open_descriptors()
    for _ in range(3):
        await launched.run("echo hi")
    assert open_descriptors() == before
