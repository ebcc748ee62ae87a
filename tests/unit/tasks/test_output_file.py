"""The file that keeps what a command prints (TSK-4)."""

import errno
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from gateway.logs import MASK, Redactor
from runtime.features.tasks import output_file
from runtime.features.tasks.output_file import (
    CAP_BYTES,
    KEPT_BYTES,
    OutputFile,
    marker,
    read_output,
)

PATH = "out/x.txt"
KEY = "-----BEGIN KEY-----\nQUJD\n-----END KEY-----"
SECRETS = ("s3cret-token", "token-two", "s3cret-token-long", "g\u00e9heim", KEY)


def small(folder: Path) -> OutputFile:
    return OutputFile(folder, PATH, cap_bytes=100, kept_bytes=40)


def text_of(folder: Path) -> str:
    kept = read_output(folder, PATH, 2 * CAP_BYTES)
    assert kept is not None
    return kept.text


def masked(folder: Path, pieces: Iterable[bytes]) -> list[bytes]:
    """What the file holds after each piece, and at the end."""
    folder.mkdir()
    redactor = Redactor(SECRETS)
    file = OutputFile(folder, PATH, clean=redactor.secrets, begun=redactor.begun)
    held = []
    for piece in pieces:
        file.append(piece)
        held.append((folder / PATH).read_bytes())
    file.finish()
    file.close()
    return [*held, (folder / PATH).read_bytes()]


@pytest.mark.requirement("TSK-4")
def test_a_rotation_keeps_the_latest_behind_a_line(tmp_path: Path) -> None:
    file = small(tmp_path)
    assert not file.append(b"a" * 100)
    assert file.append(b"b" * 20)
    assert text_of(tmp_path) == marker(80, 1).decode() + "a" * 20 + "b" * 20
    assert file.append(b"c" * 50)
    file.close()
    assert text_of(tmp_path) == marker(130, 2).decode() + "c" * 40


@pytest.mark.requirement("TSK-4")
def test_the_file_takes_8_mib_and_then_keeps_the_latest_6(tmp_path: Path) -> None:
    assert (CAP_BYTES, KEPT_BYTES) == (8 * 1024**2, 6 * 1024**2)
    file = OutputFile(tmp_path, PATH)
    assert not file.append(b"x" * (CAP_BYTES - 1))
    assert not file.append(b"y")
    assert (tmp_path / PATH).stat().st_size == CAP_BYTES
    assert file.append(b"z")
    file.close()
    dropped = CAP_BYTES + 1 - KEPT_BYTES
    line = f"[gatehouse: {dropped:,} bytes of earlier output were dropped]\n"
    assert text_of(tmp_path) == line + "x" * (KEPT_BYTES - 2) + "yz"
    assert (file.dropped, file.rotations) == (dropped, 1)


@pytest.mark.requirement("TSK-4")
def test_a_rotation_cuts_no_character_in_two(tmp_path: Path) -> None:
    file = small(tmp_path)
    # The last 40 bytes begin in the middle of a character of three bytes.
    assert file.append("\u20ac".encode() * 40)
    file.close()
    assert text_of(tmp_path) == marker(81, 1).decode() + "\u20ac" * 13


@pytest.mark.requirement("TSK-4")
def test_a_rotation_that_fails_loses_nothing_and_is_made_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = small(tmp_path)
    before = len(list(Path("/proc/self/fd").iterdir()))

    def full(*names: object, **more: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(output_file.os, "rename", full)
        with pytest.raises(OSError, match="full"):
            file.append(b"a" * 110)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert (file.dropped, file.rotations, text_of(tmp_path)) == (0, 0, "a" * 110)
    assert file.append(b"b")
    file.close()
    assert text_of(tmp_path) == marker(71, 1).decode() + "a" * 39 + "b"


@pytest.mark.requirement("TSK-4")
def test_a_disk_that_takes_little_at_once_gets_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(output_file.os, "write", lambda file, data: write(file, data[:7]))
    file = small(tmp_path)
    file.append(b"a" * 60 + b"b" * 60)
    file.close()
    assert text_of(tmp_path) == marker(80, 1).decode() + "b" * 40


@pytest.mark.requirement("TSK-4")
def test_a_secret_is_masked_wherever_the_reads_cut_it(tmp_path: Path) -> None:
    for number, secret in enumerate(SECRETS):
        whole = f"key {secret}.\n".encode()
        for cut in range(1, len(whole)):
            held = masked(tmp_path / f"{number}-{cut}", (whole[:cut], whole[cut:]))
            assert held[-1] == f"key {MASK}.\n".encode()
            # Not even the beginning of it was there for a moment.
            assert held[0] in (b"key "[:cut], f"key {MASK}".encode(), f"key {MASK}.".encode())
        single = [whole[place : place + 1] for place in range(len(whole))]
        assert masked(tmp_path / f"{number}", single)[-1] == f"key {MASK}.\n".encode()


@pytest.mark.requirement("TSK-4")
def test_what_was_held_back_comes_once_it_is_known_to_be_no_secret(tmp_path: Path) -> None:
    assert masked(tmp_path / "1", [b"to s3cret-", b"door\n"]) == [
        b"to ",
        b"to s3cret-door\n",
        b"to s3cret-door\n",
    ]
    assert masked(tmp_path / "2", [b"to s3cret-"]) == [b"to ", b"to s3cret-"]
    # One begins in the middle of another one, which is not cut for it.
    assert masked(tmp_path / "3", [b"s3cret-token", b"\n"])[-1] == f"{MASK}\n".encode()


@pytest.mark.requirement("TSK-4")
def test_what_is_no_utf_8_stays_as_it_is_and_no_character_is_shown_by_half(tmp_path: Path) -> None:
    data = b"\xff\xc3(\xe2\x82" + "\u20ac\u00e9\U0001f600".encode() + b"\xf0\x9f"
    pieces = [data[place : place + 1] for place in range(len(data))]
    assert masked(tmp_path / "1", pieces)[-1] == data
    held = masked(tmp_path / "2", [b"a\xe2\x82", b"\xac"])
    assert held == [b"a", "a\u20ac".encode(), "a\u20ac".encode()]
