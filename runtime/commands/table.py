"""The commands, each a function of the locked lane; what they answer goes to the outbox.

A handler runs inside the unit that stores the message, so a command is applied exactly once.
"""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from runtime.commands import models
from runtime.commands.parse import Unknown, Words, command_of, unknown_of
from runtime.domain.budgets import BudgetSettings, budgets_of, spender_of, standing_lines
from runtime.domain.counts import counted
from runtime.domain.decisions import SessionMode
from runtime.domain.errors import Conflict, Forbidden, NotFound
from runtime.domain.events import EventKind
from runtime.domain.messages import Button, ButtonPress, ChatAddress, InboundMessage
from runtime.domain.people import Approvers, Speaker, Trust
from runtime.domain.printable import quoted
from runtime.domain.rates import RateSettings, limits_of_runs, rate_lines
from runtime.domain.value import JsonObject
from runtime.ports.gatehouse import HomeItem, Pressed
from runtime.ports.model import ModelListing, ModelLists
from runtime.sessions import (
    answers,
    budgets,
    lanes,
    open_calls,
    rates,
    run_stop,
    runs,
    sessions,
    totals,
    undo,
)
from runtime.sessions.answers import REFUSED, Picked, may_answer, permitted
from runtime.sessions.approvals import Choice
from runtime.sessions.idempotency import first_time
from runtime.sessions.lanes import Lane
from runtime.sessions.open_calls import APPROVAL, QUESTION
from runtime.sessions.queue_modes import QUEUE_MODES
from runtime.sessions.sessions import Session
from runtime.sessions.unit import Unit
from runtime.store import Connection, Database
from runtime.workspace.snapshot import Workspace


@dataclass(frozen=True, slots=True)
class CommandSettings:
    """What commands may know of the gateway."""

    approvers: Approvers = field(default_factory=Approvers)
    models: tuple[str, ...] = ()
    default_model: str = ""
    version: str = ""
    sandbox: str = ""
    budgets: BudgetSettings = field(default_factory=BudgetSettings)
    rates: RateSettings = field(default_factory=RateSettings)


@dataclass(slots=True)
class Call:
    """One command at work, given at `place`. `said_ms` is when a late one was said, None for one
    that came in time; `sent_ms` is when any was, by its platform, or when it came. `meant` is the
    card that it is about, whose lane is held: handlers lock no other one. `commands` are all that
    there are; `found` is what was looked up for this one."""

    unit: Unit
    lane: Lane
    session: Session
    speaker: Speaker
    place: ChatAddress
    rest: str
    settings: CommandSettings
    said_ms: int | None = None
    sent_ms: int = 0
    meant: Picked = answers.NONE
    commands: "Commands" = field(default_factory=lambda: Commands())
    found: object = None
    buttons: list[Button] = field(default_factory=list)
    """What the handler puts below its answer."""


Handler = Callable[[Call], str]


@dataclass(frozen=True, slots=True)
class Lookups:
    """Where commands look up what they need, before the unit that obeys them: a unit touches
    neither the disk nor the network. What is None is not there."""

    workspace: Workspace | None = None
    models: ModelLists | None = None
    database: Database | None = None


@dataclass(frozen=True, slots=True)
class LookedFor:
    """A command before its unit: the words behind its name, and what names the session that it is
    for. Nobody has decided yet whether its sender is heard at all."""

    rest: str
    key: str = ""
    session_id: str | None = None

    def session_in(self, conn: Connection) -> Session | None:
        """The session as it is now; None where there is none yet, or no more."""
        if self.session_id is None:
            return sessions.by_key(conn, self.key)
        try:
            return sessions.get(conn, self.session_id)
        except NotFound:
            return None


LookUp = Callable[[Lookups, LookedFor], Awaitable[object]]
"""Looks up what a command needs to know."""


@dataclass(frozen=True, slots=True)
class Buttons:
    """The buttons that belong to a command: those about an id that begins with `prefix`.

    `press` does what one says for whoever pressed it, in a unit of its own, and asks whether they
    may; it is handed what `look_up` gave before that unit. `home` are a person's own things, for
    the home page of their platform.
    """

    prefix: str
    press: Callable[[Unit, Speaker, ButtonPress, object], Pressed]
    home: Callable[[Connection, Speaker], Sequence[HomeItem]]
    look_up: Callable[[Lookups, ButtonPress], Awaitable[object]] | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """`guests` may use it too, or `owners` alone may. What is not `listed` is what a client sends
    by itself. `look_up` gives what its handler finds in `Call.found`."""

    name: str
    help: str
    run: Handler
    guests: bool = False
    owners: bool = False
    listed: bool = True
    look_up: LookUp | None = None
    buttons: Buttons | None = None

    def open_to(self, trust: Trust) -> bool:
        """Whether somebody may use it who is trusted so far."""
        if self.owners:
            return trust is Trust.OWNER
        return self.guests or trust in _FULL


