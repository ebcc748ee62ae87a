"""The live workspace: what a turn sees of the files, and when (CTX-5)."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from runtime.workspace.snapshot import Workspace, WorkspaceSnapshot
from runtime.workspace.text_files import LIMIT
from tests.unit.workspace.support import Folder


async def test_a_snapshot_holds_what_is_there_and_nothing_else(folder: Folder) -> None:
    folder.write("AGENTS.md", "Work well.\n")
    folder.write("USER.md", "Ada")
    folder.write("NOTES.md", "not an identity file")
    folder.write("memory/MEMORY.md", "2026-01-01 the sky is blue")
    snapshot = await Workspace(folder.root).snapshot()
    assert dict(snapshot.identity) == {"AGENTS.md": "Work well.\n", "USER.md": "Ada"}
    assert snapshot.memory == "2026-01-01 the sky is blue"
    assert snapshot.skills == ()
    assert snapshot.warnings == ()
    assert snapshot.root == folder.root


@pytest.mark.requirement("CTX-5")
@pytest.mark.parametrize(
    "edit",
    [
        lambda folder: folder.write("AGENTS.md", "Other words."),
        lambda folder: folder.write("SOUL.md", "A file that was not there."),
        lambda folder: folder.remove("AGENTS.md"),
        lambda folder: folder.write("memory/MEMORY.md", "A first note."),
        lambda folder: folder.skill("baking"),
        lambda folder: folder.skill("cooking", description="Cooks otherwise."),
        lambda folder: folder.remove("skills/cooking/SKILL.md"),
        lambda folder: folder.write("skills/empty/SKILL.md", "no frontmatter"),
    ],
    ids=["change", "add", "remove", "memory", "new skill", "skill", "skill gone", "broken skill"],
)
async def test_an_edit_takes_effect_at_the_next_turn(
    folder: Folder, edit: Callable[[Folder], object]
) -> None:
    folder.write("AGENTS.md", "Work well.")
    folder.skill("cooking")
    (folder.root / "skills" / "empty").mkdir()
    workspace = Workspace(folder.root)
    before = await _settled(workspace)
    edit(folder)
    after = await workspace.snapshot()
    assert after.digest != before.digest
    fresh = await Workspace(folder.root).snapshot()
    assert (after.identity, after.memory, after.skills, after.digest) == (
        fresh.identity,
        fresh.memory,
        fresh.skills,
        fresh.digest,
    )


@pytest.mark.requirement("CTX-5")
async def test_edits_in_quick_succession_are_all_seen(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where time stamps are coarse, two edits of the same size look like one."""
    monkeypatch.setattr("runtime.workspace.snapshot.status", _coarse)
    workspace = Workspace(folder.root)
    for turn in range(30):
        folder.write("AGENTS.md", f"first  {turn:4}" + "." * turn)
        await workspace.snapshot()
        folder.write("AGENTS.md", f"second {turn:4}" + "." * turn)
        assert (await workspace.snapshot()).identity["AGENTS.md"] == f"second {turn:4}" + "." * turn


@pytest.mark.requirement("CTX-5")
async def test_a_file_that_is_replaced_with_its_time_kept_is_read_again(folder: Folder) -> None:
    path = folder.write("AGENTS.md", "aaaa")
    workspace = Workspace(folder.root)
    await _settled(workspace)
    times = path.stat()
    os.utime(folder.write("new.md", "bbbb"), ns=(times.st_atime_ns, times.st_mtime_ns))
    (folder.root / "new.md").replace(path)
    assert (await workspace.snapshot()).identity["AGENTS.md"] == "bbbb"


async def test_nothing_is_read_while_nothing_changes(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write("AGENTS.md", "Work well.")
    folder.skill("cooking", more=["requires: {programs: [git]}"])
    workspace = Workspace(folder.root, find_program=lambda name: name)
    before = await _settled(workspace)
    reads: list[str] = []
    monkeypatch.setattr("runtime.workspace.snapshot.read_text", lambda _, name: reads.append(name))
    assert await workspace.snapshot() is before
    assert reads == []


async def test_a_touched_file_with_the_same_words_is_the_same_snapshot(folder: Folder) -> None:
    path = folder.write("AGENTS.md", "Work well.")
    workspace = Workspace(folder.root)
    before = await _settled(workspace)
    os.utime(path, ns=(1, 1))
    assert await workspace.snapshot() is before


async def test_turns_side_by_side_share_one_reading(folder: Folder) -> None:
    folder.write("AGENTS.md", "Work well.")
    workspace = Workspace(folder.root)
    snapshots = await asyncio.gather(*(workspace.snapshot() for _ in range(20)))
    assert {one.digest for one in snapshots} == {snapshots[0].digest}
    assert len({id(one) for one in snapshots}) == 1


@pytest.mark.requirement("CTX-5")
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"caf\xe9 au lait", "USER.md is skipped: it is not UTF-8 (byte 3)"),
        ("x" * (LIMIT + 1), "USER.md is skipped: it is larger than 256 KiB"),
        ("A".encode("utf-16"), "USER.md is skipped: it is not UTF-8 (byte 0)"),
    ],
    ids=["latin-1", "large", "utf-16"],
)
async def test_a_file_that_cannot_be_used_is_skipped_and_named(
    folder: Folder, content: str | bytes, said: str
) -> None:
    folder.write("AGENTS.md", "Work well.")
    folder.write("USER.md", content)
    snapshot = await Workspace(folder.root).snapshot()
    assert dict(snapshot.identity) == {"AGENTS.md": "Work well."}
    assert snapshot.warnings == (said,)


