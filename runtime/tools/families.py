"""Tools that are rarely needed: offered by name, described when the model asks (CTX-12).

Their schemas are in no prompt. `load_tools` gives those of a family as its result, so what stands
before it stays as it was and a provider's cache holds. `call_tool` then makes a call of one of
them: what is decided, shown and kept is the call that it means, under the name of that tool.
"""

import json
from collections.abc import Iterable, Mapping, Sequence

from pydantic import Field, JsonValue
from typing_extensions import override

from runtime.domain.errors import ToolError
from runtime.domain.strict_json import NotStrict, read_json
from runtime.domain.tools import CALL_TOOL, LOAD_TOOLS, Effect, ToolCall, ToolSpec, Touches
from runtime.domain.transcript import AssistantMessage, TranscriptMessage
from runtime.policy.decide import Bounds
from runtime.tools.base import AnyTool, Arguments, Tool, ToolContext, ToolOutput
from runtime.tools.paths import shown


class LoadArguments(Arguments):
    family: str = Field(min_length=1, max_length=64)


class CallArguments(Arguments):
    tool: str = Field(min_length=1, max_length=128)
    arguments: dict[str, JsonValue] = Field(default_factory=dict)


class LoadTools(Tool[LoadArguments]):
    """The descriptions and schemas of one family. It grants nothing."""

    name = LOAD_TOOLS
    description = "Read how the tools of a family are called with call_tool."
    arguments = LoadArguments
    effect = Effect.READ

    def __init__(self, families: Mapping[str, Sequence[AnyTool]]) -> None:
        self._families = families
        self.example = json.dumps({"family": next(iter(families), "")})

    @override
    def touches(self, arguments: LoadArguments, context: ToolContext) -> Touches:
        return Touches(subject=arguments.family)

    @override
    async def run(self, arguments: LoadArguments, context: ToolContext) -> ToolOutput:
        found = self._families.get(arguments.family)
        if found is None:
            there = ", ".join(self._families)
            name = shown(arguments.family)
            raise ToolError(f"there is no family of tools named {name}; there are {there}")
        return ToolOutput("\n\n".join(_told(one) for one in found), outside=False)


class CallTool(Tool[CallArguments]):
    """A call of a tool of a family. The registry puts the call that it means in its place, so it
    runs itself only where it means none."""

    name = CALL_TOOL
    description = "Call a tool of a family. Read how with load_tools first."
    arguments = CallArguments
    effect = Effect.READ

    def __init__(self, tools: Mapping[str, AnyTool]) -> None:
        self._tools = tools
        first = next(iter(tools.values()))
        self.example = f'{{"tool": "{first.name}", "arguments": {first.example}}}'

    @override
    def touches(self, arguments: CallArguments, context: ToolContext) -> Touches:
        raise self._no_such(arguments)

    @override
    async def run(self, arguments: CallArguments, context: ToolContext) -> ToolOutput:
        raise self._no_such(arguments)

    def _no_such(self, arguments: CallArguments) -> ToolError:
        there = ", ".join(self._tools)
        return ToolError(f"no family has a tool named {shown(arguments.tool)}; there are {there}")


class Families:
    """The tools of `there` that belong to a family."""

    def __init__(self, there: Iterable[AnyTool]) -> None:
        self._tools = {tool.name: tool for tool in there if tool.family}
        families: dict[str, list[AnyTool]] = {}
        for tool in self._tools.values():
            families.setdefault(tool.family, []).append(tool)
        self._families = families
        self.openers: tuple[AnyTool, ...] = ()
        """The tools by which the others are reached; none where there are no others."""
        if families:
            self.openers = (LoadTools(families), CallTool(self._tools))

    def specs(self, bounds: Bounds) -> tuple[ToolSpec, ...]:
        """What a session that is bounded so is told: the names of what it is offered."""
        offered = [tool for tool in self._tools.values() if tool.offered(bounds)]
        names = {
            LOAD_TOOLS: ("family", list(dict.fromkeys(tool.family for tool in offered))),
            CALL_TOOL: ("tool", [tool.name for tool in offered]),
        }
        if not offered:
            return ()
        return tuple(_listing(opener.spec(), *names[opener.name]) for opener in self.openers)

    def meant(self, call: ToolCall) -> ToolCall:
        """The call that a call of `call_tool` means; every other one, and one that cannot be read
        or names no tool of a family, as it is."""
        if call.name != CALL_TOOL:
            return call
        try:
            raw = read_json(call.arguments)
        except NotStrict:
            return call
        if not isinstance(raw, dict) or raw.keys() - {"tool", "arguments"}:
            return call
        name, arguments = raw.get("tool"), raw.get("arguments", {})
        if not isinstance(name, str) or name not in self._tools:
            return call
        # Some models write the arguments as text, as a call of their own has them.
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        return call.model_copy(update={"name": name, "arguments": text})

    def as_made(self, message: TranscriptMessage) -> TranscriptMessage:
        """A message as the model that wrote it would know it: its calls are of tools that it is
        offered, which some providers insist on."""
        if not isinstance(message, AssistantMessage) or not any(
            call.name in self._tools for call in message.tool_calls
        ):
            return message
        calls = tuple(self._made(call) for call in message.tool_calls)
        return message.model_copy(update={"tool_calls": calls})

    def _made(self, call: ToolCall) -> ToolCall:
        if call.name not in self._tools:
            return call
        try:
            arguments = read_json(call.arguments)
        except NotStrict:
            arguments = call.arguments
        text = json.dumps({"tool": call.name, "arguments": arguments})
        return call.model_copy(update={"name": CALL_TOOL, "arguments": text})


def _listing(spec: ToolSpec, field: str, names: list[str]) -> ToolSpec:
    properties = spec.parameters["properties"]
    if not isinstance(properties, dict):
        raise TypeError(f"{spec.name} has no properties")
    listed: JsonValue = {"type": "string", "enum": [*names]}
    parameters = {**spec.parameters, "properties": {**properties, field: listed}}
    return spec.model_copy(update={"parameters": parameters})


def _told(tool: AnyTool) -> str:
    spec = tool.spec()
    schema = json.dumps(spec.parameters, ensure_ascii=False)
    return f"{spec.name}: {spec.description}\narguments: {schema}\nexample: {tool.example}"
