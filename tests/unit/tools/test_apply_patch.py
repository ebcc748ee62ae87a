"""`apply_patch` on files: all of a patch or nothing, within what may be reached (TOOL-14)."""

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runtime.domain.errors import ToolError
from runtime.policy.decide import Bounds
from runtime.sessions.bounds import rule_lists
from runtime.tools import atomic_write, patch_notes
from runtime.tools.atomic_write import Staged
from runtime.tools.builtin import apply_patch
from runtime.tools.builtin.apply_patch import prepared
from runtime.tools.code_sinks import written
from runtime.tools.patch_notes import NOTES_KEPT, note_of
from runtime.tools.patches import MAX_FILES, parse
from runtime.tools.paths import PathGuard, Spot
from runtime.workspace.layout import Layout, ResolvedLayout
from tests.unit.tools.support import Desk
from tests.unit.tools.test_seen_versions import leftovers

pytestmark = pytest.mark.requirement("TOOL-14")


def patch(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])


ALL_KINDS = patch(
    "*** Add File: new/deep.md",
    "+n",
    "*** Update File: a.md",
    "@@",
    "-one",
    "+1",
    "*** Update File: b.md",
    "*** Move to: moved/c.md",
    "@@",
    "-two",
    "+2",
    "*** Delete File: gone.md",
)


@pytest.fixture
def files(desk: Desk) -> Path:
    for name, text in (("a.md", "one\n"), ("b.md", "two\n"), ("gone.md", "three\n")):
        (desk.folder / name).write_text(text)
    (desk.folder / "b.md").chmod(0o640)
    return desk.folder


def tree(folder: Path) -> dict[str, str]:
    return {str(one.relative_to(folder)): one.read_text() for one in folder.rglob("*.*")}


BEFORE = {"a.md": "one\n", "b.md": "two\n", "gone.md": "three\n"}
AFTER = {"a.md": "1\n", "moved/c.md": "2\n", "new/deep.md": "n\n"}


def staged(folder: Path) -> list[Path]:
    return list(folder.rglob(".gatehouse-*"))


def folders(folder: Path) -> list[str]:
    return [one.name for one in folder.rglob("*") if one.is_dir()]


