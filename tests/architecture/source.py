"""The files that the architecture tests look at, and how a finding is written.

A check is a pure function of a source text, so that each one is also run over a seeded violation.
This module holds no rule of its own.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("gateway", "adapters", "runtime")
ANYTHING = re.compile("")
NOT_OURS = frozenset({".git", ".venv", ".cache", "dist", "node_modules", "__pycache__"})


@dataclass(frozen=True, slots=True)
class Source:
    """One Python file: its path from the top of the checkout, with `/`, and its text."""

    path: str
    text: str

    @property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    def nodes(self, words: re.Pattern[str]) -> Iterator[ast.AST]:
        """Every node of the tree; none where no line has one of the words that a check is about.

        Most files have none of them, and parsing takes longer than all checks together."""
        if words.search(self.text):
            yield from ast.walk(self.tree)

    @property
    def package(self) -> str:
        """The dotted name of the package whose modules `from . import x` means here."""
        return self.path.rpartition("/")[0].replace("/", ".")

    def comments(self, words: re.Pattern[str] = ANYTHING) -> dict[int, str]:
        """Line number -> the comment on that line; none where the text has none of the words."""
        if not words.search(self.text):
            return {}
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}


def python_files(*tops: str) -> Iterator[Source]:
    """Every Python file under the given folders of the checkout, in order of path."""
    for path in project_files():
        if path.endswith(".py") and path.split("/", 1)[0] in tops:
            yield Source(path, (ROOT / path).read_text(encoding="utf-8"))


@cache
def project_files() -> tuple[str, ...]:
    """What is tracked, or would be if it were added now; without git, all but what tools make."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
        text=True,
    )
    if listing.returncode == 0 and (ROOT / ".git").exists():
        names = {name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()}
    else:
        names = {path.relative_to(ROOT).as_posix() for path in _walk(ROOT)}
    return tuple(sorted(names))


def _walk(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name in NOT_OURS or path.name.endswith((".egg-info", "_cache")):
            continue
        if path.is_dir():
            yield from _walk(path)
        elif path.is_file():
            yield path


def report(problems: list[str]) -> str:
    """The message of a failed check: one problem a line."""
    return "\n" + "\n".join(problems)
