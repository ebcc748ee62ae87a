"""Commands are strangers to the gateway (SEC-6): hostile programs on each backend.

`attempts` is what they try, `gateway_under_attack` the gateway that they try it on. Nothing that a
program says is a proof; its reports only show that it tried, and how much.
"""

import asyncio
import json
import os
import resource
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from adapters.sandbox.cgroups import Cgroups
from adapters.sandbox.landlock import KNOWN_LIMITS, OTHER_PROCESSES, ROOT_LIMITS, Landlock
from adapters.sandbox.probe import try_backend
from tests.contract.sandbox.conftest import Bench, HandClock
from tests.hostile.gateway_under_attack import KERNEL_TABLES, SECRET, sandbox_of
from tests.support import planting
from tests.support.users import MISSING, NOBODY, ROOT, python_of_others

SANDBOXES = ("bubblewrap", "landlock", "landlock-5")
USERS = ("root", "ordinary")
MODES = {
    "normal": {"victim": "gateway", "fuzz": True, "shown": True},
    "neighbour": {"victim": "neighbour"},
    "read-only": {"victim": "gateway", "read_only": True, "shown": True},
    "network": {"victim": "gateway", "network": True},
}
_PLAIN = {"fuzz": False, "shown": False, "read_only": False, "network": False}
LEAST_ATTEMPTS = 150
LEAST_CALLS = 2500
HARMLESS: dict[str, set[str]] = {
    # In namespaces of its own it finds IPC and a /tmp of its own.
    "bubblewrap": {"shmget", "msgget", "semget", "mq_open", "shm_open", "tmp", "var tmp"},
    "landlock": set(),
    "landlock-5": set(),
}
"""A report that says `done` proves nothing by itself, but each of them has to be explained."""


@dataclass(frozen=True, slots=True)
class Case:
    sandbox: str
    user: str
    mode: str


_CANARIES: dict[str, str | None] = {}
_OUTCOMES: dict[Case, dict[str, Any]] = {}


async def outcome_of(case: Case) -> dict[str, Any]:
    """What one gateway saw; each case is run once."""
    if case.user == "root" and os.geteuid() != 0:
        pytest.skip("only root can try it as root: run the tests as root")
    python, path = sys.executable, ""
    if case.user == "ordinary":
        python, path = python_of_others("tests.hostile.gateway_under_attack")
    if not python:
        pytest.skip(MISSING)
    if case.sandbox not in _CANARIES:
        _CANARIES[case.sandbox] = await try_backend(sandbox_of(case.sandbox))
    if _CANARIES[case.sandbox] is not None:
        pytest.skip(f"{case.sandbox} does not confine here: {_CANARIES[case.sandbox]}")
    if case not in _OUTCOMES:
        planted = str(planting.plant()) if case.user == "root" else ""
        given = {**_PLAIN, **MODES[case.mode], "sandbox": case.sandbox, "planted": planted}
        as_nobody: dict[str, Any] = {}
        if case.user == "ordinary" and os.geteuid() == 0:
            as_nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        gateway = await asyncio.create_subprocess_exec(
            *(python, "-m", "tests.hostile.gateway_under_attack", json.dumps(given)),
            cwd=ROOT,
            env={
                "PYTHONDONTWRITEBYTECODE": "1",
                "PYTHONPATH": path,
                "PATH": os.environ["PATH"],
            },
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            **as_nobody,
        )
        async with asyncio.timeout(600):
            said, complaint = await gateway.communicate()
        # A gateway that was ended by the programs says nothing.
        assert gateway.returncode == 0, f"{gateway.returncode}: {complaint.decode()[-2000:]}"
        _OUTCOMES[case] = json.loads(said)
    return _OUTCOMES[case]


@pytest.fixture(
    params=[Case(sandbox, user, mode) for sandbox in SANDBOXES for user in USERS for mode in MODES],
    ids=lambda case: f"{case.sandbox}-{case.user}-{case.mode}",
    scope="module",
)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


@pytest.mark.requirement("SEC-6")
async def test_hostile_programs_change_nothing_outside(case: Case) -> None:
    """Neither the life, limits, priority or place of the gateway and of what else runs for it, nor
    modes, owners, times or content of files outside, nor the kernel's settings."""
    outcome = await outcome_of(case)
    assert outcome["changed"] == {}
    assert outcome["neighbour"] is None
    assert outcome["code"] == 0, outcome["attempts"]


@pytest.mark.requirement("SEC-6")
async def test_hostile_programs_leave_nothing_to_other_sessions(case: Case) -> None:
    assert (await outcome_of(case))["left"] == []


@pytest.mark.requirement("SEC-6")
async def test_hostile_programs_read_no_secret_and_no_file_of_roots(case: Case) -> None:
    outcome = await outcome_of(case)
    assert outcome["attempts"]["read /etc/shadow"] != "done"
    reads = {name for name in outcome["attempts"] if name.startswith("read ")}
    assert len(reads) >= 5
    if case.user == "root":
        assert sum("/deep/" in name for name in reads) == 3
        assert {f"read {table}" for table in KERNEL_TABLES} <= reads
    assert SECRET not in outcome["printed"]
    # The mask of a file may read as empty.
    assert outcome["printed"].strip() == ""


