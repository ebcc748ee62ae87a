"""A message that is on its way into a conversation while its owner deletes it (RUN-6).

The message is held behind the look at its session; the deletion is held between its two units.
So the test says in which order they go on.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import asyncpg
import pytest

from runtime.bus.memory import MemoryBus
from runtime.domain.errors import Conflict, NotFound
from runtime.domain.messages import Move
from runtime.domain.runs import RunState
from runtime.intake.assets import AssetUse, Sender
from runtime.intake.control import NewConversation
from runtime.intake.reception import Reception
from runtime.intake.sessions import SessionControl
from runtime.intake.uploads import Upload
from runtime.sessions import lanes, sessions
from runtime.sessions.erasure import key_of
from runtime.sessions.lanes import NewSession
from runtime.sessions.unit import Units
from runtime.store import Connection, Database
from runtime.views.reader import Views
from tests.conftest import FailAfter
from tests.contract.test_concurrent_answers import answers, asking, states
from tests.contract.test_store_chats import OWNER, RULES, accept, door, said
from tests.contract.test_store_people import waits
from tests.contract.test_submission_keys import control_of
from tests.fakes.model import Gate
from tests.support.kinds import COMMANDS, KINDS

T = TypeVar("T")
NOTES = Upload("notes.txt", "text/plain", b"keep me")


class Halting(Database):
    """A store that holds the unit of one name until the test opens its gate."""

    def __init__(self, store: Database, held: str, gate: Gate) -> None:
        self.dialect = store.dialect
        self._store = store
        self._held = held
        self._gate = gate

    async def start(self) -> None:
        await self._store.start()

    async def close(self) -> None:
        await self._store.close()

    async def write(self, work: Callable[[Connection], T], *, name: str, urgent: bool = False) -> T:
        if name == self._held:
            await self._gate.wait()
        return await self._store.write(work, name=name, urgent=urgent)

    async def read(self, work: Callable[[Connection], T]) -> T:
        return await self._store.read(work)


def keeping(store: Database, path: Path) -> SessionControl:
    return SessionControl(Units(store, MemoryBus(), KINDS), lambda: path, "owner")


async def conversation(store: Database, path: Path) -> str:
    """A conversation under a name of its owner's choice, for which a file is kept."""
    session, _ = await control_of(store, path).create_session(NewConversation(key="plans"))
    kept = path / "uploads" / session.id
    kept.mkdir(parents=True)
    (kept / "first.txt").write_text("first")
    return session.id


def files(path: Path) -> list[str]:
    return sorted(one.name for one in (path / "uploads").rglob("*.txt"))


@pytest.mark.requirement("RUN-6", "MSG-1")
async def test_a_message_that_comes_amid_a_deletion_is_refused_and_the_deletion_ends(
    store: Database, tmp_path: Path, fail_after: FailAfter
) -> None:
    session = await conversation(store, tmp_path)
    door, amid = Gate(), Gate()
    control = control_of(Halting(store, "accept", door), tmp_path)
    async with fail_after():
        sending = asyncio.create_task(
            control.submit(session, ["again", NOTES], idempotency_key="k"), name="message"
        )
        await door.reached.wait()
        deleting = asyncio.create_task(
            keeping(Halting(store, "session-delete", amid), tmp_path).delete(session),
            name="deletion",
        )
        await amid.reached.wait()
        door.open.set()
        with pytest.raises(Conflict, match="has ended"):
            await sending
        amid.open.set()
        await deleting
    with pytest.raises(NotFound):
        await Views(store).session(session)
    assert (await Views(store).runs()).total_count == 0
    assert files(tmp_path) == []


@pytest.mark.requirement("RUN-6", "MSG-1")
@pytest.mark.parametrize("anew", [False, True])
async def test_a_message_to_a_conversation_that_is_gone_begins_no_other_one(
    store: Database, tmp_path: Path, fail_after: FailAfter, *, anew: bool
) -> None:
    """Also where the owner made a new one under the same name meanwhile."""
    session = await conversation(store, tmp_path)
    door = Gate()
    control = control_of(store, tmp_path, door)
    async with fail_after():
        sending = asyncio.create_task(control.submit(session, ["again", NOTES]), name="message")
        await door.reached.wait()
        await keeping(store, tmp_path).delete(session)
        left = 0
        if anew:
            await control.create_session(NewConversation(key="plans"))
            left = 1
        door.open.set()
        with pytest.raises(NotFound):
            await sending
    assert (await Views(store).sessions()).total_count == left
    assert (await Views(store).runs()).total_count == 0
    assert files(tmp_path) == []


