"""Limits at the door, on both databases: who gets a run, who gets one line, who gets nothing.

Messages come in the shape of both platforms: a group of Telegram is one session, and in a channel
of Slack each thread is one of its own, with one room over all of them.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
from sqlalchemy import Connection, select

from runtime.bus.memory import MemoryBus
from runtime.commands.table import CommandSettings
from runtime.domain.budgets import Amount, Budget, BudgetKey, BudgetSettings, Limit, Scope, day_of
from runtime.domain.messages import InboundMessage
from runtime.domain.people import Sender
from runtime.domain.rates import Rate, RateSettings, Tally, Window
from runtime.intake.access import ChannelAccess
from runtime.intake.gatehouse import Intake, IntakeSettings
from runtime.ports.gatehouse import Accepted
from runtime.sessions import budgets, rates, tables
from runtime.sessions.budgets import Charge, Reservation
from runtime.sessions.settings import put, remove
from runtime.sessions.unit import Units
from runtime.store import Database, open_database
from runtime.store.database import now_ms
from runtime.store.metadata import metadata
from tests.conftest import FailAfter
from tests.contract.store_support import Gate, StillClock
from tests.support.kinds import KINDS

OWNER, ANN, BOB = "U-owner", "U-ann", "U-bob"
ACCESS = ChannelAccess(
    group_policy="open",
    dm_policy="open",
    owners=frozenset({OWNER}),
    allow_users=frozenset({ANN}),
    allow_bots=True,
)
HOUR = 3_600_000
SHAPES = {"slack": "channel", "telegram": "group"}


class Door:
    """An intake on a database, and what went out through it."""

    def __init__(self, database: Database, clock: StillClock, **given: object) -> None:
        self.database = database
        self.clock = clock
        self.channel = "telegram"
        self.number = 0
        self.settings = IntakeSettings(
            access=dict.fromkeys(SHAPES, ACCESS), queue_mode="followup", max_waiting=10_000
        )
        self.intake = Intake(Units(database, MemoryBus(), KINDS), self.settings)
        self.limit(**given)

    def limit(self, *, budgets: BudgetSettings | None = None, **rates: object) -> None:
        """Other limits from now on."""
        given = RateSettings(**rates)
        commands = CommandSettings(rates=given, budgets=budgets or BudgetSettings())
        self.settings = replace(self.settings, commands=commands)
        self.intake.change(self.settings)

    def mode(self, queue_mode: str) -> None:
        self.settings = replace(self.settings, queue_mode=queue_mode)
        self.intake.change(self.settings)

    async def says(
        self,
        text: str = "hello",
        user: str = ANN,
        chat: str | None = None,
        *,
        message_id: str | None = None,
        is_bot: bool = False,
    ) -> Accepted:
        """One message; in a chat of several, a thread of its own where the platform has them."""
        self.number += 1
        name = message_id or f"m{self.number}"
        channel = chat is not None and self.channel == "slack"
        message = InboundMessage(
            channel=self.channel,
            account="A1",
            chat_id=chat or f"D-{user}",
            chat_kind="direct" if chat is None else SHAPES[self.channel],
            thread_id=name if channel else None,
            message_id=name,
            sender=Sender(id=user, name=user, is_bot=is_bot),
            text=text,
            mentions_bot=chat is not None,
            received_at_ms=self.clock.now_ms(),
        )
        return await self.intake.accept(message)

    async def many(self, amount: int, user: str = ANN, chat: str | None = None) -> list[str]:
        return [(await self.says("hello", user, chat)).disposition for _ in range(amount)]

    async def lines(self) -> list[str]:
        """Everything that was put into the outbox, in order."""
        return [text for text, _ in await self.lines_at()]

    async def lines_at(self) -> list[tuple[str, str]]:
        """(text, chat) of everything that was put into the outbox."""
        query = select(tables.outbox.c.message, tables.outbox.c.chat).order_by(
            tables.outbox.c.position
        )
        rows = await self.database.read(lambda conn: conn.execute(query).all())
        return [(row.message, row.chat) for row in rows]

    async def count(self, table: str) -> int:
        query = select(metadata.tables[table])
        return len(await self.database.read(lambda conn: conn.execute(query).all()))


@pytest.fixture(params=list(SHAPES))
def platform(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def door(store: Database, clock: StillClock) -> Door:
    """A door with no limits, at noon: PostgreSQL's own clock runs on, but not to midnight."""
    now = await store.read(now_ms)
    clock.advance(36 * HOUR - now % (24 * HOUR))
    return Door(store, clock)


