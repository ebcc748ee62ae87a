"""SUB-2: what a definition may say, which one wins, and that a broken one is told of."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.features import FACES
from runtime.domain.decisions import PermissionMode
from runtime.workspace.definition_file import DefinitionSource, Header, read
from runtime.workspace.definitions import (
    DEFAULT_TURNS,
    MAX_FILES,
    Definition,
    DefinitionShelf,
    Known,
)
from runtime.workspace.skills import SkillShelf
from tests.unit.workspace.support import Folder

pytestmark = pytest.mark.requirement("SUB-2")
TEMPLATE = Path(__file__).resolve().parents[3] / "workspace_template"
KNOWN = Known(("read_file", "grep", "exec"), ("openai:small", "openai:large"))


@pytest.fixture
def workspace(tmp_path: Path) -> Folder:
    (tmp_path / "workspace").mkdir()
    return Folder(tmp_path / "workspace")


@pytest.fixture
def user(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "home")


def written(header: str, body: str = "You look things up.") -> str:
    return f"---\n{header}\n---\n\n{body}\n"


def only(folder: Folder, header: str, body: str = "You look things up.") -> Definition:
    """The one definition of a workspace."""
    folder.write("agents/scout.md", written(header, body))
    (found,) = DefinitionShelf(folder.root).load(KNOWN).items
    return found


def test_every_field_is_read(workspace: Folder) -> None:
    header = """name: scout
description: |
  Looks things
  up.
tools: [read_file, grep]
disallowedTools: exec
model: openai:small
permissionMode: plan
maxTurns: 7
skills: writing, citing
mcpServers:
  - github
