"""What does not exist for a call: private notes, and what other sessions kept (CTX-6, I10)."""

import re
from pathlib import Path

import pytest
from pydantic import JsonValue

from runtime.domain.errors import ToolError
from runtime.tools.hidden_paths import Hidden, file_name
from runtime.workspace.layout import Layout, ResolvedLayout
from tests.fakes.sandbox import FakeSandbox, FakeStdio
from tests.unit.tools.support import Desk, Skills, StillClock

SECRET = "the-safe-is-behind-the-painting"
SENT = "uploads/ses_2/00aa/c.txt"
OURS, OTHERS = ".gatehouse/outputs/ses_1/run_1/a.txt", ".gatehouse/outputs/ses_2/run_2/b.txt"

STRAY = "is outside of what may be reached"

pytestmark = pytest.mark.requirement("CTX-6", "POL-4", "TOOL-2")


@pytest.fixture
def shut(desk: Desk) -> Desk:
    """A desk for which private notes do not exist, with links that lead to them."""
    workspace, folder = desk.workspace, desk.folder
    notes = ("USER.md", "memory/MEMORY.md", "memory/deep/note.md", "personas/kind/USER.md")
    for name in (*notes, OTHERS, SENT):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(SECRET)
    (workspace / OURS).parent.mkdir(parents=True)
    (workspace / OURS).write_text("painting, kept by this session")
    (workspace / "uploads/ses_1").mkdir()
    (folder / "open").mkdir()
    (folder / "open/plan.md").write_text("painting, open to all")
    (workspace / "memory/out").symlink_to("../files/open")
    (workspace / "stray.md").write_text("painting, beside everything")
    links = {
        "user": "../USER.md",
        "notes": "../memory",
        "note": "../memory/MEMORY.md",
        "twice": "notes/deep",
        "open/up": "../../memory",
        "whole": str(workspace / "memory"),
        "kept": "../.gatehouse/outputs/ses_2",
        "sent": "../uploads/ses_2",
    }
    for link, target in links.items():
        (folder / link).symlink_to(target)
    return Desk(workspace, notes=False)


FILES = (
    "USER.md",
    "./open/../../USER.md",
    "../USER.md",
    "user",
    "USER.md/x",
    "memory/MEMORY.md",
    "memory/none.md",
    "personas/kind/USER.md",
    "personas/none/USER.md",
    "memory/../USER.md",
    "memory/out/plan.md",
    "notes/MEMORY.md",
    "note",
    "twice/note.md",
    "open/up/deep/note.md",
    "whole/MEMORY.md",
    OTHERS,
    "kept/run_2/b.txt",
    ".gatehouse/outputs/ses_1/../ses_2/run_2/b.txt",
    ".gatehouse/outputs/ses_10/x",
    SENT,
    "uploads/SES_2/00aa/c.txt",
    "uploads/ses_1/../ses_2/00aa/c.txt",
    "uploads/ses_10/x",
    "sent/00aa/c.txt",
    "{ws}/USER.md",
    "../user.md",
    "{ws}/MEMORY/memory.md",
    "../stray.md",
    "../stray/new.md",
)
FOLDERS = ("memory", "memory/", "memory/..", "notes", "twice", "whole", "open/up/deep", "kept")
ON_FILES: tuple[tuple[str, dict[str, JsonValue]], ...] = (
    ("read_file", {}),
    ("edit_file", {"old_text": "safe", "new_text": "x"}),
    ("write_file", {"content": "x"}),
    ("grep", {"pattern": "painting"}),
    ("list_dir", {}),
    ("glob", {"pattern": "**"}),
)
ON_FOLDERS = ON_FILES[3:]


async def said(desk: Desk, tool: str, path: str, arguments: dict[str, JsonValue]) -> str:
    with pytest.raises(ToolError) as caught:
        await desk.run(tool, path=path, **arguments)
    return str(caught.value)


@pytest.mark.parametrize("path", FILES)
@pytest.mark.parametrize(("tool", "arguments"), ON_FILES, ids=lambda one: str(one))
async def test_a_hidden_file_is_not_there(
    shut: Desk, tool: str, arguments: dict[str, JsonValue], path: str
) -> None:
    before = everything(shut.workspace)
    named = path.format(ws=shut.workspace)
    told = await said(shut, tool, named, arguments)
    if tool in {"edit_file", "write_file"} and "does not exist" not in told:
        # What is refused whether or not there is anything: links, and the gateway's own folder.
        assert path in {"user", "note"} or "belongs to the gateway" in told or STRAY in told
    elif STRAY not in told:
        assert told.startswith(f"{named} does not exist")
    assert everything(shut.workspace) == before


@pytest.mark.parametrize("path", FOLDERS)
@pytest.mark.parametrize(("tool", "arguments"), ON_FOLDERS, ids=lambda one: str(one))
async def test_a_hidden_folder_is_not_there(
    shut: Desk, tool: str, arguments: dict[str, JsonValue], path: str
) -> None:
    assert await said(shut, tool, path, arguments) == f"{path} does not exist"


