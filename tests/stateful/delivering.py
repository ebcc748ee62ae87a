"""Rules of deliverers and of the clock: messages go out, leases run out, somebody takes over."""

from collections.abc import Sequence

import hypothesis.strategies as st
from hypothesis.stateful import precondition, rule

from runtime.delivery import outbox_units, stream_units
from runtime.domain.errors import StaleLease
from runtime.domain.messages import OutboundMessage, Receipt
from runtime.domain.runs import Holder
from runtime.sessions import outbox, streams
from runtime.sessions.outbox import OutboxRow, Stream
from runtime.store import Connection, leases
from tests.stateful.bench import ACCOUNT, CHANNEL, DELIVERERS, DELIVERY_LEASE, Bench, Hands, pick
from tests.stateful.invariants import UNSETTLED
from tests.support.kinds import unit_of

NUMBERS = st.integers(0, 7)
WHO = st.sampled_from(DELIVERERS)
ENDS = ("sent", "progress", "retry", "dead", "unknown")
OUTCOMES = st.sampled_from(["claim", *ENDS])
RECEIPT = Receipt(message_ids=("p1",))


def settle(conn: Connection, row: OutboxRow, outcome: str, holder: Holder) -> None:
    """One of the units that end a send."""
    match outcome:
        case "sent":
            outbox_units.sent(conn, row.message, RECEIPT, holder)
        case "progress":
            outbox_units.progress(conn, row.message, ("p1",), holder)
        case "retry":
            outbox_units.retry(conn, row, "busy", 1_000, holder)
        case _:
            outbox_units.end(conn, row.message, outcome, "a reason", holder)


