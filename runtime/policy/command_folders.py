"""In which folders the parts of a shell command run, as far as its text tells. Pure.

A `cd` may fail, and what stands behind it after `;` or `||` runs all the same; in a pipeline it
moves a shell of its own. A link makes `name/..` another folder for a shell, which takes the name
away, than for the kernel, which follows it; bash falls back to the kernel's reading. So a part runs
in one of several places, and each place has one or more spellings, which lead to one folder unless
there are links. What a script or another program does to get elsewhere is not in the text.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from posixpath import basename, join, normpath

from runtime.policy.read_only_programs import refused
from runtime.policy.shell_syntax import NotRead, SimpleCommand, Word, simple_commands

Place = tuple[str, ...]
"""The spellings of one folder, relative to where the command begins, or absolute."""
BARE = re.compile(r"[^\s;&|()<>`'\"${}]+")
"""A word of a text that is not read."""
MOST_GUESSED = 64
"""Words of a text that is not read."""
MOST_LENGTH = 512
MOST_STEPS = 32
"""Characters and slashes of a path; what is longer is not looked up, because that takes long."""
_MOST = 12
"""Spellings of one set of places; a text with more of them leads nobody knows where."""
_START: Place = (".",)
_ENTERS = frozenset({"cd", "chdir", "pushd"})
_ANYWHERE = frozenset({"popd", "eval"})
"""Words that lead to a folder which they do not name."""
# `time` is a word of bash's own grammar.
_SAME_SHELL = frozenset({"command", "builtin", "time"})
_LEADS = ("CDPATH", "OLDPWD")
"""Variables that say where a `cd` leads."""
_WAYS = frozenset({"-L", "-P", "-e", "--"})
_NAMING = frozenset(
    {"-C", "--chdir", "--directory", "--git-dir", "--work-tree", "GIT_DIR", "GIT_COMMON_DIR"}
)
"""Words whose value is a folder in which a program runs, or a repository that git uses."""
_STEP = r"(?<![^\s;&|(){}`'\"])(?:cd|chdir|pushd|popd|-C|--git-dir|--chdir|GIT_DIR)(?![\w./-])"
_STEPS = re.compile(_STEP)
_AGAIN = re.compile(
    r"\b(?:for|while|until|select|function|eval|alias|trap|source|xargs|watch)\b|\(\s*\)"
    r"|(?:^|[;&|({\n`]|\bthen\b|\belse\b|\bdo\b)\s*['\"]*\$"
)
"""What may take a step of a text several times: a loop, a function, a command in a variable."""
_TOLD = re.compile(
    _STEP + r"(?:[ \t]+(?:--[ \t]+)?|=)(?P<quote>['\"]?)[\w./][\w./+@%,:-]*(?P=quote)(?=[\s;&|)]|$)"
)
"""A step of a text that is not read, and one that says plainly where it leads."""


@dataclass(frozen=True, slots=True)
class Folders:
    """Where a part of a command may run: in one of `places`, and where not `told`, anywhere."""

    places: tuple[Place, ...] = (_START,)
    told: bool = True

    @property
    def sure(self) -> bool:
        """Whether it is one place, and known to be."""
        return self.told and len(self.places) == 1

    @property
    def spellings(self) -> tuple[str, ...]:
        """Every spelling of every place, each once."""
        return tuple(dict.fromkeys(text for place in self.places for text in place))

    def __or__(self, other: "Folders") -> "Folders":
        """Where one of both may run."""
        return _limited((*self.places, *other.places), told=self.told and other.told)

    def entered(self, target: str) -> "Folders":
        """Where a change to the folder `target` leads."""
        return _limited((_entered(place, target) for place in self.places), told=self.told)

    def lost(self) -> "Folders":
        """The same, and wherever else a step leads that the text does not tell."""
        return Folders(self.places, told=False)


def cleaned(path: str) -> str:
    """A path without `.` and doubled slashes; with every `..`, which the kernel must resolve."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return ("/" if path.startswith("/") else "") + "/".join(parts) or "."


def spellings(path: str) -> Place:
    """A path as the kernel takes it, and as programs do that take `name/..` away themselves."""
    exact = cleaned(path)
    return tuple(dict.fromkeys((exact, normpath(exact))))