@pytest.mark.parametrize("tool", ["read_file", "list_dir", "grep", "edit_file"])
async def test_it_is_told_as_what_is_missing_is(shut: Desk, tool: str) -> None:
    arguments = dict(ON_FILES)[tool]
    hidden = await said(shut, tool, "memory/deep/note.md", arguments)
    missing = await said(shut, tool, "absent/deep/note.md", arguments)
    assert hidden == missing.replace("absent", "memory")


async def test_a_search_from_above_passes_hidden_files_over(shut: Desk) -> None:
    for path in (".", "open/..", str(shut.folder)):
        listed = (await shut.run("list_dir", path=path)).content.splitlines()
        assert {line.split()[0] for line in listed} == {
            *("kept", "note", "notes", "open/", "sent", "twice", "user", "whole")
        }
        assert "memory" not in "\n".join(listed).lower()
        found = (await shut.run("grep", pattern="painting", path=path)).content
        assert found == "open/plan.md:1:painting, open to all"
        names = (await shut.run("glob", pattern="**", path=path)).content.splitlines()
        assert "open/plan.md" in names
        assert not [name for name in names if "memory" in name.lower() or name == "USER.md"]
    for path in ("..", str(shut.workspace)):
        above = (await shut.run("list_dir", path=path)).content.split()
        assert above == [".gatehouse/", "files/", "uploads/"]
        assert "stray" not in (await shut.run("grep", pattern="painting", path=path)).content


async def test_a_session_finds_what_it_kept_and_nothing_of_others(desk: Desk, shut: Desk) -> None:
    for one in (desk, shut):
        assert (await one.run("read_file", path=OURS)).content.startswith("painting, kept")
        assert (await one.run("list_dir", path=".gatehouse/outputs")).content == "ses_1/"
        found = (await one.run("grep", pattern="painting", path=".gatehouse")).content
        assert found == f"{OURS}:1:painting, kept by this session"
        found = (await one.run("glob", pattern="**/*.txt", path=".gatehouse")).content
        assert found == OURS
        assert await said(one, "read_file", OTHERS, {}) == f"{OTHERS} does not exist"
    other = Desk(desk.workspace, session="ses_2")
    assert (await other.run("read_file", path=OTHERS)).content == SECRET
    assert await said(other, "read_file", OURS, {}) == f"{OURS} does not exist"


async def test_whoever_may_see_private_notes_sees_all_of_them(desk: Desk, shut: Desk) -> None:
    for path in ("USER.md", "user", "notes/MEMORY.md", "open/up/deep/note.md", "../USER.md"):
        assert (await desk.run("read_file", path=path)).content == SECRET
    assert "USER.md" in (await desk.run("list_dir", path="..")).content
    found = (await desk.run("grep", pattern="painting", path="memory")).content
    assert "memory/deep/note.md:1" in found
    found = (await desk.run("resolve_path", kind="memory", filename="MEMORY.md")).content
    assert found == str(desk.workspace / "memory/MEMORY.md")


@pytest.mark.parametrize(
    ("kind", "filename"),
    [
        ("memory", "MEMORY.md"),
        ("memory", "none.md"),
        ("workspace", "user"),
        ("workspace", "whole/deep/note.md"),
        ("workspace", "kept/run_2/b.txt"),
    ],
)
async def test_no_path_of_a_hidden_file_is_told(shut: Desk, kind: str, filename: str) -> None:
    with pytest.raises(ToolError, match=f"^{filename} (does not exist$|is outside of )"):
        await shut.run("resolve_path", kind=kind, filename=filename)


@pytest.mark.requirement("CTX-10")
async def test_a_skill_that_is_a_link_to_notes_is_no_skill(desk: Desk, shut: Desk) -> None:
    (desk.workspace / "skills").mkdir()
    (desk.workspace / "skills/diary").symlink_to("../memory/deep")
    skills = Skills({"diary": SECRET, "plain": "how to"})
    desk, shut = (Desk(desk.workspace, skills=skills, notes=notes) for notes in (True, False))
    assert (await desk.run("use_skill", name="diary")).content == SECRET
    assert (await shut.run("use_skill", name="plain")).content == "how to"
    with pytest.raises(ToolError, match="there is no skill named diary"):
        await shut.run("use_skill", name="diary")


async def test_notes_that_are_links_are_hidden_by_both_names(desk: Desk) -> None:
    (desk.folder / "about").mkdir()
    (desk.folder / "about/me.md").write_text(SECRET)
    (desk.workspace / "USER.md").symlink_to("files/about/me.md")
    shut = Desk(desk.workspace, notes=False)
    for path in ("USER.md", "about/me.md"):
        assert await said(shut, "read_file", path, {}) == f"{path} does not exist"
    assert (await shut.run("list_dir", path="about")).content == "[empty folder]"
    assert (await desk.run("read_file", path="USER.md")).content == SECRET


