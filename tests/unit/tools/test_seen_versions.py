"""Reading, writing and editing files (TOOL-3, TOOL-4)."""

import asyncio
import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.domain.errors import ToolError
from runtime.tools.seen_versions import Seen, SeenFiles
from tests.conftest import FailAfter
from tests.unit.tools.support import Desk, call


async def refused(desk: Desk, tool: str, **arguments: str | int) -> str:
    with pytest.raises(ToolError) as caught:
        await desk.run(tool, **arguments)
    return str(caught.value)


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".gatehouse-")]


@pytest.mark.requirement("TOOL-3")
async def test_an_edit_of_text_that_is_absent_says_what_is_nearest(desk: Desk) -> None:
    file = desk.folder / "a.py"
    file.write_text("import os\n\ndef total(items):\n    return sum(items)\n")
    told = await refused(
        desk,
        "edit_file",
        path="a.py",
        old_text="def total(item):\n    return sum(item)",
        new_text="",
    )
    assert "old_text is not in the file" in told
    assert "line 3" in told
    assert "-def total(items):" in told
    assert "+def total(item):" in told
    assert file.read_text().startswith("import os")


@pytest.mark.requirement("TOOL-3")
async def test_blanks_that_differ_are_made_visible(desk: Desk) -> None:
    (desk.folder / "a").write_text("one\n\tdeep = 1\ntwo  \n")
    told = await refused(desk, "edit_file", path="a", old_text="    deep = 1", new_text="x")
    assert "line 2" in told
    assert "-\\tdeep = 1" in told
    told = await refused(desk, "edit_file", path="a", old_text="two\n", new_text="x")
    assert "-two\\s\\s" in told


@pytest.mark.requirement("TOOL-3")
async def test_the_search_for_what_is_nearest_ends_on_a_large_file(
    desk: Desk, fail_after: FailAfter
) -> None:
    (desk.folder / "big").write_text("x" * 5_000_000 + "\n" + "some line\n" * 60_000)
    wrong = "some lime\n" * 500
    async with fail_after(20):
        told = await refused(desk, "edit_file", path="big", old_text=wrong, new_text="")
    assert "line 2" in told
    assert len(told) < 5000
    assert "nothing in it is similar" in await refused(
        desk, "edit_file", path="big", old_text="Ωmega", new_text=""
    )


@pytest.mark.requirement("TOOL-3")
async def test_text_that_is_not_unique_needs_a_count(desk: Desk) -> None:
    file = desk.folder / "a"
    file.write_text("a\nb\na\nb\na\n")
    told = await refused(desk, "edit_file", path="a", old_text="a", new_text="c")
    assert "3 times (lines 1, 3, 5)" in told
    assert (await desk.run("edit_file", path="a", old_text="a", new_text="c", count=2)).content == (
        "replaced 2 times in a"
    )
    assert file.read_text() == "c\nb\nc\nb\na\n"
    assert "1 times, not 2" in await refused(
        desk, "edit_file", path="a", old_text="a", new_text="c", count=2
    )
    once = await desk.run("edit_file", path="a", old_text="a", new_text="c")
    assert once.content == "replaced once in a"
    assert file.read_text() == "c\nb\nc\nb\nc\n"


@pytest.mark.requirement("TOOL-3")
async def test_line_ends_and_the_last_line_are_kept(desk: Desk) -> None:
    file = desk.folder / "dos.txt"
    file.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\nthree")
    assert (await desk.run("read_file", path="dos.txt")).content == "one\ntwo\nthree"
    await desk.run("edit_file", path="dos.txt", old_text="one\ntwo", new_text="1\n2\n2b")
    assert file.read_bytes() == b"\xef\xbb\xbf1\r\n2\r\n2b\r\nthree"
    mixed = desk.folder / "mixed"
    mixed.write_bytes(b"a\r\nb\nc\n")
    await desk.run("edit_file", path="mixed", old_text="b\nc", new_text="d\ne")
    assert mixed.read_bytes() == b"a\r\nd\ne\n"


@pytest.mark.requirement("TOOL-3")
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755])
async def test_writes_keep_the_mode_and_leave_nothing_behind(desk: Desk, mode: int) -> None:
    file = desk.folder / "run.sh"
    file.write_text("echo 1")
    file.chmod(mode)
    await desk.run("edit_file", path="run.sh", old_text="1", new_text="2")
    await desk.run("write_file", path="run.sh", content="echo 3")
    assert file.stat().st_mode & 0o7777 == mode
    assert file.read_text() == "echo 3"
    assert not leftovers(desk.folder)


