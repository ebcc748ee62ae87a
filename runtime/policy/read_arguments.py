"""What reads and changes nothing, and which of its arguments are paths: for the risk line. Pure.

It is wider than `read_only_programs`, because nothing is let through by it: what it says is one
sentence on a card. What is not known here counts as a program that may do anything, and every
argument as a path.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from runtime.policy.code_programs import INTERPRETERS
from runtime.policy.program_flags import Given, Program, names
from runtime.policy.read_only_git import SUBCOMMANDS
from runtime.policy.read_only_programs import PROGRAMS, refused
from runtime.policy.shell_syntax import NotRead, Word

_ALL: Final = 1_000


@dataclass(frozen=True, slots=True)
class _Texts:
    """Arguments of a program that reads which are no paths: the first `operands`, unless one of
    the flags `instead` takes their place, and the values of `flags`."""

    operands: int = 0
    flags: frozenset[str] = frozenset()
    instead: frozenset[str] = frozenset()


def _flags(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PATTERN: Final = _flags("-e --regexp")
_GREP: Final = _Texts(
    1, _PATTERN | names("include exclude exclude-dir label"), _PATTERN | _flags("-f --file")
)
_LOG: Final = _Texts(
    flags=names("grep author committer format pretty since until after before date") | {"-S", "-G"}
)
_TEXTS: Final[dict[str, _Texts]] = {
    **dict.fromkeys(("grep", "egrep", "fgrep"), _GREP),
    "rg": _Texts(
        1,
        _PATTERN | _flags("-r --replace -g --glob --iglob"),
        _PATTERN | _flags("-f --file --files --type-list"),
    ),
    "sed": _Texts(1, _flags("-e --expression"), _flags("-e --expression")),
    **dict.fromkeys(("echo", "tr", "basename", "dirname", "expr", "seq", "sleep"), _Texts(_ALL)),
    "cut": _Texts(flags=_flags("-d --delimiter --output-delimiter")),
    "sort": _Texts(flags=_flags("-t --field-separator -k --key")),
    "column": _Texts(flags=_flags("-s -o")),
    "paste": _Texts(flags=_flags("-d")),
    "date": _Texts(_ALL, _flags("-d --date")),
    "stat": _Texts(flags=_flags("-c --format --printf")),
    "tree": _Texts(flags=_flags("-P -I")),
    "git grep": _Texts(1, _PATTERN, _PATTERN | _flags("-f")),
    **dict.fromkeys(("git log", "git show", "git diff", "git shortlog", "git rev-list"), _LOG),
}
_SPOKEN: Final = frozenset({"echo", "printf", "true", "false", ":"})
"""Of all that these are told, nothing is opened."""
_MESSAGE: Final = re.compile("-[aqsvn]*m|--message")
_MESSAGE_VERBS: Final = frozenset({"commit", "merge", "tag", "stash"})
_VERSION: Final = INTERPRETERS | _flags("git pip pip3 docker kubectl terraform curl wget tar rsync")
"""Programs that say their version without a look at the folder where they start."""
_FOLLOWS: Final = frozenset({"-f", "-F", "--follow", "--retry"})
_BASE64: Final = Program("di", valued="w", words=names("decode ignore-garbage wrap"))
_OTHER_SUBSTITUTION: Final = re.compile(
    r"s([#|,:@!%])(?:(?!\1)[^\\\n])*\1(?:(?!\1)[^\\\n])*\1[gpIi\d]*"
)
"""A substitution of sed's whose parts are not held apart by a slash; as harmless as one that is."""
_AWK_MAY_ACT: Final = re.compile("system|getline|ARG")
_AWK_COMPARES: Final = re.compile(r"[\w$\s&=!.()<>+*%-]*(?:\{(?P<body>[^{}]*)\})?\s*")
"""A program whose angle brackets stand in front of its one action, where nothing can be written."""


def only_reads(words: Sequence[Word]) -> bool:
    """Whether a simple command changes nothing, starts nothing and connects to nothing."""
    if refused(tuple(words)) is None:
        return True
    name, arguments = words[0].text, [word.text for word in words[1:]]
    if any(word.pattern for word in words[:2]):
        return False
    if len(arguments) == 1 and name in _VERSION and arguments[0] == "--version":
        return True
    more = _MORE.get(name)
    return more is not None and more(words)


def paths(words: Sequence[Word]) -> Iterator[str]:
    """The parts of a simple command's arguments that may be paths."""
    given = _given(words)
    if given is not None:
        name, found = given
        texts = _TEXTS[name]
        told = {flag for flag, _ in found.flags}
        skipped = 0 if told & texts.instead else texts.operands
        yield from (value for flag, value in found.flags if flag not in texts.flags)
        operands = found.operands[skipped:]
        yield from (word.text if word.variables else word.known for word in operands)
        return
    parts = _parts_of_find(words) if words[0].text == "find" else None
    for started in parts[1:] if parts is not None else ():
        yield from paths(started)
    if parts is not None:
        words = parts[0]
    skip = _places_of_texts(words)
    for place, word in enumerate(words[1:], 1):
        if place not in skip:
            path = word.text if word.variables else word.known
            yield path
            yield path.rpartition("=")[2]
            if path.startswith("-"):
                yield path[2:]


