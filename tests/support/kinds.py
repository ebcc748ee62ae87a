"""The kinds of sessions and waits of a whole gateway, for tests that run units by themselves."""

from collections.abc import Callable
from typing import Final, TypeVar

from gateway.features import COMMANDS, FEATURES
from runtime.engine.feature import kinds_of
from runtime.sessions.unit import Kinds, Unit, in_unit
from runtime.store import Connection

T = TypeVar("T")

__all__ = ["COMMANDS", "FEATURES", "KINDS", "unit_of"]

KINDS: Final[Kinds] = kinds_of(FEATURES)


def unit_of(work: Callable[[Unit], T]) -> Callable[[Connection], T]:
    """A unit's work as a plain function of a connection."""
    return lambda conn: in_unit(conn, KINDS, work)
