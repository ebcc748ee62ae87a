"""The tools by which a model starts subagents and looks after them, and asks its own parent (SUB-3,
SUB-4, SUB-7, AGT-4).

Everybody in a tree may look at all of it. Only those below the caller may be waited for, told or
stopped: an agent must not steer one that has more tools than itself. And whose run calls must have
a right to it (`agent_rights`).
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from pydantic import Field
from typing_extensions import override

from runtime.domain.errors import Conflict, Forbidden, InvalidInput, ToolError
from runtime.domain.fence import fence
from runtime.domain.tools import Effect, Touches
from runtime.domain.value import JsonObject
from runtime.features.subagents.agent_messages import How, Word
from runtime.features.subagents.agent_selectors import below, select
from runtime.features.subagents.family import AgentFamily, Household
from runtime.features.subagents.rows.agent_tree import AgentRow
from runtime.features.subagents.rows.agents import Agent
from runtime.features.subagents.spawn.spawn_arguments import SPAWN, SpawnArguments
from runtime.policy.decide import Bounds
from runtime.sessions.open_calls import AGENTS, CHILDREN, CLARIFICATION
from runtime.tools.base import AnyTool, Arguments, Tool, ToolContext, ToolOutput, WaitsFor

MOST_WAIT_S: Final = 60
PREVIEW: Final = 240
"""Characters of an agent's words in a list (AGT-2)."""
LINE: Final = 120
"""Characters of a task in a list."""
Action = Literal["list", "show", "wait", "message", "steer", "decline", "stop", "output"]
TELLS: Final = frozenset({"message", "steer", "decline", "stop"})
TOLD: Final[Mapping[How, str]] = {
    "steered": "It hears this at its next step.",
    "joined": "It begins with this when its turn comes.",
    "queued": "It reads this after its present work.",
    "continued": "It had settled and continues with this. Read its result with the action output.",
    "repeated": "It was told this already.",
    "answered": "It waited for this and continues. You get its result later.",
}


class SessionsSpawn(Tool[SpawnArguments]):
    """The turn hands it to the unit that parks or answers the call."""

    name = SPAWN
    own_words = True
    description = (
        "Start subagents for parts of the work: await their results, or go on and get them later."
    )
    arguments = SpawnArguments
    effect = Effect.READ
    example = '{"task": "Find where retries are configured.", "type": "explore"}'

    @override
    def touches(self, arguments: SpawnArguments, context: ToolContext) -> Touches:
        return Touches(delegates=True, spawns=True, subject=arguments.type)

    @override
    def waits_for(self, arguments: SpawnArguments, context: ToolContext) -> WaitsFor:
        return WaitsFor(CHILDREN)

    @override
    async def run(self, arguments: SpawnArguments, context: ToolContext) -> ToolOutput:
        raise ToolError("no subagent can be started here")


class ClarifyArguments(Arguments):
    question: str = Field(min_length=1, max_length=4000)


class RequestParentClarification(Tool[ClarifyArguments]):
    """The turn hands it to the unit that parks; only children are offered it:
    their tools are named."""

    name = "request_parent_clarification"
    description = "Ask the agent that started you, and wait for its answer."
    arguments = ClarifyArguments
    effect = Effect.READ
    example = '{"question": "Which of the two folders do you mean?"}'

    @override
    def offered(self, bounds: Bounds) -> bool:
        return bounds.tools is not None and super().offered(bounds)

    @override
    def touches(self, arguments: ClarifyArguments, context: ToolContext) -> Touches:
        return Touches(subject=arguments.question)

    @override
    def waits_for(self, arguments: ClarifyArguments, context: ToolContext) -> WaitsFor:
        return WaitsFor(CLARIFICATION, arguments.question)

    @override
    async def run(self, arguments: ClarifyArguments, context: ToolContext) -> ToolOutput:
        raise ToolError("nobody can be asked here; go on with what is known")


class SubagentsArguments(Arguments):
    action: Action
    agent: str = Field(default="", max_length=200, description="id, its beginning, label, or last")
    text: str = Field(default="", max_length=20_000)
    timeout_s: float = Field(default=MOST_WAIT_S, gt=0, le=MOST_WAIT_S)


