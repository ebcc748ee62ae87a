"""Budgets: how much may be spent, by whom, until when, and the words for it. Pure.

Money is in micro-dollars (millionths of a US dollar), so that sums are exact; tokens are those that
go in and those that come out, together. A day is a calendar day in the operator's time zone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, Literal, Self
from zoneinfo import ZoneInfo

from runtime.domain.capabilities import Spend
from runtime.domain.counts import counted
from runtime.domain.messages import ChatAddress
from runtime.domain.people import Speaker, Trust

Unit = Literal["tokens", "money"]
MICRO_USD: Final = 1_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Scope(StrEnum):
    """What one budget covers. Of each scope there is one for each run, session, person, room; and
    for each subagent that was given one, with all below it."""

    RUN = "run"
    AGENT = "agent"
    SESSION = "session"
    PERSON = "person"
    ROOM = "room"
    DAY = "day"


_DAILY: Final = frozenset({Scope.PERSON, Scope.ROOM, Scope.DAY})


@dataclass(frozen=True, slots=True)
class Amount:
    """Tokens, and micro-dollars."""

    tokens: int = 0
    micro_usd: int = 0


@dataclass(frozen=True, slots=True)
class Limit:
    """The most that may be spent; None is no limit."""

    tokens: int | None = None
    micro_usd: int | None = None

    @classmethod
    def of(cls, spend: Spend) -> Self:
        """What of a session's own bound is counted in rows; its steps are counted by its turns."""
        return cls(spend.tokens, spend.micro_usd)

    @property
    def is_set(self) -> bool:
        """Whether it limits anything."""
        return self.tokens is not None or self.micro_usd is not None


@dataclass(frozen=True, slots=True, order=True)
class BudgetKey:
    """Which budget: its scope, whose it is, and its day as ``2026-11-20``; no day: it never ends.

    Keys have an order, because rows are locked in it.
    """

    scope: Scope
    id: str
    day: str = ""


@dataclass(frozen=True, slots=True)
class Budget:
    """One budget and its limit."""

    key: BudgetKey
    limit: Limit


@dataclass(frozen=True, slots=True)
class Spender:
    """On whose account a model call goes. What a run starts shares its run, session and person."""

    run_id: str
    session_id: str
    person: str
    room: str | None = None


@dataclass(frozen=True, slots=True)
class BudgetSettings:
    """The operator's limits: of one run, one session, and of a day for each person, for each room
    and for everybody. `timezone` says when a day ends."""

    run: Limit = field(default_factory=Limit)
    session: Limit = field(default_factory=Limit)
    person_day: Limit = field(default_factory=Limit)
    room_day: Limit = field(default_factory=Limit)
    day: Limit = field(default_factory=Limit)
    timezone: str = "UTC"

    @property
    def is_set(self) -> bool:
        """Whether there is any limit at all."""
        return any(limit.is_set for limit in self._limits)

    @property
    def counts_money(self) -> bool:
        """Whether there is a limit in money."""
        return any(limit.micro_usd is not None for limit in self._limits)

    @property
    def _limits(self) -> tuple[Limit, ...]:
        return (self.run, self.session, self.person_day, self.room_day, self.day)


def spender_of(
    speaker: Speaker, address: ChatAddress, *, session_id: str, run_id: str = ""
) -> Spender:
    """Who pays for what `speaker` asks at `address`.

    Guests and bots have no lasting person (each message would be a new one): their account pays.
    """
    person = speaker.person_id
    if speaker.trust in (Trust.GUEST, Trust.BOT):
        person = f"{speaker.channel}:{speaker.account}:{speaker.user_id}"
    room = None
    if address.chat_kind != "direct":
        room = f"{address.channel}:{address.account}:{address.chat_id}"
    return Spender(run_id, session_id, person, room)


def budgets_of(settings: BudgetSettings, spender: Spender, now_ms: int) -> tuple[Budget, ...]:
    """The budgets that hold for a spender now, the narrowest first."""
    day = day_of(now_ms, settings.timezone)
    held = (
        (BudgetKey(Scope.RUN, spender.run_id), settings.run),
        (BudgetKey(Scope.SESSION, spender.session_id), settings.session),
        (BudgetKey(Scope.PERSON, spender.person, day), settings.person_day),
        (BudgetKey(Scope.ROOM, spender.room or "", day), settings.room_day),
        (BudgetKey(Scope.DAY, "", day), settings.day),
    )
    return tuple(
        Budget(key, limit)
        for key, limit in held
        if limit.is_set and (key.id or key.scope is Scope.DAY)
    )


def day_of(now_ms: int, timezone: str) -> str:
    """The calendar day of a moment, as ``2026-11-20``."""
    moment = _EPOCH + timedelta(milliseconds=now_ms)
    return moment.astimezone(ZoneInfo(timezone)).date().isoformat()


