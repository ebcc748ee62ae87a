"""Skills: found, validated, listed with what they lack, read on demand (CTX-10)."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.domain.errors import ToolError
from runtime.tools.builtin.skills import UseSkill
from runtime.tools.registry import Registry
from runtime.workspace.content import Skill
from runtime.workspace.frontmatter import FrontmatterProblem, parse
from runtime.workspace.skills import MAX_SKILLS, Header, SkillShelf
from runtime.workspace.snapshot import Workspace
from tests.unit.tools.support import Desk, call
from tests.unit.workspace.support import Folder


def skills(shelf: SkillShelf) -> dict[str, Skill]:
    return {read.skill.name: read.skill for read in shelf.load()[0]}


@pytest.mark.requirement("CTX-10")
async def test_a_skill_is_listed_and_its_body_is_read_on_demand(folder: Folder) -> None:
    folder.skill("baking", description="Bakes\n  bread.", body="Knead.\n\nWait.")
    workspace = Workspace(folder.root)
    (skill,) = (await workspace.snapshot()).skills
    assert (skill.name, skill.description, skill.available) == ("baking", "Bakes bread.", True)
    tools = Registry([UseSkill(workspace.skills)])
    desk = Desk(folder.root)
    found = await tools.prepare(call("use_skill", {"name": "baking"})).run(desk.context())
    assert found.content == "Knead.\n\nWait."
    with pytest.raises(ToolError, match="the nearest are baking"):
        await tools.prepare(call("use_skill", {"name": "bakin"})).run(desk.context())


@pytest.mark.requirement("CTX-10")
def test_the_body_is_read_as_it_is_now(folder: Folder) -> None:
    shelf = SkillShelf(folder.root)
    folder.skill("baking", body="Old.")
    assert shelf.read("baking") == "Old."
    folder.skill("baking", body="New.")
    assert shelf.read("baking") == "New."


@pytest.mark.requirement("CTX-10")
def test_a_skill_that_lacks_something_is_listed_with_the_reason(folder: Folder) -> None:
    more = ["requires:", "  programs: [pandoc, git]", "  env: [MAIL_TOKEN, LANG]"]
    folder.skill("reports", more=more)
    shelf = SkillShelf(
        folder.root, env={"LANG"}, find_program=lambda name: name if name == "git" else None
    )
    skill = skills(shelf)["reports"]
    assert not skill.available
    assert skill.reason == (
        "the program pandoc is not installed; the environment variable MAIL_TOKEN is not set"
    )
    assert shelf.read("reports") is None
    assert shelf.names() == ()
    assert shelf.load()[1] == ()


@pytest.mark.requirement("CTX-10", "CTX-5")
async def test_a_program_that_gets_installed_is_seen_at_the_next_turn(folder: Folder) -> None:
    installed: set[str] = set()
    folder.skill("reports", more=["requires: {programs: [pandoc]}"])
    workspace = Workspace(
        folder.root, find_program=lambda name: name if name in installed else None
    )
    await workspace.snapshot()
    assert not (await workspace.snapshot()).skills[0].available
    installed.add("pandoc")
    assert (await workspace.snapshot()).skills[0].available


@pytest.mark.requirement("CTX-10")
def test_the_workspace_comes_after_the_built_in_skills(folder: Folder, outside: Folder) -> None:
    outside.skill("baking", description="Built in.", body="built-in body")
    outside.skill("cooking", description="Built in.", body="built-in body")
    folder.skill("baking", description="Ours.", body="our body")
    shelf = SkillShelf(folder.root, outside.root)
    found = skills(shelf)
    assert (found["baking"].description, found["baking"].source) == ("Ours.", "workspace")
    assert (found["cooking"].description, found["cooking"].source) == ("Built in.", "built-in")
    assert shelf.read("baking") == "our body"
    assert shelf.read("cooking") == "built-in body"


@pytest.mark.requirement("CTX-10")
def test_a_broken_skill_of_the_workspace_does_not_bring_the_built_in_one_back(
    folder: Folder, outside: Folder
) -> None:
    outside.skill("baking")
    folder.write("skills/baking/SKILL.md", "Knead.")
    shelf = SkillShelf(folder.root, outside.root)
    assert not skills(shelf)["baking"].available
    assert shelf.read("baking") is None


BROKEN = {
    "no frontmatter": ("Just text.", "does not begin with frontmatter"),
    "never closed": ("---\nname: x\n", "does not begin with frontmatter"),
    "no yaml": ("---\nname: [x\n---\n", "not YAML"),
    "tab": ("---\nname:\tx\n\tdescription: y\n---\n", "not YAML"),
    "a list": ("---\n- name\n---\n", "not a mapping"),
    "no name": ("---\ndescription: y\n---\n", "name: field required"),
    "no description": ("---\nname: x\ndescription:\n---\n", "description: string should have"),
    "name with a space": ("---\nname: x y\ndescription: z\n---\n", "name: string should match"),
    "name that ends a line": ('---\nname: "x\\n"\ndescription: z\n---\n', "name: string should"),
    "other name": ("---\nname: y\ndescription: z\n---\n", "its name is y, but its folder is x"),
    "typing error": (
        "---\nname: x\ndescription: y\nrequires: {program: [git]}\n---\n",
        "requires.program: extra inputs",
    ),
    "program with a path": (
        "---\nname: x\ndescription: y\nrequires: {programs: [/bin/sh]}\n---\n",
        "requires.programs.0: string should match",
    ),
    "long": (f"---\nname: x\ndescription: {'y' * 2000}\n---\n", "description: string should have"),
    "huge": (f"---\nname: x\nnote: {'y' * 20000}\n---\n", "is longer than"),
    "deep": (f"---\nname: {'[' * 4000}\n---\n", "not YAML"),
    "bomb": (
        "---\na: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\nname: x\ndescription: y\n---\n",
        "aliases are not allowed",
    ),
    "not text": (b"---\nname: \xff\n---\n", "not UTF-8"),
}


@pytest.mark.requirement("CTX-10")
@pytest.mark.parametrize("case", BROKEN)
def test_a_mistake_is_reported_and_the_skill_stays_listed(folder: Folder, case: str) -> None:
    content, said = BROKEN[case]
    folder.write("skills/x/SKILL.md", content)
    folder.skill("good")
    shelf = SkillShelf(folder.root)
    found, warnings = shelf.load()
    assert [read.skill.name for read in found] == ["good", "x"]
    assert said in found[1].skill.reason
    assert not found[1].skill.available
    assert warnings == (f"skills/x/SKILL.md is not used: {found[1].skill.reason}",)
    assert shelf.read("x") is None
    assert shelf.names() == ("good",)


def test_other_fields_are_kept_and_values_stay_words() -> None:
    header, body = parse(
        "---\nname: on\ndescription: yes\nlicense: 1.10\nallowed-tools: [exec]\n"
        "metadata: {since: 2026-01-01}\n---\nBody",
        Header,
    )
    assert (header.name, header.description, body) == ("on", "yes", "Body")
    assert header.model_extra == {
        "license": "1.10",
        "allowed-tools": ["exec"],
        "metadata": {"since": "2026-01-01"},
    }


@given(st.text(max_size=300))
def test_no_text_breaks_the_reading(text: str) -> None:
    for attempt in (text, f"---\n{text}\n---\n", f"---\nname: a\ndescription: b\n{text}\n---\n"):
        try:
            header, body = parse(attempt, Header)
        except FrontmatterProblem:
            continue
        assert header.name
        assert body in attempt


@pytest.mark.parametrize("name", ["../secret", "a/b", ".", "..", "", "A", "x\0", "x\n"])
def test_only_the_name_of_a_skill_is_looked_up(folder: Folder, outside: Folder, name: str) -> None:
    folder.write("secret/SKILL.md", "---\nname: secret\ndescription: x\n---\nhidden")
    folder.skill("x")
    assert SkillShelf(folder.root).read(name) is None


@pytest.mark.parametrize("link", ["skills", "skills/x", "skills/x/SKILL.md"])
def test_a_skill_outside_of_the_workspace_is_not_read(
    folder: Folder, outside: Folder, link: str
) -> None:
    outside.skill("x", body="from outside")
    folder.link(link, outside.root / link)
    shelf = SkillShelf(folder.root)
    found, warnings = shelf.load()
    assert shelf.read("x") is None
    assert not any(read.skill.available for read in found)
    assert len(warnings) == 1
    assert "link that leaves" in warnings[0]


def test_a_folder_of_too_many_skills_is_cut_with_a_warning(folder: Folder) -> None:
    for number in range(MAX_SKILLS + 1):
        folder.skill(f"s{number:04}")
    found, warnings = SkillShelf(folder.root).load()
    assert len(found) == MAX_SKILLS
    assert warnings == (f"skills: only the first {MAX_SKILLS} skills are read",)


@pytest.mark.parametrize("circle", ["skills", "skills/x", "skills/x/SKILL.md"])
def test_links_in_a_circle_hold_nobody_up(folder: Folder, circle: str) -> None:
    folder.link(circle, folder.root / circle)
    shelf = SkillShelf(folder.root)
    assert shelf.names() == ()
    assert shelf.read("x") is None


def test_hidden_folders_and_files_are_no_skills(folder: Folder) -> None:
    folder.write("skills/.git/SKILL.md", "x")
    folder.write("skills/README.md", "x")
    folder.write("skills/empty/notes.txt", "x")
    assert SkillShelf(folder.root).load() == ((), ())


def test_a_strange_folder_name_cannot_write_into_the_index(folder: Folder) -> None:
    folder.write("skills/x\n- evil: do it/SKILL.md", "nothing")
    ((read,), _) = SkillShelf(folder.root).load()
    assert "\n" not in read.skill.name
    assert not read.skill.available


@pytest.mark.requirement("CTX-10")
def test_a_skill_grants_no_tools(folder: Folder, tmp_path: Path) -> None:
    folder.skill("x", more=["allowed-tools: [exec, everything]", "tools: [everything]"])
    shelf = SkillShelf(folder.root)
    assert shelf.read("x") == "First do this."
    assert Registry([UseSkill(shelf)]).get("everything") is None
    assert [spec.name for spec in Registry([UseSkill(shelf)]).specs()] == ["use_skill"]
