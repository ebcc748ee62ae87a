"""Cgroups as files: which ones are found, what is written, what is read back (TOOL-5)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from adapters.sandbox.cgroups import Cgroups, CommandGroup, Parent, discover
from adapters.sandbox.limits import describe_limits
from adapters.sandbox.probe import choose
from runtime.ports.sandbox import SandboxLimits
from tests.fakes.clock import FakeClock

LIMITS = SandboxLimits(memory_bytes=1000, processes=7)


def parents(base: Path, version: int) -> Cgroups:
    folders = ("memory", "pids") if version == 1 else ("both", "both")
    for name in folders:
        (base / name).mkdir(exist_ok=True)
    return Cgroups(
        memory=Parent(base / folders[0], "memory", version),
        pids=Parent(base / folders[1], "pids", version),
    )


@pytest.mark.requirement("TOOL-5")
def test_version_1_has_a_directory_for_each_controller(tmp_path: Path) -> None:
    group = parents(tmp_path, 1).group(LIMITS, overhead=2)
    memory, pids = (Path(each) for each in group.directories())
    assert (memory / "memory.limit_in_bytes").read_text() == "1000"
    assert (pids / "pids.max").read_text() == "9"
    assert memory.parent.name == "memory"


@pytest.mark.requirement("TOOL-5")
def test_version_2_has_one_directory_for_both(tmp_path: Path) -> None:
    group = parents(tmp_path, 2).group(LIMITS, overhead=0)
    (directory,) = (Path(each) for each in group.directories())
    assert (directory / "memory.max").read_text() == "1000"
    assert (directory / "pids.max").read_text() == "7"


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ({}, None),
        ({"memory.events": "oom 1\noom_kill 0\n", "pids.events": "max 0\n"}, None),
        ({"memory.events": "oom 1\noom_kill 2\n"}, "memory"),
        ({"pids.events": "max 168\n"}, "processes"),
    ],
)
def test_the_limit_that_was_met_is_read_back(
    tmp_path: Path, events: dict[str, str], expected: str | None
) -> None:
    for name, text in events.items():
        (tmp_path / name).write_text(text)
    group = CommandGroup((Parent(tmp_path, "memory", 2), Parent(tmp_path, "pids", 2)))
    assert group.limit_hit() == expected


@pytest.mark.requirement("TOOL-5")
def test_a_group_that_cannot_be_limited_leaves_nothing(tmp_path: Path) -> None:
    found = parents(tmp_path, 1)
    (tmp_path / "pids").chmod(0o755)
    broken = Cgroups(memory=found.memory, pids=Parent(tmp_path / "absent", "pids", 1))
    with pytest.raises(OSError, match="absent"):
        broken.group(LIMITS, overhead=0)
    assert list((tmp_path / "memory").iterdir()) == []


def below(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def bare(group: CommandGroup) -> CommandGroup:
    """Without its files: the kernel's own stand in nobody's way."""
    for directory in group.directories():
        for file in Path(directory).iterdir():
            file.unlink()
    return group


@pytest.mark.requirement("TOOL-5", "SCALE-1")
@pytest.mark.parametrize("ahead_s", [-3_600.0, 0.0, 3_600.0])
async def test_a_start_takes_no_group_that_a_gateway_holds_whatever_its_clock_says(
    tmp_path: Path, ahead_s: float
) -> None:
    """Another home's gateway has just made it; its command has not joined it yet."""
    other, own = parents(tmp_path, 1), parents(tmp_path, 1)
    made = bare(other.group(LIMITS, overhead=0))
    left = tmp_path / "pids/gatehouse-left"
    left.mkdir()
    clock = FakeClock(int((left.stat().st_mtime + ahead_s) * 1000))
    await choose("none", clock=clock, cgroups=own)
    held = [Path(one).name for one in made.directories()]
    assert below(tmp_path / "memory") + below(tmp_path / "pids") == held
    assert not left.exists(), "nobody holds it"
    made.remove()
    assert below(tmp_path / "pids") == below(tmp_path / "memory") == []


@pytest.mark.requirement("TOOL-5")
def test_a_group_is_swept_once_its_gateway_is_dead(tmp_path: Path) -> None:
    found = parents(tmp_path, 1)
    makes = (
        "import os, sys; from pathlib import Path\n"
        "from adapters.sandbox.cgroups import Parent, _make\n"
        "group = _make((Parent(Path(sys.argv[1]), 'pids', 1),)); print(group.members[0].path)\n"
        "sys.stdout.flush(); sys.stdin.read()"
    )
    command = [sys.executable, "-c", makes, str(tmp_path / "pids")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as gateway:
        assert gateway.stdout is not None
        (path,) = [Path(gateway.stdout.readline().strip())]
        found.sweep()
        assert path.is_dir()
        gateway.kill()
    found.sweep()
    assert not path.exists()


@pytest.mark.requirement("TOOL-5")
def test_what_earlier_lives_left_is_swept_unless_it_is_in_use(tmp_path: Path) -> None:
    found = parents(tmp_path, 1)
    for name in ("pids/gatehouse-left", "pids/other", "memory/gatehouse-busy/inside"):
        (tmp_path / name).mkdir(parents=True)
    found.sweep()
    assert below(tmp_path / "pids") == ["other"]
    assert below(tmp_path / "memory") == ["gatehouse-busy"]


@pytest.mark.requirement("TOOL-5")
def test_a_group_that_is_swept_before_it_is_held_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sweep of another gateway comes between the directory and its lock, and it is slow."""
    found, opened = parents(tmp_path, 2), os.open
    swept = list[Path]()

    def sweeps_first(path: Path, flags: int) -> int:
        if not swept:
            swept.append(path)
            path.rmdir()
        elif len(swept) == 1:
            swept.append(path)
            handle = opened(path, flags)
            path.rmdir()
            return handle
        return opened(path, flags)

    monkeypatch.setattr(os, "open", sweeps_first)
    group = found.group(LIMITS, overhead=0)
    monkeypatch.setattr(os, "open", opened)
    assert below(tmp_path / "both") == [Path(group.directories()[0]).name]
    assert not any(path.exists() for path in swept)
    assert len(group.locks) == 1


@pytest.mark.requirement("TOOL-5")
def test_a_directory_without_the_kernel_behind_it_is_not_taken(tmp_path: Path) -> None:
    """As a read-only or a masked mount in a container."""
    (tmp_path / "cgroup.subtree_control").write_text("memory pids\n")
    membership, mounts = tmp_path / "cgroup", tmp_path / "mountinfo"
    membership.write_text("0::/\n")
    mounts.write_text(f"30 20 0:26 / {tmp_path} rw - cgroup2 cgroup2 rw\n")
    before = sorted(tmp_path.iterdir())
    assert discover(membership, mounts) == Cgroups()
    assert sorted(tmp_path.iterdir()) == before
    assert discover(tmp_path / "absent", mounts) == Cgroups()


@pytest.mark.requirement("TOOL-5")
def test_what_cannot_be_limited_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert "NOTHING" in describe_limits(Cgroups(), asks_forks=False)
    assert "by the supervisor" in describe_limits(Cgroups(), asks_forks=True)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    for asks in (False, True):
        assert "RLIMIT_NPROC" in describe_limits(Cgroups(), asks_forks=asks)
        pids = Parent(Path("/x"), "pids", 1)
        assert "processes by a cgroup" in describe_limits(Cgroups(pids=pids), asks_forks=asks)
