"""Decisions about a call on several things: each of them counts (POL-3, POL-9, TOOL-14)."""

import pytest

from runtime.domain.decisions import PermissionMode
from runtime.domain.grants import Grant, GrantKind
from runtime.domain.tools import Effect, Touches
from runtime.policy.decide import Bounds, CallFacts, decide
from tests.unit.policy.cases import rules

pytestmark = pytest.mark.requirement("TOOL-14", "POL-3")


def patches(*names: str, **changes: object) -> CallFacts:
    """A call that patches files."""
    touches = Touches(
        writes=names, subject=names[0], also=names[1:], like=("write_file", "edit_file")
    )
    return CallFacts("apply_patch", Effect.IDEMPOTENT, touches, **changes)


@pytest.mark.parametrize(
    ("rule", "verdict"),
    [
        ("apply_patch(secrets/**)", "deny"),
        ("write_file(secrets/**)", "deny"),
        ("edit_file(secrets/**)", "deny"),
        ("apply_patch", "deny"),
        ("write_file(other/**)", "allow"),
        ("read_file(secrets/**)", "allow"),
        ("exec(rm:*)", "allow"),
    ],
)
def test_one_file_that_a_deny_rule_names_denies_the_whole(rule: str, verdict: str) -> None:
    call = patches("a.md", "secrets/key.md")
    assert decide(call, Bounds(rules=rules(deny=(rule,)))).verdict == verdict
    asked = decide(call, Bounds(rules=rules(ask=(rule,))))
    assert asked.verdict == {"deny": "ask"}.get(verdict, verdict)


@pytest.mark.parametrize(
    ("allow", "verdict"),
    [
        (("apply_patch(a/**)",), "ask"),
        (("apply_patch(b/**)",), "ask"),
        (("apply_patch(a/**)", "apply_patch(b/**)"), "allow"),
        (("apply_patch",), "allow"),
        (("write_file(a/**)", "write_file(b/**)"), "ask"),
        (("write_file",), "ask"),
    ],
)
def test_allow_rules_cover_all_of_it_or_nothing(allow: tuple[str, ...], verdict: str) -> None:
    call = patches("a/x.md", "b/y.md", outside_workspace=True)
    decided = decide(call, Bounds(rules=rules(allow=allow)))
    assert decided.verdict == verdict
    if verdict == "allow":
        assert decided.rule == f"allow rule: {allow[0]}"


@pytest.mark.parametrize(
    ("allow", "verdict"),
    [
        (("apply_patch(skills/**)",), "ask"),
        (("apply_patch(skills/**)", "apply_patch(b.md)"), "ask"),
        (("apply_patch(=skills/a.md)",), "ask"),
        (("apply_patch",), "ask"),
    ],
)
def test_what_acts_later_is_asked_about_wherever_a_rule_covers_a_part(
    allow: tuple[str, ...], verdict: str
) -> None:
    bounds = Bounds(rules=rules(allow=allow))
    assert decide(patches("skills/a.md", "b.md", sinks=("skills",)), bounds).verdict == verdict


@pytest.mark.requirement("POL-9")
def test_a_rule_that_names_the_place_of_all_of_them_covers_them() -> None:
    bounds = Bounds(rules=rules(allow=("apply_patch(skills/**)",)))
    call = patches("skills/a.md", "skills/b.md", sinks=("skills",))
    assert decide(call, bounds).verdict == "allow"


def test_a_grant_for_one_path_is_none_for_a_patch_that_begins_with_it() -> None:
    grant = Grant(tool="apply_patch", kind=GrantKind.PATH, key="/x/a.md", text="it")
    bounds = Bounds(mode=PermissionMode.DEFAULT, grants=(grant,))
    assert decide(patches("/x/a.md", outside_workspace=True), bounds).verdict == "allow"
    several = patches("/x/a.md", "/x/b.md", outside_workspace=True)
    assert decide(several, bounds).verdict == "ask"
