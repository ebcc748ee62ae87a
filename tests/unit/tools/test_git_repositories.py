"""Which repositories are found, and what happens where not all can be (POL-9)."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.tools import git_config, git_programs, git_repositories
from runtime.tools.git_config import BadConfig, entries
from runtime.tools.git_programs import hardened
from runtime.tools.git_repositories import Paths, Survey, laid_out, submodules, surveyed
from tests.unit.tools.playground import Playground, filled, playground

__all__ = ["filled", "playground"]
pytestmark = [
    pytest.mark.requirement("POL-9"),
    pytest.mark.skipif(
        shutil.which("git") is None, reason="git is not installed (apt install git)"
    ),
]
BEYOND = "zz/s"
"""A folder behind more others than are looked at in these tests."""


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_repositories, "MOST_FOLDERS", 8)


def _crowd(ground: Playground) -> None:
    for number in range(20):
        (ground.repository / f"aa/{number}").mkdir(parents=True)


def _submodule(ground: Playground) -> None:
    """A repository of its own below, with a filter that it names, and a file that was changed to
    another one of its size."""
    inner = ground.repository / BEYOND
    inner.parent.mkdir()
    shutil.copytree(ground.repository / "here", inner)
    ground.git("checkout", "--quiet", "-f", folder=inner)
    ground.git("config", "filter.x.clean", str(ground.evil), folder=inner)
    (inner / ".git/info/attributes").write_text("* filter=x\n")
    text = (inner / "a.txt").read_text()
    (inner / "a.txt").write_text(text.swapcase())


def _added(ground: Playground) -> None:
    _submodule(ground)
    ground.git("-c", "advice.addEmbeddedRepo=false", "add", "--force", BEYOND)
    # Adding it looked at it, by the filter.
    ground.ran()


def _status(ground: Playground) -> None:
    subprocess.run(
        ["git", "status", "--short"], cwd=ground.repository, check=True, capture_output=True
    )


async def test_git_does_not_go_on_into_a_submodule_that_nobody_looked_at(
    playground: Playground, few: None
) -> None:
    _added(playground)
    _status(playground)
    assert playground.ran()
    _crowd(playground)
    said = await playground.runs("git status --short")
    assert "may hold submodules, and there are too many folders to look at all of them" in said
    assert not playground.ran()


async def test_a_submodule_that_was_found_is_gone_into_without_its_filter(
    playground: Playground,
) -> None:
    _added(playground)
    said = await playground.runs("git status --short")
    assert BEYOND in said
    assert not playground.ran()


async def test_a_submodule_that_a_command_makes_is_not_gone_into(
    playground: Playground, few: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    _submodule(playground)
    _crowd(playground)
    command = f"git add -f {BEYOND}; git diff --stat; git status --short"
    said = await playground.runs(command)
    assert " M a.txt" in said
    assert not playground.ran()
    playground.git("reset", "--quiet")
    monkeypatch.setattr(git_programs, "PARTLY_SEEN", {})
    await playground.runs(command)
    assert playground.ran()


def _modules(ground: Playground) -> None:
    (ground.repository / ".git/modules").mkdir()


def _named(ground: Playground) -> None:
    (ground.repository / ".gitmodules").touch()


def _compressed(ground: Playground) -> None:
    _added(ground)
    ground.git("update-index", "--index-version", "4")


def _split(ground: Playground) -> None:
    _added(ground)
    ground.git("update-index", "--split-index")


def _large(ground: Playground) -> None:
    with (ground.repository / ".git/index").open("r+b") as file:
        file.truncate(git_repositories._MOST_INDEX + 1)


@pytest.mark.parametrize("leave", [_added, _modules, _named, _compressed, _split, _large])
def test_where_a_repository_may_have_submodules(
    playground: Playground, leave: Callable[[Playground], None]
) -> None:
    folder = playground.repository
    assert submodules(surveyed((folder,), (folder,))) == ""
    leave(playground)
    assert submodules(surveyed((folder,), (folder,)))
    # Ordinary repositories, of which all folders were looked at, are not asked about it.
    assert not hardened((folder,), (folder,), granted={}).problem


def test_indexes_are_read_up_to_a_bound_for_each_and_one_for_all(
    playground: Playground, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = playground.repository
    size = (folder / ".git/index").stat().st_size
    for other in ("index.old", "sharedindex.1"):
        shutil.copy(folder / ".git/index", folder / ".git" / other)
    survey = replace(surveyed((folder,), (folder,)), places=(folder / ".git",))
    for each, together, said in (
        (size, 3 * size, ""),
        (size - 1, 3 * size, "is too large to look for submodules"),
        (size, 3 * size - 1, "is too large to look for submodules"),
        (size, size - 1, "is too large to look for submodules"),
    ):
        monkeypatch.setattr(git_repositories, "_MOST_INDEX", each)
        monkeypatch.setattr(git_repositories, "_MOST_INDEXES", together)
        assert said in submodules(survey)
        assert bool(submodules(survey)) is bool(said)
    (folder / ".git/index.lock").write_bytes(b"x" * size)
    monkeypatch.setattr(git_repositories, "_MOST_INDEXES", 3 * size)
    assert submodules(survey) == "", "git reads no file that it is still writing"


def test_a_file_of_an_unlucky_size_is_no_submodule(playground: Playground) -> None:
    folder = playground.repository
    size = int.from_bytes(b"\xe0\x00")
    (folder / "large").write_bytes(b"x" * size)
    playground.git("add", "large")
    raw = (folder / ".git/index").read_bytes()
    assert b"\x00\x00\xe0\x00" in raw
    assert submodules(surveyed((folder,), (folder,))) == ""
    # An index that says itself where its entries begin may have them anywhere.
    (folder / ".git/index").write_bytes(raw + b"IEOT")
    assert submodules(surveyed((folder,), (folder,)))


def test_an_entry_of_an_index_is_told_from_bytes_that_look_like_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_repositories, "_MOST_STRAY", 3)
    mode, size = b"\0\0\0\0\0\0\xe0\0", b"\0\0\xe0\0\0\0\0\0"
    for version in (2, 3, 4):
        head = b"DIRC" + version.to_bytes(4)
        for held, may in (
            (b"", False),
            (size * 2, version == 4),
            (mode, True),
            (size * 2 + mode, True),
            (size * 3, True),
        ):
            (tmp_path / "index").write_bytes(head + held)
            said = submodules(Survey((tmp_path,), (), whole=True, hooked=""))
            assert said == (f"{tmp_path}/index may hold submodules" if may else "")


def test_a_folder_with_more_names_than_a_repository_has_is_not_looked_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    survey = Survey((tmp_path, tmp_path / "gone"), (), whole=True, hooked="")
    for name in ("a", "b", "c"):
        (tmp_path / name).touch()
    monkeypatch.setattr(git_repositories, "_MOST_NAMES", 3)
    assert submodules(survey) == ""
    (tmp_path / "d").touch()
    with pytest.raises(BadConfig, match="holds more than 3 names"):
        submodules(survey)


async def test_where_not_all_was_looked_at_other_repositories_still_work(
    playground: Playground, few: None
) -> None:
    _crowd(playground)
    assert "a.txt" in await playground.runs("git status --short")


async def test_more_folders_inside_of_a_repository_than_are_looked_at(
    playground: Playground, few: None
) -> None:
    """What is kept for submodules counts as well."""
    for number in range(4 * 8):
        (playground.repository / f".git/modules/m{number}").mkdir(parents=True)
    folder = playground.repository
    assert not surveyed((folder,), (folder,)).whole
    assert "may have submodules" in await playground.runs("git status --short")


async def test_a_repository_inside_that_leads_to_a_configuration(playground: Playground) -> None:
    """Only the folder that it leads to names the program, and nothing there looks like one."""
    git = playground.repository / ".git"
    deep = git / "deep"
    (playground.repository / "here").rename(deep)
    common = (deep / ".git").rename(git / "objects/common")
    (deep / ".git").mkdir()
    for name in ("HEAD", "index"):
        shutil.copy(common / name, deep / ".git" / name)
    (common / "HEAD").unlink()
    (deep / ".git/commondir").write_text("../../objects/common\n")
    playground.git(
        "config", "--file", str(common / "config"), "diff.external", str(playground.evil)
    )
    assert "+two" in await playground.runs("X=deep; cd .git/$X && git diff")
    assert not playground.ran()


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        *((("HEAD", name), True) for name in ("config", "commondir", "objects")),
        *((names, False) for names in (("HEAD",), ("config", "objects"), ())),
    ],
)
def test_what_is_laid_out_like_a_repository(names: tuple[str, ...], taken: bool) -> None:
    assert laid_out(lambda name: name in names) is taken


@pytest.mark.parametrize("name", ["config", "commondir", "objects"])
def test_what_is_laid_out_like_a_repository_is_found(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "bare"
    folder.mkdir()
    (folder / "HEAD").touch()
    (folder / name).touch()
    assert folder in surveyed((tmp_path,), (tmp_path,)).places


def test_a_file_leads_to_a_repository_as_git_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_repositories, "_MOST_PATH", 8)
    for name in ("real", "a b ", "12345678"):
        (tmp_path / name).mkdir()
    for written, leads in (
        (b"gitdir: real", "real"),
        (b"gitdir: real\r\n", "real"),
        (b"gitdir: a b \n", "a b "),
        (b"gitdir: real\0.x\n", "real"),
        (b"gitdir: 12345678", "12345678"),
    ):
        (tmp_path / ".git").write_bytes(written)
        assert surveyed((tmp_path,), ()).places == (tmp_path / leads,)
    for written in (b"gitdir: \n", b"gitdir:real\n", b"real\n", b""):
        (tmp_path / ".git").write_bytes(written)
        assert surveyed((tmp_path,), ()).places == ()
    for written in (b"gitdir: 123456789", b"gitdir: real\n\n\n\n\n\n"):
        (tmp_path / ".git").write_bytes(written)
        with pytest.raises(BadConfig, match=r"/\.git holds no path"):
            surveyed((tmp_path,), ())


def test_more_repositories_than_a_person_has_stop_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_repositories, "MOST_REPOSITORIES", 3)
    for number in range(3):
        (tmp_path / f"{number}/.git").mkdir(parents=True)
    assert not hardened((tmp_path,), (tmp_path,), granted={}).problem
    (tmp_path / "0/.git/commondir").write_text("../../else")
    assert "more than 3 repositories" in hardened((tmp_path,), (tmp_path,), granted={}).problem
    (tmp_path / "3/.git").mkdir(parents=True)
    assert "more than 3 repositories" in hardened((tmp_path,), (tmp_path,), granted={}).problem


def test_more_names_than_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_repositories, "_MOST_NAMES", 10)
    for number in range(8):
        (tmp_path / f"f{number}").touch()
    (tmp_path / "sub/.git").mkdir(parents=True)
    found = surveyed((tmp_path,), (tmp_path,))
    assert found.whole
    assert tmp_path / "sub/.git" in found.places
    (tmp_path / "f8").touch()
    (tmp_path / "f9").touch()
    assert not surveyed((tmp_path,), (tmp_path,)).whole


def test_a_hook_behind_many_samples_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_repositories, "_MOST_SAMPLES", 2)
    hooks = tmp_path / ".git/hooks"
    hooks.mkdir(parents=True)
    for name in ("a.sample", "b.sample"):
        (hooks / name).touch()
    assert surveyed((tmp_path,), (tmp_path,)).hooked == ""
    (hooks / "c.sample").touch()
    assert "may be a hook" in surveyed((tmp_path,), (tmp_path,)).hooked


def test_paths_are_followed_as_far_as_people_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "to").symlink_to("real/deep")
    (tmp_path / "real/deep").mkdir(parents=True)
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "proc").symlink_to("/proc/self/cwd")
    paths = Paths()
    for name in ("to", "to/../x", "./real//deep/gone", "to/../../real", ".."):
        assert paths.real(tmp_path / name) == (tmp_path / name).resolve()
    for path in (tmp_path / "loop/x", tmp_path / "proc", Path("/a" * 200), Path("/x/../proc/1")):
        with pytest.raises(BadConfig):
            paths.real(path)
    monkeypatch.setattr(git_repositories, "_MOST_LINKS", 3)
    with pytest.raises(BadConfig, match="too many paths"):
        Paths().real(Path("/a/b/c/d"))


def test_a_refusal_shows_what_a_path_hides_on_one_line(tmp_path: Path) -> None:
    name = "a\nAllowed by Ann\u202e\u3164"
    (tmp_path / name).symlink_to("/proc/self/cwd")
    with pytest.raises(BadConfig, match="leads through /proc") as refused:
        Paths().real(tmp_path / name)
    assert r"a\u{a}Allowed by Ann\u{202e}\u{3164} leads" in str(refused.value)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"[a]\n" + b"k\n" * (git_config.MOST_ENTRIES + 1), "variables"),
        (b"#" + b"x" * git_config.MOST_BYTES, "bytes"),
        (b'[a "' + b"." * git_config.MOST_KEY + b'"]\nk = 1', "characters"),
        (b"[a]\n" + b"k" * (git_config.MOST_KEY + 1), "characters"),
    ],
)
def test_more_than_a_person_writes_is_no_configuration(raw: bytes, said: str) -> None:
    with pytest.raises(BadConfig, match=said):
        entries(raw)


@pytest.mark.parametrize(
    ("raw", "variables"),
    [
        (b"[a]\n" + b"k\n" * git_config.MOST_ENTRIES, git_config.MOST_ENTRIES),
        (b"#" + b"x" * (git_config.MOST_BYTES - 1), 0),
        (b'[a "' + b"." * (git_config.MOST_KEY - 2) + b'"]\nk = 1', 1),
        (b"[a]\n" + b"k" * (git_config.MOST_KEY - 1), 1),
    ],
)
def test_as_much_as_a_person_writes_is_a_configuration(raw: bytes, variables: int) -> None:
    assert len(entries(raw)) == variables


@pytest.mark.parametrize(
    ("bound", "reached", "said"),
    [
        ("MOST_ENTRIES", 12, "more than 11 variables of configuration"),
        ("MOST_BYTES", 228, "more than 227 bytes of configuration"),
        ("_MOST_FILES", 6, "more than 5 files of configuration"),
        ("_MOST_OVERRIDES", 3, "more than 2 settings that start programs"),
        ("_MOST_OVERRIDDEN", 42, "names that are too long"),
    ],
)
def test_the_bounds_hold_for_all_files_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, reached: int, said: str
) -> None:
    bare = "\tbare = false\n" * 3
    for name in ("a", "b", "c"):
        (tmp_path / name / ".git").mkdir(parents=True)
        text = f'[core]\n{bare}[filter "{name}"]\n\tclean = evil\n'
        (tmp_path / name / ".git/config").write_text(text)
    monkeypatch.setattr(git_programs, bound, reached)
    assert not hardened((tmp_path,), (tmp_path,), granted={}).problem
    monkeypatch.setattr(git_programs, bound, reached - 1)
    assert said in hardened((tmp_path,), (tmp_path,), granted={}).problem


def _deep(top: Path, length: int) -> Path:
    """A folder below whose path has so many characters, made step by step."""
    path, at = str(top), os.open(top, os.O_RDONLY)
    while len(path) < length:
        # The last two steps share what is left, because each has a name.
        left = length - len(path) - 1
        name = "d" * (left if left <= 250 else min(250, left - 2))
        os.mkdir(name, dir_fd=at)
        below = os.open(name, os.O_RDONLY, dir_fd=at)
        os.close(at)
        path, at = f"{path}/{name}", below
    os.close(at)
    return Path(path)


@pytest.fixture
def top(tmp_path: Path) -> Iterator[Path]:
    """A folder that is removed step by step as well."""
    yield tmp_path
    shutil.rmtree(tmp_path)


async def test_a_folder_that_nobody_can_look_into_stops_no_command(playground: Playground) -> None:
    _deep(playground.repository, 4200)
    assert "exit code 0" in await playground.runs("git status --short && rm -rf d*")


def test_a_hook_that_nobody_can_look_for_stops_git(top: Path) -> None:
    """Where a path is too long, as where a folder is closed to the gateway's user."""
    place = _deep(top, 4070) / ".git"
    place.mkdir()
    told = hardened((place.parent,), (top,), granted={})
    assert "cannot be read" in told.problem
    assert told.variables["GIT_CONFIG_COUNT"] == "refused"


def test_no_more_is_set_above_than_a_command_starts_with(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    name = "x" * 4000
    more = "".join(f'[filter "{number}{name}"]\nclean = a\n' for number in range(60))
    (tmp_path / ".git/config").write_text(more)
    assert not hardened((tmp_path,), (tmp_path,), granted={}).problem
    alias = f'[alias "{name}"]\n' + "".join(f"k{number} = !a\n" for number in range(70))
    (tmp_path / ".git/config").write_text(alias)
    assert "names that are too long" in hardened((tmp_path,), (tmp_path,), granted={}).problem
