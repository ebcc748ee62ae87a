"""Reading a configuration without touching the machine's own."""

from collections.abc import Callable, Mapping
from pathlib import Path

from gateway.config import Config, ConfigError, load

Read = Callable[..., Config]


def reader(home: Path) -> Read:
    """`read(text, variables)`: the settings of a file in `home` and of these variables."""

    def read(text: str = "", variables: Mapping[str, str] | None = None) -> Config:
        home.mkdir(exist_ok=True)
        (home / "gatehouse.toml").write_text(text, encoding="utf-8")
        return load(environment={"GATEHOUSE_HOME": str(home), **(variables or {})})

    return read


def problems(read: Read, text: str = "", variables: Mapping[str, str] | None = None) -> list[str]:
    """What is wrong with a configuration, a sentence each; nothing where it can be used."""
    try:
        read(text, variables)
    except ConfigError as error:
        return [str(one) for one in error.problems]
    return []
