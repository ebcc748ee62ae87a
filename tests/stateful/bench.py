"""What all rules of the machine share: the units, who holds what, and the check after each rule."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant
from sqlalchemy import Connection

from runtime.domain.messages import ChatAddress, InboundMessage
from runtime.domain.people import Sender, Speaker, Trust
from runtime.domain.runs import Holder
from runtime.process.timers import expire_due
from runtime.sessions import claims, due_work
from runtime.sessions.calls import CallRow
from runtime.sessions.due_work import Due, Wanted
from runtime.sessions.outbox import OutboxRow
from runtime.sessions.window import WindowCache
from runtime.store import leases
from tests.stateful import invariants, snapshot
from tests.stateful.units import Units
from tests.support.kinds import unit_of

T = TypeVar("T")

CHANNEL: Final = "test"
ACCOUNT: Final = "A1"
CHATS: Final = ("C0", "C1", "C2")
WORKERS: Final = ("w0", "w1")
DELIVERERS: Final = ("d0", "d1")
LEASE_MS: Final = 15_000
DELIVERY_LEASE: Final = f"deliver:{CHANNEL}:{ACCOUNT}"


@dataclass
class Held:
    """A claimed run in a worker's memory: the calls of its step that are not finished."""

    run_id: str
    pending: tuple[CallRow, ...] = ()


@dataclass
class Hands:
    """A process: the fence of its lease and what it holds in memory, which a crash forgets."""

    holder: Holder | None = None
    runs: dict[str, Held] = field(default_factory=dict)
    rows: dict[str, OutboxRow] = field(default_factory=dict)
    cache: WindowCache = field(default_factory=WindowCache)


def address(chat: int) -> ChatAddress:
    return ChatAddress(channel=CHANNEL, account=ACCOUNT, chat_id=CHATS[chat], chat_kind="group")


def inbound(chat: int, number: int, *, late: bool = False) -> InboundMessage:
    return InboundMessage(
        channel=CHANNEL,
        account=ACCOUNT,
        chat_id=CHATS[chat],
        chat_kind="group",
        message_id=f"m{number}",
        sender=Sender(id="U1", name="Ada"),
        text=f"message {number}",
        received_at_ms=number,
        sent_at_ms=number if late else None,
        late=late,
    )


def speaker(trust: Trust) -> Speaker:
    return Speaker(
        person_id=f"per_{trust}",
        channel=CHANNEL,
        account=ACCOUNT,
        user_id=f"U-{trust}",
        name=trust.value,
        trust=trust,
    )


class Bench(RuleBasedStateMachine):
    """`make` opens an empty database; a subclass of a test gives it."""

    make: Callable[[], Units]

    def __init__(self) -> None:
        super().__init__()
        self.units = type(self).make()
        self.workers = {name: Hands() for name in WORKERS}
        self.deliverers = {name: Hands() for name in DELIVERERS}
        self.ghosts: list[Hands] = []
        self.accepted: list[tuple[int, int]] = []
        self.stops = 0
        self.units_run = 0
        self.rested_at = 0
        self.modes = ["followup", "collect", "collect"]
        self.ended: dict[tuple[str, int, int], object] = {}
        self.now = self.run(snapshot.take)

    def run(self, work: Callable[[Connection], T]) -> T:
        """Run one unit; a little time passes with each."""
        self.units_run += 1
        self.units.clock.advance(1)
        return self.units.run(work)

    @initialize()
    def everybody_starts(self) -> None:
        """Each process takes its lease, one of the deliverers the account's."""
        for name in WORKERS:
            self.take_process_lease(name)
        self.take_delivery_lease(DELIVERERS[0])

    @invariant()
    def everything_holds(self) -> None:
        """All invariants, after each rule; and what ended keeps its result."""
        self.now = self.units.run(snapshot.take)
        invariants.check(self.now)
        for row in self.now.tool_calls:
            key = (row["run_id"], row["step"], row["place"])
            result = self.ended.setdefault(key, row["result"]) if row["result"] else None
            assert row["result"] == (result or self.ended.get(key)), "a result was changed"

    def teardown(self) -> None:
        self.units.close()

    def take_process_lease(self, name: str) -> None:
        fence = self.run(
            lambda conn: leases.acquire(
                conn, name=f"{leases.PROCESS}{name}", holder=name, ttl_ms=LEASE_MS
            )
        )
        assert fence is not None, "nobody else wants a process's own lease"
        hands = self.workers[name]
        if hands.holder is not None and hands.holder.fence != fence:
            # Its lease ran out meanwhile: what it held may be another's, and is not trusted.
            self.forget(name)
        self.workers[name].holder = Holder(name, fence)

    def forget(self, name: str) -> None:
        """A worker's memory is lost to it; a stale copy goes on somewhere."""
        self.ghosts.append(self.workers[name])
        self.workers[name] = Hands()

    def take_delivery_lease(self, name: str) -> None:
        fence = self.run(
            lambda conn: leases.acquire(conn, name=DELIVERY_LEASE, holder=name, ttl_ms=LEASE_MS)
        )
        hands = self.deliverers[name]
        if fence is None:
            return
        if hands.holder is not None and hands.holder.fence != fence:
            self.ghosts.append(hands)
            self.deliverers[name] = hands = Hands()
        hands.holder = Holder(name, fence)

    def must_not_write(self, work: Callable[[Connection], object], error: type[Exception]) -> None:
        """The unit is refused with `error` and leaves everything as it was (I6)."""
        before = self.units.run(snapshot.take)
        try:
            self.run(work)
        except error:
            assert self.units.run(snapshot.take) == before
        else:
            raise AssertionError(f"a unit went through that must raise {error.__name__}")

    def timers_look(self) -> None:
        """The units of takeovers and timers, one after another."""
        care = self.units.run(self.due)
        found = self.run(unit_of(claims.recover))
        while found and self.run(unit_of(claims.recover)):
            pass
        expired = self.run(unit_of(expire_due))
        while expired and self.run(unit_of(expire_due)):
            pass
        assert care.abandoned == bool(found)
        assert care.expired <= expired
        assert self.units.run(self.due) == Due()

    @staticmethod
    def due(conn: Connection) -> Due:
        """What a look finds for those who take over and for the timers."""
        return due_work.look(conn, Wanted(abandoned=True, expired=True))

    def held(self, name: str) -> Sequence[Held]:
        """What a worker holds and may still write for."""
        hands = self.workers[name]
        return [one for one in hands.runs.values() if self.owns(hands, one.run_id)]

    def work_is_left(self) -> bool:
        """Whether a worker has something to do."""
        return any(lane["ready_ms"] for lane in self.now.lanes) or any(map(self.held, WORKERS))

    def owns(self, hands: Hands, run_id: str) -> bool:
        """Whether the rows still say that a run is in these hands."""
        row = self.now.run[run_id]
        holder = hands.holder
        return (
            holder is not None
            and row["state"] == "running"
            and (row["worker"], row["fence"]) == (holder.worker, holder.fence)
        )


def pick(items: Sequence[T], number: int) -> T:
    """One of some items, for any number."""
    return items[number % len(items)]
