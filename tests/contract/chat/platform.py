"""What the conformance suite asks of a platform: a person at it, its faults, and what is seen.

A driver has what its features need (`drivers.DRIVERS`) and leaves the rest out.
"""

from typing import Protocol

from runtime.domain.messages import ChatAddress, OutboundMessage, TextPart
from runtime.ports.chat import ChatAdapter
from tests.fakes.gatehouse import FakeGatehouse


class Platform(Protocol):
    """A person alone with the bot. The adapter is connected and listens to `gatehouse`."""

    @property
    def adapter(self) -> ChatAdapter: ...

    @property
    def gatehouse(self) -> FakeGatehouse: ...

    @property
    def target(self) -> ChatAddress: ...

    async def says(self, text: str) -> str:
        """The person writes; the message's id. The platform has tried to deliver it once."""
        ...

    async def redelivers(self) -> None:
        """The platform delivers what was not acknowledged once more."""
        ...

    async def repeats(self, message_id: str) -> None:
        """The platform delivers a message again that was acknowledged."""
        ...

    async def edits(self, message_id: str, text: str) -> None: ...

    async def deletes(self, message_id: str) -> None: ...

    async def wrote(self, message: OutboundMessage) -> None:
        """The engine has written this down, as it does before each send. See `Elsewhere`."""
        ...

    async def presses_deny(self, post: str) -> None:
        """The person presses the button of an approval's card that denies."""
        ...

    def limit(self, seconds: int) -> None:
        """The next post is refused for so long."""
        ...

    def refuse(self) -> None:
        """The next post is refused for good."""
        ...

    def lose(self) -> None:
        """The next post is made, and its answer is lost."""
        ...

    def seen(self) -> list[str]:
        """What the person reads from the bot, post by post."""
        ...


class Elsewhere:
    """A platform of its own, which knows of the outbox only what is sent: all but the gateway's
    own page and terminal."""

    async def wrote(self, message: OutboundMessage) -> None:
        """Nothing to do."""


class Sharing(Platform, Protocol):
    """A platform with files, or with other people who see the bot's cards."""

    async def stranger_presses(self, post: str) -> str:
        """Somebody else who sees the card presses that button; the id of who it was."""
        ...

    async def answered(self) -> str:
        """What the one who pressed last reads, and nobody else."""
        ...

    async def shares(self, name: str, content: bytes) -> None:
        """The person sends a file."""
        ...

    def brought(self, path: str) -> bytes:
        """A file of the workspace that came with its message; where `adapter.files` is None."""
        ...

    async def files(self) -> list[tuple[str, bytes]]:
        """The files that the bot sent, as the person has them: name and content."""
        ...


def message(platform: Platform, text: str, outbox_id: str = "out_1") -> OutboundMessage:
    """A message of the outbox to the person."""
    return OutboundMessage(
        outbox_id=outbox_id,
        target=platform.target,
        parts=(TextPart(markdown=text),),
        session_id="ses_1",
        final=True,
    )
