"""Rows of subagents: who they are, whom they wait for, and what came of them. Statements only."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final, Literal

from sqlalchemy import Connection, bindparam, case, delete, func, insert, or_, select, text, update

from runtime.domain.errors import NotFound
from runtime.domain.people import Speaker
from runtime.domain.results import Shortened
from runtime.domain.runs import TERMINAL
from runtime.features.subagents.tables import (
    agent_cards,
    agent_results,
    agent_waits,
    agents,
)
from runtime.sessions.runs import Run
from runtime.sessions.tables import runs, seen_files, tool_calls
from runtime.store.payloads import kept
from runtime.store.row_values import quick
from runtime.store.statements import hot

Mode = Literal["await", "background"]
Status = Literal["completed", "failed", "cancelled", "timed_out", "forced"]
Share = Literal["isolated", "handoff", "inherit-readonly"]
Retention = Literal["retain", "close_on_settle"]
Isolation = Literal["full", "selective", "shared"]
TreeState = Literal["open", "clean", "kept", "gone"]
HELD: Final = "held"
"""The gate of a lane whose agent waits for others; it wants no slot yet."""
SUBAGENT: Final = "subagent"
"""The kind of an agent's session; its key begins with it too."""
ROOT: Final = "root"
"""What the session at the top of a tree is called in it."""
DEPENDENCY: Final = "dependency"
"""Why one waits for another whose result it needs; else it is an earlier one of its group."""
LIVE: Final = "settled_ms IS NULL"


@quick
class Agent:
    """One child. `tree_id` is the session at the root, `parent_id` the session that spawned it by
    the call (`run_id`, `step`, `call_place`). `stop` is why it is to end, and `quiet` that nobody
    waits to hear of it. `payer` is the run at the root on whose budget it counts. `status` and what
    it cost are set when it settles; times are in ms. `retries` counts how often it began anew.

    `result` is the beginning of what it gave, where `result_digest` names the whole. `artifacts`
    is a JSON list of the files that it wrote. `request_key` makes the spawn repeatable.

    `worktree` is the agent's session whose worktree its files are in, None where that is the
    workspace; `base` is the commit at which its own began, and `tree_state` what became of that.
    `deadline_ms` is when it ends, whatever it does then; None: never."""

    session_id: str
    tree_id: str
    parent_id: str
    name: str
    place: int
    depth: int
    type: str
    task: str
    mode: Mode
    on_failure: str
    run_id: str
    step: int
    call_place: int
    created_ms: int
    label: str = ""
    group_name: str | None = None
    prompt: str = ""
    request_key: str | None = None
    request_digest: str | None = None
    share: Share = "handoff"
    retention: Retention = "retain"
    payer: str = ""
    stop: str | None = None
    quiet: bool = False
    status: Status | None = None
    result: str = ""
    result_bytes: int = 0
    result_digest: str | None = None
    artifacts: str = "[]"
    steps: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    held_ms: int | None = None
    settled_ms: int | None = None
    retries: int = 0
    isolation: Isolation = "full"
    worktree: str | None = None
    base: str | None = None
    tree_state: TreeState | None = None
    description: str = ""
    deadline_ms: int | None = None

    @property
    def settled(self) -> bool:
        """Whether it has ended, and nobody told it to go on since."""
        return self.settled_ms is not None

    def lasted_ms(self, now: int) -> int:
        """How long it was there until it settled, or until `now`."""
        return max(0, (now if self.settled_ms is None else self.settled_ms) - self.created_ms)


@dataclass(frozen=True, slots=True)
class Totals:
    """What an agent used in all its runs."""

    steps: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    tainted: bool = False


COLUMNS: Final = tuple(agents.c[field.name] for field in fields(Agent))
"""In the order of an agent's fields, so that a row begins with them: a tree may have a thousand."""
_ALL = select(*COLUMNS)
_ADD = hot(insert(agents))
_ONE = hot(_ALL.where(agents.c.session_id == bindparam("the_session")))
_OF_TREE = hot(_ALL.where(agents.c.tree_id == bindparam("the_tree")).order_by(agents.c.place))
_OF_CALL = hot(
    _ALL.where(
        agents.c.run_id == bindparam("the_run"),
        agents.c.step == bindparam("the_step"),
        agents.c.call_place == bindparam("the_place"),
    ).order_by(agents.c.place)
)


def add(conn: Connection, agent: Agent) -> None:
    """Keep a new one."""
    _ADD.change(conn, **{column.name: getattr(agent, column.name) for column in COLUMNS})


def wait(conn: Connection, session_id: str, behind: Mapping[str, str]) -> None:
    """Let an agent start only behind others; `behind` are their sessions, with the kind of each."""
    if behind:
        conn.execute(
            insert(agent_waits),
            [
                {"session_id": session_id, "other_id": other, "kind": kind}
                for other, kind in behind.items()
            ],
        )


