"""The folder of files that people sent: only what lies in it counts, and no link leads out."""

from pathlib import Path

import pytest

from runtime.domain.errors import ToolError
from runtime.tools import upload_folders


@pytest.mark.requirement("MSG-19", "TOOL-2")
def test_what_a_session_holds_is_counted_where_it_lies(tmp_path: Path) -> None:
    upload_folders.keep(tmp_path, "ses_a", "one.txt", b"1" * 10)
    upload_folders.keep(tmp_path, "ses_a", "two.txt", b"2" * 20)
    upload_folders.keep(tmp_path, "ses_b", "three.txt", b"3" * 40)
    assert upload_folders.held(tmp_path, "ses_a") == 30
    assert upload_folders.held(tmp_path, "ses_none") == 0
    assert sorted(one.name for one in (tmp_path / "uploads").iterdir()) == ["ses_a", "ses_b"]


@pytest.mark.requirement("MSG-19", "TOOL-2")
def test_a_file_is_the_gateways_own_and_what_keeps_it_from_its_place_is_said(
    tmp_path: Path,
) -> None:
    path = upload_folders.keep(tmp_path, "ses_a", "one.txt", b"1")
    assert (tmp_path / path).stat().st_mode & 0o777 == 0o600
    (tmp_path / "uploads" / "ses_b").write_text("x")
    with pytest.raises(ToolError) as refused:
        upload_folders.keep(tmp_path, "ses_b", "one.txt", b"1")
    place = upload_folders.path_of("ses_b", upload_folders.digest_of(b"1"), "one.txt")
    assert refused.value.detail == f"{place} cannot be written: Not a directory"


@pytest.mark.requirement("MSG-19", "TOOL-2")
def test_what_cannot_take_its_place_leaves_nothing_behind(tmp_path: Path) -> None:
    path = upload_folders.path_of("ses_a", upload_folders.digest_of(b"1"), "one.txt")
    (tmp_path / path / "inside").mkdir(parents=True)
    with pytest.raises(ToolError):
        upload_folders.keep(tmp_path, "ses_a", "one.txt", b"1")
    assert [one.name for one in (tmp_path / path).parent.iterdir()] == ["one.txt"]


@pytest.mark.requirement("MSG-19", "TOOL-2")
@pytest.mark.parametrize("place", ["uploads", "uploads/ses_a"])
def test_a_link_at_the_top_is_not_followed(tmp_path: Path, place: str) -> None:
    elsewhere, workspace = tmp_path / "elsewhere", tmp_path / "workspace"
    (elsewhere / "ses_a").mkdir(parents=True)
    (elsewhere / "big").write_bytes(b"1" * 5_000)
    (elsewhere / "ses_a" / "big").write_bytes(b"1" * 5_000)
    link = workspace / place
    link.parent.mkdir(parents=True)
    link.symlink_to(elsewhere)
    assert upload_folders.held(workspace, "ses_a") == 0


@pytest.mark.requirement("MSG-19", "TOOL-2")
def test_a_kept_file_is_read_back_as_it_came_or_not_at_all(tmp_path: Path) -> None:
    path = upload_folders.keep(tmp_path, "ses_a", "one.txt", b"1" * 10)
    digest = upload_folders.digest_of(b"1" * 10)
    assert upload_folders.read(tmp_path, path, digest, 10) == b"1" * 10
    assert upload_folders.read(tmp_path, path, digest, 9) is None
    assert upload_folders.read(tmp_path, path, upload_folders.digest_of(b"2"), 10) is None
    assert upload_folders.read(tmp_path, f"{path}.gone", digest, 10) is None
    assert upload_folders.read(tmp_path, "gone/one.txt", digest, 10) is None
    folder, _, name = path.rpartition("/")
    assert (
        upload_folders.read(tmp_path, f"{folder}/../{folder.split('/')[-1]}/{name}", digest, 10)
        is None
    )
    (tmp_path / "bare").write_bytes(b"1" * 10)
    assert upload_folders.read(tmp_path, "bare", digest, 10) is None
    (tmp_path / path).unlink()
    (tmp_path / path).symlink_to(tmp_path / "bare")
    assert upload_folders.read(tmp_path, path, digest, 10) is None


@pytest.mark.requirement("MSG-19", "TOOL-2")
def test_a_file_that_is_kept_again_is_written_only_where_it_was_changed(tmp_path: Path) -> None:
    path = tmp_path / upload_folders.keep(tmp_path, "ses_a", "one.txt", b"1" * 10)
    for folder in list(path.parents)[:3]:
        assert folder.stat().st_mode & 0o777 == 0o700
    before = path.stat()
    upload_folders.keep(tmp_path, "ses_a", "one.txt", b"1" * 10)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    for other in (b"2" * 10, b"1" * 9, b"1" * 11, b""):
        path.write_bytes(other)
        upload_folders.keep(tmp_path, "ses_a", "one.txt", b"1" * 10)
        assert path.read_bytes() == b"1" * 10
    assert [one.name for one in path.parent.iterdir()] == ["one.txt"]
