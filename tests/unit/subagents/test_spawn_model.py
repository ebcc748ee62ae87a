"""A model of the spawn rules in plain sets, explored in full against the real ones (POL-5).

The model knows no patterns and no lattice: what an agent may is a set of things. A request is
refused where it is no part of what the parent has; else the child has what was asked, or all of its
parent's where nothing was asked.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from runtime.domain.capabilities import Capabilities, Need, allows
from runtime.domain.decisions import PermissionMode
from runtime.features.subagents.spawn.child_capabilities import Held, endow, problems
from runtime.features.subagents.spawn.spawn_arguments import Asked
from runtime.workspace.layout import Layout

Things = frozenset[str]
TOOLS = ("exec", "grep", "read_file")
PATHS = ("/w/a/x", "/w/a/y", "/w/b", "/w", "/else")
HOSTS = ("h.org", "a.h.org", "k.org")
MODES = tuple(one.value for one in PermissionMode)


@dataclass(frozen=True)
class Axis:
    """One axis of a request: its field, all things, and what each request means as a set."""

    field: str
    named: str
    things: tuple[str, ...]
    requests: Mapping[tuple[str, ...] | str | None, Things | None]


def _tools() -> Axis:
    asked: dict[tuple[str, ...] | str | None, Things | None] = {None: None}
    for number in range(2 ** len(TOOLS)):
        some = tuple(one for place, one in enumerate(TOOLS) if number >> place & 1)
        asked[some] = frozenset(some)
    return Axis("allowed_tools", "tools", TOOLS, asked)


AXES = (
    _tools(),
    Axis(
        "paths",
        "paths",
        PATHS,
        {
            None: None,
            (): frozenset(),
            ("a",): frozenset({"/w/a/x", "/w/a/y"}),
            ("/w/a/x",): frozenset({"/w/a/x"}),
            ("b", "a/y"): frozenset({"/w/b", "/w/a/y"}),
            (".",): frozenset({"/w/a/x", "/w/a/y", "/w/b", "/w"}),
            ("/else",): frozenset({"/else"}),
            ("/",): frozenset(PATHS),
        },
    ),
    Axis(
        "network",
        "network",
        HOSTS,
        {
            None: None,
            (): frozenset(),
            ("*",): frozenset(HOSTS),
            ("H.org",): frozenset({"h.org"}),
            ("*.h.org",): frozenset({"a.h.org"}),
            ("h.org", "k.org"): frozenset({"h.org", "k.org"}),
        },
    ),
    Axis(
        "permission_mode",
        "mode",
        MODES,
        {None: None} | {mode: frozenset(MODES[place:]) for place, mode in enumerate(MODES)},
    ),
)


NO_BOUND = Capabilities()


@dataclass(frozen=True)
class State:
    """An agent: what the model says that it may, and what the real rules stored for it."""

    may: Things
    tools: tuple[str, ...] = TOOLS
    capabilities: Capabilities = NO_BOUND
    mode: PermissionMode | None = None

    @property
    def held(self) -> Held:
        bounds = self.capabilities.model_copy(update={"mode": self.mode})
        return Held(capabilities=bounds, layout=Layout(Path("/w"), Path("/w"), ()))

    def really(self, axis: Axis) -> Things:
        """What the stored bounds allow of the axis."""
        if axis.named == "tools":
            return frozenset(self.tools)
        bounds = self.held.capabilities
        field = {"paths": "path", "network": "host", "mode": "mode"}[axis.named]
        return frozenset(
            one for one in axis.things if allows(bounds, Need.model_validate({field: one}))
        )


@pytest.mark.requirement("POL-5", "SUB-18")
@pytest.mark.parametrize("axis", AXES, ids=[axis.named for axis in AXES])
def test_every_state_that_spawns_can_reach_agrees_with_the_model(axis: Axis) -> None:
    reached, left = set[State](), [State(frozenset(axis.things))]
    while left:
        parent = left.pop()
        if parent in reached:
            continue
        reached.add(parent)
        for request, meant in axis.requests.items():
            asked = Asked.model_validate({axis.field: request})
            refused = list(problems(parent.held, asked, parent.tools))
            wider = meant is not None and not meant <= parent.may
            assert bool(refused) is wider, (parent, request)
            assert all(one.field == axis.field for one in refused)
            assert all(f"wider on the axis {axis.named}" in one.rule for one in refused)
            if refused:
                continue
            given = endow(parent.held, asked, parent.tools)
            child = State(
                may=parent.may if meant is None else meant & parent.may,
                tools=given.tools,
                capabilities=given.capabilities,
                mode=given.mode or parent.mode,
            )
            assert child.really(axis) == child.may, (parent, request)
            left.append(child)
    assert len(reached) > len(axis.things)