def find(conn: Connection, session_id: str) -> Agent | None:
    """The agent of a session; None where it is nobody's child."""
    row = _ONE.first(conn, the_session=session_id)
    return None if row is None else Agent(*row)


def get(conn: Connection, session_id: str) -> Agent:
    """Raises `NotFound`."""
    found = find(conn, session_id)
    if found is None:
        raise NotFound("agent", session_id)
    return found


def tree_of(conn: Connection, session_id: str) -> str:
    """The session at the root of the tree that one is in, or that it is the root of."""
    own = find(conn, session_id)
    return session_id if own is None else own.tree_id


def path(conn: Connection, session_id: str) -> str:
    """The names from the root to an agent, as ``root > explore-1``; empty for nobody's child."""
    names: list[str] = []
    one = find(conn, session_id)
    while one is not None:
        names.append(one.name)
        one = find(conn, one.parent_id)
    return " > ".join([ROOT, *reversed(names)]) if names else ""


def payer_of(conn: Connection, run: Run) -> str:
    """The run on whose budget a run counts: its own, or for a child's one at the root (MSG-20)."""
    own = find(conn, run.session_id)
    return run.id if own is None else own.payer or own.run_id


def of_tree(conn: Connection, tree_id: str) -> Sequence[Agent]:
    """All that were ever spawned below a root, in that order."""
    return [Agent(*row) for row in _OF_TREE.rows(conn, the_tree=tree_id)]


def of_call(conn: Connection, run_id: str, step: int, place: int) -> Sequence[Agent]:
    """Those that one call spawned."""
    found = _OF_CALL.rows(conn, the_run=run_id, the_step=step, the_place=place)
    return [Agent(*row) for row in found]


def of_request(conn: Connection, parent_id: str, key: str) -> Sequence[Agent]:
    """Those that a session spawned under a key, in that order."""
    rows = conn.execute(
        _ALL.where(
            agents.c.parent_id == parent_id,
            agents.c.request_key == key,
            text("request_key IS NOT NULL"),
        ).order_by(agents.c.place)
    )
    return [Agent(*row) for row in rows]


_LIVE_CHILDREN = hot(
    _ALL.where(agents.c.parent_id == bindparam("the_parent"), text(LIVE)).order_by(agents.c.place)
)
_WAITS = hot(
    select(agent_waits.c.session_id, agent_waits.c.other_id)
    .join(agents, agents.c.session_id == agent_waits.c.session_id)
    .where(agents.c.tree_id == bindparam("the_tree"), agent_waits.c.kind == DEPENDENCY)
)


def live_children(conn: Connection, parent_id: str) -> Sequence[Agent]:
    """Those of a session that have not settled."""
    return [Agent(*row) for row in _LIVE_CHILDREN.rows(conn, the_parent=parent_id)]


def speakers_at_work(conn: Connection, session_ids: Sequence[str]) -> Sequence[Speaker]:
    """For whom the runs of these agents work that are not over."""
    over = [state.value for state in TERMINAL]
    at_work = runs.c.session_id.in_(session_ids) & runs.c.state.not_in(over)
    found = conn.execute(select(runs.c.speaker).where(at_work).distinct()).scalars()
    return [kept(Speaker, one) for one in found]


def waits(conn: Connection, tree_id: str) -> Mapping[str, Sequence[str]]:
    """Whom each agent of a tree needs the result of, by session."""
    found: dict[str, list[str]] = {}
    for row in _WAITS.rows(conn, the_tree=tree_id):
        found.setdefault(row.session_id, []).append(row.other_id)
    return found


@dataclass(frozen=True, slots=True)
class Ahead:
    """Somebody whom an agent waits for or waited for. It is `needed` where its result is; else it
    is an earlier one of the same group."""

    agent: Agent
    needed: bool


def in_front(conn: Connection, session_id: str) -> Sequence[Ahead]:
    """Everybody who stands in front of an agent, in the order of spawning."""
    rows = conn.execute(
        select(*COLUMNS, agent_waits.c.kind)
        .join(agent_waits, agent_waits.c.other_id == agents.c.session_id)
        .where(agent_waits.c.session_id == session_id)
        .order_by(agents.c.place)
    )
    return [Ahead(Agent(*row[:-1]), row.kind == DEPENDENCY) for row in rows]


_OF_RUN = hot(select(func.count()).where(agents.c.run_id == bindparam("the_run")))
_OF_TIME = hot(
    select(func.count()).where(
        agents.c.tree_id == bindparam("the_tree"), agents.c.created_ms >= bindparam("since_ms")
    )
)


def spawned_by(conn: Connection, run_id: str) -> int:
    """How many a run spawned."""
    return _OF_RUN.rows(conn, the_run=run_id)[0][0]


def spawned_since(conn: Connection, tree_id: str, moment_ms: int) -> int:
    """How many came into a tree since a moment."""
    return _OF_TIME.rows(conn, the_tree=tree_id, since_ms=moment_ms)[0][0]


