"""The settings of turns, as the engine sees them; `gateway.config` fills them in."""

from dataclasses import dataclass, field
from typing import Final

MEGABYTE: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class AttachmentSettings:
    """How much of what people send is taken: bytes of one file, files and bytes of one message,
    bytes of all that a session keeps.

    `shown` files at most go along with a request; `timeout_s` is for all files of a message.
    """

    file_bytes: int = 20 * MEGABYTE
    files: int = 10
    message_bytes: int = 50 * MEGABYTE
    session_bytes: int = 1000 * MEGABYTE
    shown: int = 20
    timeout_s: float = 120.0


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """`window_tokens` bounds history, `max_steps` the iterations (MSG-15), times are in ms."""

    max_steps: int = 40
    window_tokens: int = 32_000
    max_output_tokens: int = 8_192
    approval_expiry_ms: int = 7 * 24 * 3600 * 1000
    timezone: str = "UTC"
    attachments: AttachmentSettings = field(default_factory=AttachmentSettings)

    def steps_of(self, own: int | None) -> int:
        """The steps of one run of a session whose own limit is `own`, if any."""
        return self.max_steps if own is None else min(own, self.max_steps)
