"""What a child may reach, over chains of spawns: never more than its parent on any axis (POL-5)."""

from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.domain.capabilities import Capabilities, Need, Scope, allows
from runtime.domain.decisions import Decision, PermissionMode, SessionMode, narrower
from runtime.domain.grants import Grant, GrantKind
from runtime.domain.people import Trust
from runtime.domain.tools import Effect, Touches
from runtime.features.subagents.openings import held_by
from runtime.features.subagents.spawn.child_capabilities import Endowment, Held, endow, problems
from runtime.features.subagents.spawn.spawn_arguments import Asked, SpendAsked
from runtime.policy.decide import Bounds, CallFacts, decide
from runtime.sessions.bounds import PolicySettings
from runtime.workspace.layout import Layout
from tests.unit.domain.lattice import needs, sets

WORKSPACE = "/site/files"
LAYOUT = Layout.of(Path("/site"))
TOOLS = ("read_file", "write_file", "exec", "web_fetch", "sessions_spawn", "send_message")
PATHS = ("src", "src/lib", "/site/src", "/site", "/else", "notes/a.md", "/site/src/lib/../../x")
HOSTS = ("example.org", "*.example.org", "a.example.org", "*", "Example.ORG", "not a host")
TYPES = {
    "general": TOOLS,
    "explore": ("read_file", "exec", "web_fetch", "sessions_spawn"),
    "narrow": ("read_file",),
}
WIDTH = {"deny": 0, "ask": 1, "allow": 2}


def asked() -> st.SearchStrategy[Asked]:
    def some(of: tuple[str, ...]) -> st.SearchStrategy[tuple[str, ...] | None]:
        return st.none() | st.lists(st.sampled_from(of), max_size=2).map(tuple)

    return st.builds(
        Asked,
        permission_mode=st.none() | st.sampled_from(list(PermissionMode)),
        allowed_tools=some((*TOOLS, "read*", "mcp__*")),
        denied_tools=st.lists(st.sampled_from((*TOOLS, "*")), max_size=1).map(tuple),
        paths=some(PATHS),
        folder=st.none() | st.sampled_from(PATHS),
        network=some(HOSTS),
        budget=st.none() | amounts(),
    )


def amounts() -> st.SearchStrategy[SpendAsked]:
    some = st.none() | st.integers(1, 5)
    return st.builds(SpendAsked, tokens=some, usd=st.none() | st.floats(1e-7, 9e-6), steps=some)


def facts() -> st.SearchStrategy[CallFacts]:
    paths = st.lists(
        st.sampled_from(("/site/src/a", "/site/src/lib/b", "/site/notes/a.md", "/else/c")),
        max_size=2,
    ).map(tuple)
    hosts = st.lists(
        st.sampled_from(("example.org", "a.example.org", "b.org", "*")), max_size=1
    ).map(tuple)
    return st.builds(
        CallFacts,
        tool=st.sampled_from(TOOLS),
        effect=st.sampled_from(list(Effect)),
        touches=st.builds(
            Touches,
            reads=paths,
            writes=paths,
            command=st.none() | st.sampled_from(("ls", "make")),
            network=hosts,
            sends=st.sampled_from(((), ("C1",))),
            spawns=st.booleans(),
            subject=st.sampled_from(("a", "b")),
        ),
        outside_workspace=st.booleans(),
    )


class Link:
    """One session of a chain, as the engine bounds it: what was stored at its spawn."""

    def __init__(self, settings: PolicySettings, given: Endowment | None, above: "Link | None"):
        self.tools = None if given is None else frozenset(given.tools)
        self.scope = None if given is None else given.capabilities
        self.mode = (given.mode if given else None) or (above.mode if above else None)
        self.bounds = Bounds(
            mode=narrower(settings.mode, self.mode),
            session_mode=above.bounds.session_mode if above else SessionMode.EDIT,
            trust=Trust.OWNER,
            sandboxed=settings.sandboxed,
            grants=(Grant(tool="exec", kind=GrantKind.PATH, key="a", text="a"),),
            tools=self.tools,
            scope=self.scope,
        )

    @property
    def held(self) -> Held:
        return held_by(self.bounds, levels=2, layout=LAYOUT)

    def surface(self, kind: str) -> tuple[str, ...]:
        return tuple(one for one in TYPES[kind] if self.tools is None or one in self.tools)


@pytest.mark.requirement("POL-5", "SUB-18")
@given(
    root=sets(),
    chain=st.lists(st.tuples(st.sampled_from(sorted(TYPES)), asked()), min_size=1, max_size=3),
    wanted=needs(),
)
def test_whatever_bounds_the_root_bounds_everybody_below_on_every_axis(
    root: Capabilities, chain: list[tuple[str, Asked]], wanted: Need
) -> None:
    bounds, tools = Bounds(scope=root), TOOLS
    for kind, request in chain:
        held = held_by(bounds, levels=2, layout=LAYOUT)
        tools = tuple(one for one in TYPES[kind] if one in tools)
        if list(problems(held, request, tools)):
            continue
        given = endow(held, request, tools)
        bounds = Bounds(scope=given.capabilities, tools=frozenset(given.tools))
        tools = given.tools
        # Tools and the mode are held by the decision itself: see the test of decisions.
        rest = wanted.model_copy(update={"tool": None, "mode": None})
        if allows(given.capabilities, rest):
            assert allows(held.capabilities, rest)
            assert allows(root, rest)


