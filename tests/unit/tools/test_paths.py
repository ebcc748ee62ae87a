"""Nothing outside of the roots is read or written, whatever a path looks like (TOOL-2)."""

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.domain.errors import ToolError
from runtime.tools import paths
from runtime.tools.paths import PathGuard
from runtime.workspace.layout import Layout, ResolvedLayout
from tests.support.profiles import examples
from tests.unit.tools.support import Desk

SECRET = "the key of the house"
pytestmark = pytest.mark.requirement("TOOL-2")


@contextmanager
def house() -> Iterator[Path]:
    """A workspace with links of every kind, beside a secret."""
    # In memory where there is such a folder: a write waits for the disk otherwise.
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        top = Path(name).resolve()
        workspace, outside = top / "home" / "files", top / "outside"
        (workspace / "sub").mkdir(parents=True)
        (outside / "deep").mkdir(parents=True)
        (top / "ws2").mkdir()
        for place in (outside / "secret", outside / "deep" / "secret", top / "ws2" / "secret"):
            place.write_text(SECRET)
        (workspace / "file").write_text("mine")
        (workspace / "sub" / "file").write_text("mine too")
        links = {
            "in": "sub",
            "out": "../../outside",
            "abs": str(outside),
            "absin": str(workspace / "sub"),
            "loop": "loop",
            "dot": ".",
            "hard": "/proc/self/root",
            "secret": "../../outside/secret",
            "sub/up": "..",
            "sub/upout": "../../../outside",
            "chain": "sub/upout/deep",
        }
        for link, target in links.items():
            (workspace / link).symlink_to(target)
        yield workspace


def outside_of(workspace: Path) -> dict[str, bytes | None]:
    return {
        str(path): path.read_bytes() if path.is_file() else None
        for path in sorted(workspace.parents[1].rglob("*"))
        if not path.is_relative_to(workspace)
    }


PLANTED = ("file", "secret", "sub", "in", "out", "abs", "absin", "loop", "dot", "hard", "deep")
OTHERS = ("up", "upout", "chain", "outside", "ws", "ws2", "proc", "self", "root", "new", "~")
NAMES = st.sampled_from((*PLANTED, *OTHERS, "", ".", "..", "..", "...", "a\nb"))
STARTS = st.sampled_from(["", "/", "//", "{ws}/", "{top}/", "{top}/outside/", "~/", "~root/"])


@examples(37)
@given(start=STARTS, names=st.lists(NAMES, min_size=1, max_size=7))
async def test_no_path_leads_out(start: str, names: list[str]) -> None:
    with house() as workspace:
        before = outside_of(workspace)
        desk = Desk(workspace.parent)
        path = start.format(ws=workspace, top=workspace.parents[1]) + "/".join(names)
        found = []
        with suppress(ToolError):
            found.append((await desk.run("list_dir", path=path)).content)
        for tool, arguments in (
            ("read_file", {}),
            ("grep", {"pattern": "key|mine"}),
            ("glob", {"pattern": "**"}),
            ("edit_file", {"old_text": "e", "new_text": "!", "count": 1}),
            ("write_file", {"content": "overwritten"}),
        ):
            with suppress(ToolError):
                found.append((await desk.run(tool, path=path, **arguments)).content)
        assert SECRET not in "".join(found)
        assert outside_of(workspace) == before


@pytest.mark.parametrize(
    "path",
    [
        "../../outside/secret",
        "out/secret",
        "abs/secret",
        "secret",
        "sub/../../../outside/secret",
        "sub/upout/secret",
        "/proc/self/root/etc/passwd",
        "hard/etc/passwd",
        "/proc/self/cwd",
        "~",
        "~root/.bashrc",
        "/etc/passwd",
        "../../ws2/secret",
    ],
)
async def test_a_refused_path_names_the_roots(path: str) -> None:
    with house() as workspace:
        for tool, arguments in (
            ("read_file", {}),
            ("list_dir", {}),
            ("grep", {"pattern": "x"}),
            ("glob", {"pattern": "*"}),
            ("edit_file", {"old_text": "a", "new_text": "b"}),
        ):
            with pytest.raises(ToolError) as caught:
                await Desk(workspace.parent).run(tool, path=path, **arguments)
            last_is_link = "is a symbolic link" in str(caught.value)
            assert str(workspace) in str(caught.value) or (tool == "edit_file" and last_is_link)
            with pytest.raises(ToolError):
                Desk(workspace.parent).touches(tool, path=path, **arguments)


@pytest.mark.parametrize(
    "path",
    ["file", "./file", "sub/../file", "in/../file", "dot/dot/file", "sub/up/file", "{ws}/file"],
)
async def test_what_stays_inside_works(path: str) -> None:
    with house() as workspace:
        output = await Desk(workspace.parent).run("read_file", path=path.format(ws=workspace))
        assert output.content == "mine"
        assert not output.untrusted