memory: project
background: true
isolation: worktree
triggers: [find out, look up]"""
    found = only(workspace, header)
    assert found == Definition(
        name="scout",
        source="workspace",
        file="agents/scout.md",
        header=Header().model_copy(
            update={
                "name": "scout",
                "description": "Looks things up.",
                "tools": ("read_file", "grep"),
                "disallowed_tools": ("exec",),
                "model": "openai:small",
                "permission_mode": PermissionMode.PLAN,
                "max_turns": 7,
                "skills": ("writing", "citing"),
                "mcp_servers": ("github",),
                "memory": "project",
                "background": True,
                "isolation": "worktree",
                "triggers": ("find out", "look up"),
            }
        ),
        prompt="You look things up.",
    )
    assert found.max_turns == 7
    assert found.available


def test_a_body_is_enough(workspace: Folder) -> None:
    found = only(workspace, "description: Looks.")
    assert (found.name, found.max_turns, found.header.tools) == ("scout", DEFAULT_TURNS, None)


def test_tools_may_be_a_list_or_words_between_commas(workspace: Folder) -> None:
    assert only(workspace, "tools: read_file, grep,").header.tools == ("read_file", "grep")
    assert only(workspace, "tools:\n - read_file\n - grep").header.tools == ("read_file", "grep")


@pytest.mark.parametrize("nothing", ["tools: []", 'tools: ""', "tools:"])
def test_no_tools_are_not_all_tools(workspace: Folder, nothing: str) -> None:
    assert only(workspace, nothing).header.tools == ()


def test_the_other_word_for_turns(workspace: Folder) -> None:
    assert only(workspace, "max_iterations: 12").max_turns == 12


def test_inherit_names_no_model(workspace: Folder) -> None:
    assert only(workspace, "model: inherit").header.model is None


def test_a_tool_that_does_not_exist_is_dropped_and_told(workspace: Folder) -> None:
    found = only(workspace, "tools: read_file, WebSearch, mcp__github__search")
    assert found.header.tools == ("read_file", "mcp__github__search")
    assert found.problems == ("tools: WebSearch does not exist",)
    assert found.available


def test_with_none_left_it_has_none(workspace: Folder) -> None:
    found = only(workspace, "tools: Bash, Write")
    assert found.header.tools == ()
    assert "tools: none of them exists, so it has none" in found.problems


def test_a_name_that_nearly_exists_is_told_with_it(workspace: Folder) -> None:
    found = only(workspace, "tools: Read_File, grep\ndisallowedTools: Bash, exec")
    assert found.problems == (
        "tools: Read_File does not exist; near it: read_file",
        "disallowedTools: Bash does not exist",
    )
    assert (found.header.tools, found.header.disallowed_tools) == (("grep",), ("Bash", "exec"))


def test_a_model_that_is_not_offered_is_passed_over(workspace: Folder) -> None:
    """A file of the workspace, which the agent may write, must not choose what nobody offers."""
    found = only(workspace, "model: ollama:small")
    assert found.header.model is None
    assert found.problems == (
        "model: ollama:small is not offered here, so another is used; near it: openai:small",
    )
    assert found.available


def test_skills_that_do_not_exist_are_told(workspace: Folder) -> None:
    workspace.write("agents/scout.md", written("skills: writing, citing"))
    shelf = DefinitionShelf(workspace.root, skills=lambda: ("writing",))
    (found,) = shelf.load(KNOWN).items
    assert found.header.skills == ("writing",)
    assert found.problems == ("skills: citing does not exist; near it: writing",)


def test_other_fields_are_kept_and_told(workspace: Folder) -> None:
    workspace.write("agents/scout.md", written("loop: 5\ncolor: red"))
    found = DefinitionShelf(workspace.root).load()
    assert found.items[0].header.model_extra == {"loop": "5", "color": "red"}
    assert found.warnings == (
        "agents/scout.md: color: this field means nothing here",
        "agents/scout.md: loop: this field means nothing here",
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Just text.", "frontmatter"),
        ("---\nname: [\n---\nbody", "not YAML"),
        ("---\n- a\n---\nbody", "not a mapping"),
        ("---\nname: scout\n---\n\n", "no body"),
        ("---\nmaxTurns: many\n---\nbody", "maxTurns: input should be a valid integer"),
        ("---\nmaxTurns: 0\n---\nbody", "maxTurns: input should be greater than or equal to 1"),
        ("---\npermissionMode: root\n---\nbody", "permissionMode: input should be"),
        ("---\nisolation: none\n---\nbody", "isolation: input should be"),
        ("---\nname: a b\n---\nbody", "name: should be 1 to 64 letters, digits, - and _"),
        ("---\ntools: {a: b}\n---\nbody", "tools: should be a list of names, or names between"),
        ("---\nskills: [[a]]\n---\nbody", "skills: should be a list of names, or names between"),
        ("---\nname: &x a\nmodel: *x\n---\nbody", "aliases are not allowed"),
        ("---\ntools: grep\ntools: exec\n---\nbody", "'tools' is given twice"),
        ("---\nx: {a: 1, b: 2, a: 3}\n---\nbody", "'a' is given twice"),
        (f"---\nx: {'[' * 17}{']' * 17}\n---\nbody", "lists are nested more than 16 deep"),
        (f"---\nx: {'{' * 8000}\n---\nbody", "lists are nested more than 16 deep"),
        ("---\nbackground: perhaps\n---\nbody", "background: input should be a valid boolean"),
    ],
)
def test_a_broken_file_is_told_and_not_used(workspace: Folder, text: str, why: str) -> None:
    workspace.write("agents/scout.md", text)
    loaded = DefinitionShelf(workspace.root).load(KNOWN)
    (found,) = loaded.items
    assert not found.available
    assert why in found.reason
    assert loaded.warnings == (f"agents/scout.md is not used: {found.reason}",)


def test_a_file_whose_name_is_no_name(workspace: Folder) -> None:
    workspace.write("agents/my scout!.md", written("description: Looks."))
    (found,) = DefinitionShelf(workspace.root).load().items
    assert "is no name for a subagent" in found.reason


def test_bytes_that_are_no_text(workspace: Folder) -> None:
    workspace.write("agents/scout.md", b"---\nname: \xff\n---\nbody")
    (found,) = DefinitionShelf(workspace.root).load().items
    assert "UTF-8" in found.reason


def test_the_last_of_a_name_wins(workspace: Folder, user: Folder, tmp_path: Path) -> None:
    builtin = Folder(tmp_path / "builtin")
    other = Folder(tmp_path / "gatehouse")
    places = [
        (builtin, "agents/scout.md", "built-in"),
        (user, "scout.md", "claude"),
        (other, "scout.md", "gatehouse"),
        (workspace, "agents/deep/er/scout.md", "own"),
        (workspace, ".claude/agents/scout.md", "dot"),
    ]
    shelf = DefinitionShelf(workspace.root, builtin.root, (user.root, other.root))
    for folder, file, text in places:
        folder.write(file, written(f"name: scout\ndescription: {text}"))
        (found,) = shelf.load().items
        assert found.header.description == text


def test_a_broken_one_takes_its_name_all_the_same(workspace: Folder, tmp_path: Path) -> None:
    builtin = Folder(tmp_path / "builtin")
    builtin.write("agents/scout.md", written("tools: read_file, exec"))
    workspace.write("agents/scout.md", written("tools: read_file\nmaxTurns: few"))
    found = DefinitionShelf(workspace.root, builtin.root).load().get("scout")
    assert found is not None
    assert not found.available


def test_two_files_of_one_folder_with_one_name(workspace: Folder) -> None:
    workspace.write("agents/a.md", written("name: scout"))
    workspace.write("agents/b.md", written("name: scout"))
    (found,) = DefinitionShelf(workspace.root).load().items
    assert found.reason == "name: agents/a.md beside it has the same"


def test_what_changes_is_seen_at_once(workspace: Folder) -> None:
    shelf = DefinitionShelf(workspace.root)
    assert shelf.load().items == ()
    workspace.write("agents/scout.md", written("description: One."))
    assert shelf.load().items[0].header.description == "One."
    workspace.write("agents/scout.md", written("description: Two."))
    assert shelf.load().items[0].header.description == "Two."
    workspace.remove("agents/scout.md")
    assert shelf.load().items == ()


def test_what_did_not_change_is_not_read_again(
    workspace: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also an edit within the grain of a time stamp is seen: one read alone is not believed."""
    reads: list[str] = []

    def counted(source: DefinitionSource, top: Path, file: str) -> Definition:
        reads.append(file)
        return read(source, top, file)

    monkeypatch.setattr("runtime.workspace.definitions.read", counted)
    shelf = DefinitionShelf(workspace.root)
    workspace.write("agents/scout.md", written("description: One."))
    file = workspace.write("agents/other.md", written("description: Other."))
    for _ in range(5):
        assert [one.header.description for one in shelf.load().items] == ["Other.", "One."]
    assert sorted(reads) == ["agents/other.md"] * 2 + ["agents/scout.md"] * 2
    stamp = file.stat()
    workspace.write("agents/other.md", written("description: Never."))
    os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert [one.header.description for one in shelf.load().items] == ["Never.", "One."]
    workspace.remove("agents/other.md")
    assert [one.name for one in shelf.load().items] == ["scout"]


