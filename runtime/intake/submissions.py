"""What a client sends to a session, and the memory that makes sending it twice harmless (RUN-4).

The key of a request is kept with what becomes of its message, in one unit. Whatever crashes in
between, a repeat ends in the same run.
"""

import asyncio
import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from runtime.domain.errors import Conflict, InvalidInput, NotFound, QueueFull
from runtime.domain.messages import Attachment, InboundMessage
from runtime.domain.people import Sender
from runtime.domain.request_keys import request_key
from runtime.domain.value import JsonObject, Value
from runtime.intake.access import LOCAL
from runtime.intake.assets import Assets, AssetUse
from runtime.intake.uploads import Upload
from runtime.ports.clock import Clock
from runtime.ports.gatehouse import Accepted, Gatehouse
from runtime.sessions import idempotency, sessions
from runtime.sessions.sessions import Session
from runtime.store import Connection, Database
from runtime.tools.erasure import erase_files

OWNER: Final = Sender(id="owner", name="Owner")
ACCOUNT: Final = "local"

Item = str | Upload | AssetUse
"""A text, a file, or an upload of before, in the order in which they are meant."""


class Submitted(Value):
    """What became of a request: a run, or a word that was obeyed at once (``command``).

    ``run_id`` is the run that answers, also where the message reached one that was at work. Where
    somebody ends that run before it heard the message, or it fails, its ``passed_on_to`` names the
    run that answers instead.
    """

    session_id: str
    disposition: Literal["queued", "command", "answer"]
    run_id: str | None = None
    input_id: str | None = None


def describe(items: Sequence[Item]) -> list[JsonObject]:
    """Items as a digest takes them: files by their content's hash."""
    return [_described(one) for one in items]


def _described(one: Item) -> JsonObject:
    if isinstance(one, str):
        return {"text": one}
    if isinstance(one, AssetUse):
        return {"asset": one.asset_id, "name": one.name}
    return {"name": one.name, "type": one.media_type, "sha256": _sha256(one.content)}


def compose(items: Sequence[Item], kept: Sequence[Attachment]) -> str:
    """The text of a message: its texts in order; a file between two of them is named in place."""
    files = iter(kept)
    pieces = [one if isinstance(one, str) else f"[file: {next(files).name}]" for one in items]
    if not any(isinstance(one, str) for one in items[1:]):
        pieces = [one for one in items if isinstance(one, str)]
    return "\n\n".join(piece for piece in pieces if piece)


def submitted(accepted: Accepted, session_id: str) -> Submitted:
    """The same answer for the first delivery of a message and for every later one."""
    unknown: Literal["queued", "command"] = "command" if accepted.run_id is None else "queued"
    return Submitted(
        session_id=session_id,
        disposition=accepted.applied or unknown,
        run_id=accepted.run_id,
        input_id=accepted.input_id,
    )


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True, slots=True)
class Submitter:
    """Says things in local sessions for their owner, by the door that everybody uses."""

    database: Database
    clock: Clock
    gatehouse: Gatehouse
    workspace: Callable[[], Path]
    assets: Assets

    async def submit(
        self,
        session_id: str,
        items: Sequence[Item],
        *,
        idempotency_key: str | None = None,
        timezone: str = "",
    ) -> Submitted:
        """The same key gives the same answer, also after a restart. `timezone` is where the clocks
        of whoever speaks are, where they said it.

        Raises `NotFound`, `InvalidInput`, `Conflict` (an ended session, a session of a platform,
        a key that came with other items), `QueueFull` and `StoreUnavailable`.
        """
        key = request_key(f"run:{session_id}", idempotency_key, describe(items))
        # The client's name of a message means it at any later time (MSG-2).
        key = None if key is None else replace(key, kept_ms=None)
        session, kept = await self.database.read(
            lambda conn: (sessions.get(conn, session_id), idempotency.recall(conn, key))
        )
        if kept is not None:
            return submitted(Accepted.model_validate(kept), session_id)
        if session.address.channel not in LOCAL:
            where = session.address.channel
            raise Conflict(f"this session belongs to {where}; write to it there", where)
        if session.status != "open":
            raise Conflict("this session has ended", session.status)
        try:
            message = await self._message(session, items, idempotency_key)
            sender = message.sender.model_copy(update={"timezone": timezone})
            message = message.model_copy(update={"sender": sender})
            accepted = await self.gatehouse.accept(message, session_id=session_id, key=key)
        except NotFound:
            # Its files were kept after those of the deleted session were erased.
            await asyncio.to_thread(erase_files, self.workspace(), [session_id], ())
            raise
        if accepted.disposition == "full":
            raise QueueFull(f"This session is full: {accepted.reason}.")
        if not session.title:
            await self._name(session_id, message.text)
        return submitted(accepted, session_id)

    async def _message(
        self, session: Session, items: Sequence[Item], idempotency_key: str | None
    ) -> InboundMessage:
        address = session.address
        files = [one for one in items if not isinstance(one, str)]
        kept = [await self.assets.keep(session.id, one) for one in files]
        text = compose(items, kept)
        if not text.strip() and not kept:
            raise InvalidInput("content", "must say something")
        return InboundMessage(
            channel=address.channel,
            account=address.account,
            chat_id=address.chat_id,
            message_id=f"key-{idempotency_key}" if idempotency_key else secrets.token_hex(16),
            sender=OWNER,
            text=text,
            attachments=tuple(kept),
            received_at_ms=self.clock.now_ms(),
        )

    async def _name(self, session_id: str, first_words: str) -> None:
        """Name a session by its first message."""
        title = " ".join(first_words.split())[:80]
        if not title:
            return

        def work(conn: Connection) -> None:
            if not sessions.get(conn, session_id).title:
                sessions.change(conn, session_id, {"title": title})

        await self.database.write(work, name="title")
