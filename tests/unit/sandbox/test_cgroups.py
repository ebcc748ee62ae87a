"""Cgroups as files: which ones are found, what is written, what is read back (TOOL-5)."""

from pathlib import Path

import pytest

from adapters.sandbox.cgroups import Cgroups, CommandGroup, Parent, discover
from adapters.sandbox.limits import describe_limits
from runtime.ports.sandbox import SandboxLimits

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


@pytest.mark.requirement("TOOL-5")
def test_what_earlier_lives_left_is_swept(tmp_path: Path) -> None:
    found = parents(tmp_path, 1)
    (tmp_path / "pids/gatehouse-left").mkdir()
    (tmp_path / "pids/other").mkdir()
    (tmp_path / "memory/gatehouse-busy/inside").mkdir(parents=True)
    made_ms = int((tmp_path / "pids/gatehouse-left").stat().st_mtime * 1000)
    found.sweep(now_ms=made_ms + 1_000)
    assert (tmp_path / "pids/gatehouse-left").exists(), "another gateway may be about to use it"
    found.sweep(now_ms=made_ms + 120_000)
    assert [path.name for path in (tmp_path / "pids").iterdir()] == ["other"]
    assert [path.name for path in (tmp_path / "memory").iterdir()] == ["gatehouse-busy"]


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
