"""The decision about one call: a pure function of the call and of what bounds its session.

Every bound is asked and adds a link to the chain; the strictest word wins, deny over ask over
allow (POL-3). A bound that is absent adds no link; an empty set of tools allows nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from runtime.domain.capabilities import Axis, Capabilities, Need, allows, explain, refusing
from runtime.domain.decisions import Decision, Link, PermissionMode, SessionMode, Verdict
from runtime.domain.grants import Grant
from runtime.domain.people import Trust
from runtime.domain.printable import code_name
from runtime.domain.tools import LOAD_TOOLS, Effect, Touches
from runtime.policy.code_files import code_files
from runtime.policy.read_only_programs import not_read_only
from runtime.policy.rules import Rule

INSTRUCTION = "instruction"
"""The bound that asks before something is written that acts later."""
GRANTED = "session grant"
"""The bound that lets run what a person allowed for the session."""
LONGEST_RULE = 400
"""Characters of a scope that a refusal names."""
_NAMED = 3
"""Names of files in one reason."""


@dataclass(frozen=True, slots=True)
class CallFacts:
    """What a call is: its tool, effect, what it touches. `private`: it names private notes, or
    what is as private.

    `sinks` are what it writes that later acts as an instruction or as code, by the names that rules
    use; `memory`: it writes the long-term notes (POL-9). `action` is the digest of the one action
    that it is. `elsewhere`: its command does not begin in the working folder.
    """

    tool: str
    effect: Effect
    touches: Touches
    outside_workspace: bool = False
    private: bool = False
    sinks: tuple[str, ...] = ()
    memory: bool = False
    action: str = ""
    elsewhere: bool = False

    @property
    def harmless(self) -> bool:
        """Whether it changes nothing itself; subagents that it reaches are bounded themselves, and
        refuse whoever is trusted less than whom they work for."""
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
    `child`: it is a subagent's. `tainted`: the run has read something untrusted.
    `given` are whole addresses that somebody other than the model gave (POL-10)."""

    mode: PermissionMode = PermissionMode.DEFAULT
    session_mode: SessionMode = SessionMode.EDIT
    trust: Trust = Trust.OWNER
    group: bool = False
    sandboxed: bool = True
    rules: RuleLists = field(default_factory=RuleLists)
    grants: tuple[Grant, ...] = ()
    tools: frozenset[str] | None = None
    max_steps: int | None = None
    no_writing: bool = False
    scope: Capabilities | None = None
    child: bool = False
    tainted: bool = False
    given: frozenset[str] = frozenset()

    @property
    def allowed_commands(self) -> tuple[str, ...]:
        """The commands, or their beginnings, that rules allow by name."""
        found = (rule.command for rule in self.rules.allow)
        return tuple(command for command in found if command is not None)

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

    def offers(self, tool: str) -> bool:
        """Whether a tool is in the surface and in the scope. It decides nothing."""
        listed = self.tools is None or tool in self.tools
        return listed and (self.scope is None or allows(self.scope, Need(tool=tool)))

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
            _acting(facts, bounds),
        )
        if link is not None
    ]
    reads = mode is not None and mode.verdict == "allow"
    chain.append(_permission(facts, bounds, only_reads=reads))
    deciding = min(chain, key=lambda link: ("deny", "ask", "allow").index(link.verdict))
    if deciding.verdict == "ask":
        asking, deciding = deciding, _resolve_ask(deciding, bounds)
        if deciding is not asking:
            chain.append(deciding)
    return Decision(
        verdict=deciding.verdict,
        rule=f"{deciding.bound}: {deciding.rule}",
        reason=_REASONS.get(deciding.bound, deciding.rule),
        chain=tuple(chain),
    )


def _tools(facts: CallFacts, bounds: Bounds) -> Link | None:
    if bounds.tools is None or facts.tool in bounds.tools or facts.tool == LOAD_TOOLS:
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
        Need(tool=None if tool == LOAD_TOOLS else tool, depth=1 if touches.spawns else None),
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
        if _concerns(rule, facts):
            return Link(bound="deny rule", verdict="deny", rule=rule.text)
    return None


def _concerns(rule: Rule, facts: CallFacts) -> bool:
    """Whether a deny or ask rule may concern any part of a call."""
    tools = (facts.tool, *facts.touches.like)
    return any(rule.touches(tool, subject) for tool in tools for subject in facts.touches.subjects)


def _covering(facts: CallFacts, bounds: Bounds) -> Rule | None:
    """The first of the allow rules that cover the whole call: each of its subjects, by one."""
    found: list[Rule] = []
    for subject in facts.touches.subjects:
        rules = (rule for rule in bounds.rules.allow if _allows(rule, facts, subject))
        rule = next(rules, None)
        if rule is None:
            return None
        found.append(rule)
    return found[0]


def _allows(rule: Rule, facts: CallFacts, subject: str) -> bool:
    # The text of a command says what it does only together with where it begins.
    placed = rule.subject is None or not facts.elsewhere
    surely = placed and rule.allows(facts.tool, subject)
    return surely and _runs_only(rule, facts.touches.command)


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
    if facts.touches.typed:
        # `cat notes.txt` only reads for a shell, but not for an `xargs rm` that is at work.
        return Link(bound="mode", verdict="deny", rule=f"{name} mode types nothing into commands")
    if not bounds.sandboxed:
        rule = f"{name} mode runs no commands where no sandbox can keep them from writing"
        return Link(bound="mode", verdict="deny", rule=rule)
    doubt = not_read_only(command)
    if doubt is not None:
        rule = f"{name} mode runs commands that only read, and refuses {doubt}"
        return Link(bound="mode", verdict="deny", rule=rule)
    return Link(bound="mode", verdict="allow", rule=f"{name} mode runs commands that only read")


