"""The file of a backup: a gzipped tar that any tar can open, and that is read with suspicion.

Members are plain files: `database/...`, `workspace/...`, and `manifest.json` at the end. Reading
goes by the headers itself, because a stranger's archive may name any path, link, device or size.
It refuses everything that `ArchiveWriter` does not write, before it writes a byte of it.
"""

import gzip
import hashlib
import io
import os
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, Final, Self

from pydantic import ValidationError

from gateway.backup_workspace import inside
from runtime.domain.backups import BackupFile, Manifest
from runtime.domain.errors import InvalidInput, Unavailable
from runtime.domain.printable import quoted

MANIFEST: Final = "manifest.json"
DATABASE: Final = "database/"
WORKSPACE: Final = "workspace/"
MAX_MEMBERS: Final = 1_000_000
MAX_MEMBER_BYTES: Final = 1 << 40
MAX_MANIFEST_BYTES: Final = 512 * 1024 * 1024
MAX_NAME_BYTES: Final = 4096
RESERVE_BYTES: Final = 64 * 1024 * 1024
"""What extracting leaves free on a disk."""

_BLOCK: Final = 512
_CHUNK: Final = 1024 * 1024
_PADDING_BYTES: Final = 64 * 1024
_LEVEL: Final = 6


class ArchiveWriter:
    """Writes members one after the other, and notes their sizes and digests."""

    def __init__(self, file: BinaryIO, *, made_s: int) -> None:
        self.files: list[BackupFile] = []
        self._made_s = made_s
        self._zip = gzip.GzipFile("", "wb", _LEVEL, file, mtime=made_s)
        self._tar = tarfile.open(  # noqa: SIM115 - closed in `close`
            fileobj=self._zip, mode="w", format=tarfile.GNU_FORMAT
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # After `finish` nothing is left to be written; before it the file is thrown away.
        with suppress(OSError):
            self._zip.close()

    def add(self, name: str, content: IO[bytes], *, mode: int = 0o600) -> None:
        """Add a file whose size does not change meanwhile."""
        size = content.seek(0, os.SEEK_END)
        content.seek(0)
        reader = _Hashing(content)
        self._tar.addfile(self._header(name, size, mode), reader)
        digest = reader.digest.hexdigest()
        self.files.append(BackupFile(path=name, size=size, sha256=digest, mode=mode))

    def finish(self, manifest: Manifest) -> None:
        """Add the manifest and the end."""
        text = manifest.model_dump_json(indent=1).encode()
        self._tar.addfile(self._header(MANIFEST, len(text), 0o600), io.BytesIO(text))
        self._tar.close()
        self._zip.close()

    def _header(self, name: str, size: int, mode: int) -> tarfile.TarInfo:
        header = tarfile.TarInfo(name)
        header.size, header.mode, header.mtime = size, mode, self._made_s
        return header


class _Hashing(io.RawIOBase):
    """Reads on, and hashes what was read."""

    def __init__(self, content: IO[bytes]) -> None:
        self.digest = hashlib.sha256()
        self._content = content

    def read(self, size: int = -1, /) -> bytes:
        data = self._content.read(size)
        self.digest.update(data)
        return data


@dataclass(frozen=True, slots=True)
class Member:
    """One member; `chunks` gives its content once, before the next one is asked for."""

    name: str
    size: int
    chunks: Iterator[bytes]


def extract(archive: Path, place: Callable[[str], Path]) -> Manifest:
    """Put the members where `place` says, and hold them against the manifest, which is returned.

    The folders that `place` names are private and empty before; `place` may raise for a name.
    Raises InvalidInput for an archive that is damaged, was changed or is none of ours, and
    Unavailable when there is no room.
    """
    found: dict[str, tuple[int, str]] = {}
    manifest: Manifest | None = None
    with _trouble(archive), archive.open("rb") as file, gzip.GzipFile(fileobj=file) as stream:
        for member in _members(stream):
            if manifest is not None or len(found) >= MAX_MEMBERS:
                raise refused("it goes on after its manifest")
            if member.name == MANIFEST:
                manifest = _manifest(member)
            elif member.name in found:
                raise refused(f"it holds {quoted(member.name, 200)} twice")
            else:
                found[member.name] = member.size, _write(member, place(member.name))
    if manifest is None:
        raise refused("it has no manifest")
    _compare(manifest, found)
    return manifest


def refused(reason: str) -> InvalidInput:
    """What is said about an archive that must not be used."""
    return InvalidInput("backup", f"must be a complete backup that Gatehouse made, but {reason}")


def _members(stream: gzip.GzipFile) -> Iterator[Member]:
    long_name: str | None = None
    while (header := _header(stream)) is not None:
        if header.type == tarfile.GNUTYPE_LONGNAME:
            if long_name is not None or not 0 < header.size <= MAX_NAME_BYTES + 1:
                raise refused("a name in it is too long")
            raw = b"".join(_content(stream, header.size))
            long_name = raw.removesuffix(b"\0").decode("utf-8")
            continue
        name, long_name = long_name or header.name, None
        if header.type != tarfile.REGTYPE or header.linkname:
            raise refused(f"{quoted(name, 200)} in it is not a plain file")
        if not 0 <= header.size <= MAX_MEMBER_BYTES:
            raise refused(f"{quoted(name, 200)} in it is too large")
        _check_name(name)
        chunks = _content(stream, header.size)
        yield Member(name, header.size, chunks)
        for _ in chunks:
            raise refused("a member was not read to its end")
    # To the end of the stream, where gzip checks its sum.
    rest = stream.read(_PADDING_BYTES)
    if rest.strip(b"\0") or stream.read(1):
        raise refused("something follows its end")


def _header(stream: gzip.GzipFile) -> tarfile.TarInfo | None:
    block = _exactly(stream, _BLOCK)
    if not block.strip(b"\0"):
        return None
    return tarfile.TarInfo.frombuf(block, "utf-8", "strict")


def _content(stream: gzip.GzipFile, size: int) -> Iterator[bytes]:
    left = size
    while left:
        data = stream.read(min(left, _CHUNK))
        if not data:
            raise refused("it ends too early")
        left -= len(data)
        yield data
    _exactly(stream, -size % _BLOCK)


def _exactly(stream: gzip.GzipFile, size: int) -> bytes:
    data = stream.read(size) if size else b""
    if len(data) != size:
        raise refused("it ends too early")
    return data


def _check_name(name: str) -> None:
    parts = name.split("/")
    plain = all(part not in ("", ".", "..") for part in parts) and "\0" not in name
    known = name == MANIFEST or (
        (name.startswith(DATABASE) and len(parts) == 2) or name.startswith(WORKSPACE)
    )
    if not plain or not known or len(name.encode()) > MAX_NAME_BYTES:
        raise refused(f"{quoted(name, 200)} is not a name of a backup")


def _manifest(member: Member) -> Manifest:
    if member.size > MAX_MANIFEST_BYTES:
        raise refused("its manifest is too large")
    try:
        return Manifest.model_validate_json(b"".join(member.chunks))
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise refused(f"its manifest cannot be read ({where or 'not JSON'})") from error


def _write(member: Member, target: Path) -> str:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if shutil.disk_usage(target.parent).free - RESERVE_BYTES < member.size:
        raise Unavailable(
            f"There is no room for {member.name} ({member.size} bytes) in {target.parent}.",
            hint="Free some space; nothing was changed.",
        )
    digest = hashlib.sha256()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(target, flags, 0o600), "wb") as file:
        for data in member.chunks:
            digest.update(data)
            file.write(data)
    return digest.hexdigest()


