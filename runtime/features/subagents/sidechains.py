"""`Sidechains`: subagents that a program starts for an agent by the API (AGT-3).

They are made by the same unit as those of a model's call, under the same rules, with the rights of
the parent's last run and never more.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from runtime.domain import worktrees
from runtime.domain.capabilities import Need, allows
from runtime.domain.decisions import PermissionMode, SessionMode
from runtime.domain.errors import Conflict, Forbidden, GatehouseError, InvalidInput
from runtime.domain.messages import Attachment
from runtime.domain.people import Trust
from runtime.domain.printable import one_line, printable_path, quoted
from runtime.domain.routes import Generation
from runtime.domain.value import Value
from runtime.features.subagents.files.work_places import any_worktree, based
from runtime.features.subagents.files.worktrees import Worktrees
from runtime.features.subagents.openings import held_by
from runtime.features.subagents.rows import agents
from runtime.features.subagents.rows.agents import Agent
from runtime.features.subagents.spawn import children, inherited_history
from runtime.features.subagents.spawn.agent_types import Profile, TypeBook, Types
from runtime.features.subagents.spawn.child_capabilities import Held, is_clear
from runtime.features.subagents.spawn.children import Extras, SpawnOrder
from runtime.features.subagents.spawn.isolation import Placing
from runtime.features.subagents.spawn.sidechain_request import (
    SpawnSidechainRequest,
    field_of,
    widens,
)
from runtime.features.subagents.spawn.spawn_arguments import PLACES, Problem, SpawnArguments
from runtime.features.subagents.views import AgentsReader
from runtime.intake.assets import Assets, AssetUse, use_placed
from runtime.intake.route_policies import RouteRules
from runtime.intake.submissions import compose
from runtime.intake.uploads import Upload
from runtime.ports import bus
from runtime.sessions import runs, sessions
from runtime.sessions.bounds import PolicySettings, bounds_for
from runtime.sessions.lanes import Lane
from runtime.sessions.runs import Run
from runtime.sessions.unit import Unit, Units
from runtime.store import Connection
from runtime.tools.erasure import erase_files
from runtime.tools.registry import Registry
from runtime.workspace.layout import Layout, canonical

IN_TEAM: Final = "You belong to the team {team}."
IN_FOLDER: Final = "You work in the folder {folder} and reach no other files."


@dataclass(eq=False)
class SpawnRefused(GatehouseError):
    """Nothing was started: every (field, rule) that a request breaks."""

    broken: Sequence[tuple[str, str]]

    def __str__(self) -> str:
        return "; ".join(f"{name}: {rule}" for name, rule in self.broken)


class SidechainPlan(Value):
    """What a request would start. ``tools`` are those that the agent would have; None of a bound is
    no bound beyond the parent's. ``worktree``: it would get a git worktree of its own. ``files``
    are the names of those that would come with its task."""

    parent_agent_id: str
    name: str
    type: str
    depth: int
    mode: SessionMode
    permission_mode: PermissionMode | None
    model: str | None
    generation: Generation | None
    tools: tuple[str, ...]
    max_steps: int | None
    no_writing: bool
    paths: tuple[tuple[str, ...], ...] | None
    network: tuple[tuple[str, ...], ...] | None
    credentials: tuple[tuple[str, ...], ...] | None
    tokens: int | None
    steps: int | None
    isolation: str
    worktree: bool
    retention: str
    thread_id: str | None
    description: str
    prompt: str
    told: str
    task: str
    files: tuple[str, ...]


class _DryRun(Exception):
    """Takes a unit back with what it would have made."""

    def __init__(self, agent: Agent, plan: SidechainPlan | None) -> None:
        super().__init__("a dry run")
        self.agent = agent
        self.plan = plan


@dataclass(frozen=True, slots=True)
class _Order:
    """A request with what was looked up for it: the `run` whose rights it has, and its files in
    their order."""

    asked: SpawnSidechainRequest
    spawn: SpawnOrder
    run: Run
    files: tuple[Upload | AssetUse, ...]

    def at(self, session_id: str, files: tuple[Attachment, ...]) -> "_Order":
        """The same for a session that has these files."""
        extras = replace(self.spawn.extras, session_id=session_id, files=files)
        return replace(self, spawn=replace(self.spawn, extras=extras))


@dataclass(frozen=True, slots=True)
class _Where:
    """Where an agent is to work: the `workspace` of a call, and the `folder` that it is kept to."""

    placing: Placing
    workspace: str | None
    folder: str | None
    broken: tuple[Problem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sidechains:
    """For one gateway. `root` is the workspace, `roots` the folders besides it."""

    units: Units
    book: TypeBook
    registry: Registry
    policy: PolicySettings
    root: Path
    assets: Assets
    roots: tuple[Path, ...] = ()
    routes: RouteRules = field(default_factory=RouteRules)
    worktrees: Worktrees | None = None

    async def spawn(self, agent_id: str, asked: SpawnSidechainRequest) -> tuple[str, bool]:
        """The session of the new agent, and whether it was made now.

        Raises `NotFound`, `Conflict` (a parent that has ended, or never ran; a key of another
        request), `InvalidInput`, `TooLarge`, `Forbidden` (wider than the parent, with the axis) and
        `SpawnRefused`.
        """
        order = await self._order(agent_id, asked)
        if not order.files:
            return await self._made(agent_id, order)
        # What would be refused, or is there already, leaves no file behind.
        agent, new = await self._tried(agent_id, order)
        if not new:
            return agent.session_id, False
        made = False
        try:
            files = [await self.assets.place(agent.session_id, one) for one in order.files]
            placed = order.at(agent.session_id, _anothers(files))
            found, made = await self._made(agent_id, placed)
            return found, made
        finally:
            if not made:
                await asyncio.to_thread(erase_files, self.root, [agent.session_id], ())

    async def explain(self, agent_id: str, asked: SpawnSidechainRequest) -> SidechainPlan:
        """What `spawn` would start; nothing is made. Raises as `spawn`."""
        order = await self._order(agent_id, asked)

        def work(unit: Unit) -> None:
            agent, _ = _spawned(unit, agent_id, order)
            raise _DryRun(agent, _plan(unit, agent, order))

        try:
            await self.units.run(work, name="sidechain-explain")
        except _DryRun as dry:
            if dry.plan is not None:
                return dry.plan
        raise RuntimeError("a dry run takes itself back")

    async def _made(self, agent_id: str, order: _Order) -> tuple[str, bool]:
        def work(unit: Unit) -> tuple[str, bool]:
            agent, new = _spawned(unit, agent_id, order)
            if new:
                use_placed(unit.conn, agent.session_id, order.files)
            return agent.session_id, new

        return await self.units.run(work, name="sidechain")

    async def _tried(self, agent_id: str, order: _Order) -> tuple[Agent, bool]:
        """The agent that an order would make, and True; or the one that it made before."""

        def work(unit: Unit) -> Agent:
            agent, new = _spawned(unit, agent_id, order)
            if new:
                raise _DryRun(agent, None)
            return agent

        try:
            return await self.units.run(work, name="sidechain-check"), False
        except _DryRun as dry:
            return dry.agent, True

    async def _order(self, agent_id: str, asked: SpawnSidechainRequest) -> _Order:
        if asked.session_id not in (None, agent_id):
            rule = "must be the id of the agent of the path, or be left out"
            raise InvalidInput("session_id", rule)
        session, home = await AgentsReader(self.units.database).bound(agent_id)
        run = await self._run(agent_id, asked.thread_id)
        types = _prompted(await self.book.of(agent_id, self.registry.tools), asked)
        if run.speaker.trust not in (Trust.OWNER, Trust.MEMBER):
            types = replace(types, may=frozenset())
        layout = Layout.of(self.root)
        if home is not None:
            layout = Layout.of_worktree(self.root, self.root / worktrees.folder_of(home))
        held = held_by(bounds_for(self.policy, session, run), levels=types.levels, layout=layout)
        items = asked.subtask.items()
        files = tuple(one for one in items if not isinstance(one, str))
        expected = await self.assets.expected(files) if files else ()
        arguments = asked.arguments(compose(items, expected))
        profile = types.profiles.get(arguments.type)
        where = await self._place(arguments, profile, held, home)
        model = (profile and profile.model) or session.model
        unfit = await self._unfit(arguments, asked.generation, model)
        extras = Extras(
            generation=asked.generation,
            secrets=asked.secrets,
            words=_words(asked.fork.team_name, where.folder),
            files=_anothers(expected),
            broken=(*unfit, *where.broken),
        )
        order = SpawnOrder(
            arguments=arguments.model_copy(update={"workspace": where.workspace}),
            types=types,
            settings=self.book.children,
            digest=hashlib.sha256(asked.model_dump_json().encode()).hexdigest(),
            held=held,
            placing=where.placing,
            extras=extras,
        )
        return _Order(asked, order, run, files)

    async def _place(
        self, arguments: SpawnArguments, profile: Profile | None, held: Held, home: str | None
    ) -> "_Where":
        """Where an agent is to work whose parent works in the worktree `home`, or in the
        workspace."""
        workspace, folder, broken = arguments.workspace, None, []
        if workspace is not None and workspace not in PLACES:
            roots = self.roots if home is None else ()
            found = await asyncio.to_thread(_folder, workspace, held, roots)
            if isinstance(found, Problem):
                broken, workspace = [found], "shared"
            else:
                workspace = folder = found
        placing = Placing(arguments.isolation, arguments.place)
        if any_worktree(placing, [profile]):
            placing = await based(placing, self.worktrees, above=home)
        return _Where(placing, workspace, folder, tuple(broken))

    async def _run(self, agent_id: str, thread_id: str | None) -> Run:
        """The run whose rights a new agent has, and whose thread."""

        def read(conn: Connection) -> Run | None:
            if thread_id is None:
                return runs.newest(conn, agent_id)
            return runs.newest_in(conn, agent_id, thread_id)

        run = await self.units.database.read(read)
        if run is not None:
            return run
        if thread_id is not None:
            rule = "must be a thread in which this agent was asked, or be left out"
            raise InvalidInput("thread_id", rule)
        raise Conflict("this agent has never run, so it has no rights to hand on", "idle")

    async def _unfit(
        self, arguments: SpawnArguments, asked: Generation | None, own: str | None
    ) -> Sequence[Problem]:
        """What the model of an agent cannot take; `own` is the one that it has where none is asked
        for. One that may not be asked for is refused for itself."""
        if asked is None:
            return ()
        if arguments.model is not None and arguments.model not in self.book.children.models.offered:
            return ()
        broken = await self.routes.broken(arguments.model or own, asked)
        return [Problem(f"route_policy.generation.{name}", rule) for name, rule in broken.items()]


def _anothers(files: Sequence[Attachment]) -> tuple[Attachment, ...]:
    """Files that a program hands on: nobody is trusted for what stands in them."""
    return tuple(one.model_copy(update={"own": False}) for one in files)


def _words(team: str | None, folder: str | None) -> str:
    """What an agent is told of its team and of the folder that it is kept to."""
    said = [IN_TEAM.format(team=one_line(team))] if team else []
    said += [IN_FOLDER.format(folder=printable_path(folder))] if folder else []
    return "\n".join(said)


def _folder(path: str, held: Held, roots: Sequence[Path]) -> str | Problem:
    """The folder that a path names, with links followed, if the parent works in it. Looks at the
    disk."""
    if not is_clear(path):
        return Problem("workspace", f"{quoted(path)} must be a folder, without .., * and ?")
    real = canonical(Path(held.layout.locate(path)))
    within = any(real.is_relative_to(canonical(one)) for one in (held.layout.files, *roots))
    if not within or not allows(held.capabilities, Need(path=str(real))):
        rule = f"wider on the axis paths: {quoted(path)} is no folder of those that the parent has"
        return Problem("workspace", rule)
    try:
        there = real.is_dir()
    except OSError:  # A name that is too long for the disk, for one.
        there = False
    if not there:
        return Problem("workspace", f"{quoted(path)} must be a folder that is there")
    return str(real)


def _prompted(types: Types, asked: SpawnSidechainRequest) -> Types:
    """The types with the instructions that a request gives the one that it asks for."""
    profile = types.profiles.get(asked.subtask.profile)
    if profile is None:
        return types
    own = replace(profile, prompt=asked.prompt(profile.prompt))
    return replace(types, profiles={**types.profiles, asked.subtask.profile: own})


def _spawned(unit: Unit, agent_id: str, order: _Order) -> tuple[Agent, bool]:
    conn, lane, spawn = unit.conn, unit.lane(agent_id), order.spawn
    key = spawn.arguments.spawn_request_id
    known = agents.of_request(conn, agent_id, key) if key else ()
    if known:
        if known[0].request_digest != spawn.digest:
            detail = f"the spawn_request_id {key} is that of another request; use another one"
            raise Conflict(detail, "used")
        return known[0], False
    _check_open(unit, agent_id)
    run = runs.get(conn, order.run.id)
    tainted = agents.totals(conn, agent_id).tainted
    spawn = replace(spawn, extras=_with_calls(unit, lane, order))
    made = children.spawn(
        unit, lane, replace(run, tainted=run.tainted or tainted), step=0, place=0, order=spawn
    )
    if made.problems:
        _refuse(made.problems, order.asked)
    for topic in (bus.CHILDREN, bus.RUNS):
        unit.say(topic)
    unit.changed(agent_id)
    return made.agents[0], True


def _with_calls(unit: Unit, lane: Lane, order: _Order) -> Extras:
    """What an order gives besides, with the tool calls of the parent that it names."""
    extras = order.spawn.extras
    ids = order.asked.fork.inherited_tool_call_ids
    shown, missing = inherited_history.calls(unit.conn, lane, ids)
    words = "\n\n".join(one for one in (extras.words, shown) if one)
    broken = [
        Problem(
            "fork_context.inherited_tool_call_ids",
            f"{quoted(one)} must be a tool call of this agent's conversation that has its result",
        )
        for one in missing
    ]
    return replace(extras, words=words, broken=(*extras.broken, *broken))


def _check_open(unit: Unit, agent_id: str) -> None:
    status = sessions.get(unit.conn, agent_id).status
    if status != "open":
        raise Conflict("this agent's conversation has ended", status)
    own = agents.find(unit.conn, agent_id)
    if own is not None and (own.settled or own.stop is not None):
        raise Conflict(f"{own.name} has ended, and starts nobody", own.status or "stopping")


def _refuse(problems: Sequence[Problem], asked: SpawnSidechainRequest) -> None:
    """Raise what is wrong, all of it at once; what is too wide before what is wrong otherwise."""
    wide = [f"{field_of(one, asked)}: {one.rule}" for one in problems if widens(one)]
    if wide:
        raise Forbidden("; ".join(wide))
    raise SpawnRefused([(field_of(one, asked), one.rule) for one in problems])


def _plan(unit: Unit, agent: Agent, order: _Order) -> SidechainPlan:
    unit.save()
    session = sessions.get(unit.conn, agent.session_id)
    bounds = session.scope.capabilities
    paths = None if bounds is None or bounds.paths is None else bounds.paths.lists
    network = None if bounds is None or bounds.network is None else bounds.network.lists
    credentials = None if bounds is None or bounds.secrets is None else bounds.secrets.lists
    return SidechainPlan(
        parent_agent_id=agent.parent_id,
        name=agent.name,
        type=agent.type,
        depth=agent.depth,
        mode=session.mode,
        permission_mode=session.permission_mode,
        model=session.model,
        generation=session.generation if session.generation.given else None,
        tools=tuple(sorted(session.scope.tools or ())),
        max_steps=session.scope.max_steps,
        no_writing=session.scope.no_writing,
        paths=paths,
        network=network,
        credentials=credentials,
        tokens=session.spend.tokens,
        steps=session.spend.steps,
        isolation=agent.isolation,
        worktree=agent.worktree == agent.session_id,
        retention=agent.retention,
        thread_id=order.run.target.thread_id,
        description=agent.description,
        prompt=agent.prompt,
        told=_with_calls(unit, unit.lane(agent.parent_id), order).words,
        task=agent.task,
        files=tuple(one.name for one in order.spawn.extras.files),
    )
