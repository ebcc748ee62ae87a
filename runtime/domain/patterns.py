"""Names and the patterns that stand for them, as settings, definitions and calls write them."""

from collections.abc import Sequence
from fnmatch import fnmatchcase


def named(patterns: Sequence[str], *names: str) -> bool:
    """Whether one of the patterns stands for one of the names; `*` and `?` as in a shell."""
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in names)
