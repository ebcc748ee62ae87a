"""Narrowing a session, as its owner does by the API (RUN-1).

A scope takes away and never adds: the policy decides by the meet of it and of all else that bounds
the session, and the subagents of its runs get no more than that (POL-5).
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Annotated, Final

from pydantic import Field, NonNegativeInt, StringConstraints, ValidationError

from runtime.domain.capabilities import Capabilities, Need, Scope, allows
from runtime.domain.errors import InvalidInput
from runtime.domain.events import EventKind
from runtime.domain.printable import quoted
from runtime.domain.value import JsonObject, Value
from runtime.sessions import audit, sessions
from runtime.sessions.idle import check_idle
from runtime.sessions.unit import Unit, Units
from runtime.views.models import SessionView
from runtime.views.reader import one_session
from runtime.workspace.layout import Layout, ResolvedLayout

_WILD: Final = re.compile(r"[*?]")
_NO_WILD: Final = r"^[^*?]+$"
_TOOL: Final = r"^[^\s()\x1c-\x1f]+$"
_HOST: Final = r"^(?:\*|(?:\*\.)?[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*|[0-9A-Fa-f:.]+)$"
_Word = Annotated[str, StringConstraints(min_length=1, max_length=500)]
_Path = Annotated[_Word, Field(json_schema_extra={"pattern": _NO_WILD})]
_Paths = Annotated[tuple[_Path, ...], Field(max_length=200)]
_Tool = Annotated[_Word, Field(json_schema_extra={"pattern": _TOOL})]
_Tools = Annotated[tuple[_Tool, ...], Field(max_length=200)]
_Host = Annotated[_Word, Field(json_schema_extra={"pattern": _HOST})]
_Hosts = Annotated[tuple[_Host, ...], Field(max_length=200)]


class CapabilityScopeRequest(Value):
    """What the runs of a session may do at most. An axis that is left out has no further limit; an
    empty list allows nothing. ``tools`` and ``denied_tools`` are names or patterns of tools that
    there are, ``paths`` files or folders with all below them, absolute or in the workspace,
    ``network`` hosts or ``*.domain``, ``depth`` how many levels of subagents may follow."""

    tools: _Tools | None = None
    denied_tools: _Tools = ()
    paths: _Paths | None = None
    network: _Hosts | None = None
    depth: NonNegativeInt | None = Field(default=None, le=100)


class ScopeControl:
    """Narrows sessions for the owner. `workspace` and `tools`, the names of all that there are, are
    asked each time; `actor` is who does it."""

    def __init__(
        self,
        units: Units,
        workspace: Callable[[], Path],
        tools: Callable[[], Sequence[str]],
        actor: str,
    ) -> None:
        self._units = units
        self._workspace = workspace
        self._tools = tools
        self._actor = actor

    async def narrow(self, session_id: str, asked: CapabilityScopeRequest | None) -> SessionView:
        """Give a session this scope in place of the one that it was given before; None takes that
        away. What it got when it was made stays.

        Raises `NotFound` for the session, `InvalidInput` for the scope with its axis, and
        `Conflict` unless the session is idle.
        """
        scope = None
        if asked is not None:
            scope = await asyncio.to_thread(_point, asked, self._workspace(), self._tools())

        def work(unit: Unit) -> SessionView:
            _narrow(unit, session_id, scope, by=self._actor)
            return one_session(unit.conn, session_id)

        return await self._units.run(work, name="capability-scope")


def _narrow(unit: Unit, session_id: str, scope: Capabilities | None, *, by: str) -> None:
    conn, lane = unit.conn, unit.lane(session_id)
    check_idle(conn, lane, "capability scope")
    if sessions.get(conn, session_id).capability_scope == scope:
        return
    sessions.narrow(conn, session_id, scope)
    kept = None if scope is None else scope.model_dump(mode="json", exclude_defaults=True)
    data: JsonObject = {"capability_scope": kept}
    lane.record(EventKind.SESSION_CHANGED, None, data)
    audit.append(conn, actor=by, action="session.changed", session_id=session_id, data=data)
    unit.save()
    unit.changed(session_id)


def _point(asked: CapabilityScopeRequest, root: Path, tools: Sequence[str]) -> Capabilities:
    """The scope as a point of the lattice; looks at the disk. Raises `InvalidInput`."""
    paths = asked.paths
    if paths is not None:
        layout = Layout.of(root)
        resolved = ResolvedLayout(layout)
        layout = replace(layout, home=resolved.home, files=resolved.files)
        paths = tuple(_located(layout, path) for path in paths)
    try:
        scope = Capabilities(
            tools=_axis(asked.tools),
            denied_tools=asked.denied_tools,
            paths=_axis(paths),
            network=_axis(asked.network and tuple(host.lower() for host in asked.network)),
            depth=asked.depth,
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        rule = first["msg"].removeprefix("Value error, ")
        raise InvalidInput(str(first["loc"][0]), rule) from error
    _check_tools("tools", asked.tools or (), tools)
    _check_tools("denied_tools", asked.denied_tools, tools)
    return scope


def _axis(patterns: Sequence[str] | None) -> Scope | None:
    return None if patterns is None else Scope.of(*patterns)


def _check_tools(field: str, patterns: Sequence[str], tools: Sequence[str]) -> None:
    for pattern in patterns:
        alone = Capabilities(tools=Scope.of(pattern))
        if not any(allows(alone, Need(tool=name)) for name in tools):
            rule = f"{quoted(pattern)} names no tool that there is; there are: "
            raise InvalidInput(field, rule + ", ".join(sorted(tools)))


def _located(layout: Layout, path: str) -> str:
    if _WILD.search(path) or "\0" in path or ".." in PurePosixPath(path).parts:
        rule = f"{quoted(path)} must be a file or a folder, without .., * and ?"
        raise InvalidInput("paths", rule)
    return str(layout.locate(path))
