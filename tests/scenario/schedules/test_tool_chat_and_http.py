"""Schedules by each way in which they are driven: one set of assertions on the same rows and words.

`tool` is a call that the offline model makes in its loop, `sentence` what a person says to it in
their own words, `command` the words `/remind` and `/schedules`, and `http` the API.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import aiohttp
import pytest
from sqlalchemy import select, update

from adapters.models.offline import OfflineModel
from gateway.http.app import build_app
from gateway.http.server import serve
from gateway.http.services import HttpServices, HttpSettings
from runtime.domain.ids import code_of
from runtime.features.schedules.tables import schedule_fires, schedules
from runtime.features.schedules.times_in_words import told
from runtime.intake.control import Control, ControlServices, ControlSettings
from runtime.intake.logins import Logins
from runtime.sessions.tables import audit, events
from runtime.store import Connection
from runtime.views.reader import Views
from tests.scenario.engine import OWNER, World
from tests.scenario.harness import ADMIN
from tests.scenario.schedules.scheduling import Desk, desk
from tests.scenario.schedules.test_reminders import HERE, House, goes_on, hears, house, reminded
from tests.support.kinds import KINDS

__all__ = ["house"]
pytestmark = pytest.mark.requirement("SCH-1", "SCH-6", "SCH-8", "MSG-12", "API-4")
ZONE: Final = "Europe/Berlin"
WEEKDAYS: Final = "every weekday at 9"
NOON: Final = "every day at 12:00"
TEN_MINUTES: Final = "in 10 minutes"
NOW_MS: Final = 1_800_000_000_000
CADENCES: Final[Mapping[str, dict[str, object]]] = {
    WEEKDAYS: {"type": "cron", "expression": "0 9 * * 1-5", "timezone": ZONE},
    NOON: {"type": "cron", "expression": "0 12 * * *", "timezone": ZONE},
    TEN_MINUTES: {"type": "once", "fire_at_ms": NOW_MS + 600_000},
}
"""What a program says in the place of these words."""
WRONG: Final[Mapping[str, tuple[str, dict[str, object], tuple[str, ...]]]] = {
    "past": (
        "on 1 January 2020 at 9",
        {"type": "once", "fire_at_ms": 1_577_836_800_000},
        ("lies in the past", "cadence.fire_at_ms: must be in the future, in milliseconds"),
    ),
    "never": (
        "on 31 February at 9",
        {"type": "cron", "expression": "0 9 31 2 *"},
        ("No such day comes", "must come at some time, and this never does", "must have a day"),
    ),
    "not understood": (
        "every blue moon",
        {"type": "cron", "expression": "every blue moon"},
        ("I find no time that I understand", "must have 5 fields"),
    ),
    "too often": (
        "every 1 second",
        {"type": "interval", "every_seconds": 1},
        ("there must be at least 5 minutes", "greater than or equal to 5"),
    ),
}
"""Words, what a program would say for them, and what is answered to either."""


class Refused(Exception):
    """A way said no, and why."""


@dataclass(frozen=True)
class Reply:
    """What is answered: the times, the zone and the place that it names, and all its words."""

    times: Sequence[str]
    zone: str
    place: str
    text: str


class Way(ABC):
    """One way to drive schedules, for the owner in their own chat."""

    def __init__(self, at: World, home: Desk) -> None:
        self.at, self.home = at, home

    @abstractmethod
    async def create(self, when: str, text: str) -> Reply: ...

    @abstractmethod
    async def listed(self) -> str: ...

    @abstractmethod
    async def get(self, one: str) -> Reply: ...

    @abstractmethod
    async def update(self, one: str, when: str) -> Reply: ...

    @abstractmethod
    async def does(self, verb: str, one: str) -> str: ...

    async def refuses(self, name: str) -> str:
        """What is answered to a time that is wrong."""
        with pytest.raises(Refused) as caught:
            await self.create(WRONG[name][0], "tea")
        return str(caught.value)


def reply(text: str) -> Reply:
    times = re.findall(r"^\s*- (\w+day .+ \(.+\))$", text, re.MULTILINE)
    zones = set(re.findall(r"\(([A-Z]\w+/\w+|UTC)\)", text))
    return Reply(times, zones.pop() if len(zones) == 1 else "", _place(text), text)


def _place(text: str) -> str:
    found = re.search(r"in this (chat|channel|thread|group)", text)
    return found.group() if found else ""


NO: Final = re.compile(
    r"not_found|There is no reminder|in the past|No such day|no time that I|must be|must have"
    r"|cannot go on|is (?:cancelled|completed|over)"
)


def checked(text: str) -> str:
    """An answer in words. Raises `Refused` where it says no."""
    if NO.search(text):
        raise Refused(text)
    return text


class ByTool(Way):
    async def _call(self, tool: str, **given: object) -> str:
        asked = f"call the tool schedule_{tool} with {json.dumps(given)}"
        return checked(await hears(self.at, asked))

    async def create(self, when: str, text: str) -> Reply:
        return reply(await self._call("create", when=when, text=text))

    async def listed(self) -> str:
        return await self._call("list")

    async def get(self, one: str) -> Reply:
        return reply(await self._call("get", id=one))

    async def update(self, one: str, when: str) -> Reply:
        return reply(await self._call("update", id=one, when=when))

    async def does(self, verb: str, one: str) -> str:
        return await self._call(verb, id=one)


class BySentence(Way):
    async def _say(self, text: str) -> str:
        return checked(await hears(self.at, text))

    async def create(self, when: str, text: str) -> Reply:
        said = f"{when} remind me to {text}" if when.startswith("in ") else ""
        return reply(await self._say(said or f"remind me {when} to {text}"))

    async def listed(self) -> str:
        return await self._say("list my schedules")

    async def get(self, one: str) -> Reply:
        return reply(await self._say(f"show schedule {one}"))

    async def update(self, one: str, when: str) -> Reply:
        return reply(await self._say(f"move schedule {one} to {when}"))

    async def does(self, verb: str, one: str) -> str:
        return await self._say(f"{verb} schedule {code_of(one)}")

    async def refuses(self, name: str) -> str:
        """A time in words that the model passes on as it was said."""
        with pytest.raises(Refused) as caught:
            await self._say(f"remind me {WRONG[name][0]}: tea")
        return str(caught.value)


class ByCommand(Way):
    async def _say(self, text: str) -> str:
        return checked(await hears(self.at, text))

    async def create(self, when: str, text: str) -> Reply:
        return reply(await self._say(f"/remind {when}: {text}"))

    async def listed(self) -> str:
        return await self._say("/schedules")

    async def get(self, one: str) -> Reply:
        return reply(await self._say(f"/schedules show {code_of(one)}"))

    async def update(self, one: str, when: str) -> Reply:
        return reply(await self._say(f"/schedules change {code_of(one)} {when}"))

    async def does(self, verb: str, one: str) -> str:
        return await self._say(f"/schedules {verb} {code_of(one)}")


class ByHttp(Way):
    client: aiohttp.ClientSession
    url: str

    async def _ask(self, method: str, path: str = "", body: object = None) -> Any:
        headers = {"Authorization": f"Bearer {ADMIN}"}
        url = f"{self.url}/v1/schedules{path}"
        async with self.client.request(method, url, json=body, headers=headers) as response:
            found = await response.json()
            assert response.status < 500, found
            if response.status >= 400:
                raise Refused(f"{response.status} {found['detail']} {found.get('state', '')}")
            return found

    def _body(self, cadence: object, text: str) -> dict[str, object]:
        return {
            "name": text,
            "target_session_id": self.home.session_id,
            "place": {"channel": "test", "account": "A1", "chat": HERE},
            "owner_person_id": self.home.person_id,
            "timezone": ZONE,
            "deliver_text": text,
            "cadence": cadence,
        }

    def _reply(self, answer: Any) -> Reply:
        view = answer["schedule"]
        times = [told(one, view["timezone"]) for one in view["next_fires_at_ms"]]
        mine = (view["place"]["chat"], view["place"]["chat_kind"]) == (HERE, "direct")
        return Reply(times, view["timezone"], "in this chat" if mine else "", json.dumps(view))

    async def create(self, when: str, text: str) -> Reply:
        return self._reply(await self._ask("POST", "", self._body(CADENCES[when], text)))

    async def listed(self) -> str:
        page = await self._ask("GET", f"?session_id={self.home.session_id}")
        open_now = [one for one in page["items"] if one["status"] in ("active", "paused")]
        return " ".join(code_of(one["schedule_id"]) for one in open_now)

    async def get(self, one: str) -> Reply:
        return self._reply(await self._ask("GET", f"/{one}"))

    async def update(self, one: str, when: str) -> Reply:
        cadence = CADENCES.get(when) or WRONG["past"][1]
        return self._reply(await self._ask("PATCH", f"/{one}", {"cadence": cadence}))

    async def does(self, verb: str, one: str) -> str:
        return json.dumps(await self._ask("POST", f"/{one}/{verb}", {}))

    async def refuses(self, name: str) -> str:
        with pytest.raises(Refused, match=r"^422") as caught:
            await self._ask("POST", "", self._body(WRONG[name][1], "tea"))
        return str(caught.value)


WAYS: Final = (ByTool, BySentence, ByCommand, ByHttp)


@asynccontextmanager
async def served(way: Way) -> AsyncIterator[Way]:
    """The way, with a server before it where it needs one."""
    if not isinstance(way, ByHttp):
        yield way
        return
    parts = way.at.engine.parts
    control = ControlServices(
        way.at.engine.units,
        parts.clock,
        way.at.engine.intake,
        lambda: ControlSettings(workspace=way.at.workspace),
    )
    services = HttpServices(
        settings=HttpSettings(admin_tokens=lambda: (ADMIN,), port=0),
        views=Views(parts.database, KINDS),
        control=Control(control),
        logins=Logins(parts.database, parts.clock),
        bus=parts.bus,
        clock=parts.clock,
        render=lambda text: [text],
        render_growing=lambda text: [text],
        workspace=way.at.workspace,
    )
    async with (
        serve(build_app(services), services.settings) as port,
        aiohttp.ClientSession() as client,
    ):
        way.client, way.url = client, f"http://127.0.0.1:{port}"
        yield way


@pytest.fixture(params=WAYS, ids=lambda way: way.__name__)
async def way(request: pytest.FixtureRequest, house: House) -> AsyncIterator[Way]:
    async with house.begins(OfflineModel()) as at:
        home = await desk(at)
        await hears(at, f"/timezone {ZONE}")
        async with served(request.param(at, home)) as made:
            yield made


async def rows(at: World) -> list[dict[str, Any]]:
    """What is kept of each schedule, without what differs from one to the next."""

    def look(conn: Connection) -> list[dict[str, Any]]:
        found = conn.execute(select(schedules).order_by(schedules.c.id)).all()
        return [dict(row._mapping) for row in found]

    return await at.database.read(look)


async def one_row(at: World) -> dict[str, Any]:
    (row,) = await rows(at)
    return row


async def noted(at: World, schedule_id: str) -> list[str]:
    """What became of it, as the audit log says, and as the events of its conversation say too."""

    def look(conn: Connection) -> list[str]:
        query = select(audit.c.action, audit.c.data).order_by(audit.c.position)
        mine = [row.action for row in conn.execute(query) if schedule_id in json.dumps(row.data)]
        actions = [action.removeprefix("schedule.") for action in mine]
        assert [one.get("change") for one in _events(conn, "schedule.changed")] == actions
        return actions

    return await at.database.read(look)


def _events(conn: Connection, kind: str) -> list[dict[str, Any]]:
    query = select(events.c.data).where(events.c.kind == kind).order_by(events.c.seq)
    return [
        json.loads(one) if isinstance(one, str) else one for one in conn.execute(query).scalars()
    ]


FRIDAY_NOON: Final = "Friday 15 January 2027, 12:00 (Europe/Berlin)"
MORNINGS: Final = [
    "Monday 18 January 2027, 09:00 (Europe/Berlin)",
    "Tuesday 19 January 2027, 09:00 (Europe/Berlin)",
    "Wednesday 20 January 2027, 09:00 (Europe/Berlin)",
]
NOONS: Final = [
    f"{day} January 2027, 12:00 (Europe/Berlin)"
    for day in ("Friday 15", "Saturday 16", "Sunday 17")
]


async def test_it_is_made_and_the_answer_names_the_next_times_the_zone_and_the_place(
    way: Way,
) -> None:
    answer = await way.create(WEEKDAYS, "post the numbers")
    assert (answer.times, answer.zone, answer.place) == (MORNINGS, ZONE, "in this chat")
    row = await one_row(way.at)
    kept = {
        "name": "post the numbers",
        "deliver_text": "post the numbers",
        "request": None,
        "lane_id": None,
        "session_id": way.home.session_id,
        "owner_person_id": way.home.person_id,
        "owner_user_id": OWNER,
        "channel": "test",
        "account": "A1",
        "chat": HERE,
        "chat_kind": "direct",
        "thread": None,
        "timezone": ZONE,
        "anchor_ms": NOW_MS,
        "status": "active",
        "overlap": "skip",
        "misfire": '{"type":"coalesce_once"}',
        "max_executions": None,
        "execution_count": 0,
    }
    assert {name: row[name] for name in kept} == kept
    assert json.loads(row["cadence"]) == CADENCES[WEEKDAYS]
    assert told(row["next_fire_ms"], ZONE) == MORNINGS[0]
    assert await noted(way.at, row["id"]) == ["created"]
    assert code_of(row["id"]) in await way.listed()
    shown = await way.get(row["id"])
    assert (shown.times, shown.zone, shown.place) == (MORNINGS, ZONE, "in this chat")
    assert "post the numbers" in shown.text


async def test_it_comes_once_in_the_place_and_is_over(way: Way) -> None:
    await way.create(TEN_MINUTES, "stretch")
    await goes_on(way.at, 599)
    assert reminded(way.at) == []
    await goes_on(way.at, 1)
    assert reminded(way.at, HERE) == ["Reminder: stretch"]
    row = await one_row(way.at)
    assert (row["status"], row["execution_count"], row["last_fire_ms"]) == (
        *("completed", 1),
        NOW_MS + 600_000,
    )
    assert code_of(row["id"]) not in await way.listed()
    (told,) = await way.at.database.read(lambda conn: _events(conn, "schedule.fired"))
    assert (told["schedule_id"], told["fire_at_ms"]) == (row["id"], NOW_MS + 600_000)


async def test_another_time_is_given_and_told(way: Way) -> None:
    await way.create(WEEKDAYS, "tea")
    before = await one_row(way.at)
    answer = await way.update(before["id"], NOON)
    assert (answer.times, answer.zone, answer.place) == (NOONS, ZONE, "in this chat")
    after = await one_row(way.at)
    assert json.loads(after["cadence"]) == CADENCES[NOON]
    assert told(after["next_fire_ms"], ZONE) == FRIDAY_NOON
    assert (after["deliver_text"], after["name"]) == (before["deliver_text"], before["name"])
    with pytest.raises(Refused):
        await way.update(before["id"], WRONG["past"][0])
    assert await one_row(way.at) == after
    assert await noted(way.at, before["id"]) == ["created", "changed"]


async def test_it_is_paused_with_the_time_that_was_left_and_goes_on(way: Way) -> None:
    await way.create(TEN_MINUTES, "tea")
    one = (await one_row(way.at))["id"]
    await goes_on(way.at, 60)
    for _ in range(2):
        await way.does("pause", one)
        row = await one_row(way.at)
        assert (row["status"], row["next_fire_ms"], row["remaining_ms"]) == (
            "paused",
            None,
            540_000,
        )
    assert code_of(one) in await way.listed()
    await goes_on(way.at, 100)
    for _ in range(2):
        await way.does("resume", one)
        row = await one_row(way.at)
        assert (row["status"], row["remaining_ms"]) == ("active", None)
        assert row["next_fire_ms"] == NOW_MS + 700_000
    await goes_on(way.at, 540)
    assert reminded(way.at) == ["Reminder: tea"]
    assert await noted(way.at, one) == ["created", "paused", "resumed"]


async def test_it_is_triggered_beside_its_own_times(way: Way) -> None:
    await way.create(NOON, "tea")
    before = await one_row(way.at)
    await way.does("trigger", before["id"])
    await goes_on(way.at, 1)
    assert reminded(way.at) == ["Reminder: tea"]
    after = await one_row(way.at)
    assert after["next_fire_ms"] == before["next_fire_ms"]
    assert (after["status"], after["execution_count"]) == ("active", 1)
    fired = await way.at.database.read(lambda conn: conn.execute(select(schedule_fires)).all())
    assert [(one.status, one.slot_ms) for one in fired] == [("fired", NOW_MS)]
    assert await noted(way.at, before["id"]) == ["created", "triggered"]


async def test_it_is_cancelled_for_good(way: Way) -> None:
    await way.create(TEN_MINUTES, "tea")
    one = (await one_row(way.at))["id"]
    await way.does("cancel", one)
    row = await one_row(way.at)
    assert (row["status"], row["next_fire_ms"]) == ("cancelled", None)
    assert code_of(one) not in await way.listed()
    for verb in ("pause", "resume", "trigger"):
        with pytest.raises(Refused):
            await way.does(verb, one)
    with pytest.raises(Refused):
        await way.update(one, NOON)
    assert await one_row(way.at) == row
    await goes_on(way.at, 600)
    assert reminded(way.at) == []
    assert await noted(way.at, one) == ["created", "cancelled"]


def _break(conn: Connection, stored: str) -> None:
    conn.execute(update(schedules).values(cadence=stored))


async def test_one_whose_times_cannot_be_read_is_not_resumed_and_says_why(way: Way) -> None:
    await way.create(NOON, "tea")
    one = (await one_row(way.at))["id"]
    await way.does("pause", one)
    for stored in ("{", '{"type": "cron", "expression": "later"}'):
        await way.at.database.write(partial(_break, stored=stored), name="broken")
        with pytest.raises(Refused, match="cadence"):
            await way.does("resume", one)
    assert (await one_row(way.at))["status"] == "paused"


async def test_one_that_is_not_there_is_not_found(way: Way) -> None:
    nobody = "sch_00000000000000000000000000"
    for verb in ("pause", "resume", "trigger", "cancel"):
        with pytest.raises(Refused):
            await way.does(verb, nobody)
    for ask in (way.get(nobody), way.update(nobody, NOON)):
        with pytest.raises(Refused):
            await ask


@pytest.mark.parametrize("name", WRONG)
async def test_a_time_that_is_wrong_is_asked_back_and_never_guessed(way: Way, name: str) -> None:
    answer = await way.refuses(name)
    assert any(rule in answer for rule in WRONG[name][2]), answer
    assert await rows(way.at) == []
