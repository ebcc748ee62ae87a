"""Glob patterns: `*`, `?`, `[a-z]`, `{a,b}` within a name, `**` over any number of folders."""

import regex

from runtime.domain.errors import ToolError
from runtime.domain.name_spellings import folded_name

_LENGTH = 300
_TIMEOUT_S = 0.2


class Glob:
    """A compiled pattern, matched against paths relative to where the search began."""

    def __init__(self, pattern: str) -> None:
        if not 0 < len(pattern) <= _LENGTH:
            raise ToolError(f"a glob pattern has 1 to {_LENGTH} characters, such as **/*.py")
        parts = folded_name(pattern).split("/")
        self.parts = tuple(part for part in parts if part not in {"", "."})
        if ".." in self.parts or pattern.startswith("/"):
            raise ToolError(
                "a glob pattern cannot start with / or hold ..; use path for the folder"
            )
        try:
            self._regex = regex.compile(_translate(self.parts), regex.DOTALL)
        except regex.error as error:
            raise ToolError(f"the glob pattern is not right: {error}") from error

    def matches(self, path: str) -> bool:
        """In whichever spelling. Raises `ToolError` for a pattern that takes too long."""
        try:
            found = self._regex.fullmatch(folded_name(path), timeout=_TIMEOUT_S, concurrent=True)
        except TimeoutError as error:
            raise ToolError("the glob pattern takes too long; use fewer stars") from error
        return found is not None


def _translate(parts: tuple[str, ...]) -> str:
    built: list[str] = []
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        if part == "**":
            built.append(".*" if last else "(?:[^/]+/)*")
        else:
            built.append(_name(part) + ("" if last else "/"))
    return "".join(built)


def _name(part: str) -> str:
    built: list[str] = []
    depth = at = 0
    while at < len(part):
        char = part[at]
        at += 1
        if char == "[" and (end := part.find("]", at + 1)) > 0:
            built.append(_class(part[at:end]))
            at = end + 1
        elif char == "{" and "}" in part[at:]:
            depth += 1
            built.append("(?:")
        elif char == "}" and depth:
            depth -= 1
            built.append(")")
        elif char == "," and depth:
            built.append("|")
        else:
            built.append({"*": "[^/]*", "?": "[^/]"}.get(char, regex.escape(char)))
    return "".join(built)


def _class(body: str) -> str:
    negated = body[0] in "!^"
    inner = body[1:] if negated else body
    escaped = "".join(c if c == "-" else regex.escape(c, special_only=False) for c in inner)
    return f"(?!/)[{'^' if negated else ''}{escaped}]"