def _acting(facts: CallFacts, bounds: Bounds) -> Link | None:
    """What later acts as an instruction or as code is written only by asking (POL-9)."""
    unnamed = [sink for sink in facts.sinks if not _names(facts, sink, bounds)]
    if unnamed:
        names = ", ".join(code_name(one) for one in unnamed[:_NAMED])
        more = f" and {len(unnamed) - _NAMED} more" if len(unnamed) > _NAMED else ""
        rule = f"{names}{more} later acts as an instruction or as code"
        return Link(bound=INSTRUCTION, verdict="ask", rule=rule)
    if not facts.memory or _names(facts, "memory", bounds):
        return None
    if bounds.trust is not Trust.OWNER or bounds.group or bounds.child:
        rule = "memory/ is written freely in the owner's direct chats alone"
    elif bounds.tainted:
        rule = "memory/ is not written freely by a run that has read untrusted content"
    else:
        return None
    return Link(bound=INSTRUCTION, verdict="ask", rule=rule)


def _names(facts: CallFacts, sink: str, bounds: Bounds) -> bool:
    """Whether a rule of the operator allows to write it by its name, and not by a pattern that
    happens to cover it."""
    return any(
        rule.names(sink)
        and all(rule.allows(facts.tool, subject) for subject in facts.touches.subjects)
        for rule in bounds.rules.allow
    )


def _permission(facts: CallFacts, bounds: Bounds, *, only_reads: bool) -> Link:
    for rule in bounds.rules.ask:
        if _concerns(rule, facts):
            return Link(bound="ask rule", verdict="ask", rule=rule.text)
    covering = _covering(facts, bounds)
    if covering is not None:
        return Link(bound="allow rule", verdict="allow", rule=covering.text)
    # What was allowed for one path or host says nothing about a call on several.
    subject = "" if facts.touches.also else facts.touches.subject
    for grant in bounds.grants:
        if grant.covers(facts.tool, action=facts.action, subject=subject):
            return Link(bound=GRANTED, verdict="allow", rule=grant.text)
    if only_reads and bounds.mode is not PermissionMode.DONT_ASK:
        said = f"{bounds.mode.value} on commands that only read"
        return Link(bound="permission mode", verdict="allow", rule=said)
    return Link(
        bound="permission mode", verdict=_by_mode(facts, bounds), rule=_mode_rule(facts, bounds)
    )


def _runs_only(rule: Rule, command: str | None) -> bool:
    """Whether a command runs no file beyond those that are guarded because of the rule (POL-9):
    `exec(make:*)` guards the `Makefile`, and does not allow `make -f notes/x.txt`. Nor may it run
    more than is known where it is known what the rule's own words run, with or without one more:
    `npm run` alone runs nothing, and `npm run build` is known."""
    beginning = rule.beginning
    if command is None or beginning is None:
        return True
    asked, granted = code_files(command), code_files(beginning)
    known = granted.known or code_files(f"{beginning} {_ANY_WORD}").known
    return asked.within(granted) and (asked.known or not known)


def _by_mode(facts: CallFacts, bounds: Bounds) -> Verdict:
    if facts.touches.command is not None:
        easy = bounds.mode is PermissionMode.ACCEPT_EDITS and bounds.sandboxed
        return "allow" if easy else "ask"
    if _strange(facts, bounds):
        return "ask"
    effect = facts.effect is not Effect.READ
    sends = bool(facts.touches.sends) or (effect and bool(facts.touches.network))
    return "ask" if sends or (effect and facts.outside_workspace) else "allow"


def _strange(facts: CallFacts, bounds: Bounds) -> bool:
    """Whether the address of a page could be the model's own, with anything in it (POL-10)."""
    address = facts.touches.address
    return address is not None and address not in bounds.given


def _mode_rule(facts: CallFacts, bounds: Bounds) -> str:
    if facts.touches.command is not None:
        return f"{bounds.mode.value} on commands"
    if _strange(facts, bounds):
        return f"{bounds.mode.value} on an address that no person and no page gave"
    if facts.touches.replies and not (facts.touches.sends or facts.outside_workspace):
        return f"{bounds.mode.value} on what goes to the chat of the session itself"
    if facts.touches.own_agents:
        return f"{bounds.mode.value} on what the session's own subagents are told"
    place = "outside the workspace" if facts.outside_workspace else "in the workspace"
    return f"{bounds.mode.value} on {facts.effect.value} effects {place}"


def _resolve_ask(link: Link, bounds: Bounds) -> Link:
    if bounds.mode is PermissionMode.BYPASS:
        said = f": {link.rule}" if link.bound == INSTRUCTION else ""
        rule = f"bypassPermissions asks nothing{said}"
        return Link(bound="permission mode", verdict="allow", rule=rule)
    if bounds.mode in (PermissionMode.DONT_ASK, PermissionMode.PLAN):
        # plan is narrower than dontAsk: what that refuses, plan must not ask about.
        rule = f"{bounds.mode.value} turns every ask into no"
        return Link(bound="permission mode", verdict="deny", rule=rule)
    return link


_ANY_WORD = "x"
_REASONS = {
    "permission mode": "No rule allows it yet.",
    "ask rule": "A rule of the operator asks about it.",
    INSTRUCTION: "It would change what later acts as an instruction or as code.",
}
