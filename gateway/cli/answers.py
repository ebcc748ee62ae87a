"""What a gateway answers to a command, and the two ways in which it does not. Loads nothing."""

from dataclasses import dataclass
from typing import Final

_LISTS: Final = {
    "session": "gatehouse sessions list",
    "run": "gatehouse runs list",
    "pairing": "gatehouse pairing list",
    "schedule": "gatehouse schedules list",
    "task": "gatehouse tasks list SESSION",
}
"""The command that lists what a person misspelt, by its kind."""


class Unreachable(Exception):
    """No gateway answers at the address."""


@dataclass
class Refused(Exception):
    """The gateway answered that it will not; `status` is HTTP's, `code` the gateway's word, `kind`
    what it did not find."""

    status: int
    detail: str
    code: str = ""
    kind: str = ""

    def __str__(self) -> str:
        if self.status == 401:
            return (
                f"{self.detail} Name the gateway's token in GATEHOUSE_TOKEN, or unset it for the "
                "gateway of this home."
            )
        if self.kind in _LISTS:
            return f"{self.detail}. `{_LISTS[self.kind]}` shows those that there are."
        return self.detail
