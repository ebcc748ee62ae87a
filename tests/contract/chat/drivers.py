"""Each platform of the conformance suite: what it has, and why it has not the rest.

A check runs on every platform that has the features it names. What a platform lacks is stated with
the reason, never left to be guessed; the suite refuses a description with a hole.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.contract.chat.local import LACKS, local
from tests.contract.chat.platform import Platform
from tests.contract.chat.platforms import fake, mailbox, slack, telegram

FEATURES: Final[Mapping[str, str]] = {
    "in": "a person writes, and what was not stored is delivered again",
    "edits": "a person changes what they said, and the bot is told",
    "deletes": "a person takes back what they said, and the bot is told",
    "files in": "a person sends a file",
    "limit": "a post is refused for some seconds",
    "refuse": "a post is refused for good",
    "lose": "a post is made, and its answer is lost",
    "long": "a long message needs several posts",
    "change": "a post can be changed",
    "lookup": "a post can be found again by its outbox id",
    "absent": "that a post was never made can be seen",
    "cards": "approvals and questions are shown with their choices",
    "presses": "a choice is pressed, and arrives as a press",
    "strangers": "others see the cards, and may press",
    "streams": "a text grows while it is written",
    "files out": "the bot sends a file",
}
"""What a platform may have, by the name that the checks use."""


@dataclass(frozen=True, slots=True)
class Driver:
    """How a platform is made, and the features it `lacks`, each with its reason."""

    make: Callable[[Path], AbstractAsyncContextManager[Platform]]
    lacks: Mapping[str, str] = field(default_factory=dict)

    @property
    def has(self) -> frozenset[str]:
        """Every feature that is not named as lacking."""
        return frozenset(FEATURES) - frozenset(self.lacks)


_ENGINE: Final = "the engine's own tests do without it"
_FAKE: Final = dict.fromkeys(
    ("files in", "files out", "lose", "long", "cards", "presses", "strangers"), _ENGINE
)
_TELEGRAM: Final = {
    "deletes": "no bot is told",
    "lookup": "a bot cannot read a chat's history, and a post carries nothing of ours",
    "absent": "as for lookup",
}
_MAILBOX: Final = {
    "limit": "a folder has none",
    "lose": "a file is there or is not",
    "cards": "a file has no buttons",
    "presses": "a file has no buttons",
    "strangers": "a file has no buttons",
    "streams": "a file is read when it is whole",
    "files in": "left out to keep the example short",
}
DRIVERS: Final[Mapping[str, Driver]] = {
    "fake": Driver(lambda _path: fake(), _FAKE),
    # Each way in with another view: what the suite checks hangs on one of the two at most.
    "slack socket": Driver(lambda _path: slack("socket", "agent")),
    "slack http": Driver(lambda _path: slack("http", "assistant")),
    "telegram polling": Driver(lambda _path: telegram("polling"), _TELEGRAM),
    "telegram webhook": Driver(lambda _path: telegram("webhook"), _TELEGRAM),
    "web": Driver(lambda path: local("web", path), LACKS),
    "terminal": Driver(lambda path: local("terminal", path), LACKS),
    "mailbox": Driver(mailbox, _MAILBOX),
}


def that_have(*features: str) -> list[str]:
    """The platforms that have all of these. Raises `KeyError` for a feature that there is not."""
    for feature in features:
        FEATURES[feature]
    return [name for name, driver in DRIVERS.items() if driver.has >= set(features)]