def help_text(call: Call) -> str:
    """The commands that this person may use."""
    usable = [one for one in call.commands.listed if one.open_to(call.speaker.trust)]
    lines = "\n".join(f"- `/{one.name}` {one.help}" for one in usable)
    return f"I answer when you write to me. These words work without the model:\n\n{lines}"


def _start(call: Call) -> str:
    greeting = f"Hello, {call.speaker.name}." if call.speaker.name else "Hello."
    return f"{greeting} {help_text(call)}"


def _status(call: Call) -> str:
    session, lane = call.session, call.lane
    waiting = open_calls.of_tree(call.unit.conn, session.id)
    queued = len(runs.queued(call.unit.conn, session.id))
    doing = "idle"
    if lane.active_run is not None:
        doing = runs.get(call.unit.conn, lane.active_run).state.value.replace("_", " ")
    lines = [
        f"Gatehouse {call.settings.version}, session `{session.key}`",
        f"- now: {doing}, {queued} queued",
        f"- mode: {session.mode.value}, queue: {session.queue_mode}",
        f"- model: {session.model or call.settings.default_model}",
        f"- commands run in: {call.settings.sandbox}",
    ]
    lines += [
        f"- waiting for an answer: `{answers.code(one)}` ({answers.about(one)})" for one in waiting
    ]
    if call.speaker.trust is Trust.OWNER:
        skipped = call.found if isinstance(call.found, tuple) else ()
        lines += [f"- workspace: {one}" for one in skipped]
    return "\n".join(lines)


def _new(call: Call) -> str:
    lane, why = call.lane, "a new conversation was started"
    if lane.active_run is not None:
        run_stop.stop_session(call.unit, lane.session_id, by=call.speaker.person_id, reason=why)
    else:
        call.unit.kinds.delegations.stop(call.unit, lane.session_id, why)
    lane.transcript += 1
    lane.transcript_from = lane.window_from = lane.message_seq + 1
    lane.record(EventKind.SESSION_CHANGED, None, {"transcript": lane.transcript})
    return "This is a fresh conversation. The old one is kept."


def _stop(call: Call) -> str:
    stopped = run_stop.stop_session(
        call.unit,
        call.lane.session_id,
        by=call.speaker.person_id,
        reason=f"stopped by {call.speaker.name}",
    )
    if not (stopped.running or stopped.ended or stopped.elsewhere):
        return "There is nothing to stop."
    left = stopped.still_queued
    rest = f" {counted(left, 'waiting message')} will be answered next." if left else ""
    return f"Stopped.{rest}"


def _undo(call: Call) -> str:
    try:
        return undo.take_back(call.unit, call.lane, by=call.speaker, said_ms=call.sent_ms)
    except (Conflict, Forbidden, NotFound) as error:
        return _sentence(str(error))


def _queue(call: Call) -> str:
    wanted = call.rest.lower()
    if not wanted:
        return f"The queue mode is {call.session.queue_mode}. I know: {', '.join(QUEUE_MODES)}."
    if wanted not in QUEUE_MODES:
        return f"There is no queue mode {quoted(wanted)}. I know: {', '.join(QUEUE_MODES)}."
    _change(call, {"queue_mode": wanted})
    return f"The queue mode is {wanted} now."


def _mode(mode: SessionMode) -> Handler:
    def switch(call: Call) -> str:
        _change(call, {"mode": mode.value})
        return _MODE_SAYS[mode]

    return switch


_MODE_SAYS = {
    SessionMode.EDIT: "Edit mode: I may change files and run commands, within my rules.",
    SessionMode.PLAN: "Plan mode: I only read and plan from the next step on.",
    SessionMode.ASK: "Ask mode: I only read and answer from the next step on.",
}


def _model(call: Call) -> str:
    listing = call.found
    if not isinstance(listing, ModelListing):
        listing = ModelListing(call.settings.models)
    default = call.settings.default_model
    if not call.rest:
        now = call.session.model or f"{default}, the default"
        return f"The model is {now}. {models.listed(listing)}"
    if call.rest == "default":
        _change(call, {"model": None})
        return f"The model is the default, {default}."
    found = models.find(listing, call.rest)
    if found is None:
        return models.unknown(listing, call.rest)
    _change(call, {"model": found})
    return f"The model is {found} from the next step on. `/model default` goes back."


def _decide(choice: Choice) -> Handler:
    def decide(call: Call) -> str:
        if not call.rest and call.meant.call is None:
            return _which(call, choice)
        return _settle(call, kind=APPROVAL, choice=choice)

    return decide


