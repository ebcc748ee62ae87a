"""Rules of what people do: they write, again and twice, they answer cards, and they stop things."""

import hypothesis.strategies as st
from hypothesis.stateful import precondition, rule
from sqlalchemy import Connection

from runtime.domain.decisions import SessionMode
from runtime.domain.errors import Conflict
from runtime.domain.people import Trust
from runtime.domain.runs import TERMINAL, RunState
from runtime.inbox import parking, stopping
from runtime.inbox.enqueue import Enqueued, enqueue
from runtime.inbox.parking import Answer
from runtime.store import lanes, open_calls
from runtime.store.lanes import NewSession
from tests.stateful.bench import ACCOUNT, CHANNEL, CHATS, Bench, address, inbound, pick, speaker

DEBOUNCE_MS = 700
MOST_STOPS = 4
"""In one play: a lane that is always stopped shows little else."""
NUMBERS = st.integers(0, 7)
CHAT = st.integers(0, len(CHATS) - 1)


def deliver(
    conn: Connection, chat: int, number: int, trust: Trust, *, queue_mode: str
) -> Enqueued | None:
    """One delivery of a message, as the unit of `accept` does it."""
    key = f"{CHANNEL}:{ACCOUNT}:{CHATS[chat]}"
    lane = lanes.lock_by_key(conn, key)
    if lane is None:
        lane = lanes.create(
            conn, NewSession(key, address(chat), SessionMode.EDIT.value, queue_mode)
        )
    assert lane is not None
    queued = enqueue(
        conn,
        lane,
        inbound(chat, number),
        speaker(trust),
        queue_mode=queue_mode,
        debounce_ms=DEBOUNCE_MS,
    )
    if queued is not None:
        lanes.save(conn, lane)
    return queued


class Arriving(Bench):
    """People and their platform."""

    def deliver(self, chat: int, number: int, trust: Trust) -> Enqueued | None:
        mode = self.modes[chat]
        return self.run(lambda conn: deliver(conn, chat, number, trust, queue_mode=mode))

    @rule(
        chat=CHAT,
        trust=st.sampled_from([Trust.OWNER, Trust.OWNER, Trust.MEMBER]),
        mode=st.sampled_from(["followup", "collect"]),
    )
    def a_message_arrives(self, chat: int, trust: Trust, mode: str) -> None:
        self.modes[chat] = mode
        number = len(self.accepted)
        assert self.deliver(chat, number, trust) is not None
        self.accepted.append((chat, number))

    @precondition(lambda self: self.accepted)
    @rule(which=NUMBERS)
    def a_message_arrives_again(self, which: int) -> None:
        chat, number = pick(self.accepted, which)
        before = self.now.inputs
        assert self.deliver(chat, number, Trust.OWNER) is None
        self.everything_holds()
        assert self.now.inputs == before

    @precondition(lambda self: any(row["state"] == "open" for row in self.now.open_calls))
    @rule(which=NUMBERS, choice=st.sampled_from(["once", "session", "deny"]))
    def somebody_answers(self, which: int, choice: str) -> None:
        rows = [row for row in self.now.open_calls if row["state"] == "open"]
        row = pick(rows, which)
        given = Answer("per_owner", "Ada", choice=choice, text="because")

        def work(conn: Connection) -> bool:
            call = open_calls.get(conn, row["id"])
            assert call is not None
            return parking.answer(conn, call, given).resumed

        last = len(self.now.open_of(row["run_id"])) == 1
        assert self.run(work) == last, "a run is queued again with its last answer, no sooner"
        self.everything_holds()
        assert (self.now.state(row["run_id"]) is RunState.QUEUED) == last

    @precondition(lambda self: any(row["state"] != "open" for row in self.now.open_calls))
    @rule(which=NUMBERS, choice=st.sampled_from(["once", "deny"]))
    def somebody_answers_what_was_answered(self, which: int, choice: str) -> None:
        row = pick([row for row in self.now.open_calls if row["state"] != "open"], which)
        given = Answer("per_owner", "Ada", choice=choice, text="late")

        def work(conn: Connection) -> None:
            call = open_calls.get(conn, row["id"])
            assert call is not None
            parking.answer(conn, call, given)

        self.must_not_write(work, Conflict)

    @precondition(lambda self: self.now.runs and self.stops < MOST_STOPS)
    @rule(which=st.integers(0, 30), whole=st.booleans())
    def somebody_stops_something(self, which: int, whole: bool) -> None:
        """Either what a session does, or one run."""
        self.stops += 1
        if whole:
            session = pick(self.now.lanes, which)["session_id"]
            self.run(lambda conn: stopping.stop_session(conn, session, by="Ada", reason="stop"))
            return
        row = pick(self.now.runs, which)
        ended = RunState(row["state"]) in TERMINAL
        stopped = self.run(lambda conn: stopping.stop_run(conn, row["id"], by="Ada", reason="stop"))
        assert (stopped.ended == stopped.running == ()) == ended
        self.everything_holds()
        kept = self.now.run[row["id"]]
        assert kept["state"] in ("running", "cancelled", row["state"])
        if kept["state"] == "running":
            assert kept["cancel"] == "stop"
