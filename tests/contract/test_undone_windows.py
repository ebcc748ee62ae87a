"""What each replica remembers of a conversation loses a turn that was taken back (MSG-22)."""

from collections.abc import Callable

import pytest
from sqlalchemy import Connection

from runtime.domain.runs import Holder, RunState, Usage
from runtime.domain.transcript import AssistantMessage, UserMessage
from runtime.intake.accept import Accepting
from runtime.ports.gatehouse import Accepted
from runtime.sessions import claims, run_steps
from runtime.sessions.run_steps import Finish
from runtime.sessions.transcripts import Line
from runtime.sessions.window import Window, WindowCache
from runtime.store import Database, leases
from tests.contract.store_support import StillClock
from tests.contract.test_store_chats import RULES, said
from tests.support.kinds import COMMANDS, unit_of

pytestmark = pytest.mark.requirement("MSG-22")


class Replica:
    """A worker with a memory of its own."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.cache = WindowCache()

    def answers(self, conn: Connection) -> list[str]:
        """Run what waits to its end; what its prompt held."""
        lease = f"{leases.PROCESS}{self.name}"
        fence = leases.acquire(conn, name=lease, holder=self.name, ttl_ms=60_000)
        holder = Holder(self.name, fence or 0)
        found = unit_of(lambda unit: claims.claim(unit, holder, most=1, cache=self.cache))(conn)
        (taken,) = found.runs
        message = AssistantMessage(text="an answer")
        end = Finish(RunState.COMPLETED, Usage(), 1, message)
        finish = unit_of(lambda unit: run_steps.finish(unit, holder, taken.run.id, end, claim=None))
        finished = finish(conn)
        window = taken.window
        lines = (*window.lines, *finished.lines)
        self.cache.put(taken.session.id, Window(window.transcript, lines, window.undone))
        return words(window.lines)


def words(lines: tuple[Line, ...]) -> list[str]:
    return [line.message.text for line in lines if isinstance(line.message, UserMessage)]


async def test_a_replica_that_was_away_asks_without_the_turn(
    store: Database, clock: StillClock
) -> None:
    near, far = Replica("near"), Replica("far")
    count = iter(range(100))

    def says(text: str) -> Callable[[Connection], Accepted]:
        now = {"received_at_ms": clock.now_ms() + 60_000}
        message = said(text, f"m{next(count)}").model_copy(update=now)
        return unit_of(lambda unit: Accepting(RULES, COMMANDS).accept(unit, message))

    async def turn(text: str, replica: Replica) -> list[str]:
        await store.write(says(text), name="accept")
        return await store.write(replica.answers, name="turn")

    assert await turn("alpha", near) == ["alpha"]
    assert await turn("bravo", near) == ["alpha", "bravo"]
    assert await turn("charlie", far) == ["alpha", "bravo", "charlie"]
    # Said to the one, heard by the other, which remembers the first two turns.
    done = await store.write(says("/undo"), name="accept")
    assert done.reason == "undo"
    await store.write(says("/undo"), name="accept")
    assert await turn("delta", near) == ["alpha", "delta"]
    assert await turn("echo", far) == ["alpha", "delta", "echo"]