@pytest.mark.requirement("CTX-5")
async def test_a_file_of_exactly_the_limit_is_read(folder: Folder) -> None:
    folder.write("memory/MEMORY.md", "x" * LIMIT)
    snapshot = await Workspace(folder.root).snapshot()
    assert snapshot.memory == "x" * LIMIT
    assert snapshot.warnings == ()


@pytest.mark.requirement("CTX-5")
async def test_a_warning_is_logged_once_and_again_when_it_comes_back(folder: Folder) -> None:
    workspace = Workspace(folder.root)
    with capture_logs() as logs:
        for content in (b"\xff", b"\xff\xff", "mended", b"\xff"):
            folder.write("SOUL.md", content)
            await _settled(workspace)
    said = [entry["reason"] for entry in logs if entry["event"] == "workspace_file_skipped"]
    assert said == ["SOUL.md is skipped: it is not UTF-8 (byte 0)"] * 2
    assert {entry["log_level"] for entry in logs} == {"warning"}


async def test_a_byte_order_mark_and_foreign_line_ends_do_not_reach_the_prompt(
    folder: Folder,
) -> None:
    folder.write("SOUL.md", b"\xef\xbb\xbfone\r\ntwo\rthree")
    assert (await Workspace(folder.root).snapshot()).identity["SOUL.md"] == "one\ntwo\nthree"


@pytest.mark.parametrize("name", ["SOUL.md", "memory"])
async def test_a_link_that_leaves_the_workspace_is_not_followed(
    folder: Folder, outside: Folder, name: str
) -> None:
    outside.write("MEMORY.md", "the gateway's own secrets")
    folder.link(name, outside.root / "MEMORY.md" if name == "SOUL.md" else outside.root)
    snapshot = await Workspace(folder.root).snapshot()
    assert dict(snapshot.identity) == {}
    assert snapshot.memory is None
    (warning,) = snapshot.warnings
    assert warning.endswith("is skipped: it is a link that leaves the workspace")


async def test_a_link_inside_of_the_workspace_is_followed(folder: Folder) -> None:
    folder.write("shared/soul.md", "Calm.")
    folder.link("SOUL.md", folder.root / "shared" / "soul.md")
    workspace = Workspace(folder.root)
    assert (await _settled(workspace)).identity["SOUL.md"] == "Calm."
    folder.write("shared/soul.md", "Bold!")
    assert (await workspace.snapshot()).identity["SOUL.md"] == "Bold!"


async def test_a_pipe_or_a_folder_in_the_place_of_a_file_holds_nobody_up(folder: Folder) -> None:
    os.mkfifo(folder.root / "AGENTS.md")
    (folder.root / "SOUL.md").mkdir()
    folder.link("USER.md", folder.root / "USER.md")
    snapshot = await Workspace(folder.root).snapshot()
    assert dict(snapshot.identity) == {}
    assert [warning.split(" ")[0] for warning in snapshot.warnings] == [
        "AGENTS.md",
        "SOUL.md",
        "USER.md",
    ]


async def test_a_workspace_that_is_gone_says_so_and_comes_back(folder: Folder) -> None:
    moved = folder.root.with_name("moved")
    folder.write("AGENTS.md", "Work well.")
    workspace = Workspace(folder.root)
    await _settled(workspace)
    folder.root.rename(moved)
    gone = await workspace.snapshot()
    assert gone.warnings == (f"the workspace {folder.root} is not a folder",)
    assert dict(gone.identity) == {}
    moved.rename(folder.root)
    assert (await workspace.snapshot()).identity["AGENTS.md"] == "Work well."


async def test_two_workspaces_with_the_same_words_are_told_apart(
    folder: Folder, outside: Folder
) -> None:
    """The workspace's path is part of the prompt."""
    one, other = Workspace(folder.root), Workspace(outside.root)
    assert (await one.snapshot()).digest != (await other.snapshot()).digest


def _coarse(path: Path) -> tuple[int, int, int, int] | None:
    """The status of a file on a file system whose clock stands still."""
    return (0, 0, path.stat().st_size, 0) if path.exists() else None


async def _settled(workspace: Workspace) -> WorkspaceSnapshot:
    await workspace.snapshot()
    return await workspace.snapshot()
