"""Files that people send, for the tests about them: a platform that has some, and who looks."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace

from runtime.agent.settings import AttachmentSettings
from runtime.domain.files import ReceivedFile
from runtime.domain.messages import Attachment, InboundMessage
from runtime.domain.people import Sender
from runtime.domain.transcript import NoticeMessage
from runtime.ports.chat import Files
from runtime.ports.model import ModelRequest
from tests.fakes.chat import FakeChat
from tests.fakes.clock import FakeClock
from tests.scenario.conftest import agent
from tests.scenario.engine import OWNER, Setup, World
from tests.support.files import png

PHOTO = png(40, 30)


@dataclass
class Shelf:
    """Implements `Files`: contents by reference; what is an error is raised, one a try."""

    contents: dict[str, bytes | list[Exception | bytes]] = field(default_factory=dict)
    fetched: list[str] = field(default_factory=list)
    hold: asyncio.Event | None = None
    closed: int = 0

    async def fetch(self, attachment: Attachment) -> AsyncIterator[bytes]:
        """Pieces of a thousand bytes."""
        self.fetched.append(attachment.reference)
        found = self.contents[attachment.reference]
        if isinstance(found, list):
            found = found.pop(0)
        if isinstance(found, Exception):
            raise found
        if self.hold is not None:
            await self.hold.wait()
        try:
            for start in range(0, len(found), 1000):
                yield found[start : start + 1000]
        finally:
            self.closed += 1


def chat_with(shelf: Files) -> FakeChat:
    """A platform with these files."""
    chat = FakeChat()
    chat.files = shelf
    return chat


def attached(reference: str = "f1", name: str = "photo.png", **more: object) -> Attachment:
    return Attachment(name=name, media_type="image/png", reference=reference, **more)


async def sends(world: World, *files: Attachment, text: str = "look", **more: object) -> None:
    """The owner sends files."""
    user = str(more.pop("user", OWNER))
    message = InboundMessage(
        channel=world.chat.channel,
        account=world.chat.account,
        chat_id=f"D-{user}",
        message_id=f"m{next(world.ids)}",
        sender=Sender(id=user, name=user.removeprefix("U-")),
        text=text,
        attachments=files,
        received_at_ms=world.engine.parts.clock.now_ms(),
        **more,
    )
    await world.engine.intake.accept(message)


def told(request: ModelRequest) -> list[ReceivedFile]:
    """The files that a request tells of."""
    notices = [one for one in request.messages if isinstance(one, NoticeMessage)]
    return [one.file for one in notices if one.file is not None]


def words(request: ModelRequest) -> str:
    """What a request says of files."""
    return "\n".join(one.text for one in request.messages if isinstance(one, NoticeMessage))


async def session_id(world: World) -> str:
    """The id of the only session."""
    query = "SELECT id FROM sessions"
    rows = await world.database.read(lambda conn: conn.exec_driver_sql(query).all())
    ((found,),) = rows
    return str(found)


def engine_clock(clock: FakeClock) -> Callable[[Setup], Setup]:
    """Time that moves on command."""
    return lambda setup: replace(setup, clock=clock)


def listening(ears: "Ears | None") -> Callable[[Setup], Setup]:
    """A gateway that writes speech down."""
    return lambda setup: replace(setup, transcriber=ears)


def limits(**changes: object) -> Callable[[Setup], Setup]:
    return agent(attachments=AttachmentSettings(**changes))


@dataclass
class Ears:
    """Implements `Transcriber`."""

    words: str | Exception = "water the plants"
    heard: list[tuple[int, str, str]] = field(default_factory=list)

    async def transcribe(self, content: bytes, *, name: str, media_type: str) -> str:
        """What the test wrote down."""
        self.heard.append((len(content), name, media_type))
        if isinstance(self.words, Exception):
            raise self.words
        return self.words

    async def close(self) -> None:
        """Nothing to close."""


VOICE = Attachment(
    name="voice-1.oga",
    media_type="audio/ogg",
    duration_s=4,
    kind="voice message",
    reference="v1",
)
