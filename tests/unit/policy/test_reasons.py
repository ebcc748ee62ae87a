"""What each bound says when it decides: the words that a card, the model and the audit log get."""

from dataclasses import replace

import pytest

from runtime.domain.capabilities import Capabilities, Scope
from runtime.domain.decisions import Link, PermissionMode, SessionMode
from runtime.domain.people import Trust
from runtime.domain.tools import Effect, Touches
from runtime.policy.decide import Bounds, CallFacts, decide
from runtime.sessions.bounds import rule_lists
from tests.unit.policy.cases import reads, replies, rules, runs, sends, writes

pytestmark = pytest.mark.requirement("POL-1")

GROUP = Bounds(group=True)
TAINTED = Bounds(tainted=True)
PLAN = Bounds(mode=PermissionMode.PLAN, session_mode=SessionMode.ASK)
BYPASS = Bounds(mode=PermissionMode.BYPASS)
SPAWNS = CallFacts("sessions_spawn", Effect.READ, Touches(spawns=True, delegates=True, subject="x"))
TELLS = CallFacts("subagents", Effect.IDEMPOTENT, Touches(own_agents=True, subject="stop a"))
NOTES = writes("memory/a.md", private=True, memory=True)
MEMORY = writes("memory/a.md", memory=True)
FREELY = "instruction: memory/ is written freely in the owner's direct chats alone"
TOOLS = Bounds(mode=PermissionMode.BYPASS, scope=Capabilities(tools=Scope.of("read_*")))
DEEP = Bounds(scope=Capabilities(depth=1))


@pytest.mark.parametrize(
    ("call", "bounds", "verdict", "rule"),
    [
        (NOTES, Bounds(child=True), "deny", "privacy: a subagent writes no private notes"),
        (
            reads(private=True),
            Bounds(group=True, trust=Trust.MEMBER),
            "deny",
            "privacy: private notes are not open to a group",
        ),
        (
            reads(private=True),
            Bounds(trust=Trust.GUEST),
            "deny",
            "privacy: private notes are not open to a guest",
        ),
        (writes(), Bounds(trust=Trust.BOT), "deny", "trust: a bot causes no side effects"),
        (writes(), PLAN, "deny", "mode: plan mode is read-only"),
        (writes(), Bounds(session_mode=SessionMode.ASK), "deny", "mode: ask mode is read-only"),
        (SPAWNS, PLAN, "deny", "mode: ask mode gives no subagent work"),
        (
            runs("ls"),
            Bounds(session_mode=SessionMode.PLAN, sandboxed=False),
            "deny",
            "mode: plan mode runs no commands where no sandbox can keep them from writing",
        ),
        (MEMORY, GROUP, "ask", FREELY),
        (MEMORY, Bounds(trust=Trust.MEMBER), "ask", FREELY),
        (MEMORY, Bounds(child=True), "ask", FREELY),
        (
            MEMORY,
            TAINTED,
            "ask",
            "instruction: memory/ is not written freely by a run that has read untrusted content",
        ),
        (
            MEMORY,
            Bounds(),
            "allow",
            "permission mode: default on idempotent effects in the workspace",
        ),
        (
            writes(outside_workspace=True),
            Bounds(),
            "ask",
            "permission mode: default on idempotent effects outside the workspace",
        ),
        (reads(), Bounds(), "allow", "permission mode: default on read effects in the workspace"),
        (
            replies(),
            Bounds(),
            "allow",
            "permission mode: default on what goes to the chat of the session itself",
        ),
        (
            replies(outside_workspace=True),
            Bounds(),
            "ask",
            "permission mode: default on idempotent effects outside the workspace",
        ),
        (
            TELLS,
            Bounds(),
            "allow",
            "permission mode: default on what the session's own subagents are told",
        ),
        (sends(), BYPASS, "allow", "permission mode: bypassPermissions asks nothing"),
        (
            writes(sinks=("skills",)),
            BYPASS,
            "allow",
            "permission mode: bypassPermissions asks nothing: `skills` later acts as an "
            "instruction or as code",
        ),
        (
            sends(),
            Bounds(mode=PermissionMode.DONT_ASK),
            "deny",
            "permission mode: dontAsk turns every ask into no",
        ),
        (reads(), Bounds(tools=frozenset()), "deny", "tool surface: read_file is not offered here"),
        (writes(), TOOLS, "deny", "capability scope: tools: Only read_*."),
        (
            reads(),
            TOOLS,
            "allow",
            "permission mode: bypassPermissions on read effects in the workspace",
        ),
        (SPAWNS, DEEP, "allow", "permission mode: default on read effects in the workspace"),
    ],
)
def test_the_rule_that_decided_says_why(
    call: CallFacts, bounds: Bounds, verdict: str, rule: str
) -> None:
    found = decide(call, bounds)
    assert (found.verdict, found.rule) == (verdict, rule)
    assert (
        Link(bound=rule.split(": ", 1)[0], verdict=found.verdict, rule=rule.split(": ", 1)[1])
        in found.chain
    )


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("a", "b"), "`a`, `b` later acts"),
        (("a", "b", "c"), "`a`, `b`, `c` later acts"),
        (("a", "b", "c", "d", "e"), "`a`, `b`, `c` and 2 more later acts"),
        (("x`y",), r"`x\u{60}y` later acts"),
        (("n" * 200,), f"`{'n' * 97}...`"),
    ],
)
def test_the_card_names_few_of_what_acts_later(names: tuple[str, ...], said: str) -> None:
    found = decide(writes(sinks=names), Bounds())
    assert found.rule.startswith(f"instruction: {said}")
    assert "n" * 101 not in found.rule


