"""Uploads for input items: taken once by what they hold, copied to whoever uses them (RUN-5).

A file is on the disk before its row is, and its row is gone before it is: so what a row names is
there. What is left by a process that died in between is removed by `Assets.sweep`. An upload that
no session ever used is kept for `UNUSED_MS`.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final, ParamSpec, Self, TypeVar

import structlog

from runtime.domain.errors import Conflict, InvalidInput, StoreFull, TooLarge, ToolError
from runtime.domain.files import safe_name, size_text
from runtime.domain.ids import digest_id
from runtime.domain.messages import Attachment
from runtime.domain.request_keys import RequestKey, request_key
from runtime.domain.value import JsonObject, Value
from runtime.intake import uploads
from runtime.intake.uploads import Upload
from runtime.ports.clock import Clock
from runtime.sessions import assets, audit, idempotency
from runtime.sessions.assets import Asset
from runtime.sessions.unit import Unit, Units
from runtime.store import Connection
from runtime.tools import asset_files, upload_folders
from runtime.tools.asset_files import Incoming

log = structlog.get_logger(__name__)
P = ParamSpec("P")
T = TypeVar("T")

UNUSED_MS: Final = 24 * 3600 * 1000
"""How long an upload waits for a session that uses it."""
LEFT_MS: Final = 2 * 3600 * 1000
"""The age of a file without a row that nobody is writing any more."""


class AssetView(Value):
    """An upload. ``id`` names its content: the same content has the same one, whoever sends it.
    ``media_type`` is what the content is, whatever its sender called it; ``name`` is what the first
    one who sent it called it."""

    id: str
    sha256: str
    name: str
    media_type: str
    size_bytes: int
    created_at_ms: int


@dataclass(frozen=True, slots=True)
class AssetLimits:
    """Bytes: of one upload, of all that one credential sent first, of the files of a session."""

    file_bytes: int = 20 * 1024 * 1024
    owner_bytes: int = 1000 * 1024 * 1024
    session_bytes: int = 1000 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Sender:
    """Who uploads: the credential by its fingerprint, and how the audit log names them."""

    owner: str
    actor: str


@dataclass(frozen=True, slots=True)
class AssetUse:
    """An upload among the items of a message; `field` names its place in the request, for errors.
    Without a `name` it has that of the upload."""

    asset_id: str
    name: str | None = None
    field: str = "asset_id"


@dataclass(frozen=True, slots=True)
class Assets:
    """Takes, gives and removes uploads. `workspace` and `limits` are asked each time. `coming` are
    the bytes of each credential that this process is being sent."""

    units: Units
    clock: Clock
    workspace: Callable[[], Path]
    limits: Callable[[], AssetLimits] = AssetLimits
    coming: Counter[str] = field(default_factory=Counter)

    async def receive(
        self,
        pieces: AsyncIterator[bytes],
        name: str,
        sender: Sender,
        *,
        declared: int | None = None,
        idempotency_key: str | None = None,
    ) -> tuple[AssetView, bool]:
        """The upload, and whether its content was new. `declared` is how many bytes will come.

        Raises `TooLarge`, `InvalidInput` for no bytes, `Conflict` for a key that came with another
        upload, and `StoreFull` where the disk takes no more.
        """
        with _Flight(self.coming, sender.owner) as flight:
            used = await self.units.database.read(lambda conn: assets.bytes_of(conn, sender.owner))
            flight.grow(_Room(self.limits(), used), declared or 0)
            file, incoming = await self._received(pieces, flight, used)
            now, digest = self.clock.now_ms(), incoming.digest
            new = Asset(
                id=digest_id("ast", digest),
                digest=digest,
                file=file,
                name=safe_name(name),
                media_type=incoming.media_type,
                size_bytes=incoming.size,
                owner=sender.owner,
                created_ms=now,
                uploaded_ms=now,
            )
            key = request_key("asset", idempotency_key, {"sha256": digest, "name": new.name})
            return await self._keep(new, sender, key)

    async def _received(
        self, pieces: AsyncIterator[bytes], flight: "_Flight", used: int
    ) -> tuple[str, Incoming]:
        """The name of a file that came whole, and what is known of it. Raises as `receive`."""
        room = _Room(self.limits(), used)
        incoming = await _on_disk(asset_files.receive, self.workspace())
        try:
            async for piece in pieces:
                flight.grow(room, incoming.size + len(piece))
                await _on_disk(incoming.write, piece)
            if not incoming.size:
                raise InvalidInput("body", "must hold the bytes of the file")
            file = asset_files.new_name()
            await _on_disk(incoming.finish, file)
        finally:
            await asyncio.to_thread(incoming.discard)
        return file, incoming

    async def _keep(
        self, new: Asset, sender: Sender, key: RequestKey | None
    ) -> tuple[AssetView, bool]:
        """Keep the row of a file that is on the disk; where its content was there, remove it."""
        workspace, limits = self.workspace(), self.limits()
        lost = await self._lost(new.id)

        def work(unit: Unit) -> tuple[Asset, bool]:
            conn = unit.conn
            idempotency.claim(conn, key)
            known, made = assets.find(conn, new.id, held=True), False
            if known is None:
                assets.hold_owner(conn, sender.owner)
                _Room(limits, assets.bytes_of(conn, sender.owner)).check(new.size_bytes)
                made = assets.add(conn, new)
            else:
                file = new.file if known.file == lost else None
                assets.sent_again(conn, new.id, now=new.uploaded_ms, file=file)
            if made:
                data: JsonObject = {"asset_id": new.id, "size_bytes": new.size_bytes}
                audit.append(conn, actor=sender.actor, action="asset.added", data=data)
            idempotency.keep(conn, key, {"asset_id": new.id})
            return assets.get(conn, new.id), made

        try:
            kept, made = await self.units.run(work, name="asset")
        except (Conflict, TooLarge):
            await asyncio.to_thread(asset_files.remove, workspace, (new.file,))
            raise
        # Where it is not known whether the row was kept, the file stays, and `sweep` decides.
        if kept.file != new.file:
            await asyncio.to_thread(asset_files.remove, workspace, (new.file,))
        return _view(kept), made

    async def _lost(self, asset_id: str) -> str | None:
        """The file that an upload had and that is not there any more."""
        known = await self.units.database.read(lambda conn: assets.find(conn, asset_id))
        if known is None:
            return None
        there = await asyncio.to_thread(
            asset_files.open_file, self.workspace(), known.file, known.size_bytes
        )
        if there is None:
            return known.file
        there.close()
        return None

    async def open(self, asset_id: str) -> tuple[AssetView, BinaryIO | None]:
        """An upload and its content, None where the disk lost it. Raises `NotFound`."""
        asset = await self.units.database.read(lambda conn: assets.get(conn, asset_id))
        content = await asyncio.to_thread(
            asset_files.open_file, self.workspace(), asset.file, asset.size_bytes
        )
        return _view(asset), content

    async def attach(self, session_id: str, use: AssetUse) -> Attachment:
        """Give a session an upload: from now on it stays as long as the session does, which has a
        copy among its files. Raises `NotFound` for the session, `InvalidInput` for the upload, and
        `TooLarge`."""

        def work(unit: Unit) -> Asset:
            unit.lane(session_id)
            asset = _named(unit.conn, use, held=True)
            assets.use(unit.conn, asset.id, session_id)
            return asset

        asset = await self.units.run(work, name="asset-use")
        return await self._given(asset, session_id, use)

    async def _given(self, asset: Asset, session_id: str, use: AssetUse) -> Attachment:
        name = safe_name(use.name or asset.name)
        try:
            path = await asyncio.to_thread(self._copy, asset, session_id, name)
        except ToolError as error:
            raise InvalidInput(use.field, f"cannot be used: {error}") from error
        return Attachment(
            name=name,
            media_type=asset.media_type,
            size_bytes=asset.size_bytes,
            reference=f"sha256:{asset.digest}",
            path=path,
        )

    async def keep(self, session_id: str, one: Upload | AssetUse) -> Attachment:
        """Put a file of a message among the files of its session. Raises as `attach`, and
        `InvalidInput` for a file that is too large or cannot be written."""
        if isinstance(one, AssetUse):
            return await self.attach(session_id, one)
        return await asyncio.to_thread(uploads.keep, self.workspace(), session_id, one)

    async def expected(self, files: Sequence[Upload | AssetUse]) -> tuple[Attachment, ...]:
        """Files as a session that is about to be made would have them, without a path; none is
        kept. Raises `InvalidInput` and `TooLarge`."""
        found = await self.units.database.read(lambda conn: [_expected(conn, one) for one in files])
        self._check_size(sum(one.size_bytes or 0 for one in found))
        return tuple(found)

    async def place(self, session_id: str, one: Upload | AssetUse) -> Attachment:
        """Put a file among those of a session that is about to be made; the unit that makes it
        calls `use_placed`. Raises as `keep`."""
        if isinstance(one, Upload):
            return await asyncio.to_thread(uploads.keep, self.workspace(), session_id, one)
        asset = await self.units.database.read(lambda conn: _named(conn, one))
        return await self._given(asset, session_id, one)

    async def check(self, session_id: str, files: Sequence[Upload | AssetUse]) -> None:
        """Look whether `keep` would take all these files, and keep none. Raises as `keep`."""

        def sizes(conn: Connection) -> list[int]:
            found = []
            for one in files:
                if isinstance(one, AssetUse):
                    found.append(_named(conn, one).size_bytes)
                else:
                    uploads.check(one)
                    found.append(len(one.content))
            return found

        coming = sum(await self.units.database.read(sizes))
        await asyncio.to_thread(self._check_room, session_id, coming)

    def _check_room(self, session_id: str, coming: int) -> None:
        self._check_size(upload_folders.held(self.workspace(), session_id) + coming)

    def _check_size(self, size: int) -> None:
        most = self.limits().session_bytes
        if size > most:
            raise TooLarge(
                f"A session may keep {size_text(most)} of files (attachments.session_mb)."
            )

    def _copy(self, asset: Asset, session_id: str, name: str) -> str:
        workspace = self.workspace()
        self._check_room(session_id, asset.size_bytes)
        content = asset_files.open_file(workspace, asset.file, asset.size_bytes)
        if content is None:
            raise ToolError("its file is gone; upload it again")
        with content:
            return asset_files.copy_to_session(
                workspace, content, digest=asset.digest, session_id=session_id, name=name
            )

    async def sweep(self) -> int:
        """Remove uploads that nobody used in time, and files that no row names; how many. Raises
        `StoreUnavailable`."""
        now, workspace = self.clock.now_ms(), self.workspace()

        def expire(conn: Connection) -> tuple[str, ...]:
            return tuple(assets.expire(conn, before_ms=now - UNUSED_MS))

        unused = await self.units.database.write(expire, name="assets-expire")
        # Before the rows: a file that is old by now has had its row for long.
        old = await asyncio.to_thread(asset_files.names_before, workspace, now - LEFT_MS)
        named = await self.units.database.read(assets.files) if old else frozenset()
        left = tuple(old - named)
        await asyncio.to_thread(asset_files.remove, workspace, (*unused, *left))
        return len({*unused, *left})


@dataclass(frozen=True, slots=True)
class _Room:
    """What one more upload of a credential may hold, `used` bytes being there."""

    limits: AssetLimits
    used: int

    def check(self, size: int, *, beside: int = 0) -> None:
        """Raises `TooLarge`, also for what fits in only without the bytes `beside` it that are
        still on their way."""
        if size > self.limits.file_bytes:
            most = size_text(self.limits.file_bytes)
            raise TooLarge(f"A file may have at most {most} (attachments.file_mb).")
        if self.used + beside + size > self.limits.owner_bytes:
            most = size_text(self.limits.owner_bytes)
            raise TooLarge(
                f"The uploads of one token may have {most} together (attachments.assets_mb). "
                "Delete sessions that use some, or wait until unused ones are removed."
            )


def use_placed(conn: Connection, session_id: str, files: Sequence[Upload | AssetUse]) -> None:
    """Let a new session use the uploads that were placed for it. Raises `InvalidInput` for one that
    is gone by now."""
    for one in files:
        if isinstance(one, AssetUse):
            assets.use(conn, _named(conn, one, held=True).id, session_id)


def _expected(conn: Connection, one: Upload | AssetUse) -> Attachment:
    if isinstance(one, Upload):
        uploads.check(one)
        name, media_type, size = one.name, one.media_type, len(one.content)
    else:
        asset = _named(conn, one)
        name, media_type, size = one.name or asset.name, asset.media_type, asset.size_bytes
    return Attachment(name=safe_name(name), media_type=media_type, size_bytes=size)


class _Flight:
    """One upload on its way: its bytes count for its credential from the moment at which they are
    announced or come until it has a row, or has failed."""

    def __init__(self, coming: Counter[str], owner: str) -> None:
        self._coming = coming
        self._owner = owner
        self._size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._coming[self._owner] -= self._size
        if not self._coming[self._owner]:
            del self._coming[self._owner]

    def grow(self, room: "_Room", size: int) -> None:
        """Count it as so large, which only grows. Raises `TooLarge`."""
        size = max(size, self._size)
        beside = self._coming[self._owner] - self._size
        room.check(size, beside=beside)
        self._coming[self._owner], self._size = beside + size, size


def _named(conn: Connection, use: AssetUse, *, held: bool = False) -> Asset:
    asset = assets.find(conn, use.asset_id, held=held)
    if asset is None:
        raise InvalidInput(use.field, "must be the id of an upload to /v1/assets")
    return asset


async def _on_disk(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do what blocks on the disk in a thread. Raises `StoreFull` where the disk takes nothing."""
    try:
        return await asyncio.to_thread(work, *args, **kwargs)
    except OSError as error:
        log.warning("asset_not_written", reason=str(error))
        raise StoreFull(f"the workspace takes no file: {error.strerror}") from error


def _view(asset: Asset) -> AssetView:
    return AssetView(
        id=asset.id,
        sha256=asset.digest,
        name=asset.name,
        media_type=asset.media_type,
        size_bytes=asset.size_bytes,
        created_at_ms=asset.created_ms,
    )
