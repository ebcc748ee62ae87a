"""When the database counts as taking writes, and what the log says of it (API-5)."""

import os
from collections import namedtuple
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from runtime.domain.errors import CommitUnknown, StoreFull, StoreUnavailable
from runtime.store.write_check import CALM_S, LEAST_ROOM, LOOK_S, Writable
from tests.fakes.clock import FakeClock

Room = namedtuple("Room", "f_bavail f_bfree f_frsize")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


class Disk:
    """What the system says about a disk; `room` is in bytes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room = LEAST_ROOM
        self.asked = 0
        monkeypatch.setattr(os, "statvfs", self._statvfs)

    def _statvfs(self, folder: Path) -> Room:
        self.asked += 1
        return Room(self.room, self.room, 1)


async def test_a_failed_write_is_trouble_until_writes_were_fine_for_a_while(
    clock: FakeClock,
) -> None:
    found = Writable(clock)
    with capture_logs() as lines:
        found.wrote()
        assert found.trouble == ""
        found.failed(StoreUnavailable("the file is locked"))
        found.wrote()
        assert "the file is locked" in found.trouble
        await clock.advance(CALM_S / 2)
        found.failed(StoreUnavailable("the file is locked still"))
        await clock.advance(CALM_S / 2)
        found.wrote()
        assert "locked still" in found.trouble
        await clock.advance(CALM_S / 2)
        assert found.trouble, "silence proves nothing"
        found.wrote()
        found.wrote()
        assert found.trouble == ""
    assert [line["event"] for line in lines] == ["database_not_writable", "database_recovered"]
    assert lines[1]["after_s"] == pytest.approx(CALM_S * 1.5)


@pytest.mark.requirement("API-5")
async def test_small_writes_on_a_full_disk_do_not_hide_that_it_is_full(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    disk = Disk(monkeypatch)
    found = Writable(clock, tmp_path / "gatehouse.db")
    found.wrote()
    assert found.trouble == ""
    disk.room = 4096
    with capture_logs() as lines:
        for _ in range(10):
            await clock.advance(LOOK_S)
            found.wrote()
        assert "is full: 4 KiB are left" in found.trouble
        found.failed(StoreFull("The disk is full."))
        disk.room = LEAST_ROOM
        await clock.advance(CALM_S)
        found.wrote()
        assert found.trouble == ""
    assert [line["event"] for line in lines] == ["database_not_writable", "database_recovered"]


async def test_the_disk_is_asked_seldom_and_also_when_nothing_is_written(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    disk = Disk(monkeypatch)
    found = Writable(clock, tmp_path / "gatehouse.db")
    for _ in range(1000):
        found.wrote()
        assert not found.trouble
    assert disk.asked == 1
    disk.room = 0
    await clock.advance(LOOK_S)
    assert "is full" in found.trouble
    assert disk.asked == 2


async def test_a_commit_whose_end_is_unknown_is_no_trouble_yet(clock: FakeClock) -> None:
    found = Writable(clock)
    found.failed(CommitUnknown("the line broke"))
    assert found.trouble == ""


async def test_a_disk_that_cannot_be_asked_is_trouble(clock: FakeClock, tmp_path: Path) -> None:
    found = Writable(clock, tmp_path / "gone" / "gatehouse.db")
    assert "cannot be asked for its room: No such file" in found.trouble
