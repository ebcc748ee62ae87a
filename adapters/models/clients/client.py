"""What a connection to a provider is, whichever it is."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from pydantic import SecretStr
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings as RequestSettings

CONNECT_TIMEOUT_S: Final = 10.0
NO_KEY: Final = "no-key"
"""The libraries refuse an empty key, and the servers that need none ignore this one."""


@dataclass(frozen=True, slots=True)
class Client:
    """A provider library's model, what gives its connections back, what each request carries."""

    model: Model
    close: Callable[[], Awaitable[None]]
    request: RequestSettings = field(default_factory=RequestSettings)


def key_text(key: SecretStr | None) -> str:
    """The key in clear, for a library's constructor."""
    return key.get_secret_value() if key is not None else NO_KEY
