"""A unit of work on sessions, and the kinds of sessions and of waits that it asks.

This is the only place where lanes are locked and saved. They are locked in one order: deeper ones
first, of equal depth by their ids. Two units that hold several lanes then never wait for each other
in a circle. Breaking the order raises, in production too: PostgreSQL would end a deadlock and the
unit would be tried again, which hides the defect.

The path knows one kind of session, the conversation that people have. A feature whose sessions
differ derives a kind of its own. What a call may wait for is a table of kinds as well.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from types import MappingProxyType
from typing import Final, Literal, TypeVar

from sqlalchemy import ColumnElement

from runtime.domain.budgets import Budget
from runtime.domain.messages import ApprovalPart
from runtime.domain.people import Approvers, Speaker
from runtime.domain.runs import Holder, RunState
from runtime.domain.value import JsonObject
from runtime.ports.bus import EVENTS, RUNS, Bus
from runtime.sessions import lanes, runs
from runtime.sessions.calls import CallRow
from runtime.sessions.inputs import Input
from runtime.sessions.lane_writes import FIELDS
from runtime.sessions.lanes import CONVERSATION, Lane, NewSession
from runtime.sessions.open_calls import OpenCall
from runtime.sessions.runs import Run, RunEnd
from runtime.sessions.sessions import Session
from runtime.store import Connection, Database

T = TypeVar("T")
Work = Callable[["Unit"], T]
Rows = Callable[[Connection], object]


class LockOrderBroken(RuntimeError):
    """A unit locked a lane that comes before one that it holds: a defect of ours."""


class Unit:
    """One transaction. It may run twice, so it has no effect but its statements and what it says.

    `lane` and its sisters give a lane once, however often it is asked for; all of them are saved
    together at the end, those that changed, and then what was left for the `last`.
    """

    def __init__(self, conn: Connection, kinds: "Kinds") -> None:
        self.conn: Final = conn
        self.kinds: Final = kinds
        self.said: list[tuple[str, JsonObject]] = []
        self._held: dict[str, tuple[Lane, tuple[object, ...]]] = {}
        self._newest: tuple[int, str] | None = None
        self._last: dict[str, Rows] = {}
        self._saved = False

    def lane(self, session_id: str) -> Lane:
        """A session's lane, held until the unit ends. Raises `NotFound`."""
        there = self._held.get(session_id)
        return there[0] if there is not None else self._locked(lanes.lock(self.conn, session_id))

    def lane_of_run(self, run_id: str) -> Lane:
        """The lane of a run, held until the unit ends. Raises `NotFound`.

        What a unit reads of the run before it holds the lane may be over by the time it does.
        """
        return self._locked(lanes.lock_of_run(self.conn, run_id))

    def owned(self, run_id: str, holder: Holder) -> tuple[Lane, Run]:
        """A run that is still the holder's, and its lane, held until the unit ends. Raises
        `NotFound`, and `StaleLease` (I6)."""
        lane, run = lanes.lock_run(self.conn, run_id)
        return self._locked(lane), runs.checked(run, holder)

    def owned_in_session(self, run_id: str, holder: Holder) -> tuple[Lane, Run, Session]:
        """The same, with the session as it is while the lane is held."""
        lane, run, session = lanes.lock_run_in_session(self.conn, run_id)
        return self._locked(lane), runs.checked(run, holder), session

    def session_by_key(self, key: str) -> tuple[Lane, Session] | None:
        """The session that has `key`, as it is while its lane is held, and the lane. It may have
        lost the key while the lane was waited for."""
        found = lanes.lock_by_key(self.conn, key)
        return None if found is None else (self._locked(found[0]), found[1])

    def lanes(self, session_ids: Iterable[str]) -> Sequence[Lane]:
        """Several lanes, locked in their order, given in the order of `session_ids`.

        Raises `NotFound`.
        """
        wanted = list(session_ids)
        missing = {one for one in wanted if one not in self._held}
        if len(missing) > 1:
            for lane in lanes.lock_all(self.conn, missing):
                self._locked(lane)
        return [self.lane(one) for one in wanted]

    def create(self, new: NewSession, *, session_id: str = "") -> Lane | None:
        """Make a session and its lane; None when another unit made the key meanwhile.

        Who makes the same key at the same time is waited for. So where others may make it, call it
        before any lane is locked: whoever waits then holds nothing.
        """
        lane = lanes.create(self.conn, new, session_id=session_id)
        if lane is not None:
            lane.redact = self.kinds.redact
            self._held[lane.session_id] = (lane, ())
        return lane

    def hold(self, free: Sequence[Lane]) -> Sequence[Lane]:
        """Take lanes that were locked without waiting, so that no order was needed for them. Only
        units that lock no other lane do so."""
        for lane in free:
            lane.redact = self.kinds.redact
            self._held[lane.session_id] = (lane, _values(lane))
            self._newest = max(self._newest or _place(lane), _place(lane))
        return free

    def take_back(self, lane: Lane) -> None:
        """Remove a session and its lane that this unit made, instead of saving them."""
        lanes.take_back(self.conn, lane)
        del self._held[lane.session_id]

    def kind(self, lane: Lane) -> "SessionKind":
        """The kind of a lane's session."""
        return self.kinds.of(lane)

    def say(self, topic: str, data: JsonObject | None = None) -> None:
        """Publish a signal once the unit is durable; the same one is published once."""
        signal = (topic, data or {})
        if signal not in self.said:
            self.said.append(signal)

    def changed(self, session_id: str) -> None:
        """Tell whoever follows a session that it has new events."""
        self.say(EVENTS, {"session_id": session_id})

    def last(self, name: str, work: Rows) -> None:
        """Leave statements for the end, behind the lanes: for rows that many sessions' units wait
        for. What is left under a name again replaces what was left before."""
        self._last[name] = work

    def save(self) -> None:
        """Write the lanes that changed, and what was left for the end. Once: whoever reads what the
        unit did calls it before, and then changes nothing more."""
        if self._saved:
            return
        self._saved = True
        changed = [
            lane
            for lane, before in self._held.values()
            if lane.new_events or lane.new_messages or before != _values(lane)
        ]
        if changed:
            lanes.save(self.conn, *changed)
        for lane, _ in self._held.values():
            # A claim passes over a lane that this unit holds, and nobody else tells it that the
            # lane is free again.
            if lane.ready_ms is not None and lane.ready_ms <= lane.now_ms:
                self.say(RUNS, {"session_id": lane.session_id})
        for work in self._last.values():
            work(self.conn)

    def _locked(self, lane: Lane) -> Lane:
        there = self._held.get(lane.session_id)
        if there is not None:
            return there[0]
        place = _place(lane)
        if self._newest is not None and place < self._newest:
            raise LockOrderBroken(
                f"the lane {lane.session_id} at depth {lane.depth} is locked behind "
                f"{self._newest[1]} at depth {-self._newest[0]}"
            )
        self._newest = place
        lane.redact = self.kinds.redact
        self._held[lane.session_id] = (lane, _values(lane))
        return lane


