"""Rules: patterns such as ``exec(git status:*)``, ``write_file(notes/**)``, ``mcp__github__*``.

A pattern names a tool (with ``*`` as a wildcard) and, in brackets, what the call is about:
a workspace path as a glob, a URL's host, or a command's beginning (``git status:*``).
``tool(=text)`` is held to the whole text.
"""

import re
import shlex
from dataclasses import dataclass
from fnmatch import fnmatchcase

from runtime.domain.errors import InvalidInput
from runtime.domain.name_spellings import folded_name
from runtime.domain.printable import quoted
from runtime.policy.shell_words import may_run

_PATTERN = re.compile(r"(?P<tool>[A-Za-z0-9_*?\-]+)(?:\((?P<subject>.*)\))?", re.DOTALL)
_META = re.compile(r"[;&|<>$`\\(){}\n\r*?\[\]~#!\"']")
_WILD = re.compile(r"[*?]")
_SEARCHES = frozenset({"grep", "glob"})
"""Tools that read everything below the folder that they name."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One parsed pattern; `text` is it as the operator wrote it."""

    text: str
    tool: str
    subject: str | None

    @classmethod
    def parse(cls, text: str) -> "Rule":
        """Raises `InvalidInput`, naming the pattern."""
        found = _PATTERN.fullmatch(text.strip())
        if found is None:
            raise InvalidInput(
                f"policy rule {quoted(text)}", "must look like tool or tool(pattern)"
            )
        return cls(text.strip(), found["tool"], found["subject"])

    def allows(self, tool: str, subject: str) -> bool:
        """Whether the rule surely covers the whole call: doubt means no."""
        if not fnmatchcase(tool, self.tool):
            return False
        if self.subject is None:
            return True
        if self.subject.startswith("="):
            return self.subject[1:] == subject
        if self.subject.endswith(":*"):
            return _begins(subject, self.subject[:-2])
        if tool == "exec":
            return self.subject == subject
        return _glob(self.subject, subject)

    def names(self, place: str) -> bool:
        """Whether the pattern says `place` itself, or something in it, before any wildcard."""
        literal = _WILD.split((self.subject or "").removeprefix("="), maxsplit=1)[0]
        return literal == place or literal.startswith(f"{place}/")

    @property
    def command(self) -> str | None:
        """The command, or its beginning, that the rule is about; None for other rules."""
        if self.subject is None or not fnmatchcase("exec", self.tool):
            return None
        return self.subject.removeprefix("=").removesuffix(":*")

    @property
    def beginning(self) -> str | None:
        """The words that a command must begin with; None where the rule is about a whole one."""
        prefixed = self.subject is not None and self.subject.endswith(":*")
        return self.command if prefixed and not (self.subject or "").startswith("=") else None

    def touches(self, tool: str, subject: str) -> bool:
        """Whether the rule may concern the call, in any part of it and any spelling of its names:
        doubt means yes."""
        if self.allows(tool, subject) or self._folded().allows(tool, folded_name(subject)):
            return True
        if not fnmatchcase(tool, self.tool) or self.subject is None:
            return False
        pattern, subject = folded_name(self.subject), folded_name(subject)
        if pattern.endswith(":*"):
            return may_run(subject, pattern[:-2].split())
        if tool == "exec":
            return pattern in subject or may_run(subject, pattern.split())
        return _climbs(subject) or (tool in _SEARCHES and _may_hold(subject, pattern))

    def _folded(self) -> "Rule":
        """The rule for every spelling of the names in it."""
        if self.subject is None or self.subject.isascii():
            return self
        return Rule(self.text, self.tool, folded_name(self.subject))


def _begins(command: str, prefix: str) -> bool:
    """A command of plain words only: anything that a shell would interpret is not covered."""
    if _META.search(command):
        return False
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    wanted = prefix.split()
    return words[: len(wanted)] == wanted


def _climbs(subject: str) -> bool:
    """A path that was not resolved: it is nowhere for sure."""
    return ".." in subject.split("/")


def _may_hold(folder: str, pattern: str) -> bool:
    """Whether something below `folder` may match."""
    literal = _WILD.split(pattern, maxsplit=1)[0]
    above = "" if folder == "." else f"{folder}/"
    return literal.startswith(above) or (literal != pattern and above.startswith(literal))


def _glob(pattern: str, subject: str) -> bool:
    """``**`` crosses folders, ``*`` and ``?`` do not. A name may hold any character."""
    if _climbs(subject):
        return False
    pieces = re.split(r"(\*\*/?|\*|\?)", pattern)
    table = {"**/": r"(?:.*/)?", "**": r".*", "*": r"[^/]*", "?": r"[^/]"}
    matcher = "".join(table.get(piece) or re.escape(piece) for piece in pieces)
    return re.fullmatch(matcher, subject, re.DOTALL) is not None
