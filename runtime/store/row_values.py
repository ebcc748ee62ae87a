"""Values that are built from rows by the thousand."""

from dataclasses import dataclass
from typing import TypeVar

from typing_extensions import dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def quick(kind: type[T]) -> type[T]:
    """A dataclass with slots that is frozen for the type checker, and not while it runs.

    A frozen one sets each field by a call of ``object.__setattr__``: measured on CPython 3.11, an
    agent with its row (60 fields) takes 8.2 us to make so, and 2.6 us here.
    """
    return dataclass(slots=True, unsafe_hash=True)(kind)