@pytest.mark.requirement("POL-9")
def test_an_allow_rule_covers_no_more_code_than_its_own_words_run() -> None:
    """What `npm run` runs is known once a word follows; `make` runs a file that it names."""
    for rule, command, verdict in (
        ("exec(npm run:*)", "npm run build", "allow"),
        ("exec(make:*)", "make all", "allow"),
        ("exec(make:*)", "make -f other.mk", "ask"),
        ("exec(ls *)", "ls x", "ask"),
        ("exec(ls x)", "ls x", "allow"),
        ("exec(npm run:*)", "npm run build --node-options=-r=./x.js", "ask"),
    ):
        bounds = Bounds(rules=rules(allow=(rule,)))
        assert decide(runs(command), bounds).verdict == verdict, command


@pytest.mark.requirement("POL-3")
def test_each_list_of_the_operator_is_read() -> None:
    found = rule_lists(allow=("exec(a:*)",), ask=("exec(b:*)",), deny=("exec(c:*)",))
    assert [[one.text for one in lists] for lists in (found.allow, found.ask, found.deny)] == [
        ["exec(a:*)"],
        ["exec(b:*)"],
        ["exec(c:*)"],
    ]


@pytest.mark.requirement("POL-3")
@pytest.mark.parametrize(
    ("deny", "call", "verdict"),
    [
        ("exec(make test)", runs("cd sub && make test"), "deny"),
        ("exec(make test)", runs("sudo make test"), "deny"),
        ("exec(make test)", runs("ls"), "ask"),
        ("exec(make)", writes("make"), "allow"),
        ("exec(rm:*)", writes("rm"), "allow"),
        ("exec(ls -l)", runs("ls -la"), "deny"),
        ("grep(secrets/*.md)", replace(reads("secrets/deep"), tool="grep"), "deny"),
        ("grep(secrets/**)", replace(reads("."), tool="grep"), "deny"),
        ("grep(secrets/**)", replace(reads("secrets/deep"), tool="grep"), "deny"),
        ("grep(secrets/**)", replace(reads("other"), tool="grep"), "allow"),
        ("grep(secrets/a.md)", replace(reads("secrets"), tool="grep"), "deny"),
        ("grep(secrets/a.md)", replace(reads("secrets/a"), tool="grep"), "allow"),
    ],
)
def test_a_deny_rule_concerns_whatever_may_be_meant(
    deny: str, call: CallFacts, verdict: str
) -> None:
    assert decide(call, Bounds(rules=rules(deny=(deny,)))).verdict == verdict
