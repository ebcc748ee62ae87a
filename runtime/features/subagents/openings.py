"""What the calls of subagents need to be opened, looked up before the unit that opens them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from runtime.agent.wait_requests import Asking, OpeningOf
from runtime.domain.capabilities import Capabilities, Scope, meet
from runtime.domain.decisions import PermissionMode
from runtime.domain.people import Trust
from runtime.features.subagents.files.work_places import WorkPlaces
from runtime.features.subagents.spawn.agent_types import TypeBook, Types
from runtime.features.subagents.spawn.child_capabilities import Held
from runtime.features.subagents.spawn.children import SpawnOrder
from runtime.features.subagents.spawn.spawn_arguments import SpawnArguments
from runtime.features.subagents.spawn.spawn_call import SpawnOpening
from runtime.features.subagents.tools import SubagentsArguments
from runtime.features.subagents.waits.agent_waits import AgentsOpening
from runtime.features.subagents.waits.clarifications import ClarificationOpening
from runtime.policy.decide import Bounds
from runtime.sessions.open_calls import AGENTS, CHILDREN, CLARIFICATION
from runtime.sessions.unit import Opening
from runtime.tools.base import Arguments
from runtime.tools.executor import Planned
from runtime.tools.registry import Registry
from runtime.workspace.layout import Layout, ResolvedLayout


@dataclass(frozen=True, slots=True)
class SpawnOpenings:
    """Makes the openings of calls that spawn children, wait for them, or ask the parent."""

    book: TypeBook
    registry: Registry
    places: WorkPlaces

    @property
    def by_kind(self) -> Mapping[str, OpeningOf]:
        """Each maker by its kind of wait."""
        return {CHILDREN: self.spawn, AGENTS: self.wait, CLARIFICATION: self.clarify}

    async def spawn(self, one: Planned, asking: Asking) -> Opening:
        """A spawn with the types, the rights and the places that it may give."""
        arguments, session = _of(one, SpawnArguments), asking.session
        types = await self.book.of(session.id, self.registry.tools)
        if asking.run.speaker.trust not in (Trust.OWNER, Trust.MEMBER):
            # A guest causes no side effects, and would take slots and money from everybody.
            types = replace(types, may=frozenset())
        layout = self.places.places.site(session.id).layout
        order = SpawnOrder(
            arguments=_with_mode(arguments, types),
            types=types,
            settings=self.book.children,
            digest=one.row.digest,
            held=held_by(asking.bounds, levels=types.levels, layout=layout),
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
        expires_in_ms = self.book.children.clarify_ms
        return ClarificationOpening(row=one.row, question=question, expires_in_ms=expires_in_ms)


A = TypeVar("A", bound=Arguments)


def _of(one: Planned, kind: type[A]) -> A:
    arguments = None if one.prepared is None else one.prepared.arguments
    if not isinstance(arguments, kind):
        raise TypeError(f"{one.row.call.name} waits for agents with other arguments than its own")
    return arguments


def _with_mode(arguments: SpawnArguments, types: Types) -> SpawnArguments:
    """Where a call names no mode, its types may all want the background."""
    profiles = [types.profiles.get(one.type) for one in arguments.wanted]
    if "mode" not in arguments.model_fields_set and all(one and one.background for one in profiles):
        return arguments.model_copy(update={"mode": "background"})
    return arguments


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
