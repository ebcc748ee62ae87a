"""What happens to tasks, each in a unit that holds the lane of their session.

The lane puts the changes of a session's tasks in order, so that no two of them close a circle of
dependencies. A task that is over stays as it is; whoever waits for it is looked at in the same
unit, and whoever asked for it is told in the same unit, so that both happen once.
"""

from collections.abc import Mapping
from typing import Final

from runtime.domain.errors import Conflict, Forbidden, InvalidInput, QueueFull
from runtime.domain.events import EventKind
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import ChatAddress, OutboundMessage, TextPart
from runtime.domain.people import Speaker, Trust
from runtime.domain.value import JsonObject
from runtime.features.tasks import rows
from runtime.features.tasks.model import OVER, UNTRUSTED, Notify, Status, TaskCreate, TaskUpdate
from runtime.features.tasks.notices import BLOCKED_REASON, text_of
from runtime.features.tasks.rows import SHELL, TO_DO, Blocker, Task
from runtime.ports.bus import OUTBOX, TASKS
from runtime.sessions import audit, outbox, runs, sessions
from runtime.sessions.keys import is_of_person
from runtime.sessions.outbox import NewRow
from runtime.sessions.unit import Unit
from runtime.store import Connection
from runtime.store.database import now_ms

_WORDS: Final = frozenset({"title", "description", "owner_agent_id", "metadata"})
"""What of a task somebody has written."""
MOST_OPEN: Final = 500
"""Tasks of one session that are not over."""
MOST_NAMED: Final = 5
"""Blockers that an error names."""
NOT_YOURS: Final = "Only the person who asked for this task may do that, or an owner."
_NEXT: Final[Mapping[Status, frozenset[Status]]] = {
    "pending": frozenset({"in_progress", "completed", "failed", "cancelled"}),
    "in_progress": frozenset({"pending", "completed", "failed", "cancelled"}),
    # It goes on by itself once nothing blocks it any more.
    "blocked": frozenset({"failed", "cancelled"}),
}


def place_of(unit: Unit, session_id: str, run_id: str | None) -> ChatAddress | None:
    """Where who asks is told of a task; None for a subagent's, which speaks in no chat."""
    if not unit.kind(unit.lane(session_id)).speaks:
        return None
    if run_id is not None:
        return runs.get(unit.conn, run_id).target
    return sessions.get(unit.conn, session_id).address


def asker_of(unit: Unit, run_id: str | None) -> str | None:
    """The person for whom a run works; None where no run asks."""
    return None if run_id is None else runs.get(unit.conn, run_id).speaker.person_id


def may_stop(conn: Connection, task: Task, speaker: Speaker) -> bool:
    """Whether somebody may stop a task: who asked for it, whose own session it is in, and owners.
    What a program made, nobody asked for."""
    if speaker.trust is Trust.OWNER or task.asked_by == speaker.person_id:
        return True
    return is_of_person(sessions.get(conn, task.session_id).key, *speaker.platform_account)


def marked(unit: Unit, run_id: str | None) -> JsonObject:
    """The facts of a task that a run writes words of: the taint of what that has read goes along,
    so that whoever is shown them later has read it too (POL-6)."""
    tainted = run_id is not None and runs.get(unit.conn, run_id).tainted
    return {UNTRUSTED: True} if tainted else {}


def create(unit: Unit, session_id: str, asked: TaskCreate, *, run_id: str | None = None) -> Task:
    """Make a task that somebody does. Raises `NotFound`, `InvalidInput` for what it waits for,
    `Conflict` in a session that has ended, and `QueueFull`."""
    conn, lane = unit.conn, unit.lane(session_id)
    _check_open(unit, session_id)
    _check_room(unit, session_id)
    _check_known(unit, session_id, asked.blocked_by)
    task = Task(
        id=new_id(IdPrefix.TASK, lane.now_ms),
        session_id=session_id,
        kind="todo",
        title=asked.title,
        description=asked.description,
        status="pending",
        owner_agent_id=asked.owner_agent_id,
        metadata=asked.metadata,
        facts=marked(unit, run_id),
        created_ms=lane.now_ms,
        updated_ms=lane.now_ms,
        place=place_of(unit, session_id, run_id),
        notify=asked.notify,
        asked_by=asker_of(unit, run_id),
    )
    rows.add(conn, task, asked.blocked_by)
    _record(unit, task, EventKind.TASK_CREATED, run_id)
    return _look_at_blockers(unit, task)


def add_shell(unit: Unit, task: Task, *, run_id: str | None) -> None:
    """Keep the task of a command that is about to start. Raises as `create`."""
    _check_room(unit, task.session_id)
    rows.add(unit.conn, task)
    _record(unit, task, EventKind.TASK_CREATED, run_id)


