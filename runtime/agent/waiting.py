"""From calls that wait to the unit that opens them: a card for a person, children for a spawn."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from runtime.agent.agent_types import Types, types_for
from runtime.agent.places import Places
from runtime.agent.placing import placing_of
from runtime.agent.settings import AgentSettings
from runtime.agent.step import as_wait
from runtime.domain.people import Trust
from runtime.inbox.claims import Holder
from runtime.inbox.parking import Wait
from runtime.store import Database, agents
from runtime.store.runs import Run
from runtime.store.sessions import Session
from runtime.subagents import awaiting
from runtime.subagents.awaiting import Begins, Parked
from runtime.subagents.children import SpawnOrder
from runtime.subagents.isolation import Placing
from runtime.tools.builtin.spawning import SpawnArguments
from runtime.tools.executor import Planned
from runtime.tools.registry import Registry
from runtime.workspace.definitions import Definitions, DefinitionShelf


@dataclass(frozen=True, slots=True)
class Parking:
    """Lets runs wait. Without a `shelf` there are the built-in types alone."""

    database: Database
    registry: Registry
    settings: AgentSettings
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
    ) -> Parked:
        """Open what calls wait for, in one unit. Raises `StaleLease`."""
        types = await self.types(session) if any(map(_spawns, planned)) else None
        trusted = run.speaker.trust in (Trust.OWNER, Trust.MEMBER)
        if types is not None and not trusted:
            # A guest causes no side effects, and would take slots and money from everybody.
            types = replace(types, may=frozenset())
        placings = [await self._placing(one, types, session.id) for one in planned]
        waits = [self._wait(*one, types) for one in zip(planned, placings, strict=True)]
        unit = partial(
            awaiting.park,
            holder=holder,
            run_id=run.id,
            waits=waits,
            expires_in_ms=self.settings.approval_expiry_ms,
            window_from=window_from,
        )
        return await self.database.write(unit, name="park")

    async def types(self, session: Session) -> Types:
        """The types that a session may spawn."""
        found = Definitions((), ())
        if self.shelf is not None:
            known = [tool.name for tool in self.registry.tools]
            found = await asyncio.to_thread(self.shelf.load, known)
        own = await self.database.read(lambda conn: agents.find(conn, session.id))
        depth = own.depth if own else 0
        return types_for(
            self.registry.tools,
            found,
            own=session.tools,
            kind=own.type if own else "",
            deepest=depth + 2 >= self.settings.children.limits.max_depth,
        )

    async def _placing(self, one: Planned, types: Types | None, session_id: str) -> Placing:
        arguments = one.prepared.arguments if one.prepared else None
        if types is None or self.places is None or not isinstance(arguments, SpawnArguments):
            return Placing()
        return await placing_of(arguments, types, session_id, self.places, self.database)

    def _wait(self, one: Planned, placing: Placing, types: Types | None) -> Wait | Begins:
        arguments = one.prepared.arguments if one.prepared else None
        decided = one.row.decision
        if types is None or not isinstance(arguments, SpawnArguments):
            return as_wait(one)
        if decided is not None and decided.verdict == "ask":
            return as_wait(one)
        children = self.settings.children
        order = SpawnOrder(
            request=arguments.request,
            profiles=dict(types.profiles),
            may=types.may,
            known=dict(types.known),
            limits=children.limits,
            label=arguments.label,
            on_failure=arguments.on_dependency_failure,
            await_ms=children.await_ms,
            placing=placing,
        )
        return Begins(one.row, order)


def _spawns(one: Planned) -> bool:
    return one.prepared is not None and isinstance(one.prepared.arguments, SpawnArguments)
