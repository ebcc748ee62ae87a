"""The file that keeps what a command prints: capped, with the latest kept (TSK-4).

At 8 MiB the file is replaced by its latest 6 MiB behind a line that says how much was dropped. All
of this blocks on the disk, follows no link and belongs in a thread.
"""

import codecs
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from runtime.engine.feature import nothing_begun
from runtime.tools.hidden_paths import OUTPUTS, file_name
from runtime.workspace.open_folders import opened

CAP_BYTES: Final = 8 * 1024 * 1024
KEPT_BYTES: Final = 6 * 1024 * 1024
FOLDER: Final = "tasks"
_LINE: Final = 4096
"""The last bytes in which a prompt is looked for."""
_QUESTION: Final = re.compile(
    rb"(?:[?:>]|\[[^\]\n]{1,20}\]|\([yY]/[nN]\)|password[^\n]{0,60}:)[ \t]*\Z", re.IGNORECASE
)


def asks(line: bytes) -> bool:
    """Whether a line that has no end yet looks like a question to whoever sits at the terminal."""
    return _QUESTION.search(line[-200:]) is not None


def output_path(session_id: str, task_id: str) -> str:
    """Where a task's output is kept, from the workspace on."""
    return "/".join((*OUTPUTS, file_name(session_id), FOLDER, f"{file_name(task_id)}.txt"))


def marker(dropped: int, rotations: int) -> bytes:
    """The first line of a file that was rotated."""
    again = "" if rotations == 1 else f" in {rotations:,} rotations"
    return f"[gatehouse: {dropped:,} bytes of earlier output were dropped{again}]\n".encode()


class OutputFile:
    """What one command prints, as it comes; made by whoever holds the command.

    `clean` masks secrets in a text, and `begun` says how many characters at its end may be the
    beginning of one: these are held back until it is known what they are, as is half a character.
    `dropped` are the bytes of the command that are in the file no more, after `rotations`.
    """

    def __init__(
        self,
        workspace: Path,
        path: str,
        *,
        clean: Callable[[str], str] = str,
        begun: Callable[[str], int] = nothing_begun,
        cap_bytes: int = CAP_BYTES,
        kept_bytes: int = KEPT_BYTES,
    ) -> None:
        *folders, self._name = path.split("/")
        self._folders = tuple(folders)
        self._workspace = workspace.resolve()
        self._clean, self._begun = clean, begun
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._held = ""
        self._cap, self._kept = cap_bytes, kept_bytes
        self._size = 0
        self._head = 0
        self._file = self._create(self._name)
        self.dropped = 0
        self.rotations = 0
        self.last_line = b""

    def append(self, piece: bytes) -> bool:
        """Keep more; whether the file was rotated for it."""
        text = self._held + self._decoder.decode(piece)
        ready = len(text) - self._begun(text)
        self._held = text[ready:]
        return self._keep(text[:ready])

    def finish(self) -> bool:
        """Keep what was held back, because nothing follows; whether the file was rotated for it."""
        text = self._held + self._decoder.decode(b"", True)
        self._held = ""
        return self._keep(text)

    def close(self) -> None:
        """Write no more."""
        os.close(self._file)

    def _keep(self, text: str) -> bool:
        data = self._clean(text).encode("utf-8", "surrogateescape")
        for written in _written(self._file, data):
            self._size += written
        self.last_line = (self.last_line + data)[-_LINE:].rpartition(b"\n")[2]
        if self._size <= self._cap:
            return False
        self._rotate()
        return True

    def _rotate(self) -> None:
        printed = self._size - self._head
        latest = os.pread(self._file, self._kept, self._size - self._kept)
        latest = _whole_characters(latest, cut=True)
        dropped, rotations = self.dropped + printed - len(latest), self.rotations + 1
        head = marker(dropped, rotations)
        # A reader finds the old file or the new one, and a crash leaves either whole.
        with opened(self._workspace, self._folders) as directory, ExitStack() as undo:
            fresh = self._create(f"{self._name}.new")
            undo.callback(os.close, fresh)
            size = sum(_written(fresh, head + latest))
            os.rename(f"{self._name}.new", self._name, src_dir_fd=directory, dst_dir_fd=directory)
            undo.pop_all()
        os.close(self._file)
        self._file, self._size, self._head = fresh, size, len(head)
        self.dropped, self.rotations = dropped, rotations

    def _create(self, name: str) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        with opened(self._workspace, self._folders, made=self._folders) as directory:
            return os.open(name, flags, 0o600, dir_fd=directory)


def _written(file: int, data: bytes) -> Iterator[int]:
    """Write all of it; how many bytes each call took, which are few where the disk is full."""
    rest = memoryview(data)
    while rest:
        count = os.write(file, rest)
        rest = rest[count:]
        yield count


@dataclass(frozen=True, slots=True)
class Kept:
    """A part of an output file, its size, and how much of it stands before the part."""

    text: str
    size: int
    skipped: int


def read_output(workspace: Path, path: str, most_bytes: int) -> Kept | None:
    """The last `most_bytes` of an output; None where there is no file. What is no UTF-8 is shown
    by the sign for a character that cannot be read."""
    *folders, name = path.split("/")
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with opened(workspace.resolve(), tuple(folders)) as directory:
            file = os.open(name, flags, dir_fd=directory)
    except OSError:
        return None
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            return None
        skipped = max(0, found.st_size - most_bytes)
        raw = os.pread(file, most_bytes, skipped)
    finally:
        os.close(file)
    text = _whole_characters(raw, cut=skipped > 0).decode("utf-8", "replace")
    return Kept(text.replace("\0", "\u2400"), found.st_size, skipped)


def _whole_characters(raw: bytes, *, cut: bool) -> bytes:
    """Without the rest of a character that was cut at the front."""
    begun = 0
    while cut and begun < min(3, len(raw)) and raw[begun] & 0xC0 == 0x80:
        begun += 1
    return raw[begun:]
