"""Rate limits: how much may begin in a minute and in an hour, for whom, and the words. Pure.

The rule is POL-8. A window begins with the first thing that it counts and ends a minute or an hour
later; the next begins with the first thing after that. What is refused is counted nowhere, so
nobody makes it worse by trying again, and no member can use up a room's windows with what is
refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, Literal
from zoneinfo import ZoneInfo

from runtime.domain.budgets import Spender
from runtime.domain.people import Speaker, Trust

Span = Literal["minute", "hour"]
LENGTHS_MS: Final[dict[Span, int]] = {"minute": 60_000, "hour": 3_600_000}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class RateScope(StrEnum):
    """Whose pace it is. `words` are what the gateway says to one person by itself: answers to
    commands, and that a message waits."""

    PERSON = "person"
    ROOM = "room"
    WORDS = "words"


@dataclass(frozen=True, slots=True)
class Rate:
    """The most in one window of each length; 0 is no limit."""

    minute: int = 0
    hour: int = 0

    @property
    def is_set(self) -> bool:
        """Whether it limits anything."""
        return bool(self.minute or self.hour)

    def most(self, span: Span) -> int:
        """The limit of one length."""
        return self.minute if span == "minute" else self.hour


@dataclass(frozen=True, slots=True)
class Window:
    """What was counted until `ends_ms`; nothing yet where that is over."""

    ends_ms: int = 0
    count: int = 0


@dataclass(frozen=True, slots=True)
class Tally:
    """The windows of one rate."""

    minute: Window = field(default_factory=Window)
    hour: Window = field(default_factory=Window)

    def of(self, span: Span) -> Window:
        """The window of one length."""
        return self.minute if span == "minute" else self.hour


@dataclass(frozen=True, slots=True)
class Limited:
    """One limit that holds for somebody; `id` is whose."""

    scope: RateScope
    id: str
    rate: Rate

    @property
    def name(self) -> str:
        """The limit's own name among all of them."""
        return f"{self.scope.value}:{self.id}"


@dataclass(frozen=True, slots=True)
class Full:
    """A window that takes nothing more until `ends_ms`."""

    limit: Limited
    span: Span
    ends_ms: int


@dataclass(frozen=True, slots=True)
class RateSettings:
    """The operator's limits: of runs for each person and each room, and of the gateway's own words
    to each person. Owners are bound only where `owners` is set."""

    person: Rate = field(default_factory=Rate)
    room: Rate = field(default_factory=Rate)
    words: Rate = field(default_factory=Rate)
    owners: bool = False
    timezone: str = "UTC"


def limits_of_runs(
    settings: RateSettings, speaker: Speaker, spender: Spender
) -> tuple[Limited, ...]:
    """What bounds the runs that `speaker` begins."""
    if not _bound(settings, speaker):
        return ()
    held = (
        Limited(RateScope.PERSON, spender.person, settings.person),
        Limited(RateScope.ROOM, spender.room or "", settings.room),
    )
    return tuple(one for one in held if one.id and one.rate.is_set)


def limits_of_words(
    settings: RateSettings, speaker: Speaker, spender: Spender
) -> tuple[Limited, ...]:
    """What bounds the gateway's own words to `speaker`."""
    if not _bound(settings, speaker) or not settings.words.is_set:
        return ()
    return (Limited(RateScope.WORDS, spender.person, settings.words),)


def full(limit: Limited, tally: Tally, now_ms: int) -> Full | None:
    """The window that lets nothing begin now; of several, the one that ends last."""
    found = [
        Full(limit, span, window.ends_ms)
        for span, length in LENGTHS_MS.items()
        if (window := _now(tally.of(span), now_ms, length)).count
        >= (limit.rate.most(span) or _MANY)
    ]
    return max(found, key=lambda one: one.ends_ms, default=None)


def counted(tally: Tally, now_ms: int) -> Tally:
    """The tally after one more thing began now."""
    return Tally(*(_one_more(tally.of(span), now_ms, ms) for span, ms in LENGTHS_MS.items()))


def refusal_line(found: Full, *, timezone: str) -> str:
    """What a person is told, once in each window: why, and when it goes on."""
    span = _SPANS[found.span]
    most, until = found.limit.rate.most(found.span), _clock(found.ends_ms, timezone)
    return _REFUSED[found.limit.scope].format(most=most, span=span, until=until)


def rate_lines(
    found: Sequence[tuple[Limited, Tally]], now_ms: int, *, timezone: str
) -> tuple[str, ...]:
    """One line for each limit of runs and length: what is used, and what is left until when."""
    return tuple(
        _standing(limit, span, _now(tally.of(span), now_ms, length), timezone)
        for limit, tally in found
        for span, length in LENGTHS_MS.items()
        if limit.rate.most(span)
    )


_MANY: Final = 2**63
_SPANS: Final[dict[Span, str]] = {"minute": "a minute", "hour": "an hour"}
_LEFT: Final = (
    ", so I did not take this message. I continue at {until}. "
    "Please send it again then if you still need it."
)
_REFUSED: Final = {
    RateScope.PERSON: "That is more than {most} requests of yours in {span}" + _LEFT,
    RateScope.ROOM: "That is more than {most} requests of this room in {span}" + _LEFT,
    RateScope.WORDS: (
        "I answered you {most} times in {span}, so I say no more about commands and waiting "
        "messages until {until}. They still take effect."
    ),
}
_NAMES: Final = {
    RateScope.PERSON: "your requests",
    RateScope.ROOM: "this room's requests",
    RateScope.WORDS: "my short answers to you",
}


def _bound(settings: RateSettings, speaker: Speaker) -> bool:
    return settings.owners or speaker.trust is not Trust.OWNER


def _now(window: Window, now_ms: int, length_ms: int) -> Window:
    """The window as of now. One that ends later than a window can is of a clock that went back."""
    return window if now_ms < window.ends_ms <= now_ms + length_ms else Window()


def _one_more(window: Window, now_ms: int, length_ms: int) -> Window:
    present = _now(window, now_ms, length_ms)
    return Window(present.ends_ms or now_ms + length_ms, present.count + 1)


def _standing(limit: Limited, span: Span, window: Window, timezone: str) -> str:
    most = limit.rate.most(span)
    until = f", until {_clock(window.ends_ms, timezone)}" if window.count else ""
    left = max(most - window.count, 0)
    return (
        f"- {_NAMES[limit.scope]} in {_SPANS[span]}: {window.count} of {most} used, "
        f"{left} left{until}"
    )


def _clock(at_ms: int, timezone: str) -> str:
    """A moment as a person reads it; never before the moment itself."""
    moment = _EPOCH + timedelta(seconds=-(-at_ms // 1000))
    return f"{moment.astimezone(ZoneInfo(timezone)):%H:%M:%S} ({timezone})"
