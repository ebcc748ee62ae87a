"""What holds after every unit, whatever was played before it. One function says one thing."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from runtime.domain.runs import ACTIVE, TERMINAL, WAITING, RunState
from runtime.domain.transcript import AssistantMessage, ToolMessage, UserMessage
from tests.stateful.snapshot import Record, Said, Snapshot, result_of, verdict_of

UNSETTLED: Final = {"pending", "sending", "streaming"}
SETTLED: Final = {"sent", "dead", "unknown"}
APPLIED: Final = {"command", "answer"}
"""Inputs that were done with as they came, and have no run."""
GROWN: Final = {"edit", "stream", "said"}
ANSWERED: Final = {RunState.COMPLETED.value, RunState.FAILED.value}


def check(now: Snapshot) -> None:
    """Assert all of them."""
    for invariant in INVARIANTS:
        invariant(now)


def no_input_is_lost(now: Snapshot) -> None:
    """I1: an input is in exactly one run; a run that began holds it in its transcript, once."""
    said = Counter(
        (line.message.input_id, line.run_id)
        for lines in now.transcript_of.values()
        for line in lines
        if isinstance(line.message, UserMessage)
    )
    for row in now.inputs:
        if row["state"] in APPLIED:
            continue
        run = now.run[row["run_id"]]
        assert run["session_id"] == row["session_id"]
        in_transcript = said.pop((row["id"], row["run_id"]), 0)
        if row["state"] == "taken":
            assert in_transcript == 1, "a taken input is in the transcript once"
        else:
            assert row["state"] == "pending"
            assert in_transcript == 0
            waits = run["started_ms"] is None and run["state"] in ("queued", "cancelled")
            told = run["steered"] and RunState(run["state"]) not in TERMINAL
            assert waits or told, "a run began without its input, or ended without hearing it"
    assert not said, "the transcript holds what nobody said"


def one_active_run_a_lane(now: Snapshot) -> None:
    """I2: at most one, and the lane names it."""
    for lane in now.lanes:
        rows = now.runs_of.get(lane["session_id"], ())
        active = [row["id"] for row in rows if RunState(row["state"]) in ACTIVE]
        assert active == ([lane["active_run"]] if lane["active_run"] else [])


def no_lane_is_stuck(now: Snapshot) -> None:
    """A free lane with a queued run is ready when its head is, and no other lane is."""
    for lane in now.lanes:
        queued = [r for r in now.runs_of.get(lane["session_id"], ()) if r["state"] == "queued"]
        expected = queued[0]["ready_ms"] if queued and not lane["active_run"] else None
        assert lane["ready_ms"] == expected


def order_within_a_lane(now: Snapshot) -> None:
    """I3: runs begin in their order, inputs are answered in the order of their arrival."""
    for rows in now.runs_of.values():
        began = [row["seq"] for row in rows if row["started_ms"] is not None]
        passed = [r for r in rows if r["started_ms"] is None and r["state"] != "cancelled"]
        assert all(row["seq"] > max(began, default=0) for row in passed), "a run was overtaken"
    for rows in now.inputs_of.values():
        answering = [now.run[row["run_id"]] for row in rows if row["state"] not in APPLIED]
        seqs = [run["seq"] for run in answering if run["state"] != "cancelled"]
        assert seqs == sorted(seqs), "a later input is in an earlier run"
    for session, lines in now.transcript_of.items():
        places = {row["id"]: row["seq"] for row in now.inputs_of[session]}
        heard = [
            places[line.message.input_id] for line in lines if isinstance(line.message, UserMessage)
        ]
        assert heard == sorted(heard)


def one_reply_a_finished_run(now: Snapshot) -> None:
    """I4: exactly one final reply of an answered run, none of any other.

    A run that was given up, because its workers kept dying, is interrupted and says so.
    """
    for row in now.runs:
        given_up = row["state"] == RunState.INTERRUPTED.value and row["cancel"] is None
        wanted = 1 if row["state"] in ANSWERED or given_up else 0
        assert len(now.finals_of(row["id"])) == wanted, f"replies of a {row['state']} run"


def texts_grow_for_runs_alone(now: Snapshot) -> None:
    """REN-4: one growing text a run, of one that works or will again; nothing of it is final."""
    growing = Counter(row["run_id"] for row in now.outbox if row["state"] == "streaming")
    assert all(count == 1 for count in growing.values()), "two texts of one run grow"
    for run_id in growing:
        assert now.run[run_id]["state"] in ("queued", "running"), "a text was left growing"


def no_call_without_a_decision(now: Snapshot) -> None:
    """I5: what began, or gave something, was allowed first; or a person gave it themselves."""
    asked = {
        (row["run_id"], row["step"], row["place"])
        for row in now.open_calls
        if row["kind"] == "question"
    }
    for row in now.tool_calls:
        place = (row["run_id"], row["step"], row["place"])
        result = result_of(row)
        ran = row["started_ms"] is not None and row["state"] in ("started", "ended")
        gave = result is not None and result["status"] == "ok" and place not in asked
        if row["state"] == "started" or gave or (ran and result and result["status"] == "unknown"):
            assert verdict_of(row) == "allow", f"a {row['state']} call: {row['decision']}"
        assert (row["state"] == "ended") == (result is not None)


def outbox_rows_are_legal(now: Snapshot) -> None:
    """I7, and the order within a chat: nothing passes an unsettled message.

    An edit is none; a text that grew has its place already, and what comes after it does not wait.
    """
    chats: dict[tuple[str, str, str], list[Record]] = defaultdict(list)
    for row in now.outbox:
        assert row["state"] in UNSETTLED | SETTLED
        assert (row["settled_ms"] is not None) == (row["state"] in SETTLED)
        assert (row["fence"] is None) == (row["worker"] is None)
        if row["state"] in ("sending", "streaming"):
            assert row["fence"] is not None
        assert (row["kind"] == "stream") == (row["state"] == "streaming")
        if row["state"] == "pending":
            assert row["fence"] is None
        if row["state"] in ("dead", "unknown"):
            assert row["error"], "an end keeps its reason"
        chats[row["channel"], row["account"], row["chat"]].append(row)
    for rows in chats.values():
        waiting = [
            row["position"]
            for row in rows
            if row["state"] in UNSETTLED and row["kind"] not in GROWN and row["stream"] is None
        ]
        moved = [row["position"] for row in rows if row["state"] != "pending"]
        if waiting:
            assert all(place <= waiting[0] for place in moved), "a message passed another"


def numbers_are_dense(now: Snapshot) -> None:
    """Every number of a session is given once, without a hole."""
    for lane in now.lanes:
        session = lane["session_id"]
        kept = {
            "input_seq": [row["seq"] for row in now.inputs_of.get(session, ())],
            "run_seq": [row["seq"] for row in now.runs_of.get(session, ())],
            "message_seq": [line.seq for line in now.transcript_of.get(session, ())],
            "event_seq": [row["seq"] for row in now.events if row["session_id"] == session],
        }
        for name, numbers in kept.items():
            assert numbers == list(range(1, lane[name] + 1)), name


def transcripts_are_well_formed(now: Snapshot) -> None:
    """Calls are followed by their results, and by nothing else, before anybody speaks again."""
    for lines in now.transcript_of.values():
        for line, following in pairwise([*lines, None]):
            assert line is not None
            message = line.message
            if isinstance(message, AssistantMessage) and message.tool_calls:
                _calls_are_answered(now, line, following)
        for before, line in pairwise([None, *lines]):
            if line is not None and isinstance(line.message, ToolMessage):
                assert before is not None
                assert isinstance(before.message, AssistantMessage)
                assert before.message.tool_calls, "results without calls"
                assert (before.run_id, before.step) == (line.run_id, line.step)


def _calls_are_answered(now: Snapshot, line: Said, following: Said | None) -> None:
    assert isinstance(line.message, AssistantMessage)
    rows = now.calls_of[line.run_id or "", line.step]
    assert [row["call_id"] for row in rows] == [call.id for call in line.message.tool_calls]
    if following is None:
        state = now.state(line.run_id or "")
        assert state not in TERMINAL, f"a {state} run left calls without results"
        return
    assert isinstance(following.message, ToolMessage), f"{following.message.role} after calls"
    told = [result.model_dump(mode="json") for result in following.message.results]
    assert told == [result_of(row) for row in rows], "the model is told what the rows do not say"


def parked_runs_wait_for_somebody(now: Snapshot) -> None:
    """A parked run has an open call of its kind, any other run has none."""
    for row in now.runs:
        kinds = {one["kind"] for one in now.open_of(row["id"])}
        state = RunState(row["state"])
        if state not in WAITING:
            assert not kinds, f"a {state} run waits for {kinds}"
        elif state is RunState.WAITING_FOR_USER_QUESTION:
            assert kinds == {"question"}
        else:
            assert kinds


def holders_are_those_of_running_runs(now: Snapshot) -> None:
    """Only a running run is somebody's; every ended one has its time."""
    for row in now.runs:
        if row["state"] == "running":
            assert row["worker"] is not None
            assert row["fence"] is not None
        elif RunState(row["state"]) not in TERMINAL:
            assert row["worker"] is None
        assert (row["ended_ms"] is not None) == (RunState(row["state"]) in TERMINAL)


def the_last_event_says_the_state(now: Snapshot) -> None:
    """MSG-6: each transition is an event, so the newest one of a run names its state."""
    last: dict[str, str] = {}
    for row in now.events:
        noun, _, word = row["kind"].partition(".")
        if noun == "run":
            last[row["run_id"]] = word
    says = {"started": "running", "resumed": "running"}
    for row in now.runs:
        word = last[row["id"]]
        state = "waiting" if RunState(row["state"]) in WAITING else row["state"]
        assert says.get(word, word) == state


INVARIANTS: Sequence = (
    no_input_is_lost,
    one_active_run_a_lane,
    no_lane_is_stuck,
    order_within_a_lane,
    one_reply_a_finished_run,
    texts_grow_for_runs_alone,
    no_call_without_a_decision,
    outbox_rows_are_legal,
    numbers_are_dense,
    transcripts_are_well_formed,
    parked_runs_wait_for_somebody,
    holders_are_those_of_running_runs,
    the_last_event_says_the_state,
)
