"""Decisions: every mode, effect and trust, and what no combination of bounds may do."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.domain.decisions import PermissionMode, SessionMode, narrower
from runtime.domain.grants import Grant, GrantKind
from runtime.domain.people import Trust
from runtime.domain.tools import Effect, Touches
from runtime.policy.decide import Bounds, CallFacts, decide
from runtime.policy.rules import Rule
from runtime.sessions.bounds import PolicySettings, rule_lists
from tests.unit.policy import cases
from tests.unit.policy.cases import (
    WIDEST_FIRST,
    WIDTH,
    fetches,
    posts,
    reads,
    replies,
    rules,
    runs,
    sends,
    writes,
)

EVERYTHING = tuple(
    Grant(tool=tool, kind=GrantKind.PATH, key=key, text=tool)
    for tool in ("exec", "write_file", "send_message")
    for key in ("make", "ls -l", "notes/a.md", "U1")
)
BYPASS, ACCEPT, DEFAULT, DONT_ASK, PLAN = WIDEST_FIRST


@pytest.mark.requirement("POL-2")
@pytest.mark.parametrize(
    ("call", "verdicts"),
    [
        (reads(), "allow allow allow allow allow"),
        (reads(outside_workspace=True), "allow allow allow allow allow"),
        (fetches(), "allow allow allow allow allow"),
        (replies(), "allow allow allow allow deny"),
        (replies(outside_workspace=True), "allow ask ask deny deny"),
        (writes(), "allow allow allow allow deny"),
        (writes(outside_workspace=True), "allow ask ask deny deny"),
        (runs("make"), "allow allow ask deny deny"),
        # plan runs what only reads, where it cannot write; wider modes know no such difference.
        (runs("ls -l"), "allow allow ask deny allow"),
        (sends(), "allow ask ask deny deny"),
        (posts(), "allow ask ask deny deny"),
    ],
    ids=[
        "read",
        "read-out",
        "fetch",
        "reply",
        "reply-out",
        "write",
        "write-out",
        "exec",
        "exec-read",
        "send",
        "post",
    ],
)
def test_permission_modes_from_the_widest_to_the_narrowest(call: CallFacts, verdicts: str) -> None:
    found = [decide(call, Bounds(mode=mode)).verdict for mode in WIDEST_FIRST]
    assert found == verdicts.split()


@pytest.mark.requirement("POL-2")
def test_accept_edits_drops_the_ask_for_commands_only_where_they_are_confined() -> None:
    assert decide(runs(), Bounds(mode=ACCEPT, sandboxed=False)).verdict == "ask"
    assert decide(runs(), Bounds(mode=ACCEPT, sandboxed=True)).verdict == "allow"


@pytest.mark.requirement("POL-2")
@pytest.mark.parametrize("mode", WIDEST_FIRST)
@pytest.mark.parametrize("session", [SessionMode.PLAN, SessionMode.ASK])
def test_plan_and_ask_are_read_only_whatever_the_permission_mode(
    mode: PermissionMode, session: SessionMode
) -> None:
    bounds = Bounds(mode=mode, session_mode=session, rules=rules(allow=("*",)))
    assert decide(reads(), bounds).verdict == "allow"
    for call in (writes(), runs("make"), sends(), posts(), replies()):
        decision = decide(call, bounds)
        assert decision.verdict == "deny"
        assert decision.rule.startswith("mode: ")


@pytest.mark.requirement("POL-2")
@pytest.mark.parametrize("effect", [Effect.READ, Effect.IDEMPOTENT])
def test_plan_gives_work_to_subagents_and_ask_gives_none(effect: Effect) -> None:
    touches = Touches(delegates=True, own_agents=effect is not Effect.READ, subject="explore")
    gives = CallFacts("sessions_spawn", effect, touches)
    for mode in (SessionMode.EDIT, SessionMode.PLAN):
        assert decide(gives, Bounds(session_mode=mode)).verdict == "allow"
    for permission in WIDEST_FIRST:
        bounds = Bounds(mode=permission, session_mode=SessionMode.ASK, rules=rules(allow=("*",)))
        assert decide(gives, bounds).rule == "mode: ask mode gives no subagent work"


@pytest.mark.requirement("POL-2", "TOOL-7")
@pytest.mark.parametrize("session", [SessionMode.PLAN, SessionMode.ASK])
def test_plan_and_ask_run_commands_that_only_read_and_name_what_stops_the_others(
    session: SessionMode,
) -> None:
    bounds = Bounds(session_mode=session)
    name = session.value
    found = decide(runs("git log --oneline | head"), bounds)
    assert (found.verdict, found.rule) == (
        "allow",
        f"mode: {name} mode runs commands that only read",
    )
    refused = decide(runs("ls; rm f"), bounds)
    assert refused.verdict == "deny"
    assert refused.rule.startswith(
        f"mode: {name} mode runs commands that only read, and refuses rm "
    )


@pytest.mark.requirement("POL-2", "TOOL-7")
def test_what_only_reads_is_still_held_by_every_other_bound() -> None:
    plan = Bounds(session_mode=SessionMode.PLAN)
    assert decide(runs("ls"), replace(plan, sandboxed=False)).verdict == "deny"
    assert decide(runs("ls"), replace(plan, trust=Trust.GUEST)).verdict == "deny"
    assert decide(runs("ls"), replace(plan, rules=rules(deny=("exec(ls:*)",)))).verdict == "deny"
    assert decide(runs("ls"), replace(plan, rules=rules(ask=("exec(ls:*)",)))).verdict == "ask"
    assert decide(runs("ls"), replace(plan, tools=frozenset())).verdict == "deny"
    asked = decide(runs("ls"), replace(plan, mode=DONT_ASK))
    assert asked.rule == "permission mode: dontAsk turns every ask into no"
    assert decide(runs("ls"), Bounds(session_mode=SessionMode.EDIT)).verdict == "ask"


@pytest.mark.requirement("POL-3")
def test_deny_beats_ask_beats_allow_and_the_list_is_named() -> None:
    everything = ("exec(ls:*)",)
    all_three = rules(allow=everything, ask=everything, deny=everything)
    assert decide(runs(), Bounds(rules=all_three)).rule == "deny rule: exec(ls:*)"
    two = decide(runs(), Bounds(rules=rules(allow=everything, ask=everything)))
    assert (two.verdict, two.rule) == ("ask", "ask rule: exec(ls:*)")
    one = decide(runs(), Bounds(rules=rules(allow=everything)))
    assert (one.verdict, one.rule) == ("allow", "allow rule: exec(ls:*)")


@pytest.mark.requirement("POL-3")
def test_the_first_rule_that_matches_is_the_one_that_is_named() -> None:
    found = decide(runs(), Bounds(rules=rules(allow=("read_file", "exec(ls:*)", "exec"))))
    assert found.rule == "allow rule: exec(ls:*)"


@pytest.mark.requirement("POL-3")
def test_an_ask_rule_asks_about_what_would_be_allowed() -> None:
    found = decide(reads("keys/a"), Bounds(rules=rules(ask=("read_file(keys/**)",))))
    assert found.verdict == "ask"
    assert found.reason == "A rule of the operator asks about it."


@pytest.mark.requirement("POL-3")
@pytest.mark.parametrize(
    ("rule", "call"),
    [
        ("exec(rm:*)", runs("ls; rm x")),
        ("exec(rm:*)", runs("sudo rm x")),
        ("exec(make test)", runs("cd sub && make test")),
        ("write_file(notes/**)", writes("notes/../a.md")),
    ],
)
def test_an_ask_rule_concerns_a_call_in_any_part_of_it(rule: str, call: CallFacts) -> None:
    bounds = Bounds(mode=ACCEPT, rules=rules(ask=(rule,), allow=("exec", "write_file")))
    found = decide(call, bounds)
    assert (found.verdict, found.rule) == ("ask", f"ask rule: {rule}")


@pytest.mark.requirement("POL-3")
def test_an_ask_rule_is_not_satisfied_by_a_grant_of_the_session() -> None:
    grants = (Grant(tool="exec", kind=GrantKind.PATH, key="ls -l", text="ls"),)
    bounds = Bounds(rules=rules(ask=("exec(ls:*)",)), grants=grants)
    assert decide(runs("ls -l"), bounds).verdict == "ask"


@pytest.mark.requirement("POL-1", "POL-3")
def test_a_file_for_its_own_chat_is_told_from_a_send_to_somebody_else() -> None:
    own = decide(replies("reports/june.pdf"), Bounds())
    assert own.rule == "permission mode: default on what goes to the chat of the session itself"
    assert decide(sends(), Bounds()).verdict == "ask"
    held = Bounds(rules=rules(ask=("send_file(reports/**)",), deny=("send_file(keys/**)",)))
    verdicts = [decide(replies(path), held).verdict for path in ("reports/a", "keys/a", "other")]
    assert verdicts == ["ask", "deny", "allow"]
    note = replies("USER.md", private=True)
    assert decide(note, Bounds(group=True)).rule.startswith("privacy: ")
    assert decide(note, Bounds()).verdict == "allow"


@pytest.mark.requirement("POL-4")
@pytest.mark.parametrize("trust", [Trust.GUEST, Trust.BOT])
@pytest.mark.parametrize("mode", WIDEST_FIRST)
@pytest.mark.parametrize("call", [writes(), runs(), sends(), posts(), replies()])
def test_guests_and_bots_cause_no_side_effects(
    trust: Trust, mode: PermissionMode, call: CallFacts
) -> None:
    bounds = Bounds(mode=mode, trust=trust, rules=rules(allow=("*",)), grants=EVERYTHING)
    assert decide(call, bounds).verdict == "deny"
    assert decide(reads(), bounds).verdict == "allow"


@pytest.mark.requirement("POL-4")
@pytest.mark.parametrize("trust", [Trust.OWNER, Trust.MEMBER])
@pytest.mark.parametrize("mode", WIDEST_FIRST)
@pytest.mark.parametrize(
    "call", [reads(), writes(), runs(), sends()], ids=["read", "write", "exec", "send"]
)
def test_owner_and_member_are_bounded_by_the_mode_alone(
    trust: Trust, mode: PermissionMode, call: CallFacts
) -> None:
    assert decide(call, Bounds(mode=mode, trust=trust)) == decide(call, Bounds(mode=mode))


@pytest.mark.requirement("POL-4")
@pytest.mark.parametrize(
    ("trust", "group", "verdict"),
    [
        (Trust.OWNER, False, "allow"),
        (Trust.MEMBER, False, "allow"),
        (Trust.GUEST, False, "deny"),
        (Trust.BOT, False, "deny"),
        (Trust.OWNER, True, "deny"),
        (Trust.MEMBER, True, "deny"),
        (Trust.GUEST, True, "deny"),
    ],
)
def test_private_notes_are_open_to_known_people_in_their_own_chat(
    trust: Trust, group: bool, verdict: str
) -> None:
    bounds = Bounds(mode=BYPASS, trust=trust, group=group, rules=rules(allow=("*",)))
    assert decide(reads("USER.md", private=True), bounds).verdict == verdict


@pytest.mark.requirement("POL-1")
def test_the_chain_holds_every_bound_that_was_asked_and_the_decision_names_the_strictest() -> None:
    bounds = Bounds(
        trust=Trust.GUEST,
        session_mode=SessionMode.PLAN,
        rules=rules(deny=("exec",)),
        tools=frozenset(),
    )
    decision = decide(runs(), bounds)
    assert [link.bound for link in decision.chain] == [
        "tool surface",
        "trust",
        "deny rule",
        "mode",
        "permission mode",
    ]
    assert decision.rule == "tool surface: exec is not offered here"


@pytest.mark.requirement("POL-1")
def test_an_ask_that_was_turned_shows_both_links() -> None:
    decision = decide(runs(), Bounds(mode=DONT_ASK))
    assert [link.verdict for link in decision.chain] == ["ask", "deny"]
    assert decision.rule == "permission mode: dontAsk turns every ask into no"


def test_no_surface_bounds_nothing_and_an_empty_one_allows_nothing() -> None:
    assert decide(reads(), Bounds(mode=BYPASS, tools=None)).verdict == "allow"
    assert decide(reads(), Bounds(mode=BYPASS, tools=frozenset())).verdict == "deny"
    assert decide(reads(), Bounds(tools=frozenset({"read_file"}))).verdict == "allow"
    assert decide(reads(), Bounds(tools=frozenset({"exec"}))).verdict == "deny"


def test_the_narrower_mode_is_the_meet() -> None:
    for place, wide in enumerate(WIDEST_FIRST):
        for narrow in WIDEST_FIRST[place:]:
            assert narrower(wide, narrow) is narrow is narrower(narrow, wide)
        assert narrower(wide, None) is wide


def test_the_operators_patterns_are_read_at_the_start() -> None:
    settings = PolicySettings(rules=rule_lists(allow=("exec(ls:*)",), deny=("exec(rm:*)",)))
    assert [rule.text for rule in settings.rules.deny] == ["exec(rm:*)"]


@pytest.mark.requirement("POL-2")
@given(cases.facts(), cases.bounds(), st.sampled_from(WIDEST_FIRST))
def test_narrowing_the_mode_never_widens_a_verdict(
    call: CallFacts, bounds: Bounds, other: PermissionMode
) -> None:
    narrow = replace(bounds, mode=narrower(bounds.mode, other))
    assert cases.no_wider(call, narrow, bounds)


Narrowing = Callable[[Bounds], Bounds]


@pytest.mark.requirement("POL-3")
@given(
    cases.facts(),
    cases.bounds(),
    st.sampled_from(["deny", "ask"]),
    st.sampled_from(cases.PATTERNS),
)
def test_adding_a_deny_or_an_ask_rule_never_widens(
    call: CallFacts, bounds: Bounds, name: str, pattern: str
) -> None:
    lists = bounds.rules
    more = replace(lists, **{name: (*getattr(lists, name), Rule.parse(pattern))})
    after = decide(call, replace(bounds, rules=more))
    assert WIDTH[after.verdict] <= WIDTH[decide(call, bounds).verdict]


@pytest.mark.requirement("POL-2")
@pytest.mark.parametrize(
    "narrowing",
    [
        lambda bounds: replace(bounds, trust=Trust.GUEST),
        lambda bounds: replace(bounds, group=True),
        lambda bounds: replace(bounds, sandboxed=False),
        lambda bounds: replace(bounds, session_mode=SessionMode.PLAN),
        lambda bounds: replace(bounds, tools=frozenset()),
        lambda bounds: replace(bounds, grants=()),
        lambda bounds: replace(bounds, rules=replace(bounds.rules, allow=())),
    ],
    ids=["guest", "group", "unconfined", "plan", "no tools", "no grants", "no allow rules"],
)
@given(call=cases.facts(), bounds=cases.bounds())
def test_no_bound_that_is_narrowed_widens_a_verdict(
    narrowing: Narrowing, call: CallFacts, bounds: Bounds
) -> None:
    assert cases.no_wider(call, narrowing(bounds), bounds)


@pytest.mark.requirement("POL-2")
@given(cases.facts(), cases.bounds())
def test_bypass_asks_nothing_and_overrides_no_denial(call: CallFacts, bounds: Bounds) -> None:
    decision = decide(call, replace(bounds, mode=BYPASS))
    assert decision.verdict != "ask"
    denied = [link for link in decision.chain if link.verdict == "deny"]
    assert (decision.verdict == "deny") is bool(denied)


@pytest.mark.requirement("POL-1")
@given(cases.facts(), cases.bounds())
def test_every_decision_names_a_link_of_its_own_chain(call: CallFacts, bounds: Bounds) -> None:
    decision = decide(call, bounds)
    named = [link for link in decision.chain if f"{link.bound}: {link.rule}" == decision.rule]
    assert named
    assert decision.verdict in {link.verdict for link in named}
    assert decision == decide(call, bounds)


@pytest.mark.requirement("POL-2")
@pytest.mark.parametrize("call", [reads(), fetches(), writes(), runs(), sends()])
def test_no_narrower_mode_asks_where_a_wider_one_refuses(call: CallFacts) -> None:
    lists = rules(ask=("*",))
    width = [WIDTH[decide(call, Bounds(mode=mode, rules=lists)).verdict] for mode in WIDEST_FIRST]
    assert width == sorted(width, reverse=True)
