"""What a button of ours says when it is pressed: signed, and short enough for Telegram. Pure.

Callback data comes back from the client of whoever pressed, which may be a changed one, so it
names a card and a choice only and carries a signature under a key that follows from the token.
The signature says that the gateway wrote it; who may press is the engine's to decide. Shape:
``<open call>:<choice>:<signature>`` within the 64 bytes of ``callback_data`` in the Bot API.
"""

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass

MOST_BYTES = 64
_PURPOSE = b"gatehouse telegram callback data v1"
# 96 bits, 16 characters: nobody may try out as many through a rate-limited bot.
_SIGNATURE_BYTES = 12
_DATA = re.compile(r"(?P<call>[\w.-]+):(?P<choice>[a-z]+|\d{1,3}):(?P<mark>[\w-]{16})", re.ASCII)
_SHORT = {
    "once": "o",
    "session": "s",
    "approve": "a",
    "deny": "d",
    "pause": "p",
    "resume": "r",
    "cancel": "c",
    "snooze": "z",
    "snoozelong": "zz",
}
_LONG = {short: choice for choice, short in _SHORT.items()}


@dataclass(frozen=True, slots=True)
class Chosen:
    """The card and what was chosen on it: a `choice`, or the number of an `option` from 1."""

    open_call_id: str
    choice: str = ""
    option: int | None = None


class Seal:
    """Signs the buttons of one bot and knows them again."""

    def __init__(self, token: str) -> None:
        self._key = hmac.digest(token.encode(), _PURPOSE, hashlib.sha256)

    def write(self, chosen: Chosen) -> str | None:
        """Callback data; None where it would be too long or the choice is none of ours."""
        option = chosen.option
        word = _SHORT.get(chosen.choice, "") if option is None else str(option)
        stem = f"{chosen.open_call_id}:{word}"
        data = f"{stem}:{self._sign(stem)}"
        known = word and _DATA.fullmatch(data) is not None
        return data if known and len(data.encode()) <= MOST_BYTES else None

    def read(self, data: str) -> Chosen | None:
        """What `write` made `data` of; None where it did not."""
        found = _DATA.fullmatch(data)
        if found is None:
            return None
        stem = f"{found['call']}:{found['choice']}"
        if not hmac.compare_digest(found["mark"], self._sign(stem)):
            return None
        if found["choice"].isdecimal():
            return Chosen(found["call"], option=int(found["choice"]))
        choice = _LONG.get(found["choice"])
        return None if choice is None else Chosen(found["call"], choice)

    def _sign(self, stem: str) -> str:
        digest = hmac.digest(self._key, stem.encode(), hashlib.sha256)
        return base64.urlsafe_b64encode(digest[:_SIGNATURE_BYTES]).decode()