def _which(call: Call, choice: Choice) -> str:
    """What is open, for somebody who named nothing: what one decides about is never guessed."""
    approvers = call.settings.approvers
    waiting = [
        one
        for one in open_calls.of_tree(call.unit.conn, call.session.id, kind=APPROVAL)
        if permitted(call.unit.conn, one, call.speaker, approvers)
    ]
    if not waiting:
        return (
            "Say which one: the code is on its card. No request of this conversation waits for you."
        )
    word = "deny" if choice == "deny" else "approve"
    lines = [f"- `/{word} {answers.code(one)}` ({answers.about(one)})" for one in waiting]
    return "\n".join(["Say which one:", *lines])


def _answer(call: Call) -> str:
    return _settle(call, kind=QUESTION, choice=None) if call.rest else _UNANSWERED


def _settle(call: Call, *, kind: str, choice: Choice | None) -> str:
    found, text = call.meant.call, call.meant.rest
    if found is None:
        return _of_feature(call, choice) or _sentence(call.meant.problem)
    if choice == "once" and text.lower() in ("session", "for this session"):
        choice = "session"
    if kind == QUESTION and not text:
        return _UNANSWERED
    try:
        if not may_answer(call.unit.conn, found, call.speaker, call.settings.approvers):
            return REFUSED
        if call.said_ms is not None and found.created_ms > call.said_ms:
            return answers.NEWER
        done = answers.answer(call.unit, found, call.speaker, choice=choice, text=text)
    except (NotFound, Conflict) as error:
        return _sentence(str(error))
    return f"{done.outcome}."


def _of_feature(call: Call, choice: Choice | None) -> str:
    """Answer a card that is about no call of a run; empty where no such card has this code."""
    code, unit = call.rest.partition(" ")[0], call.unit
    if choice is None or len(code) < LEAST_CODE:
        return ""
    for kind in unit.kinds.cards:
        found = kind.named(unit.conn, code)
        if len(found) == 1:
            said = "deny" if choice == "deny" else "approve"
            return kind.answer(unit, found[0], said, call.speaker, call.settings.approvers).text
    return ""


def _usage(call: Call) -> str:
    spent = totals.of_session(call.unit.conn, call.session.id)
    cost = "unknown" if spent.cost_usd is None else f"${spent.cost_usd:.4f}"
    used = (
        f"This session used {spent.input_tokens:,} tokens in "
        f"({spent.cached_tokens:,} cached) and {spent.output_tokens:,} out. Cost: {cost}."
    )
    return "\n".join([used, *_children_lines(call), *_budget_lines(call), *_rate_lines(call)])


def _children_lines(call: Call) -> Sequence[str]:
    """What its subagents used besides, which counts on the same budgets."""
    spent = totals.below(call.unit.conn, call.session.id)
    tokens = spent.input_tokens + spent.output_tokens
    cost = "unknown" if spent.cost_usd is None else f"${spent.cost_usd:.4f}"
    return [f"Its subagents used {tokens:,} tokens more. Cost: {cost}."] if tokens else []


def _budget_lines(call: Call) -> Sequence[str]:
    """The limits that hold for this person here, and what is left of each."""
    limits = call.settings.budgets
    spender = spender_of(
        call.speaker, call.session.address, session_id=call.session.id, run_id="each"
    )
    held = budgets_of(limits, spender, call.lane.now_ms)
    found = budgets.standings(call.unit.conn, [one.key for one in held])
    standing = [(one, found[one.key]) for one in held]
    return standing_lines(standing, timezone=limits.timezone)


def _rate_lines(call: Call) -> Sequence[str]:
    """The limits of what this person may begin here, and what is left of each."""
    settings = call.settings.rates
    spender = spender_of(call.speaker, call.session.address, session_id=call.session.id)
    held = limits_of_runs(settings, call.speaker, spender)
    found = rates.standings(call.unit.conn, [one.name for one in held])
    standing = [(one, found[one.name]) for one in held]
    return rate_lines(standing, call.lane.now_ms, timezone=settings.timezone)


def _change(call: Call, values: dict[str, object]) -> None:
    sessions.change(call.unit.conn, call.session.id, values)
    data: JsonObject = json.loads(json.dumps(values))
    call.lane.record(EventKind.SESSION_CHANGED, None, data)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


LEAST_CODE: Final = 4
"""Characters of a code that name a card."""
_UNANSWERED = "Write `/answer CODE your answer`; the code is on the question."
_FULL = (Trust.OWNER, Trust.MEMBER)


async def _skipped(lookups: Lookups, _for: LookedFor) -> object:
    """Which files of the workspace are not used, and why."""
    return () if lookups.workspace is None else (await lookups.workspace.snapshot()).warnings