def update(
    unit: Unit, session_id: str, task_id: str, asked: TaskUpdate, *, run_id: str | None = None
) -> Task:
    """Change what was asked for, or nothing. Raises `NotFound`, `InvalidInput`, `Conflict` with the
    present status, and `Forbidden` as `request_stop` where it is to be cancelled."""
    unit.lane(session_id)
    task = rows.get(unit.conn, session_id, task_id)
    given = asked.model_dump(exclude_unset=True)
    if not given:
        return task
    status = asked.status
    _check_change(task, asked)
    values: dict[str, object] = {
        name: given[name]
        for name in ("title", "description", "notify")
        if given.get(name) is not None
    }
    if "owner_agent_id" in given:
        values["owner_agent_id"] = asked.owner_agent_id
    if asked.metadata is not None:
        merged = {**task.metadata, **asked.metadata}
        values["metadata"] = {key: value for key, value in merged.items() if value is not None}
    if values.keys() & _WORDS:
        values["facts"] = {**task.facts, **marked(unit, run_id)}
    if asked.blocked_by is not None:
        _check_known(unit, session_id, asked.blocked_by)
        _check_circle(unit, task, asked.blocked_by)
        rows.set_blockers(unit.conn, task.id, asked.blocked_by)
    task = rows.change(unit.conn, task, **values)
    if asked.blocked_by is not None:
        task = _look_at_blockers(unit, task)
    if status is not None and status != task.status:
        if status == "cancelled":
            _check_run(unit, task, run_id)
        if status not in _NEXT.get(task.status, frozenset()):
            raise _no_way(unit, task, status)
        return settle(unit, task, status, {})
    _record(unit, task, EventKind.TASK_CHANGED)
    return task


def request_stop(
    unit: Unit,
    session_id: str,
    task_id: str,
    reason: str | None,
    by: str,
    *,
    run_id: str | None = None,
) -> Task:
    """Stop a task. The first stop counts; one that is over stays as it is. A command is in progress
    until its processes are gone, what has none is cancelled at once. Raises `NotFound`, and
    `Forbidden` where the run that stops it works for somebody who may not (`may_stop`)."""
    unit.lane(session_id)
    task = rows.get(unit.conn, session_id, task_id)
    _check_run(unit, task, run_id)
    if task.is_over or task.stop_requested_ms is not None:
        return task
    facts: JsonObject = {**task.facts, "stop_requested": True}
    if reason:
        facts |= {"stop_reason": reason, **marked(unit, run_id)}
    task = rows.change(
        unit.conn, task, stop_requested_ms=now_ms(unit.conn), stop_reason=reason, facts=facts
    )
    data: JsonObject = {"task_id": task.id, "reason": reason or ""}
    audit.append(unit.conn, actor=by, action="task.stopped", session_id=session_id, data=data)
    if task.kind == TO_DO:
        return settle(unit, task, "cancelled", {})
    _record(unit, task, EventKind.TASK_CHANGED)
    tell(unit, task, set())
    return task


def _check_run(unit: Unit, task: Task, run_id: str | None) -> None:
    """Raise `Forbidden` where a run works for somebody who may not stop a task. Without a run it is
    a person whose right was looked at, or a program of the operator."""
    if run_id is None:
        return
    if not may_stop(unit.conn, task, runs.get(unit.conn, run_id).speaker):
        raise Forbidden(NOT_YOURS)


def settle(
    unit: Unit, task: Task, status: Status, facts: JsonObject, *, tail: str = "", **values: object
) -> Task:
    """Give a task another status; who waits for it goes on, and who asked for it is told. `facts`
    are what became known with it, `tail` is the end of what it printed."""
    task = rows.change(unit.conn, task, status=status, facts={**task.facts, **facts}, **values)
    _record(unit, task, EventKind.TASK_CHANGED)
    if status in OVER:
        for _, waiting in rows.blocked_by(unit.conn, [task.id]):
            found = rows.find(unit.conn, waiting)
            if found is not None:
                _look_at_blockers(unit, found)
    tell(unit, task, {"done"} if status in OVER else set(), tail)
    return task


def note(unit: Unit, task: Task, facts: JsonObject, **values: object) -> Task:
    """Keep what the gateway found out about a task; a null takes a fact away."""
    merged = {**task.facts, **facts}
    kept = {key: value for key, value in merged.items() if value is not None}
    task = rows.change(unit.conn, task, facts=kept, **values)
    _record(unit, task, EventKind.TASK_CHANGED)
    return task


def tell(unit: Unit, task: Task, also: set[Notify], tail: str = "") -> None:
    """Tell who asked for a task how it stands, where they asked: those who want to hear of changes,
    and those in `also`."""
    if task.place is None or task.notify not in {"changes", *also}:
        return
    place, now = task.place, now_ms(unit.conn)
    message = OutboundMessage(
        outbox_id=new_id(IdPrefix.OUTBOX, now),
        target=place,
        parts=(TextPart(markdown=text_of(task, tail)),),
        session_id=task.session_id,
    )
    outbox.add(unit.conn, NewRow(kind="notice", message=message), now=now)
    unit.say(OUTBOX, {"channel": place.channel, "account": place.account})