def command_folders(simple: Sequence[SimpleCommand]) -> tuple[Folders, ...]:
    """For each simple command where it may run."""
    found: list[Folders] = []
    visited = done = failed = Folders()
    for pipeline in ([simple[at] for at in places] for places in pipelines(simple)):
        joint = pipeline[0].joint
        here = done if joint == "&&" else failed if joint == "||" else done | failed
        found += [here] * len(pipeline)
        moved = here
        for one in pipeline:
            moved = moved | _moved(here, one.words, visited)
        if len(pipeline) == 1:
            then, otherwise = _moved(here, pipeline[0].words, visited), here
        else:
            # Most shells run each part in a shell of its own, some the last part in their own.
            then = otherwise = moved
        visited |= moved
        if joint == "&&":
            done, failed = then, failed | otherwise
        elif joint == "||":
            done, failed = done | then, otherwise
        else:
            done, failed = then, otherwise
    return tuple(found)


def guessed_folders(text: str) -> Folders:
    """Where the parts of a text may run that is not read."""
    words = BARE.findall(text)
    found = Folders()
    for word, target in pairwise((*words[:MOST_GUESSED], "")):
        flag, equals, value = word.partition("=")
        if word in _ENTERS | _NAMING:
            found |= found.entered(target)
        elif equals and flag in _NAMING:
            found |= found.entered(value)
    steps = len(_STEPS.findall(text))
    if not steps:
        return found
    plain = steps == len(_TOLD.findall(text)) and len(words) <= MOST_GUESSED
    plain = plain and _AGAIN.search(text) is None
    return found if plain and not any(name in text for name in _LEADS) else found.lost()


def folders_begun(command: str) -> Folders:
    """The folders in which programs of a command run that may start git, with the repositories that
    it names."""
    try:
        simple = simple_commands(command)
    except NotRead:
        return guessed_folders(command)
    found = Folders(())
    for one, here in zip(simple, command_folders(simple), strict=True):
        if basename(one.words[0].text) == "git" or refused(one.words) is not None:
            found |= _named(here, one.words)
    return found


def _named(here: Folders, words: Sequence[Word]) -> Folders:
    """Where a program runs, and goes by its own arguments, each from the one before."""
    at, found = here, here
    for word, following in pairwise((*words, Word("", ""))):
        flag, equals, value = word.text.partition("=")
        if flag in _NAMING and (equals or following.text):
            target = value if equals else following.text
            entered = at.entered(target)
            if word.pattern or (following.pattern and not equals):
                entered = entered.lost()
            found |= entered
            at = entered if flag == "-C" else at
        elif re.fullmatch("-[a-zA-Z]*c", word.text) and following.text:
            inner = folders_begun(following.text)
            for path in inner.spellings:
                found |= at.entered(path)
            found = found if inner.told else found.lost()
    return found


def pipelines(simple: Sequence[SimpleCommand]) -> list[list[int]]:
    """The places of the parts, those of one pipeline together."""
    found: list[list[int]] = []
    for at, one in enumerate(simple):
        if found and one.joint == "|":
            found[-1].append(at)
        else:
            found.append([at])
    return found


def _moved(here: Folders, words: Sequence[Word], visited: Folders) -> Folders:
    """Where the shell is behind a simple command that succeeded."""
    texts = [word.text for word in words]
    if any(name in text for text in texts for name in _LEADS):
        return here.lost()
    if texts[0] in _SAME_SHELL:
        steps = _ENTERS | _ANYWHERE
        place = next((at for at, text in enumerate(texts) if text in steps), None)
        return here if place is None else _moved(here, words[place:], visited) | here
    if texts[0] in _ANYWHERE:
        return (here | visited).lost()
    if texts[0] not in _ENTERS:
        return here
    targets = [word for word in words[1:] if word.text not in _WAYS]
    if len(targets) != 1 or targets[0].pattern or not targets[0].text:
        return here.lost()
    target = targets[0].text
    if target == "-":
        before = here | visited
        return before if len(before.places) > 1 else before.lost()
    if target.startswith(("-", "~")) or (texts[0] == "pushd" and target.startswith("+")):
        return here.lost()
    return here.entered(target)


def _entered(place: Place, target: str) -> Place:
    paths = [join(spelling, target) for spelling in place]
    shells = [normpath(cleaned(path)) for path in paths]
    return tuple(dict.fromkeys((*shells, *map(cleaned, paths))))


def _limited(places: Sequence[Place] | Iterator[Place], *, told: bool) -> Folders:
    kept, amount = dict[Place, None](), 0
    for place in dict.fromkeys(places):
        if any(len(path) > MOST_LENGTH or path.count("/") > MOST_STEPS for path in place):
            told = False
            continue
        amount += len(place)
        if amount > _MOST:
            return Folders(tuple(kept), told=False)
        kept[place] = None
    return Folders(tuple(kept), told)
