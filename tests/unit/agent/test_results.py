"""SUB-10: the files of long results, made of what the database keeps."""

from pathlib import Path

import pytest

from runtime.domain.results import path_of
from runtime.tools import upload_folders as shelf
from runtime.tools.hidden_paths import OUTPUTS, Hidden, file_name
from runtime.workspace.layout import Layout, ResolvedLayout

READER, CHILD, DIGEST = "ses_0reader", "ses_0child", "ab" * 32


@pytest.mark.requirement("SUB-10")
def test_the_file_is_in_the_readers_own_folder_and_absent_for_everybody_else(
    tmp_path: Path,
) -> None:
    path = path_of(READER, CHILD, DIGEST)
    assert Path(path).parts[:3] == (*OUTPUTS, file_name(READER))
    whole = tmp_path.resolve() / path
    assert not Hidden.of(ResolvedLayout(Layout.of(tmp_path)), READER, notes=False).covers(whole)
    assert Hidden.of(ResolvedLayout(Layout.of(tmp_path)), "ses_0other", notes=False).covers(whole)
    assert Hidden.of(ResolvedLayout(Layout.of(tmp_path)), CHILD, notes=True).covers(whole)


@pytest.mark.requirement("SUB-10")
def test_a_file_is_written_once_and_again_where_it_was_changed(tmp_path: Path) -> None:
    path = path_of(READER, CHILD, DIGEST)
    shelf.keep_at(tmp_path, path, b"a pearl")
    first = (tmp_path / path).stat().st_ino
    shelf.keep_at(tmp_path, path, b"a pearl")
    assert (tmp_path / path).stat().st_ino == first
    (tmp_path / path).write_bytes(b"a peril")
    shelf.keep_at(tmp_path, path, b"a pearl")
    assert (tmp_path / path).read_bytes() == b"a pearl"
    assert [one.name for one in (tmp_path / path).parent.iterdir()] == [Path(path).name]
