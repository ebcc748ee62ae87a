"""What git keeps of a rebase or of picks that stopped, where that would start a program. Pure.

``git rebase --continue`` carries out every ``exec`` line of its list, and starts a strategy of any
name as a program: a name with a slash is a path. None of that is configuration, so nothing can be
set above it.
"""

import re
from collections.abc import Callable, Mapping

from runtime.tools.git_config import BadConfig, entries

_STARTS = frozenset({b"exec", b"x"})
_PLAIN_NAME = re.compile(rb"[a-zA-Z0-9_][a-zA-Z0-9_-]*")


def _list(raw: bytes) -> str:
    words = (line.split(maxsplit=1)[:1] for line in raw.splitlines())
    started = any(word and word[0] in _STARTS for word in words)
    return "it holds an exec line, which starts a program" if started else ""


def _strategy(raw: bytes) -> str:
    name = raw.strip()
    plain = not name or _PLAIN_NAME.fullmatch(name)
    return "" if plain else "it names a strategy by a path, which starts a program"


def _options(raw: bytes) -> str:
    try:
        named = [one.value or "" for one in entries(raw) if one.name == "strategy"]
    except BadConfig as error:
        return str(error)
    return next(filter(None, (_strategy(name.encode()) for name in named)), "")


PROGRESS: Mapping[str, Callable[[bytes], str]] = {
    "rebase-merge/git-rebase-todo": _list,
    "rebase-merge/strategy": _strategy,
    "sequencer/opts": _options,
}
"""Files in a repository's folder, with what says why git must not go on with them; empty where it
may."""
