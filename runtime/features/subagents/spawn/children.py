"""Children: made in the unit that parks or answers their parent's call, and started when nothing
stands in front of them any more (SUB-5, SUB-7, SUB-11)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from runtime.domain.decisions import SessionMode
from runtime.domain.errors import Conflict
from runtime.domain.events import EventKind
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import Attachment
from runtime.domain.printable import one_line
from runtime.domain.results import plain
from runtime.domain.routes import Generation
from runtime.domain.runs import RunKind, RunState
from runtime.features.subagents.ends import child_end, result_text
from runtime.features.subagents.notices import Told, notice, queue_run
from runtime.features.subagents.rows import agents, inherited_grants, retries
from runtime.features.subagents.rows.agents import HELD, SUBAGENT, Agent, Share
from runtime.features.subagents.settings import ChildSettings
from runtime.features.subagents.spawn import child_capabilities, inherited_history, isolation
from runtime.features.subagents.spawn.agent_types import Types
from runtime.features.subagents.spawn.child_capabilities import HELD_ALL, Held
from runtime.features.subagents.spawn.isolation import Defined, Placing
from runtime.features.subagents.spawn.spawn_arguments import (
    NOTHING_ASKED,
    AgentRequest,
    Asked,
    Problem,
    SpawnArguments,
)
from runtime.features.subagents.spawn.spawn_requests import Spawner, check, too_wide
from runtime.features.subagents.spawn.wait_graph import Node, Tree
from runtime.ports.bus import EVENTS
from runtime.sessions import inputs, lanes, runs, sessions
from runtime.sessions.inputs import PERSON
from runtime.sessions.lanes import SHUT, Lane, NewSession
from runtime.sessions.runs import Run
from runtime.sessions.sessions import Inheritance, Scope
from runtime.sessions.unit import Unit
from runtime.store import Connection

ROOT: Final = agents.ROOT
MINUTE_MS: Final = 60_000
ABOUT: Final = (
    "You are the subagent {name} of type {type}. Do the task that follows. What you say last is "
    "your result: it is handed to the agent that started you, and nobody else reads it."
)
"""How a child's transcript begins."""


@dataclass(frozen=True, slots=True)
class Extras:
    """What a program gives one agent that no call of a model can: how its model writes (None: as
    that of the spawner, if it is the same), the names of credentials that it may have, `words` that
    it is told before its task, and `files` that come with the task, which are among those of the
    session `session_id` already. `broken` are rules that were found broken before the unit."""

    generation: Generation | None = None
    secrets: tuple[str, ...] | None = None
    words: str = ""
    files: tuple[Attachment, ...] = ()
    session_id: str | None = None
    broken: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class SpawnOrder:
    """The `arguments` of a spawn, and what was looked up for them: the `types` that the spawner may
    use, what it `held` itself, and where its children are to be. The `digest` is of the call as it
    was sent."""

    arguments: SpawnArguments
    types: Types
    settings: ChildSettings
    digest: str | None = None
    held: Held = HELD_ALL
    placing: Placing = field(default_factory=Placing)
    extras: Extras = field(default_factory=Extras)

    @property
    def asked(self) -> Asked:
        """What its children are to have of what the spawner has."""
        return self.arguments.asked.model_copy(update={"secrets": self.extras.secrets})

    @property
    def share(self) -> Share:
        """How much of memory its children share."""
        return self.arguments.memory_share_mode or self.settings.share


@dataclass(frozen=True, slots=True)
class Spawned:
    """What came of a spawn: the children, or everything that is wrong with it."""

    agents: tuple[Agent, ...] = ()
    problems: tuple[Problem, ...] = ()


def spawn(unit: Unit, lane: Lane, run: Run, *, step: int, place: int, order: SpawnOrder) -> Spawned:
    """Make the children that a call asks for; nothing where a rule is broken. The parent's lane is
    held."""
    conn = unit.conn
    parent = agents.find(conn, lane.session_id)
    tree_id = lane.root_id
    # Two members of a tree spawn one after the other: names and limits are the tree's.
    unit.lane(tree_id)
    everybody = agents.of_tree(conn, tree_id)
    own = parent.name if parent else ROOT
    in_run = agents.spawned_by(conn, run.id)
    in_minute = agents.spawned_since(conn, tree_id, lane.now_ms - MINUTE_MS)
    alone = unattended(conn, lane.session_id, tree_id)
    types, settings = order.types, order.settings
    models = settings.models.offered
    spawner = Spawner(own, types.may, types.known, in_run, in_minute, models, alone)
    there = tree_of(conn, tree_id, everybody)
    problems = (
        *check(order.arguments, there, spawner, settings.limits),
        *too_wide(order.share, settings.share),
        *_widenings(order),
        *_places(order),
        *order.extras.broken,
    )
    if problems:
        return Spawned(problems=problems)
    made = _made(order, lane, run, parent=parent, everybody=everybody, step=step, place=place)
    for one in made:
        _session(unit, one, lane, run, order)
        agents.add(conn, one)
        isolation.give_seen(conn, one, order.placing)
    everybody = (*everybody, *made)
    for one, wanted in zip(made, order.arguments.wanted, strict=True):
        agents.wait(conn, one.session_id, _behind(one, wanted, everybody))
        lane.record(
            EventKind.AGENT_SPAWNED,
            run.id,
            {"agent": one.name, "type": one.type, "session_id": one.session_id},
        )
    return Spawned(tuple(made))


