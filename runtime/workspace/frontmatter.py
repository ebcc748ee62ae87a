"""Frontmatter: a YAML mapping between two lines of ``---``, and Markdown behind it.

What people and agents write: bounded, without aliases, every value a plain string until a model of
pydantic says otherwise.
"""

import re
from typing import Final, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from runtime.domain.printable import quoted

MAX_HEADER: Final = 8 * 1024
"""Characters of frontmatter."""
MAX_DEPTH: Final = 16
"""Of lists and mappings in brackets."""
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
        raise FrontmatterProblem(f"its frontmatter is not YAML: {error.problem}{line}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise FrontmatterProblem("its frontmatter is not YAML that can be read") from error
    if not isinstance(raw, dict):
        raise FrontmatterProblem("its frontmatter is not a mapping")
    try:
        read = header.model_validate(raw)
    except ValidationError as error:
        raise FrontmatterProblem(_sentence(error)) from error
    return read, text[found.end() :].strip("\n")


class _Loader(yaml.BaseLoader):
    """Without aliases, of which a few lines can stand for more data than there is memory, and
    without the two ways to write that read one thing and mean another, or take minutes."""

    def fetch_flow_collection_start(self, TokenClass: type[yaml.Token]) -> None:  # noqa: N803
        # Scanning takes the square of this depth: a second for a header of nothing but brackets.
        if self.flow_level >= MAX_DEPTH:
            raise yaml.scanner.ScannerError(
                None, None, f"lists are nested more than {MAX_DEPTH} deep", self.get_mark()
            )
        super().fetch_flow_collection_start(TokenClass)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
        if twice is not None:
            raise yaml.constructor.ConstructorError(
                None, None, f"{quoted(twice, 64)} is given twice", node.start_mark
            )
        return super().construct_mapping(node, deep=deep)

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
