"""The rules of budgets: which hold for whom, when a day ends, and what people are told."""

from dataclasses import replace

import pytest

from gateway.config_engine import budget_settings
from runtime.agent.turn_budget import prompt_tokens
from runtime.domain.budgets import (
    Amount,
    Budget,
    BudgetKey,
    BudgetSettings,
    Limit,
    Scope,
    Standing,
    budgets_of,
    day_of,
    judge,
    micro_usd,
    over_line,
    spender_of,
    standing_lines,
)
from runtime.domain.messages import ChatAddress
from runtime.domain.people import Speaker, Trust
from runtime.domain.tools import ToolSpec
from runtime.domain.transcript import UserMessage
from runtime.ports.model import ModelRequest
from tests.unit.config.support import problems, reader

DIRECT = ChatAddress(channel="test", account="A1", chat_id="D1", chat_kind="direct")
THREAD = ChatAddress(
    channel="test", account="A1", chat_id="C1", chat_kind="channel", thread_id="t1"
)
MEMBER = Speaker(person_id="per_1", channel="test", account="A1", user_id="U1", trust=Trust.MEMBER)
EVERY = BudgetSettings(
    run=Limit(1), session=Limit(2), person_day=Limit(3), room_day=Limit(4), day=Limit(5)
)
NOON = 1_795_176_000_000  # 2026-11-20 12:00 UTC


@pytest.mark.requirement("MSG-20")
@pytest.mark.parametrize(
    ("zone", "hour", "day"),
    [
        ("UTC", 12, "2026-11-20"),
        ("UTC", 24, "2026-11-21"),
        ("Europe/Berlin", 22, "2026-11-20"),
        ("Europe/Berlin", 23, "2026-11-21"),
        ("America/Los_Angeles", 31, "2026-11-20"),
        ("America/Los_Angeles", 32, "2026-11-21"),
    ],
)
def test_a_day_ends_at_midnight_of_the_operators_zone(zone: str, hour: int, day: str) -> None:
    assert day_of(NOON + (hour - 12) * 3_600_000, zone) == day


def test_a_day_of_the_clock_change_is_one_day() -> None:
    begin = NOON + 156 * 86_400_000  # 2027-04-25 12:00 UTC, past the change of 2027-03-28
    assert day_of(begin + 10 * 3_600_000 - 1, "Europe/Berlin") == "2027-04-25"
    assert day_of(begin + 10 * 3_600_000, "Europe/Berlin") == "2027-04-26"


@pytest.mark.requirement("MSG-20")
def test_a_thread_pays_from_its_room_and_a_direct_chat_from_none() -> None:
    in_room = budgets_of(EVERY, spender_of(MEMBER, THREAD, session_id="ses_1", run_id="r"), NOON)
    assert [(one.key.scope, one.key.id, one.key.day) for one in in_room] == [
        (Scope.RUN, "r", ""),
        (Scope.SESSION, "ses_1", ""),
        (Scope.PERSON, "per_1", "2026-11-20"),
        (Scope.ROOM, "test:A1:C1", "2026-11-20"),
        (Scope.DAY, "", "2026-11-20"),
    ]
    alone = budgets_of(EVERY, spender_of(MEMBER, DIRECT, session_id="ses_1", run_id="r"), NOON)
    assert Scope.ROOM not in [one.key.scope for one in alone]
    assert budgets_of(BudgetSettings(), spender_of(MEMBER, THREAD, session_id="s"), NOON) == ()


def test_a_guest_pays_by_account_since_each_message_makes_a_new_person() -> None:
    first = MEMBER.model_copy(update={"trust": Trust.GUEST})
    second = first.model_copy(update={"person_id": "per_2"})
    payers = {spender_of(one, DIRECT, session_id="s").person for one in (first, second)}
    assert payers == {"test:A1:U1"}


@pytest.mark.requirement("MSG-20")
@pytest.mark.parametrize(
    ("used", "reserved", "verdict"),
    [
        (0, 0, "free"),
        (99, 0, "free"),
        (0, 99, "free"),
        (50, 50, "wait"),
        (0, 100, "wait"),
        (100, 0, "spent"),
        (130, 50, "spent"),
    ],
)
def test_a_call_may_begin_while_the_limit_is_not_reached(
    used: int, reserved: int, verdict: str
) -> None:
    tokens = Standing(Amount(used, 0), Amount(reserved, 0))
    assert judge(Limit(tokens=100), tokens) == (verdict, "tokens")
    money = Standing(Amount(0, used), Amount(0, reserved))
    unit = "tokens" if verdict == "free" else "money"
    assert judge(Limit(micro_usd=100), money) == (verdict, unit)
    assert judge(Limit(), tokens)[0] == "free"