def micro_usd(usd: float) -> int:
    """US dollars as micro-dollars, to the nearest one."""
    return round(usd * MICRO_USD)


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a budget stands. `unpriced` counts calls whose cost nobody knows."""

    used: Amount = field(default_factory=Amount)
    reserved: Amount = field(default_factory=Amount)
    unpriced: int = 0


Verdict = Literal["free", "wait", "spent"]


def judge(limit: Limit, standing: Standing) -> tuple[Verdict, Unit]:
    """Whether one more call may begin, and by which measure.

    It may while less than the limit is used and reserved: the call that crosses the limit is the
    last one. `wait`: calls under way may leave room; `spent`: nothing that can happen does.
    """
    verdict: tuple[Verdict, Unit] = ("free", "tokens")
    measures: tuple[tuple[Unit, int | None, int, int], ...] = (
        ("tokens", limit.tokens, standing.used.tokens, standing.reserved.tokens),
        ("money", limit.micro_usd, standing.used.micro_usd, standing.reserved.micro_usd),
    )
    for unit, most, used, reserved in measures:
        if most is None:
            continue
        if used >= most:
            return "spent", unit
        if used + reserved >= most:
            verdict = ("wait", unit)
    return verdict


def over_line(budget: Budget, unit: Unit, *, timezone: str) -> str:
    """What a person is told when a budget is used up: which one, and when there is more."""
    most = _amount(budget.limit, unit)
    return f"{_OVER[budget.key.scope].format(most=most)} {_more(budget.key.scope, timezone)}"


_OVER: Final = {
    Scope.RUN: "I stopped here, because one request may use {most}",
    Scope.AGENT: "I stopped here, because I may use {most}, with all subagents that I start",
    Scope.SESSION: "This session has used its budget of {most}",
    Scope.PERSON: "You have used your budget of {most} for today",
    Scope.ROOM: "This room has used its budget of {most} for today",
    Scope.DAY: "The budget of {most} that I have for everybody is used up for today",
}


def _more(scope: Scope, timezone: str) -> str:
    if scope is Scope.RUN:
        return "and this one did; your next message starts with a fresh budget."
    if scope is Scope.AGENT:
        return "and that is used up; a new subagent can be given more."
    if scope is Scope.SESSION:
        return "and it does not refill by itself; whoever runs me can raise it."
    return f"and it starts afresh at midnight ({timezone})."


def standing_lines(budgets: Sequence[tuple[Budget, Standing]], *, timezone: str) -> tuple[str, ...]:
    """One line for each budget and measure: what is used, the limit, and what is left."""
    lines = []
    for budget, standing in budgets:
        name = _NAMES[budget.key.scope]
        until = f", until midnight ({timezone})" if budget.key.scope in _DAILY else ""
        if budget.key.scope is Scope.RUN:
            lines += [f"- {name}: at most {_amount(budget.limit, one)}" for one in _units(budget)]
            continue
        for unit in _units(budget):
            used, most = _figures(budget, standing, unit)
            left = _shown(max(most - used, 0), unit)
            unknown = ""
            if unit == "money" and standing.unpriced:
                unknown = (
                    f"; cost unknown for {counted(standing.unpriced, 'call')}, "
                    "only tokens count there"
                )
            lines.append(
                f"- {name}: {_shown(used, unit)} of {_shown(most, unit)} used, "
                f"{left} left{until}{unknown}"
            )
    return tuple(lines)


_NAMES: Final = {
    Scope.RUN: "one request",
    Scope.AGENT: "this subagent",
    Scope.SESSION: "this session",
    Scope.PERSON: "you, today",
    Scope.ROOM: "this room, today",
    Scope.DAY: "everybody, today",
}


def _units(budget: Budget) -> tuple[Unit, ...]:
    units: list[Unit] = []
    if budget.limit.tokens is not None:
        units.append("tokens")
    if budget.limit.micro_usd is not None:
        units.append("money")
    return tuple(units)


def _figures(budget: Budget, standing: Standing, unit: Unit) -> tuple[int, int]:
    if unit == "tokens":
        return standing.used.tokens, budget.limit.tokens or 0
    return standing.used.micro_usd, budget.limit.micro_usd or 0


def _amount(limit: Limit, unit: Unit) -> str:
    return _shown((limit.tokens if unit == "tokens" else limit.micro_usd) or 0, unit)


def _shown(figure: int, unit: Unit) -> str:
    if unit == "tokens":
        return counted(figure, "token")
    cents = figure % 10_000 == 0
    return f"${figure / MICRO_USD:,.2f}" if cents else f"${figure / MICRO_USD:,.4f}"
