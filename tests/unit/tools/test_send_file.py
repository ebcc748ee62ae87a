"""`send_file`: a copy of what the file holds now, within limits, and of nothing that is hidden."""

import hashlib
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.delivery.file_copies import located, open_copy
from runtime.domain.errors import ToolError
from runtime.domain.messages import Dispatch, FilePart, TextPart
from runtime.domain.tools import Effect
from runtime.ports.chat import Capabilities
from runtime.tools.base import ToolOutput
from runtime.tools.builtin.send_file import SendFile
from runtime.tools.outgoing_files import SENT, SendLimits, kind_of, room_for, sweep
from runtime.workspace.layout import FILES
from tests.unit.tools.support import Desk


def sent(output: ToolOutput) -> FilePart:
    """The file of what a call sends."""
    assert output.sends is not None
    part = output.sends.parts[-1]
    assert isinstance(part, FilePart)
    return part


def copies(workspace: Path) -> list[str]:
    """The names of the copies that are kept."""
    folder = workspace / ".gatehouse" / "outputs" / SENT
    return sorted(one.name for one in folder.iterdir()) if folder.exists() else []


def folder(workspace: Path) -> Path:
    """The working folder."""
    (workspace / FILES).mkdir(exist_ok=True)
    return workspace / FILES


def kept(workspace: Path, part: FilePart) -> Path:
    """Where the copy is."""
    return Path(located(workspace, part).path)


@pytest.mark.requirement("MSG-19")
async def test_what_is_sent_is_what_the_file_held_when_the_tool_ran(tmp_path: Path) -> None:
    (folder(tmp_path) / "plan.md").write_text("# Plan\n")
    output = await Desk(tmp_path).run("send_file", path="plan.md", caption=" The *plan* ")
    (folder(tmp_path) / "plan.md").write_text("something else\n")
    part = sent(output)
    assert output.sends == Dispatch(parts=(TextPart(markdown="The *plan*"), part))
    assert (part.name, part.media_type, part.size_bytes) == ("plan.md", "text/plain", 7)
    assert kept(tmp_path, part).read_text() == "# Plan\n"
    assert stat.S_IMODE(kept(tmp_path, part).stat().st_mode) == 0o600
    copy = open_copy(tmp_path, part)
    assert copy is not None
    with copy:
        assert copy.read() == b"# Plan\n"
    assert "plan.md (text/plain, 7 bytes)" in output.content
    assert str(tmp_path) not in output.content


async def test_each_send_has_a_copy_of_its_own(tmp_path: Path) -> None:
    (folder(tmp_path) / "a.txt").write_text("a")
    desk = Desk(tmp_path)
    one, other = (
        sent(await desk.run("send_file", path="a.txt")),
        sent(await desk.run("send_file", path="a.txt")),
    )
    assert one.digest == other.digest
    assert one.path != other.path


@pytest.mark.requirement("TOOL-2")
async def test_the_copies_are_out_of_the_agents_reach(tmp_path: Path) -> None:
    (folder(tmp_path) / "a.txt").write_text("a")
    desk = Desk(tmp_path)
    part = sent(await desk.run("send_file", path="a.txt"))
    for path in (part.path, located(tmp_path, part).path):
        for tool, arguments in (
            ("read_file", {"path": path}),
            ("send_file", {"path": path}),
            ("list_dir", {"path": str(Path(path).parent)}),
        ):
            with pytest.raises(ToolError, match="does not exist"):
                await desk.run(tool, **arguments)
        with pytest.raises(ToolError):
            await desk.run("write_file", path=path, content="b")


