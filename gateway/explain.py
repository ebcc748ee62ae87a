"""Why a session sees and may do what it does: its prompt by blocks, and decisions with their chain.

It asks the engine's own functions and runs nothing.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pydantic import JsonValue

from runtime.agent.addresses import among, fetched
from runtime.agent.context import (
    Block,
    PresentFacts,
    PromptFacts,
    build_present,
    build_system,
)
from runtime.agent.prompt_blocks import PromptBlocks
from runtime.agent.prompt_identity import Identity
from runtime.agent.settings import AgentSettings
from runtime.agent.tool_step import context_of
from runtime.agent.working_folders import Site
from runtime.domain import worktrees
from runtime.domain.decisions import Decision, SessionMode
from runtime.domain.errors import InvalidInput
from runtime.domain.people import Trust
from runtime.domain.tools import ToolCall
from runtime.domain.transcript import estimate_tokens, has_untrusted
from runtime.domain.value import Value
from runtime.features.subagents.views import AgentsReader
from runtime.policy.decide import Bounds
from runtime.ports.clock import Clock
from runtime.sessions.bounds import PolicySettings, bounds_of
from runtime.tools.base import ToolContext
from runtime.tools.executor import UNFIT, Executor
from runtime.tools.registry import Registry
from runtime.tools.seen_versions import SeenFiles
from runtime.views.reader import Views
from runtime.workspace.layout import Layout
from runtime.workspace.snapshot import Workspace


class ContextView(Value):
    """What the next turn of a session begins with (CTX-2); the conversation comes after it.
    ``warnings`` name the files of the workspace that are left out, and why (CTX-5)."""

    session_id: str
    trust: Trust
    blocks: tuple[Block, ...]
    system_tokens: int
    tool_tokens: int
    tools: tuple[str, ...]
    present: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Explainer:
    """Answers for one gateway; `roots` are the folders besides the workspace."""

    views: Views
    workspace: Workspace
    registry: Registry
    clock: Clock
    policy: PolicySettings
    agent: AgentSettings
    blocks: PromptBlocks
    roots: tuple[Path, ...] = ()

    @property
    def _agents(self) -> AgentsReader:
        return AgentsReader(self.views.database)

    async def context(self, session_id: str, *, trust: Trust | None = None) -> ContextView:
        """The prompt of a session's next turn. Raises `NotFound`."""
        session = await self.views.session(session_id)
        speaker = trust or await self._newest_trust(session_id)
        bound, _ = await self._agents.bound(session_id)
        group = session.address.chat_kind != "direct"
        bounds = bounds_of(self.policy, bound, trust=speaker, group=group)
        specs = self.registry.specs(bounds)
        facts = PromptFacts(
            channel=session.address.channel,
            session_key=session.key,
            group=group,
            trust=speaker,
        )
        identity = Identity(self.workspace, self.views.database)
        snapshot = await identity.snapshot(bound.persona)
        blocks = await self.blocks.of_next(bound, speaker, private=bounds.notes)
        prompt = build_system(snapshot, facts, specs)
        present = build_present(
            PresentFacts(
                now_ms=self.clock.now_ms(),
                zone=self.agent.timezone,
                mode=SessionMode(session.mode),
                people=(),
                trust=speaker,
                blocks=blocks,
            )
        )
        return ContextView(
            session_id=session_id,
            trust=speaker,
            blocks=prompt.blocks,
            system_tokens=prompt.tokens,
            tool_tokens=sum(estimate_tokens(json.dumps(one.model_dump())) for one in specs),
            tools=tuple(one.name for one in specs),
            present=present,
            warnings=snapshot.warnings,
        )

    async def tools(self, session_id: str) -> tuple[str, ...]:
        """The tools that a session's next turn is offered. Raises `NotFound`."""
        session, _ = await self._agents.bound(session_id)
        trust = await self._newest_trust(session_id)
        group = session.address.chat_kind != "direct"
        bounds = bounds_of(self.policy, session, trust=trust, group=group)
        return tuple(one.name for one in self.registry.specs(bounds))

    async def decision(
        self,
        session_id: str,
        *,
        tool: str,
        arguments: Mapping[str, JsonValue],
        trust: Trust = Trust.OWNER,
    ) -> Decision:
        """What policy says of a call. Raises `NotFound`, and `InvalidInput` for a bad call."""
        session, home = await self._agents.bound(session_id)
        group = session.address.chat_kind != "direct"
        call = ToolCall(id="cal_explained", name=tool, arguments=json.dumps(dict(arguments)))
        heard = await self._agents.heard(session_id)
        bounds = replace(
            bounds_of(self.policy, session, trust=trust, group=group),
            given=among(fetched(self.registry, [call]), heard),
            tainted=bool(heard) and any(map(has_untrusted, heard[0])),
        )
        (planned,) = Executor(self.registry).plan(
            [call],
            run_id="run_explained",
            step=1,
            bounds=bounds,
            context_for=partial(self._tool_context, session_id, home, bounds),
        )
        row = planned.row
        if row.decision is None or row.decision is UNFIT:
            # Nobody was asked: the call cannot be made at all.
            field = "tool" if self.registry.get(tool) is None else "arguments"
            raise InvalidInput(field, row.result.content if row.result else "cannot be made")
        return row.decision

    async def workspace_problems(self) -> tuple[str, ...]:
        """Which files of the workspace are not used, and why, one sentence each (CTX-5)."""
        return (await self.workspace.snapshot()).warnings

    async def _newest_trust(self, session_id: str) -> Trust:
        found = await self.views.runs(session_id=session_id, limit=1)
        return found.items[0].trust if found.items else Trust.OWNER

    def _tool_context(
        self, session_id: str, home: str | None, bounds: Bounds, call_id: str
    ) -> ToolContext:
        """As the engine's; a worktree is named, and not made."""
        root = self.workspace.root
        site = Site(Layout.of(root), self.roots)
        if home is not None:
            site = Site(Layout.of_worktree(root, root / worktrees.folder_of(home)))
        return context_of(
            *(site, SeenFiles(), bounds),
            session_id=session_id,
            run_id="run_explained",
            call_id=call_id,
        )
