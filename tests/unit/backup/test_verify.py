"""Refusing an archive that was changed, or that somebody made to harm."""

import errno
import gzip
import hashlib
import io
import json
import sqlite3
import tarfile
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from gateway import backup
from gateway.backup_workspace import inside
from gateway.config import Config
from runtime.domain.errors import Conflict, InvalidInput, Unavailable
from tests.unit.backup.support import NOW, base, everything, members, pack, raw

DATABASE = "database/gatehouse.sqlite3"
Change = Callable[[tarfile.TarInfo], None]


@pytest.fixture
async def archive(config: Config, tmp_path: Path) -> Path:
    return (await backup.create(config, base(config), now_ms=NOW, path=tmp_path)).file


@pytest.mark.requirement("OPS-6")
async def test_what_was_made_passes(config: Config, archive: Path) -> None:
    manifest = await backup.verify(base(config), archive)
    assert manifest.database == "sqlite"
    assert manifest.created_ms == NOW


@pytest.mark.requirement("OPS-6")
async def test_without_a_temporary_folder_it_says_so(
    config: Config, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in /tmp")

    monkeypatch.setattr(tempfile, "gettempdir", nowhere)
    with pytest.raises(Unavailable, match="the temporary folder: No usable temporary directory"):
        await backup.verify(base(config), archive)


@pytest.mark.requirement("OPS-6")
@pytest.mark.parametrize("part", range(12))
async def test_a_flipped_byte_anywhere_is_found(
    config: Config, archive: Path, tmp_path: Path, part: int
) -> None:
    content = bytearray(raw(archive))
    # The ten bytes of gzip's header hold a time and a system, which mean nothing here.
    at = 10 + (len(content) - 11) * part // 11
    content[at] ^= 0x40
    bad = tmp_path / "bad.tar.gz"
    bad.write_bytes(content)
    with pytest.raises(InvalidInput, match="must be a complete backup"):
        await backup.verify(base(config), bad)


@pytest.mark.requirement("OPS-6")
async def test_changed_contents_with_whole_sums_of_gzip_are_found(
    config: Config, archive: Path, tmp_path: Path
) -> None:
    found = members(archive)
    for name in (DATABASE, "workspace/AGENTS.md"):
        changed = bytearray(found[name])
        changed[-1] ^= 1
        bad = pack(tmp_path / "bad.tar.gz", {**found, name: bytes(changed)})
        with pytest.raises(InvalidInput, match="not what its manifest says"):
            await backup.verify(base(config), bad)
    more = {"workspace/new.md": b"x", **found}
    less = {name: content for name, content in found.items() if name != "workspace/AGENTS.md"}
    late = {**found, "workspace/late.md": b"x"}
    bare = {name: content for name, content in found.items() if name != "manifest.json"}
    for wrong in (more, less, late, bare):
        with pytest.raises(InvalidInput):
            await backup.verify(base(config), pack(tmp_path / "bad.tar.gz", wrong))


@pytest.mark.requirement("OPS-6")
@pytest.mark.parametrize(
    "name",
    [
        "/etc/gatehouse",
        "../outside",
        "workspace/../../outside",
        "workspace/./a",
        "workspace//a",
        "database/../outside",
        "database/a/b",
        "other/file",
        "workspace",
        "workspace/" + "a/" * 3_000 + "a",
    ],
)
async def test_names_that_lead_elsewhere_are_refused_before_anything_is_written(
    config: Config, archive: Path, tmp_path: Path, name: str
) -> None:
    bad = pack(tmp_path / "bad.tar.gz", {name: b"harm", **members(archive)})
    before = everything(tmp_path)
    with pytest.raises(InvalidInput, match=r"is not a name of a backup|too long"):
        await backup.verify(base(config), bad)
    with pytest.raises(InvalidInput):
        await backup.restore(config, base(config), bad, force=True, resend=False)
    new = [one for one in everything(tmp_path) if one not in before]
    assert [one.name for one in new] in ([], ["gatehouse.db.lock"])


def _link(header: tarfile.TarInfo) -> None:
    header.type, header.linkname = tarfile.SYMTYPE, "/etc/passwd"


def _hard(header: tarfile.TarInfo) -> None:
    header.type, header.linkname = tarfile.LNKTYPE, DATABASE


def _device(header: tarfile.TarInfo) -> None:
    header.type, header.devmajor, header.devminor = tarfile.CHRTYPE, 1, 5


def _pipe(header: tarfile.TarInfo) -> None:
    header.type = tarfile.FIFOTYPE


def _folder(header: tarfile.TarInfo) -> None:
    header.type = tarfile.DIRTYPE


def _extended(header: tarfile.TarInfo) -> None:
    header.type = tarfile.XHDTYPE


def _huge(header: tarfile.TarInfo) -> None:
    header.size = 1 << 60


def _negative(header: tarfile.TarInfo) -> None:
    header.size = -512


def _long_name(header: tarfile.TarInfo) -> None:
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 1 << 33


@pytest.mark.requirement("OPS-6")
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (_link, "not a plain file"),
        (_hard, "not a plain file"),
        (_device, "not a plain file"),
        (_pipe, "not a plain file"),
        (_folder, "not a plain file"),
        (_extended, "not a plain file"),
        (_huge, "too large"),
        (_negative, "too large"),
        (_long_name, "too long"),
    ],
)
async def test_what_is_no_plain_file_of_a_sensible_size_is_refused(
    config: Config, archive: Path, tmp_path: Path, change: Change, told: str
) -> None:
    header = tarfile.TarInfo("workspace/harm")
    change(header)
    start = header.tobuf(tarfile.GNU_FORMAT)
    bad = tmp_path / "bad.tar.gz"
    bad.write_bytes(gzip.compress(start + gzip.decompress(raw(archive))))
    with pytest.raises(InvalidInput, match=told):
        await backup.verify(base(config), bad)


