"""The measurement of a command's disk, where its cheap looks say nothing."""

import os
from pathlib import Path

import pytest

from adapters.sandbox import disk
from adapters.sandbox.disk import DiskMeter
from adapters.sandbox.launch_spec import DiskSpec

MB = 1024**2


@pytest.mark.requirement("SEC-6")
def test_what_others_remove_meanwhile_hides_no_more_than_some_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file system lost nothing, and nobody wrote a byte of what was allocated."""
    monkeypatch.setattr(disk, "_used", lambda folder: (0, 0))
    meter = DiskMeter(DiskSpec(folders=(str(tmp_path),), limit=MB, reserve=0))
    with (tmp_path / "f").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 3 * MB)
    looks = [meter.measure(()) for _ in range(8)]
    assert "disk" in looks


@pytest.mark.requirement("SEC-6")
def test_a_large_folder_is_not_walked_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "_used", lambda folder: (0, 0))
    monkeypatch.setattr(disk, "_STEP", 1)
    for number in range(100):
        (tmp_path / str(number)).touch()
    meter = DiskMeter(DiskSpec(folders=(str(tmp_path),), limit=MB, reserve=0))
    walking = [meter.walking for _ in range(200) if meter.measure(()) is None]
    first, after = walking.index(True), walking.index(False, walking.index(True))
    assert first < 8
    assert walking.index(True, after) - after >= 20


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize(("grown", "excess"), [(8 * 1024, None), (MB, "disk")])
def test_what_a_session_has_beyond_its_quota_may_grow_by_what_describes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grown: int, excess: str | None
) -> None:
    monkeypatch.setattr(disk, "_used", lambda folder: (0, 0))
    (tmp_path / "f").write_bytes(bytes(3 * MB))
    meter = DiskMeter(
        DiskSpec(folders=(str(tmp_path),), limit=MB, reserve=0, charged=2 * MB, since_ns=0)
    )
    (tmp_path / "g").write_bytes(bytes(grown))
    assert {meter.measure(()) for _ in range(8)} - {None} == ({excess} if excess else set())


@pytest.mark.requirement("SEC-6")
def test_a_charge_is_what_was_seen_although_others_removed_as_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "_used", lambda folder: (0, 0))
    meter = DiskMeter(DiskSpec(folders=(str(tmp_path),), limit=MB, reserve=0))
    (tmp_path / "f").write_bytes(bytes(3 * MB))
    assert "disk" in [meter.measure(()) for _ in range(8)]
    assert meter.total() >= 3 * MB
