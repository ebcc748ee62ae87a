"""Tasks, which of them wait for which, and input for commands. Statements only."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Final, Literal

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Text,
    and_,
    case,
    delete,
    exists,
    func,
    insert,
    literal,
    literal_column,
    or_,
    select,
    text,
    update,
)

from runtime.domain.errors import NotFound
from runtime.domain.messages import ChatAddress
from runtime.domain.value import JsonObject
from runtime.features.tasks.model import OVER, UNTRUSTED, Notify, Status, TaskRecord
from runtime.features.tasks.tables import task_blocks, task_inputs, tasks
from runtime.sessions.due_work import DueCheck
from runtime.store.database import now_ms
from runtime.store.leases import PROCESS
from runtime.store.tables import leases

TO_DO, SHELL = "todo", "shell"
# The very words of the partial indexes: SQLite uses them for nothing else.
_LIVE: Final = text("tasks.kind = 'shell' AND tasks.status = 'in_progress'")
_TREE_OPEN: Final = text("tasks.tree_open")


@dataclass(frozen=True, slots=True)
class Task:
    """One row. `facts` are what the gateway found out; those of a command say which process holds
    it (`worker`, on `host`), and `token`, `pid` and `started_ticks` tell its tree from others.
    `asked_by` is the person whose run made it. `tree_open`: nobody has made sure yet that the tree
    is gone. `output_path` is below the workspace; `output_dropped` are the bytes that `rotations`
    took out of the file."""

    id: str
    session_id: str
    kind: Literal["todo", "shell"]
    title: str
    status: Status
    created_ms: int
    updated_ms: int
    description: str = ""
    owner_agent_id: str | None = None
    metadata: JsonObject = field(default_factory=dict)
    facts: JsonObject = field(default_factory=dict)
    place: ChatAddress | None = None
    notify: Notify = "silent"
    asked_by: str | None = None
    stop_requested_ms: int | None = None
    stop_reason: str | None = None
    worker: str | None = None
    host: str | None = None
    token: str | None = None
    pid: int | None = None
    started_ticks: int | None = None
    tree_open: bool = False
    output_path: str | None = None
    output_dropped: int = 0
    rotations: int = 0

    @property
    def is_over(self) -> bool:
        """Whether it keeps its status."""
        return self.status in OVER


@dataclass(frozen=True, slots=True)
class Blocker:
    """A task that another one waits for."""

    task_id: str
    id: str
    title: str
    status: Status
    untrusted: bool


@dataclass(frozen=True, slots=True)
class Typed:
    """A piece of input for a command; `closes` ends the input behind it."""

    text: str
    closes: bool


def add(conn: Connection, task: Task, blockers: Sequence[str] = ()) -> None:
    """Keep a new one."""
    conn.execute(insert(tasks).values(_values(asdict(replace(task, place=None)), task.place)))
    set_blockers(conn, task.id, blockers)


def get(conn: Connection, session_id: str, task_id: str) -> Task:
    """A task of this very session. Raises `NotFound`, also for another session's."""
    mine = (tasks.c.id == task_id) & (tasks.c.session_id == session_id)
    row = conn.execute(select(tasks).where(mine)).first()
    if row is None:
        raise NotFound("task", task_id)
    return _read(row)


def find(conn: Connection, task_id: str) -> Task | None:
    """A task of whatever session."""
    row = conn.execute(select(tasks).where(tasks.c.id == task_id)).first()
    return None if row is None else _read(row)


def change(conn: Connection, task: Task, **values: object) -> Task:
    """Change one whose lane this unit holds; the task as it is then."""
    kept = {**values, "updated_ms": max(now_ms(conn), task.updated_ms)}
    mine = tasks.c.id == task.id
    conn.execute(update(tasks).where(mine).values(_values(kept)))
    return _read(conn.execute(select(tasks).where(mine)).one())


def listing(
    conn: Connection,
    session_id: str,
    *,
    status: Status | None = None,
    after: str = "",
    limit: int,
) -> Sequence[Task]:
    """A session's tasks behind the id `after`, in the order of their making."""
    query = select(tasks).where(tasks.c.session_id == session_id, tasks.c.id > after)
    if status is not None:
        query = query.where(tasks.c.status == status)
    return [_read(row) for row in conn.execute(query.order_by(tasks.c.id).limit(limit))]


