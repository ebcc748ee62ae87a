"""Rules of what people do: they write, again and twice, they answer cards, and they stop things."""

import json
from typing import Any

import hypothesis.strategies as st
from hypothesis.stateful import precondition, rule
from sqlalchemy import Connection

from runtime.domain.decisions import SessionMode
from runtime.domain.errors import Conflict
from runtime.domain.people import Trust
from runtime.domain.runs import ACTIVE, TERMINAL, RunState
from runtime.sessions import approvals, open_calls, run_stop
from runtime.sessions.approvals import Answer
from runtime.sessions.lanes import NewSession
from runtime.sessions.queue_modes import QUEUE_MODES, Enqueued, Refused, enqueue
from runtime.sessions.unit import Unit, in_unit
from tests.stateful.bench import ACCOUNT, CHANNEL, CHATS, Bench, address, inbound, pick, speaker
from tests.stateful.snapshot import Record
from tests.support.kinds import KINDS, unit_of

DEBOUNCE_MS = 700
MOST_STOPS = 4
"""In one play: a lane that is always stopped shows little else."""
NUMBERS = st.integers(0, 7)
CHAT = st.integers(0, len(CHATS) - 1)


def deliver(
    conn: Connection, chat: int, number: int, trust: Trust, *, queue_mode: str, late: bool = False
) -> Enqueued | None:
    """One delivery of a message, as the unit of `accept` does it."""
    key = f"{CHANNEL}:{ACCOUNT}:{CHATS[chat]}"

    def work(unit: Unit) -> Enqueued | None:
        there = unit.session_by_key(key)
        new = NewSession(key, address(chat), SessionMode.EDIT.value, queue_mode)
        lane = unit.create(new) if there is None else there[0]
        assert lane is not None
        queued = enqueue(
            unit,
            lane,
            inbound(chat, number, late=late),
            speaker(trust),
            queue_mode=queue_mode,
            debounce_ms=DEBOUNCE_MS,
        )
        assert not isinstance(queued, Refused)
        return queued

    return in_unit(conn, KINDS, work)


def speaker_of(row: Record) -> dict[str, Any]:
    """Whom a run acts for."""
    return dict(json.loads(row["speaker"]))


class Arriving(Bench):
    """People and their platform."""

    def deliver(
        self, chat: int, number: int, trust: Trust, *, late: bool = False
    ) -> Enqueued | None:
        mode = self.modes[chat]
        return self.run(lambda conn: deliver(conn, chat, number, trust, queue_mode=mode, late=late))

    @rule(
        chat=CHAT,
        trust=st.sampled_from([Trust.OWNER, Trust.OWNER, Trust.MEMBER]),
        mode=st.sampled_from(QUEUE_MODES),
        late=st.sampled_from([False, False, True]),
    )
    def a_message_arrives(self, chat: int, trust: Trust, mode: str, late: bool = False) -> None:
        self.modes[chat] = mode
        number = len(self.accepted)
        before = self.now.run
        queued = self.deliver(chat, number, trust, late=late)
        assert queued is not None
        self.accepted.append((chat, number))
        self.everything_holds()
        if queued.steered:
            assert RunState(before[queued.run_id]["state"]) not in TERMINAL
            assert (mode, late) == ("steer", False)
            assert before[queued.run_id]["cancel"] is None, "a run that is to end is told nothing"
        for run_id, row in before.items():
            if self.now.run[run_id]["replaced"] and not row["replaced"]:
                assert (mode, late) == ("interrupt", False)

    @precondition(lambda self: self.at_work())
    @rule(which=NUMBERS, mode=st.sampled_from(["steer", "steer", "steer", "interrupt"]))
    def somebody_speaks_to_a_run(self, which: int, mode: str) -> None:
        """While it is at work or waits, and trusted as much as it is."""
        chat, trust = pick(self.at_work(), which)
        self.a_message_arrives(chat, trust, mode)

    def at_work(self) -> list[tuple[int, Trust]]:
        """(chat, trust) of each run that has its lane."""
        return [
            (CHATS.index(json.loads(row["target"])["chat_id"]), Trust(speaker_of(row)["trust"]))
            for row in self.now.runs
            if RunState(row["state"]) in ACTIVE
        ]

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

        def work(conn: Connection) -> None:
            call = open_calls.get(conn, row["id"])
            assert call is not None
            in_unit(conn, KINDS, lambda unit: approvals.answer(unit, call, given))

        last = len(self.now.open_of(row["run_id"])) == 1
        self.run(work)
        self.everything_holds()
        queued = self.now.state(row["run_id"]) is RunState.QUEUED
        assert queued == last, "a run is queued again with its last answer, no sooner"

    @precondition(lambda self: any(row["state"] != "open" for row in self.now.open_calls))
    @rule(which=NUMBERS, choice=st.sampled_from(["once", "deny"]))
    def somebody_answers_what_was_answered(self, which: int, choice: str) -> None:
        row = pick([row for row in self.now.open_calls if row["state"] != "open"], which)
        given = Answer("per_owner", "Ada", choice=choice, text="late")

        def work(conn: Connection) -> None:
            call = open_calls.get(conn, row["id"])
            assert call is not None
            in_unit(conn, KINDS, lambda unit: approvals.answer(unit, call, given))

        self.must_not_write(work, Conflict)

    @precondition(lambda self: self.now.runs and self.stops < MOST_STOPS)
    @rule(which=st.integers(0, 30), whole=st.booleans())
    def somebody_stops_something(self, which: int, whole: bool) -> None:
        """Either what a session does, or one run."""
        self.stops += 1
        if whole:
            session = pick(self.now.lanes, which)["session_id"]
            self.run(
                unit_of(lambda unit: run_stop.stop_session(unit, session, by="Ada", reason="stop"))
            )
            return
        row = pick(self.now.runs, which)
        ended = RunState(row["state"]) in TERMINAL
        stopped = self.run(
            unit_of(lambda unit: run_stop.stop_run(unit, row["id"], by="Ada", reason="stop"))
        )
        assert (stopped.ended == stopped.running == ()) == ended
        self.everything_holds()
        kept = self.now.run[row["id"]]
        assert kept["state"] in ("running", "cancelled", row["state"])
        if kept["state"] == "running":
            assert kept["cancel"] in ("stop", run_stop.REPLACED)