def unattended(conn: Connection, session_id: str, tree_id: str) -> int:
    """Runs of a session that results alone began, since a person last spoke to its tree."""
    since_ms = retries.spoken_ms(conn, tree_id)
    return retries.handed(conn, session_id, since_ms=since_ms)


def _widenings(order: SpawnOrder) -> tuple[Problem, ...]:
    """What of a spawn asks for more than the spawner or a type has (POL-5)."""
    found: dict[Problem, None] = {}
    asked = order.asked
    if asked == NOTHING_ASKED:
        return ()
    for kind in dict.fromkeys(wanted.type for wanted in order.arguments.wanted):
        profile = order.types.profiles.get(kind)
        if profile is not None:
            wrong = child_capabilities.problems(order.held, asked, profile.tools)
            found |= dict.fromkeys(wrong)
    return tuple(found)


def _places(order: SpawnOrder) -> Sequence[Problem]:
    """What is wrong with where the children are to be; a type that nobody knows says nothing."""
    profiles = [order.types.profiles.get(wanted.type) for wanted in order.arguments.wanted]
    kinds = [profile.isolation if profile else Defined() for profile in profiles]
    return isolation.problems(order.placing, kinds)


def tree_of(conn: Connection, tree_id: str, everybody: Sequence[Agent]) -> Tree:
    """Who waits for whom in a tree, by their names in it."""
    names = {tree_id: ROOT} | {one.session_id: one.name for one in everybody}
    needs = agents.waits(conn, tree_id)
    awaits: dict[str, list[str]] = {}
    for one in everybody:
        if not one.settled:
            awaits.setdefault(one.parent_id, []).append(one.name)
    nodes = [Node(id=ROOT, awaits=tuple(awaits.get(tree_id, ())))]
    nodes += [
        Node(
            id=one.name,
            parent=names.get(one.parent_id, ROOT),
            depends_on=tuple(names[other] for other in needs.get(one.session_id, ())),
            group=one.group_name,
            place=one.place,
            awaits=tuple(awaits.get(one.session_id, ())),
            settled=one.settled,
            began=one.held_ms is None,
        )
        for one in everybody
    ]
    return Tree({node.id: node for node in nodes})


def _made(
    order: SpawnOrder,
    lane: Lane,
    run: Run,
    *,
    parent: Agent | None,
    everybody: Sequence[Agent],
    step: int,
    place: int,
) -> Sequence[Agent]:
    asked = order.arguments
    taken = {ROOT, *(one.name for one in everybody)}
    taken |= {wanted.id for wanted in asked.wanted if wanted.id is not None}
    last = max((one.place for one in everybody), default=0)
    found: list[Agent] = []
    for number, wanted in enumerate(asked.wanted, start=last + 1):
        name = wanted.id or _name(wanted.type, number, taken)
        taken.add(name)
        profile = order.types.profiles[wanted.type]
        made = Agent(
            session_id=order.extras.session_id or new_id(IdPrefix.SESSION, lane.now_ms),
            tree_id=lane.root_id,
            parent_id=lane.session_id,
            name=name,
            place=number,
            depth=lane.depth + 1,
            type=wanted.type,
            label="" if asked.agents else one_line(plain(asked.label)),
            task=plain(wanted.task),
            mode=asked.mode,
            on_failure=asked.on_dependency_failure,
            group_name=wanted.group,
            prompt=profile.prompt,
            payer=(parent.payer or parent.run_id) if parent else run.id,
            run_id=run.id,
            step=step,
            call_place=place,
            request_key=asked.spawn_request_id,
            request_digest=order.digest,
            description=one_line(plain(asked.description)),
            deadline_ms=_deadline(order, parent, lane.now_ms),
            share=order.share,
            retention=asked.retention,
            created_ms=lane.now_ms,
            held_ms=lane.now_ms,
        )
        found.append(isolation.placed(made, parent, order.placing, profile.isolation))
    return found


def _deadline(order: SpawnOrder, parent: Agent | None, now: int) -> int | None:
    """When a new child ends at the latest: with its parent, or before."""
    seconds = order.arguments.timeout_s
    own = None if seconds is None else now + seconds * 1000
    return _least(own, parent.deadline_ms if parent else None)


def _least(*bounds: int | None) -> int | None:
    return min((one for one in bounds if one is not None), default=None)


