"""The smallest chat platform there is: a folder. The worked example of `docs/adapters.md`.

People put ``in/NAME.json`` there; replies appear as `out/OUTBOX_ID-NUMBER.txt`. A file that was
read is deleted only once its message is stored, and a file is written under another name first:
that is all that "stored before acknowledged" and "never twice" ask for.
"""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from shutil import copyfile

from runtime.domain.errors import DeliveryRejected, DeliveryRetry, StoreUnavailable
from runtime.domain.messages import (
    ChatAddress,
    Deletion,
    FilePart,
    InboundMessage,
    OutboundMessage,
    Receipt,
    TextPart,
)
from runtime.domain.people import Sender
from runtime.ports.chat import AdapterStatus, Capabilities, Posted
from runtime.ports.clock import Clock
from runtime.ports.gatehouse import Gatehouse

LIMIT = 1_000
"""Characters of one file: long messages need several, as on any platform."""
LOOK_S = 1.0


class Mailbox:
    """`ChatAdapter` on a folder; `clock` says when to look again."""

    channel = "mailbox"
    capabilities = Capabilities(lookup=True, edits=True, files=True, typing_interval_s=None)
    streams = files = webhook = None

    def __init__(self, folder: Path, clock: Clock) -> None:
        self.account = folder.name
        self._in, self._out = folder / "in", folder / "out"
        self._clock = clock
        self._connected = False

    def status(self) -> AdapterStatus:
        if self._connected:
            return AdapterStatus(connected=True)
        return AdapterStatus(connected=False, detail=f"Make the folder {self._in}.")

    async def connect(self) -> None:
        """A real platform is asked here who the bot is."""
        self._in.mkdir(parents=True, exist_ok=True)
        self._out.mkdir(exist_ok=True)
        self._connected = True

    async def listen(self, gatehouse: Gatehouse) -> None:
        """In order of the names; what cannot be stored stays, and is read again."""
        while True:
            for path in sorted(self._in.glob("*.json")):
                try:
                    await self._take(path, gatehouse)
                except StoreUnavailable:
                    break
                path.unlink()
            await self._clock.sleep(LOOK_S)

    async def _take(self, path: Path, gatehouse: Gatehouse) -> None:
        said = _read(path)
        sender = Sender(id=said["from"], name=said["from"])
        now = self._clock.now_ms()
        if said.get("deleted"):
            await gatehouse.withdraw(
                Deletion(
                    channel=self.channel,
                    account=self.account,
                    chat_id=said["from"],
                    message_id=said["id"],
                    sender=sender,
                    received_at_ms=now,
                )
            )
            return
        message = InboundMessage(
            channel=self.channel,
            account=self.account,
            chat_id=said["from"],
            message_id=said["id"],
            edited_at=said.get("edited"),
            sender=sender,
            text=said["text"],
            received_at_ms=now,
        )
        await (gatehouse.accept if message.edited_at is None else gatehouse.revise)(message)

    async def send(
        self, message: OutboundMessage, *, posted: Sequence[str], on_posted: Posted
    ) -> Receipt:
        """The n-th file is the same at every attempt, so writing one twice changes nothing."""
        pages, ids = self._pages(message), list(posted)
        for number in range(len(ids), len(pages)):
            name = _name(message, number)
            self._put(name, pages[number])
            ids.append(name)
            if len(ids) < len(pages):
                await on_posted(name)
        return Receipt(message_ids=tuple(ids))

    def _put(self, name: str, page: str | FilePart) -> None:
        """A page of text, or a copy of a file beside it; one that cannot be had is named."""
        if isinstance(page, str):
            self._write(name, page)
            return
        try:
            copyfile(page.path, self._out / f"{name}.file-{Path(page.name).name}")
        except OSError:
            self._write(name, f"The file {page.name} could not be sent.")

    async def edit(self, message: OutboundMessage, receipt: Receipt) -> None:
        for name, page in zip(receipt.message_ids, self._pages(message), strict=False):
            self._put(name, page)

    async def typing(self, target: ChatAddress, state: str) -> None:
        """A folder shows nothing."""

    async def lookup(self, message: OutboundMessage, *, posted: Sequence[str]) -> Receipt | None:
        names = [_name(message, number) for number in range(len(self._pages(message)))]
        found = tuple(name for name in names if any(self._out.glob(f"{name}.*")))
        return Receipt(message_ids=found) if found else None

    async def close(self) -> None:
        self._connected = False

    def _pages(self, message: OutboundMessage) -> list[str | FilePart]:
        files = [part for part in message.parts if isinstance(part, FilePart)]
        text = "\n\n".join(
            part.markdown if isinstance(part, TextPart) else str(part)
            for part in message.parts
            if not isinstance(part, FilePart)
        )
        return [*(text[start : start + LIMIT] for start in range(0, len(text), LIMIT)), *files]

    def _write(self, name: str, text: str) -> None:
        path = self._out / f"{name}.txt"
        try:
            path.with_suffix(".new").write_text(text)
        except FileNotFoundError as error:
            raise DeliveryRejected(f"there is no folder {self._out}") from error
        except OSError as error:
            raise DeliveryRetry(str(error)) from error
        path.with_suffix(".new").rename(path)


def _read(path: Path) -> dict[str, str]:
    """A small local file: waiting for it holds nobody up."""
    found: dict[str, str] = json.loads(path.read_text())
    return found


def _name(message: OutboundMessage, number: int) -> str:
    return f"{message.outbox_id}-{number:04}"


async def listening(mailbox: Mailbox, gatehouse: Gatehouse) -> "asyncio.Task[None]":
    """The engine's part, for tests: connect, then listen in a task of its own."""
    await mailbox.connect()
    return asyncio.create_task(mailbox.listen(gatehouse), name="listen")
