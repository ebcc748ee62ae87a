"""What a client sends to a session, and the memory that makes sending it twice harmless (RUN-4).

The key of a request is kept before the message is stored, with a digest of the request; the
message carries the key as its id, so that the inbox knows it again. Whatever crashes in between,
a repeat ends in the same run.
"""

import asyncio
import hashlib
import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from runtime.domain.errors import Conflict, InvalidInput, NotFound, QueueFull
from runtime.domain.messages import Attachment, InboundMessage
from runtime.domain.people import Sender
from runtime.domain.value import JsonObject, Value
from runtime.intake import uploads
from runtime.intake.access import LOCAL
from runtime.intake.uploads import Upload
from runtime.ports.clock import Clock
from runtime.ports.gatehouse import Accepted, Gatehouse
from runtime.sessions import idempotency, sessions
from runtime.sessions.sessions import Session
from runtime.store import Connection, Database
from runtime.tools.erasure import erase_files

OWNER: Final = Sender(id="owner", name="Owner")
ACCOUNT: Final = "local"

Item = str | Upload
"""A text or a file, in the order in which they are meant."""


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


@dataclass(frozen=True, slots=True)
class Key:
    """The name of a request that creates something, and a digest of what it asks."""

    name: str
    digest: str

    def recall(self, conn: Connection) -> JsonObject | None:
        """What was kept under the key. Raises `Conflict` when it came with another request."""
        return idempotency.recall(conn, self.name, digest=self.digest)

    def keep(self, conn: Connection, response: JsonObject) -> None:
        """Keep an answer, unless there is one."""
        idempotency.remember(conn, self.name, digest=self.digest, response=response)

    @property
    def answer(self) -> "Key":
        """Where the answer is kept, beside the mark that the request came."""
        return Key(f"{self.name}:answer", self.digest)


def key_of(kind: str, client_key: str, request: object) -> Key:
    """The key of a request; the client's is only unique among requests of a kind."""
    text = json.dumps(request, sort_keys=True, ensure_ascii=False)
    return Key(f"{kind}:{client_key}", hashlib.sha256(text.encode()).hexdigest())


def describe(items: Sequence[Item]) -> list[JsonObject]:
    """Items as a digest takes them: files by their content's hash."""
    return [
        {"text": one}
        if isinstance(one, str)
        else {"name": one.name, "type": one.media_type, "sha256": _sha256(one.content)}
        for one in items
    ]


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


class Submitter:
    """Says things in local sessions for their owner, by the door that everybody uses."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        gatehouse: Gatehouse,
        *,
        workspace: Callable[[], Path],
    ) -> None:
        self._database = database
        self._clock = clock
        self._gatehouse = gatehouse
        self._workspace = workspace

    async def submit(
        self, session_id: str, items: Sequence[Item], *, idempotency_key: str | None = None
    ) -> Submitted:
        """The same key gives the same answer, also after a restart.

        Raises `NotFound`, `InvalidInput`, `Conflict` (an ended session, a session of a platform,
        a key that came with other items), `QueueFull` and `StoreUnavailable`.
        """
        session = await self._database.read(lambda conn: sessions.get(conn, session_id))
        key, message_id = None, secrets.token_hex(16)
        if idempotency_key is not None:
            key = key_of(f"run:{session_id}", idempotency_key, describe(items))
            message_id = f"key-{idempotency_key}"
            kept = await self._first(key)
            if kept is not None:
                return Submitted.model_validate(kept, extra="ignore")
        if session.address.channel not in LOCAL:
            where = session.address.channel
            raise Conflict(f"this session belongs to {where}; write to it there", where)
        if session.status != "open":
            raise Conflict("this session has ended", session.status)
        message = await self._message(session, items, message_id)
        try:
            accepted = await self._gatehouse.accept(message, session_id=session_id)
        except NotFound:
            # Its files were kept after those of the deleted session were erased.
            await asyncio.to_thread(erase_files, self._workspace(), [session_id], ())
            raise
        if accepted.disposition == "full":
            raise QueueFull(f"This session is full: {accepted.reason}.")
        answer = submitted(accepted, session_id)
        await self._after(session_id, "" if session.title else message.text, key, answer)
        return answer

    async def _first(self, key: Key) -> JsonObject | None:
        """The answer to an earlier request of this key, which is remembered as seen from now."""

        def work(conn: Connection) -> JsonObject | None:
            if key.recall(conn) is None:
                key.keep(conn, {})
            return key.answer.recall(conn)

        return await self._database.write(work, name="request")

    async def _message(
        self, session: Session, items: Sequence[Item], message_id: str
    ) -> InboundMessage:
        address, workspace = session.address, self._workspace()
        files = [one for one in items if isinstance(one, Upload)]
        kept = [await asyncio.to_thread(uploads.keep, workspace, session.id, one) for one in files]
        text = compose(items, kept)
        if not text.strip() and not kept:
            raise InvalidInput("content", "must say something")
        return InboundMessage(
            channel=address.channel,
            account=address.account,
            chat_id=address.chat_id,
            message_id=message_id,
            sender=OWNER,
            text=text,
            attachments=tuple(kept),
            received_at_ms=self._clock.now_ms(),
        )

    async def _after(
        self, session_id: str, first_words: str, key: Key | None, answer: Submitted
    ) -> None:
        """Name a session by its first message, and keep the answer for a repeat of it."""
        title = " ".join(first_words.split())[:80]
        if key is None and not title:
            return

        def work(conn: Connection) -> None:
            if title and not sessions.get(conn, session_id).title:
                sessions.change(conn, session_id, {"title": title})
            if key is not None:
                key.answer.keep(conn, answer.model_dump(mode="json"))

        await self._database.write(work, name="answered")