@pytest.mark.requirement("RUN-6", "RUN-5")
async def test_a_file_for_a_session_that_is_gone_by_then_is_not_left_behind(
    store: Database, tmp_path: Path, fail_after: FailAfter
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"uploaded"

    class Late(Halting):
        """Holds whoever has looked at the session."""

        async def read(self, work: Callable[[Connection], T]) -> T:
            found = await super().read(work)
            await gate.wait()
            return found

    session, gate = await conversation(store, tmp_path), Gate()
    uploads = control_of(store, tmp_path).assets
    asset, _ = await uploads.receive(pieces(), "u.txt", Sender("ada", "owner"))
    control = control_of(Late(store, "", gate), tmp_path)
    async with fail_after():
        items = [NOTES, AssetUse(asset.id)]
        sending = asyncio.create_task(control.submit(session, items), name="message")
        await gate.reached.wait()
        await keeping(store, tmp_path).delete(session)
        gate.open.set()
        with pytest.raises(NotFound):
            await sending
    assert files(tmp_path) == []


async def chat(store: Database) -> str:
    """A session of a chat, which is idle."""
    new = NewSession(
        key=Reception(RULES, COMMANDS).key_of(said("", "0").address, OWNER),
        address=said("", "0").address,
        mode="edit",
        queue_mode="followup",
    )
    made = await store.write(lambda conn: lanes.create(conn, new), name="session")
    assert made is not None
    return made.session_id


@pytest.mark.requirement("RUN-6", "MSG-1")
async def test_a_message_of_a_chat_amid_a_deletion_begins_another_conversation(
    store: Database, tmp_path: Path, fail_after: FailAfter
) -> None:
    session, amid = await chat(store), Gate()
    async with fail_after():
        deleting = asyncio.create_task(
            keeping(Halting(store, "session-delete", amid), tmp_path).delete(session),
            name="deletion",
        )
        await amid.reached.wait()
        accepted = await accept(store, said("hello", "1"))
        amid.open.set()
        await deleting
        again = await accept(store, said("and this", "2"))
    assert accepted.session_id not in (None, session)
    assert again.session_id == accepted.session_id
    with pytest.raises(NotFound):
        await Views(store).session(session)
    assert [one.session_id for one in (await Views(store).runs()).items] == [again.session_id]


@pytest.mark.requirement("RUN-6", "MSG-1", "SCALE-1")
@pytest.mark.parametrize("dialect", ["postgresql"])
async def test_a_message_that_waited_for_the_beginning_of_a_deletion_begins_another_conversation(
    store: Database, migrated_url: str, fail_after: FailAfter
) -> None:
    """PostgreSQL gives it the row that it waited for, which it had found by the old key."""
    session = await chat(store)
    async with fail_after():
        async with deletion_begins(migrated_url, session):
            task = asyncio.create_task(accept(store, said("hello", "1")), name="message")
            await until_waits(store, task)
        accepted = await task
    assert accepted.session_id not in (None, session)


@pytest.mark.requirement("RUN-6", "APR-10", "SCALE-1")
@pytest.mark.parametrize("dialect", ["postgresql"])
async def test_an_answer_that_waited_for_the_beginning_of_a_deletion_answers_all_the_same(
    store: Database, migrated_url: str, fail_after: FailAfter
) -> None:
    """It holds the lane of the card that it answers elsewhere, and gives it back to begin anew."""
    (card,) = await asking(store, ["-2"])
    session = await chat(store)
    async with fail_after():
        async with deletion_begins(migrated_url, session):
            task = asyncio.create_task(accept(store, answers(card, 1, chat="-1")), name="answer")
            await until_waits(store, task)
        accepted = await task
    assert accepted.session_id not in (None, session, card.session_id)
    assert await store.read(lambda conn: states(conn, [card])) == [("answered", RunState.QUEUED)]


@pytest.mark.requirement("RUN-6", "TEL-6", "SCALE-1")
@pytest.mark.parametrize("dialect", ["postgresql"])
async def test_a_chat_that_moves_amid_the_beginning_of_a_deletion_leaves_the_conversation_behind(
    store: Database, migrated_url: str, fail_after: FailAfter
) -> None:
    session = await chat(store)
    move = Move(channel="test", account="A1", old_chat_id="-1", new_chat_id="-100")
    async with fail_after():
        async with deletion_begins(migrated_url, session):
            task = asyncio.create_task(door(store).move(move), name="move")
            await until_waits(store, task)
        await task
    found = await store.read(lambda conn: sessions.get(conn, session))
    assert (found.key, found.address.chat_id) == (key_of(session), "-1")


@asynccontextmanager
async def deletion_begins(url: str, session: str) -> AsyncIterator[None]:
    """Another replica has the session's lane in here, and the deletion has begun behind it."""
    other = await asyncpg.connect(url)
    try:
        async with other.transaction():
            await other.execute(f"UPDATE lanes SET event_seq = 1 WHERE session_id = '{session}'")
            await other.execute(
                f"UPDATE sessions SET status = 'ended', key = '{key_of(session)}' "
                f"WHERE id = '{session}'"
            )
            yield
    finally:
        await other.close()


async def until_waits(store: Database, task: asyncio.Task[T]) -> None:
    """Go on when a unit waits for the other replica."""
    while not await store.read(waits):
        assert not task.done()


@pytest.mark.requirement("RUN-6")
async def test_a_deletion_that_comes_after_a_message_changes_nothing(
    store: Database, tmp_path: Path, fail_after: FailAfter
) -> None:
    session = await conversation(store, tmp_path)
    async with fail_after():
        await control_of(store, tmp_path).submit(session, ["again", NOTES])
        with pytest.raises(Conflict, match="idle"):
            await keeping(store, tmp_path).delete(session)
    assert (await Views(store).session(session)).status == "open"
    assert len(files(tmp_path)) == 2