class Subagents(Tool[SubagentsArguments]):
    """Reads, but for the actions that an agent is told something by; those say it once a call."""

    name = "subagents"
    own_words = True
    description = (
        "Your subagents: list, show, wait, message (also answers one that asks you), decline (to "
        "answer), steer (heard at the next step), stop, output."
    )
    arguments = SubagentsArguments
    effect = Effect.READ
    example = '{"action": "steer", "agent": "explore-1", "text": "Look at the tests as well."}'

    def __init__(self, family: AgentFamily) -> None:
        self._family = family

    @override
    def effect_of(self, arguments: SubagentsArguments) -> Effect:
        return Effect.IDEMPOTENT if arguments.action in TELLS else Effect.READ

    @override
    def touches(self, arguments: SubagentsArguments, context: ToolContext) -> Touches:
        tells = arguments.action in TELLS
        return Touches(
            own_agents=tells,
            delegates=tells and arguments.action != "stop",
            subject=f"{arguments.action} {arguments.agent}".strip(),
        )

    @override
    def waits_for(self, arguments: SubagentsArguments, context: ToolContext) -> WaitsFor | None:
        # A child holds a slot while it runs, which those that it waits for may need.
        waits = context.child and arguments.action == "wait"
        return WaitsFor(AGENTS) if waits else None

    @override
    async def run(self, arguments: SubagentsArguments, context: ToolContext) -> ToolOutput:
        house = await self._family.look(context.session_id)
        try:
            if arguments.action == "list":
                return _rows(house.rows, house) if house.rows else ToolOutput(NONE)
            if arguments.action == "wait":
                return await self._wait(arguments, context, house)
            agent = select(house.agents, arguments.agent, caller=context.session_id)
            if arguments.action in TELLS:
                return await self._tell(arguments, context, house, agent)
        except (InvalidInput, Conflict, Forbidden) as error:
            raise ToolError(str(error)) from error
        row = next(one for one in house.rows if one.agent.name == agent.name)
        if arguments.action == "show":
            return await self._show(row, house)
        return await self._output(row, house)

    async def _wait(
        self, arguments: SubagentsArguments, context: ToolContext, house: Household
    ) -> ToolOutput:
        there = below(house.agents, context.session_id)
        if arguments.agent:
            agent = select(house.agents, arguments.agent, caller=context.session_id)
            _must_be_below(agent, there)
            there = [agent]
        waited = {one.session_id for one in there}
        seconds = 0 if context.child else arguments.timeout_s
        left = await self._family.wait(waited, seconds)
        after = await self._family.look(context.session_id)
        rows = [one for one in after.rows if one.agent.session_id in waited]
        names = [one.agent.name for one in rows if one.agent.session_id in left]
        said = f"Still at work: {', '.join(names)}." if names else "All of them have settled."
        asking = [one.agent.name for one in rows if one.asks]
        if asking:
            said += f" These wait for your answer: {', '.join(asking)}."
        return _rows(rows, after, said=f"{said}\n") if rows else ToolOutput(NONE)

    async def _tell(
        self,
        arguments: SubagentsArguments,
        context: ToolContext,
        house: Household,
        agent: Agent,
    ) -> ToolOutput:
        _must_be_below(agent, below(house.agents, context.session_id))
        if arguments.action == "stop":
            asked = await self._family.stop(
                agent.session_id, f"stopped by {house.own}", run_id=context.run_id
            )
            gone = agent.status or "is being stopped already"
            return ToolOutput(f"{agent.name} {'is being stopped' if asked else gone}.")
        text = arguments.text.strip()
        if not text and arguments.action != "decline":
            raise InvalidInput("text", "say what the agent is to hear")
        word = Word(
            session_id=agent.session_id,
            run_id=context.run_id,
            call_id=context.call_id,
            by=house.own,
            text=text,
            steer=arguments.action == "steer",
            declines=arguments.action == "decline",
        )
        how = await self._family.tell(word)
        return ToolOutput(f"{agent.name}: {TOLD[how]}")

    async def _show(self, row: AgentRow, house: Household) -> ToolOutput:
        agent, detail = row.agent, await self._family.detail(row)
        shown = _row(row, house) | {
            "nickname": _given_to(row, agent.label, house),
            "root": agent.tree_id,
            "path": _path(agent, house),
            "depth": agent.depth,
            "task": _given_to(row, agent.task, house),
            "group": agent.group_name,
            "depends_on": list(detail.needs),
            "waits_for": list(detail.open),
            "queued_mailbox_count": detail.mail,
            "asks": [_words(row, one) for one in detail.asks],
            "started_at_ms": agent.created_ms,
            "settled_at_ms": agent.settled_ms,
            "memory_share_mode": agent.share,
            "retention": agent.retention,
            "spawned_by_run_id": agent.run_id,
            "spawn_request_id": _given_to(row, agent.request_key or "", house),
            "prompt_summary": _line(agent.prompt),
            "tools": list(detail.tools),
            "said": _words(row, detail.said),
        }
        told: JsonObject = {
            key: value for key, value in shown.items() if value not in (None, "", [])
        }
        return _given(row, told)

    async def _output(self, row: AgentRow, house: Household) -> ToolOutput:
        agent = row.agent
        if not agent.settled:
            state = {"agent_id": agent.name, "status": row.standing}
            return ToolOutput(f"not_ready\n{json.dumps(state)}")
        detail = await self._family.detail(row)
        about = agent.description or agent.label or _line(agent.task)
        shown: JsonObject = {
            "agent_id": agent.name,
            "description": _given_to(row, about, house),
            "type": agent.type,
            "status": agent.status,
            "started_at_ms": agent.created_ms,
            "steps": row.steps,
            "tool_calls": row.tool_calls,
            "tokens": row.tokens,
            "cost": row.cost_usd,
            "success": agent.status == "completed",
        }
        words = _words(row, detail.result)
        if words:
            shown["error" if agent.status == "failed" else "output"] = words
        return _given(row, shown)