async def _listing(lookups: Lookups, _for: LookedFor) -> object:
    return None if lookups.models is None else await lookups.models.listing()


BUILT_IN: Final = (
    Command("help", "shows this", help_text, guests=True),
    Command("status", "says what I am doing", _status, guests=True, look_up=_skipped),
    Command("new", "starts a fresh conversation", _new, guests=True),
    Command("stop", "stops what I am doing", _stop, guests=True),
    Command("undo", "takes the last turn back: I forget it, its effects stay", _undo),
    Command("queue", "`MODE` sets what happens to messages while I work", _queue),
    Command("edit", "lets me change files again", _mode(SessionMode.EDIT)),
    Command("plan", "makes me only read and plan", _mode(SessionMode.PLAN)),
    Command("ask", "makes me only read and answer", _mode(SessionMode.ASK)),
    Command(
        "model",
        "lists the models; `NAME` chooses one, `default` goes back",
        _model,
        look_up=_listing,
    ),
    Command("approve", "`CODE` allows a call (`session`: for this session)", _decide("once")),
    Command("deny", "`CODE reason` denies a call", _decide("deny")),
    Command("answer", "`CODE text` answers a question", _answer),
    Command("start", "says hello", _start, guests=True, listed=False),
    Command("usage", "shows what this session used, and what is left", _usage),
)
"""The commands that belong to no feature."""


class Commands:
    """All commands that there are: the built-in ones, and those of features behind them."""

    def __init__(self, *of_features: Command) -> None:
        self._by_name = {one.name: one for one in (*BUILT_IN, *of_features)}
        self.names = frozenset(self._by_name)
        self.listed = tuple(one for one in self._by_name.values() if one.listed)

    def named_in(self, message: InboundMessage) -> Words | None:
        """The command that a message is, if it is one."""
        return command_of(message, names=self.names)

    def mistyped_in(self, message: InboundMessage) -> Unknown | None:
        """What a message names like a command that there is not."""
        return unknown_of(message, names=self.names)

    async def look_up(
        self, lookups: Lookups, message: InboundMessage, *, key: str, session_id: str | None = None
    ) -> object:
        """What the command of a message needs to know, if it is one that looks anything up. The
        message is for the session `session_id`, else for the one of this key."""
        words = self.named_in(message)
        look_up = None if words is None else self._by_name[words.name].look_up
        if words is None or look_up is None:
            return None
        return await look_up(lookups, LookedFor(words.rest, key, session_id))

    def apply(self, call: Call, name: str) -> str:
        """Run a command for a person; what it says. Guests get only the harmless ones."""
        command = self._by_name[name]
        if not command.open_to(call.speaker.trust):
            whom = "guests" if call.speaker.trust not in _FULL else "members"
            return f"`/{name}` is not open to {whom}."
        said = command.run(call)
        lanes.settle(call.unit.conn, call.lane)
        return said

    async def look_up_press(self, lookups: Lookups, press: ButtonPress) -> object:
        """What a button of a command needs to know, if it is one that looks anything up."""
        for _, buttons in self._pressed(press):
            if buttons.look_up is not None:
                return await buttons.look_up(lookups, press)
        return None

    def press(
        self, unit: Unit, speaker: Speaker, press: ButtonPress, found: object
    ) -> Pressed | None:
        """Do what a button of a command says, once for a press; None where it is none of theirs."""
        for command, buttons in self._pressed(press):
            if not command.open_to(speaker.trust):
                return Pressed(accepted=False, text=f"`/{command.name}` is not open to you.")
            if not first_time(unit.conn, f"press:{press.channel}:{press.account}:{press.press_id}"):
                return Pressed(accepted=False, text="This was done already.")
            return buttons.press(unit, speaker, press, found)
        return None

    def _pressed(self, press: ButtonPress) -> Sequence[tuple[Command, Buttons]]:
        offered = [(one, one.buttons) for one in self._by_name.values()]
        return [
            (command, buttons)
            for command, buttons in offered
            if buttons is not None and press.open_call_id.startswith(buttons.prefix)
        ]

    def home(self, conn: Connection, speaker: Speaker) -> Sequence[HomeItem]:
        """What the commands have for the home page of a person."""
        offered = (one for one in self._by_name.values() if one.open_to(speaker.trust))
        return [item for one in offered if one.buttons for item in one.buttons.home(conn, speaker)]

    def unknown_text(self, found: Unknown, trust: Trust) -> str:
        """One line for a command that there is not, with those that may have been meant."""
        near = [f"`/{name}`" for name in found.near if self._by_name[name].open_to(trust)]
        meant = f" Did you mean {' or '.join(near)}?" if near else ""
        return (
            f"I do not know the command `{found.typed}`.{meant} "
            "`/help` lists the commands that I know."
        )
