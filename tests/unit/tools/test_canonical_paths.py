"""Where many paths lead for one decision is where each of them leads alone (POL-9, TOOL-2)."""

import os
from pathlib import Path
from typing import Any

import pytest

from runtime.domain.tools import Touches
from runtime.policy.code_files import code_files
from runtime.policy.decide import Bounds
from runtime.sessions.bounds import rule_lists
from runtime.tools.canonical_paths import CanonicalPaths
from runtime.tools.code_sinks import written
from runtime.workspace import layout
from runtime.workspace.layout import links_among
from tests.unit.tools.support import Desk

pytestmark = pytest.mark.requirement("POL-9", "TOOL-2")

COMMANDS = (
    "make test",
    "npm test",
    "cd sub && pytest",
    "cd linked/../sub; make",
    "sh ../other/run.sh",
    "bash /srv/run.sh linked/x.sh",
    "python3 -m tool",
    "cd .. && npm run build",
    "./..",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working folder with links of each kind, and some in the folders above it."""
    folder = tmp_path / "top" / "files"
    for name in ("sub/deep", "../other", "../elsewhere/inner"):
        (folder / name).mkdir(parents=True)
    links = {
        "linked": "../elsewhere/inner",
        "Makefile": "rules.mk",
        "RCS": "sub",
        "node_modules": "../other",
        "sub/conftest.py": "/usr/lib/conftest.py",
        "sub/tests": "loop",
        "sub/loop": "loop",
        "../package.json": "files/package.base.json",
        "../../.npmrc": "top/other/rc",
    }
    for name, target in links.items():
        (folder / name).symlink_to(target)
    return folder


def alone(command: str, folder: Path) -> set[str]:
    """Each path that a command runs as code, followed by itself from the root."""
    code = code_files(command)
    found = {os.path.realpath(folder / path) for path in (*code.paths, *code.folders)}
    for start, name in code.upward:
        base = Path(os.path.realpath(folder / start))
        found |= {os.path.realpath(parent / name) for parent in base.parents}
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_command_runs_is_found_behind_links(folder: Path, command: str) -> None:
    assert CanonicalPaths().of_commands((command,), str(folder)) == alone(command, folder)


def test_all_commands_together_name_what_each_does(folder: Path) -> None:
    found = CanonicalPaths().of_commands(COMMANDS, str(folder))
    assert found == set().union(*(alone(command, folder) for command in COMMANDS))


def test_a_folder_that_becomes_a_link_leads_elsewhere_in_the_next_decision(folder: Path) -> None:
    command = ("sh sub/run.sh",)
    assert str(folder / "sub/run.sh") in CanonicalPaths().of_commands(command, str(folder))
    (folder / "sub").rename(folder / "was")
    (folder / "sub").symlink_to("linked")
    led = str(folder.parent / "elsewhere/inner/run.sh")
    assert led in CanonicalPaths().of_commands(command, str(folder))


def test_a_name_that_becomes_a_link_counts_in_the_next_decision(desk: Desk) -> None:
    bounds = Bounds(rules=rule_lists(allow=("exec(make test)",)))
    target = Touches(writes=(str(desk.folder / "plain.txt"),), subject="plain.txt")
    assert not written(target, desk.context(), bounds).sinks
    (desk.folder / "Makefile").symlink_to("plain.txt")
    assert written(target, desk.context(), bounds).sinks == ("plain.txt",)
    (desk.folder / "Makefile").unlink()
    assert not written(target, desk.context(), bounds).sinks


@pytest.mark.parametrize("extra", [0, 1])
def test_links_are_found_in_a_folder_that_is_too_large_to_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extra: int
) -> None:
    monkeypatch.setattr(layout, "_MOST_LISTED", 3)
    for at in range(2 + extra):
        (tmp_path / f"{at}").touch()
    names = ("0", "link", "absent")
    assert links_among(str(tmp_path), names) == []
    (tmp_path / "link").symlink_to("nowhere")
    assert links_among(str(tmp_path), names) == ["link"]
    assert links_among(str(tmp_path / "absent"), names) == []
    assert links_among(str(tmp_path / "0"), names) == []


def test_links_are_found_in_a_folder_that_may_not_be_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an ordinary user meets a folder that may be entered and not read; root may read all."""
    (tmp_path / "link").symlink_to("nowhere")

    def refused(path: Any) -> Any:
        raise PermissionError(path)

    monkeypatch.setattr(os, "scandir", refused)
    assert links_among(str(tmp_path), ("link", "absent")) == ["link"]


def test_a_folder_without_links_is_listed_once_whatever_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    lstat = os.lstat

    def counted(path: Any, *rest: Any, **more: Any) -> os.stat_result:
        asked.append(str(path))
        return lstat(path, *rest, **more)

    found = CanonicalPaths()
    found.of(str(tmp_path))
    monkeypatch.setattr(os, "lstat", counted)
    whole = found.within(str(tmp_path), tuple(map(str, range(100))))
    assert whole == {str(tmp_path / str(at)) for at in range(100)}
    assert asked == []