@pytest.mark.requirement("TOOL-3")
async def test_a_disk_that_takes_no_more_leaves_the_old_content_and_nothing_else(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    (desk.folder / "a").write_text("one")

    def full(_handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("runtime.tools.atomic_write.os.fsync", full)
    for tool, arguments in (
        ("write_file", {"content": "two"}),
        ("edit_file", {"old_text": "one", "new_text": "two"}),
    ):
        told = await refused(desk, tool, path="a", **arguments)
        assert told == "a cannot be used: No space left on device"
        assert {one.name: one.read_text() for one in desk.folder.iterdir()} == {"a": "one"}


@pytest.mark.requirement("TOOL-3")
async def test_a_reader_sees_the_old_content_or_the_new(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the rename the old file is whole; a rename that fails changes nothing."""
    file = desk.folder / "a"
    file.write_text("old")
    seen: list[str] = []

    def fail(old: str, new: str, **handles: int) -> None:
        seen.append(file.read_text())
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", fail)
    assert "No space left" in await refused(desk, "write_file", path="a", content="new")
    assert seen == ["old"]
    assert file.read_text() == "old"
    assert not leftovers(desk.folder)


@pytest.mark.requirement("TOOL-3")
async def test_a_file_that_changed_since_it_was_read_is_not_overwritten(desk: Desk) -> None:
    file = desk.folder / "a"
    file.write_text("one")
    await desk.run("read_file", path="a")
    status = file.stat()
    file.write_text("two")
    # As long as before and with the old time: only the content tells.
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    for tool, arguments in (
        ("write_file", {"content": "mine"}),
        ("edit_file", {"old_text": "two", "new_text": "mine"}),
    ):
        told = await refused(desk, tool, path="a", **arguments)
        assert "changed since it was last read in this session; read it again" in told
    assert file.read_text() == "two"
    await desk.run("read_file", path="a")
    await desk.run("write_file", path="a", content="mine")
    await desk.run("edit_file", path="a", old_text="mine", new_text="ours")
    assert file.read_text() == "ours"


@pytest.mark.requirement("TOOL-3")
async def test_a_touched_file_and_one_never_seen_may_be_written(desk: Desk) -> None:
    file = desk.folder / "a"
    file.write_text("one")
    assert "replaced a" in (await desk.run("write_file", path="a", content="two")).content
    os.utime(file, ns=(1, 1))
    await desk.run("edit_file", path="a", old_text="two", new_text="three")
    assert file.read_text() == "three"


@pytest.mark.requirement("TOOL-3")
async def test_a_change_between_the_comparison_and_the_rename_is_noticed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = desk.folder / "a"
    file.write_text("one")
    sync = os.fsync

    def change_then_sync(handle: int) -> None:
        monkeypatch.setattr(os, "fsync", sync)
        file.write_text("somebody else's")
        sync(handle)

    monkeypatch.setattr(os, "fsync", change_then_sync)
    told = await refused(desk, "edit_file", path="a", old_text="one", new_text="two")
    assert "changed while it was written; nothing was written" in told
    assert file.read_text() == "somebody else's"
    assert not leftovers(desk.folder)


@pytest.mark.requirement("TOOL-3")
@pytest.mark.parametrize("decided", ["a.md/x", "a.mdx", "b.md"])
async def test_a_file_is_changed_only_where_it_was_decided_that_it_may(
    desk: Desk, decided: str
) -> None:
    (desk.folder / "a.md").write_text("one")
    context = replace(desk.context(), writes=(str(desk.folder / decided),))
    for tool, more in (
        ("edit_file", {"old_text": "one", "new_text": "two"}),
        ("write_file", {"content": "two"}),
    ):
        prepared = desk.registry.prepare(call(tool, {"path": "a.md", **more}))
        with pytest.raises(ToolError, match="leads elsewhere"):
            await prepared.run(context)
    assert (desk.folder / "a.md").read_text() == "one"


@pytest.mark.requirement("TOOL-3")
async def test_edits_at_the_same_moment_all_count(desk: Desk) -> None:
    file = desk.folder / "a"
    file.write_text("".join(f"<{n}>" for n in range(8)))
    others = [Desk(desk.workspace) for _ in range(8)]
    await asyncio.gather(
        *(
            other.run("edit_file", path="a", old_text=f"<{n}>", new_text=f"({n})")
            for n, other in enumerate(others)
        )
    )
    assert file.read_text() == "".join(f"({n})" for n in range(8))


async def test_parents_are_made_and_a_folder_is_not_overwritten(desk: Desk) -> None:
    told = (await desk.run("write_file", path="a/b/c.md", content="é")).content
    assert told == "created a/b/c.md, 2 bytes"
    assert (desk.folder / "a/b/c.md").read_text() == "é"
    for path in ("a", ".", "a/b/"):
        assert "is a directory" in await refused(desk, "write_file", path=path, content="x")


async def test_a_file_is_read_by_ranges_that_go_on(desk: Desk) -> None:
    (desk.folder / "a").write_text("".join(f"line {n}\n" for n in range(1, 11)))
    part = (await desk.run("read_file", path="a", offset=3, limit=2)).content
    assert part == "line 3\nline 4\n[lines 3-4 of 10; offset=5 goes on]"
    assert (await desk.run("read_file", path="a", offset=10)).content == (
        "line 10\n[lines 10-10 of 10]"
    )
    assert "has only 10 lines" in await refused(desk, "read_file", path="a", offset=11)
    (desk.folder / "empty").touch()
    assert (await desk.run("read_file", path="empty")).content == "[empty file]"


@pytest.mark.requirement("TOOL-4")
async def test_what_is_long_is_cut_at_a_line_and_can_be_gone_on_with(desk: Desk) -> None:
    lines = [f"{n:06d} {'x' * 50}" for n in range(3000)]
    (desk.folder / "a").write_text("\n".join(lines))
    read: list[str] = []
    offset = 1
    while len(read) < 3000:
        result = await desk.result("read_file", path="a", offset=offset)
        assert len(result.content.encode()) <= 32 * 1024
        assert result.whole_output_path is None
        body, _, note = result.content.rpartition("\n")
        read += body.splitlines() if note.startswith("[") else result.content.splitlines()
        offset = len(read) + 1
    assert read == lines


@pytest.mark.requirement("TOOL-4")
async def test_one_endless_line_is_cut_and_what_follows_is_reached(desk: Desk) -> None:
    (desk.folder / "a").write_text("é" * 100_000 + "\nlast\n")
    first = (await desk.run("read_file", path="a")).content
    assert "line 1 is too long: only its first 30,720 bytes are shown" in first
    assert "offset=2 goes on" in first
    assert (await desk.run("read_file", path="a", offset=2)).content.startswith("last\n")


@pytest.mark.requirement("TOOL-4")
async def test_a_very_large_file_is_read_by_range_only(desk: Desk) -> None:
    with (desk.folder / "big").open("wb") as file:
        file.write(b"first\n")
        file.seek(70_000)
        file.write(b"x\n")
        file.truncate(11 * 1024 * 1024)
        file.seek(0)
        file.write(b"line\n" * 20_000)
    assert "read a range of it" in await refused(desk, "read_file", path="big")
    part = (await desk.run("read_file", path="big", offset=2, limit=1)).content
    assert part == "line\n[lines 2-2; offset=3 goes on]"
    assert "edit it with a command" in await refused(
        desk, "edit_file", path="big", old_text="line", new_text="x"
    )


@pytest.mark.requirement("TOOL-4")
@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 20, "image/png, 28 bytes"),
        (b"caf\xe9 au lait", "application/octet-stream, 12 bytes"),
        ("hello".encode("utf-16"), "text in UTF-16"),
        (b"%PDF-1.7\n\xff\xfe", "application/pdf"),
        (b"RIFF\0\0\0\0WEBP", "image/webp"),
    ],
)
async def test_binary_files_are_described_not_dumped(desk: Desk, content: bytes, kind: str) -> None:
    (desk.folder / "a").write_bytes(content)
    told = (await desk.run("read_file", path="a")).content
    assert told.startswith("[no text: ")
    assert kind in told
    assert (
        "is not UTF-8 text"
        in await refused(desk, "edit_file", path="a", old_text="a", new_text="b")
        or b"\0" in content
    )


def test_what_was_seen_is_bounded() -> None:
    files = SeenFiles(limit=3)
    for n in range(10):
        files.note(Path(f"/w/{n}"), Seen(n, n, "a"))
    assert len(files.all()) == 3
    assert not files.changed(Path("/w/0"), Seen(1, 1, "b"))
    assert files.changed(Path("/w/9"), Seen(9, 9, "b"))
    assert not files.changed(Path("/w/9"), Seen(8, 9, "a"))
    files.note(Path("/w/big"), Seen(1, 1, ""))
    assert files.changed(Path("/w/big"), Seen(2, 1, ""))


@pytest.mark.requirement("TOOL-3")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"old_text": "a", "new_text": "a"}, "old_text and new_text are the same"),
        (
            {"old_text": "one", "new_text": "x"},
            "old_text is in the file 2 times (lines 1, 3): make it longer so that it is unique, "
            "or give count",
        ),
        (
            {"old_text": "one", "new_text": "x", "count": 3},
            "old_text is in the file 2 times, not 3",
        ),
        (
            {"old_text": "zzz", "new_text": "x"},
            "old_text is not in the file; nothing in it is similar",
        ),
    ],
)
async def test_an_edit_that_does_not_fit_says_why(
    desk: Desk, arguments: dict[str, str | int], said: str
) -> None:
    (desk.folder / "a").write_text("one\ntwo\none\n")
    assert await refused(desk, "edit_file", path="a", **arguments) == said
    assert (desk.folder / "a").read_text() == "one\ntwo\none\n"