def total(conn: Connection, session_id: str, status: Status | None = None) -> int:
    """How many tasks a session has, of one status or of all."""
    query = select(func.count()).select_from(tasks).where(tasks.c.session_id == session_id)
    if status is not None:
        query = query.where(tasks.c.status == status)
    return conn.execute(query).scalar_one()


def open_count(conn: Connection, session_id: str) -> int:
    """How many tasks of a session are not over."""
    mine = (tasks.c.session_id == session_id) & tasks.c.status.not_in(OVER)
    return conn.execute(select(func.count()).select_from(tasks).where(mine)).scalar_one()


def newest(conn: Connection, session_id: str, limit: int) -> Sequence[Task]:
    """The newest tasks of a session, the newest first; those that are not over stand in front."""
    query = select(tasks).where(tasks.c.session_id == session_id)
    over = case((tasks.c.status.in_(OVER), 1), else_=0)
    rows = conn.execute(query.order_by(over, tasks.c.id.desc()).limit(limit))
    return [_read(row) for row in rows]


def of_person(
    conn: Connection, person_id: str, session_ids: Collection[str], limit: int
) -> Sequence[Task]:
    """What a person asked for, and what there is in sessions of theirs: first what is not over,
    then commands that ended, the newest first."""
    theirs = or_(tasks.c.asked_by == person_id, tasks.c.session_id.in_(session_ids))
    over = case((tasks.c.status.in_(OVER), 1), else_=0)
    query = select(tasks).where(theirs, or_(tasks.c.status.not_in(OVER), tasks.c.kind == SHELL))
    rows = conn.execute(query.order_by(over, tasks.c.id.desc()).limit(limit))
    return [_read(row) for row in rows]


def ending_with(conn: Connection, session_id: str, code: str) -> Sequence[Task]:
    """The tasks of a session whose ids end with this code."""
    named = tasks.c.id.endswith(code, autoescape=True)
    query = select(tasks).where(tasks.c.session_id == session_id, named)
    return [_read(row) for row in conn.execute(query.order_by(tasks.c.id).limit(2))]


def set_blockers(conn: Connection, task_id: str, blockers: Sequence[str]) -> None:
    """What a task waits for, and nothing else, from now on."""
    conn.execute(delete(task_blocks).where(task_blocks.c.task_id == task_id))
    if blockers:
        kept = [{"task_id": task_id, "blocker_id": one} for one in dict.fromkeys(blockers)]
        conn.execute(insert(task_blocks), kept)


def blockers_of(conn: Connection, task_ids: Collection[str]) -> Sequence[Blocker]:
    """What these tasks wait for, whether or not it is over."""
    if not task_ids:
        return []
    joined = task_blocks.join(tasks, tasks.c.id == task_blocks.c.blocker_id)
    columns = (tasks.c.id, tasks.c.title, tasks.c.status, tasks.c.facts)
    query = select(task_blocks.c.task_id, *columns)
    rows = conn.execute(
        query.select_from(joined)
        .where(task_blocks.c.task_id.in_(task_ids))
        .order_by(task_blocks.c.task_id, tasks.c.id)
    )
    return [
        Blocker(row.task_id, row.id, row.title, row.status, UNTRUSTED in json.loads(row.facts))
        for row in rows
    ]


def blocked_by(conn: Connection, task_ids: Collection[str]) -> Sequence[tuple[str, str]]:
    """(blocker, the task that waits for it) of these blockers."""
    if not task_ids:
        return []
    query = select(task_blocks.c.blocker_id, task_blocks.c.task_id)
    there = task_blocks.c.blocker_id.in_(task_ids)
    return [(row[0], row[1]) for row in conn.execute(query.where(there).order_by(*task_blocks.c))]


def edges(conn: Connection, session_id: str) -> Mapping[str, set[str]]:
    """What each task of a session waits for."""
    joined = task_blocks.join(tasks, tasks.c.id == task_blocks.c.task_id)
    query = select(task_blocks.c.task_id, task_blocks.c.blocker_id).select_from(joined)
    found: dict[str, set[str]] = {}
    for task_id, blocker_id in conn.execute(query.where(tasks.c.session_id == session_id)):
        found.setdefault(task_id, set()).add(blocker_id)
    return found


def known(conn: Connection, session_id: str, task_ids: Collection[str]) -> set[str]:
    """Which of these are tasks of the session."""
    there = (tasks.c.session_id == session_id) & tasks.c.id.in_(task_ids)
    return set(conn.execute(select(tasks.c.id).where(there)).scalars())


