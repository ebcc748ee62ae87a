"""Uploads by what they hold, and the sessions that use them (RUN-5). Statements only.

Whoever takes an upload away holds its row first, as does whoever begins to use it: so none goes
that a session was just given.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, delete, exists, func, select, update

from runtime.domain.errors import NotFound
from runtime.sessions.tables import asset_uses, assets
from runtime.store.dialect import advisory_lock, lock_rows
from runtime.store.row_values import from_row
from runtime.store.statements import insert_new

MOST_AT_ONCE = 100
"""Uploads that one unit takes away."""


@dataclass(frozen=True, slots=True)
class Asset:
    """An upload. ``owner`` is the credential that sent it first; ``file`` is where its content
    is kept, a name that is given once. ``uploaded_ms`` is when it was sent last."""

    id: str
    digest: str
    file: str
    name: str
    media_type: str
    size_bytes: int
    owner: str
    created_ms: int
    uploaded_ms: int


def find(conn: Connection, asset_id: str, *, held: bool = False) -> Asset | None:
    """An upload; `held` keeps others from taking it away until the unit ends."""
    query = select(assets).where(assets.c.id == asset_id)
    row = conn.execute(lock_rows(query, skip_locked=False) if held else query).first()
    return None if row is None else from_row(Asset, row._mapping)


def get(conn: Connection, asset_id: str) -> Asset:
    """Raises `NotFound`."""
    found = find(conn, asset_id)
    if found is None:
        raise NotFound("asset", asset_id)
    return found


def add(conn: Connection, new: Asset) -> bool:
    """Keep an upload; False where its content is there already."""
    return insert_new(
        conn, assets, {name: getattr(new, name) for name in Asset.__dataclass_fields__}
    )


def sent_again(conn: Connection, asset_id: str, *, now: int, file: str | None = None) -> None:
    """Note that the content of an upload was sent once more; `file` is its new place, where the
    former one is gone."""
    values: dict[str, object] = {"uploaded_ms": now}
    if file is not None:
        values["file"] = file
    conn.execute(update(assets).where(assets.c.id == asset_id).values(values))


def hold_owner(conn: Connection, owner: str) -> None:
    """Keep others from adding uploads of a credential until the unit ends, so that two that come at
    once are counted one after the other."""
    digest = hashlib.sha256(f"assets:{owner}".encode()).digest()
    advisory_lock(conn, int.from_bytes(digest[:8], "big", signed=True))


def bytes_of(conn: Connection, owner: str) -> int:
    """What the uploads of a credential hold together."""
    total = select(func.coalesce(func.sum(assets.c.size_bytes), 0)).where(assets.c.owner == owner)
    return int(conn.execute(total).scalar_one())


def use(conn: Connection, asset_id: str, session_id: str) -> None:
    """Note that a session, whose lane is held, uses an upload, whose row is."""
    insert_new(conn, asset_uses, {"asset_id": asset_id, "session_id": session_id})


def release(conn: Connection, session_ids: Sequence[str]) -> Sequence[str]:
    """Take away the uploads that only these sessions use, whose lanes are held; their files."""
    used = select(asset_uses.c.asset_id).where(asset_uses.c.session_id.in_(session_ids))
    query = select(assets.c.id).where(assets.c.id.in_(used)).order_by(assets.c.id)
    ids = conn.execute(lock_rows(query, skip_locked=False)).scalars().all()
    conn.execute(delete(asset_uses).where(asset_uses.c.session_id.in_(session_ids)))
    return _drop_unused(conn, ids)


def expire(conn: Connection, *, before_ms: int) -> Sequence[str]:
    """Take away some uploads that no session uses and that were sent before; their files."""
    query = (
        select(assets.c.id)
        .where(assets.c.uploaded_ms < before_ms, ~_used())
        .order_by(assets.c.id)
        .limit(MOST_AT_ONCE)
    )
    return _drop_unused(conn, conn.execute(lock_rows(query)).scalars().all())


def files(conn: Connection) -> frozenset[str]:
    """The files of all uploads."""
    return frozenset(conn.execute(select(assets.c.file)).scalars())


def _used() -> ColumnElement[bool]:
    return exists().where(asset_uses.c.asset_id == assets.c.id)


def _drop_unused(conn: Connection, ids: Sequence[str]) -> Sequence[str]:
    """Delete those of these rows that no session uses; they are held. A statement of its own,
    because it has to see what was committed while the rows were waited for."""
    if not ids:
        return []
    dropped = delete(assets).where(assets.c.id.in_(ids), ~_used()).returning(assets.c.file)
    return conn.execute(dropped).scalars().all()