@pytest.mark.requirement("SEC-6")
async def test_hostile_programs_reach_the_gateway_only_with_a_network(case: Case) -> None:
    outcome = await outcome_of(case)
    assert outcome["connections"] == (1 if case.mode == "network" else 0)
    assert outcome["attempts"]["unix"] != "done"
    assert outcome["attempts"]["abstract"] != "done"


@pytest.mark.requirement("SEC-6")
async def test_no_attempt_says_that_it_worked(case: Case) -> None:
    outcome = await outcome_of(case)
    attempts = outcome["attempts"]
    worked = {name for name, said in attempts.items() if said == "done" and name[:5] != "read "}
    allowed = set(HARMLESS[case.sandbox])
    if case.mode == "network":
        allowed.add("tcp")
    if case.sandbox != "bubblewrap" and case.user != "root" and case.mode == "neighbour":
        # A command of the same session: the numbers, not what they lead to.
        allowed.add("/proc fd")
    assert worked - allowed == set()
    assert len(attempts) >= LEAST_ATTEMPTS
    if case.mode == "normal":
        assert attempts["fuzz"] >= LEAST_CALLS


@pytest.mark.requirement("SEC-6")
def test_what_landlock_alone_cannot_hide_is_said() -> None:
    said = Landlock(HandClock(), cgroups=Cgroups()).describe()
    assert KNOWN_LIMITS in said
    as_root = os.geteuid() == 0
    assert (ROOT_LIMITS in said, OTHER_PROCESSES in said) == (as_root, not as_root)
    for word in ("names, sizes and times of hidden files", "processor"):
        assert word in said


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("name", SANDBOXES)
async def test_known_limits_are_those_that_are_said_and_no_more(name: str, tmp_path: Path) -> None:
    """Without namespaces, hidden files can be asked for their size, not for their content; and
    an ordinary user's commands read command lines and the numbers of open files. With namespaces
    none of it works, and no table of the kernel that only root may read is read anywhere."""
    if (refused := await try_backend(sandbox_of(name))) is not None:
        pytest.skip(f"{name} does not confine here: {refused}")
    (tmp_path / "workspace").mkdir()
    (tmp_path / "hidden").write_text(SECRET)
    bench = Bench(sandbox_of(name), HandClock(), tmp_path)
    output, _ = await bench.run(
        f"stat -c 'size %s' {tmp_path}/hidden; cat {tmp_path}/hidden; "
        f"head -c 1 /proc/{os.getpid()}/cmdline | grep -q . && echo its line; "
        "head -1 /proc/timer_list; grep -o MemTotal /proc/meminfo; "
        f"echo {os.getpid()} numbers: $(ls /proc/{os.getpid()}/fd); "
        f"readlink /proc/{os.getpid()}/fd/0 || echo no link; nice"
    )
    said = bench.sandbox.describe()
    assert (f"size {len(SECRET)}" in output) == (KNOWN_LIMITS in said) == (name != "bubblewrap")
    assert ("\nits line\n" in output) == (OTHER_PROCESSES in said)
    # Not of a process that changed its user, which the kernel shows to root alone.
    assert OTHER_PROCESSES in said or f"\n{os.getpid()} numbers: 0" not in output
    assert "Timer List" not in output
    assert "MemTotal" in output
    assert "no link" in output
    assert SECRET not in output
    # The gateway goes first where the processor is wanted by both, and no more than that.
    assert "the processor is shared, at a low priority" in said.lower()
    assert int(output.split()[-1]) >= 10


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("name", SANDBOXES)
async def test_a_program_that_git_was_told_to_run_cannot_limit_the_gateway(
    name: str, tmp_path: Path
) -> None:
    """In plan mode `git diff` is judged as reading, and a repository may name a program for it."""
    if (refused := await try_backend(sandbox_of(name))) is not None:
        pytest.skip(f"{name} does not confine here: {refused}")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    bench = Bench(sandbox_of(name), HandClock(), tmp_path)
    victim = os.getpid()
    program = workspace / "hostile"
    program.write_text(
        f"#!/bin/sh\necho it ran\nprlimit --pid {victim} --nofile=7:7 --cpu=1:1\n"
        f"kill -9 {victim}\nrenice -n 19 {victim}\ntaskset -p 1 {victim}\nchown 0 {tmp_path}\n"
    )
    program.chmod(0o755)
    made = (
        "git init -q . && echo a > a && git add a && echo b > a"
        " && git config diff.external ./hostile"
    )
    _, ended = await bench.run(made)
    assert ended.code == 0
    before = _standing(victim)
    asked = bench.command("git diff")
    output, _ = await bench.run(
        replace(asked, writable=(), readable=(*asked.readable, str(workspace)))
    )
    assert "it ran" in output
    assert _standing(victim) == before


def _standing(pid: int) -> tuple[object, ...]:
    return (
        resource.prlimit(pid, resource.RLIMIT_NOFILE),
        resource.prlimit(pid, resource.RLIMIT_CPU),
        os.getpriority(os.PRIO_PROCESS, pid),
        os.sched_getaffinity(pid),
    )