class NoArguments(Arguments):
    pass


class AgentsList(Tool[NoArguments]):
    """The types for a spawn by the caller; `there` are all tools, filled in once all are made."""

    name = "agents_list"
    own_words = True
    description = "The types of subagents that you may spawn, with their tools."
    arguments = NoArguments
    effect = Effect.READ
    example = "{}"

    def __init__(self, family: AgentFamily, there: Sequence[AnyTool]) -> None:
        self._family = family
        self._there = there

    @override
    def touches(self, arguments: NoArguments, context: ToolContext) -> Touches:
        return Touches()

    @override
    async def run(self, arguments: NoArguments, context: ToolContext) -> ToolOutput:
        types = await self._family.types(context.session_id, self._there)
        lines = [] if types.offered else ["You may spawn no subagents."]
        for name, one in types.offered.items():
            model = f", model {one.model}" if one.model else ""
            only = ", only reads" if one.read_only else ""
            lines.append(f"- {name}{only}{model}: {types.about[name] or 'no description'}")
            lines.append(f"  tools: {', '.join(one.tools) or 'none'}")
        if types.problems:
            lines += ["Problems of the definitions:", *(f"- {one}" for one in types.problems)]
        return ToolOutput("\n".join(lines))


NONE: Final = "No subagents here."


def _must_be_below(agent: Agent, there: Sequence[Agent]) -> None:
    if agent.session_id not in {one.session_id for one in there}:
        rule = f"{agent.name} does not work for you; you can only look at it (show, output)"
        raise InvalidInput("agent", rule)


def _rows(rows: Sequence[AgentRow], house: Household, *, said: str = "") -> ToolOutput:
    """A line for each; tainted words and tasks among them make the whole untrusted (SUB-9)."""
    text = "\n".join(json.dumps(_row(row, house), ensure_ascii=False) for row in rows)
    tainted = any(row.tainted for row in rows)
    return ToolOutput(f"{said}{text}", untrusted=tainted, source="subagents")


def _row(row: AgentRow, house: Household) -> JsonObject:
    agent = row.agent
    parent = house.by_session.get(agent.parent_id)
    shown: JsonObject = {
        "agent_id": agent.name,
        "session_id": agent.session_id,
        "label": _given_to(row, agent.label, house) or None,
        "parent": parent.name if parent else None,
        "type": agent.type,
        "status": row.standing,
        "mode": agent.mode,
        "task": _given_to(row, _line(agent.task), house),
        "active_run_id": row.run_id,
        "queued_run_count": row.queued,
        "pending_approval_count": row.approvals,
        "pending_question_count": row.questions,
        "pending_parent_clarification_count": row.asks,
        "pending_parent_clarification_run_ids": [row.run_id] if row.asks else None,
        "progress": {"steps": row.steps, "tool_calls": row.tool_calls},
        "tokens": row.tokens,
        "cost": row.cost_usd,
        "retries": agent.retries or None,
        "elapsed_s": round(agent.lasted_ms(house.now_ms) / 1000, 1),
        "last_activity_at_ms": row.active_ms,
        "last_error": _words(row, (row.error or "")[:PREVIEW]) or None,
        "last_output_preview": _words(row, _preview(row)) or None,
    }
    return {key: value for key, value in shown.items() if value is not None}


def _path(agent: Agent, house: Household) -> str:
    """The names from the top of the tree down to an agent."""
    names = [agent.name]
    while (above := house.by_session.get(agent.parent_id)) is not None:
        names.append(above.name)
        agent = above
    return "/".join(reversed(names))


def _given_to(row: AgentRow, words: str, house: Household) -> str:
    """Words that whoever spawned an agent gave it, such as its task; they are data too, unless that
    is the caller, or somebody for whom the caller works."""
    own = next((one for one in house.agents if one.name == house.own), None)
    above = {row.agent.tree_id}
    while own is not None:
        above.add(own.session_id)
        own = house.by_session.get(own.parent_id)
    ours = row.agent.parent_id in above
    return words if ours else _words(row, words)


def _preview(row: AgentRow) -> str:
    """The beginning of what it gave, or said last while it is at work."""
    words = row.said if not row.agent.settled else row.agent.result
    return words.strip()[:PREVIEW]


def _line(task: str) -> str:
    first = task.strip().split("\n", 1)[0]
    return first if len(first) <= LINE else f"{first[:LINE]}..."


def _words(row: AgentRow, words: str) -> str:
    """A child's words are data; where they are tainted, all that is shown of it is fenced."""
    if row.tainted or not words.strip():
        return words
    return fence(words, f"subagent {row.agent.name}")


def _given(row: AgentRow, shown: JsonObject) -> ToolOutput:
    text = json.dumps(shown, ensure_ascii=False, indent=1)
    return ToolOutput(text, untrusted=row.tainted, source=f"subagent {row.agent.name}")
