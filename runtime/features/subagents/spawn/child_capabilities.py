"""What a child may reach: what its parent may, its type, and what is asked for it (POL-5). Pure.

A request that is more than the parent has is refused with the axis named; what a type or a
definition leaves out is taken away without a word. Nothing here can add.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from pydantic import ValidationError

from runtime.domain.capabilities import (
    Axis,
    Capabilities,
    Need,
    Scope,
    Spend,
    allows,
    meet,
    widenings,
)
from runtime.domain.decisions import PermissionMode
from runtime.domain.patterns import named
from runtime.domain.printable import quoted
from runtime.domain.value import Value
from runtime.features.subagents.spawn.spawn_arguments import Asked, Problem
from runtime.workspace.layout import Layout

_WILD: Final = re.compile(r"[*?\[]")
_FIELDS: Final[dict[Axis, str]] = {
    "tools": "allowed_tools",
    "mode": "permission_mode",
    "spend": "budget",
}
"""What an axis is called in a call, where it has another name there."""


ANYWHERE: Final = Layout(Path("/"), Path("/"), ())


class Held(Value):
    """What the agent that spawns has itself: the point of the lattice that bounds its run, with
    the mode that holds for it now, and where its relative paths begin."""

    capabilities: Capabilities = Capabilities()
    layout: Layout = ANYWHERE


HELD_ALL: Final = Held()


class Endowment(Value):
    """What a child is given: names of tools, the bounds on the other axes, and its permission
    mode, None where it follows what bounds its parent."""

    tools: tuple[str, ...]
    capabilities: Capabilities = Capabilities()
    mode: PermissionMode | None = None


def problems(held: Held, asked: Asked, tools: Sequence[str]) -> Iterator[Problem]:
    """All that is wrong with what is asked for a child of a type with these `tools`."""
    yield from _unclear(asked, _within(held, tools))
    try:
        wanted = _point(held, asked)
    except ValidationError as error:
        for line in error.errors(include_url=False, include_context=False, include_input=False):
            yield Problem(str(line["loc"][0]) if line["loc"] else "network", line["msg"])
        return
    for one in widenings(held.capabilities, wanted):
        field = _FIELDS.get(one.axis, one.axis)
        yield Problem(field, f"wider on the axis {one.axis}: {one.rule}")


def endow(
    held: Held, asked: Asked, tools: Sequence[str], mode: PermissionMode | None = None
) -> Endowment:
    """What a child gets of a request without problems: `tools` and `mode` are its type's.

    A type's mode is met with the parent's; one that the call asks for stands for itself, because
    `problems` has compared it (SUB-18: it pins the mode).
    """
    kept = tuple(
        name
        for name in _within(held, tools)
        if (asked.allowed_tools is None or named(asked.allowed_tools, name))
        and not named(asked.denied_tools, name)
    )
    wanted = _point(held, asked.model_copy(update={"allowed_tools": None, "denied_tools": ()}))
    found = meet(held.capabilities, wanted)
    levels = found.depth
    below = None if levels is None else max(0, levels - 1)
    pinned = asked.permission_mode
    if mode is not None:
        bounds = (Capabilities(mode=one) for one in (mode, found.mode))
        pinned = meet(*bounds).mode
    # The names of tools are kept beside it, and the mode in the session's own column.
    bare = found.model_copy(
        update={"tools": None, "denied_tools": (), "mode": None, "depth": below}
    )
    return Endowment(tools=kept, capabilities=bare, mode=pinned)


def _within(held: Held, tools: Sequence[str]) -> Sequence[str]:
    """Those that the agent that spawns may use itself."""
    return [name for name in tools if allows(held.capabilities, Need(tool=name))]


def _unclear(asked: Asked, tools: Sequence[str]) -> Iterator[Problem]:
    for name in asked.allowed_tools or ():
        if _WILD.search(name) and not named((name,), *tools):
            rule = f"{name} names no tool that a child of this type has"
            yield Problem("allowed_tools", rule)
        elif not _WILD.search(name) and name not in tools:
            there = ", ".join(sorted(tools)) or "none"
            rule = (
                f"wider on the axis tools: {name} is no tool that a child of this type can have "
                f"from this agent; there are: {there}"
            )
            yield Problem("allowed_tools", rule)
    named_paths = [("paths", one) for one in asked.paths or ()]
    if asked.folder is not None:
        named_paths.append(("workspace", asked.folder))
    for field, path in named_paths:
        if not is_clear(path):
            rule = f"{quoted(path)} must be a file or a folder, without .., * and ?"
            yield Problem(field, rule)


def _point(held: Held, asked: Asked) -> Capabilities:
    """What is asked as a point of the lattice. Raises pydantic's `ValidationError`.

    The names of tools are compared with those of the type instead, which are its parent's at most.
    """
    bounds = [] if asked.paths is None else [asked.paths]
    if asked.folder is not None:
        bounds.append((asked.folder,))
    locate = held.layout.locate
    paths = tuple(tuple(str(locate(one)) for one in each if is_clear(one)) for each in bounds)
    return Capabilities(
        paths=Scope(lists=paths) if paths else None,
        network=None if asked.network is None else Scope.of(*(n.lower() for n in asked.network)),
        secrets=None if asked.secrets is None else Scope.of(*asked.secrets),
        spend=Spend() if asked.budget is None else asked.budget.spend,
        mode=asked.permission_mode,
    )


def is_clear(path: str) -> bool:
    """Whether it can be one file or folder."""
    return not (_WILD.search(path) or "\0" in path or ".." in PurePosixPath(path).parts)
