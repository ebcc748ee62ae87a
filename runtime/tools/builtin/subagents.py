"""Looking after subagents: what they do, what they found, and what they are told (SUB-3, SUB-4).

Everybody in a tree may look at all of it. Only those below the caller may be waited for, told or
stopped: an agent must not steer one that has more tools than itself.
"""

import json
from collections.abc import Sequence
from typing import Final, Literal

from pydantic import Field
from typing_extensions import override

from runtime.domain.errors import Conflict, InvalidInput, ToolError
from runtime.domain.fence import fence
from runtime.domain.tools import Effect, Touches
from runtime.domain.value import JsonObject
from runtime.store.agent_rows import AgentRow
from runtime.store.agents import Agent
from runtime.subagents.selecting import below, select, standing
from runtime.subagents.talking import Word
from runtime.tools.base import AnyTool, Arguments, Tool, ToolContext, ToolOutput
from runtime.tools.family import Family, Household

MOST_WAIT_S: Final = 60
LINE: Final = 120
"""Characters of a task in a list."""
Action = Literal["list", "show", "wait", "message", "steer", "stop", "output"]
TELLS: Final = frozenset({"message", "steer", "stop"})
_HOW: Final = {
    "steered": "It hears this at its next step.",
    "joined": "It begins with this when its turn comes.",
    "queued": "It takes this up when it has done what it is at.",
    "continued": "It had settled and goes on with this; read what comes of it by output.",
    "repeated": "It was told this already.",
}


class SubagentsArguments(Arguments):
    action: Action
    agent: str = Field(default="", max_length=200, description="id, its beginning, label, or last")
    text: str = Field(default="", max_length=20_000)
    timeout_s: float = Field(default=MOST_WAIT_S, gt=0, le=MOST_WAIT_S)


class Subagents(Tool[SubagentsArguments]):
    """Reads, but for the actions that an agent is told something by; those say it once a call."""

    name = "subagents"
    description = (
        "Your subagents: list, show, wait, message, steer (heard at the next step), stop, output."
    )
    arguments = SubagentsArguments
    effect = Effect.READ
    example = '{"action": "steer", "agent": "explore-1", "text": "Look at the tests as well."}'

    def __init__(self, family: Family) -> None:
        self._family = family

    @override
    def effect_of(self, arguments: SubagentsArguments) -> Effect:
        return Effect.IDEMPOTENT if arguments.action in TELLS else Effect.READ

    @override
    def touches(self, arguments: SubagentsArguments, context: ToolContext) -> Touches:
        tells = arguments.action in TELLS
        return Touches(own_agents=tells, subject=f"{arguments.action} {arguments.agent}".strip())

    @override
    async def run(self, arguments: SubagentsArguments, context: ToolContext) -> ToolOutput:
        house = await self._family.look(context.session_id)
        try:
            if arguments.action == "list":
                return ToolOutput(_list(house))
            if arguments.action == "wait":
                return await self._wait(arguments, context, house)
            agent = select(house.agents, arguments.agent, caller=context.session_id)
            if arguments.action in TELLS:
                return await self._tell(arguments, context, house, agent)
        except (InvalidInput, Conflict) as error:
            raise ToolError(str(error)) from error
        row = next(one for one in house.rows if one.agent.name == agent.name)
        if arguments.action == "show":
            return await self._show(row, house)
        return await self._output(row)

    async def _wait(
        self, arguments: SubagentsArguments, context: ToolContext, house: Household
    ) -> ToolOutput:
        there = below(house.agents, context.session_id)
        if arguments.agent:
            agent = select(house.agents, arguments.agent, caller=context.session_id)
            _must_be_below(agent, there)
            there = [agent]
        waited = {one.session_id for one in there}
        left = await self._family.wait(waited, arguments.timeout_s)
        after = await self._family.look(context.session_id)
        rows = [one for one in after.rows if one.agent.session_id in waited]
        names = [one.agent.name for one in rows if one.agent.session_id in left]
        said = f"Still at work: {', '.join(names)}." if names else "All of them have settled."
        return ToolOutput(f"{said}\n{_rows(rows, after)}" if rows else NONE)

    async def _tell(
        self,
        arguments: SubagentsArguments,
        context: ToolContext,
        house: Household,
        agent: Agent,
    ) -> ToolOutput:
        _must_be_below(agent, below(house.agents, context.session_id))
        if arguments.action == "stop":
            asked = await self._family.stop(agent.session_id, f"stopped by {house.own}")
            gone = agent.status or "is being stopped already"
            return ToolOutput(
                f"{agent.name} is being stopped." if asked else f"{agent.name} {gone}."
            )
        text = arguments.text.strip()
        if not text:
            raise InvalidInput("text", "say what the agent is to hear")
        word = Word(
            session_id=agent.session_id,
            run_id=context.run_id,
            call_id=context.call_id,
            by=house.own,
            text=text,
            steer=arguments.action == "steer",
        )
        how = await self._family.tell(word)
        return ToolOutput(f"{agent.name}: {_HOW[how]}")

    async def _show(self, row: AgentRow, house: Household) -> ToolOutput:
        agent, detail = row.agent, await self._family.detail(row)
        shown = _row(row, house) | {
            "session_id": agent.session_id,
            "depth": agent.depth,
            "task": agent.task,
            "group": agent.group_name,
            "depends_on": list(detail.needs),
            "waits_for": list(detail.open),
            "tool_calls": detail.used.tool_calls,
            "started_at_ms": agent.created_ms,
            "settled_at_ms": agent.settled_ms,
            "said": _words(agent, detail.said, tainted=row.tainted),
        }
        return _given(
            row, {key: value for key, value in shown.items() if value not in (None, "", [])}
        )

    async def _output(self, row: AgentRow) -> ToolOutput:
        agent = row.agent
        if agent.settled_ms is None:
            state = {"agent_id": agent.name, "status": standing(row)}
            return ToolOutput(f"not_ready\n{json.dumps(state)}")
        detail = await self._family.detail(row)
        done = agent.status == "completed"
        shown: JsonObject = {
            "agent_id": agent.name,
            "description": agent.label or _line(agent.task),
            "type": agent.type,
            "status": agent.status,
            "started_at_ms": agent.created_ms,
            "steps": row.steps,
            "tool_calls": detail.used.tool_calls,
            "tokens": row.tokens,
            "cost": row.cost_usd,
            "success": done,
        }
        words = _words(agent, agent.result, tainted=row.tainted)
        if words:
            shown["error" if agent.status == "failed" else "output"] = words
        return _given(row, shown)


