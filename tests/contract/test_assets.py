"""Uploads: one row and one file for one content, as long as a session uses it (RUN-5)."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TypeVar

import asyncpg
import pytest

from gateway.backup_workspace import WorkspaceFile, walk
from runtime.bus.memory import MemoryBus
from runtime.domain.errors import Conflict, InvalidInput, NotFound, StoreUnavailable, TooLarge
from runtime.intake.assets import LEFT_MS, UNUSED_MS, AssetLimits, Assets, AssetUse, Sender
from runtime.intake.control import NewConversation
from runtime.sessions import assets as rows
from runtime.sessions.unit import Units
from runtime.store import Connection, Database
from runtime.tools.hidden_paths import Hidden
from runtime.workspace.layout import Layout, ResolvedLayout
from tests.conftest import FailAfter
from tests.contract.store_support import Gate as Amid
from tests.contract.test_deletion_races import Halting, keeping
from tests.contract.test_request_keys import waiting
from tests.contract.test_submission_keys import control_of
from tests.fakes.clock import FakeClock
from tests.fakes.model import Gate
from tests.support.audit_log import entries
from tests.support.files import png
from tests.support.kinds import KINDS

T = TypeVar("T")
ADA, BOB = Sender("ada", "owner"), Sender("bob", "owner")
PICTURE = png(30, 20)
FOLDER = ".gatehouse/assets"


async def pieces(content: bytes, size: int = 7) -> AsyncIterator[bytes]:
    for at in range(0, len(content), size):
        yield content[at : at + size]


def shelf(
    store: Database, path: Path, limits: AssetLimits | None = None, clock: FakeClock | None = None
) -> Assets:
    units = Units(store, MemoryBus(), KINDS)
    return Assets(units, clock or FakeClock(), lambda: path, lambda: limits or AssetLimits())


def on_disk(path: Path) -> list[str]:
    folder = path / FOLDER
    return sorted(one.name for one in folder.iterdir()) if folder.exists() else []


async def kept(store: Database, path: Path) -> None:
    """Every row has its file, and there is nothing else."""
    assert sorted(await store.read(rows.files)) == on_disk(path)


async def session(store: Database, path: Path) -> str:
    made, _ = await control_of(store, path).create_session(NewConversation())
    return made.id


@pytest.mark.requirement("RUN-5")
async def test_one_content_is_one_upload_whoever_sends_it_under_whatever_name(
    store: Database, tmp_path: Path
) -> None:
    uploads = shelf(store, tmp_path)
    first, made = await uploads.receive(pieces(PICTURE), "../a view.txt", ADA)
    assert made
    assert (first.name, first.media_type, first.size_bytes) == (
        "a view.txt",
        "image/png",
        len(PICTURE),
    )
    assert first.sha256 == hashlib.sha256(PICTURE).hexdigest()
    again = await uploads.receive(pieces(PICTURE, 1000), "other.png", BOB)
    assert again == (first, False)
    other, made = await uploads.receive(pieces(b"words"), "view.png", ADA)
    assert (made, other.media_type) == (True, "text/plain")
    assert other.id != first.id
    view, content = await shelf(store, tmp_path).open(first.id)
    assert view == first
    assert content is not None
    with content:
        assert content.read() == PICTURE
    assert len(on_disk(tmp_path)) == 2
    await kept(store, tmp_path)
    actions = [one.action for one in await store.read(entries)]
    assert actions.count("asset.added") == 2
    with pytest.raises(NotFound):
        await uploads.open("ast_none")


@pytest.mark.requirement("RUN-5")
async def test_an_upload_goes_to_the_disk_while_it_comes(store: Database, tmp_path: Path) -> None:
    seen = list[int]()

    async def large() -> AsyncIterator[bytes]:
        for _ in range(4):
            yield bytes(100_000)
            (half,) = (tmp_path / FOLDER).iterdir()
            assert half.name.endswith(".tmp")
            seen.append(half.stat().st_size)

    uploads = shelf(store, tmp_path)
    await uploads.receive(large(), "zeros", ADA)
    assert seen == [100_000, 200_000, 300_000, 400_000]

    async def broken() -> AsyncIterator[bytes]:
        yield b"half"
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await uploads.receive(broken(), "half", ADA)
    await kept(store, tmp_path)


@pytest.mark.requirement("RUN-5")
async def test_what_is_over_a_limit_is_refused_and_leaves_nothing(
    store: Database, tmp_path: Path
) -> None:
    uploads = shelf(store, tmp_path, AssetLimits(file_bytes=10, owner_bytes=15))
    with pytest.raises(TooLarge, match=r"at most 10 bytes \(attachments.file_mb\)"):
        await uploads.receive(pieces(b"x" * 11), "a", ADA)
    asked = list[bytes]()

    async def never() -> AsyncIterator[bytes]:
        asked.append(b"")
        yield b""

    with pytest.raises(TooLarge):
        await uploads.receive(never(), "a", ADA, declared=11)
    assert asked == []
    with pytest.raises(InvalidInput, match="body"):
        await uploads.receive(pieces(b""), "a", ADA)
    assert on_disk(tmp_path) == []
    await uploads.receive(pieces(b"x" * 10), "a", ADA)
    with pytest.raises(TooLarge, match=r"15 bytes together \(attachments.assets_mb\)"):
        await uploads.receive(pieces(b"y" * 6), "a", ADA)
    # What is there already costs nothing, and others have room of their own.
    await uploads.receive(pieces(b"y" * 6), "a", BOB)
    await uploads.receive(pieces(b"y" * 5), "a", ADA)
    await uploads.receive(pieces(b"x" * 10), "a", Sender("eve", "owner"))
    await uploads.receive(pieces(b"z" * 10), "a", Sender("eve", "owner"))
    await kept(store, tmp_path)


@pytest.mark.requirement("RUN-5")
async def test_the_room_of_a_token_is_looked_at_again_when_the_row_is_kept(
    store: Database, tmp_path: Path, fail_after: FailAfter
) -> None:
    gate, limits = Gate(), AssetLimits(file_bytes=10, owner_bytes=15)
    slow = shelf(Halting(store, "asset", gate), tmp_path, limits)
    async with fail_after():
        sending = asyncio.create_task(slow.receive(pieces(b"x" * 10), "a", ADA), name="first")
        await gate.reached.wait()
        await shelf(store, tmp_path, limits).receive(pieces(b"y" * 10), "b", ADA)
        gate.open.set()
        with pytest.raises(TooLarge):
            await sending
    await kept(store, tmp_path)


@pytest.mark.requirement("RUN-5")
@pytest.mark.parametrize("declared", [None, 8])
async def test_what_is_on_its_way_counts(
    store: Database, tmp_path: Path, fail_after: FailAfter, declared: int | None
) -> None:
    uploads = shelf(store, tmp_path, AssetLimits(file_bytes=10, owner_bytes=15))
    gate = Gate()

    async def slowly() -> AsyncIterator[bytes]:
        if declared is None:
            yield b"x" * 7
        await gate.wait()
        yield b"x"

    async with fail_after():
        sending = asyncio.create_task(
            uploads.receive(slowly(), "a", ADA, declared=declared), name="first"
        )
        await gate.reached.wait()
        with pytest.raises(TooLarge, match="15 bytes together"):
            await uploads.receive(pieces(b"y" * 9), "b", ADA)
        await uploads.receive(pieces(b"y" * 9), "b", BOB)
        gate.open.set()
        await sending
    # What has failed or has its row is not on its way any more.
    assert not uploads.coming
    await uploads.receive(pieces(b"z" * 7), "c", ADA)
    await kept(store, tmp_path)


@pytest.fixture
async def amid(migrated_url: str) -> AsyncIterator[Amid]:
    """Holds a unit of this database in the middle of its transaction."""
    if migrated_url.startswith("sqlite"):
        yield Amid(None)
        return
    connection = await asyncpg.connect(migrated_url)
    await connection.execute("SELECT pg_advisory_lock(1)")
    yield Amid(connection)
    await connection.close()


@pytest.mark.requirement("RUN-5")
async def test_two_that_are_kept_at_once_are_counted_one_after_the_other(
    store: Database, tmp_path: Path, fail_after: FailAfter, amid: Amid
) -> None:
    """By two processes, each of which knows nothing of what the other is being sent."""
    limits = AssetLimits(file_bytes=10, owner_bytes=15)

    def first(conn: Connection) -> None:
        rows.hold_owner(conn, ADA.owner)
        other = rows.Asset("ast_1", "d", "f", "a", "text/plain", 10, ADA.owner, 1, 1)
        assert rows.add(conn, other)
        amid.hold(conn)

    async with fail_after():
        keeping_one = asyncio.create_task(store.write(first, name="other"), name="first")
        await amid.entered()
        sending = asyncio.create_task(
            shelf(store, tmp_path, limits).receive(pieces(b"y" * 10), "b", ADA), name="second"
        )
        while store.dialect == "postgresql" and not sending.done():
            if await store.read(waiting) == 2:
                break
        await amid.open()
        await keeping_one
        with pytest.raises(TooLarge):
            await sending
    assert on_disk(tmp_path) == []


@pytest.mark.requirement("RUN-5")
async def test_the_same_content_at_once_is_one_upload(
    store: Database, tmp_path: Path, fail_after: FailAfter
) -> None:
    gates = [Gate(), Gate()]
    async with fail_after(), asyncio.TaskGroup() as group:
        both = [
            group.create_task(
                shelf(Halting(store, "asset", gate), tmp_path).receive(
                    pieces(PICTURE), "a.png", ADA
                ),
                name=f"party {place}",
            )
            for place, gate in enumerate(gates)
        ]
        for gate in gates:
            await gate.reached.wait()
        for gate in gates:
            gate.open.set()
    (first, made), (second, made_too) = (one.result() for one in both)
    assert first == second
    assert made is not made_too
    assert len(on_disk(tmp_path)) == 1
    await kept(store, tmp_path)


@pytest.mark.requirement("RUN-5")
async def test_a_content_that_the_disk_lost_is_taken_anew(store: Database, tmp_path: Path) -> None:
    uploads = shelf(store, tmp_path)
    first, _ = await uploads.receive(pieces(PICTURE), "a.png", ADA)
    (file,) = (tmp_path / FOLDER).iterdir()
    file.unlink()
    assert (await uploads.open(first.id))[1] is None
    where = await session(store, tmp_path)
    with pytest.raises(InvalidInput, match="is gone; upload it again"):
        await uploads.attach(where, AssetUse(first.id))
    assert await uploads.receive(pieces(PICTURE), "a.png", ADA) == (first, False)
    await kept(store, tmp_path)
    content = (await uploads.open(first.id))[1]
    assert content is not None
    content.close()
    await uploads.attach(where, AssetUse(first.id))


@pytest.mark.requirement("RUN-5")
async def test_a_session_gets_a_copy_of_its_own(store: Database, tmp_path: Path) -> None:
    uploads = shelf(store, tmp_path, AssetLimits(session_bytes=len(PICTURE) + 10))
    asset, _ = await uploads.receive(pieces(PICTURE), "a.png", ADA)
    where = await session(store, tmp_path)
    attached = await uploads.attach(where, AssetUse(asset.id, name="the view.png"))
    assert (attached.name, attached.media_type) == ("the view.png", "image/png")
    assert attached.reference == f"sha256:{asset.sha256}"
    copy = tmp_path / str(attached.path)
    assert copy.is_relative_to(tmp_path / "uploads" / where)
    assert copy.read_bytes() == PICTURE
    copy.write_bytes(b"changed by a command")
    content = (await uploads.open(asset.id))[1]
    assert content is not None
    with content:
        assert content.read() == PICTURE
    with pytest.raises(TooLarge, match=r"\(attachments.session_mb\)"):
        await uploads.attach(where, AssetUse(asset.id, name="again.png"))
    with pytest.raises(InvalidInput, match=r"input_items.3.asset_id: must be the id of an upload"):
        await uploads.attach(where, AssetUse("ast_none", field="input_items.3.asset_id"))
    with pytest.raises(NotFound):
        await uploads.attach("ses_none", AssetUse(asset.id))


@pytest.mark.requirement("RUN-5")
async def test_a_file_that_was_changed_on_the_disk_is_used_by_nobody(
    store: Database, tmp_path: Path
) -> None:
    uploads = shelf(store, tmp_path)
    asset, _ = await uploads.receive(pieces(b"good"), "a", ADA)
    (file,) = (tmp_path / FOLDER).iterdir()
    file.write_bytes(b"evil")
    where = await session(store, tmp_path)
    with pytest.raises(InvalidInput, match="changed on the disk"):
        await uploads.attach(where, AssetUse(asset.id))
    assert list((tmp_path / "uploads" / where).rglob("*.tmp")) == []


@pytest.mark.requirement("RUN-5", "RUN-6")
async def test_an_upload_goes_with_the_last_session_that_used_it(
    store: Database, tmp_path: Path
) -> None:
    uploads = shelf(store, tmp_path)
    shared, _ = await uploads.receive(pieces(PICTURE), "a.png", ADA)
    alone, _ = await uploads.receive(pieces(b"words"), "b.txt", ADA)
    free, _ = await uploads.receive(pieces(b"free"), "c.txt", ADA)
    first, second = [await session(store, tmp_path) for _ in range(2)]
    for where in (first, second):
        await uploads.attach(where, AssetUse(shared.id))
    await uploads.attach(first, AssetUse(alone.id))
    await keeping(store, tmp_path).delete(first)
    with pytest.raises(NotFound):
        await uploads.open(alone.id)
    assert not (tmp_path / "uploads" / first).exists()
    await kept(store, tmp_path)
    assert len(on_disk(tmp_path)) == 2
    await keeping(store, tmp_path).delete(second)
    assert len(on_disk(tmp_path)) == 1
    content = (await uploads.open(free.id))[1]
    assert content is not None
    content.close()
    await kept(store, tmp_path)


@pytest.mark.requirement("RUN-5", "RUN-6")
async def test_an_upload_that_another_session_is_given_amid_a_deletion_stays(
    store: Database, tmp_path: Path, fail_after: FailAfter
) -> None:
    uploads, amid = shelf(store, tmp_path), Gate()
    asset, _ = await uploads.receive(pieces(PICTURE), "a.png", ADA)
    first, second = [await session(store, tmp_path) for _ in range(2)]
    await uploads.attach(first, AssetUse(asset.id))
    async with fail_after():
        deleting = asyncio.create_task(
            keeping(Halting(store, "session-delete", amid), tmp_path).delete(first), name="deletion"
        )
        await amid.reached.wait()
        await uploads.attach(second, AssetUse(asset.id))
        amid.open.set()
        await deleting
    content = (await uploads.open(asset.id))[1]
    assert content is not None
    content.close()
    await kept(store, tmp_path)


@pytest.mark.requirement("RUN-5")
async def test_what_nobody_uses_is_removed_in_time_and_nothing_else(
    store: Database, tmp_path: Path
) -> None:
    clock = FakeClock()
    uploads = shelf(store, tmp_path, clock=clock)
    used, _ = await uploads.receive(pieces(b"used"), "a", ADA)
    await uploads.attach(await session(store, tmp_path), AssetUse(used.id))
    again, _ = await uploads.receive(pieces(b"again"), "b", ADA)
    unused, _ = await uploads.receive(pieces(b"unused"), "c", ADA)
    await clock.advance(UNUSED_MS / 1000)
    assert await uploads.sweep() == 0
    await uploads.receive(pieces(b"again"), "b", ADA)
    await clock.advance(0.001)
    assert await uploads.sweep() == 1
    with pytest.raises(NotFound):
        await uploads.open(unused.id)
    for asset in (used, again):
        content = (await uploads.open(asset.id))[1]
        assert content is not None
        content.close()
    await kept(store, tmp_path)


@pytest.mark.requirement("RUN-5")
async def test_files_without_a_row_are_removed_once_nobody_can_be_writing_them(
    store: Database, tmp_path: Path
) -> None:
    clock = FakeClock()
    uploads = shelf(store, tmp_path, clock=clock)
    await uploads.receive(pieces(b"kept"), "a", ADA)
    for name in ("0" * 32, ".gatehouse-1.tmp"):
        (tmp_path / FOLDER / name).write_bytes(b"left")
        os.utime(tmp_path / FOLDER / name, (clock.now_ms() / 1000, clock.now_ms() / 1000))
    await clock.advance(LEFT_MS / 1000)
    assert await uploads.sweep() == 0
    await clock.advance(1)
    assert await uploads.sweep() == 2
    await kept(store, tmp_path)


@pytest.mark.requirement("RUN-5")
async def test_a_row_that_cannot_be_kept_leaves_no_file_or_one_for_the_sweep(
    store: Database, tmp_path: Path
) -> None:
    class Away(Halting):
        async def write(
            self, work: Callable[[Connection], T], *, name: str, urgent: bool = False
        ) -> T:
            if name == "asset":
                raise StoreUnavailable("away")
            return await super().write(work, name=name, urgent=urgent)

    broken = shelf(Away(store, "", Gate()), tmp_path)
    with pytest.raises(StoreUnavailable):
        await broken.receive(pieces(b"lost"), "a", ADA)
    uploads = shelf(store, tmp_path)
    assert len(on_disk(tmp_path)) == 1
    await uploads.sweep()
    assert on_disk(tmp_path) == []
    headers = {"idempotency_key": "k"}
    await uploads.receive(pieces(b"one"), "a", ADA, **headers)
    with pytest.raises(Conflict):
        await uploads.receive(pieces(b"two"), "a", ADA, **headers)
    await kept(store, tmp_path)


@pytest.mark.requirement("RUN-5", "OPS-6")
async def test_a_backup_has_the_uploads_and_no_tool_sees_them(
    store: Database, tmp_path: Path
) -> None:
    uploads = shelf(store, tmp_path)
    await uploads.receive(pieces(PICTURE), "a.png", ADA)
    (name,) = on_disk(tmp_path)
    (tmp_path / FOLDER / ".gatehouse-1.tmp").write_bytes(b"half")
    (tmp_path / "files").mkdir()
    found = [one.path for one in walk(tmp_path) if isinstance(one, WorkspaceFile)]
    assert [one for one in found if "assets" in one] == [f"{FOLDER}/{name}"]
    resolved = ResolvedLayout(Layout.of(tmp_path))
    hidden = Hidden.of(resolved, await session(store, tmp_path), notes=True)
    assert hidden.covers(resolved.home / FOLDER / name)
