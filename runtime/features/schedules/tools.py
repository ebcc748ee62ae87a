"""The tools by which a model keeps schedules for whoever asked it (SCH-8).

They act for the person of their run, in the conversation and the chat of that run; the schedules of
any other conversation do not exist for them. A call that runs again changes nothing more.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pydantic import Field, ValidationError
from typing_extensions import override

from runtime.domain.errors import Conflict, InvalidInput, NotFound, ToolError
from runtime.domain.ids import code_of
from runtime.domain.messages import ChatAddress
from runtime.domain.people import Speaker, Trust
from runtime.domain.printable import one_line, quoted
from runtime.domain.request_keys import request_key
from runtime.domain.tools import TO_THE_PERSON, Effect, Touches
from runtime.domain.value import JsonObject
from runtime.features.schedules import changes, heartbeats, rows
from runtime.features.schedules.buttons import NOT_YOURS
from runtime.features.schedules.cadence import Cadence
from runtime.features.schedules.changes import Making, Owner
from runtime.features.schedules.commands import (
    MOST_LISTED,
    TAINTED,
    USUAL,
    ZONE_FIRST,
    understood,
    zone_for,
)
from runtime.features.schedules.descriptions import belongs_to, described
from runtime.features.schedules.model import (
    MOST_GATE,
    MOST_REMINDED,
    Gate,
    ScheduleChange,
    ScheduleCreateRequest,
    ScheduledRequest,
)
from runtime.features.schedules.reminders import MOST_OPEN, is_of_one_chat
from runtime.features.schedules.rows import Schedule
from runtime.features.schedules.times_in_words import Asked, Read, told
from runtime.sessions import idempotency, runs, sessions
from runtime.sessions.runs import Run
from runtime.sessions.unit import Unit, Units
from runtime.store import Connection
from runtime.store.database import now_ms
from runtime.tools.base import A, AnyTool, Arguments, Face, Tool, ToolContext, ToolOutput

FAMILY: Final = "schedules"
MOST_LOOKED_AT: Final = 200
"""The newest of a conversation, among which a code names one."""
OTHERS: Final = "somebody else's schedule"
ELSEWHERE: Final = (
    "observe: in a group, only what is said in this chat can be observed; the person can ask for "
    "another session in a direct chat"
)
NOT_UNDERSTOOD: Final = (
    f"the time is not understood: say it in other words, or ask the person, {TO_THE_PERSON}"
)
_NAME: Final = 100


class CreateArguments(Arguments):
    when: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        pattern=r"\S",
        description="time in words: in 10 minutes, tomorrow at 9, every weekday at 9; "
        "left out where the text names it",
    )
    text: str = Field(min_length=1, max_length=MOST_REMINDED, pattern=r"\S")
    ask: bool = Field(
        default=False, description="true: you are asked the text; false: it is said as it stands"
    )
    name: str = Field(default="", max_length=200)
    gate: str | None = Field(
        default=None,
        min_length=1,
        max_length=MOST_GATE,
        pattern=r"\S",
        description="shell command, asked about first: you are asked only if it prints news",
    )
    watch: str | None = Field(
        default=None,
        min_length=1,
        max_length=1_000,
        description="path: you are asked about what changed under it",
    )
    observe: str | None = Field(
        default=None,
        max_length=64,
        pattern=r"^[A-Za-z0-9_]+$",
        description="id of a session: you are asked about what was said in it",
    )
    heartbeat: bool = Field(
        default=False, description="you are asked briefly, and are heard only if you choose to"
    )

    @property
    def asks(self) -> bool:
        """Whether a run is made of it: only that can have a condition."""
        conditions = (self.gate, self.watch, self.observe)
        return self.ask or self.heartbeat or any(one is not None for one in conditions)


class ListArguments(Arguments):
    pass


class OneArguments(Arguments):
    id: str = Field(min_length=1, max_length=64, description="id or code")


class UpdateArguments(OneArguments):
    when: str | None = Field(default=None, min_length=1, max_length=200, pattern=r"\S")
    text: str | None = Field(default=None, min_length=1, max_length=MOST_REMINDED, pattern=r"\S")
    gate: str | None = Field(default=None, min_length=1, max_length=MOST_GATE, pattern=r"\S")
    name: str | None = Field(default=None, min_length=1, max_length=200, pattern=r"\S")


@dataclass(frozen=True, slots=True)
class Caller:
    """In whose name a call is made: its run, and the conversation that this is of. A run of a
    schedule is one of the conversation in which that was made."""

    conn: Connection
    run: Run
    session_id: str
    tainted: bool

    @classmethod
    def of(cls, conn: Connection, context: ToolContext) -> "Caller":
        """The caller of a call."""
        conversation = rows.conversation_of(conn, context.session_id)
        run = runs.get(conn, context.run_id)
        tainted = run.tainted or context.tainted
        return cls(conn, run, conversation or context.session_id, tainted)

    def sees(self, schedule: Schedule) -> bool:
        """Whether one is of this conversation, and where that has several chats, of this chat."""
        if schedule.session_id != self.session_id:
            return False
        there, here = schedule.place, self.run.target
        same = (there.channel, there.account, there.chat_id) == (
            here.channel,
            here.account,
            here.chat_id,
        )
        return same or is_of_one_chat(sessions.get(self.conn, self.session_id))

    def there(self) -> Sequence[Schedule]:
        """The newest that it sees, over or not."""
        found = rows.page(self.conn, rows.Which(self.session_id), limit=MOST_LOOKED_AT, before=None)
        return [one for one in found if self.sees(one)]

    def one(self, name: str) -> Schedule:
        """The one that an id or a code names. Raises `ToolError` for any that it does not see."""
        whole = rows.find(self.conn, name)
        found = [one for one in self.there() if code_of(one.id) == name.lower()]
        if whole is not None and self.sees(whole):
            found = [whole]
        if len(found) != 1:
            raise ToolError("not_found: no schedule of this conversation has this id or code")
        return found[0]

    def held(self, unit: Unit, name: str) -> Schedule:
        """The same, for a change. Raises `ToolError` where it is somebody else's."""
        found = self.one(name)
        speaker = self.run.speaker
        if not belongs_to(speaker, found) and speaker.trust is not Trust.OWNER:
            raise ToolError(NOT_YOURS)
        return changes.held(unit, found.id)

    def cadence(self, when: str) -> tuple[Cadence, str]:
        """What a time in words means to the person, and in which zone. Raises `ToolError` with what
        to ask them."""
        found, zone = self._understood(when, text_needed=False)
        if found.text:
            more = f'{quoted(when)} holds more than a time; say for example "tomorrow at 9".'
            raise ToolError(f"{NOT_UNDERSTOOD}{more}")
        return found.cadence, zone

    def sentence(self, said: str) -> tuple[Read, str]:
        """The time and the text in what the person said, and the zone. Raises as `cadence`."""
        return self._understood(said, text_needed=True)

    def _understood(self, words: str, *, text_needed: bool) -> tuple[Read, str]:
        known = zone_for(self.conn, self.run.speaker)
        found = understood(words, now_ms(self.conn), known, text_needed=text_needed)
        if found is None:
            raise ToolError(f"ask the person for their time zone, {TO_THE_PERSON}{ZONE_FIRST}")
        if isinstance(found, Asked):
            raise ToolError(f"{NOT_UNDERSTOOD}{found.sentence}")
        return found, known or USUAL

    def must_be_clean(self) -> None:
        """Refuse what would carry words from outside past the marks that they have."""
        if self.tainted:
            raise ToolError(TAINTED)

    def must_be_heard_here(self, session_id: str) -> None:
        """Refuse to tell a group what was said elsewhere, whatever the person may read."""
        here = self.run.target
        if here.chat_kind == "direct":
            return
        try:
            there = sessions.get(self.conn, session_id).address
        except NotFound:
            # Where it is, and whether there is such a one, is told to nobody here.
            raise ToolError(ELSEWHERE) from None
        if (there.channel, there.account, there.chat_id) != (
            here.channel,
            here.account,
            here.chat_id,
        ):
            raise ToolError(ELSEWHERE)

    def told(self, text: str, shown: Sequence[Schedule]) -> "Told":
        """An answer that shows schedules: what somebody else wrote is fenced (TOOL-11)."""
        return Told(text, any(not belongs_to(self.run.speaker, one) for one in shown))