class NoArguments(Arguments):
    pass


class AgentsList(Tool[NoArguments]):
    """The types for a spawn by the caller; `there` are all tools, filled in once all are made."""

    name = "agents_list"
    description = "The types of subagents that you may spawn, with their tools."
    arguments = NoArguments
    effect = Effect.READ
    example = "{}"

    def __init__(self, family: Family, there: Sequence[AnyTool]) -> None:
        self._family = family
        self._there = there

    @override
    def touches(self, arguments: NoArguments, context: ToolContext) -> Touches:
        return Touches()

    @override
    async def run(self, arguments: NoArguments, context: ToolContext) -> ToolOutput:
        seen = await self._family.types(context.session_id, self._there)
        lines = [] if seen.may else ["You may spawn no subagents."]
        for one in seen.may:
            model = f", model {one.model}" if one.model else ""
            only = ", only reads" if one.read_only else ""
            lines.append(f"- {one.name}{only}{model}: {one.about or 'no description'}")
            lines.append(f"  tools: {', '.join(one.tools) or 'none'}")
        if seen.problems:
            lines += ["Problems of the definitions:", *(f"- {one}" for one in seen.problems)]
        return ToolOutput("\n".join(lines))


NONE: Final = "No subagents here."


def _must_be_below(agent: Agent, there: Sequence[Agent]) -> None:
    if agent.session_id not in {one.session_id for one in there}:
        rule = f"{agent.name} does not work for you; you can only look at it (show, output)"
        raise InvalidInput("agent", rule)


def _list(house: Household) -> str:
    return _rows(house.rows, house) if house.rows else NONE


def _rows(rows: Sequence[AgentRow], house: Household) -> str:
    return "\n".join(json.dumps(_row(row, house), ensure_ascii=False) for row in rows)


def _row(row: AgentRow, house: Household) -> JsonObject:
    agent = row.agent
    ended = house.now_ms if agent.settled_ms is None else agent.settled_ms
    parents = {one.session_id: one.name for one in house.agents}
    shown: JsonObject = {
        "agent_id": agent.name,
        "label": agent.label or None,
        "parent": parents.get(agent.parent_id),
        "type": agent.type,
        "status": standing(row),
        "mode": agent.mode,
        "task": _line(agent.task),
        "steps": row.steps,
        "tokens": row.tokens,
        "retries": agent.retries or None,
        "elapsed_s": round((ended - agent.created_ms) / 1000, 1),
    }
    return {key: value for key, value in shown.items() if value is not None}


def _line(task: str) -> str:
    first = task.strip().split("\n", 1)[0]
    return first if len(first) <= LINE else f"{first[:LINE]}..."


def _words(agent: Agent, words: str, *, tainted: bool) -> str:
    """A child's words are data; where they are tainted, all that is shown of it is fenced."""
    if tainted or not words.strip():
        return words
    return fence(words, f"subagent {agent.name}")


def _given(row: AgentRow, shown: JsonObject) -> ToolOutput:
    text = json.dumps(shown, ensure_ascii=False, indent=1)
    return ToolOutput(text, untrusted=row.tainted, source=f"subagent {row.agent.name}")
