"""Links between documents lead somewhere, and what users read names no requirement."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import pytest
import typer.main
from markdown_it import MarkdownIt
from markdown_it.token import Token
from typer.core import TyperGroup

from gateway.cli.main import app
from gateway.config_report import schema
from tests.architecture.manifest import MANIFEST, load
from tests.documents.examples import ROOT

PAGES: Final = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
FOR_DEVELOPERS: Final = frozenset(
    {"architecture.md", "fault-matrix.md", "features.md", "performance.md", "rendering.md"}
    | {"models.md", "testing.md", "wire-servers.md"}
)
"""Pages in `docs/` that are not for users."""
_ID: Final = re.compile(r"\b[A-Z]{3,5}-\d+\b")
_MARKDOWN: Final = MarkdownIt().enable("table")


def name_of(page: Path) -> str:
    """Where a reader finds it."""
    return str(page.relative_to(ROOT))


def inlines(page: Path) -> Iterator[tuple[str, Token]]:
    """Each line of text with its formatting, and the kind of block that holds it."""
    block = ""
    for token in _MARKDOWN.parse(page.read_text(encoding="utf-8")):
        if token.type == "inline":
            yield block, token
        block = token.type


def targets(page: Path) -> Iterator[str]:
    """The relative links and pictures of a page."""
    for _, inline in inlines(page):
        for token in inline.children or ():
            target = token.attrs.get("href" if token.type == "link_open" else "src")
            if isinstance(target, str) and not re.match(r"[a-z]+:", target):
                yield unquote(target)


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors that GitHub gives to the headings of a page."""
    seen = Counter[str]()
    found = set[str]()
    for block, inline in inlines(page):
        if block != "heading_open":
            continue
        text = "".join(token.content for token in inline.children or ())
        anchor = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        found.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
        seen[anchor] += 1
    return frozenset(found)


def broken(page: Path) -> list[str]:
    """The links of a page that lead to no file, or to no heading of it."""
    return [target for target in targets(page) if not leads_somewhere(page, target)]


def leads_somewhere(page: Path, target: str) -> bool:
    """Whether the file of a link exists, and has the heading that the link names."""
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    if not file.exists():
        return False
    return not anchor or (file.suffix == ".md" and anchor in anchors(file))


@pytest.mark.requirement("OPS-13")
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    assert not broken(page)


@pytest.mark.requirement("OPS-13")
def test_the_map_names_every_page_for_users() -> None:
    docs = ROOT / "docs"
    named = {(docs / target.partition("#")[0]).resolve() for target in targets(docs / "README.md")}
    assert [name_of(page) for page in docs.glob("*.md") if page.resolve() not in named] == [
        "docs/README.md"
    ]


@pytest.mark.requirement("OPS-13")
def test_pages_for_users_name_no_requirement() -> None:
    required = load(MANIFEST.read_text(encoding="utf-8")).keys()
    for page in PAGES:
        if page.name not in FOR_DEVELOPERS and page.parent.name != "decisions":
            named = set(_ID.findall(page.read_text(encoding="utf-8"))) & required
            assert not named, name_of(page)


def helps(command: object) -> Iterator[str]:
    """What `--help` says of a command and its parameters, and of all commands below it."""
    parameters = getattr(command, "params", ())
    yield from (getattr(one, "help", "") or "" for one in (command, *parameters))
    if isinstance(command, TyperGroup):
        for below in command.commands.values():
            yield from helps(below)


@pytest.mark.requirement("OPS-13")
def test_help_and_the_schema_name_no_requirement() -> None:
    required = load(MANIFEST.read_text(encoding="utf-8")).keys()
    shown = [json.dumps(schema()), *helps(typer.main.get_command(app))]
    named = {found for text in shown for found in _ID.findall(text)} & required
    assert len(shown) > 50
    assert not named


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# One\n\n## Two, `code`\n\n## One\n")
    page = tmp_path / "page.md"
    page.write_text(
        "# Here\n\n[a](other.md#two-code) [b](other.md#one-1) [c](#here) [d](https://e.org/#f)\n\n"
        "| x |\n|---|\n| [g](none.md) [h](other.md#three) [i](#there) |\n\n![j](none.png)\n"
    )
    assert broken(page) == ["none.md", "other.md#three", "#there", "none.png"]