@pytest.mark.requirement("POL-8")
async def test_beyond_a_persons_rate_there_is_one_line_and_no_run(
    door: Door, platform: str
) -> None:
    door.channel = platform
    door.limit(person=Rate(minute=2, hour=100), timezone="Europe/Berlin")
    assert await door.many(5, chat="C1") == ["queued"] * 2 + ["limited"] * 3
    (line,) = await door.lines()
    assert "more than 2 requests of yours in a minute" in line
    assert "(Europe/Berlin)" in line
    assert await door.count("runs") == 2
    assert await door.count("inputs") == 2, "what is refused fills nothing"
    threads = {"slack": 2, "telegram": 1}
    assert await door.count("sessions") == await door.count("lanes") == threads[platform]
    assert await door.many(1, user=BOB, chat="C1") == ["queued"], "it is nobody else's limit"


@pytest.mark.requirement("POL-8")
async def test_the_next_window_begins_when_the_line_says(door: Door) -> None:
    door.limit(person=Rate(hour=2))
    await door.many(1)
    door.clock.advance(HOUR // 2)
    assert await door.many(3) == ["queued", "limited", "limited"]
    door.clock.advance(HOUR // 4)
    assert await door.many(1) == ["limited"]
    assert len(await door.lines()) == 1
    door.clock.advance(HOUR // 4)
    assert await door.many(3) == ["queued", "queued", "limited"]
    assert len(await door.lines()) == 2, "one line in each window"


@pytest.mark.requirement("POL-8")
async def test_a_room_has_a_rate_over_all_its_people_and_threads(door: Door, platform: str) -> None:
    door.channel = platform
    door.limit(room=Rate(hour=3))
    assert await door.many(2, ANN, "C1") == ["queued"] * 2
    assert await door.many(3, BOB, "C1") == ["queued", "limited", "limited"]
    assert await door.many(2, ANN, "C1") == ["limited"] * 2
    lines = await door.lines()
    assert len(lines) == 2, "each of them hears it once"
    assert all("requests of this room in an hour" in line for line in lines)
    assert await door.many(1, ANN, "C2") == ["queued"]
    assert await door.many(4, ANN) == ["queued"] * 4, "a direct chat is no room"


@pytest.mark.requirement("POL-8")
async def test_what_is_refused_uses_up_nothing_of_the_room(door: Door) -> None:
    door.limit(person=Rate(minute=1), room=Rate(minute=2, hour=2))
    assert await door.many(50, ANN, "C1") == ["queued"] + ["limited"] * 49
    assert await door.many(1, BOB, "C1") == ["queued"]
    door.clock.advance(60_000)
    assert await door.many(1, ANN, "C1") == ["limited"], "the room's hour"
    assert await door.many(1, ANN) == ["queued"], "which used nothing of the person's minute"


@pytest.mark.requirement("POL-8")
async def test_a_person_hears_it_once_in_each_chat(door: Door) -> None:
    door.limit(person=Rate(hour=1))
    for chat in ("C1", "C1", "C2", "C2", None, None):
        await door.says("hello", ANN, chat)
    assert [chat for _, chat in await door.lines_at()] == ["C1", "C2", f"D-{ANN}"]


@pytest.mark.requirement("POL-8", "MSG-2")
async def test_a_redelivery_counts_once_and_is_told_once(door: Door) -> None:
    door.limit(person=Rate(hour=2))
    for _ in range(3):
        assert (await door.says(message_id="a")).disposition in ("queued", "duplicate")
    assert (await door.says(message_id="b")).disposition == "queued"
    for _ in range(3):
        assert (await door.says(message_id="c")).disposition == "limited"
        assert (await door.says(message_id="a")).disposition == "duplicate", "not limited either"
    assert len(await door.lines()) == 1
    assert await door.count("runs") == 2


@pytest.mark.requirement("POL-8", "MSG-5")
async def test_what_joins_a_run_begins_none(door: Door) -> None:
    door.limit(person=Rate(hour=1))
    door.mode("collect")
    assert await door.many(5) == ["queued"] * 5
    assert await door.count("runs") == 1
    assert await door.many(1, chat="C1") == ["limited"], "in another session it is a new run"


@pytest.mark.requirement("POL-8", "MSG-16")
async def test_bots_are_bound_by_their_account_and_owners_only_where_it_is_set(door: Door) -> None:
    door.limit(person=Rate(hour=1))
    beeps = [(await door.says("beep", BOB, "C1", is_bot=True)).disposition for _ in range(3)]
    assert beeps == ["queued", "limited", "limited"]
    assert await door.many(3, OWNER) == ["queued"] * 3
    door.limit(person=Rate(hour=1), owners=True)
    assert await door.many(2, OWNER) == ["queued", "limited"]


@pytest.mark.requirement("POL-8", "MSG-12")
async def test_commands_work_beyond_the_limit_and_their_answers_are_no_flood(door: Door) -> None:
    door.limit(person=Rate(minute=1), words=Rate(minute=3))
    await door.many(2)
    for _ in range(6):
        assert (await door.says("/status")).disposition == "command"
    assert (await door.says("/plan")).disposition == "command"
    lines = await door.lines()
    assert len(lines) == 1 + 3 + 1
    assert "I answered you 3 times in a minute" in lines[-1]
    query = select(tables.sessions.c.mode)
    mode = await door.database.read(lambda conn: conn.execute(query).scalar_one())
    assert mode == "plan", "it was obeyed, and not answered"
    door.clock.advance(60_000)
    await door.says("/edit")
    assert "Edit mode" in (await door.lines())[-1]


@pytest.mark.requirement("POL-8")
async def test_usage_shows_what_is_left(door: Door) -> None:
    door.limit(person=Rate(minute=5, hour=9), room=Rate(hour=7), words=Rate(minute=3))
    await door.many(2, ANN, "C1")
    await door.many(1, ANN)
    await door.says("/usage", ANN, "C1")
    (told,) = await door.lines()
    for shown in (
        "your requests in a minute: 3 of 5 used, 2 left, until ",
        "your requests in an hour: 3 of 9 used, 6 left, until ",
        "this room's requests in an hour: 2 of 7 used, 5 left, until ",
    ):
        assert shown in told


@pytest.mark.requirement("POL-8", "MSG-20")
@pytest.mark.parametrize(
    ("scope", "owner", "room", "named"),
    [
        (Scope.PERSON, f"telegram:A1:{BOB}", "C1", "You have used your budget of 100 tokens"),
        (Scope.ROOM, "telegram:A1:C1", "C1", "This room has used its budget of 100 tokens"),
        (Scope.DAY, "", None, "I have for everybody"),
    ],
)
async def test_over_a_budget_of_the_day_there_is_one_line_and_no_run(
    door: Door, scope: Scope, owner: str, room: str | None, named: str
) -> None:
    def allow(tokens: int) -> None:
        given = BudgetSettings(**{_name(scope): Limit(tokens=tokens)})
        door.limit(budgets=given, person=Rate(hour=4))

    allow(100)
    key = BudgetKey(scope, owner, day_of(await door.database.read(now_ms), "UTC"))
    assert await door.many(1, BOB, room) == ["queued"]
    await door.database.write(spending(key, 99), name="u")
    assert await door.many(1, BOB, room) == ["queued"]
    await door.database.write(spending(key, 1), name="u")
    assert await door.many(3, BOB, room) == ["limited"] * 3
    (line,) = await door.lines()
    assert named in line
    assert "midnight (UTC). I did not take this message" in line
    assert await door.count("runs") == 2
    allow(101)
    assert await door.many(1, BOB, room) == ["queued"]
    await door.database.write(spending(key, 1), name="u")
    assert await door.many(2, BOB, room) == ["limited"] * 2
    assert "101 tokens" in (await door.lines())[1], "another limit, so it is told again"
    allow(1000)
    assert await door.many(2, BOB, room) == ["queued", "limited"], "no refusal counted as a run"
    assert len(await door.lines()) == 3
    allow(101)
    door.clock.advance(24 * HOUR)
    assert await door.many(1, BOB, room) == ["queued"]


def _name(scope: Scope) -> str:
    return {Scope.PERSON: "person_day", Scope.ROOM: "room_day"}.get(scope, "day")


def spending(key: BudgetKey, tokens: int) -> Callable[[Connection], bool]:
    """A call that used so many tokens."""

    def unit(conn: Connection) -> bool:
        held = [Budget(key, Limit(tokens=10**9))]
        budgets.reserve(conn, Reservation("run", 1, Amount(1), 1), held)
        return budgets.settle(conn, "run", Charge(Amount(tokens)))

    return unit


@pytest.mark.requirement("POL-8", "MSG-20")
async def test_the_gateways_own_page_is_not_held_at_the_door(door: Door) -> None:
    door.channel = "web"
    once = Rate(minute=1, hour=1)
    limits = BudgetSettings(day=Limit(tokens=1))
    day = day_of(await door.database.read(now_ms), "UTC")
    await door.database.write(spending(BudgetKey(Scope.DAY, "", day), 1), name="u")
    door.limit(budgets=limits, person=once, room=once, words=once, owners=True)
    assert await door.many(3) == ["queued"] * 3, "a run says what is used up"
    for _ in range(3):
        assert (await door.says("/status")).disposition == "command"
    assert len(await door.lines()) == 3


@pytest.mark.requirement("POL-8")
async def test_without_a_limit_nothing_is_counted(door: Door) -> None:
    before = await door.count("settings")
    assert await door.many(3) == ["queued"] * 3
    await door.says("/status")
    assert await door.count("settings") == before


@pytest.mark.requirement("POL-8")
async def test_a_restart_and_another_replica_count_on(
    store: Database, migrated_url: str, clock: StillClock
) -> None:
    first = Door(store, clock, person=Rate(hour=3))
    assert await first.many(2) == ["queued"] * 2
    if store.dialect == "sqlite":
        await store.close()
    again = open_database(migrated_url, clock=clock)
    await again.start()
    try:
        second = Door(again, clock, person=Rate(hour=3))
        second.number = 100
        assert await second.many(3) == ["queued", "limited", "limited"]
        assert len(await second.lines()) == 1
        if store.dialect == "postgresql":
            assert await first.many(1) == ["limited"]
            assert len(await first.lines()) == 1, "told by one replica is told"
    finally:
        await again.close()


@pytest.mark.requirement("POL-8")
async def test_replicas_that_race_for_a_new_row_count_each_other(
    database: Database, database_url: str, gate: Gate, fail_after: FailAfter
) -> None:
    """The first holds its transaction open with the row that it made; the others wait for it."""
    await database.write(metadata.create_all, name="schema")
    other = database
    if database.dialect == "postgresql":
        other = open_database(database_url, clock=StillClock())
        await other.start()

    def one_more(conn: Connection) -> None:
        held = rates.lock(conn, ["b", "a"], now=1)
        more = {
            name: Tally(Window(9, one.minute.count + 1), one.hour) for name, one in held.items()
        }
        rates.keep(conn, more, now=1)

    def first(conn: Connection) -> None:
        one_more(conn)
        gate.hold(conn)

    try:
        async with fail_after():
            ahead = asyncio.create_task(database.write(first, name="u"))
            await gate.entered()
            behind = [asyncio.create_task(other.write(one_more, name="u")) for _ in range(5)]
            await gate.open()
            await asyncio.gather(ahead, *behind)
    finally:
        if other is not database:
            await other.close()
    found = await database.read(lambda conn: rates.standings(conn, ["a", "b", "c"]))
    assert found == {
        "a": Tally(Window(9, 6)),
        "b": Tally(Window(9, 6)),
        "c": Tally(),
    }


async def test_a_rate_is_kept_among_the_small_facts_under_a_name_of_its_own(
    store: Database,
) -> None:
    await store.write(lambda conn: put(conn, "person:x", "a fact"), name="u")
    found = await store.write(lambda conn: rates.lock(conn, ["person:x"], now=1), name="u")
    assert found == {"person:x": Tally()}
    assert await store.write(lambda conn: remove(conn, "person:x"), name="u")