@dataclass(frozen=True, slots=True)
class Told:
    """An answer, and whether it holds words of somebody other than the person of the run."""

    text: str
    of_others: bool = False

    @property
    def output(self) -> ToolOutput:
        """The same as the result of a call."""
        source = OTHERS if self.of_others else ""
        return ToolOutput(self.text, untrusted=self.of_others, source=source, outside=False)


Work = Callable[[Unit, Caller], Told]


class _ScheduleTool(Tool[A]):
    """What all of them have: they touch nothing but schedules of their own conversation."""

    family = FAMILY
    own_words = True
    effect = Effect.IDEMPOTENT

    def __init__(self, units: Units) -> None:
        self._units = units

    @override
    def touches(self, arguments: A, context: ToolContext) -> Touches:
        return Touches(subject=arguments.id if isinstance(arguments, OneArguments) else "")

    async def _once(self, arguments: A, context: ToolContext, work: Work) -> ToolOutput:
        """Do it in one unit, and only once for a call, however often that runs."""
        asked: JsonObject = {"tool": self.name, "arguments": arguments.model_dump(mode="json")}
        call = request_key("schedule-call", f"{context.run_id}:{context.call_id}", asked)
        key = None if call is None else replace(call, kept_ms=None)

        def unit_of(unit: Unit) -> Told:
            kept = idempotency.claim(unit.conn, key)
            if kept is not None:
                return Told(str(kept["answer"]), bool(kept.get("of_others")))
            told = work(unit, Caller.of(unit.conn, context))
            idempotency.keep(unit.conn, key, {"answer": told.text, "of_others": told.of_others})
            return told

        try:
            told = await self._units.run(unit_of, name=self.name.replace("_", "-"))
        except Conflict as error:
            state = f" ({error.state})" if error.state else ""
            raise ToolError(f"{error}{state}") from error
        except (InvalidInput, NotFound) as error:
            raise ToolError(str(error)) from error
        return told.output