def mark_stopped(
    conn: Connection, parent_id: str, reason: str, *, run_id: str | None = None
) -> int:
    """Note that the live children of a session, or of one run of it, are to end, and tell nobody;
    how many are new."""
    theirs = agents.c.parent_id == parent_id
    changed = conn.execute(
        update(agents)
        .where(
            theirs if run_id is None else theirs & (agents.c.run_id == run_id),
            text(LIVE),
            or_(agents.c.stop.is_(None), agents.c.quiet.is_(False)),
        )
        .values(stop=func.coalesce(agents.c.stop, reason), quiet=True)
    )
    return changed.rowcount


def ask_to_stop(conn: Connection, session_id: str, reason: str) -> bool:
    """Note that one agent is to end, and tell its parent; False where it has ended."""
    changed = conn.execute(
        update(agents)
        .where(agents.c.session_id == session_id, text(LIVE), agents.c.stop.is_(None))
        .values(stop=reason)
    )
    return changed.rowcount == 1


def totals(conn: Connection, session_id: str) -> Totals:
    """What a session's runs used so far."""
    row = conn.execute(
        select(
            func.coalesce(func.sum(runs.c.step), 0).label("steps"),
            func.coalesce(func.sum(runs.c.input_tokens), 0).label("taken"),
            func.coalesce(func.sum(runs.c.output_tokens), 0).label("given"),
            func.sum(runs.c.cost_usd).label("cost"),
            func.max(runs.c.tainted).label("tainted")
            if conn.dialect.name == "sqlite"
            else func.bool_or(runs.c.tainted).label("tainted"),
        ).where(runs.c.session_id == session_id)
    ).one()
    called = conn.execute(
        select(func.count())
        .select_from(tool_calls)
        .join(runs, runs.c.id == tool_calls.c.run_id)
        .where(runs.c.session_id == session_id)
    ).scalar_one()
    return Totals(
        steps=int(row.steps),
        tool_calls=called,
        input_tokens=int(row.taken),
        output_tokens=int(row.given),
        cost_usd=row.cost,
        tainted=bool(row.tainted),
    )


def change(conn: Connection, session_id: str, **values: object) -> None:
    """Change columns of one."""
    conn.execute(update(agents).where(agents.c.session_id == session_id).values(**values))


def settle(
    conn: Connection,
    session_id: str,
    status: Status,
    result: Shortened,
    *,
    artifacts: Sequence[str],
    used: Totals,
    now: int,
) -> None:
    """Keep what came of one: how it ended, what it gave, the paths of the files that it wrote, and
    what it used."""
    change(
        conn,
        session_id,
        status=status,
        result=result.preview,
        result_bytes=result.size,
        result_digest=result.digest,
        artifacts=json.dumps(list(artifacts)),
        steps=used.steps,
        tool_calls=used.tool_calls,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cost_usd=used.cost_usd,
        held_ms=None,
        settled_ms=now,
    )


def answer(conn: Connection, session_id: str, *, status: Status, result: str) -> None:
    """Keep what a live agent gave, that settles once its children have."""
    change(conn, session_id, status=status, result=result, result_digest=None)


def reopen(conn: Connection, session_id: str, *, held_ms: int | None, payer: str) -> None:
    """Let an agent that settled be live again; whoever locked its lane gives it something to do.

    Nobody awaits it any more, so its next end is told in the background. One that ended while it
    waited for others waits for them again since `held_ms`. It counts on the budget of `payer`. The
    time that it was given was for its task.
    """
    change(
        conn,
        session_id,
        settled_ms=None,
        status=None,
        stop=None,
        quiet=False,
        mode="background",
        held_ms=held_ms,
        deadline_ms=None,
        payer=payer,
        # Its worktree is looked at again, and made again where it is gone.
        tree_state=case((agents.c.tree_state.is_not(None), "open")),
    )


def to_background(conn: Connection, run_id: str, step: int, place: int) -> None:
    """The children of one call are awaited no longer (SUB-7)."""
    conn.execute(
        update(agents)
        .where(
            agents.c.run_id == run_id,
            agents.c.step == step,
            agents.c.call_place == place,
            text(LIVE),
        )
        .values(mode="background")
    )


def erase(conn: Connection, session_ids: Sequence[str]) -> None:
    """Delete what is kept of these sessions as agents, and of what they spawned."""
    own = select(runs.c.id).where(runs.c.session_id.in_(session_ids))
    conn.execute(delete(agent_cards).where(agent_cards.c.run_id.in_(own)))
    either = agent_waits.c.session_id.in_(session_ids) | agent_waits.c.other_id.in_(session_ids)
    conn.execute(delete(agent_waits).where(either))
    for table in (seen_files, agent_results, agents):
        conn.execute(delete(table).where(table.c.session_id.in_(session_ids)))
