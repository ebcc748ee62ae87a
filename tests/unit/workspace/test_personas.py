"""Personas on the disk: what is taken, and what is refused with what to mend (CTX-11)."""

import os
from pathlib import Path

import pytest

from runtime.domain.errors import InvalidInput
from runtime.workspace.personas import persona_names, read_persona
from runtime.workspace.text_files import LIMIT
from tests.unit.workspace.support import Folder

pytestmark = pytest.mark.requirement("CTX-11")


def refusal(folder: Folder, name: str = "kind") -> str:
    with pytest.raises(InvalidInput) as caught:
        read_persona(folder.root, name)
    assert caught.value.field == "persona"
    return caught.value.rule


def test_a_persona_is_its_identity_files_and_nothing_else(folder: Folder) -> None:
    folder.write("personas/kind/SOUL.md", "Be kind.\r\n")
    folder.write("personas/kind/USER.md", "Ada")
    folder.write("personas/kind/NOTES.md", "no identity file")
    folder.write("SOUL.md", "The workspace's own.")
    found = read_persona(folder.root, "kind")
    assert (found.name, dict(found.files)) == ("kind", {"SOUL.md": "Be kind.\n", "USER.md": "Ada"})


def test_the_digest_is_of_the_files_alone(folder: Folder) -> None:
    for name in ("kind", "gentle"):
        folder.write(f"personas/{name}/SOUL.md", "Be kind.")
    first, same = (read_persona(folder.root, name).digest for name in ("kind", "gentle"))
    assert first == same
    folder.write("personas/kind/SOUL.md", "Be kinder.")
    assert read_persona(folder.root, "kind").digest != first
    folder.remove("personas/kind/SOUL.md")
    folder.write("personas/kind/AGENTS.md", "Be kind.")
    assert read_persona(folder.root, "kind").digest != first


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../kind", "kind/..", "kind/", "/etc", "Kind", "-kind", "kind\n", "k" * 65],
)
def test_what_is_no_name_is_refused_before_the_disk_is_asked(folder: Folder, name: str) -> None:
    folder.write("personas/kind/SOUL.md", "Be kind.")
    folder.write("SOUL.md", "The workspace's own.")
    assert refusal(folder, name).startswith("must be the name of a folder in personas/")


def test_an_unknown_one_is_told_with_those_that_there_are(folder: Folder) -> None:
    assert refusal(folder) == "there is no personas/kind/ in the workspace; there are: none"
    folder.write("personas/stern/SOUL.md", "Be stern.")
    folder.write("personas/README.md", "no persona")
    folder.write("personas/Not One/SOUL.md", "no name")
    told = refusal(folder)
    assert told == "there is no personas/kind/ in the workspace; there are: stern"
    assert persona_names(folder.root) == ["stern"]


@pytest.mark.parametrize("content", [None, "", " \n"])
def test_one_without_words_is_refused(folder: Folder, content: str | None) -> None:
    folder.write("personas/kind/README.md", "words elsewhere")
    if content is not None:
        folder.write("personas/kind/SOUL.md", content)
    assert refusal(folder).startswith("personas/kind/ has none of AGENTS.md, SOUL.md")


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"x" * (LIMIT + 1), "it is larger than 256 KiB"), (b"\xff\xfe", "it is not UTF-8 (byte 0)")],
)
def test_a_file_that_cannot_be_taken_whole_refuses_all(
    folder: Folder, content: bytes, why: str
) -> None:
    folder.write("personas/kind/AGENTS.md", "Work.")
    folder.write("personas/kind/SOUL.md", content)
    assert refusal(folder) == f"personas/kind/SOUL.md cannot be used: {why}"


def test_what_is_no_file_is_refused(folder: Folder) -> None:
    folder.write("personas/kind/AGENTS.md", "Work.")
    os.mkfifo(folder.root / "personas/kind/SOUL.md")
    assert "not a regular file" in refusal(folder)


def test_a_folder_is_refused_and_not_left_open(folder: Folder) -> None:
    folder.write("personas/kind/AGENTS.md", "Work.")
    (folder.root / "personas/kind/SOUL.md").mkdir()
    before = len(list(Path("/proc/self/fd").iterdir()))
    assert "not a regular file" in refusal(folder)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize(
    "link",
    ["personas/kind/SOUL.md", "personas/kind", "personas"],
    ids=["file", "folder", "all of them"],
)
@pytest.mark.parametrize("inside", [True, False], ids=["inside", "outside"])
def test_no_link_is_followed_not_even_to_the_owners_notes(
    folder: Folder, link: str, inside: bool
) -> None:
    secret = Folder(folder.root if inside else folder.root.parent)
    target = {
        "personas/kind/SOUL.md": secret.write("secret/USER.md", "whom it serves"),
        "personas/kind": secret.write("secret/SOUL.md", "a secret").parent,
        "personas": secret.write("secret/kind/SOUL.md", "a secret").parent.parent,
    }[link]
    folder.link(link, target)
    told = refusal(folder)
    assert told.endswith(".md cannot be used: it is, or is reached through, a link")
    if link == "personas":
        assert persona_names(folder.root) == []


def test_a_workspace_that_is_itself_behind_a_link_has_its_personas(folder: Folder) -> None:
    folder.write("personas/kind/SOUL.md", "Be kind.")
    behind = folder.root.parent / "behind"
    behind.symlink_to(folder.root)
    assert dict(read_persona(behind, "kind").files) == {"SOUL.md": "Be kind."}
    assert persona_names(behind) == ["kind"]