def handles() -> int:
    """How many this process holds open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def modes(folder: Path, *names: str) -> list[int]:
    return [(folder / name).stat().st_mode & 0o777 for name in names]


async def refused(desk: Desk, text: str) -> str:
    with pytest.raises(ToolError) as caught:
        await desk.run("apply_patch", patch=text)
    return str(caught.value)


async def test_it_adds_updates_moves_and_deletes(desk: Desk, files: Path) -> None:
    said = (await desk.run("apply_patch", patch=ALL_KINDS)).content
    assert said.split("\n") == [
        "added new/deep.md",
        "updated a.md, 1 hunk",
        "moved b.md to moved/c.md, 1 hunk",
        "deleted gone.md",
    ]
    assert tree(files) == AFTER
    assert (files / "moved/c.md").stat().st_mode & 0o777 == 0o640
    assert not (files / "new/deep.md").stat().st_mode & 0o111
    await desk.run("edit_file", path="a.md", old_text="1", new_text="I")
    (files / "new/deep.md").write_text("by another\n")
    told = await refused(desk, patch("*** Delete File: new/deep.md"))
    assert "changed since it was last read" in told


async def test_a_diff_makes_a_program_and_deletes_an_empty_file(desk: Desk, files: Path) -> None:
    (files / "empty").touch()
    new = "diff --git a/run b/run\nnew file mode 100755\n"
    new += "--- /dev/null\n+++ b/run\n@@ -0,0 +1 @@\n+x\n"
    gone = "diff --git a/{0} b/{0}\ndeleted file mode 100644\nindex e69de29..0000000\n"
    assert "has other lines" in await refused(desk, new + gone.format("a.md"))
    await desk.run("apply_patch", patch=new + gone.format("empty"))
    mode = (files / "run").stat().st_mode
    assert mode & 0o111 == (mode & 0o444) >> 2
    assert not (files / "empty").exists()


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (("*** Update File: b.md", "@@", "-tw", "+x"), "b.md, hunk 1: its lines are not in"),
        (("*** Update File: none.md", "@@", "-x"), "none.md does not exist"),
        (("*** Add File: b.md", "+x"), "b.md exists already"),
        (("*** Update File: b.md", "*** Move to: gone.md"), "gone.md exists already"),
        (("*** Delete File: none.md",), "none.md does not exist"),
        (("*** Delete File: a.md",), "a.md is named twice"),
        (("*** Update File: b.md", "@@", "-two", "+two"), "changes nothing in it"),
        (("*** Delete File: ../../x",), "outside of what may be reached"),
        (("*** Add File: ../.gatehouse/x", "+x"), "belongs to the gateway"),
        (("*** Add File: .", "+x"), "is a directory"),
        (("*** Add File: a.md/x", "+x"), "a.md/x"),
        (("*** Update File: link.md", "@@", "-two", "+2"), "links are not written through"),
        (("*** Update File: raw.bin", "@@", "-two", "+2"), "is not UTF-8 text"),
    ],
)
async def test_where_one_file_does_not_fit_none_is_changed(
    desk: Desk, files: Path, lines: tuple[str, ...], said: str
) -> None:
    (files / "link.md").symlink_to("b.md")
    (files / "raw.bin").write_bytes(b"\xff\xfe\x00")
    fits = ("*** Update File: a.md", "@@", "-one", "+1", "*** Add File: new/x.md", "+x")
    assert said in await refused(desk, patch(*fits, *lines))
    (files / "link.md").unlink()
    (files / "raw.bin").unlink()
    assert tree(files) == BEFORE
    assert not (files / "new").exists()
    assert leftovers(files) == []


async def test_all_that_does_not_fit_is_told_together(desk: Desk, files: Path) -> None:
    told = await refused(
        desk,
        patch("*** Delete File: x", "*** Add File: a.md", "*** Update File: b.md", "@@", "-t"),
    )
    assert [line.split(" ")[0] for line in told.split("\n")][:3] == ["x", "a.md", "b.md,"]
    assert told.endswith("nothing was changed")


async def test_a_file_that_changed_since_it_was_read_is_not_patched(
    desk: Desk, files: Path
) -> None:
    await desk.run("read_file", path="a.md")
    (files / "a.md").write_text("one\nand more\n")
    assert "changed since it was last read" in await refused(desk, ALL_KINDS)
    assert "changed since it was last read" in await refused(desk, patch("*** Delete File: a.md"))


async def test_what_fails_in_the_middle_is_put_back(desk: Desk, files: Path) -> None:
    """Somebody else writes a file when the others are replaced already."""
    (files / "a.md").chmod(0o604)
    with prepared(parse(ALL_KINDS), "note", desk.context()) as held:
        steps = held.commit()
        next(steps)
        next(steps)
        assert modes(files, "a.md") == [0o604]
        (files / "gone.md").write_text("changed by another\n")
        with pytest.raises(ToolError, match=r"gone.md changed .*; nothing was changed"):
            list(steps)
    assert tree(files) == BEFORE | {"gone.md": "changed by another\n"}
    assert modes(files, "a.md", "b.md") == [0o604, 0o640]
    assert leftovers(files) == []


async def test_a_file_that_is_written_while_it_is_moved_stays(desk: Desk, files: Path) -> None:
    text = patch("*** Update File: b.md", "*** Move to: moved.md")
    with prepared(parse(text), "note", desk.context()) as held:
        steps = held.commit()
        next(steps)
        assert (files / "moved.md").read_text() == "two\n"
        (files / "b.md").write_text("changed by another\n")
        with pytest.raises(ToolError, match=r"^b.md changed .*; nothing was changed"):
            list(steps)
    assert tree(files) == BEFORE | {"b.md": "changed by another\n"}


async def test_what_another_changed_meanwhile_is_not_overwritten_by_putting_back(
    desk: Desk, files: Path
) -> None:
    text = patch("*** Update File: a.md", "@@", "-one", "+1", "*** Delete File: gone.md")
    with prepared(parse(text), "note", desk.context()) as held:
        steps = held.commit()
        next(steps)
        (files / "a.md").write_text("theirs\n")
        (files / "gone.md").write_text("theirs too\n")
        with pytest.raises(ToolError, match=r"a.md could not be put back"):
            list(steps)
    assert (files / "a.md").read_text() == "theirs\n"


@pytest.mark.parametrize("done", range(1, 6))
async def test_a_call_that_runs_again_after_a_crash_does_the_rest(
    desk: Desk, files: Path, done: int
) -> None:
    """The process dies after so many files."""
    with prepared(parse(ALL_KINDS), note_of(ALL_KINDS, desk.context()), desk.context()) as held:
        steps = held.commit()
        for _ in range(done):
            next(steps)
        steps.close()
    again = Desk(desk.workspace)
    for _ in range(2):
        assert (await again.run("apply_patch", patch=ALL_KINDS)).content.startswith("added")
        assert tree(files) == AFTER
        assert leftovers(files) == []


class Dead(BaseException):
    """Nothing is tidied up behind it, as behind a kill."""


async def killed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A patch whose process dies when it has staged all of its files."""
    stage = atomic_write.stage

    def dies(spot: Spot, content: bytes, like: os.stat_result | None, **more: Any) -> Staged:
        made = stage(spot, content, like, **more)
        if spot.name == "c.md":
            raise Dead
        return made

    with monkeypatch.context() as patched:
        patched.setattr(atomic_write, "stage", dies)
        with pytest.raises(Dead):
            await desk.run("apply_patch", patch=ALL_KINDS)
    assert len(staged(desk.folder)) == 3