def _name(kind: str, number: int, taken: set[str]) -> str:
    name = f"{kind}-{number}"
    while name in taken:
        name += "x"
    return name


def _behind(one: Agent, wanted: AgentRequest, everybody: Sequence[Agent]) -> Mapping[str, str]:
    """Whom an agent stands behind: those whose results it needs, and earlier ones of its group."""
    needed = set(wanted.depends_on)
    found = {other.session_id: agents.DEPENDENCY for other in everybody if other.name in needed}
    for other in everybody:
        same = one.group_name is not None and other.group_name == one.group_name
        if same and other.place < one.place and not other.settled:
            found.setdefault(other.session_id, "group")
    return found


def _session(unit: Unit, one: Agent, parent: Lane, run: Run, order: SpawnOrder) -> None:
    """A session with a task in its lane, which is held until somebody looks who it waits for."""
    conn = unit.conn
    above = inherited_grants.reached(conn, sessions.get(conn, parent.session_id))
    profile = order.types.profiles[one.type]
    asked, mode = order.asked, profile.permission_mode
    given = child_capabilities.endow(order.held, asked, profile.tools, mode)
    new = NewSession(
        key=f"{SUBAGENT}:{one.session_id}",
        address=above.address,
        mode=SessionMode.PLAN.value if profile.read_only else above.mode.value,
        queue_mode="followup",
        title=one.label or one.description or f"{one.name}: {one.task[:80]}",
        kind=SUBAGENT,
        parent=parent,
    )
    lane = unit.create(new, session_id=one.session_id)
    if lane is None:
        raise Conflict(f"an agent of this tree is called {one.name} already", one.name)
    scope = Scope(
        tools=frozenset(given.tools),
        max_steps=_least(profile.max_steps, given.capabilities.spend.steps),
        no_writing=profile.no_writing or above.scope.no_writing,
        capabilities=given.capabilities,
    )
    model = order.arguments.model or profile.model
    own = Inheritance(one.type, scope, model, order.extras.generation, given.mode)
    sessions.inherit(conn, one.session_id, above, own)
    lane.gate = HELD
    first = queue_run(conn, lane, run, RunKind.MAILBOX_DELIVERY, about=one.task)
    shown = Told("")
    if one.share == "inherit-readonly":
        shown = inherited_history.snapshot(conn, parent)
    # Its task may hold what its parent read outside.
    tainted = run.tainted or shown.tainted
    if tainted:
        runs.change(conn, first.id, {"tainted": True})
    about = ABOUT.format(name=one.name, type=one.type)
    parts = (about, profile.prompt, order.extras.words, shown.text)
    opening = Told("\n\n".join(part for part in parts if part), tainted)
    inputs.add(conn, notice(lane, first, opening, f"agent:{one.session_id}", run_id=first.id))
    # It is to do its task, so that stands in no fence; the words in front of it carry the mark.
    identity = f"{result_text.TASK}{one.session_id}"
    task = notice(lane, first, Told(one.task), identity, run_id=first.id)
    message = task.message.model_copy(update={"attachments": order.extras.files})
    inputs.add(conn, replace(task, message=message, origin=PERSON))


def start(unit: Unit, session_id: str) -> bool:
    """Let a held child want a slot, with the results that it needs; or end it, where one of those
    did not complete. False where it still waits, or does no more."""
    conn, lane = unit.conn, unit.lane(session_id)
    agent = agents.get(conn, session_id)
    front = agents.in_front(conn, session_id)
    if lane.gate != HELD or agent.settled or any(not one.agent.settled for one in front):
        return False
    needed = [one.agent for one in front if one.needed]
    broken = [one for one in needed if one.status != "completed"]
    (run, *_) = runs.queued(conn, session_id)
    lane.gate = SHUT
    unit.say(EVENTS, {"session_id": session_id})
    if broken and agent.on_failure == "fail":
        # Its row is left to `settle`, which has the parent's lane before it changes one.
        causes = ", ".join(f"{one.name} {one.status}" for one in broken)
        text = f"It was not started, because it depends on another: {causes}."
        runs.move(conn, run, RunState.FAILED, {"ended_ms": lane.now_ms, "error": text})
        lane.record(EventKind.RUN_FAILED, run.id, {"reason": text})
        child_end.settle(unit, lane, agent, "failed", text)
        lanes.settle(conn, lane)
        return True
    agents.change(conn, session_id, held_ms=None)
    if needed:
        told = [result_text.told(conn, one, reader=session_id) for one in needed]
        tainted = any(agents.totals(conn, one.session_id).tainted for one in needed)
        if tainted:
            runs.change(conn, run.id, {"tainted": True})
        given = Told("What you depend on has settled:\n\n" + "\n\n".join(told), tainted)
        inputs.add(conn, notice(lane, run, given, f"needs:{session_id}", run_id=run.id))
    lanes.settle(conn, lane)
    return True
