"""What a command sees, before any backend translates it (TOOL-5, SEC-6)."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.sandbox.environment import environment_of
from adapters.sandbox.file_view import (
    ETC_READABLE,
    View,
    flatten,
    view_of,
)
from adapters.sandbox.folder_walk import closed_below, open_to_others
from runtime.domain.errors import InvalidInput
from runtime.ports.sandbox import SandboxCommand


@pytest.fixture
def base(tmp_path: Path) -> Path:
    for name in ("desk/sub", "data/secret", "data/open"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "data/file").write_text("x")
    return tmp_path.resolve()


def command(base: Path) -> SandboxCommand:
    desk = str(base / "desk")
    return SandboxCommand("true", cwd=desk, writable=(desk,))


def below(view: View, base: Path) -> dict[str, str]:
    return {
        os.path.relpath(entry.path, base): entry.access
        for entry in view.entries
        if entry.path.startswith(str(base))
    }


@pytest.mark.requirement("TOOL-5")
def test_system_programs_are_readable_and_homes_are_not_there(base: Path) -> None:
    entries = {entry.path: entry.access for entry in view_of(command(base)).entries}
    assert entries[str(base / "desk")] == "write"
    assert entries["/usr"] == "read"
    assert entries["/etc/passwd"] == "read"
    assert entries.get("/etc/shadow") != "read"
    assert not {"/etc", "/home", "/root", "/run", "/var", "/tmp", "/"} & entries.keys()
    assert "write" not in {access for path, access in entries.items() if path != f"{base}/desk"}


@pytest.mark.requirement("TOOL-5")
def test_hidden_beats_writable_beats_readable_on_one_path(base: Path) -> None:
    data = str(base / "data")
    both = replace(command(base), readable=(data,), writable=(f"{base}/desk", data))
    assert below(view_of(both), base)["data"] == "write"
    all_three = replace(both, hidden=(data,))
    assert below(view_of(all_three), base)["data"] == "hide"


@pytest.mark.requirement("TOOL-5")
def test_roots_are_resolved_and_sorted_from_the_outside_in(base: Path) -> None:
    (base / "link").symlink_to(base / "data")
    asked = replace(command(base), readable=(f"{base}/link/open", f"{base}/desk/../data"))
    view = view_of(asked)
    assert below(view, base) == {"desk": "write", "data": "read", "data/open": "read"}
    depths = [entry.path.count("/") for entry in view.entries]
    assert depths == sorted(depths)


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize("link", ["itself", "above"])
def test_a_folder_that_must_be_no_link_is_refused_where_it_is_one(base: Path, link: str) -> None:
    asked = replace(command(base), unlinked=(f"{base}/desk/sub",))
    assert below(view_of(asked), base) == {"desk": "write", "desk/sub": "read"}
    taken = base / "desk/sub" if link == "itself" else base / "desk"
    taken.rename(base / "was")
    (base / "data/sub").mkdir()
    taken.symlink_to(base / "data/secret" if link == "itself" else base / "data")
    with pytest.raises(InvalidInput) as error:
        view_of(asked)
    assert error.value.field == "unlinked"


@pytest.mark.requirement("TOOL-5")
def test_a_union_of_grants_leaves_out_what_is_masked(base: Path) -> None:
    (base / "data/link").symlink_to(base / "data/secret")
    asked = replace(command(base), readable=(f"{base}/data",), hidden=(f"{base}/data/secret",))
    granted = {entry.path for entry in flatten(view_of(asked)) if str(base) in entry.path}
    assert granted == {f"{base}/desk", f"{base}/data/open", f"{base}/data/file"}


@pytest.mark.requirement("TOOL-5")
def test_a_readable_root_inside_a_writable_one_stays_readable(base: Path) -> None:
    asked = replace(command(base), readable=(f"{base}/desk/sub",))
    (base / "desk/other").mkdir()
    granted = {e.path: e.access for e in flatten(view_of(asked)) if str(base) in e.path}
    # Every name in it may be seen, so the folder itself can be listed.
    desk = f"{base}/desk"
    assert granted == {desk: "list", f"{desk}/sub": "read", f"{desk}/other": "write"}
    asked = replace(asked, hidden=(f"{desk}/sub",))
    granted = {e.path: e.access for e in flatten(view_of(asked)) if str(base) in e.path}
    assert granted == {f"{desk}/other": "write"}


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize("root", ["relative", "/no/such/folder", "/", "/proc", "/dev/shm", "/sys"])
def test_impossible_roots_are_refused(base: Path, root: str) -> None:
    if root == "/dev/shm" and not Path(root).exists():
        root = "/dev/null"
    for asked in (
        replace(command(base), writable=(root,)),
        replace(command(base), readable=(root,)),
    ):
        with pytest.raises(InvalidInput) as error:
            view_of(asked)
        assert (root,) == getattr(asked, error.value.field)


@pytest.mark.requirement("TOOL-5")
def test_the_working_directory_lies_inside_a_root(base: Path) -> None:
    (base / "desk/link").symlink_to(base / "data")
    for cwd in (f"{base}/data", f"{base}/desk/absent", f"{base}/desk/link"):
        with pytest.raises(InvalidInput, match="cwd"):
            view_of(replace(command(base), cwd=cwd))


@pytest.mark.requirement("TOOL-5")
def test_the_environment_is_made_from_nothing(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-test-token")
    asked = replace(command(base), env={"HOME": "/somewhere", "X": "1"})
    found = environment_of(asked, temporary="/t", token="made-up")
    assert found.keys() == {"PATH", "HOME", "TMPDIR", "LANG", "TERM", "X", "GATEHOUSE_TASK_TOKEN"}
    assert (found["HOME"], found["TMPDIR"], found["X"]) == ("/somewhere", "/t", "1")


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize(
    "env",
    [{"GATEHOUSE_TASK_TOKEN": "x"}, {"gatehouse_x": "1"}, {"": "1"}, {"A=B": "1"}, {"A": "\0"}],
)
def test_variables_that_cannot_be_granted(base: Path, env: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="env"):
        environment_of(replace(command(base), env=env), temporary="/t", token="made-up")


@pytest.mark.requirement("SEC-6")
def test_of_etc_only_what_programs_look_up_is_shown(base: Path) -> None:
    shown = {e.path for e in view_of(command(base)).entries if e.access == "read"}
    listed = {os.path.realpath(path) for path in ETC_READABLE}
    assert {path for path in shown if path.startswith("/etc/")} <= listed
    for secret in ("sudoers", "ssh", "ssl/private", "docker", "cron.d", "pam.d", "fstab", "."):
        assert os.path.realpath(f"/etc/{secret}") not in shown


@pytest.mark.requirement("SEC-6")
def test_what_others_may_not_read_is_closed_to_root_as_well(base: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("the kernel keeps an ordinary user out by itself: run the tests as root")
    base.chmod(0o755)
    for name in ("open", "closed", "open/key", "open/folder"):
        (base / name).mkdir() if "key" not in name else (base / name).write_text("made up")
    (base / "open/key").chmod(0o600)
    (base / "open/folder").chmod(0o700)
    (base / "closed").chmod(0o700)
    assert not open_to_others(str(base / "closed"))
    found = {os.path.relpath(path, base) for path in closed_below(str(base / "open"), depth=None)}
    assert found == {"open/key", "open/folder"}
    assert "closed" in {os.path.relpath(path, base) for path in closed_below(str(base), depth=1)}
