"""What the calls of subagents need to be opened, looked up before the unit that opens them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from runtime.agent.settings import AgentSettings
from runtime.agent.wait_requests import Asking, OpeningOf
from runtime.domain.capabilities import Capabilities, Scope, meet
from runtime.domain.decisions import PermissionMode
from runtime.domain.people import Trust
from runtime.features.subagents.files.work_places import WorkPlaces
from runtime.features.subagents.settings import ChildSettings
from runtime.features.subagents.spawn.agent_types import Types
from runtime.features.subagents.spawn.child_capabilities import Held
from runtime.features.subagents.spawn.child_lifecycle import SpawnOrder
from runtime.features.subagents.spawn.spawn_call import SpawnOpening
from runtime.features.subagents.spawn.spawn_requests import SpawnRequest
from runtime.features.subagents.spawn.spawn_terms import Terms
from runtime.features.subagents.spawn.type_book import TypeBook
from runtime.features.subagents.tools.spawn_tool import SpawnArguments
from runtime.features.subagents.tools.subagents_tools import SubagentsArguments
from runtime.features.subagents.waits.agent_waits import AgentsOpening
from runtime.features.subagents.waits.clarifications import ClarificationOpening
from runtime.policy.decide import Bounds
from runtime.sessions.open_calls import AGENTS, CHILDREN, CLARIFICATION
from runtime.sessions.unit import Opening
from runtime.store import Database
from runtime.tools.base import Arguments
from runtime.tools.executor import Planned
from runtime.tools.registry import Registry
from runtime.workspace.definitions import DefinitionShelf
from runtime.workspace.layout import Layout, ResolvedLayout


@dataclass(frozen=True, slots=True)
class SpawnOpenings:
    """Makes the openings of calls that spawn children, wait for them, or ask the parent. Without a
    `shelf` there are the built-in types alone."""

    database: Database
    registry: Registry
    settings: AgentSettings
    children: ChildSettings
    places: WorkPlaces
    shelf: DefinitionShelf | None = None

    @property
    def by_kind(self) -> Mapping[str, OpeningOf]:
        """Each maker by its kind of wait."""
        return {
            CHILDREN: self.spawn,
            AGENTS: self.wait,
            CLARIFICATION: self.clarify,
        }

    async def spawn(self, one: Planned, asking: Asking) -> Opening:
        """A spawn with the types, the rights and the places that it may give."""
        arguments, session, children = (
            _of(one, SpawnArguments),
            asking.session,
            self.children,
        )
        book = TypeBook(self.database, self.settings, self.children, self.shelf)
        types = await book.of(session.id, self.registry.tools)
        if asking.run.speaker.trust not in (Trust.OWNER, Trust.MEMBER):
            # A guest causes no side effects, and would take slots and money from everybody.
            types = replace(types, may=frozenset())
        layout = self.places.places.site(session.id).layout
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
            held=held_by(asking.bounds, levels=types.levels, layout=layout),
            asked=arguments.asked,
            placing=await self.places.placing(arguments, types, session.id),
        )
        return SpawnOpening(row=one.row, order=order)

    async def wait(self, one: Planned, asking: Asking) -> Opening:  # noqa: ARG002 - an `OpeningOf`
        """A wait for agents that are there already."""
        arguments = _of(one, SubagentsArguments)
        most_ms = int(arguments.timeout_s * 1000)
        return AgentsOpening(row=one.row, agent=arguments.agent, most_ms=most_ms)

    async def clarify(self, one: Planned, asking: Asking) -> Opening:  # noqa: ARG002
        """A question to the parent."""
        question = "" if one.waits_for is None else one.waits_for.question
        expires_in_ms = self.children.clarify_ms
        return ClarificationOpening(row=one.row, question=question, expires_in_ms=expires_in_ms)


A = TypeVar("A", bound=Arguments)


def _of(one: Planned, kind: type[A]) -> A:
    arguments = None if one.prepared is None else one.prepared.arguments
    if not isinstance(arguments, kind):
        raise TypeError(f"{one.row.call.name} waits for agents with other arguments than its own")
    return arguments


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
    resolved = ResolvedLayout(layout)
    real = replace(layout, home=resolved.home, files=resolved.files)
    return Held(capabilities=scope, layout=real)
