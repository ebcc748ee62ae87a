"""The settings for people and programs: effective values with their origin, and the JSON schema.

Pure. Secrets never leave it.
"""

import json
import re
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePath

from pydantic import JsonValue, SecretStr

from gateway.config import Config
from gateway.config_children import AgentDepth
from gateway.config_keys import Path as Key
from gateway.config_keys import leaves
from gateway.config_model import Settings

MASK = "********"


@dataclass(frozen=True, slots=True)
class Row:
    """One key. `value` is for programs, `shown` as it would be written in a file."""

    key: str
    value: JsonValue
    origin: str

    @property
    def shown(self) -> str:
        """The value as TOML writes it, near enough for people; unset is nothing."""
        return "(unset)" if self.value is None else json.dumps(self.value, ensure_ascii=False)


def rows(config: Config) -> list[Row]:
    """Every key in the order of the sections."""
    return [_row(config, path) for path, _ in leaves()]


def schema() -> dict[str, object]:
    """JSON schema of the file, for editors."""
    return Settings.model_json_schema()


def masked_url(url: str) -> str:
    """An address without the password in it."""
    return re.sub(r"(://[^/@:]*:)[^@]*(@)", rf"\g<1>{MASK}\g<2>", url)


def _row(config: Config, path: Key) -> Row:
    value: object = config.settings
    for name in path:
        value = getattr(value, name)
    origin = config.origin(path)
    if path == ("database", "url"):
        value = masked_url(config.database_url)
    elif path == ("workspace", "path"):
        value = config.workspace
    return Row(".".join(path), _plain(value), origin)


def _plain(value: object) -> JsonValue:
    if isinstance(value, SecretStr):
        return MASK
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        # What commands are granted may be a secret of theirs.
        return {
            str(name): {"model": one.model} if isinstance(one, AgentDepth) else MASK
            for name, one in value.items()
        }
    if value is None or isinstance(value, str | int | float | bool):
        return masked_url(value) if isinstance(value, str) else value
    return str(value)
