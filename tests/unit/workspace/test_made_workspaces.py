"""The tests' own workspaces: what is written from memory is what a gateway makes."""

import stat
from pathlib import Path

from runtime.workspace.scaffold import find_template, scaffold
from tests.support.templates import make_workspace


def everything(root: Path) -> dict[str, tuple[int, bytes | None]]:
    return {
        path.relative_to(root).as_posix(): (
            stat.S_IMODE(path.stat().st_mode),
            None if path.is_dir() else path.read_bytes(),
        )
        for path in (root, *root.rglob("*"))
    }


def test_a_workspace_of_a_test_is_that_of_a_gateway(tmp_path: Path) -> None:
    scaffold(tmp_path / "made", find_template())
    make_workspace(tmp_path / "written")
    assert everything(tmp_path / "written") == everything(tmp_path / "made")


def test_one_that_is_there_gets_what_it_lacks(tmp_path: Path) -> None:
    make_workspace(tmp_path / "w")
    (tmp_path / "w/SOUL.md").write_text("mine")
    (tmp_path / "w/AGENTS.md").unlink()
    make_workspace(tmp_path / "w")
    assert (tmp_path / "w/SOUL.md").read_text() == "mine"
    assert (tmp_path / "w/AGENTS.md").exists()
