"""From calls that wait to the unit that opens them: a card for a person, children for a spawn."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from runtime.agent.agent_types import Types
from runtime.agent.places import Places
from runtime.agent.placing import placing_of
from runtime.agent.settings import AgentSettings
from runtime.agent.type_book import TypeBook
from runtime.domain.capabilities import Capabilities, Scope, meet
from runtime.domain.decisions import PermissionMode
from runtime.domain.grants import GrantKind
from runtime.domain.people import Approvers, Trust
from runtime.domain.printable import printable_name
from runtime.inbox.claims import Holder
from runtime.inbox.parking import Wait
from runtime.policy.decide import Bounds
from runtime.store import Database
from runtime.store.open_calls import APPROVAL, CLARIFICATION, QUESTION
from runtime.store.runs import Run
from runtime.store.sessions import Session
from runtime.subagents import awaiting
from runtime.subagents.allowing import Held
from runtime.subagents.awaiting import Begins, Parked
from runtime.subagents.children import SpawnOrder
from runtime.subagents.isolation import Placing
from runtime.subagents.lingering import Lingers
from runtime.subagents.requests import SpawnRequest
from runtime.subagents.terms import Terms
from runtime.tools.builtin.ask import AskArguments
from runtime.tools.builtin.clarifying import ClarifyArguments
from runtime.tools.builtin.spawning import SpawnArguments
from runtime.tools.builtin.subagents import SubagentsArguments
from runtime.tools.executor import Planned
from runtime.tools.hidden import canonical
from runtime.tools.registry import Registry
from runtime.workspace.definitions import DefinitionShelf
from runtime.workspace.layout import Layout


@dataclass(frozen=True, slots=True)
class Parking:
    """Lets runs wait. The `approvers` may change while it works. Without a `shelf` there are the
    built-in types alone; a child's relative paths begin in the `workspace`."""

    database: Database
    registry: Registry
    settings: AgentSettings
    approvers: Callable[[], Approvers]
    shelf: DefinitionShelf | None = None
    places: Places | None = None

    async def park(
        self,
        holder: Holder,
        run: Run,
        session: Session,
        planned: Sequence[Planned],
        *,
        window_from: int,
        bounds: Bounds,
    ) -> Parked:
        """Open what calls wait for, in one unit. Raises `StaleLease`."""
        types = await self.types(session) if any(map(_spawns, planned)) else None
        trusted = run.speaker.trust in (Trust.OWNER, Trust.MEMBER)
        if types is not None and not trusted:
            # A guest causes no side effects, and would take slots and money from everybody.
            types = replace(types, may=frozenset())
        held = Held()
        if types is not None:
            layout = None if self.places is None else self.places.site(session.id).layout
            held = held_by(bounds, levels=types.levels, layout=layout)
        placings = [await self._placing(one, types, session.id) for one in planned]
        waits = [
            self._wait(one, types, held, placing)
            for one, placing in zip(planned, placings, strict=True)
        ]
        unit = partial(
            awaiting.park,
            holder=holder,
            run_id=run.id,
            waits=waits,
            approvers=self.approvers(),
            expires_in_ms=self.settings.approval_expiry_ms,
            window_from=window_from,
        )
        return await self.database.write(unit, name="park")

    async def types(self, session: Session) -> Types:
        """The types that a session may spawn."""
        book = TypeBook(self.database, self.settings, self.shelf)
        return await book.of(session.id, self.registry.tools)

    async def _placing(self, one: Planned, types: Types | None, session_id: str) -> Placing:
        arguments = one.prepared.arguments if one.prepared else None
        if types is None or self.places is None or not isinstance(arguments, SpawnArguments):
            return Placing()
        return await placing_of(arguments, types, session_id, self.places, self.database)

    def _wait(
        self, one: Planned, types: Types | None, held: Held, placing: Placing
    ) -> Wait | Begins | Lingers:
        arguments = one.prepared.arguments if one.prepared else None
        if one.lingers and isinstance(arguments, SubagentsArguments):
            return Lingers(one.row, arguments.agent, int(arguments.timeout_s * 1000))
        decided = one.row.decision
        if types is None or not isinstance(arguments, SpawnArguments):
            return as_wait(one, clarify_ms=self.settings.children.clarify_ms)
        if decided is not None and decided.verdict == "ask":
            return as_wait(one, clarify_ms=self.settings.children.clarify_ms)
        children = self.settings.children
        order = SpawnOrder(
            request=_request(arguments, types),
            profiles=dict(types.profiles),
            may=types.may,
            known=dict(types.known),
            limits=children.limits,
            models=children.models.offered,
            label=arguments.label,
            description=arguments.description,
            timeout_ms=arguments.timeout_s and arguments.timeout_s * 1000,
            on_failure=arguments.on_dependency_failure,
            await_ms=children.await_ms,
            terms=Terms(
                share=arguments.memory_share_mode,
                widest=children.share,
                retention=arguments.retention,
                key=arguments.spawn_request_id,
                digest=one.row.digest,
            ),
            held=held,
            asked=arguments.asked,
            placing=placing,
        )
        return Begins(one.row, order)


def _request(arguments: SpawnArguments, types: Types) -> SpawnRequest:
    """What a call asks for; where it names no mode, its types may all want the background."""
    request = arguments.request
    profiles = [types.profiles.get(one.type) for one in request.wanted]
    if "mode" not in arguments.model_fields_set and all(one and one.background for one in profiles):
        return request.model_copy(update={"mode": "background"})
    return request


def held_by(bounds: Bounds, *, levels: int, layout: Layout | None) -> Held:
    """What a run within `bounds` has itself, on every axis, where `levels` of children may follow
    it; its relative paths begin as the `layout` says."""
    own = Capabilities(
        tools=None if bounds.tools is None else Scope.of(*bounds.tools),
        depth=max(0, levels),
        mode=PermissionMode.PLAN if bounds.read_only else bounds.mode,
    )
    scope = own if bounds.scope is None else meet(own, bounds.scope)
    if layout is None:
        return Held(capabilities=scope)
    real = replace(layout, home=canonical(layout.home), files=canonical(layout.files))
    return Held(capabilities=scope, layout=real)


def _spawns(one: Planned) -> bool:
    return one.prepared is not None and isinstance(one.prepared.arguments, SpawnArguments)


def as_wait(one: Planned, *, clarify_ms: int) -> Wait:
    """The card of a call that needs a person, or the question of one that needs its parent."""
    arguments = one.prepared.arguments if one.prepared else None
    if isinstance(arguments, AskArguments):
        return Wait(
            one.row, QUESTION, question=arguments.question, options=tuple(arguments.options)
        )
    if isinstance(arguments, ClarifyArguments):
        return Wait(one.row, CLARIFICATION, question=arguments.question, expires_in_ms=clarify_ms)
    return Wait(
        one.row,
        APPROVAL,
        reason=_why(one),
        decision=one.row.decision,
        grant=one.grant,
        risk=one.risk,
    )


def _why(one: Planned) -> str:
    """Why a card asks, and what it does not say by the arguments."""
    decision = one.row.decision
    said = [f"{decision.reason} ({decision.rule})"] if decision else []
    if one.changed:
        said.insert(0, "What it runs has changed since it was allowed, so it is asked about again.")
    if one.action is not None and one.action.circumstances:
        said.append(one.action.circumstances)
    if one.grant is not None and one.grant.kind is GrantKind.HOST:
        host = printable_name(one.grant.key)
        said.append(f"You can allow every address of {host} for this session.")
    if one.grant is None and one.action is not None and not one.action.known:
        said.append("It is not known which files it runs, so you can allow only this one call.")
    return " ".join(said)