class Delivering(Bench):
    """The deliverers of one account, of which one holds the lease."""

    @precondition(lambda self: any(row["state"] in UNSETTLED for row in self.now.outbox))
    @rule(who=WHO, which=NUMBERS, plan=st.lists(OUTCOMES, min_size=1, max_size=4))
    def a_deliverer_goes_on(self, who: str, which: int, plan: list[str]) -> None:
        """It takes the lease, claims what is due, takes over what was left, or ends a send."""
        for outcome in plan:
            hands = self.deliverers[who]
            if hands.rows and outcome != "claim":
                self.settles(hands, pick(list(hands.rows.values()), which), outcome)
            elif hands.holder is None:
                self.take_delivery_lease(who)
            else:
                self.claims_rows(hands, hands.holder, 1 + which % 3)
            self.everything_holds()

    def claims_rows(self, hands: Hands, holder: Holder, most: int) -> None:
        def due(conn: Connection) -> Sequence[OutboxRow]:
            return outbox.due(conn, channel=CHANNEL, account=ACCOUNT, most=most)

        def claim(conn: Connection) -> Sequence[OutboxRow]:
            return outbox_units.claim(conn, due(conn), holder)

        may = self.delivers(hands)
        before = self.now
        for row in self.run(claim):
            hands.rows[row.message.outbox_id] = row
        if not may:
            self.everything_holds()
            assert self.now == before, "nothing is taken under a lease that ran out"

    def delivers(self, hands: Hands) -> bool:
        """Whether these hands hold the account's lease at this moment."""
        holder = hands.holder
        return holder is not None and self.units.run(
            lambda conn: leases.holds(conn, DELIVERY_LEASE, holder)
        )

    @precondition(lambda self: any(ghost.rows for ghost in self.ghosts))
    @rule(which=NUMBERS, outcome=st.sampled_from(ENDS))
    def a_stale_deliverer_writes(self, which: int, outcome: str) -> None:
        hands = pick([one for one in self.ghosts if one.rows], which)
        row = pick(list(hands.rows.values()), which)
        self.settles(hands, row, outcome)

    def settles(self, hands: Hands, row: OutboxRow, outcome: str) -> None:
        """A send ends in these hands; refused where the row is in other hands by now."""
        holder, outbox_id = hands.holder, row.message.outbox_id
        assert holder is not None
        kept = next(one for one in self.now.outbox if one["id"] == outbox_id)
        if (kept["state"], kept["worker"], kept["fence"]) == (
            "sending",
            holder.worker,
            holder.fence,
        ):
            self.run(lambda conn: settle(conn, row, outcome, holder))
        else:
            self.must_not_write(lambda conn: settle(conn, row, outcome, holder), StaleLease)
        if outcome != "progress":
            del hands.rows[outbox_id]

    @precondition(lambda self: any(hands.rows for hands in self.deliverers.values()))
    @rule(who=WHO)
    def a_deliverer_is_paused_or_dies(self, who: str) -> None:
        if self.deliverers[who].holder is not None:
            self.ghosts.append(self.deliverers[who])
            self.deliverers[who] = Hands()

    @precondition(lambda self: any(row["state"] == "sending" for row in self.now.outbox))
    @rule(who=WHO)
    def a_deliverer_takes_over(self, who: str) -> None:
        hands = self.deliverers[who]
        holder = hands.holder
        if holder is None or not self.delivers(hands):
            self.take_delivery_lease(who)
            return

        def work(conn: Connection) -> list[OutboxRow]:
            found = outbox.in_hand(conn, channel=CHANNEL, account=ACCOUNT)
            return list(outbox_units.adopt(conn, found, holder))

        for row in self.run(work):
            hands.rows[row.message.outbox_id] = row
        self.everything_holds()
        left = [row for row in self.now.outbox if row["state"] == "sending"]
        assert all((row["worker"], row["fence"]) == (who, holder.fence) for row in left)

    @precondition(lambda self: any(row["state"] == "running" for row in self.now.runs))
    @rule(who=WHO, which=NUMBERS, known=st.sampled_from(["opened", "unknown", "refused"]))
    def a_text_grows(self, who: str, which: int, known: str) -> None:
        """A deliverer shows what a run writes; it may learn of the post, or be refused one."""
        holder = self.deliverers[who].holder
        if holder is None:
            return
        running = [row["id"] for row in self.now.runs if row["state"] == "running"]
        may = self.delivers(self.deliverers[who])
        row = self.run(unit_of(lambda unit: stream_units.begin(unit, pick(running, which), holder)))
        assert may or row is None, "nothing is begun under a lease that ran out"
        if row is None or row.stream is not None or known == "unknown":
            return
        kept = Stream("p0") if known == "opened" else None
        self.run(lambda conn: stream_units.keep(conn, row.message, kept, holder))

    @precondition(lambda self: any(row["stream"] for row in self.now.outbox))
    @rule(who=WHO)
    def a_deliverer_closes_streams(self, who: str) -> None:
        """It takes over what others had shown, and finds what is to be closed."""
        hands = self.deliverers[who]
        holder = hands.holder
        if holder is None or not self.delivers(hands):
            return

        def work(conn: Connection) -> Sequence[OutboxRow]:
            found = outbox.in_hand(conn, channel=CHANNEL, account=ACCOUNT)
            stream_units.care(conn, [row for row in found if row.state == "streaming"], holder)
            return streams.ended(
                conn, channel=CHANNEL, account=ACCOUNT, holder=Holder(who, holder.fence)
            )

        for row in self.run(work):
            hands.rows[row.message.outbox_id] = row
        self.everything_holds()
        left = [row for row in self.now.outbox if row["state"] == "streaming"]
        assert all((row["worker"], row["fence"]) == (who, holder.fence) for row in left)

    @precondition(lambda self: any(row["state"] == "streaming" for row in self.now.outbox))
    @rule(which=NUMBERS)
    def a_stale_deliverer_keeps_a_stream(self, which: int) -> None:
        rows = [row for row in self.now.outbox if row["state"] == "streaming"]
        row = pick(rows, which)
        stale = Holder("d9", row["fence"])
        message = OutboundMessage.model_validate_json(row["message"])
        self.must_not_write(
            lambda conn: stream_units.keep(conn, message, Stream("p9"), stale), StaleLease
        )

    @precondition(lambda self: self.rested_at != self.units_run)
    @rule(seconds=st.sampled_from([0.5, 0.8, 1, 6, 16, 30]), look=st.booleans())
    def time_passes(self, seconds: float, look: bool) -> None:
        """And the timers look for what is due, if somebody runs them."""
        self.units.clock.advance(int(seconds * 1000))
        self.rested_at = self.units_run
        if look:
            self.timers_look()
            self.rested_at = self.units_run
