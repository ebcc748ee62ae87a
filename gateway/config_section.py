"""The base of every table of `gatehouse.toml`."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """The base of every table: frozen, and closed to keys that mean nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid")
