"""The bounds of one run: operator, session and sender, met into one value (the effective set)."""

from dataclasses import dataclass, field, replace

from runtime.domain.decisions import PermissionMode, narrower
from runtime.domain.people import Trust
from runtime.policy.decide import Bounds, RuleLists
from runtime.policy.rules import Rule
from runtime.sessions.runs import Run
from runtime.sessions.sessions import Session


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """What the operator set. `sandboxed` is what the canary at start found (TOOL-5)."""

    mode: PermissionMode = PermissionMode.DEFAULT
    rules: RuleLists = field(default_factory=RuleLists)
    sandboxed: bool = True


def rule_lists(
    *, allow: tuple[str, ...] = (), ask: tuple[str, ...] = (), deny: tuple[str, ...] = ()
) -> RuleLists:
    """Parse the operator's patterns. Raises `InvalidInput`, naming the first that is none."""
    return RuleLists(
        allow=tuple(Rule.parse(text) for text in allow),
        ask=tuple(Rule.parse(text) for text in ask),
        deny=tuple(Rule.parse(text) for text in deny),
    )


def bounds_for(settings: PolicySettings, session: Session, run: Run) -> Bounds:
    """The meet of everything that bounds a run; nothing that a message says can widen it."""
    group = run.target.chat_kind != "direct"
    bounds = bounds_of(settings, session, trust=run.speaker.trust, group=group)
    return replace(bounds, tainted=run.tainted)


def bounds_of(settings: PolicySettings, session: Session, *, trust: Trust, group: bool) -> Bounds:
    """The same of a run that there need not be: of somebody trusted so, in a chat of that kind."""
    return Bounds(
        mode=narrower(settings.mode, session.permission_mode),
        session_mode=session.mode,
        trust=trust,
        group=group,
        sandboxed=settings.sandboxed,
        rules=settings.rules,
        grants=session.grants,
        tools=session.scope.tools,
        max_steps=session.scope.max_steps,
        no_writing=session.scope.no_writing,
        scope=session.scope.capabilities,
        child=session.parent_id is not None,
    )
