"""Reading what the bot says, as people do: each new message once, wherever it appears.

It keeps nothing of the platforms' servers that a soak of hours would have to pay for.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeVar

from tests.soak.places import (
    Place,
    SlackDirect,
    SlackThread,
    TelegramDirect,
    TelegramGroup,
    WebPage,
)
from tests.soak.stage import Stage

Key = TypeVar("Key")
Value = TypeVar("Value")

PAGE_S: Final = 0.5
FOREVER_S: Final = 30 * 24 * 3600.0
KEPT_DELIVERIES: Final = 500


@dataclass
class Cast:
    """The places, by how each is read."""

    slack: list[SlackDirect | SlackThread] = field(default_factory=list)
    telegram: list[TelegramDirect | TelegramGroup] = field(default_factory=list)
    pages: list[WebPage] = field(default_factory=list)

    @property
    def places(self) -> list[Place]:
        """All of them."""
        return [*self.slack, *self.telegram, *self.pages]


async def watch_slack(stage: Stage, cast: Cast) -> None:
    """Read Slack until cancelled."""
    slack, seen = stage.town.slack, dict.fromkeys(stage.town.slack.workspace.channels, "")

    def news() -> bool:
        found = False
        for channel in slack.workspace.channels.values():
            new = _newer(channel.messages, seen.get(channel.id, ""))
            for ts, message in new:
                seen[channel.id], found = ts, True
                place = _slack_place(cast, channel.id, message.thread_ts)
                if message.bot_id is not None and place is not None:
                    stage.ledger.saw(place.name, message.visible_text, stage.now())
        return found

    while True:
        await slack.until(news, within=FOREVER_S)
        _prune_deliveries(stage)


def _newer(kept: dict[Key, Value], last: object) -> Iterator[tuple[Key, Value]]:
    new: list[tuple[Key, Value]] = []
    for key in reversed(kept):
        if key == last:
            break
        new.append((key, kept[key]))
    return reversed(new)


def _slack_place(cast: Cast, channel: str, thread: str | None) -> Place | None:
    for one in cast.slack:
        if isinstance(one, SlackDirect):
            if one.channel == channel:
                return one
        elif thread is not None and one.thread == thread:
            return one
    return None


def _prune_deliveries(stage: Stage) -> None:
    kept = stage.town.slack.deliveries.all
    if len(kept) > 2 * KEPT_DELIVERIES:
        old, young = kept[:-KEPT_DELIVERIES], kept[-KEPT_DELIVERIES:]
        kept[:] = [one for one in old if one.waiting] + young
    del stage.town.slack.calls[:-KEPT_DELIVERIES]
    del stage.town.telegram.calls[:-KEPT_DELIVERIES]


async def watch_telegram(stage: Stage, cast: Cast) -> None:
    """Read Telegram until cancelled."""
    telegram = stage.town.telegram
    places = {one.chat.id: one for one in cast.telegram}
    last: list[object] = [None]

    def news() -> bool:
        found = False
        for key, message in _newer(telegram.world.messages, last[0]):
            last[0], found = key, True
            place = places.get(message.chat.id)
            if message.sender == telegram.bot and place is not None:
                stage.ledger.saw(place.name, message.text, stage.now())
        return found

    while True:
        await telegram.state.signal.until(news)


async def watch_pages(stage: Stage, cast: Cast) -> None:
    """Look at the pages again and again until cancelled."""
    while True:
        await stage.clock.sleep(PAGE_S)
        for page in cast.pages:
            for text in await page.news():
                stage.ledger.saw(page.name, text, stage.now())