class ScheduleCreate(_ScheduleTool[CreateArguments]):
    """Made for who asked in this run, in its chat."""

    name = "schedule_create"
    description = "Remind the person here, or have yourself asked something, at a time in words."
    arguments = CreateArguments
    example = '{"when": "every weekday at 9", "text": "Post the numbers.", "ask": true}'

    @override
    async def run(self, arguments: CreateArguments, context: ToolContext) -> ToolOutput:
        def work(unit: Unit, caller: Caller) -> Told:
            person, place = caller.run.speaker, caller.run.target
            caller.must_be_clean()
            if arguments.observe is not None:
                caller.must_be_heard_here(arguments.observe)
            if arguments.when is None:
                found, zone = caller.sentence(arguments.text)
                cadence, wanted = found.cadence, arguments.model_copy(update={"text": found.text})
            else:
                (cadence, zone), wanted = caller.cadence(arguments.when), arguments
            if rows.count_open(unit.conn, person.person_id) >= MOST_OPEN:
                raise ToolError(f"the person has {MOST_OPEN} schedules already, in all chats")
            asked = _asked(wanted, caller, cadence, zone)
            owner = Owner(person.person_id, person.user_id, person.trust)
            by = person.person_id
            making = Making(owner=owner, place=place, by=by, own_lane=True, worded_by_model=True)
            made = changes.make(unit, asked, making)
            return Told(_shown(made, place))

        return await self._once(arguments, context, work)


class ScheduleList(_ScheduleTool[ListArguments]):
    """Those that are not over."""

    name = "schedule_list"
    description = "The schedules of this conversation that are not over."
    arguments = ListArguments
    effect = Effect.READ
    example = "{}"

    @override
    async def run(self, arguments: ListArguments, context: ToolContext) -> ToolOutput:
        def look(conn: Connection) -> Told:
            caller = Caller.of(conn, context)
            here = rows.open_in(conn, caller.run.target, caller.session_id)
            found = [one for one in here if caller.sees(one)]
            lines = [_line(one, caller.run.speaker) for one in found[:MOST_LISTED]]
            if len(found) > MOST_LISTED:
                lines.append(f"and {len(found) - MOST_LISTED:,} more")
            return Told("\n".join(lines) or "Nothing is scheduled in this conversation.")

        return (await self._units.database.read(look)).output


class ScheduleGet(_ScheduleTool[OneArguments]):
    """One, over or not."""

    name = "schedule_get"
    description = "One schedule: what it says or asks, its next times, how it stands."
    arguments = OneArguments
    effect = Effect.READ
    example = '{"id": "x7k2m9"}'

    @override
    async def run(self, arguments: OneArguments, context: ToolContext) -> ToolOutput:
        def look(conn: Connection) -> Told:
            caller = Caller.of(conn, context)
            found = caller.one(arguments.id)
            return caller.told(_shown(found, caller.run.target), [found])

        return (await self._units.database.read(look)).output


class ScheduleUpdate(_ScheduleTool[UpdateArguments]):
    """What is left out stays."""

    name = "schedule_update"
    description = "Give a schedule another time, text or name; what is left out stays."
    arguments = UpdateArguments
    example = '{"id": "x7k2m9", "when": "every day at 10"}'

    @override
    async def run(self, arguments: UpdateArguments, context: ToolContext) -> ToolOutput:
        def work(unit: Unit, caller: Caller) -> Told:
            caller.must_be_clean()
            held = caller.held(unit, arguments.id)
            changed: dict[str, object] = {}
            if arguments.when is not None:
                changed["cadence"], changed["timezone"] = caller.cadence(arguments.when)
            if arguments.name is not None:
                changed["name"] = arguments.name
            if arguments.text is not None and held.asks is None:
                changed["deliver_text"] = arguments.text
            elif arguments.text is not None:
                changed["request"] = ScheduledRequest(content=arguments.text)
            if arguments.gate is not None:
                before = None if held.terms is None else held.terms.gate
                rest = {} if before is None else before.model_dump(exclude={"command"})
                changed["gate"] = Gate(command=arguments.gate, **rest)
            if not changed:
                raise ToolError("say what is to change: when, text, gate or name")
            asked = ScheduleChange.model_validate(changed)
            changes.revise(unit, held, asked, by=caller.run.speaker.person_id, by_model=True)
            return _now(unit, held, caller)

        return await self._once(arguments, context, work)