def test_what_is_spent_says_so_though_another_measure_only_waits() -> None:
    standing = Standing(Amount(10, 100), Amount(1000, 0))
    assert judge(Limit(tokens=100, micro_usd=100), standing) == ("spent", "money")


@pytest.mark.requirement("MSG-20")
@pytest.mark.parametrize(
    ("scope", "named", "resets"),
    [
        (Scope.RUN, "one request", "your next message"),
        (Scope.SESSION, "This session", "whoever runs me can raise it"),
        (Scope.PERSON, "You have used", "midnight (Europe/Berlin)"),
        (Scope.ROOM, "This room", "midnight (Europe/Berlin)"),
        (Scope.DAY, "for everybody", "midnight (Europe/Berlin)"),
    ],
)
def test_the_line_names_the_budget_its_size_and_its_end(
    scope: Scope, named: str, resets: str
) -> None:
    budget = Budget(BudgetKey(scope, "x"), Limit(tokens=50_000, micro_usd=micro_usd(2.5)))
    line = over_line(budget, "tokens", timezone="Europe/Berlin")
    assert named in line
    assert resets in line
    assert "50,000 tokens" in line
    assert "\n" not in line
    assert line.endswith(".")
    assert line.count(". ") == 0, "one sentence"
    assert "$2.50" in over_line(budget, "money", timezone="Europe/Berlin")


def test_what_is_left_is_never_less_than_nothing() -> None:
    key = BudgetKey(Scope.DAY, "", "2026-11-20")
    budget = Budget(key, Limit(tokens=100, micro_usd=micro_usd(0.0123)))
    standing = Standing(Amount(130, micro_usd(0.01)), unpriced=2)
    tokens, money = standing_lines([(budget, standing)], timezone="UTC")
    assert tokens == "- everybody, today: 130 tokens of 100 tokens used, 0 tokens left, " + (
        "until midnight (UTC)"
    )
    assert "$0.01 of $0.0123 used, $0.0023 left" in money
    assert "cost unknown for 2 calls" in money


def test_the_estimate_of_a_prompt_covers_everything_that_is_sent() -> None:
    empty = ModelRequest("", (), "", (), 100, "r", 1)
    assert prompt_tokens(empty) == 0
    tool = ToolSpec(name="note", description="x" * 36, parameters={"a": "b" * 10})
    parts = (
        replace(empty, system="x" * 40),
        replace(empty, present="x" * 40),
        replace(empty, messages=(UserMessage(text="x" * 24),)),
        replace(empty, tools=(tool,)),
    )
    assert all(prompt_tokens(one) >= 10 for one in parts)
    whole = replace(parts[0], present="x" * 40, messages=parts[2].messages, tools=parts[3].tools)
    assert prompt_tokens(whole) == sum(prompt_tokens(one) for one in parts)


@pytest.mark.requirement("MSG-20")
def test_the_operator_sets_each_limit_in_tokens_and_in_money(tmp_path) -> None:
    read = reader(tmp_path / "home")
    assert not budget_settings(read().settings).is_set
    text = 'timezone = "Europe/Berlin"\n[budgets]\n'
    for number, name in enumerate(("run", "session", "person_day", "room_day", "day"), 1):
        text += f"{name}_tokens = {number}\n{name}_usd = {number}.5\n"
    found = budget_settings(read(text).settings)
    limits = (found.run, found.session, found.person_day, found.room_day, found.day)
    assert [one.tokens for one in limits] == [1, 2, 3, 4, 5]
    assert [one.micro_usd for one in limits] == [
        1_500_000,
        2_500_000,
        3_500_000,
        4_500_000,
        5_500_000,
    ]
    assert found.timezone == "Europe/Berlin"
    assert found.counts_money
    assert problems(read, "[budgets]\nday_usd = 0\n")
    assert problems(read, "[budgets]\nday_tokens = 0\n")
