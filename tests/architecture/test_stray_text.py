"""Text that must not be in the tree: placeholders, unexplained waivers, traces of one machine.

The words are written with a gap (`TO~DO`) or a class (`TO[D]O`), so that this file does not find
itself.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.architecture.source import PRODUCT, ROOT, Source, project_files, python_files, report

PLACEHOLDER = re.compile(r"\b(?:TO[D]O|FIX[M]E|X[X]X|HA[C]K|st[u]b)\b")
UNFINISHED = re.compile(r"Not[I]mplementedError")
WAIVER = re.compile(r"#\s*type:\s*ig[n]ore(?:\[[^\]]*\])?(?P<reason>.*)")
REGISTRY = re.compile(
    r"pypi\.o[r]g|pythonhosted\.o[r]g|registry\.npm[j]s|--(?:extra-)?index-u[r]l|--find-li[n]ks"
    r"|/simp[l]e/|\"resol[v]ed\": *\"http"
)
SHARED_HOMES = frozenset({Path("/"), Path("/root"), Path("/tmp")})


def placeholders(source: Source) -> list[str]:
    """Words in comments (a text that a person searches for may hold them), and the exception."""
    comments = source.comments(PLACEHOLDER)
    places = [(n, match) for n, c in comments.items() if (match := PLACEHOLDER.search(c))]
    for number, line in enumerate(source.text.splitlines(), 1):
        places += [(number, match) for match in UNFINISHED.finditer(line)]
    return [f"{source.path}:{n} {match.group()}: finish it, or leave it out" for n, match in places]


def unexplained_waivers(source: Source) -> list[str]:
    return [
        f"{source.path}:{number} a waiver of the type checker needs its reason in the same line"
        for number, line in enumerate(source.text.splitlines(), 1)
        if (match := WAIVER.search(line)) and len(match["reason"].strip(" #-:").split()) < 2
    ]


def machine_paths() -> tuple[str, ...]:
    """Folders of the machine that runs this, none of which the project may know."""
    own = [ROOT, *(Path(folder) for folder in (sys.prefix, sys.base_prefix))]
    home = Path.home()
    named = [folder for folder in own if folder.parent != Path("/") and folder != Path("/usr")]
    return tuple(f"{folder}/" for folder in {*named, *({home} - SHARED_HOMES)})


def traces(path: str, text: str, *, folders: tuple[str, ...]) -> list[str]:
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if match := REGISTRY.search(line):
            found.append(f"{path}:{number} names a package registry: {match.group()}")
        found += [f"{path}:{number} names a folder of this machine" for f in folders if f in line]
    return found


def test_nothing_is_left_to_be_done_later() -> None:
    found = [p for s in python_files(*PRODUCT, "tests") for p in placeholders(s)]
    assert not found, report(found)


def test_every_waiver_of_the_type_checker_has_a_reason() -> None:
    found = [p for s in python_files(*PRODUCT, "tests") for p in unexplained_waivers(s)]
    assert not found, report(found)


def test_no_file_knows_a_registry_or_a_folder_of_this_machine() -> None:
    found = []
    for path in project_files():
        try:
            text = (ROOT / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += traces(path, text, folders=machine_paths())
    assert not found, report(found)


def whole(gapped: str) -> str:
    return gapped.replace("~", "")


@pytest.mark.parametrize(
    "line", ["# TO~DO: later", "raise Not~ImplementedError", "pass  # st~ub", "x = 1  # FIX~ME"]
)
def test_a_placeholder_is_found(line: str) -> None:
    assert len(placeholders(Source("a.py", whole(line)))) == 1
    assert placeholders(Source("a.py", f"x = {whole(line)!r}")) == [] or "Error" in line


@pytest.mark.parametrize(
    ("comment", "found"),
    [
        ("# type: ig~nore", 1),
        ("# type: ig~nore[misc]", 1),
        ("# type: ig~nore[misc]  # why", 1),
        ("# type: ig~nore[misc]  # the library publishes no types", 0),
        ("# type: ig~nore[misc] - the library publishes no types", 0),
    ],
)
def test_a_waiver_needs_a_reason(comment: str, found: int) -> None:
    assert len(unexplained_waivers(Source("a.py", f"x = f()  {whole(comment)}"))) == found


@pytest.mark.parametrize(
    "line",
    [
        "pip install --extra-index-u~rl https://example.org",
        "https://files.pythonhosted.o~rg/packages/x",
        "cd /srv/checkout/docs",
    ],
)
def test_a_trace_is_found(line: str) -> None:
    assert len(traces("a.md", whole(line), folders=("/srv/checkout/",))) == 1


def test_ordinary_text_leaves_no_trace() -> None:
    assert traces("a.md", "pip install -r requirements.lock in /srv", folders=("/srv/x/",)) == []
    assert any(folder.startswith(str(ROOT)) for folder in machine_paths())
