"""Messages for a run that has begun: when it hears them, and who gets what it never heard (MSG-5).

A steered message is an input of the active run. It enters the transcript behind the results of a
step, in the unit that keeps them, because nothing may stand between a call and its result. A run
that has its answer first gives that and goes on with what people said meanwhile, so the run that
was named to them is the one that answers (RUN-4). A run that fails or that somebody ends leaves its
unheard inputs to a run of their own, which comes next.
"""

from collections.abc import Iterator, Mapping, Sequence

from runtime.domain.events import EventKind
from runtime.domain.fence import fence
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import InboundMessage
from runtime.domain.people import Speaker
from runtime.domain.runs import RunKind
from runtime.domain.summaries import said_in
from runtime.domain.transcript import NoticeMessage, UserMessage
from runtime.sessions import inputs, message_edits, runs
from runtime.sessions.inputs import NOTICE, PERSON, Input
from runtime.sessions.lanes import Lane
from runtime.sessions.runs import Run
from runtime.sessions.transcripts import Line
from runtime.sessions.unit import Unit
from runtime.store import Connection

MOST_HEARD = 50
"""Messages that a run hears behind one step; the rest wait for the next."""
MOST_VIEWING = 1_000
"""Characters of what a sender looks at beside the chat."""
VIEWING = "The platform says that the sender of the next message has this open beside the chat:"


def begun(conn: Connection, lane: Lane) -> Run | None:
    """The run that has the lane: it is at work, waits, or was put back and goes on next."""
    if lane.active_run is not None:
        return runs.get(conn, lane.active_run)
    head = None if lane.is_idle else runs.head(conn, lane.session_id)
    return head if head is not None and head.started_ms is not None else None


def steerable(
    conn: Connection, lane: Lane, message: InboundMessage, speaker: Speaker
) -> Run | None:
    """The run that a message may join at its next step.

    It must come from the same place and be trusted as much as the run is, and it passes nothing
    that waits already.
    """
    run = begun(conn, lane)
    if run is None or run.cancel is not None or run.transcript != lane.transcript:
        return None
    if run.speaker.trust is not speaker.trust or run.target != message.address:
        return None
    behind = runs.last_queued(conn, lane.session_id)
    return run if behind is None or behind.id == run.id else None


def take_first(conn: Connection, begun: Sequence[Run]) -> Mapping[str, Sequence[Input]]:
    """What these runs begin with, and what became of earlier messages of their sessions, by
    session. It is marked as being in the transcripts, where the caller puts it."""
    taken: dict[str, list[Input]] = {run.session_id: [] for run in begun}
    if not taken:
        return taken
    notes = {message_edits.notes_of(run.session_id): run.id for run in begun}
    for item in inputs.take_all(conn, [*(run.id for run in begun), *notes]):
        if item.run_id in notes:
            message_edits.give_note(conn, item.id, to=notes[item.run_id])
        taken[item.session_id].append(item)
    return taken


def first_words(conn: Connection, lane: Lane, run: Run, items: Sequence[Input]) -> Sequence[Line]:
    """Put what a run begins with into the transcript."""
    return _say(conn, lane, run, items, step=0)


def heard(conn: Connection, lane: Lane, run: Run) -> Sequence[Line]:
    """What was said to a run since its last step; its reply hangs on the newest from now on.

    Only for a run whose calls all have results. One that was asked to end hears nothing more.
    """
    if not _hears(lane, run):
        return ()
    waiting = inputs.pending_of_run(conn, run.id)
    items = waiting[:MOST_HEARD]
    changed: dict[str, object] = {"steered": len(waiting) > len(items)}
    said = [item for item in items if item.origin != NOTICE]
    if said:
        changed["reply_to"] = said[-1].message.message_id
    if items:
        lane.record(
            EventKind.INPUT_TAKEN,
            run.id,
            {"input_ids": [item.id for item in items], "step": run.step},
        )
    runs.change(conn, run.id, changed)
    inputs.take(conn, run.id, items)
    return _say(conn, lane, run, items, step=run.step)


