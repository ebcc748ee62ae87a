"""Schedules that ask the model, driven by the service behind HTTP, under a clock that moves."""

from dataclasses import dataclass, field

from runtime.features.schedules.control import ScheduleControl
from runtime.features.schedules.model import (
    ExecutionView,
    ScheduleCreateRequest,
    ScheduleView,
)
from runtime.sessions import people, runs
from runtime.store import Connection
from tests.fakes.clock import FakeClock
from tests.fakes.model import Gate, Said, ScriptedModel
from tests.scenario.engine import OWNER, World
from tests.scenario.schedules.test_reminders import goes_on

MINUTE = {"type": "interval", "every_seconds": 60}
HERE = f"D-{OWNER}"


def answering(*said: Said | str, hello: str = "hello") -> ScriptedModel:
    """A model that answers the message that makes a conversation, and then the schedules."""
    return ScriptedModel([hello, *said])


def in_a_minute(clock: FakeClock) -> dict[str, object]:
    """The cadence of one that is due once."""
    return {"type": "once", "fire_at_ms": clock.now_ms() + 60_000}


@dataclass
class Desk:
    """A conversation, and the schedules that are made for it."""

    at: World
    control: ScheduleControl
    session_id: str
    person_id: str
    made: list[str] = field(default_factory=list)

    async def make(self, *, here: bool = False, **asked: object) -> str:
        """A schedule's id; `here` lets it run in a lane of its own."""
        values: dict[str, object] = {
            "name": "numbers",
            "target_session_id": self.session_id,
            "owner_person_id": self.person_id,
            "cadence": MINUTE,
            **asked,
        }
        if "deliver_text" not in asked:
            values.setdefault("request", {"content": "post the numbers"})
        if here:
            values["place"] = {"channel": "test", "account": "A1", "chat": HERE}
        view, _ = await self.control.create(ScheduleCreateRequest.model_validate(values))
        self.made.append(view.schedule_id)
        return view.schedule_id

    async def view(self, schedule_id: str = "") -> ScheduleView:
        """A schedule as it stands; the one made last, where none is named."""
        return await self.control.get(schedule_id or self.made[-1])

    async def fires(self, schedule_id: str = "") -> list[ExecutionView]:
        """What became of its times, the earliest first."""
        return list(reversed((await self.view(schedule_id)).recent_executions))

    async def statuses(self, schedule_id: str = "") -> list[str]:
        """The same, as words."""
        return [one.status for one in await self.fires(schedule_id)]

    async def passes(self, seconds: float) -> None:
        """Time goes on, and all that comes of it is done."""
        await goes_on(self.at, seconds)


async def desk(at: World) -> Desk:
    """The conversation of the owner, made by a message that is answered."""
    accepted = await at.says("hi", message_id="hello")
    await at.sees(1, HERE)

    def look(conn: Connection) -> str:
        account = people.find(conn, channel="test", account="A1", user_id=OWNER)
        if account is not None:
            return account.speaker.person_id
        return runs.get(conn, accepted.run_id or "").speaker.person_id

    person = await at.database.read(look)
    return again(at, accepted.session_id or "", person)


def again(at: World, session_id: str, person_id: str) -> Desk:
    """The same conversation after a restart."""
    return Desk(at, ScheduleControl(at.engine.units, "owner"), session_id, person_id)


def held() -> tuple[Gate, Said]:
    """A response that waits until its gate is opened."""
    gate = Gate()
    return gate, Said("done", before=gate)