def _check_open(unit: Unit, session_id: str) -> None:
    status = sessions.get(unit.conn, session_id).status
    if status != "open":
        raise Conflict("the session has ended, and nobody would do the task", status)


def _check_room(unit: Unit, session_id: str) -> None:
    if rows.open_count(unit.conn, session_id) >= MOST_OPEN:
        raise QueueFull(f"This session has {MOST_OPEN} tasks that are not over.")


def _check_known(unit: Unit, session_id: str, blockers: tuple[str, ...]) -> None:
    missing = set(blockers) - rows.known(unit.conn, session_id, blockers)
    if missing:
        raise InvalidInput("blocked_by", f"no task of this session has the id {min(missing)}")


def _check_circle(unit: Unit, task: Task, blockers: tuple[str, ...]) -> None:
    edges = {**rows.edges(unit.conn, task.session_id), task.id: set(blockers)}
    if reaches(edges, task.id):
        rule = f"would make the task {task.id} wait for itself; a task may not be in a circle"
        raise InvalidInput("blocked_by", rule)


def reaches(edges: Mapping[str, set[str]], start: str) -> bool:
    """Whether a task waits for itself, over however many others."""
    seen: set[str] = set()
    ahead = list(edges.get(start, ()))
    while ahead:
        one = ahead.pop()
        if one == start:
            return True
        if one not in seen:
            seen.add(one)
            ahead += edges.get(one, ())
    return False


def _check_change(task: Task, asked: TaskUpdate) -> None:
    if task.kind == SHELL and asked.status is not None and asked.status != task.status:
        raise Conflict(
            "the status of a command is what becomes of it; stop it to end it", task.status
        )
    if task.kind == SHELL and (asked.title is not None or asked.description is not None):
        # A card names a command by them.
        raise Conflict("the words of a command are what it runs, and stay so", task.status)
    if task.kind == SHELL and asked.blocked_by:
        raise InvalidInput("blocked_by", "must be empty: a command runs already")
    if task.is_over and asked.blocked_by is not None:
        raise Conflict(f"the task is {task.status} and waits for nothing any more", task.status)


def _no_way(unit: Unit, task: Task, status: Status) -> Conflict:
    cause = task.facts.get(BLOCKED_REASON)
    # An error has no mark, so words that need one stay out of it.
    told = isinstance(cause, str) and UNTRUSTED not in task.facts
    why = f" ({cause})" if told else ""
    behind = f" by {_named(_open_blockers(unit, task))}" if task.status == "blocked" else ""
    text = f"the task is {task.status}{behind}{why} and cannot become {status}"
    return Conflict(text, task.status)


def _open_blockers(unit: Unit, task: Task) -> list[Blocker]:
    found = rows.blockers_of(unit.conn, [task.id])
    return [one for one in found if one.status != "completed"]


def _named(blockers: list[Blocker]) -> str:
    more = len(blockers) - MOST_NAMED
    named = [one.id for one in blockers[:MOST_NAMED]]
    return ", ".join([*named, f"{more} more"] if more > 0 else named)


def _look_at_blockers(unit: Unit, task: Task) -> Task:
    """The task as what it waits for lets it be: blocked, with the cause where that will not end."""
    if task.is_over or task.kind == SHELL:
        return task
    open_ones = _open_blockers(unit, task)
    facts = {key: value for key, value in task.facts.items() if key != BLOCKED_REASON}
    lost = [one for one in open_ones if one.status in OVER]
    if lost:
        facts[BLOCKED_REASON] = "; ".join(map(_cause, lost))
        facts |= {UNTRUSTED: True} if any(one.untrusted for one in lost) else {}
    status: Status = task.status
    if open_ones:
        status = "blocked"
    elif task.status == "blocked":
        status = "pending"
    if status == task.status and facts == task.facts:
        return task
    changed = rows.change(unit.conn, task, status=status, facts=facts)
    _record(unit, changed, EventKind.TASK_CHANGED)
    tell(unit, changed, set())
    return changed


def _cause(blocker: Blocker) -> str:
    was = "failed" if blocker.status == "failed" else "was cancelled"
    return f"{blocker.id} ({blocker.title}) {was}"


def _record(unit: Unit, task: Task, kind: EventKind, run_id: str | None = None) -> None:
    data: JsonObject = {"task_id": task.id, "status": task.status, "title": task.title}
    unit.lane(task.session_id).record(kind, run_id, data)
    unit.changed(task.session_id)
    unit.say(TASKS, {"task_id": task.id})
