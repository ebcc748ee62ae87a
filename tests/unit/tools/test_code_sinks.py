"""What acts later is known before it is complete: what a call writes counts as written (POL-9)."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from runtime.domain.tools import Touches
from runtime.policy.decide import Bounds
from runtime.tools import code_sinks
from runtime.tools.canonical_paths import CanonicalPaths
from runtime.tools.code_sinks import Written, written
from runtime.workspace.layout import canonical
from tests.unit.tools.support import Desk

pytestmark = pytest.mark.requirement("POL-9")


@dataclass(frozen=True)
class Layout:
    """What is in a folder, and what a call writes there."""

    there: tuple[str, ...]
    writes: tuple[str, ...]


MAKES_ONE = {
    "HEAD last": Layout(("commondir", "a/cfg/config"), ("HEAD",)),
    "commondir last": Layout(("HEAD",), ("commondir",)),
    "objects last": Layout(("HEAD", "refs/x"), ("objects/pack/x",)),
    "HEAD behind objects": Layout(("objects/x", "refs/x"), ("HEAD",)),
    "config last": Layout(("HEAD",), ("config",)),
    "HEAD behind config": Layout(("config", "refs/x"), ("HEAD",)),
    "all at once": Layout((), ("HEAD", "commondir")),
    "in small letters": Layout(("commondir",), ("head",)),
    "inside of one": Layout(("HEAD", "objects/x"), ("config",)),
    "inside of one that leads": Layout(("HEAD", "commondir"), ("hooks/update",)),
}
MAKES_NONE = {
    "a lone HEAD": Layout((), ("HEAD",)),
    "a lone commondir": Layout(("config",), ("commondir",)),
    "objects without HEAD": Layout(("refs/x",), ("objects/x",)),
}


def sinks(desk: Desk, layout: Layout) -> tuple[str, ...]:
    folder = desk.folder / "bare"
    for name in layout.there:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    writes = tuple(str(folder / name) for name in layout.writes)
    return written(Touches(writes=writes, subject="x"), desk.context(), Bounds()).sinks


@pytest.mark.parametrize("name", MAKES_ONE)
def test_a_write_that_makes_a_folder_a_repository_is_one_into_it(desk: Desk, name: str) -> None:
    assert sinks(desk, MAKES_ONE[name])


@pytest.mark.parametrize("name", MAKES_NONE)
def test_files_that_make_no_repository_are_files(desk: Desk, name: str) -> None:
    assert sinks(desk, MAKES_NONE[name]) == ()


def write(desk: Desk, path: str) -> Written:
    return written(
        Touches(writes=(str(desk.folder / path),), subject=path), desk.context(), Bounds()
    )


@pytest.mark.parametrize("name", [".git", ".GIT", ".g\u200cit", ".\u200dgi\u200ct\ufeff"])
def test_a_name_that_a_file_system_takes_for_another_is_that_other(desk: Desk, name: str) -> None:
    assert write(desk, f"{name}/config").sinks
    assert not write(desk, f"{name}x/config").sinks


def test_a_file_that_notes_lead_to_is_a_note(desk: Desk) -> None:
    (desk.workspace / "memory").mkdir(exist_ok=True)
    (desk.workspace / "memory/l.md").symlink_to("../files/t.md")
    assert write(desk, "t.md").memory
    assert not write(desk, "u.md").memory


def test_links_behind_links_of_skills_are_followed(desk: Desk) -> None:
    (desk.folder / "skb").mkdir()
    (desk.folder / "skb/SKILL.md").symlink_to("../common.md")
    (desk.workspace / "skills").mkdir(exist_ok=True)
    (desk.workspace / "skills/b").symlink_to("../files/skb")
    assert write(desk, "common.md").sinks
    assert not write(desk, "other.md").sinks


def test_where_too_much_instructs_everything_may(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code_sinks, "_MOST_ENTRIES", 2)
    (desk.workspace / "skills/big").mkdir(parents=True)
    assert not write(desk, "t.md").sinks
    for name, all_of_it in (("a", False), ("b", True)):
        (desk.workspace / "skills/big" / name).touch()
        assert bool(write(desk, "t.md").sinks) is all_of_it


def test_many_paths_lead_where_each_alone_does(tmp_path: Path) -> None:
    (tmp_path / "real/deep").mkdir(parents=True)
    (tmp_path / "real/file").touch()
    for name, target in (
        ("to", "real"),
        ("to-file", "real/file"),
        ("far", "/usr"),
        ("gone", "nothing/there"),
        ("loop", "loop"),
        ("real/deep/up", "../.."),
    ):
        (tmp_path / name).symlink_to(target)
    names = ("", "to", "to/file", "to/deep/up/to/file", "to-file", "to-file/below", "far/bin/..")
    absent = ("absent", "absent/below", "to/absent", "to/..", "to/../real", "gone", "gone/x")
    paths = [tmp_path / name for name in (*names, *absent, "loop", "loop/x", "loop/../real")]
    paths += [Path("/"), Path("/usr"), Path("/.."), Path("/proc/self/root/usr")]
    together = CanonicalPaths()
    for path in paths:
        assert CanonicalPaths().of(str(path)) == together.of(str(path)) == str(canonical(path))