def _compare(manifest: Manifest, found: dict[str, tuple[int, str]]) -> None:
    told = {one.path: (one.size, one.sha256) for one in manifest.files}
    for name in sorted(told.keys() | found.keys()):
        if told.get(name) != found.get(name):
            raise refused(f"{quoted(name, 200)} is not what its manifest says")
    if len(told) != len(manifest.files):
        raise refused("its manifest names a file twice")
    _check_links(manifest)


def _check_links(manifest: Manifest) -> None:
    places = [PurePosixPath(one.path) for one in manifest.files]
    links = {PurePosixPath(f"{WORKSPACE}{one.path}") for one in manifest.links}
    places += links
    for link in manifest.links:
        _check_name(f"{WORKSPACE}{link.path}")
        if not inside(link.path, link.target):
            raise refused(f"the link {quoted(link.path, 200)} leaves the workspace")
    # A link below a link stands elsewhere than its name says.
    if len(set(places)) != len(manifest.files) + len(manifest.links) or any(
        not links.isdisjoint(place.parents) for place in places
    ):
        raise refused("a link in it has the place of something else")


@contextmanager
def _trouble(archive: Path) -> Iterator[None]:
    """Say plainly what reading an archive runs into."""
    try:
        yield
    except FileNotFoundError as error:
        if error.filename != str(archive):
            raise
        raise Unavailable(f"There is no file {archive}.") from error
    except gzip.BadGzipFile as error:
        raise refused("it is damaged, or it is another kind of file") from error
    except (tarfile.HeaderError, EOFError, zlib.error, UnicodeError) as error:
        raise refused(f"it is damaged ({error})") from error
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        if error.filename == str(archive):
            raise Unavailable(f"{archive} is no file.") from error
        raise refused("two of its members have the same place") from error