async def test_links_inside_are_followed_for_reading_and_not_for_writing() -> None:
    with house() as workspace:
        desk = Desk(workspace.parent)
        assert (await desk.run("read_file", path="absin/file")).content == "mine too"
        (workspace / "link").symlink_to("file")
        assert (await desk.run("read_file", path="link")).content == "mine"
        with pytest.raises(ToolError, match="is a symbolic link to file"):
            await desk.run("write_file", path="link", content="x")
        assert (workspace / "link").is_symlink()
        assert (workspace / "file").read_text() == "mine"


async def test_extra_roots_are_reached_and_their_content_is_not_trusted() -> None:
    with house() as workspace:
        desk = Desk(workspace.parent, extra=(workspace.parents[1] / "ws2",))
        for path in ("../../ws2/secret", str(workspace.parents[1] / "ws2" / "secret")):
            output = await desk.run("read_file", path=path)
            assert output.content == SECRET
            assert output.untrusted
        with pytest.raises(ToolError, match="ws2"):
            await desk.run("read_file", path="../../outside/secret")


async def test_a_root_inside_another_cannot_be_swapped_for_a_link() -> None:
    with house() as workspace:
        (workspace / "project").symlink_to("../../outside")
        desk = Desk(workspace.parent, extra=(workspace / "project",))
        with pytest.raises(ToolError, match="is outside of what may be reached"):
            await desk.run("read_file", path=str(workspace / "project" / "secret"))


async def test_a_workspace_that_is_a_link_itself_works_by_both_names(tmp_path: Path) -> None:
    with house() as workspace:
        (tmp_path / "home").symlink_to(workspace.parent)
        desk = Desk(tmp_path / "home")
        for path in ("file", str(tmp_path / "home/files/file"), str(workspace / "file")):
            assert (await desk.run("read_file", path=path)).content == "mine"
        assert desk.touches("read_file", path="sub/file").subject == "sub/file"