@pytest.mark.requirement("TOOL-2")
async def test_no_path_leads_out_of_the_workspace(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("not yours")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (folder(workspace) / "link").symlink_to(outside)
    (folder(workspace) / "folder").symlink_to(tmp_path)
    desk = Desk(workspace)
    for path in ("link", "folder/outside", "../../outside", str(outside), "/etc/hostname"):
        with pytest.raises(ToolError, match="outside of what may be reached"):
            await desk.run("send_file", path=path)
    assert copies(workspace) == []


@pytest.mark.requirement("TOOL-2")
async def test_a_link_in_the_place_of_the_gateways_folder_takes_no_copy(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    workspace = tmp_path / "workspace"
    elsewhere.mkdir()
    (workspace / ".gatehouse" / "outputs").mkdir(parents=True)
    (folder(workspace) / "a.txt").write_text("a")
    (workspace / ".gatehouse" / "outputs" / SENT).symlink_to(elsewhere)
    with pytest.raises(ToolError):
        await Desk(workspace).run("send_file", path="a.txt")
    assert list(elsewhere.iterdir()) == []


@pytest.mark.requirement("CTX-6")
async def test_private_notes_are_not_there_to_be_sent(tmp_path: Path) -> None:
    (tmp_path / "USER.md").write_text("private")
    with pytest.raises(ToolError, match="does not exist"):
        await Desk(tmp_path, notes=False).run("send_file", path="USER.md")
    assert sent(await Desk(tmp_path).run("send_file", path="USER.md")).name == "USER.md"


@pytest.mark.requirement("MSG-19", "TOOL-1")
async def test_a_limit_is_named_with_the_field_and_the_setting(tmp_path: Path) -> None:
    (folder(tmp_path) / "large.bin").write_bytes(b"x" * 2_001)
    (folder(tmp_path) / "empty").touch()
    (folder(tmp_path) / "folder").mkdir()
    own = room_for(SendLimits(file_bytes=2_000), "test", 0)
    refusals = {
        ("large.bin", own): r"path: large.bin has 2 KB, more than 2 KB \(delivery.file_mb\)",
        ("empty", own): "path: empty is empty",
        ("folder", own): "is a directory",
        ("nothing", own): "nothing does not exist",
        ("large.bin", room_for(SendLimits(per_run=3), "test", 3)): "sent 3 files, the most",
        ("large.bin", replace(own, files=False)): "path: test takes no files",
    }
    for (path, room), reason in refusals.items():
        with pytest.raises(ToolError, match=reason):
            await Desk(tmp_path, room=room).run("send_file", path=path)
    assert copies(tmp_path) == []


@pytest.mark.requirement("MSG-19")
async def test_a_file_up_to_the_limit_is_copied_whole_piece_by_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtime.tools.outgoing_files._PIECE", 4)
    raw = b"\0\1" + b"words of a file"
    (folder(tmp_path) / "a.bin").write_bytes(raw)
    desk = Desk(tmp_path, room=room_for(SendLimits(file_bytes=len(raw)), "test", 0))
    part = sent(await desk.run("send_file", path="a.bin"))
    assert kept(tmp_path, part).read_bytes() == raw
    assert (part.size_bytes, part.digest) == (len(raw), hashlib.sha256(raw).hexdigest())
    assert part.media_type == "application/octet-stream", "by the first bytes, not the last"
    copy = open_copy(tmp_path, part)
    assert copy is not None
    with copy:
        assert copy.read() == raw


def test_the_smaller_limit_holds_and_says_whose_it_is() -> None:
    can = {
        "small": Capabilities(files=True, file_bytes=10),
        "same": Capabilities(files=True, file_bytes=100),
        "large": Capabilities(files=True, file_bytes=1_000),
        "none": Capabilities(),
    }
    limits = SendLimits(file_bytes=100, per_run=2, channels=can)
    rooms = {name: room_for(limits, name, 1) for name in (*can, "elsewhere")}
    assert {name: (room.most, room.limit, room.files) for name, room in rooms.items()} == {
        "small": (10, "the limit of small", True),
        "same": (100, "delivery.file_mb", True),
        "large": (100, "delivery.file_mb", True),
        "none": (100, "delivery.file_mb", False),
        "elsewhere": (100, "delivery.file_mb", True),
    }
    assert [room_for(limits, "small", sent).left for sent in (0, 1, 2, 3)] == [2, 1, 0, 0]


@pytest.mark.requirement("POL-7")
@pytest.mark.parametrize("before", [0, 1024 * 1024 - 3])
async def test_a_file_with_a_secret_of_the_gateway_stays(tmp_path: Path, before: int) -> None:
    (folder(tmp_path) / "dump.txt").write_bytes(b"\xff" * before + b"xoxb-1-secret and more")

    def redact(text: str) -> str:
        return text.replace("xoxb-1-secret", "[...]")

    desk = Desk(tmp_path, redact=redact)
    with pytest.raises(ToolError, match="holds a secret"):
        await desk.run("send_file", path="dump.txt")
    assert copies(tmp_path) == []
    (folder(tmp_path) / "fine.txt").write_text("fine")
    output = await desk.run("send_file", path="fine.txt", caption="it is xoxb-1-secret")
    assert output.sends is not None
    assert output.sends.parts[0] == TextPart(markdown="it is [...]")


@pytest.mark.requirement("POL-7")
async def test_a_file_whose_name_holds_a_secret_of_the_gateway_stays(tmp_path: Path) -> None:
    (folder(tmp_path) / "for xoxb-1-secret.txt").write_text("fine")

    def redact(text: str) -> str:
        return text.replace("xoxb-1-secret", "[...]")

    with pytest.raises(ToolError, match="the file's name holds a secret") as refused:
        await Desk(tmp_path, redact=redact).run("send_file", path="for xoxb-1-secret.txt")
    assert "xoxb-1-secret" not in str(refused.value)
    assert copies(tmp_path) == []


async def test_a_file_that_grows_while_it_is_copied_is_not_sent(tmp_path: Path) -> None:
    path = folder(tmp_path) / "log.txt"
    path.write_text("12345")

    def write_more(text: str) -> str:
        path.write_text("123456")
        return text

    desk = Desk(tmp_path, room=room_for(SendLimits(file_bytes=5), "test", 0), redact=write_more)
    with pytest.raises(ToolError, match="grows while it is copied"):
        await desk.run("send_file", path="log.txt")
    assert copies(tmp_path) == []


async def test_a_hostile_name_is_made_harmless(tmp_path: Path) -> None:
    name = "<!channel>`\n\u202egnp.exe"
    (folder(tmp_path) / name).write_text("a")
    part = sent(await Desk(tmp_path).run("send_file", path=name))
    assert not set("<>!`\n\u202e") & set(part.name)
    assert part.name.endswith("gnp.exe")


@pytest.mark.requirement("POL-1")
def test_it_touches_its_file_and_replies_to_its_own_chat(tmp_path: Path) -> None:
    (folder(tmp_path) / "notes").mkdir()
    touches = Desk(tmp_path).touches("send_file", path="notes/../notes/plan.md")
    assert touches.reads == (str(folder(tmp_path) / "notes" / "plan.md"),)
    assert (touches.subject, touches.replies, touches.sends) == ("notes/plan.md", True, ())
    assert SendFile.effect is Effect.IDEMPOTENT


@pytest.mark.requirement("MSG-19", "TEL-4")
@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"words\n", "text/plain"),
        (b"\x00\x01", "application/octet-stream"),
        (b"words\xff", "application/octet-stream"),
        (b"words\xffwords", "application/octet-stream"),
        (b"OggS\0\0\0OpusHead", "audio/ogg"),
        (b"OggS\0\0\0vorbis", "application/ogg"),
        (b"\0\0\0\x20ftypM4A \0\0", "audio/mp4"),
        (b"\0\0\0\x20ftypisom\0\0", "video/mp4"),
        (b"ID3\x04", "audio/mpeg"),
        ("\u00e4".encode() * 8 + b"\xc3", "text/plain"),
    ],
)
def test_a_kind_is_told_by_the_content(head: bytes, kind: str) -> None:
    assert kind_of(head) == kind