class _Move(_ScheduleTool[OneArguments]):
    """One that takes a schedule from one state to another."""

    arguments = OneArguments
    example = '{"id": "x7k2m9"}'

    @abstractmethod
    def move(self, unit: Unit, schedule: Schedule, by: str) -> None:
        """Do it. Raises `Conflict` where the state does not fit."""

    @override
    async def run(self, arguments: OneArguments, context: ToolContext) -> ToolOutput:
        def work(unit: Unit, caller: Caller) -> Told:
            held = caller.held(unit, arguments.id)
            self.move(unit, held, caller.run.speaker.person_id)
            return _now(unit, held, caller)

        return await self._once(arguments, context, work)


class SchedulePause(_Move):
    """The time that was left is kept."""

    name = "schedule_pause"
    description = "Stop a schedule until it is resumed; the time that was left is kept."

    @override
    def move(self, unit: Unit, schedule: Schedule, by: str) -> None:
        changes.pause(unit, schedule, by=by)


class ScheduleResume(_Move):
    """Let it go on."""

    name = "schedule_resume"
    description = "Let a paused schedule go on."

    @override
    def move(self, unit: Unit, schedule: Schedule, by: str) -> None:
        changes.resume(unit, schedule, by=by)


class ScheduleTrigger(_Move):
    """Beside its own times."""

    name = "schedule_trigger"
    description = "Let a schedule fire now, beside its own times."

    @override
    def move(self, unit: Unit, schedule: Schedule, by: str) -> None:
        changes.trigger(unit, schedule, by=by)


class ScheduleCancel(_Move):
    """A run of it that is at work goes on."""

    name = "schedule_cancel"
    description = "End a schedule for good; a run of it that is at work goes on."

    @override
    def move(self, unit: Unit, schedule: Schedule, by: str) -> None:
        changes.cancel(unit, schedule, by=by)


TOOLS: Final = (
    *(ScheduleCreate, ScheduleList, ScheduleGet, ScheduleUpdate),
    *(SchedulePause, ScheduleResume, ScheduleTrigger, ScheduleCancel),
)
FACES: Final = (*(Face(tool.name, tool.effect) for tool in TOOLS), heartbeats.FACE)
"""The tools of the feature, in the order in which they are made."""


def schedule_tools(units: Units) -> Sequence[AnyTool]:
    """All of them."""
    return [*(tool(units) for tool in TOOLS), heartbeats.GiveResult()]


def _now(unit: Unit, schedule: Schedule, caller: Caller) -> Told:
    """One as it stands behind a change of this unit."""
    changed = rows.find(unit.conn, schedule.id) or schedule
    return caller.told(_shown(changed, caller.run.target), [changed])


def _line(schedule: Schedule, reader: Speaker) -> str:
    when: str = schedule.status
    if schedule.next_fire_ms is not None:
        when = f"next on {told(schedule.next_fire_ms, schedule.timezone)}"
    words = "somebody else's; schedule_get shows its text"
    if belongs_to(reader, schedule):
        words = one_line(schedule.deliver_text or schedule.name, _NAME)
    return f"{code_of(schedule.id)} ({schedule.id}), {when}: {words}"


def _shown(schedule: Schedule, here: ChatAddress) -> str:
    """One with its next local times, the zone and the place."""
    return described(schedule, here, asks="asks the agent")


def _asked(
    arguments: CreateArguments, caller: Caller, cadence: Cadence, zone: str
) -> ScheduleCreateRequest:
    """What a call asks for. Raises `ToolError`."""
    request = ScheduledRequest(content=arguments.text)
    observes = arguments.watch is not None or arguments.observe is not None
    asked: dict[str, object] = {
        "name": arguments.name.strip() or one_line(arguments.text, _NAME),
        "target_session_id": caller.session_id,
        "owner_person_id": caller.run.speaker.person_id,
        "timezone": zone,
        "deliver_text": None if arguments.asks else arguments.text,
        "request": request if arguments.asks and not observes else None,
        "gate": None if arguments.gate is None else {"command": arguments.gate},
        "heartbeat": arguments.heartbeat,
        "created_by_run_id": caller.run.id,
        "cadence": cadence,
    }
    if observes:
        source = {"watch_path": arguments.watch, "session_id": arguments.observe}
        asked["observation_materialization"] = {
            "target_session_id": caller.session_id,
            "source": source,
            "request": request,
        }
    try:
        return ScheduleCreateRequest.model_validate(asked)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ToolError(first["msg"].removeprefix("Value error, ")) from error
