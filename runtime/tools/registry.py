"""The tools by name, and the check of a call before anything else looks at it (TOOL-1)."""

import difflib
import json
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from pydantic import JsonValue, ValidationError
from pydantic_core import ErrorDetails

from runtime.domain.errors import ToolError
from runtime.domain.strict_json import NotStrict, read_json
from runtime.domain.tools import ToolCall, ToolSpec
from runtime.domain.transcript import TranscriptMessage
from runtime.policy.decide import Bounds
from runtime.tools.base import AnyTool, Prepared
from runtime.tools.families import Families
from runtime.tools.paths import shown

_ERRORS_SHOWN = 5
_UNBOUND: Final = Bounds()
_ADVICE = {"missing": "is required", "extra_forbidden": "is no field of this tool"}


class Registry:
    """What is offered. Order is that of registration, so that a prompt stays byte-stable."""

    def __init__(self, tools: Iterable[AnyTool]) -> None:
        self._tools: dict[str, AnyTool] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise ValueError(f"two tools are named {tool.name}")
            self._tools[tool.name] = tool
        self._families = Families(self._tools.values())
        self._known = {**self._tools, **{one.name: one for one in self._families.openers}}
        self._told = [name for name, tool in self._known.items() if not tool.family]
        self._specs = {name: tool.spec() for name, tool in self._known.items()}

    def without(self, names: Collection[str]) -> "Registry":
        """The others, in their order."""
        return Registry(tool for tool in self._tools.values() if tool.name not in names)

    @property
    def tools(self) -> tuple[AnyTool, ...]:
        """All of them, in their order."""
        return tuple(self._tools.values())

    def specs(self, bounds: Bounds = _UNBOUND) -> tuple[ToolSpec, ...]:
        """What the model is told of the tools that are offered to a session that is bounded so;
        of those that belong to families their names only (CTX-12)."""
        told = [
            self._specs[name]
            for name, tool in self._tools.items()
            if not tool.family and tool.offered(bounds)
        ]
        return (*told, *self._families.specs(bounds))

    def meant(self, calls: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
        """The calls that a response asks for, whatever way the model had to make them."""
        return tuple(self._families.meant(call) for call in calls)

    def as_made(self, messages: Iterable[TranscriptMessage]) -> tuple[TranscriptMessage, ...]:
        """A conversation as the model would know it from what it is offered: undoes `meant`."""
        return tuple(self._families.as_made(message) for message in messages)

    def get(self, name: str) -> AnyTool | None:
        return self._known.get(name)

    def prepare(self, call: ToolCall) -> Prepared:
        """The tool with checked arguments.

        Raises `ToolError`: an unknown tool (with the nearest names), or arguments that are no
        JSON object or break a rule (with the field, the rule and an example).
        """
        tool = self._known.get(call.name)
        if tool is None:
            raise ToolError(self._unknown(call.name))
        try:
            return tool.bind(_object(call.arguments, tool))
        except ValidationError as error:
            properties = self._specs[tool.name].parameters.get("properties")
            fields = ", ".join(properties) if isinstance(properties, dict) else ""
            raise ToolError(_broken(error, tool, fields)) from error

    def _unknown(self, name: str) -> str:
        near = difflib.get_close_matches(name[:100].lower(), self._known, n=3, cutoff=0.5)
        hint = (
            f"the nearest are {', '.join(near)}" if near else f"there are {', '.join(self._told)}"
        )
        return f"there is no tool named {shown(name)}; {hint}"


def _object(text: str, tool: AnyTool) -> Mapping[str, JsonValue]:
    try:
        raw = read_json(text.strip() or "{}")
    except NotStrict as error:
        raise ToolError(_wrong(tool, f"the arguments cannot be read: {error}")) from error
    if not isinstance(raw, dict):
        raise ToolError(_wrong(tool, "the arguments must be one JSON object"))
    try:
        json.dumps(raw, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ToolError(_wrong(tool, "the arguments hold half of a surrogate pair")) from error
    return raw


def _broken(error: ValidationError, tool: AnyTool, fields: str) -> str:
    details = error.errors(include_url=False, include_context=False)
    said = [_sentence(detail) for detail in details[:_ERRORS_SHOWN]]
    if len(details) > _ERRORS_SHOWN:
        said.append(f"and {len(details) - _ERRORS_SHOWN} more")
    if any(detail["type"] == "extra_forbidden" for detail in details):
        said.append(f"the fields are {fields}")
    return _wrong(tool, "; ".join(said))


def _sentence(detail: ErrorDetails) -> str:
    field = shown(".".join(str(part) for part in detail["loc"])) or "the arguments"
    rule = _ADVICE.get(detail["type"], detail["msg"][:1].lower() + detail["msg"][1:])
    return f"{field}: {rule}"


def _wrong(tool: AnyTool, what: str) -> str:
    return f"{tool.name}: {what}. Example: {tool.example}"