async def test_notes_behind_a_linked_workspace_and_under_a_wider_root_are_hidden(
    shut: Desk, tmp_path: Path
) -> None:
    (tmp_path / "home").symlink_to(shut.workspace)
    linked = Desk(tmp_path / "home", extra=(tmp_path,), notes=False)
    for path in ("USER.md", str(tmp_path / "workspace/USER.md"), str(tmp_path / "home/USER.md")):
        assert await said(linked, "read_file", path, {}) == f"{path} does not exist"
    found = (await linked.run("grep", pattern="safe", path=str(tmp_path))).content
    assert found == "[no match]"
    inner = Desk(shut.workspace, extra=(shut.workspace / "memory/deep",), notes=False)
    assert "does not exist" in await said(inner, "read_file", "memory/deep/note.md", {})


async def quiet(stdio: FakeStdio) -> int:
    return 0


@pytest.mark.requirement("TOOL-5")
async def test_a_command_is_not_granted_what_is_hidden(shut: Desk) -> None:
    sandbox = FakeSandbox(StillClock(), {"go": quiet})
    extra = (shut.workspace / "memory/deep",)
    work = Desk(shut.workspace, extra=extra, sandbox=sandbox, notes=False)
    await work.run("exec", command="go")
    started = sandbox.started[-1]
    assert started.writable == (str(shut.folder),)
    assert set(started.readable) == {
        str(shut.workspace / name) for name in (".gatehouse/outputs/ses_1", "uploads/ses_1")
    }
    for path in ("memory", "notes", "kept"):
        assert await said_of_exec(work, path) == f"{path} does not exist"


@pytest.mark.requirement("TOOL-5")
async def test_without_confinement_no_command_runs_where_notes_are_hidden(shut: Desk) -> None:
    sandbox = FakeSandbox(StillClock(), {"go": quiet})
    sandbox.name = "none"
    with pytest.raises(ToolError, match="private notes are closed here, and commands run without"):
        await Desk(shut.workspace, sandbox=sandbox, notes=False).run("exec", command="go")
    assert sandbox.started == []
    await Desk(shut.workspace, sandbox=sandbox).run("exec", command="go")
    assert len(sandbox.started) == 1


def test_an_id_becomes_one_part_of_a_path_and_no_two_the_same() -> None:
    """Ids of calls are the provider's, and may hold anything."""
    for plain in ("call_1-A", "x" * 64):
        assert file_name(plain) == plain
    others = ("", "..", "a/b", "a.b", "a b", "\u00e4", "x" * 65, "x" * 66, "\ud800")
    names = [file_name(other) for other in others]
    assert len({*names, *others}) == 2 * len(others)
    for name in names:
        assert re.fullmatch(r"[\w-]{1,64}", name, re.ASCII)


def test_a_session_whose_name_begins_like_another_is_another(desk: Desk) -> None:
    hidden = Hidden.of(ResolvedLayout(Layout.of(desk.workspace)), "ses_1", notes=True)
    shelf = desk.workspace / ".gatehouse/outputs"
    for path, covered in (("ses_1", False), ("ses_1/x", False), ("ses_10", True), ("SES_1", True)):
        assert hidden.covers(shelf / path) is covered
    assert not hidden.covers(shelf)
    assert not hidden.covers(desk.workspace / "USER.md")


def test_who_does_not_say_that_notes_are_open_does_not_see_them(desk: Desk) -> None:
    hidden = Hidden.of(ResolvedLayout(Layout.of(desk.workspace)), "ses_1", notes=False)
    for path in ("USER.md", "memory", "memory/x", "personas", "personas/kind/USER.md"):
        assert hidden.covers(desk.workspace / path)
    for path in ("USER.md2", "memory2", "USER.md", "sub/memory", "."):
        assert not hidden.covers(desk.folder / path)


async def said_of_exec(desk: Desk, folder: str) -> str:
    with pytest.raises(ToolError) as caught:
        await desk.run("exec", command="go", working_dir=folder)
    return str(caught.value)


def everything(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path): path.read_bytes() if path.is_file() and not path.is_symlink() else None
        for path in sorted(folder.rglob("*"))
    }


@pytest.mark.requirement("CTX-6", "SUB-17")
async def test_notes_that_are_checked_out_in_a_worktree_are_hidden_too(desk: Desk) -> None:
    folder = desk.workspace / ".gatehouse" / "worktrees" / "ses_9"
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").write_text("private")
    path = str(folder / "MEMORY.md")
    assert (await desk.run("read_file", path=path)).content == "private"
    shut = Desk(desk.workspace, notes=False)
    with pytest.raises(ToolError, match="does not exist"):
        await shut.run("read_file", path=path)
    own = Layout.of_worktree(desk.workspace, folder)
    assert not Hidden.of(ResolvedLayout(own), "ses_1", notes=False).covers(folder / "MEMORY.md")
    assert Hidden.of(ResolvedLayout(own), "ses_1", notes=True).covers(folder.with_name("ses_8"))
