"""Frontmatter: a YAML mapping between two lines of ``---``, and Markdown behind it.

What people and agents write: bounded, without aliases, every value a plain string until a model of
pydantic says otherwise.
"""

import re
from typing import Final, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

MAX_HEADER: Final = 8 * 1024
"""Characters of frontmatter."""
_HEADER = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)

H = TypeVar("H", bound=BaseModel)


class FrontmatterProblem(Exception):
    """A file breaks a rule; the message says which, for whoever wrote it."""


def parse(text: str, header: type[H]) -> tuple[H, str]:
    """The header and the body of a file. Raises `FrontmatterProblem`."""
    found = _HEADER.match(text)
    if found is None:
        raise FrontmatterProblem("it does not begin with frontmatter between two lines of ---")
    if len(found[1]) > MAX_HEADER:
        raise FrontmatterProblem(f"its frontmatter is longer than {MAX_HEADER:,} characters")
    try:
        # Plain strings only: nobody's name becomes a date or a truth value.
        raw = yaml.load(found[1], Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        line = "" if error.problem_mark is None else f" (line {error.problem_mark.line + 2})"
        raise FrontmatterProblem(f"its frontmatter is no YAML: {error.problem}{line}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise FrontmatterProblem("its frontmatter is no YAML that can be read") from error
    if not isinstance(raw, dict):
        raise FrontmatterProblem("its frontmatter is no mapping")
    try:
        read = header.model_validate(raw)
    except ValidationError as error:
        raise FrontmatterProblem(_sentence(error)) from error
    return read, text[found.end() :].strip("\n")


class _Loader(yaml.BaseLoader):
    """Without aliases: a few lines of them can stand for more data than there is memory."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.composer.ComposerError(None, None, "aliases are not allowed", None)
        return super().compose_node(parent, index)


def _sentence(error: ValidationError) -> str:
    told = []
    for detail in error.errors(include_url=False, include_context=False)[:3]:
        where = ".".join(str(part) for part in detail["loc"])
        rule = detail["msg"].removeprefix("Value error, ")
        told.append(f"{where}: {rule[:1].lower()}{rule[1:]}")
    return "; ".join(told)