def test_an_edit_that_leaves_no_trace_is_seen(
    workspace: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where time stamps are coarse, two edits of the same size look like one."""
    monkeypatch.setattr("runtime.workspace.definitions.status", lambda _: (0, 0, 1, 1))
    shelf = DefinitionShelf(workspace.root)
    for word in ("One.", "Two.", "Six."):
        workspace.write("agents/scout.md", written(f"description: {word}"))
        assert shelf.load().items[0].header.description == word


def test_links_that_leave_are_not_followed(workspace: Folder, tmp_path: Path) -> None:
    secret = Folder(tmp_path / "elsewhere")
    file = secret.write("scout.md", written("description: From outside."))
    workspace.link("agents/scout.md", file)
    workspace.link("agents/more", secret.root)
    (found,) = DefinitionShelf(workspace.root).load().items
    assert "leaves the workspace" in found.reason
    workspace.remove("agents/scout.md")
    (workspace.root / "agents/more").unlink()
    (workspace.root / "agents").rmdir()
    workspace.link("agents", secret.root)
    assert DefinitionShelf(workspace.root).load().items == ()


def test_no_more_than_a_bounded_number_is_read(workspace: Folder) -> None:
    for number in range(MAX_FILES + 5):
        workspace.write(f"agents/a{number:03}.md", written("description: One."))
    loaded = DefinitionShelf(workspace.root).load()
    assert len(loaded.items) == MAX_FILES
    assert loaded.warnings == (f"agents: only the first {MAX_FILES} definitions are read",)


def test_the_ones_that_come_along_are_usable() -> None:
    skills = SkillShelf(Path("/nowhere"), TEMPLATE).names
    loaded = DefinitionShelf(Path("/nowhere"), TEMPLATE, skills=skills).load(
        Known([one.name for one in FACES], ())
    )
    assert loaded.warnings == ()
    assert {one.name for one in loaded.items} == {"planner", "researcher", "reviewer"}
    assert all(
        one.available and one.header.description and one.header.tools for one in loaded.items
    )
    assert all(
        not {"write_file", "edit_file"} & set(one.header.tools or ()) for one in loaded.items
    )


@given(header=st.text(max_size=60), body=st.text(max_size=20))
def test_whatever_is_written_is_read_or_told(
    tmp_path_factory: pytest.TempPathFactory, header: str, body: str
) -> None:
    folder = Folder(tmp_path_factory.mktemp("any"))
    folder.write("agents/scout.md", written(header, body).encode("utf-8", "surrogatepass"))
    loaded = DefinitionShelf(folder.root).load(KNOWN)
    (found,) = loaded.items
    assert found.available != bool(found.reason)
    assert bool(loaded.warnings) == bool(found.reason or found.notes or found.problems)
