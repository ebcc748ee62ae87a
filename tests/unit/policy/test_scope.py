"""The scope of a child where policy decides: each axis refuses, and names itself (SUB-18)."""

from dataclasses import replace

import pytest

from runtime.domain.capabilities import Capabilities, Scope
from runtime.domain.decisions import PermissionMode
from runtime.domain.tools import Effect, Touches
from runtime.policy.decide import Bounds, CallFacts, decide
from tests.unit.policy.cases import reads, runs, sends, writes

SCOPE = Capabilities(paths=Scope.of("/place/src"), network=Scope.of("example.org"), depth=0)
BOUNDS = Bounds(mode=PermissionMode.BYPASS, scope=SCOPE)


def fetches(host: str) -> CallFacts:
    return CallFacts("web_fetch", Effect.READ, Touches(network=(host,), subject=host))


def spawns() -> CallFacts:
    return CallFacts("sessions_spawn", Effect.READ, Touches(spawns=True))


@pytest.mark.requirement("SUB-18", "POL-5")
@pytest.mark.parametrize(
    ("facts", "axis"),
    [
        (reads("/place/notes/a.md"), "paths"),
        (writes("/place/srcs/a"), "paths"),
        (runs("ls"), "paths"),
        (fetches("b.org"), "network"),
        (fetches("a.example.org"), "network"),
        (spawns(), "depth"),
    ],
)
def test_what_is_outside_of_the_scope_is_denied_by_its_axis(facts: CallFacts, axis: str) -> None:
    found = decide(facts, BOUNDS)
    assert found.verdict == "deny"
    assert found.rule.startswith(f"capability scope: {axis}: ")
    assert decide(facts, replace(BOUNDS, scope=None)).verdict == "allow"


@pytest.mark.requirement("SUB-18")
def test_what_is_inside_is_decided_by_the_rest() -> None:
    assert decide(reads("/place/src/a.md"), BOUNDS).verdict == "allow"
    assert decide(fetches("Example.org"), BOUNDS).verdict == "allow"


@pytest.mark.requirement("SUB-18")
def test_a_command_is_confined_to_hosts_by_the_sandbox_alone() -> None:
    bounds = replace(BOUNDS, scope=Capabilities(network=Scope.of("example.org")))
    assert decide(runs("ls"), bounds).verdict == "allow"
    assert decide(runs("ls"), replace(bounds, sandboxed=False)).verdict == "deny"
    wide = CallFacts("exec", Effect.ONCE, Touches(command="ls", network=("*",), subject="ls"))
    assert decide(wide, bounds).verdict == "deny"


@pytest.mark.requirement("SUB-18")
def test_channels_bound_what_is_sent() -> None:
    bounds = Bounds(mode=PermissionMode.BYPASS, scope=Capabilities(channels=Scope.of("C1")))
    assert "channels" in decide(sends(), bounds).rule
    assert bounds.reaches is None


@pytest.mark.requirement("SUB-18")
def test_hosts_of_the_scope_hold_behind_redirects() -> None:
    may = BOUNDS.reaches
    assert may is not None
    assert may("example.org")
    assert not may("b.org")