@pytest.mark.requirement("OPS-6")
async def test_another_kind_of_file_is_refused_in_plain_words(
    config: Config, tmp_path: Path
) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("Buy bread.")
    with pytest.raises(InvalidInput, match="it is another kind of file"):
        await backup.verify(base(config), other)


@pytest.mark.requirement("OPS-6")
async def test_a_member_larger_than_the_disk_is_refused_before_it_is_written(
    config: Config, archive: Path, tmp_path: Path
) -> None:
    header = tarfile.TarInfo("workspace/harm")
    header.size = 1 << 40
    bad = tmp_path / "bad.tar.gz"
    bad.write_bytes(gzip.compress(header.tobuf(tarfile.GNU_FORMAT)))
    with pytest.raises(Unavailable, match="no room"):
        await backup.verify(base(config), bad)


@pytest.mark.requirement("OPS-6")
async def test_twice_the_same_name_and_something_after_the_end_are_refused(
    config: Config, archive: Path, tmp_path: Path
) -> None:
    tar_of_it = gzip.decompress(raw(archive))
    one = io.BytesIO()
    with tarfile.open(fileobj=one, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for _ in range(2):
            tar.addfile(tarfile.TarInfo("workspace/AGENTS.md"), io.BytesIO(b""))
    bad = tmp_path / "bad.tar.gz"
    for content in (
        one.getvalue()[:1024] + tar_of_it,
        tar_of_it + b"more",
        tar_of_it + bytes(1 << 20),
    ):
        bad.write_bytes(gzip.compress(content))
        with pytest.raises(InvalidInput, match="must be a complete backup"):
            await backup.verify(base(config), bad)
    for cut in (20, len(raw(archive)) // 2, len(raw(archive)) - 9):
        bad.write_bytes(raw(archive)[:cut])
        with pytest.raises(InvalidInput, match="must be a complete backup"):
            await backup.verify(base(config), bad)


@pytest.mark.requirement("OPS-6")
@pytest.mark.parametrize(
    ("statement", "error", "told"),
    [
        ("DELETE FROM settings WHERE name = 'x'", None, ""),
        (
            "INSERT INTO lanes (session_id, root_id) VALUES ('nobody', 'nobody')",
            Unavailable,
            "rows that the backup does not hold",
        ),
        ("DROP TABLE outbox", Unavailable, "outbox"),
        ("UPDATE alembic_version SET version_num = '0000'", Unavailable, "0000"),
    ],
)
async def test_a_database_that_is_not_as_told_is_refused(
    config: Config,
    archive: Path,
    tmp_path: Path,
    statement: str,
    error: type[Exception] | None,
    told: str,
) -> None:
    """By somebody who mends the sums too: the first line shows that the mending is right."""
    bad = _with_database(archive, tmp_path, statement)
    if error is None:
        await backup.verify(base(config), bad)
        return
    with pytest.raises(error, match=told):
        await backup.verify(base(config), bad)


@pytest.mark.requirement("OPS-6")
@pytest.mark.parametrize("table", ["sessions", "inputs", "runs", "messages", "outbox"])
async def test_counts_that_do_not_match_are_refused(
    config: Config, archive: Path, tmp_path: Path, table: str
) -> None:
    found = members(archive)
    manifest = json.loads(found["manifest.json"])
    manifest["counts"][table] += 1
    bad = pack(tmp_path / "bad.tar.gz", {**found, "manifest.json": json.dumps(manifest).encode()})
    with pytest.raises(Unavailable, match=table):
        await backup.verify(base(config), bad)


@pytest.mark.requirement("OPS-6")
@pytest.mark.parametrize(
    ("revision", "why"), [("9999", "newer version"), ("0007", "from before the first release")]
)
async def test_a_schema_that_is_not_known_is_refused_by_verify_and_by_restore(
    config: Config, archive: Path, tmp_path: Path, revision: str, why: str
) -> None:
    bad = _with_database(
        archive, tmp_path, f"UPDATE alembic_version SET version_num = '{revision}'"
    )
    found = members(bad)
    manifest = json.loads(found["manifest.json"])
    manifest["revision"] = revision
    pack(bad, {**found, "manifest.json": json.dumps(manifest).encode()})
    with pytest.raises(Conflict, match=why):
        await backup.verify(base(config), bad)
    with pytest.raises(Conflict, match=why):
        await backup.restore(config, base(config), bad, force=True, resend=False)
    assert not list(config.home.glob("*before-restore*"))


@pytest.mark.requirement("OPS-6")
@pytest.mark.parametrize(
    "links",
    [
        [("a", "/etc")],
        [("a", "..")],
        [("d/a", "../..")],
        [("../a", "b")],
        [("AGENTS.md", "memory")],
        [("memory", "x")],
        [("a", "."), ("a/b", "..")],
    ],
)
async def test_links_that_lead_out_are_refused(
    config: Config, archive: Path, tmp_path: Path, links: list[tuple[str, str]]
) -> None:
    found = members(archive)
    manifest = json.loads(found["manifest.json"])
    manifest["links"] = [{"path": path, "target": target} for path, target in links]
    bad = pack(tmp_path / "bad.tar.gz", {**found, "manifest.json": json.dumps(manifest).encode()})
    with pytest.raises(InvalidInput, match="must be a complete backup"):
        await backup.verify(base(config), bad)


@pytest.mark.parametrize(
    ("path", "target", "stays"),
    [
        ("a", "b", True),
        ("a/b", "../c", True),
        ("a/b", "../../c", False),
        ("a", "b/../c", False),
        ("a", "/b", False),
        ("a", "", False),
        ("a", "..", False),
        ("a/b", "..", True),
    ],
)
def test_which_links_stay_inside(path: str, target: str, stays: bool) -> None:
    assert inside(path, target) is stays


def _with_database(archive: Path, tmp_path: Path, statement: str) -> Path:
    found = members(archive)
    file = tmp_path / "changed.db"
    file.write_bytes(found[DATABASE])
    with closing(sqlite3.connect(file, isolation_level=None)) as conn:
        conn.execute(statement)
    made = tmp_path / "made"
    made.mkdir()
    content = file.read_bytes()
    manifest = json.loads(found["manifest.json"])
    manifest["files"][0] |= {
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    changed = {**found, DATABASE: content, "manifest.json": json.dumps(manifest).encode()}
    return pack(made / "bad.tar.gz", changed)
