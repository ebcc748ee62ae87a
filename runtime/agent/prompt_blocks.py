"""What features tell the model with the newest turn, from rows of their own.

A block is read once a turn and put in words by a pure function. It stands behind what the path says
of the present, in the order of the features, so that the system prompt keeps its bytes (CTX-3).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from runtime.domain.people import Speaker, Trust
from runtime.sessions import listings, runs
from runtime.sessions.listings import RunFilter
from runtime.sessions.sessions import Session
from runtime.store import Connection, Database

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Audience:
    """Whom a turn answers, and where. `private`: nobody else reads along, and the speaker may be
    told private notes. A block about a person is empty without it (CTX-6)."""

    session: Session
    speaker: Speaker
    private: bool


@dataclass(frozen=True, slots=True)
class PromptBlock:
    """One block of the present. `text` reads rows and gives the words, "" for no block.

    Words that people or programs wrote are fenced by whoever makes the block.
    """

    name: str
    text: Callable[[Connection, Audience], str]


def prompt_block(
    name: str, load: Callable[[Connection, Audience], T], render: Callable[[T], str]
) -> PromptBlock:
    """A block of what `load` reads; `render` is pure."""
    return PromptBlock(name, lambda conn, audience: render(load(conn, audience)))


class PromptBlocks:
    """Reads the blocks of all features, in their order, in one snapshot."""

    def __init__(self, database: Database, blocks: tuple[PromptBlock, ...]) -> None:
        self._database = database
        self._blocks = blocks

    async def of_turn(self, audience: Audience) -> tuple[str, ...]:
        """The texts for a turn that begins. Raises `StoreUnavailable`."""
        if not self._blocks:
            return ()
        return await self._database.read(lambda conn: self._texts(conn, audience))

    async def of_next(self, session: Session, trust: Trust, *, private: bool) -> tuple[str, ...]:
        """The same as the session's next turn would have it, if whoever spoke last speaks again,
        trusted as `trust`; none before its first run. Raises `StoreUnavailable`."""
        if not self._blocks:
            return ()

        def work(conn: Connection) -> tuple[str, ...]:
            newest = listings.run_ids(conn, RunFilter(session.id), limit=1, before=None)
            if not newest:
                return ()
            said = runs.get(conn, newest[0]).speaker
            speaker = said.model_copy(update={"trust": trust})
            return self._texts(conn, Audience(session, speaker, private))

        return await self._database.read(work)

    def _texts(self, conn: Connection, audience: Audience) -> tuple[str, ...]:
        found = (block.text(conn, audience).strip() for block in self._blocks)
        return tuple(text for text in found if text)
