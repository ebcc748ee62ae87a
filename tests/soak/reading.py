"""Reading what the bot says, as people do: each new message once, wherever it appears.

It keeps nothing of the platforms' servers that a soak of hours would have to pay for.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from tests.soak.places import (
    Place,
    SlackDirect,
    SlackThread,
    TelegramDirect,
    TelegramGroup,
    WebPage,
)
from tests.soak.stage import Stage
from tests.wire.slack import Message as SlackMessage
from tests.wire.telegram import Message as TelegramMessage

Key = TypeVar("Key")
Value = TypeVar("Value")

PAGE_S: Final = 0.5
FOREVER_S: Final = 30 * 24 * 3600.0
KEPT_DELIVERIES: Final = 500
KEPT_YOUNG: Final = 200


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


class Young(Generic[Value]):
    """Messages that may still grow, because the bot writes some of its answers bit by bit."""

    def __init__(self) -> None:
        self._kept: deque[tuple[str, Value, list[str]]] = deque(maxlen=KEPT_YOUNG)

    def put(self, place: str, message: Value, text: str) -> None:
        """Somebody read it as this."""
        self._kept.append((place, message, [text]))

    def changed(self, stage: Stage, read: Callable[[Value], str]) -> bool:
        """Read all of them again; whether one reads otherwise than before."""
        found = False
        for place, message, last in self._kept:
            text = read(message)
            if text != last[0]:
                stage.ledger.grew(place, last[0], text, stage.now())
                last[0], found = text, True
        return found


async def watch_slack(stage: Stage, cast: Cast) -> None:
    """Read Slack until cancelled."""
    slack, seen = stage.town.slack, dict.fromkeys(stage.town.slack.workspace.channels, "")
    young: Young[SlackMessage] = Young()

    def news() -> bool:
        found = young.changed(stage, lambda message: message.visible_text)
        for channel in slack.workspace.channels.values():
            new = _newer(channel.messages, seen.get(channel.id, ""))
            for ts, message in new:
                seen[channel.id], found = ts, True
                place = _slack_place(cast, channel.id, message.thread_ts)
                if message.bot_id is not None and place is not None:
                    young.put(place.name, message, message.visible_text)
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
    young: Young[TelegramMessage] = Young()

    def news() -> bool:
        found = young.changed(stage, lambda message: message.text)
        for key, message in _newer(telegram.world.messages, last[0]):
            last[0], found = key, True
            place = places.get(message.chat.id)
            if message.sender == telegram.bot and place is not None:
                young.put(place.name, message, message.text)
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
