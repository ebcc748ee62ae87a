"""The subagents of a tree, as the tools about them see them; `family_service` has them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from runtime.features.subagents.agent_messages import How, Word
from runtime.features.subagents.rows.agent_tree import AgentRow
from runtime.features.subagents.rows.agents import Agent, Totals
from runtime.tools.base import AnyTool


@dataclass(frozen=True, slots=True)
class Household:
    """A tree as one member sees it: all agents in the order of spawning, what the member is called
    in it, and the time in ms."""

    rows: Sequence[AgentRow]
    own: str
    now_ms: int

    @property
    def agents(self) -> Sequence[Agent]:
        """All of them, without what they used."""
        return [row.agent for row in self.rows]


@dataclass(frozen=True, slots=True)
class Detail:
    """More of one agent: what it used, what it said last while it is at work, the names of those
    whose results it needs, the kinds of calls that it waits for, its whole result, the names of its
    tools, and what it asks its parent."""

    used: Totals
    said: str = ""
    needs: Sequence[str] = ()
    open: Sequence[str] = ()
    result: str = ""
    tools: Sequence[str] = ()
    asks: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class TypeLine:
    """A type that may be spawned, and the names of the tools that a child of it has."""

    name: str
    about: str
    tools: Sequence[str]
    read_only: bool
    model: str | None = None


@dataclass(frozen=True, slots=True)
class TypesSeen:
    """What a caller may spawn; `problems` are those of the definitions, each a line."""

    may: Sequence[TypeLine]
    problems: Sequence[str]


class Family(Protocol):
    """Sessions are named by their ids."""

    async def look(self, session_id: str) -> Household:
        """The tree that a session is in, or the root of."""
        ...

    async def detail(self, row: AgentRow) -> Detail: ...

    async def wait(self, session_ids: Collection[str], seconds: float) -> Sequence[str]:
        """Return when these agents have settled, when one of them asks its parent, or after
        `seconds`; those that have not settled."""
        ...

    async def tell(self, word: Word) -> How:
        """Say something to an agent. Raises `Conflict` where it cannot be heard any more."""
        ...

    async def stop(self, session_id: str, reason: str) -> bool:
        """Ask an agent to end; False where it had ended, or was asked before."""
        ...

    async def types(self, session_id: str, tools: Sequence[AnyTool]) -> TypesSeen:
        """What a session may spawn, where `tools` are all that there are."""
        ...
