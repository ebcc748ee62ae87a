"""The examples that documents show: commands with their output, settings, and sentences to say."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT: Final = Path(__file__).parents[2]
DOCUMENTS: Final = (
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs/deploy").glob("*.md")),
)
PROMPT: Final = "$ "
SAY: Final = "gatehouse chat -m "
_GAP: Final = "..."


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: the heading that it is below, the line of the document where it begins, its
    language and its text."""

    document: str
    section: str
    line: int
    language: str
    text: str


@dataclass(frozen=True, slots=True)
class Example:
    """A command of a document, and the output that is shown below it; empty where none is."""

    document: str
    section: str
    line: int
    command: str
    shown: tuple[str, ...]

    @property
    def place(self) -> str:
        """Where a reader finds it."""
        return f"{self.document}:{self.line}"

    def is_like(self, output: str) -> bool:
        """Whether the output is the one that is shown, where `...` stands for anything. Nothing
        shown fits everything."""
        if not self.shown:
            return True
        lines = [re.escape(line).replace(re.escape(_GAP), ".*") for line in self.shown]
        # A line of dots alone stands for any number of lines.
        pattern = "\n".join(lines).replace("\n.*\n", "\n(?:.*\n)*")
        return re.fullmatch(pattern, output.strip("\n")) is not None


def blocks(document: Path) -> Iterator[Block]:
    """The fenced blocks of a document, also those in lists."""
    name, section, before = str(document.relative_to(ROOT)), "", None
    for token in MarkdownIt().parse(document.read_text(encoding="utf-8")):
        if before == ("heading_open", "h2"):
            section = token.content
        before = (token.type, token.tag)
        if token.type == "fence":
            line = token.map[0] + 1 if token.map else 0
            yield Block(name, section, line, token.info.strip(), token.content)


def examples(document: Path) -> Iterator[Example]:
    """The commands of a document in their order."""
    for block in blocks(document):
        if block.language == "console":
            yield from _commands(block)
        elif block.language == "chat":
            yield from _sentences(block)


def _sentences(block: Block) -> Iterator[Example]:
    for number, text in enumerate(block.text.splitlines(), block.line + 1):
        command = f"{SAY}{shlex.quote(text)}"
        yield Example(block.document, block.section, number, command, ())


def _commands(block: Block) -> Iterator[Example]:
    command, shown, line = "", list[str](), 0
    for number, text in enumerate(block.text.splitlines(), block.line + 1):
        if text.startswith(PROMPT):
            if command:
                yield Example(block.document, block.section, line, command, tuple(shown))
            command, shown, line = text.removeprefix(PROMPT), [], number
        elif command.endswith("\\") and not shown:
            command += f"\n{text}"
        else:
            shown.append(text)
    if command:
        yield Example(block.document, block.section, line, command, tuple(shown))


def inline(document: Path) -> Iterator[str]:
    """The texts between backticks of a document."""
    parsed = MarkdownIt().enable("table").parse(document.read_text(encoding="utf-8"))
    for token in parsed:
        yield from (one.content for one in _code(token))


def _code(token: Token) -> Iterator[Token]:
    return (child for child in token.children or () if child.type == "code_inline")
