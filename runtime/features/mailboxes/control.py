"""`MailboxControl`: what programs do with mailboxes by the API, and how messages are shown."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from runtime.domain import cursors
from runtime.domain.cursors import Page
from runtime.domain.errors import Conflict, NotFound
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import Attachment
from runtime.domain.request_keys import RequestKey, request_key
from runtime.features.mailboxes import delivery, rows
from runtime.features.mailboxes.delivery import Author, Posting
from runtime.features.mailboxes.model import (
    DeadLetterView,
    KeptPayload,
    Mail,
    MailReceipt,
    MailView,
)
from runtime.features.mailboxes.rows import Placed
from runtime.features.mailboxes.settings import USUAL, MailboxSettings
from runtime.intake.assets import Assets, AssetUse
from runtime.intake.submissions import compose
from runtime.intake.uploads import Upload
from runtime.sessions import idempotency, runs
from runtime.sessions.unit import Unit, Units
from runtime.store import Connection
from runtime.store.database import now_ms
from runtime.tools.erasure import erase_files

V = TypeVar("V", bound=MailView)
_Find = Callable[[Connection, int, int], Sequence[Placed]]


@dataclass(frozen=True, slots=True)
class MailboxControl:
    """Whoever has the admin token may send for every agent, and looks into every mailbox."""

    units: Units
    assets: Assets
    settings: MailboxSettings = USUAL

    async def post(self, asked: Mail, *, idempotency_key: str | None = None) -> MailReceipt:
        """Take a message, with the rights of its sender's last run. Its files are among those of
        its reader before it is.

        Raises as `delivery.check` and `Assets.keep`, and `Conflict` for a key that came with
        another message.
        """
        key = request_key("mail", idempotency_key, asked.model_dump(mode="json"))
        files = [one for one in asked.payload.items() if not isinstance(one, str)]
        if files:
            known = await self.units.database.read(lambda conn: _known(conn, key))
            if known is not None:
                return known
            # What would be refused, or was sent before, leaves no file behind.
            new = await self.units.run(partial(_check, self, asked), name="mailbox-check")
            if not new:
                return MailReceipt(message_id=asked.message_id or "", duplicate=True)
        try:
            kept = await self._kept(asked.to, files)
            work = partial(_post, self, asked, kept, key)
            return await self.units.run(work, name="mailbox-post")
        except NotFound:
            if files:
                await self._erase_if_gone(asked.to)
            raise

    async def _erase_if_gone(self, session_id: str) -> None:
        """Remove files that were kept after those of the deleted session were erased."""
        root_id = await self.units.database.read(lambda conn: rows.root_of(conn, session_id))
        if root_id is None:
            await asyncio.to_thread(erase_files, self.assets.workspace(), [session_id], ())

    async def _kept(
        self, session_id: str, files: Sequence[Upload | AssetUse]
    ) -> tuple[Attachment, ...]:
        if not files:
            return ()
        await self.assets.check(session_id, files)
        kept = [await self.assets.keep(session_id, one) for one in files]
        # Another agent passes them on: nobody is trusted for what stands in them.
        return tuple(one.model_copy(update={"own": False}) for one in kept)

    async def queued(
        self, agent_id: str, *, limit: int = 50, cursor: str | None = None
    ) -> Page[MailView]:
        """What waits in a mailbox, the oldest first; looking takes nothing out of it. Raises
        `NotFound`."""

        def find(conn: Connection, after: int, most: int) -> Sequence[Placed]:
            return rows.queued(conn, agent_id, after=after, most=most)

        return await self._page(agent_id, find, rows.count_queued, _view, limit, cursor)

    async def dead(
        self, agent_id: str, *, limit: int = 50, cursor: str | None = None
    ) -> Page[DeadLetterView]:
        """What was for an agent and nobody read, the oldest first. Raises `NotFound`."""

        def find(conn: Connection, after: int, most: int) -> Sequence[Placed]:
            return rows.dead(conn, agent_id, after=after, most=most)

        return await self._page(agent_id, find, rows.count_dead, _dead_view, limit, cursor)

    async def _page(
        self,
        agent_id: str,
        find: _Find,
        count: Callable[[Connection, str], int],
        shown: Callable[[Placed], V],
        limit: int,
        cursor: str | None,
    ) -> Page[V]:
        after = 0 if cursor is None else int(cursors.decode(cursor, int)[0])

        def work(conn: Connection) -> Page[V]:
            if rows.root_of(conn, agent_id) is None:
                raise NotFound("agent", agent_id)
            found = find(conn, after, limit + 1)
            more = len(found) > limit
            return Page(
                items=tuple(map(shown, found[:limit])),
                next_cursor=cursors.encode(found[limit - 1].position) if more else None,
                total_count=count(conn, agent_id),
            )

        return await self.units.database.read(work)


def _known(conn: Connection, key: RequestKey | None) -> MailReceipt | None:
    """The receipt of an earlier request with this key. Raises `Conflict`."""
    kept = idempotency.recall(conn, key)
    return None if kept is None else MailReceipt(message_id=str(kept["message_id"]), duplicate=True)


def _author(conn: Connection, sender: str) -> Author:
    if rows.root_of(conn, sender) is None:
        raise NotFound("agent", sender)
    run = runs.newest(conn, sender)
    if run is None:
        raise Conflict(
            "the agent that `from` names has never run, so it has no rights to send with", "idle"
        )
    return Author(run, tainted=rows.is_tainted(conn, sender))


def _check(control: MailboxControl, asked: Mail, unit: Unit) -> bool:
    author = _author(unit.conn, asked.sender)
    return delivery.check(unit, author, asked.to, asked.message_id or "", control.settings)


def _post(
    control: MailboxControl,
    asked: Mail,
    files: tuple[Attachment, ...],
    key: RequestKey | None,
    unit: Unit,
) -> MailReceipt:
    conn = unit.conn
    kept = idempotency.claim(conn, key)
    if kept is not None:
        return MailReceipt(message_id=str(kept["message_id"]), duplicate=True)
    author = _author(conn, asked.sender)
    message_id = asked.message_id or new_id(IdPrefix.MESSAGE, now_ms(conn))
    posting = Posting(
        message_id=message_id,
        to=asked.to,
        payload=asked.payload.kept(),
        words=compose(asked.payload.items(), files),
        files=files,
        subject=asked.subject,
        ttl_ms=asked.ttl_ms,
    )
    taken = delivery.post(unit, author, posting, control.settings)
    idempotency.keep(conn, key, {"message_id": message_id})
    return MailReceipt(message_id=message_id, duplicate=not taken)


def _facts(placed: Placed) -> dict[str, object]:
    letter = placed.letter
    return {
        "message_id": letter.message_id,
        "sender": letter.sender_id,
        "to": letter.session_id,
        "subject": letter.subject,
        "payload": KeptPayload.model_validate_json(letter.payload),
        "sent_at_ms": letter.sent_ms,
        "expires_at_ms": letter.expires_ms,
        "run_id": placed.run_id,
    }


def _view(placed: Placed) -> MailView:
    return MailView.model_validate(_facts(placed))


def _dead_view(placed: Placed) -> DeadLetterView:
    letter = placed.letter
    facts = {"reason": letter.reason or "", "dead_at_ms": letter.settled_ms or letter.sent_ms}
    return DeadLetterView.model_validate({**_facts(placed), **facts})