def verdict(decision: Decision) -> int:
    return WIDTH[decision.verdict]


@pytest.mark.requirement("POL-5", "SUB-18")
@given(
    root=st.sampled_from(list(PermissionMode)),
    sandboxed=st.booleans(),
    chain=st.lists(
        st.tuples(
            st.sampled_from(sorted(TYPES)),
            asked(),
            st.none() | st.sampled_from(list(PermissionMode)),
        ),
        min_size=1,
        max_size=3,
    ),
    calls=st.lists(facts(), min_size=1, max_size=4),
)
def test_no_chain_of_spawns_ends_with_more_than_it_began_with(
    root: PermissionMode,
    sandboxed: bool,
    chain: list[tuple[str, Asked, PermissionMode | None]],
    calls: list[CallFacts],
) -> None:
    settings = PolicySettings(mode=root, sandboxed=sandboxed)
    parent = Link(settings, None, None)
    for kind, request, mode in chain:
        tools = parent.surface(kind)
        if list(problems(parent.held, request, tools)):
            continue
        child = Link(settings, endow(parent.held, request, tools, mode), parent)
        for call in calls:
            if call.touches.command == "ls" and child.bounds.read_only:
                # Explorers run commands that only read without being asked (SUB-1, TOOL-7), and so
                # does whoever switches the conversation itself to `/plan`.
                continue
            before, after = decide(call, parent.bounds), decide(call, child.bounds)
            assert verdict(after) <= verdict(before), (request, call)
        deeper = child.scope.depth if child.scope else None
        assert deeper is not None
        assert deeper == 0 or deeper < (parent.held.capabilities.depth or 0)
        parent = child


@given(request=asked(), path=st.sampled_from(PATHS), host=st.sampled_from(HOSTS))
def test_what_is_asked_bounds_the_child(request: Asked, path: str, host: str) -> None:
    held = Held(layout=LAYOUT)
    if list(problems(held, request, TOOLS)):
        return
    given = endow(held, request, TOOLS)
    assert set(given.tools) <= set(TOOLS)
    assert not set(given.tools) & set(request.denied_tools)
    for axis, thing in (("paths", Need(path=path)), ("network", Need(host=host))):
        if getattr(request, axis) == ():
            assert not allows(given.capabilities, thing)
    if request.folder is not None and path.startswith("/site"):
        # The folder is one more bound: what is outside of it is outside, whatever `paths` say.
        inside = PurePosixPath(path).is_relative_to(PurePosixPath(WORKSPACE, request.folder))
        assert inside or not allows(given.capabilities, Need(path=path))
    if request.budget is not None:
        assert given.capabilities.spend == request.budget.spend


def said(held: Held, **request: object) -> list[str]:
    return [str(one) for one in problems(held, Asked.model_validate(request), TYPES["explore"])]


@pytest.mark.requirement("POL-5", "SUB-18")
def test_what_is_wider_is_refused_with_its_axis_all_at_once() -> None:
    held = Held(
        capabilities=Capabilities(
            paths=Scope.of(f"{WORKSPACE}/src"),
            network=Scope.of("example.org"),
            mode=PermissionMode.DONT_ASK,
        ),
        layout=LAYOUT,
    )
    found = said(
        held,
        permission_mode="default",
        allowed_tools=["write_file"],
        paths=["src/lib", "notes"],
        network=["b.org"],
    )
    assert [line.split(":")[0] for line in found] == [
        "allowed_tools",
        "paths",
        "network",
        "permission_mode",
    ]
    for axis in ("tools", "paths", "network", "mode"):
        assert any(f"wider on the axis {axis}: " in line for line in found)
    assert said(held, permission_mode="plan", paths=["src/lib"], network=["example.org"]) == []


@pytest.mark.requirement("SUB-18")
def test_what_is_no_path_or_host_is_told() -> None:
    held = Held(layout=LAYOUT)
    assert "without .." in said(held, paths=["src/../x"])[0]
    assert "must be a host" in said(held, network=["not a host"])[0]
    assert "names no tool" in said(held, allowed_tools=["mcp__*"])[0]


@pytest.mark.requirement("SUB-18")
def test_an_empty_list_is_nothing_and_no_list_is_no_bound() -> None:
    held = Held(layout=LAYOUT)
    none = endow(held, Asked(allowed_tools=(), paths=(), network=()), TOOLS)
    assert none.tools == ()
    assert not allows(none.capabilities, Need(path="/site/src"))
    assert not allows(none.capabilities, Need(host="example.org"))
    every = endow(held, Asked(), TOOLS)
    assert every.tools == TOOLS
    assert allows(every.capabilities, Need(path="/site/src", host="example.org"))


@pytest.mark.requirement("SUB-18")
def test_a_definition_cannot_widen_the_mode_and_a_call_pins_it() -> None:
    held = Held(capabilities=Capabilities(mode=PermissionMode.DEFAULT), layout=LAYOUT)
    wide = endow(held, Asked(), TOOLS, PermissionMode.BYPASS)
    assert wide.mode is PermissionMode.DEFAULT
    pinned = endow(held, Asked(permission_mode=PermissionMode.DONT_ASK), TOOLS)
    assert pinned.mode is PermissionMode.DONT_ASK
    assert endow(held, Asked(), TOOLS).mode is None