@pytest.mark.parametrize("victim", ["sub", "file"])
async def test_a_part_that_is_swapped_for_a_link_after_the_look_is_refused(
    victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The swap happens exactly between the look at a part and its opening."""
    with house() as workspace:
        look = os.readlink
        swapped: list[str] = []

        def look_then_swap(name: str, *, dir_fd: int) -> str:
            try:
                return look(name, dir_fd=dir_fd)
            finally:
                if name == victim and not swapped:
                    swapped.append(name)
                    (workspace / victim).rename(workspace / "moved")
                    target = "../../outside" if victim == "sub" else "../../outside/secret"
                    (workspace / victim).symlink_to(target)

        monkeypatch.setattr(os, "readlink", look_then_swap)
        path = "sub/secret" if victim == "sub" else "file"
        with pytest.raises(ToolError):
            await Desk(workspace.parent).run("read_file", path=path)
        assert swapped == [victim]


async def test_a_write_that_lost_the_race_to_a_link_leaves_the_outside_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with house() as workspace:
        before = outside_of(workspace)
        rename = os.rename

        def swap_then_rename(old: str, new: str, **handles: int) -> None:
            monkeypatch.setattr(os, "rename", rename)
            (workspace / "new").symlink_to("../../outside/secret")
            rename(old, new, **handles)

        monkeypatch.setattr(os, "rename", swap_then_rename)
        await Desk(workspace.parent).run("write_file", path="new", content="overwritten")
        assert outside_of(workspace) == before
        assert not (workspace / "new").is_symlink()


async def test_pipes_devices_and_sockets_are_refused_without_waiting(desk: Desk) -> None:
    os.mkfifo(desk.folder / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(desk.folder / "sock"))
        for name in ("pipe", "sock"):
            for tool, arguments in (
                ("read_file", {}),
                ("write_file", {"content": "x"}),
                ("edit_file", {"old_text": "a", "new_text": "b"}),
                ("grep", {"pattern": "x"}),
            ):
                with pytest.raises(ToolError, match=r"not a regular file|cannot be used"):
                    await desk.run(tool, path=name, **arguments)


async def test_the_gateways_folder_is_read_and_never_written(desk: Desk) -> None:
    kept = desk.workspace / ".gatehouse" / "outputs" / "ses_1" / "run_0"
    kept.mkdir(parents=True)
    (kept / "a.txt").write_text("from the web")
    output = await desk.run("read_file", path=".gatehouse/outputs/ses_1/run_0/a.txt")
    assert (output.content, output.untrusted) == ("from the web", True)
    (desk.workspace / "uploads/ses_1").mkdir(parents=True)
    own = ".gatehouse/outputs/ses_1/run_0/a.txt"
    for path in (own, "../.gatehouse/worktrees/x", "uploads/x", "uploads/ses_1/x"):
        with pytest.raises(ToolError, match=r"belongs to the gateway|does not exist"):
            await desk.run("write_file", path=path, content="x")
        with pytest.raises(ToolError, match=r"belongs to the gateway|does not exist"):
            await desk.run("edit_file", path=path, old_text="web", new_text="x")
    with pytest.raises(ToolError, match="belongs to the gateway"):
        desk.touches("write_file", path=own, content="")
    with pytest.raises(ToolError, match="outside of what may be reached"):
        await desk.run("read_file", path=".gatehouse/x")
    assert (kept / "a.txt").read_text() == "from the web"
    assert [path.name for path in kept.parent.iterdir()] == ["run_0"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("a\0b", "NUL"),
        ("a" * 5000, "longer than 4096"),
        ("/".join("a" * 150), "128 directories deep"),
        ("loop", "too many symbolic links"),
        ("file/x", "is not a directory"),
        ("new/x", "does not exist"),
        ("n" * 300, "File name too long"),
    ],
)
async def test_odd_paths_get_a_sentence(path: str, said: str) -> None:
    with house() as workspace:
        tool = "write_file" if "128" in said else "read_file"
        arguments = {"content": "x"} if tool == "write_file" else {}
        with pytest.raises(ToolError, match=said):
            await Desk(workspace.parent).run(tool, path=path, **arguments)


def open_handles() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_no_handle_stays_open() -> None:
    with house() as workspace:
        desk = Desk(workspace.parent)
        await desk.run("read_file", path="file")
        before = open_handles()
        for path in ("file", "out/secret", "loop", "sub/up/in/file", "none/such"):
            for tool, arguments in (("read_file", {}), ("write_file", {"content": "x"})):
                with suppress(ToolError):
                    await desk.run(tool, path=path, **arguments)
        await desk.run("glob", pattern="**/file")
        assert open_handles() == before


def test_a_worktree_in_the_gateways_folder_is_written_and_nothing_beside_it(tmp_path: Path) -> None:
    home = tmp_path.resolve()
    files = home / ".gatehouse" / "worktrees" / "one"
    (files / "deep").mkdir(parents=True)
    guard = PathGuard(ResolvedLayout(Layout.of_worktree(home, files)))
    assert guard.writable("deep/a.md") == files / "deep" / "a.md"
    with guard.parent(str(files / "new" / "b.md"), follow_last=False, make=True) as spot:
        assert spot.path == files / "new" / "b.md"
    assert (files / "new").is_dir()
    for path in (".gatehouse/worktrees/two/a.md", ".gatehouse/a.md"):
        with pytest.raises(ToolError, match="belongs to the gateway"):
            guard.writable(str(home / path))


def test_a_path_has_a_bound_of_links_of_folders_and_of_characters(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, bound in (("_HOPS", 2), ("_DEPTH", 4), ("_LENGTH", 10)):
        monkeypatch.setattr(paths, name, bound)
    deep = desk.folder / "a" / "b" / "c"
    (deep / "d").mkdir(parents=True)
    for link, target in (("l1", "a"), ("l2", "l1"), ("l3", "l2")):
        (desk.folder / link).symlink_to(target)
    guard = PathGuard(ResolvedLayout(Layout.of(desk.workspace)))
    for path, real in (
        ("l2/b", deep.parent),
        ("a/b/c/d", deep / "d"),
        ("a/b/c/x", deep / "x"),
        ("a/b/../b/c", deep),
        ("././././/a", desk.folder / "a"),
    ):
        assert guard.resolve(path) == real
    for path, said in (
        ("l3/b", "leads through too many symbolic links"),
        ("a/b/c/d/e", "is more than 4 directories deep"),
        ("./././././a", "cannot be longer than 10 characters"),
        ("a\0", "cannot hold a NUL character"),
    ):
        with pytest.raises(ToolError, match=said):
            guard.resolve(path)


def test_folders_on_the_way_are_made_where_it_was_decided_so(desk: Desk) -> None:
    guard = PathGuard(
        ResolvedLayout(Layout.of(desk.workspace)),
        writes=(str(desk.folder / "new" / "deep" / "a.md"),),
    )
    made: list[Path] = []
    with guard.parent("new/deep/a.md", make=True, made=made) as spot:
        assert spot.path == desk.folder / "new" / "deep" / "a.md"
    assert made == [desk.folder / "new", desk.folder / "new" / "deep"]
    with guard.parent("new/deep/a.md", make=True, made=made):
        assert len(made) == 2, "they were there"
    for path in ("new/b.md", "else/a.md", "ne/a.md"):
        with pytest.raises(ToolError, match="leads elsewhere"), guard.parent(path, make=True):
            pass
    assert sorted(one.name for one in desk.folder.rglob("*")) == ["deep", "new"]
