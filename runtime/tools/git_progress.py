"""What git keeps of a work that stopped, where that would start a program. Pure.

``git rebase --continue`` carries out every ``exec`` line of its list, and starts a strategy of any
name as a program: a name with a slash is a path, and ``index`` takes its options for one. Some
strategies are scripts that read an option as shell. None of that is configuration, so nothing can
be set above it.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from runtime.tools.git_config import BadConfig, entries
from runtime.tools.git_keys import STRATEGIES

_EXEC: Final = re.compile(rb"(?:\A|[\r\n])[ \t\v\f]*(?:exec|x)(?:[\s\0]|\Z)")
_PLAIN_OPTIONS: Final = re.compile(rb"[a-zA-Z0-9_=:%.,/~+'\s-]*")
_QUOTED: Final = re.compile(rb"(?:\s|'[^']*'|\\['!])*")


def _list(raw: bytes) -> str:
    return "it holds an exec line, which starts a program" if _EXEC.search(raw) else ""


def _strategy(raw: bytes) -> str:
    known = raw.strip().decode(errors="replace") in {"", *STRATEGIES}
    return "" if known else "it names a strategy that is not git's own, which starts a program"


def _options(raw: bytes) -> str:
    plain = _PLAIN_OPTIONS.fullmatch(raw)
    return "" if plain else "it holds an option that a script may read as shell, a program's start"


def _picks(raw: bytes) -> str:
    judges = {"strategy": _strategy, "strategy-option": _options}
    try:
        kept = [(judges[one.name], one.value or "") for one in entries(raw) if one.name in judges]
    except BadConfig as error:
        return str(error)
    return next(filter(None, (judged(value.encode()) for judged, value in kept)), "")


def _paths(raw: bytes) -> str:
    quoted = _QUOTED.fullmatch(raw)
    return "" if quoted else "it holds paths that a script would read as shell, a program's start"


PROGRESS: Final[Mapping[str, Callable[[bytes], str]]] = {
    "rebase-merge/git-rebase-todo": _list,
    "rebase-merge/strategy": _strategy,
    "rebase-merge/strategy_opts": _options,
    "sequencer/opts": _picks,
    # Up to git 2.34, `git bisect view` reads it as shell.
    "BISECT_NAMES": _paths,
}
"""Files in a repository's folder, with what says why git must not go on with them; empty where it
may."""
GONE_ON_BY_SCRIPTS: Final[Mapping[str, str]] = {
    "rebase-merge/rewritten": (
        "it is of a rebase by `--preserve-merges`, which git before 2.34 goes on with by a script "
        "that reads what is kept there as shell, and starts programs by it"
    ),
    "hooks/reference-transaction": (
        "`git bisect` and others start this hook before they read where hooks may be"
    ),
    "gitweb": "`git instaweb` starts a server by what is in there",
}
"""Places in a repository's folder with which git must not go on, whatever they hold, and why."""
