"""The lattice of capabilities: its laws, each axis, and what no spawn can widen (POL-5)."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from runtime.domain.capabilities import (
    Axis,
    Capabilities,
    Need,
    Scope,
    Spend,
    allows,
    explain,
    meet,
    refusing,
    widenings,
)
from runtime.domain.decisions import PermissionMode
from tests.unit.domain.lattice import needs, sets, single_needs

ANYTHING = Capabilities()
pytestmark = pytest.mark.requirement("POL-5")


@given(sets(), sets(), sets())
def test_the_meet_is_commutative_associative_and_idempotent(
    one: Capabilities, other: Capabilities, third: Capabilities
) -> None:
    assert meet(one, other) == meet(other, one)
    assert meet(meet(one, other), third) == meet(one, meet(other, third))
    assert meet(one, one) == one
    assert meet(one, ANYTHING) == one


@given(sets(), sets(), needs())
def test_the_meet_allows_what_both_allow_and_nothing_else(
    one: Capabilities, other: Capabilities, need: Need
) -> None:
    assert allows(meet(one, other), need) is (allows(one, need) and allows(other, need))


@given(sets(), sets(), sets(), single_needs())
def test_the_meet_is_monotone(
    one: Capabilities, other: Capabilities, bound: Capabilities, need: Need
) -> None:
    less = meet(one, bound)
    if allows(meet(less, other), need):
        assert allows(meet(one, other), need)


@given(sets(), st.lists(sets(), max_size=5), single_needs())
def test_no_chain_of_spawns_definitions_modes_and_grants_reaches_more_than_its_root(
    root: Capabilities, requests: list[Capabilities], need: Need
) -> None:
    held = root
    for request in requests:
        # Also of a request that would be refused: a definition that asks for more gets the meet.
        child = meet(held, request)
        if allows(child, need):
            assert allows(held, need)
        held = child
    if allows(held, need):
        assert allows(root, need)


@given(sets(), sets(), single_needs())
def test_a_request_that_is_not_refused_asks_for_nothing_that_the_parent_lacks(
    parent: Capabilities, request: Capabilities, need: Need
) -> None:
    found = {one.axis for one in widenings(parent, request)}
    axis = refusing(parent, need)
    if axis is None or axis in found or _absent(request, need):
        return
    if axis == "tools":
        # What the parent is denied by a pattern is taken away from a request that is a pattern.
        parent = parent.model_copy(update={"denied_tools": ()})
    assert allows(parent, need) or not allows(request, need)


@given(sets(), sets())
def test_a_refusal_names_the_axes_and_asking_for_what_is_held_is_no_widening(
    parent: Capabilities, request: Capabilities
) -> None:
    found = widenings(parent, request)
    assert not widenings(parent, parent.model_copy(update={"tools": None}))
    axes = list(dict.fromkeys(one.axis for one in found))
    assert axes == [axis for axis in get_args(Axis) if axis in axes]
    assert all(one.rule for one in found)


@given(sets())
def test_what_is_kept_reads_back_as_it_was(held: Capabilities) -> None:
    text = held.model_dump_json()
    assert Capabilities.model_validate_json(text) == held
    assert Capabilities.model_validate_json(text).model_dump_json() == text


@given(sets())
def test_every_axis_is_explained_in_a_sentence(held: Capabilities) -> None:
    told = explain(held)
    assert tuple(told) == get_args(Axis)
    assert all(sentence.endswith(".") for sentence in told.values())


NOTHING = Scope.of()
EVERY_AXIS = [
    ("tools", {"tools": NOTHING}, Need(tool="exec")),
    ("tools", {"denied_tools": ("e*",)}, Need(tool="exec")),
    ("paths", {"paths": NOTHING}, Need(path="/a")),
    ("network", {"network": NOTHING}, Need(host="example.org")),
    ("secrets", {"secrets": NOTHING}, Need(secret="GITHUB_TOKEN")),
    ("channels", {"channels": NOTHING}, Need(channel="slack:T1:C1")),
    ("spend", {"spend": Spend(tokens=0)}, Need(spend=Spend(tokens=1))),
    ("spend", {"spend": Spend(micro_usd=0)}, Need(spend=Spend(micro_usd=1))),
    ("spend", {"spend": Spend(steps=0)}, Need(spend=Spend(steps=1))),
    ("depth", {"depth": 0}, Need(depth=1)),
    ("mode", {"mode": PermissionMode.PLAN}, Need(mode=PermissionMode.DONT_ASK)),
]


@pytest.mark.parametrize(("axis", "bound", "need"), EVERY_AXIS)
def test_absent_bounds_nothing_and_empty_holds_nothing_on_every_axis(
    axis: str, bound: dict[str, object], need: Need
) -> None:
    held = Capabilities.model_validate(bound)
    assert allows(ANYTHING, need)
    assert refusing(held, need) == axis
    assert explain(held)[axis] != explain(ANYTHING)[axis]


@pytest.mark.parametrize(
    ("axis", "held", "asked"),
    [
        ("tools", {"tools": Scope.of("mcp__git__*")}, {"tools": Scope.of("mcp__*")}),
        ("tools", {"denied_tools": ("mcp__*",)}, {"tools": Scope.of("mcp__x__y")}),
        ("paths", {"paths": Scope.of("/a")}, {"paths": Scope.of("/ab")}),
        ("paths", {"paths": Scope.of("/a/*")}, {"paths": Scope.of("/a/b")}),
        ("network", {"network": Scope.of("*.example.org")}, {"network": Scope.of("example.org")}),
        ("secrets", {"secrets": NOTHING}, {"secrets": Scope.of("TOKEN")}),
        ("channels", {"channels": Scope.of("slack:*")}, {"channels": Scope.of("*")}),
        ("spend", {"spend": Spend(tokens=5)}, {"spend": Spend(tokens=6)}),
        ("depth", {"depth": 1}, {"depth": 2}),
        ("mode", {"mode": PermissionMode.PLAN}, {"mode": PermissionMode.BYPASS}),
    ],
)
def test_a_request_that_would_widen_is_refused_by_the_name_of_its_axis(
    axis: str, held: dict[str, object], asked: dict[str, object]
) -> None:
    parent, request = Capabilities.model_validate(held), Capabilities.model_validate(asked)
    assert [one.axis for one in widenings(parent, request)] == [axis]


def test_all_axes_that_would_widen_are_named_at_once() -> None:
    parent = Capabilities(tools=NOTHING, paths=NOTHING, depth=0, mode=PermissionMode.PLAN)
    request = Capabilities(
        tools=Scope.of("*"), paths=Scope.of("/"), depth=1, mode=PermissionMode.DEFAULT
    )
    assert [one.axis for one in widenings(parent, request)] == ["tools", "paths", "depth", "mode"]


def test_what_is_narrower_or_absent_is_accepted() -> None:
    parent = Capabilities(
        tools=Scope.of("mcp__git__*", "read_file"), paths=Scope.of("/a", "/b/**"), depth=2
    )
    request = Capabilities(
        tools=Scope.of("mcp__git__log"), paths=Scope.of("/a/b", "/b/*.md"), depth=1
    )
    assert not widenings(parent, ANYTHING)
    assert meet(parent, ANYTHING) == parent
    assert not widenings(parent, request)
    child = meet(parent, request)
    assert allows(child, Need(tool="mcp__git__log", path="/a/b/c", depth=1))
    assert refusing(child, Need(tool="read_file")) == "tools"


@pytest.mark.parametrize(
    ("pattern", "inside", "outside"),
    [
        ("/a", ("/a", "/a/b", "/a//b/"), ("/ab", "/", "/A", "a", "/a/../b", "/a/./b", "/a\0")),
        ("/", ("/", "/x/y"), ("x", "/..")),
        ("/a/*", ("/a/b",), ("/a", "/a/b/c", "/ab/c")),
        ("/a/**", ("/a", "/a/b", "/a/b/c"), ("/ab",)),
        ("/a/**/c.md", ("/a/c.md", "/a/x/y/c.md"), ("/a/xc.md", "/c.md")),
        ("/a/?.md", ("/a/x.md",), ("/a/xx.md", "/a/[x].md")),
        ("/[a]", ("/[a]/b",), ("/a",)),
    ],
)
def test_paths_are_compared_part_by_part(
    pattern: str, inside: tuple[str, ...], outside: tuple[str, ...]
) -> None:
    held = Capabilities(paths=Scope.of(pattern))
    assert [path for path in inside if not allows(held, Need(path=path))] == []
    assert [path for path in outside if allows(held, Need(path=path))] == []


@pytest.mark.parametrize(
    "broken",
    [
        {"paths": Scope.of("a")},
        {"paths": Scope.of("/a/../b")},
        {"paths": Scope.of("")},
        {"tools": Scope.of("exec(git status:*)")},
        {"tools": Scope.of("a b")},
        {"tools": Scope.of("x" * 1001)},
        {"denied_tools": ("",)},
        {"network": Scope.of("EXAMPLE.org")},
        {"network": Scope.of("*example.org")},
        {"network": Scope.of("http://example.org")},
        {"spend": {"tokens": -1}},
        {"depth": -1},
        {"tools": {"lists": []}},
        {"tols": None},
    ],
)
def test_what_is_no_bound_is_refused_and_never_read_as_one(broken: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Capabilities.model_validate(broken)


def test_no_pattern_takes_long_to_compare() -> None:
    # A backtracking matcher takes a time that grows with the power of the stars.
    held = Capabilities(tools=Scope.of("*a" * 400 + "b"), paths=Scope.of("/**/a" * 100 + "/b"))
    assert not allows(held, Need(tool="a" * 2000))
    assert not allows(held, Need(path="/a" * 500))


def _absent(request: Capabilities, need: Need) -> bool:
    """Whether `request` says nothing of the one axis that `need` is about: it inherits."""
    names = {"tool": "tools", "path": "paths", "host": "network", "secret": "secrets"}
    names |= {"channel": "channels", "depth": "depth", "mode": "mode"}
    asked = [names[field] for field in names if getattr(need, field) is not None]
    if asked:
        return getattr(request, asked[0]) is None
    amounts = [name for name in ("tokens", "micro_usd", "steps") if getattr(need.spend, name)]
    return any(getattr(request.spend, name) is None for name in amounts)
