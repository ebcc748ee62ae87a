"""The folder of files that people sent: only what lies in it counts, and no link leads out."""

from pathlib import Path

import pytest

from runtime.tools import received


@pytest.mark.requirement("MSG-19", "TOOL-2")
def test_what_a_session_holds_is_counted_where_it_lies(tmp_path: Path) -> None:
    received.keep(tmp_path, "ses_a", "one.txt", b"1" * 10)
    received.keep(tmp_path, "ses_a", "two.txt", b"2" * 20)
    received.keep(tmp_path, "ses_b", "three.txt", b"3" * 40)
    assert received.held(tmp_path, "ses_a") == 30
    assert received.held(tmp_path, "ses_none") == 0


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
    assert received.held(workspace, "ses_a") == 0