def is_owed(unit: Unit, lane: Lane, run: Run) -> bool:
    """Whether people said something to a conversation's run that it has not heard, and still can.

    What only the machinery told it is for the run after it.
    """
    if not unit.kind(lane).speaks or not _hears(lane, run):
        return False
    return any(item.origin == PERSON for item in inputs.pending_of_run(unit.conn, run.id))


def _hears(lane: Lane, run: Run) -> bool:
    return run.steered and run.cancel is None and run.transcript == lane.transcript


def pass_on(conn: Connection, lane: Lane, run: Run) -> None:
    """Give what an ended run never heard to a run of its own, in front of all that waits.

    Whoever was told of the ended run finds the new one by it. The caller settles the lane
    afterwards.
    """
    items = inputs.pending_of_run(conn, run.id) if run.steered else ()
    if not items:
        return
    first, last = items[0], items[-1]
    after = Run(
        id=new_id(IdPrefix.RUN, lane.now_ms),
        session_id=lane.session_id,
        seq=make_way(conn, lane),
        kind=RunKind.INPUT,
        ready_ms=lane.now_ms,
        target=last.message.address,
        reply_to=last.message.message_id,
        speaker=first.speaker,
        summary=lane.summary(said_in(first.message)),
        created_ms=lane.now_ms,
    )
    runs.add(conn, after)
    inputs.pass_on(conn, items, run.id, to=after.id)
    runs.change(conn, run.id, {"steered": False})
    lane.record(
        EventKind.RUN_QUEUED,
        after.id,
        {
            "kind": "input",
            "input_id": last.id,
            "passed_on_by": run.id,
            "summary": after.summary,
        },
    )


def make_way(conn: Connection, lane: Lane) -> int:
    """The number of a run that comes before all queued ones; each of them moves one place back."""
    waiting = runs.queued(conn, lane.session_id)
    lane.run_seq += 1
    places = [*(one.seq for one in waiting), lane.run_seq]
    for one, place in reversed(list(zip(waiting, places[1:], strict=True))):
        runs.change(conn, one.id, {"seq": place})
    return places[0]


def _say(
    conn: Connection, lane: Lane, run: Run, items: Sequence[Input], *, step: int
) -> Sequence[Line]:
    if not run.tainted and any(_is_from_outside(item.message) for item in items):
        runs.change(conn, run.id, {"tainted": True})
    words = [word for item in items for word in _messages(item)]
    return [lane.say(word, run_id=run.id, step=step) for word in words]


def _is_from_outside(message: InboundMessage) -> bool:
    return message.authorship != "own" or bool(message.viewing)


def _messages(item: Input) -> Iterator[UserMessage | NoticeMessage]:
    """An input in the transcript, and before it what its sender looks at, as data (SLK-9)."""
    viewing = item.message.viewing
    if viewing:
        shown = fence(viewing[:MOST_VIEWING], "what the sender has open")
        yield NoticeMessage(text=f"{VIEWING}\n{shown}", untrusted=True)
    yield _message(item)


def _message(item: Input) -> UserMessage | NoticeMessage:
    """What an input is in the transcript: a person's words, or what the machinery tells."""
    if item.origin in (NOTICE, message_edits.LINE):
        message = item.message
        return NoticeMessage(
            text=message.text,
            untrusted=message.authorship != "own",
            attachments=message.attachments,
            input_id=item.id if message.attachments else None,
        )
    return UserMessage(
        text=item.message.text,
        name=item.speaker.name,
        trust=item.speaker.trust,
        attachments=item.message.attachments,
        input_id=item.id,
        late_ms=item.message.sent_at_ms if item.message.late else None,
        authorship=item.message.authorship,
        by_model=item.message.by_model,
    )
