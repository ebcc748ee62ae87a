"""The decision about one call: a pure function of the call and of what bounds its session.

Every bound is asked and adds a link to the chain; the strictest word wins, deny over ask over
allow (POL-3). A bound that is absent adds no link; an empty set of tools allows nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from runtime.domain.capabilities import Axis, Capabilities, Need, allows, explain, refusing
from runtime.domain.decisions import (
    Decision,
    Link,
    PermissionMode,
    SessionMode,
    Verdict,
    narrower,
)
from runtime.domain.people import Trust
from runtime.domain.tools import Effect, Touches
from runtime.policy.read_only import not_read_only
from runtime.policy.rules import Rule

__all__ = ["Bounds", "CallFacts", "RuleLists", "decide", "narrower"]

PRIVATE_FILES = ("USER.md", "memory/", "personas/")
"""What outsiders do not see, by place; each persona may have a `USER.md` of its own."""
LONGEST_RULE = 400
"""Characters of a scope that a refusal names."""


@dataclass(frozen=True, slots=True)
class CallFacts:
    """What a call is: its tool, effect, what it touches. `private`: it names private notes."""

    tool: str
    effect: Effect
    touches: Touches
    outside_workspace: bool = False
    private: bool = False

    @property
    def harmless(self) -> bool:
        """Whether it changes nothing itself; subagents that it reaches are bounded themselves."""
        return self.effect is Effect.READ or self.touches.own_agents


@dataclass(frozen=True, slots=True)
class RuleLists:
    """The operator's rules; the first list that matches in the order deny, ask, allow decides."""

    allow: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class Bounds:
    """Everything that bounds a session's calls. `tools` None: no bound; empty: nothing at all.
    `max_steps` are those of one run, None: as many as every run may take. `no_writing`: commands
    get a view of the files that cannot be written, also where the mode would let them write.
    `scope` is what a child may reach on the other axes, None where nothing bounds it (POL-5).
    `child`: it is a subagent's."""

    mode: PermissionMode = PermissionMode.DEFAULT
    session_mode: SessionMode = SessionMode.EDIT
    trust: Trust = Trust.OWNER
    group: bool = False
    sandboxed: bool = True
    rules: RuleLists = field(default_factory=RuleLists)
    grants: tuple[Rule, ...] = ()
    tools: frozenset[str] | None = None
    max_steps: int | None = None
    no_writing: bool = False
    scope: Capabilities | None = None
    child: bool = False

    @property
    def writes(self) -> bool:
        """Whether its commands may write at all."""
        return not (self.read_only or self.no_writing)

    @property
    def notes(self) -> bool:
        """Whether private notes exist for it: never in a group, nor for guests and bots."""
        return not self.group and self.trust in (Trust.OWNER, Trust.MEMBER)

    @property
    def reaches(self) -> Callable[[str], bool] | None:
        """Whether a host is in the scope; None where nothing bounds the network."""
        scope = self.scope
        if scope is None or scope.network is None:
            return None
        return lambda host: allows(scope, Need(host=host))

    @property
    def within(self) -> Callable[[str], bool] | None:
        """Whether a path is in the scope; None where nothing bounds paths."""
        scope = self.scope
        if scope is None or scope.paths is None:
            return None
        return lambda path: allows(scope, Need(path=path))

    @property
    def read_only(self) -> bool:
        """Whether nothing may be changed: the operator's plan mode, or the chat's plan or ask."""
        return self.mode is PermissionMode.PLAN or self.session_mode is not SessionMode.EDIT


def decide(facts: CallFacts, bounds: Bounds) -> Decision:
    """Allow, ask or deny, with the rule that decided and the whole chain (POL-1)."""
    mode = _mode(facts, bounds)
    chain = [
        link
        for link in (
            _tools(facts, bounds),
            _scope(facts, bounds),
            _trust(facts, bounds),
            _denied(facts, bounds),
            mode,
        )
        if link is not None
    ]
    reads = mode is not None and mode.verdict == "allow"
    chain.append(_permission(facts, bounds, only_reads=reads))
    deciding = min(chain, key=lambda link: ("deny", "ask", "allow").index(link.verdict))
    if deciding.verdict == "ask":
        deciding = _resolve_ask(deciding, bounds)
        chain.append(deciding)
    return Decision(
        verdict=deciding.verdict,
        rule=f"{deciding.bound}: {deciding.rule}",
        reason=_REASONS.get(deciding.bound, deciding.rule),
        chain=tuple(chain),
    )


def _tools(facts: CallFacts, bounds: Bounds) -> Link | None:
    if bounds.tools is None or facts.tool in bounds.tools:
        return None
    return Link(bound="tool surface", verdict="deny", rule=f"{facts.tool} is not offered here")


def _scope(facts: CallFacts, bounds: Bounds) -> Link | None:
    """What the scope of the session leaves out, with its axis."""
    if bounds.scope is None:
        return None
    axis = _left_out(facts.tool, facts.touches, bounds.scope, sandboxed=bounds.sandboxed)
    if axis is None:
        return None
    rule = f"{axis}: {explain(bounds.scope)[axis]}"
    return Link(bound="capability scope", verdict="deny", rule=rule[:LONGEST_RULE])


