"""Plain reminders as people meet them, on each database, under a clock that moves on command."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection, func, select, update
from structlog.testing import capture_logs

from adapters.rendering.mentions import WORD_JOINER
from adapters.rendering.telegram import TelegramPart, render_telegram
from runtime.bus.memory import MemoryBus
from runtime.domain.errors import CommitUnknown, DeliveryRejected
from runtime.domain.messages import Move
from runtime.domain.people import Speaker, Trust
from runtime.domain.runs import RunState
from runtime.features.schedules import reminders
from runtime.features.schedules.fires import UNDELIVERED
from runtime.features.schedules.reminders import STILL_ON_ITS_WAY
from runtime.features.schedules.tables import person_zones, schedule_fires, schedules
from runtime.intake.access import ChannelAccess
from runtime.ports.model import Model
from runtime.sessions.keys import Scope
from runtime.sessions.tables import outbox
from runtime.sessions.unit import Units
from runtime.store import open_database
from tests.contract.store_support import BOTH, postgres_server
from tests.fakes.clock import FakeClock
from tests.fakes.model import Said, ScriptedModel, ScriptedModels
from tests.scenario.cards import MEMBER, audited, both, call, card, offering, reaches
from tests.scenario.conftest import intake
from tests.scenario.engine import OPEN, OWNER, Setup, World, setup_at, world
from tests.scenario.replicas import beside
from tests.scenario.test_erasure import keeping
from tests.scenario.test_faulty_units import Faults, Unforeseen
from tests.scenario.tools import Note
from tests.support.kinds import KINDS
from tests.support.templates import make_database

HERE, GROUP, OTHER = f"D-{OWNER}", "G-1", "U-other"
MOVE = Move(channel="test", account="A1", old_chat_id="-2", new_chat_id="-100")
TEAM = replace(OPEN, allow_users=frozenset({MEMBER, OTHER}))
Change = Callable[[Setup], Setup]


@dataclass
class House:
    """A database and a clock; a second world on them is a restart, or a replica."""

    url: str
    clock: FakeClock
    open: Callable[[str, Model, Change], AbstractAsyncContextManager[World]]
    worlds: int = 0

    def begins(
        self,
        model: Model | None = None,
        *,
        access: ChannelAccess = TEAM,
        change: Change | None = None,
    ) -> AbstractAsyncContextManager[World]:
        self.worlds += 1
        changes = [intake(access={"test": access}), *([change] if change else [])]
        return self.open(f"w{self.worlds}", model or ScriptedModel([]), both(*changes))


@pytest.fixture(params=BOTH)
async def house(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[House]:
    if request.param == "postgresql":
        async with beside(tmp_path, postgres_server()) as place:

            @asynccontextmanager
            async def replica(name: str, model: Model, change: Change) -> AsyncIterator[World]:
                async with place.replica(name, model, change) as made:
                    yield made.world

            yield House(place.url, place.clock, replica)
        return
    url, clock = f"sqlite:///{tmp_path}/gatehouse.db", FakeClock()
    await make_database(url)

    def alone(name: str, model: Model, change: Change) -> AbstractAsyncContextManager[World]:
        setup = setup_at(tmp_path / name, url, ScriptedModels(model), clock=clock)
        return world(change(setup))

    yield House(url, clock, alone)


async def hears(at: World, text: str, **said: object) -> str:
    """What is answered to a word."""
    chat = str(said.get("chat_id") or f"D-{said.get('user', OWNER)}")
    before = len(at.chat.texts(chat))
    await at.says(text, **said)
    return (await at.sees(before + 1, chat))[-1]


async def goes_on(at: World, seconds: float) -> None:
    await at.engine.parts.clock.advance(seconds)


def reminded(at: World, chat: str | None = None) -> list[str]:
    """The reminders that came."""
    return [text for text in at.chat.texts(chat) if text.startswith("Reminder")]


async def fires(at: World) -> list[tuple[str, str]]:
    """What became of each time, in order."""

    def look(conn: Connection) -> list[tuple[str, str]]:
        found = conn.execute(select(schedule_fires).order_by(schedule_fires.c.slot_ms))
        return [(row.status, row.reason) for row in found]

    return await at.database.read(look)


async def statuses(at: World) -> list[str]:
    """In the order of their texts."""
    query = select(schedules.c.status).order_by(schedules.c.deliver_text)
    return await at.database.read(lambda conn: list(conn.execute(query).scalars()))


def code_in(answer: str) -> str:
    """The code that an answer names."""
    return answer.partition("cancel ")[2].partition("`")[0]


@pytest.mark.requirement("SCH-8", "SCH-9", "MSG-12")
async def test_it_comes_once_and_on_time_in_the_place_where_it_was_asked_for(house: House) -> None:
    async with house.begins() as at:
        assert (await hears(at, "/timezone Europe/Berlin")).startswith(
            "It is Friday 15 January 2027, 09:00 (Europe/Berlin) for you."
        )
        # It is due between two ticks.
        await goes_on(at, 0.5)
        answer = await hears(at, "/remind in 1 minute to call Bob")
        assert answer == (
            "I will remind you in this chat on Friday 15 January 2027, 09:01 (Europe/Berlin): "
            f"call Bob\n`/schedules cancel {code_in(answer)}` takes it back."
        )
        await goes_on(at, 59.9)
        assert reminded(at) == []
        await goes_on(at, 0.1)
        assert reminded(at) == ["Reminder: call Bob"]
        await goes_on(at, 65)
        assert reminded(at, HERE) == ["Reminder: call Bob"]
        assert await fires(at) == [("fired", "")]
        assert await statuses(at) == ["completed"]


@pytest.mark.requirement("SCH-9")
async def test_a_thread_of_a_group_is_reminded_there_and_told_whose_it_is(house: House) -> None:
    async with house.begins() as at:
        there = {"chat_id": GROUP, "kind": "channel", "thread": "T7"}
        answer = await hears(at, "/remind in 1 minute: stand-up", user=MEMBER, **there)
        assert answer.startswith("I will remind you in this thread on ")
        await goes_on(at, 60)
        assert reminded(at, GROUP) == ["Reminder from member: stand-up"]
        assert at.chat.sent[-1].target.thread_id == "T7"


@pytest.mark.requirement("SCH-9")
async def test_it_waits_for_no_approval_and_asks_no_model(house: House) -> None:
    model = ScriptedModel([Said(calls=(call("rm x"),))])
    async with house.begins(model, change=offering(Note(command=True))) as at:
        accepted = await at.says("tidy up")
        await card(at)
        await reaches(at, accepted.run_id, RunState.WAITING_FOR_APPROVAL)
        await at.says("/remind in 1 minute: call Bob")
        await goes_on(at, 60)
        assert reminded(at) == ["Reminder: call Bob"]
        await reaches(at, accepted.run_id, RunState.WAITING_FOR_APPROVAL)
    assert len(model.requests) == 1


@pytest.mark.requirement("SCH-4")
async def test_it_outlives_a_restart(house: House) -> None:
    async with house.begins() as at:
        await hears(at, "/remind in 1 minute: call Bob")
    async with house.begins() as at:
        await goes_on(at, 60)
        assert reminded(at) == ["Reminder: call Bob"]
    async with house.begins() as at:
        await goes_on(at, 60)
        assert reminded(at) == []


@pytest.mark.requirement("SCH-4")
async def test_a_death_between_the_unit_and_the_delivery_neither_loses_nor_doubles_it(
    house: House,
) -> None:
    async with house.begins() as at:
        await hears(at, "/remind in 1 minute: call Bob")
    await house.clock.advance(60)
    database = open_database(house.url, clock=house.clock)
    await database.start()
    owner = Speaker(person_id="p", channel="test", account="A1", user_id="u", trust=Trust.OWNER)
    fire = partial(reminders.fire, admitted=lambda _, asked: [owner] * len(asked))
    for total in (1, 0):
        done = await Units(database, MemoryBus(), KINDS).run(fire, name="schedule-fire")
        assert done.total == total
    await database.close()
    async with house.begins() as at:
        await goes_on(at, 5)
        assert reminded(at) == ["Reminder: call Bob"]
        assert await fires(at) == [("fired", "")]


@pytest.mark.requirement("SCH-4")
@pytest.mark.parametrize("place", ["before", "behind"])
async def test_a_unit_that_fails_at_either_side_of_its_commit_is_made_up_for(
    house: House, place: str
) -> None:
    async with house.begins() as at:
        await hears(at, "/remind in 1 minute: call Bob")
        faults = Faults(at)
        error = Unforeseen() if place == "before" else CommitUnknown("the line broke")
        getattr(faults, place)["schedule-fire"] = error
        await goes_on(at, 65)
        assert getattr(faults, place) == {}
        assert reminded(at) == ["Reminder: call Bob"]


@pytest.mark.requirement("SCH-4")
async def test_two_replicas_fire_each_once(tmp_path: Path) -> None:
    total = 2 * reminders.rows.AT_ONCE + 5
    async with (
        beside(tmp_path, postgres_server()) as place,
        place.replica("one", ScriptedModel([])) as one,
        place.replica("two", ScriptedModel([])) as two,
    ):
        await hears(one.world, "/remind in 1 minute: call Bob")

        def copy(conn: Connection) -> None:
            row = dict(conn.execute(select(schedules)).one()._mapping)
            for number in range(1, total):
                copied = {**row, "id": f"{row['id']}{number}", "deliver_text": f"n{number}"}
                conn.execute(schedules.insert().values(copied))

        await one.world.database.write(copy, name="copies")
        await place.clock.advance(65)
        came = [*reminded(one.world), *reminded(two.world)]
        assert len(came) == len(set(came)) == total
        assert await fires(one.world) == [("fired", "")] * total


@pytest.mark.requirement("SCH-4")
async def test_another_replica_finds_it_without_a_signal(tmp_path: Path) -> None:
    async with (
        beside(tmp_path, postgres_server()) as place,
        place.replica("one", ScriptedModel([])) as one,
        place.replica("two", ScriptedModel([])) as two,
    ):
        await hears(one.world, "/remind in 1 minute: call Bob")
        await one.dies()
        await place.clock.advance(61)
        assert await fires(two.world) == [("fired", "")]


async def test_a_word_that_comes_twice_is_obeyed_once(house: House) -> None:
    async with house.begins() as at:
        for _ in range(2):
            await at.says("/remind in 1 minute: call Bob", message_id="m7")
        assert await statuses(at) == ["active"]


async def test_an_owner_who_is_no_longer_let_in_pauses_it_and_the_operator_is_told(
    house: House,
) -> None:
    async with house.begins() as at:
        answer = await hears(at, "/remind in 1 minute: call Bob", user=MEMBER)
        await hears(at, "/remind in 1 minute: call Ann")
        settings = at.engine.settings
        without = replace(TEAM, allow_users=frozenset({OTHER}))
        changed = replace(settings.intake, access={"test": without})
        at.engine.change(replace(settings, intake=changed))
        with capture_logs() as logs:
            await goes_on(at, 60)
        assert reminded(at) == ["Reminder: call Ann"]
        (warned,) = [one for one in logs if one["event"] == "schedule_paused"]
        assert warned["reason"] == reminders.NOT_LET_IN
        told = [one for one in await audited(at, "schedule.") if one.actor == "system"]
        assert [(one.action, one.data["reason"]) for one in told] == [
            ("schedule.paused", reminders.NOT_LET_IN)
        ]
        assert ("skipped", reminders.NOT_LET_IN) in await fires(at)
        assert await statuses(at) == ["completed", "paused"]
        at.engine.change(settings)
        await at.says(f"/schedules resume {code_in(answer)}", user=MEMBER)
        await goes_on(at, 2)
        assert reminded(at, f"D-{MEMBER}") == ["Reminder: call Bob"]


@pytest.mark.requirement("TEL-6")
@pytest.mark.parametrize("scope", ["room", "account"])
async def test_it_follows_its_chat_to_another_id(house: House, scope: Scope) -> None:
    lists = {"group_policy": "allowlist", "allow_groups": frozenset({"-1", "-2"})}
    access = replace(TEAM, group_scope=scope, **lists)
    async with house.begins(access=access) as at:
        for chat in ("-1", "-2"):
            text = f"/remind in 1 minute: tea in {chat}"
            await hears(at, text, user=MEMBER, chat_id=chat, kind="group")
        await at.engine.intake.move(MOVE)
        settings = at.engine.settings
        moved = replace(access, allow_groups=frozenset({"-1", "-100"}))
        changed = replace(settings.intake, access={"test": moved})
        at.engine.change(replace(settings, intake=changed))
        there = {"user": MEMBER, "chat_id": "-100", "kind": "group"}
        listed = await hears(at, "/schedules", **there)
        assert "tea in -1" not in listed
        assert ("tea in -2" in listed) is (scope == "room")
        await goes_on(at, 60)
        assert len(reminded(at, "-1")) == 1
        assert len(reminded(at, "-100")) == (1 if scope == "room" else 0)


async def test_whoever_became_a_guest_is_reminded_no_more(house: House) -> None:
    async with house.begins() as at:
        await hears(at, "/remind in 1 minute: call Bob", user=MEMBER)
    guests = replace(OPEN, dm_policy="open")
    async with house.begins(access=guests) as at:
        await goes_on(at, 60)
        assert reminded(at) == []
        assert await statuses(at) == ["paused"]


@pytest.mark.requirement("SCH-3")
async def test_what_was_missed_is_said_once_with_its_time(house: House) -> None:
    async with house.begins() as at:
        await hears(at, "/remind every 5 minutes: stretch")
        await hears(at, "/remind in 1 minute: call Bob")
    await house.clock.advance(29 * 60)
    async with house.begins() as at:
        await goes_on(at, 1)
        assert reminded(at) == [
            "Reminder: call Bob\n\nIt was due on Friday 15 January 2027, 08:01 (UTC).",
            "Reminder: stretch\n\nIt was due on Friday 15 January 2027, 08:05 (UTC).\n\n"
            "It was due 4 times more, last on Friday 15 January 2027, 08:25 (UTC); "
            "I say it once.",
        ]
        assert [status for status, _ in await fires(at)] == ["fired", "fired", "skipped"]
        await goes_on(at, 60)
        assert reminded(at)[2:] == ["Reminder: stretch"], "and it goes on at 08:30"


@pytest.mark.requirement("SCH-8")
async def test_a_repeated_one_names_its_next_three_times(house: House) -> None:
    async with house.begins() as at:
        await hears(at, "/timezone Europe/Berlin")
        answer = await hears(at, "/remind every weekday at 9: post the numbers")
        assert answer.splitlines()[:7] == [
            "I will remind you in this chat: post the numbers",
            "",
            "The next times are:",
            "",
            "- Monday 18 January 2027, 09:00 (Europe/Berlin)",
            "- Tuesday 19 January 2027, 09:00 (Europe/Berlin)",
            "- Wednesday 20 January 2027, 09:00 (Europe/Berlin)",
        ]


@pytest.mark.requirement("SCH-6", "SCH-8")
async def test_it_is_cancelled_and_a_pause_keeps_what_was_left(house: House) -> None:
    async with house.begins() as at:
        gone = code_in(await hears(at, "/remind in 1 minute: call Bob"))
        kept = code_in(await hears(at, "/remind in 1 minute: call Ann"))
        assert await hears(at, f"/schedules cancel {gone}") == "Cancelled: call Bob"
        assert await hears(at, f"/schedules cancel {gone}") == "It is over already."
        await goes_on(at, 30)
        assert await hears(at, f"/schedules pause {kept}") == (
            f"Paused. `/schedules resume {kept}` lets it go on."
        )
        assert f"- `{kept}` paused: call Ann" in await hears(at, "/schedules")
        assert await hears(at, f"/schedules pause {kept}") == "It is paused already."
        await goes_on(at, 60.5)
        assert reminded(at) == []
        assert (await hears(at, f"/schedules resume {kept}")).startswith("It goes on: next on ")
        await goes_on(at, 29.9)
        assert reminded(at) == []
        await goes_on(at, 0.1)
        assert reminded(at) == ["Reminder: call Ann"]


@pytest.mark.requirement("SCH-6")
async def test_an_interval_counts_on_from_where_it_was_resumed(house: House) -> None:
    async with house.begins() as at:
        code = code_in(await hears(at, "/remind every 5 minutes: stretch"))
        await goes_on(at, 20)
        await hears(at, f"/schedules pause {code}")
        await goes_on(at, 25)
        await hears(at, f"/schedules resume {code}")
        for seconds, total in ((279, 0), (1, 1), (299, 1), (1, 2)):
            await goes_on(at, seconds)
            assert len(reminded(at)) == total


@pytest.mark.requirement("SCH-8")
async def test_in_a_group_all_are_listed_and_their_own_or_an_owner_changes_them(
    house: House,
) -> None:
    async with house.begins() as at:
        there = {"chat_id": GROUP, "kind": "group"}
        code = code_in(await hears(at, "/remind in 1 hour: tea", user=MEMBER, **there))
        listed = await hears(at, "/schedules", user=OTHER, **there)
        assert listed.startswith(
            f"- `{code}` Friday 15 January 2027, 09:00 (UTC), of member: tea\n"
        )
        assert await hears(at, f"/schedules cancel {code}", user=OTHER, **there) == (
            "Only who asked for it may change it, or an owner."
        )
        assert await statuses(at) == ["active"]
        assert "no reminder" in await hears(at, f"/schedules cancel {code}", user=OTHER)
        assert "Paused" in await hears(at, f"/schedules pause {code}", user=MEMBER, **there)
        assert await hears(at, f"/schedules cancel {code}", **there) == "Cancelled: tea"
        assert await statuses(at) == ["cancelled"]
        assert "Nothing is scheduled here." in await hears(at, "/schedules", user=MEMBER)


@pytest.mark.requirement("SCH-8")
async def test_the_zone_is_asked_for_once_where_the_time_depends_on_it(house: House) -> None:
    async with house.begins() as at:
        asked = await hears(at, "/remind tomorrow at 9: stand-up")
        assert asked.startswith("I do not know your time zone, and this depends on it.")
        assert await statuses(at) == []
        told = await hears(at, "/remind in 2 hours: tea")
        assert "on Friday 15 January 2027, 10:00 (UTC): tea" in told
        assert told.endswith("`/timezone Europe/Berlin`, for example, sets it.")
        for unknown in ("Atlantis", "posix/europe/berlin"):
            answer = await hears(at, f"/timezone {unknown}")
            assert answer.startswith(f"I know no time zone {unknown}. Write an area and a city")
        for written in ("america/new york", "AMERICA/NEW_YORK", "aSIA/tOKYO"):
            await hears(at, f"/timezone {written}")
        assert await hears(at, "/timezone") == "Your time zone is Asia/Tokyo."
        told = await hears(at, "/remind tomorrow at 9: stand-up")
        assert "on Saturday 16 January 2027, 09:00 (Asia/Tokyo): stand" in told
        assert "/timezone" not in told
        zones = select(func.count()).select_from(person_zones)
        assert await at.database.read(lambda conn: conn.execute(zones).scalar_one()) == 1


@pytest.mark.requirement("SCH-8")
async def test_what_cannot_be_understood_or_is_too_much_is_asked_back(house: House) -> None:
    async with house.begins() as at:
        assert (await hears(at, "/remind")).startswith("Say when and what:")
        assert "I find no time" in await hears(at, "/remind to call Bob")
        for often in ("1 second", "59 seconds"):
            assert await hears(at, f"/remind every {often}: tea") == (
                "Between two times there must be at least 5 minutes; say for example "
                '"every 2 hours: stretch".'
            )
        assert "4,000 characters" in await hears(at, f"/remind in 1 hour: {'x' * 4001}")
        assert (await hears(at, "/schedules stop it")).startswith(
            "I do not know `stop` here. `/sch"
        )
        await hears(at, "/remind in 1 hour: tea")

        def fill(conn: Connection) -> None:
            row = dict(conn.execute(select(schedules)).one()._mapping)
            for number in range(1, reminders.MOST_OPEN):
                conn.execute(schedules.insert().values({**row, "id": f"{row['id']}{number}"}))

        await at.database.write(fill, name="fill")
        assert (await hears(at, "/remind in 1 hour: tea")).startswith("You have 100 reminders")
        assert "I will remind" in await hears(at, "/remind in 1 hour: tea", user=MEMBER)
        assert len(await statuses(at)) == reminders.MOST_OPEN + 1


async def test_a_late_word_counts_from_when_it_was_said(house: House) -> None:
    async with house.begins() as at:
        now = house.clock.now_ms()
        answers = [
            await hears(at, f"/remind in {minutes} minutes: tea", sent_ms=now - 1_200_000)
            for minutes in (19, 21)
        ]
        assert answers[0] == "That time is over by now."
        assert "on Friday 15 January 2027, 08:01 (UTC): tea" in answers[1]


async def test_its_words_are_shown_as_they_are_and_call_nobody(house: House) -> None:
    async with house.begins() as at:
        await at.says("/remind in 1 minute: *@channel* <!here> of @bob\n# 1\u202e <@U1> ❤\ufe0f")
        await goes_on(at, 60)
        joined = f"@{WORD_JOINER}"
        (part,) = render_telegram(reminded(at)[0])
        assert part == TelegramPart(
            f"Reminder: *{joined}channel* <!here> of {joined}bob\n# 1 <{joined}U1> ❤\ufe0f", ()
        )


@pytest.mark.requirement("SCH-5")
async def test_one_that_cannot_be_read_delays_no_other(house: House) -> None:
    async with house.begins() as at:
        for name in ("Ann", "Bob"):
            await at.says(f"/remind in 1 minute: call {name}")

        def spoil(conn: Connection) -> None:
            broken = schedules.c.deliver_text == "call Ann"
            conn.execute(update(schedules).where(broken).values(cadence=json.dumps({"type": "x"})))

        await at.database.write(spoil, name="spoil")
        await goes_on(at, 60)
        assert reminded(at) == ["Reminder: call Bob"]
        assert await statuses(at) == ["paused", "completed"]
        listed = await hears(at, "/schedules")
        assert "paused, because cadence.type: must be once, interval or cron: call Ann" in listed
        code = listed.split("`")[1]
        assert (await hears(at, f"/schedules resume {code}")).startswith("It cannot go on: ")
        assert await hears(at, f"/schedules cancel {code}") == "Cancelled: call Ann"


@pytest.mark.requirement("SCH-5")
async def test_where_nobody_can_hear_it_any_more_it_is_paused_until_somebody_resumes_it(
    house: House,
) -> None:
    async with house.begins() as at:
        code = code_in(await hears(at, "/remind every 5 minutes: stretch"))
        at.chat.failures = [DeliveryRejected("the bot was removed from the chat")]
        await goes_on(at, 300)
        assert reminded(at) == []
        await goes_on(at, 300)
        assert await fires(at) == [("fired", ""), ("skipped", UNDELIVERED)]
        assert await statuses(at) == ["paused"]
        assert (await hears(at, f"/schedules resume {code}")).startswith("It goes on: next on ")
        await goes_on(at, 300)
        assert reminded(at) == ["Reminder: stretch"]


@pytest.mark.requirement("SCH-2")
async def test_one_that_is_still_on_its_way_is_followed_by_no_other(house: House) -> None:
    async with house.begins() as at:
        await hears(at, "/remind every 5 minutes: stretch")

        def delay(conn: Connection) -> None:
            conn.execute(update(outbox).values(state="pending", next_ms=1 << 60))

        await goes_on(at, 300)
        assert reminded(at) == ["Reminder: stretch"]
        await at.database.write(delay, name="delay")
        await goes_on(at, 300)
        assert await fires(at) == [("fired", ""), ("skipped", STILL_ON_ITS_WAY)]
        assert reminded(at) == ["Reminder: stretch"]
        assert await statuses(at) == ["active"]


@pytest.mark.requirement("SCH-6")
async def test_one_that_is_due_once_fires_once_though_its_time_was_put_forward(
    house: House,
) -> None:
    async with house.begins() as at:
        code = code_in(await hears(at, "/remind in 10 minutes to stretch"))
        await hears(at, f"/schedules pause {code}")

        def shorten(conn: Connection) -> None:
            conn.execute(update(schedules).values(remaining_ms=60_000))

        await at.database.write(shorten, name="shorten")
        await hears(at, f"/schedules resume {code}")
        await goes_on(at, 60)
        assert await statuses(at) == ["completed"]
        await goes_on(at, 600)
        assert reminded(at) == ["Reminder: stretch"]


@pytest.mark.requirement("SCH-5")
async def test_what_a_later_version_asks_the_model_is_left_to_it(house: House) -> None:
    async with house.begins() as at:
        await hears(at, "/remind in 1 minute to stretch")

        def ask(conn: Connection) -> None:
            conn.execute(update(schedules).values(deliver_text=None))

        await at.database.write(ask, name="ask")
        await goes_on(at, 60)
        assert await fires(at) == []
        assert await statuses(at) == ["active"]


async def test_a_deleted_conversation_takes_its_own_along(house: House) -> None:
    async with house.begins() as at:
        accepted = await at.says("/remind in 1 minute: call Bob")
        await hears(at, "/remind in 1 minute: tea", user=MEMBER)
        await at.sees(1, HERE)
        await goes_on(at, 1)
        await keeping(at).delete(accepted.session_id or "")
        await goes_on(at, 60)
        assert reminded(at) == ["Reminder: tea"]
        texts = select(schedules.c.deliver_text)
        assert await at.database.read(lambda conn: list(conn.execute(texts).scalars())) == ["tea"]
        words = select(outbox.c.message).where(outbox.c.message.contains("Bob"))
        assert await at.database.read(lambda conn: conn.execute(words).first()) is None
