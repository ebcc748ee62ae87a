"""The token and the sockets of a home: who may read them, and what a killed process leaves."""

import socket
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gateway import home_socket, home_token
from runtime.domain.errors import Unavailable


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@pytest.mark.requirement("WEB-2")
def test_a_token_is_made_once_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    made = home_token.make(tmp_path)
    path = tmp_path / "token"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert home_token.make(tmp_path) == home_token.read(tmp_path) == made
    assert len(made) > 60
    assert names(tmp_path) == ["token"]


@pytest.mark.requirement("WEB-2")
def test_processes_that_make_it_at_once_end_with_one_token(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = set(pool.map(lambda _: home_token.make(tmp_path), range(32)))
    assert made == {home_token.read(tmp_path)}
    assert names(tmp_path) == ["token"]


@pytest.mark.requirement("WEB-2")
def test_another_token_names_the_same_home(tmp_path: Path) -> None:
    old = home_token.make(tmp_path)
    new = home_token.rotate(tmp_path)
    assert new == home_token.read(tmp_path) != old
    assert home_token.home_of(new) == home_token.home_of(old)
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600
    assert names(tmp_path) == ["token"]


def test_a_file_without_a_token_gets_one(tmp_path: Path) -> None:
    (tmp_path / "token").touch(mode=0o600)
    assert home_token.read(tmp_path) is None
    assert home_token.make(tmp_path) == home_token.read(tmp_path)


def test_a_home_that_cannot_be_written_is_said_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="cannot be written"):
        home_token.make(tmp_path / "missing")


@pytest.mark.parametrize("token", ["", "gh-", "gh-x-y", "token", "gh-0123456789abcdef-short"])
def test_what_is_no_token_of_a_home_names_none(token: str) -> None:
    assert home_token.home_of(token) is None


@pytest.mark.requirement("OPS-12")
def test_a_socket_is_its_owners_alone_and_goes_with_its_process(tmp_path: Path) -> None:
    with home_socket.listening(tmp_path) as one, home_socket.listening(tmp_path) as two:
        found = home_socket.live(tmp_path)
        assert len(found) == 2
        for path in found:
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_ISSOCK(path.stat().st_mode)
        assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o700
        assert one.fileno() != two.fileno()
    assert home_socket.live(tmp_path) == []
    assert names(tmp_path / "run") == []


@pytest.mark.requirement("OPS-12")
def test_what_a_killed_process_left_is_found_out_and_removed(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    left = tmp_path / "run" / "left.sock"
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(left))
    assert home_socket.live(tmp_path) == []
    with home_socket.listening(tmp_path):
        assert not left.exists()
        (path,) = home_socket.live(tmp_path)
        assert path != left


@pytest.mark.requirement("OPS-12")
def test_a_folder_that_others_could_enter_is_closed(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir(mode=0o777)
    with home_socket.listening(tmp_path):
        assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o700


@pytest.mark.requirement("OPS-12")
def test_a_home_with_a_long_path_has_a_socket_too(tmp_path: Path) -> None:
    home = tmp_path / ("deep-" * 20) / ("er-" * 20)
    home.mkdir(parents=True)
    with home_socket.listening(home):
        (path,) = home_socket.live(home)
        assert len(str(path)) > 160
        with home_socket.reachable(path) as address, socket.socket(socket.AF_UNIX) as client:
            client.connect(address)
    assert home_socket.live(home) == []