async def test_what_a_process_staged_that_died_is_taken_away_by_the_same_call(
    desk: Desk, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await killed(desk, monkeypatch)
    await Desk(desk.workspace).run("apply_patch", patch=ALL_KINDS)
    assert tree(files) == AFTER
    assert staged(files) == []


async def test_a_disk_that_takes_no_more_leaves_all_as_it_was(
    desk: Desk, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = atomic_write.stage

    def full(spot: Spot, content: bytes, like: os.stat_result | None, **more: Any) -> Staged:
        if spot.name == "c.md":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return stage(spot, content, like, **more)

    with monkeypatch.context() as patched:
        patched.setattr(atomic_write, "stage", full)
        told = await refused(desk, ALL_KINDS)
    assert told.startswith("the patch cannot be used: No space left")
    assert told.endswith("; nothing was changed")
    assert (tree(files), staged(files), folders(files)) == (BEFORE, [], [])
    assert list((desk.workspace / ".gatehouse" / "patches").iterdir()) == []


async def test_of_many_files_that_do_not_fit_the_first_are_told(desk: Desk, files: Path) -> None:
    for number, more in ((8, []), (9, ["and 1 more files do not fit"])):
        names = [f"none{n}" for n in range(number)]
        lines = (await refused(desk, patch(*(f"*** Delete File: {one}" for one in names)))).split(
            "\n"
        )
        assert [line.split(" ")[0] for line in lines[:8]] == names[:8]
        assert lines[8:] == [*more, "nothing was changed"]


async def test_folders_that_a_failed_patch_made_are_taken_away(desk: Desk, files: Path) -> None:
    (files / "there").mkdir()
    names = ("new/deep/x", "there/also/x", f"other/{'x' * 300}")
    lines = [line for name in names for line in (f"*** Add File: {name}", "+x")]
    assert "nothing was changed" in await refused(desk, patch(*lines))
    assert folders(files) == ["there"]
    assert tree(files) == BEFORE


async def test_a_patch_of_deep_folders_holds_few_files_open(desk: Desk, files: Path) -> None:
    deep = "/".join(["d"] * 100)
    text = patch(*(f"*** Add File: {deep}/{n}" for n in range(MAX_FILES)))
    before = handles()
    with prepared(parse(text), "note", desk.context()):
        assert handles() <= before + 2 * MAX_FILES


async def test_a_call_that_cannot_go_on_after_a_crash_names_what_was_done(
    desk: Desk, files: Path
) -> None:
    with prepared(parse(ALL_KINDS), note_of(ALL_KINDS, desk.context()), desk.context()) as held:
        steps = held.commit()
        next(steps)
        steps.close()
    (files / "a.md").write_text("another\n")
    told = await refused(desk, ALL_KINDS)
    assert "a.md, hunk 1" in told
    assert "only this was done, before the gateway was stopped: new/deep.md" in told


async def test_another_patch_of_a_call_with_the_same_id_is_another(desk: Desk, files: Path) -> None:
    """Some providers count the calls of each response anew."""
    text = patch("*** Add File: x.md", "+x")
    await desk.run("apply_patch", patch=text)
    assert "x.md exists already" in await refused(desk, patch("*** Add File: x.md", "+x", "+y"))
    await desk.run("apply_patch", patch=patch("*** Delete File: x.md"))
    assert not (files / "x.md").exists()


async def test_few_notes_are_kept(desk: Desk, files: Path) -> None:
    for number in range(NOTES_KEPT + 3):
        text = patch("*** Update File: a.md", "@@", "-one", f"+{number}")
        await desk.run("apply_patch", patch=text)
        (files / "a.md").write_text("one\n")
        desk.files = type(desk.files)()
    assert len(list((desk.workspace / ".gatehouse" / "patches").iterdir())) == NOTES_KEPT


async def test_what_a_process_staged_that_died_is_known_until_its_run_has_ended(
    desk: Desk, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await killed(desk, monkeypatch)
    monkeypatch.setattr(patch_notes, "NOTES_KEPT", 0)
    await desk.run("apply_patch", patch=patch("*** Add File: x.md", "+x"))
    assert patch_notes.runs_that_left(desk.workspace) == {"run_1"}
    guarded = PathGuard(ResolvedLayout(Layout.of(desk.workspace)))
    assert patch_notes.sweep(guarded, {"run_2"}) == 0
    assert patch_notes.sweep(guarded, {"run_1"}) == 3
    assert (staged(files), patch_notes.runs_that_left(desk.workspace)) == ([], frozenset())
    assert tree(files) == {**BEFORE, "x.md": "x\n"}


async def test_private_notes_do_not_exist_for_a_group(desk: Desk, files: Path) -> None:
    (desk.workspace / "memory").mkdir()
    (desk.workspace / "memory" / "MEMORY.md").write_text("one\n")
    os.link(desk.workspace / "memory" / "MEMORY.md", files / "hard.md")
    desk.notes = False
    for name in ("../memory/MEMORY.md", "hard.md"):
        assert "does not exist" in await refused(desk, patch(f"*** Delete File: {name}"))
    assert (desk.workspace / "memory" / "MEMORY.md").read_text() == "one\n"


async def test_it_writes_only_where_it_was_decided_that_it_may(desk: Desk, files: Path) -> None:
    context = replace(desk.context(), writes=(str(files / "a.md"),))
    with (
        pytest.raises(ToolError, match=r"leads elsewhere"),
        prepared(parse(ALL_KINDS), "note", context),
    ):
        pass
    assert tree(files) == BEFORE
    below = replace(desk.context(), writes=(str(files / "a.md" / "x"),))
    text = patch("*** Update File: a.md", "@@", "-one", "+1")
    with (
        pytest.raises(ToolError, match=r"leads elsewhere"),
        prepared(parse(text), "note", below),
    ):
        pass


async def test_a_patch_over_too_much_is_refused(
    desk: Desk, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apply_patch, "MOST_BYTES", 19)
    assert "about 20 bytes, more than 19; split it" in await refused(desk, ALL_KINDS)
    assert tree(files) == BEFORE
    monkeypatch.setattr(apply_patch, "MOST_BYTES", 20)
    await desk.run("apply_patch", patch=ALL_KINDS)
    assert tree(files) == AFTER


def test_all_that_it_names_is_touched_and_what_acts_later_is_known(desk: Desk, files: Path) -> None:
    touches = desk.touches("apply_patch", patch=ALL_KINDS)
    names = ("new/deep.md", "a.md", "b.md", "moved/c.md", "gone.md")
    assert touches.subjects == names
    assert touches.writes == tuple(str(files / name) for name in names)
    assert touches.reads == tuple(str(files / name) for name in ("a.md", "b.md", "gone.md"))
    acting = desk.touches(
        "apply_patch", patch=patch("*** Add File: x.md", "+x", "*** Delete File: Makefile")
    )
    bounds = Bounds(rules=rule_lists(allow=("exec(make:*)",)))
    assert written(acting, desk.context(), bounds).sinks == ("Makefile",)
    skill = desk.touches(
        "apply_patch", patch=patch("*** Delete File: x.md", "*** Add File: ../skills/a.md", "+x")
    )
    assert written(skill, desk.context(), Bounds()).sinks == ("skills",)
