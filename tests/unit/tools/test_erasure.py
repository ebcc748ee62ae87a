"""What is removed with a session: its uploads, its long outputs, and the copies that it sent."""

from pathlib import Path

import pytest

from runtime.tools.erasure import erase_files
from runtime.tools.hidden_paths import OUTPUTS, UPLOADS, file_name
from runtime.tools.outgoing_files import SENT

pytestmark = pytest.mark.requirement("RUN-6")


def kept(top: Path, path: Path) -> Path:
    whole = top / path
    whole.parent.mkdir(parents=True, exist_ok=True)
    whole.write_text("x")
    return whole


def test_the_files_of_a_session_go_and_those_of_others_stay(tmp_path: Path) -> None:
    outputs = Path(*OUTPUTS)
    places = [Path(UPLOADS), outputs]
    gone = [
        kept(tmp_path, place / file_name(session) / "a" / "b")
        for place in places
        for session in ("ses_a", "ses_b")
    ]
    gone.append(kept(tmp_path, outputs / SENT / "one.png"))
    stay = [kept(tmp_path, place / file_name("ses_c") / "b") for place in places]
    stay.append(kept(tmp_path, outputs / SENT / "two.png"))
    stay.append(kept(tmp_path, Path("files/one.png")))
    copies = ["files/one.png", "files/never.png"]
    for _ in range(2):
        erase_files(tmp_path, ["ses_a", "ses_none", "ses_b"], copies)
        assert not any(path.exists() for path in gone)
        assert all(path.exists() for path in stay)
    assert not (tmp_path / UPLOADS / file_name("ses_a")).exists()


def test_where_nothing_was_kept_there_is_nothing_to_remove(tmp_path: Path) -> None:
    erase_files(tmp_path, ["ses_a"], ["files/one.png"])
    kept(tmp_path, Path(UPLOADS) / file_name("ses_a") / "b")
    erase_files(tmp_path, ["ses_a"], ["files/one.png"])
    assert not (tmp_path / UPLOADS / file_name("ses_a")).exists()