def _left_out(tool: str, touches: Touches, scope: Capabilities, *, sandboxed: bool) -> Axis | None:
    if touches.command is not None:
        # A command reaches every file, and without a sandbox every host, whatever it says.
        if scope.paths is not None:
            return "paths"
        if scope.network is not None and not sandboxed:
            return "network"
    needs = [
        Need(tool=tool, depth=1 if touches.spawns else None),
        *(Need(path=path) for path in (*touches.reads, *touches.writes)),
        *(Need(host=host) for host in touches.network),
        *(Need(channel=place) for place in touches.sends),
    ]
    found = (refusing(scope, need) for need in needs)
    return next((axis for axis in found if axis is not None), None)


def _trust(facts: CallFacts, bounds: Bounds) -> Link | None:
    if bounds.trust in (Trust.OWNER, Trust.MEMBER):
        return _private(facts, bounds)
    if not facts.harmless or facts.touches.command is not None:
        return Link(bound="trust", verdict="deny", rule=f"a {bounds.trust} causes no side effects")
    return _private(facts, bounds)


def _private(facts: CallFacts, bounds: Bounds) -> Link | None:
    """Private notes stay out of groups and away from guests (CTX-6, POL-4)."""
    if bounds.child and facts.private and facts.effect is not Effect.READ:
        # What it finds, it hands over; its parent decides what is remembered (SUB-16).
        return Link(bound="privacy", verdict="deny", rule="a subagent writes no private notes")
    if bounds.notes or not facts.private:
        return None
    where = "a group" if bounds.group else f"a {bounds.trust}"
    return Link(bound="privacy", verdict="deny", rule=f"private notes are not open to {where}")


def _denied(facts: CallFacts, bounds: Bounds) -> Link | None:
    for rule in bounds.rules.deny:
        if rule.touches(facts.tool, facts.touches.subject):
            return Link(bound="deny rule", verdict="deny", rule=rule.text)
    return None


def _mode(facts: CallFacts, bounds: Bounds) -> Link | None:
    """In a read-only mode only reads, and commands that are known to read and cannot write."""
    if facts.touches.delegates and bounds.session_mode is SessionMode.ASK:
        return Link(bound="mode", verdict="deny", rule="ask mode gives no subagent work")
    if not bounds.read_only:
        return None
    name = "plan" if bounds.mode is PermissionMode.PLAN else bounds.session_mode.value
    command = facts.touches.command
    if command is None:
        if facts.harmless:
            return None
        return Link(bound="mode", verdict="deny", rule=f"{name} mode is read-only")
    if not bounds.sandboxed:
        rule = f"{name} mode runs no commands where no sandbox can keep them from writing"
        return Link(bound="mode", verdict="deny", rule=rule)
    doubt = not_read_only(command)
    if doubt is not None:
        rule = f"{name} mode runs commands that only read, and refuses {doubt}"
        return Link(bound="mode", verdict="deny", rule=rule)
    return Link(bound="mode", verdict="allow", rule=f"{name} mode runs commands that only read")


def _permission(facts: CallFacts, bounds: Bounds, *, only_reads: bool) -> Link:
    tool, subject = facts.tool, facts.touches.subject
    for rule in bounds.rules.ask:
        if rule.touches(tool, subject):
            return Link(bound="ask rule", verdict="ask", rule=rule.text)
    for rule in bounds.rules.allow:
        if rule.allows(tool, subject):
            return Link(bound="allow rule", verdict="allow", rule=rule.text)
    for rule in bounds.grants:
        if rule.allows(tool, subject):
            return Link(bound="session grant", verdict="allow", rule=rule.text)
    if only_reads and bounds.mode is not PermissionMode.DONT_ASK:
        said = f"{bounds.mode.value} on commands that only read"
        return Link(bound="permission mode", verdict="allow", rule=said)
    return Link(
        bound="permission mode", verdict=_by_mode(facts, bounds), rule=_mode_rule(facts, bounds)
    )


def _by_mode(facts: CallFacts, bounds: Bounds) -> Verdict:
    if facts.touches.command is not None:
        easy = bounds.mode is PermissionMode.ACCEPT_EDITS and bounds.sandboxed
        return "allow" if easy else "ask"
    effect = facts.effect is not Effect.READ
    sends = bool(facts.touches.sends) or (effect and bool(facts.touches.network))
    return "ask" if sends or (effect and facts.outside_workspace) else "allow"


def _mode_rule(facts: CallFacts, bounds: Bounds) -> str:
    if facts.touches.command is not None:
        return f"{bounds.mode.value} on commands"
    if facts.touches.replies and not (facts.touches.sends or facts.outside_workspace):
        return f"{bounds.mode.value} on what goes to the chat of the session itself"
    if facts.touches.own_agents:
        return f"{bounds.mode.value} on what the session's own subagents are told"
    place = "outside the workspace" if facts.outside_workspace else "in the workspace"
    return f"{bounds.mode.value} on {facts.effect.value} effects {place}"


def _resolve_ask(link: Link, bounds: Bounds) -> Link:
    if bounds.mode is PermissionMode.BYPASS:
        return Link(bound="permission mode", verdict="allow", rule="bypassPermissions asks nothing")
    if bounds.mode in (PermissionMode.DONT_ASK, PermissionMode.PLAN):
        # plan is narrower than dontAsk: what that refuses, plan must not ask about.
        rule = f"{bounds.mode.value} turns every ask into no"
        return Link(bound="permission mode", verdict="deny", rule=rule)
    return link


_REASONS = {
    "permission mode": "No rule allows it yet.",
    "ask rule": "A rule of the operator asks about it.",
}