Reach = Literal["self", "parent", "root"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """A call that is about to wait; each kind of wait has an opening of its own with what it needs.

    `kind` is the name of a `WaitKind`."""

    kind: str
    row: CallRow


@dataclass(frozen=True, slots=True)
class WaitKind:
    """One thing that a call may wait for.

    `state` is what its run is called meanwhile; where a run waits for several, the lowest `rank`
    names it, and they open in this order. `open` opens the call, or ends it at once; `reach` is the
    highest lane that it takes, which is locked before. `expire` ends one that waited too long, in a
    unit of its own. `asks`: opening it is the asking, so that policy's "ask" needs no card besides.
    `then`: whoever ends the wait gives the call's result, or lets the call run.
    """

    name: str
    state: RunState
    rank: int
    open: Callable[[Unit, Lane, Run, Opening], None]
    expire: Callable[[Unit, OpenCall], None]
    reach: Reach = "self"
    asks: bool = False
    then: Literal["result", "runs"] = "result"


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks by a card that stands in another session's chat: in `words`, and by its `path`."""

    words: str
    path: str


@dataclass(frozen=True, slots=True)
class Payer:
    """On whose account a run spends: a run and its session."""

    run_id: str
    session_id: str


class SessionKind:
    """An ordinary conversation: its runs speak in its own chat, and nobody else hears of them.

    A hook with a `unit` runs in that unit, with the session's lane held; it may lock lanes further
    up, never down. The others only read.
    """

    name: str = CONVERSATION
    speaks: bool = True
    """Whether the words of its runs go to its chat. Else they are for whoever delegated to it."""
    unlisted: ColumnElement[bool] | None = None
    """Of a row of `sessions`: whether lists leave it out. Who has its id finds it all the same."""

    def standing(self, conn: Connection, session: Session) -> Session:  # noqa: ARG002 - a hook
        """The session with the mode and the grants that hold for it now."""
        return session

    def parked(self, unit: Unit, lane: Lane) -> None:
        """A run of the lane waits now, and holds no place among those at work."""

    def asked_to_end(self, unit: Unit, lane: Lane, reason: str) -> None:
        """Somebody stops what the session does; its runs end behind this."""

    def ended(self, unit: Unit, lane: Lane, run: Run, end: RunEnd) -> None:
        """A run of the lane is over. The caller sets when the lane's next run may start."""

    def asked_by(self, conn: Connection, session_id: str) -> Asker | None:  # noqa: ARG002
        """Who asks by its cards; None where they stand in the session's own chat."""
        return None

    def payer(self, conn: Connection, run: Run) -> Payer:  # noqa: ARG002
        """On whose account a run of it spends."""
        return Payer(run.id, run.session_id)

    def budgets(self, conn: Connection, session_id: str) -> Sequence[Budget]:  # noqa: ARG002
        """The budgets that it was given, beside those that the operator set."""
        return ()


@dataclass(frozen=True, slots=True)
class Delegation:
    """Work that a session, or one below it, gave another session by the call of a run. `payer` is
    the run that it counts for, where that is another. `live`: it is not over. `name` is what people
    call it; `unfinished` says why its session cannot be deleted though it is over, if it cannot."""

    session_id: str
    parent_id: str
    name: str
    run_id: str
    created_ms: int
    payer: str = ""
    live: bool = False
    unfinished: str = ""

    def caused_by(self, run_ids: Collection[str]) -> bool:
        """Whether one of these runs gave it, or let it go on."""
        return self.run_id in run_ids or self.payer in run_ids


@dataclass(frozen=True, slots=True)
class Sharing:
    """The session whose record of files a session uses. `shared`: another one uses it too."""

    owner: str
    shared: bool = False


class Delegations:
    """What a feature knows of the work that sessions give others; here there is none. Only `stop`
    and `erase` change rows."""

    def below(self, conn: Connection, session_id: str) -> Sequence[Delegation]:  # noqa: ARG002
        """All that was ever given below a session at the root of a tree, in that order."""
        return ()

    def sender_of(self, conn: Connection, heard: Input) -> str | None:  # noqa: ARG002
        """The session that an input tells of, where it tells of such work."""
        return None

    def paid_by(self, conn: Connection, run_id: str) -> Sequence[str]:  # noqa: ARG002
        """The sessions of such work that spend on the account of a run, besides its own."""
        return ()

    def sharing(self, conn: Connection, session_id: str) -> Sharing:  # noqa: ARG002
        """Whose record of files a session uses that has others above or below it (SUB-17)."""
        return Sharing(session_id)

    def card_text(self, conn: Connection, card_id: str) -> str:  # noqa: ARG002
        """What a card that shows such work says by now; empty for a card that is none."""
        return ""

    def stop(self, unit: Unit, session_id: str, reason: str, run_id: str | None = None) -> int:  # noqa: ARG002
        """Hear that a session, or one run of it, is being stopped; how much of what that left at
        work elsewhere is to end now."""
        return 0

    def erase(self, conn: Connection, session_ids: Sequence[str]) -> None:
        """Remove the feature's rows of sessions that are deleted, before the path's own."""


NO_DELEGATIONS: Final = Delegations()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """What one session said to another and nobody heard: `text` in the input `input_id`."""

    session_id: str
    sender_id: str
    message_id: str
    input_id: str
    text: str
    sent_ms: int
    reason: str


class DeadLetters:
    """Where what nobody heard is kept for people to look at; here nowhere."""

    def bury(self, unit: Unit, letter: DeadLetter) -> None:
        """Keep it, in the unit that takes it from its session, whose lane is held."""


NO_LETTERS: Final = DeadLetters()


@dataclass(frozen=True, slots=True)
class CardAnswer:
    """What became of an answer to a card: whether it was taken, and what is said of it."""

    accepted: bool
    text: str


@dataclass(frozen=True, slots=True)
class CardKind:
    """A card of a feature about no call of a run. Its ids begin with `prefix`.

    `answer` settles the card of an id by a choice; `named` gives the ids of open ones that a
    code means. Both are called in a unit. `waiting` gives the newest open ones of a channel and an
    account that an approver may answer, at most as many as it is asked for.
    """

    prefix: str
    answer: Callable[[Unit, str, str, Speaker, Approvers], CardAnswer]
    named: Callable[[Connection, str], Sequence[str]]
    waiting: Callable[[Connection, str, str, int], Sequence[ApprovalPart]]


@dataclass(frozen=True, slots=True)
class Kinds:
    """The kinds of sessions, of waits and of cards that there are, the work that sessions give
    others, and where dead letters are kept.

    Without the kind of a session its rows are another version's, or a feature's that was switched
    off: then it is treated as a conversation that says nothing. `redact` takes the gateway's
    secrets out of a text.
    """

    waits: Mapping[str, WaitKind]
    sessions: Mapping[str, SessionKind] = field(default_factory=lambda: MappingProxyType({}))
    delegations: Delegations = NO_DELEGATIONS
    letters: DeadLetters = NO_LETTERS
    cards: tuple[CardKind, ...] = ()
    redact: Callable[[str], str] = str

    def card(self, card_id: str) -> CardKind | None:
        """The kind of a card by its id; None for one that is of no feature."""
        return next((one for one in self.cards if card_id.startswith(one.prefix)), None)

    def of(self, lane: Lane) -> SessionKind:
        """The kind of a lane's session."""
        return self.named(lane.kind)

    def named(self, name: str) -> SessionKind:
        """A kind by its name."""
        if name == CONVERSATION:
            return _CONVERSATION
        return self.sessions.get(name, _UNKNOWN)

    @property
    def unlisted(self) -> tuple[ColumnElement[bool], ...]:
        """Conditions on rows of `sessions`; lists leave out those that meet one."""
        found = (kind.unlisted for kind in self.sessions.values())
        return tuple(one for one in found if one is not None)


class _Unknown(SessionKind):
    speaks = False


_CONVERSATION: Final = SessionKind()
_UNKNOWN: Final = _Unknown()
NO_KINDS: Final = Kinds(waits=MappingProxyType({}))
"""For whoever reads without any feature."""


class Units:
    """Runs units of work on one database, and publishes what they say once they are durable."""

    def __init__(self, database: Database, bus: Bus, kinds: Kinds) -> None:
        self.database: Final = database
        self.bus: Final = bus
        self.kinds: Final = kinds

    async def run(self, work: Work[T], *, name: str) -> T:
        """The result of a unit. `name` names its crash points; raises as `Database.write`."""
        said: list[tuple[str, JsonObject]] = []

        def attempt(conn: Connection) -> T:
            unit = Unit(conn, self.kinds)
            result = work(unit)
            unit.save()
            said[:] = unit.said
            return result

        result = await self.database.write(attempt, name=name)
        for topic, data in said:
            self.bus.publish(topic, data)
        return result


def in_unit(conn: Connection, kinds: Kinds, work: Work[T]) -> T:
    """Run a unit's work on a connection whose transaction the caller ends, without its signals."""
    unit = Unit(conn, kinds)
    result = work(unit)
    unit.save()
    return result


def _place(lane: Lane) -> tuple[int, str]:
    """Where a lane stands in the order of locks."""
    return (-lane.depth, lane.session_id)


_values: Callable[[Lane], tuple[object, ...]] = attrgetter(*FIELDS)
