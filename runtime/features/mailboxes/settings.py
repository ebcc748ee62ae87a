"""What the operator may set about mailboxes."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class MailboxSettings:
    """`most_waiting` messages may wait for one agent. `most_hops` is how often agents may pass
    messages on before something else than a message begins a run. `allowed` are pairs of
    conversations: agents of the first one's tree may write to agents of the second one's."""

    most_waiting: int = 100
    most_hops: int = 20
    allowed: frozenset[tuple[str, str]] = frozenset()


USUAL: Final = MailboxSettings()
