"""The settings of turns, as the engine sees them; `gateway.config` fills them in."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """`window_tokens` bounds history, `max_steps` the iterations (MSG-15), times are in ms."""

    max_steps: int = 40
    window_tokens: int = 32_000
    max_output_tokens: int = 8_192
    approval_expiry_ms: int = 7 * 24 * 3600 * 1000
    timezone: str = "UTC"