async def test_a_copy_that_was_changed_is_no_copy(tmp_path: Path) -> None:
    (folder(tmp_path) / "a.txt").write_text("abc")
    desk = Desk(tmp_path)
    part = sent(await desk.run("send_file", path="a.txt"))
    copy = kept(tmp_path, part)
    copy.write_text("abd")
    assert open_copy(tmp_path, part) is None
    copy.unlink()
    assert open_copy(tmp_path, part) is None
    copy.symlink_to(folder(tmp_path) / "a.txt")
    assert open_copy(tmp_path, part) is None


@pytest.mark.requirement("MSG-19")
async def test_a_copy_is_found_after_its_workspace_was_moved(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    (folder(before) / "a.txt").write_text("abc")
    part = sent(await Desk(before).run("send_file", path="a.txt"))
    before.rename(after)
    copy = open_copy(after, part)
    assert copy is not None
    with copy:
        assert copy.read() == b"abc"
    old = located(after, part)
    assert Path(old.path).is_absolute()
    assert located(before, old) == old, "as rows of older versions have it"


@pytest.mark.parametrize("absolute", [False, True])
async def test_old_copies_go_unless_something_waits_for_them(
    tmp_path: Path, absolute: bool
) -> None:
    (folder(tmp_path) / "a.txt").write_text("abc")
    desk = Desk(tmp_path)
    old, needed, young = [sent(await desk.run("send_file", path="a.txt")) for _ in range(3)]
    for part in (old, needed):
        os.utime(kept(tmp_path, part), (1_000, 1_000))
    path = located(tmp_path, needed).path if absolute else needed.path
    assert sweep(tmp_path, before_ms=1_000_000, needed={path}) == 0
    assert sweep(tmp_path, before_ms=1_000_001, needed={path}) == 1
    assert copies(tmp_path) == sorted(Path(one.path).name for one in (needed, young))
    assert sweep(tmp_path / "never", before_ms=1, needed=()) == 0