def records(conn: Connection, found: Sequence[Task]) -> list[TaskRecord]:
    """Tasks as people and programs see them."""
    ids = [task.id for task in found]
    waits: dict[str, list[str]] = {}
    for one in blockers_of(conn, ids):
        waits.setdefault(one.task_id, []).append(one.id)
    holds: dict[str, list[str]] = {}
    for blocker_id, task_id in blocked_by(conn, ids):
        holds.setdefault(blocker_id, []).append(task_id)
    return [
        TaskRecord(
            id=task.id,
            title=task.title,
            description=task.description,
            status=task.status,
            owner_agent_id=task.owner_agent_id,
            blocked_by=tuple(waits.get(task.id, ())),
            blocks=tuple(holds.get(task.id, ())),
            output=task.output_path,
            metadata={**task.metadata, **task.facts},
            created_at_ms=task.created_ms,
            updated_at_ms=task.updated_ms,
        )
        for task in found
    ]


def type_in(conn: Connection, task_id: str, typed: Typed) -> None:
    """Keep input for a command until whoever holds it takes it."""
    conn.execute(insert(task_inputs).values(task_id=task_id, **asdict(typed)))


def take_input(conn: Connection, task_id: str) -> Sequence[Typed]:
    """What was typed for a command, in order; it is taken once."""
    mine = task_inputs.c.task_id == task_id
    rows = conn.execute(select(task_inputs).where(mine).order_by(task_inputs.c.position)).all()
    taken = [row.position for row in rows]
    conn.execute(delete(task_inputs).where(task_inputs.c.position.in_(taken)))
    return [Typed(row.text, row.closes) for row in rows]


def waiting_input(conn: Connection, task_id: str) -> int:
    """How many pieces were typed that nobody has taken."""
    mine = task_inputs.c.task_id == task_id
    return conn.execute(select(func.count()).select_from(task_inputs).where(mine)).scalar_one()


def live_of(conn: Connection, worker: str) -> Sequence[Task]:
    """The commands that a process holds."""
    rows = conn.execute(select(tasks).where(_LIVE, tasks.c.worker == worker).order_by(tasks.c.id))
    return [_read(row) for row in rows]


def live_in(conn: Connection, session_id: str) -> int:
    """How many commands of a session are at work."""
    query = select(func.count()).select_from(tasks).where(_LIVE, tasks.c.session_id == session_id)
    return conn.execute(query).scalar_one()


def orphans(conn: Connection) -> Sequence[Task]:
    """Commands whose process is gone, or lost its lease."""
    query = select(tasks).where(_LIVE, _is_dead(literal(now_ms(conn))))
    return [_read(row) for row in conn.execute(query.order_by(tasks.c.id))]


def is_orphan(conn: Connection, task_id: str) -> bool:
    """Whether the process that holds a command is gone."""
    query = select(tasks.c.id).where(tasks.c.id == task_id, _LIVE, _is_dead(literal(now_ms(conn))))
    return conn.execute(query).first() is not None


def open_trees(conn: Connection) -> Sequence[Task]:
    """Tasks that are over and whose processes nobody has made sure of."""
    query = select(tasks).where(_TREE_OPEN, tasks.c.status.in_(OVER))
    return [_read(row) for row in conn.execute(query.order_by(tasks.c.id))]


def _values(found: Mapping[str, object], place: ChatAddress | None = None) -> dict[str, object]:
    kept = dict(found)
    for name in ("metadata", "facts"):
        if name in kept:
            kept[name] = json.dumps(kept[name])
    if place is not None:
        kept["place"] = place.model_dump_json()
    return kept


def _read(row: Row[tuple[object, ...]]) -> Task:
    found = dict(row._mapping)
    for name in ("metadata", "facts"):
        found[name] = json.loads(found[name])
    if found["place"] is not None:
        found["place"] = ChatAddress.model_validate_json(found["place"])
    return Task(**found)


def _is_dead(now: ColumnElement[int]) -> ColumnElement[bool]:
    return ~exists().where(
        leases.c.holder == tasks.c.worker,
        leases.c.name.startswith(literal_column(f"'{PROCESS}'", Text())),
        leases.c.expires_ms > now,
    )


def _due(now: ColumnElement[int]) -> ColumnElement[bool]:
    typed = exists().where(task_inputs.c.task_id == tasks.c.id)
    wanted = or_(tasks.c.stop_requested_ms.is_not(None), typed, _is_dead(now))
    return exists().where(and_(_LIVE, wanted)).select_from(tasks)


TASKS_DUE: Final = DueCheck("tasks", _due)