def _given(words: Sequence[Word]) -> tuple[str, Given] | None:
    """The name under which `_TEXTS` knows a command that only reads, and what it is given."""
    if refused(tuple(words)) is not None:
        return None
    name = words[0].text
    if name in _SPOKEN:
        return "echo", Given((), tuple(words[1:]))
    program, arguments = PROGRAMS.get(name), words[1:]
    if name == "git" and arguments:
        name, program = f"git {arguments[0].text}", SUBCOMMANDS.get(arguments[0].text)
        arguments = arguments[1:]
    if program is None or name not in _TEXTS:
        return None
    try:
        return name, program.read(arguments)
    except NotRead:
        return None


def _places_of_texts(words: Sequence[Word]) -> Sequence[int]:
    """Where arguments are that are known to be no paths, though their program may do more."""
    name, verb = words[0].text, words[1].text if len(words) > 1 else ""
    if name == "awk" and _awk(words):
        return range((_program_of_awk(words) or 0) + 1)
    if name == "sed":
        place = _script_of_sed(words)
        return [place] if place is not None and _prints(words[place]) else []
    if name == "git" and verb in _MESSAGE_VERBS:
        told = [place for place, word in enumerate(words[2:], 2) if _MESSAGE.fullmatch(word.text)]
        return [place + 1 for place in told[:1]]
    return []


def _script_of_sed(words: Sequence[Word]) -> int | None:
    """Where the script stands, if no flag takes its place."""
    for place, word in enumerate(words[1:], 1):
        if not word.text.startswith("-"):
            return place
        if not re.fullmatch("-[inErsuz]+", word.text):
            return None
    return None


def _prints(script: Word) -> bool:
    """Whether a script of sed's changes lines, and does nothing else."""
    sed = Word("sed", "sed")
    known = not script.pattern and _OTHER_SUBSTITUTION.fullmatch(script.text) is not None
    return known or refused((sed, script)) is None


def _sed(words: Sequence[Word]) -> bool:
    place = _script_of_sed(words)
    if place is None or not _prints(words[place]):
        return False
    rest = (*words[:place], Word("p", "p"), *words[place + 1 :])
    return refused(rest) is None


def _program_of_awk(words: Sequence[Word]) -> int | None:
    place = 1
    while place < len(words) and words[place].text.startswith("-"):
        if not re.fullmatch("-[Fv].*", words[place].text, re.DOTALL):
            return None
        place += 2 if len(words[place].text) == 2 else 1
    return place if place < len(words) and not words[place].pattern else None


def _awk(words: Sequence[Word]) -> bool:
    place = _program_of_awk(words)
    if place is None:
        return False
    program = words[place].text
    compares = _AWK_COMPARES.fullmatch(program)
    action = program if compares is None else compares["body"] or ""
    return _AWK_MAY_ACT.search(program) is None and not any(mark in action for mark in "|<>@")


def _find(words: Sequence[Word]) -> bool:
    """`find` that starts programs which read, whatever files it finds for them."""
    parts = _parts_of_find(words)
    if parts is None:
        return False
    xargs = Word("xargs", "xargs")
    found = (refused((xargs, *started)) for started in parts[1:])
    return refused(tuple(parts[0])) is None and all(reason is None for reason in found)


def _parts_of_find(words: Sequence[Word]) -> Sequence[Sequence[Word]] | None:
    """A call of `find` without what it starts, and that; None where its end is missing."""
    rest, left = list[Word](), list(reversed(words))
    parts: list[Sequence[Word]] = [rest]
    while left:
        word = left.pop()
        if word.text not in ("-exec", "-execdir"):
            rest.append(word)
            continue
        started = list[Word]()
        while left and left[-1].text not in (";", "+"):
            started.append(left.pop())
        if not left or not started:
            return None
        left.pop()
        parts.append(started)
    return parts


def _tail(words: Sequence[Word]) -> bool:
    return refused(tuple(word for word in words if word.text not in _FOLLOWS)) is None


def _git(words: Sequence[Word]) -> bool:
    """`git config KEY` reads a setting."""
    texts = [word.text for word in words[1:]]
    return len(texts) == 2 and texts[0] == "config" and "." in texts[1] and texts[1][0] != "-"


_MORE: Final[dict[str, Callable[[Sequence[Word]], bool]]] = {
    "awk": _awk,
    "sed": _sed,
    "find": _find,
    "tail": _tail,
    "git": _git,
    "base64": lambda words: _BASE64.refuses(words[1:]) is None,
}
