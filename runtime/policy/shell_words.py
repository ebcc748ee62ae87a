"""Whether a shell command may run a certain program, in whatever dress. Pure.

For rules that deny or ask, where doubt means yes. It reads no shell grammar: quotes are dropped,
the text is cut wherever a command could begin, and an expansion in a command's place could be
anything. A text is read in several ways: as it is, and without what may stand between two words of
one command (redirections, quoted blanks, substitutions). It refuses to promise that nothing was
hidden (``sh script``, an encoded text): commands are bounded by the sandbox, and these rules are
for what is said in the open.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from posixpath import basename

_QUOTES = re.compile(r"[\"'\\]")
_QUOTED = re.compile(
    r"""(?P<comment>(?<![^\s;&|()])\#[^\n]*)|\\[\s\S]|'[^']*'|"(?:[^"\\]|\\[\s\S])*\""""
)
_BLANK = re.compile(r"\s")
_SUBSTITUTION = re.compile(r"[$?*+@!]\([^()]*\)")
_OLD_SUBSTITUTION = re.compile(r"`[^`]*`")
_DEEPEST = 8
"""Substitutions inside of each other that are looked at."""
_REDIRECTION = re.compile(
    r"(?:(?<!\S)(?:\d+|\{\w+\}))?(?:&>>?|[<>]&|<<<|<<-?|<>|>>|>\||[<>])[ \t]*[^\s;&|()<>]+"
)
_BEGINS = re.compile(r"[;&|\n\r()`<>]|\$\(")
_PIECES = re.compile(r"[;&|\n\r()`<>{}$!,]")
_EXPANDS = re.compile(r"[$*?]|\[[^\[\]]+\]|\{[^{}]*(?:,|\.\.)")
_STARTERS = (
    *("sudo", "doas", "env", "exec", "command", "builtin", "eval"),
    *("nohup", "nice", "ionice", "timeout", "xargs", "setsid", "stdbuf"),
)
_BEFORE = re.compile(
    rf"[A-Za-z_]\w*\+?=.*|!|\{{|if|then|elif|else|while|until|do|time|{'|'.join(_STARTERS)}"
)
_NUMBER = re.compile(r"[\d.]+[smhd]?")
_SPAN = 64
"""Words behind a program's name that are looked at; what is longer is doubtful."""
_MOST_STARTS = 500
"""Places of one part at which the program is named; a part with more of them is doubtful."""


def may_run(command: str, wanted: Sequence[str]) -> bool:
    """Whether any part of `command` may begin with the words `wanted`, options in between."""
    if not wanted:
        return True
    return any(_may_run(one, wanted) for one in _readings(command))


@lru_cache(maxsize=8)
def _readings(command: str) -> tuple[str, ...]:
    """The text without quotes, in each way in which it may be read."""
    text = command.replace("\\\n", "")
    bare = [_QUOTES.sub("", one) for one in (text, _QUOTED.sub(_without_blanks, text))]
    return tuple(dict.fromkeys(reading for one in bare for reading in _steps(one)))


def _without_blanks(found: re.Match[str]) -> str:
    """What is quoted is a part of one word."""
    return "" if found["comment"] is not None else _BLANK.sub("_", found[0])


def _steps(plain: str) -> Iterator[str]:
    """A text as it is, and without redirections; and the same each time that an expansion takes the
    place of its innermost substitutions."""
    yield plain
    for _ in range(_DEEPEST):
        yield _REDIRECTION.sub(" ", plain)
        found = _SUBSTITUTION.sub("$_", plain)
        if found == plain:
            found = _OLD_SUBSTITUTION.sub("$_", plain)
        if found == plain:
            return
        plain = found
    yield _REDIRECTION.sub(" ", plain)


def _may_run(plain: str, wanted: Sequence[str]) -> bool:
    begun = _BEGINS.split(plain)
    # Most commands hold neither the name nor an expansion.
    if wanted[0] in plain:
        cuts = (*begun, *_PIECES.split(plain))
        if any(_names(part.split(), wanted) for part in cuts):
            return True
    return _EXPANDS.search(plain) is not None and any(
        _could_be(part.split(), wanted) for part in begun
    )


def _names(words: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether the program is named anywhere: behind ``sudo``, ``xargs``, ``env``, ``sh -c``."""
    starts = [at for at, word in enumerate(words, start=1) if _is(word, wanted[0])]
    if len(starts) > _MOST_STARTS:
        return True
    if starts and words[0] == "alias":
        # What stands behind it comes later.
        return True
    return any(_follow(words[at : at + _SPAN + 1], wanted[1:]) for at in starts)


def _is(word: str, name: str) -> bool:
    """Whether a word is a program's name, also as a value: ``alias x=rm``."""
    return basename(word) == name or basename(word.rpartition("=")[2]) == name


def _could_be(words: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether an expansion stands where the program's name belongs, also behind programs that start
    another, with their options and numbers."""
    reached, starts = {0}, False
    for place, word in enumerate(words[:_SPAN]):
        if place not in reached:
            continue
        if _BEFORE.fullmatch(word) or (starts and _NUMBER.fullmatch(word)):
            starts = starts or word in _STARTERS
            reached.add(place + 1)
        elif starts and word.startswith("-"):
            reached |= {place + 1, place + 2}
        elif _EXPANDS.search(word) is not None and _follow(
            words[place + 1 : place + _SPAN + 2], wanted[1:]
        ):
            return True
    return False


def _follow(words: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether `words` go on with `wanted`; options, each with a value or none, may come between."""
    places = {0}
    for word in wanted:
        reached = set(places)
        for place in range(min(places, default=0), len(words)):
            if place in reached and words[place].startswith("-"):
                reached |= {place + 1, place + 2}
        if any(place >= _SPAN for place in reached):
            return True
        places = {
            place + 1
            for place in reached
            if place < len(words)
            and (words[place].rpartition("=")[2] == word or _EXPANDS.search(words[place]))
        }
    return bool(places)
