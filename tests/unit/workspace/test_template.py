"""The template that ships: short, honest, and about tools that exist."""

import re
from pathlib import Path

import pytest

from runtime.domain.transcript import estimate_tokens
from runtime.workspace.content import IDENTITY_FILES, MEMORY_FILE
from runtime.workspace.scaffold import find_template
from runtime.workspace.skills import SkillShelf
from tests.unit.tools.support import Desk

TEXTS = {
    path.relative_to(find_template()).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted(find_template().rglob("*.md"))
}
SAID = re.compile(r"`([a-z]+_[a-z_]+|exec|glob|grep)`")


def test_the_template_holds_what_a_workspace_needs() -> None:
    assert {*IDENTITY_FILES, MEMORY_FILE} <= TEXTS.keys()


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_names_only_tools_that_exist(name: str, tmp_path: Path) -> None:
    real = {spec.name for spec in Desk(tmp_path).registry.specs()}
    named = set(SAID.findall(TEXTS[name]))
    assert named <= real
    assert named or "skills/" not in name


def test_the_identity_files_are_short() -> None:
    assert sum(estimate_tokens(TEXTS[name]) for name in IDENTITY_FILES) < 700


@pytest.mark.requirement("CTX-10")
def test_the_built_in_skills_are_valid_and_available(tmp_path: Path) -> None:
    found, warnings = SkillShelf(tmp_path, find_template()).load()
    assert warnings == ()
    assert [read.skill.name for read in found] == ["codebase-tour", "meeting-notes"]
    assert all(read.skill.available and read.skill.source == "built-in" for read in found)
