"""Patches over several files: read from text, and applied to text. Pure (TOOL-14).

Two spellings are read: the one that begins with ``*** Begin Patch``, and unified diffs as git
writes them. A hunk is placed by its lines and never by a guess: what is not there, or is there
twice, is an error that names the file, the hunk and the nearest place.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from runtime.domain.errors import ToolError
from runtime.domain.printable import quoted
from runtime.tools.nearest_text import nearest
from runtime.tools.paths import shown

MAX_LINES: Final = 10_000
MAX_FILES: Final = 32
"""Files of one patch; each is held open while the patch is applied."""
BEGIN: Final = "*** Begin Patch"
_END: Final = "*** End Patch"
_LAST: Final = "*** End of File"
_MOVE: Final = "*** Move to: "
_HEADS: Final[tuple[tuple[str, "Kind"], ...]] = (
    ("*** Add File: ", "add"),
    ("*** Update File: ", "update"),
    ("*** Delete File: ", "delete"),
)
_RANGE: Final = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@.*")
_GIT: Final = "diff --git "
_MODE: Final = re.compile(r"(new|deleted) file mode (\d+)")
_IGNORED: Final = re.compile(
    r"(?:dis)?similarity index \d+%|index [0-9a-f]+\.\.[0-9a-f]+(?: 100(?:644|755))?"
)
_NOTHING: Final = "/dev/null"
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPES: Final = {
    b"a": b"\a",
    b"b": b"\b",
    b"t": b"\t",
    b"n": b"\n",
    b"v": b"\v",
    b"f": b"\f",
    b"r": b"\r",
    b'"': b'"',
    b"\\": b"\\",
}
_SHOWN: Final = 10
HOW: Final = (
    "write it as\n*** Begin Patch\n*** Update File: notes/plan.md\n@@\n context\n-old\n+new\n"
    "*** End Patch\nor as a unified diff"
)
Kind = Literal["add", "update", "delete"]


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines that are there and those that take their place, context in both. It stands behind its
    `anchors`; `line` is where a unified diff saw it, from 1; `at_end`: at the end of the file."""

    number: int
    old: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    anchors: tuple[str, ...] = ()
    line: int | None = None
    at_end: bool = False


@dataclass(frozen=True, slots=True)
class FileChange:
    """What becomes of one file. `content` is that of a new one, which may be `executable`; a
    deletion may have hunks, which must then leave nothing. `ends` says whether there is a line end
    at the end, None where that stays as it is."""

    kind: Kind
    path: str
    hunks: tuple[Hunk, ...] = ()
    moved_to: str | None = None
    content: str = ""
    executable: bool = False
    ends: bool | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that it writes, makes or removes."""
        return (self.path,) if self.moved_to is None else (self.path, self.moved_to)


_NO_LINES: Final = (Hunk(1, line=0),)
"""Of a file that is deleted and must be empty."""


def parse(text: str) -> tuple[FileChange, ...]:
    """The changes of a patch. Raises `ToolError`, with the line that is wrong."""
    lines = _Lines(text.replace("\r\n", "\n").removesuffix("\n").split("\n"))
    if len(lines.lines) > MAX_LINES:
        raise ToolError(
            f"patch: {len(lines.lines):,} lines, more than {MAX_LINES:,}; send several patches"
        )
    lines.skip_blank()
    found = _begun(lines) if lines.next.strip() == BEGIN else _unified(lines)
    if not found:
        raise ToolError(f"patch: it names no file; {HOW}")
    if len(found) > MAX_FILES:
        raise ToolError(f"patch: {len(found)} files, more than {MAX_FILES}; send several patches")
    for change in found:
        if not all(path.strip() for path in change.paths):
            raise ToolError("patch: a file in it has no name")
        if change.kind == "update" and not change.hunks and change.moved_to is None:
            raise ToolError(f"patch: nothing is changed in {shown(change.path)}")
    return tuple(found)


@dataclass(slots=True)
class _Lines:
    """The lines of a patch, and how far it has been read."""

    lines: Sequence[str]
    at: int = 0

    @property
    def left(self) -> bool:
        return self.at < len(self.lines)

    @property
    def next(self) -> str:
        return self.lines[self.at] if self.left else ""

    def take(self) -> str:
        self.at += 1
        return self.lines[self.at - 1]

    def skip_blank(self) -> None:
        while self.left and not self.next.strip():
            self.at += 1

    def error(self, rule: str) -> ToolError:
        return ToolError(f"patch, line {self.at + 1}: {rule}, not {quoted(self.next)}")


def _begun(lines: _Lines) -> list[FileChange]:
    lines.take()
    lines.skip_blank()
    found: list[FileChange] = []
    while lines.left and lines.next.strip() != _END:
        head = next((one for one in _HEADS if lines.next.startswith(one[0])), None)
        if head is None:
            raise lines.error("a file begins with *** Add, Update or Delete File: and its path")
        path = lines.take().removeprefix(head[0]).strip()
        if head[1] == "add":
            found.append(FileChange("add", path, content=_added(lines)))
        elif head[1] == "delete":
            found.append(FileChange("delete", path))
        else:
            found.append(_updated(lines, path))
        lines.skip_blank()
    if not lines.left:
        raise ToolError(f"patch: it does not end with {_END}; it may have been cut")
    lines.take()
    lines.skip_blank()
    if lines.left:
        raise lines.error(f"nothing stands behind {_END}")
    return found


def _added(lines: _Lines) -> str:
    content: list[str] = []
    while lines.left and not lines.next.startswith("*** "):
        if not lines.next.startswith("+"):
            raise lines.error("each line of a new file begins with +")
        content.append(lines.take()[1:])
    return "".join(f"{line}\n" for line in content)


def _updated(lines: _Lines, path: str) -> FileChange:
    moved_to = None
    if lines.next.startswith(_MOVE):
        moved_to = lines.take().removeprefix(_MOVE).strip()
    hunks: list[Hunk] = []
    while lines.left and (not lines.next.startswith("*** ") or lines.next.strip() == _LAST):
        hunks.append(_hunk(lines, len(hunks) + 1))
    return FileChange("update", path, tuple(hunks), moved_to)


def _hunk(lines: _Lines, number: int) -> Hunk:
    anchors: list[str] = []
    while lines.next.startswith("@@"):
        anchors.append(lines.take()[2:].removesuffix("@@").strip())
    old: list[str] = []
    new: list[str] = []
    while lines.left and not lines.next.startswith(("@@", "*** ")):
        _take_line(lines, old, new)
    at_end = lines.next.strip() == _LAST
    if at_end:
        lines.take()
    if not (old or new):
        raise lines.error("a hunk has lines that begin with a blank, + or -")
    behind = tuple(filter(None, anchors))
    return Hunk(number, tuple(old), tuple(new), anchors=behind, at_end=at_end)


def _take_line(lines: _Lines, old: list[str], new: list[str]) -> str:
    """Add the next line of a hunk to the side that it is of, or to both; its mark."""
    mark, line = lines.next[:1] or " ", lines.next[1:]
    if mark not in " +-":
        raise lines.error("a line of a hunk begins with a blank, + or -")
    lines.take()
    if mark != "+":
        old.append(line)
    if mark != "-":
        new.append(line)
    return mark


def _unified(lines: _Lines) -> list[FileChange]:
    found: list[FileChange] = []
    while lines.left:
        if lines.next.startswith(_GIT):
            found.append(_of_git(lines))
        elif lines.next.startswith("--- "):
            found.append(_headed(lines))
        elif lines.next.startswith("@@"):
            raise lines.error("a hunk stands below the --- and +++ of its file")
        elif found:
            raise lines.error(
                "what stands behind a hunk begins another file (do the counts of the @@ above fit?)"
            )
        else:
            raise ToolError(
                f"patch, line {lines.at + 1}: {quoted(lines.next)} begins no file; {HOW}"
            )
        lines.skip_blank()
    return found


@dataclass(slots=True)
class _Head:
    """What the lines between ``diff --git`` and ``---`` say."""

    made: bool = False
    gone: bool = False
    executable: bool = False
    moved: tuple[str, str] | None = None


def _of_git(lines: _Lines) -> FileChange:
    """One file of a diff of git. What its head says must be what its --- and +++ say."""
    first = lines.at
    names = lines.take().removeprefix(_GIT)
    head = _Head()
    while lines.left and lines.next.strip() and not lines.next.startswith((_GIT, "--- ")):
        _take_head(lines, head)
    if lines.next.startswith("--- "):
        change = _headed(lines, head)
        kind = "add" if head.made else "delete" if head.gone else change.kind
        if change.kind != kind:
            raise ToolError(
                f"patch, line {first + 1}: the head of {shown(change.path)} says {kind}, "
                f"its --- and +++ say {change.kind}"
            )
        return change
    if head.moved is not None:
        return FileChange("update", head.moved[0], moved_to=head.moved[1])
    if not head.made and not head.gone:
        raise ToolError(f"patch, line {first + 1}: nothing is changed in {shown(names)}")
    path = _named_twice(names)
    if path is None:
        raise ToolError(f"patch, line {first + 1}: {shown(names)} does not say which file is meant")
    if head.made:
        return FileChange("add", path, executable=head.executable)
    return FileChange("delete", path, _NO_LINES)


def _take_head(lines: _Lines, head: _Head) -> None:
    line = lines.next
    if line.startswith(("GIT binary patch", "Binary files ", "old mode ")):
        raise lines.error("a patch changes the text of files alone")
    if (match := _MODE.fullmatch(line)) is not None:
        if match[2] not in ("100644", "100755"):
            raise lines.error("a patch makes and deletes regular files alone, 100644 or 100755")
        head.made, head.gone = head.made or match[1] == "new", head.gone or match[1] == "deleted"
        head.executable = match[2] == "100755"
    elif line.startswith("rename from "):
        old = _name(lines.take().removeprefix("rename from "))
        if not lines.next.startswith("rename to "):
            raise lines.error("rename from is followed by rename to")
        head.moved = old, _name(lines.next.removeprefix("rename to "))
    elif line.startswith(("copy from ", "copy to ")):
        raise lines.error("a patch adds, changes, moves and deletes files and copies none")
    elif _IGNORED.fullmatch(line) is None:
        raise lines.error("behind diff --git stands what git writes there of a regular file")
    if (head.made, head.gone, head.moved is not None).count(True) > 1:
        raise lines.error("a file is made, moved or deleted")
    lines.take()


def _headed(lines: _Lines, head: _Head | None = None) -> FileChange:
    first = lines.at
    old = _name(lines.take().removeprefix("--- "))
    if not lines.next.startswith("+++ "):
        raise lines.error("--- is followed by +++")
    new = _name(lines.take().removeprefix("+++ "))
    both = old.startswith("a/") and new.startswith("b/")
    if both or _NOTHING in (old, new):
        old, new = old.removeprefix("a/"), new.removeprefix("b/")
    moved = head.moved if head is not None else None
    if (old, new) != moved and (moved or (old != new and _NOTHING not in (old, new))):
        raise ToolError(
            f"patch, line {first + 1}: --- and +++ name {shown(old)} and {shown(new)}; a file is "
            "moved by rename from and rename to below diff --git, with the same names"
        )
    hunks: list[Hunk] = []
    ends: bool | None = None
    while (match := _RANGE.fullmatch(lines.next)) is not None:
        lines.take()
        hunk, ends = _ranged(lines, match, len(hunks) + 1)
        hunks.append(hunk)
    if old == _NOTHING:
        content = _content(hunks, new, first)
        end = "\n" if content and ends is not False else ""
        executable = head is not None and head.executable
        return FileChange("add", new, content=content + end, executable=executable)
    if new == _NOTHING:
        return FileChange("delete", old, tuple(hunks) or _NO_LINES)
    return FileChange("update", old, tuple(hunks), moved and moved[1], ends=ends)


def _content(hunks: Sequence[Hunk], path: str, first: int) -> str:
    """Of a new file."""
    if path == _NOTHING or len(hunks) > 1 or any(hunk.old for hunk in hunks):
        raise ToolError(
            f"patch, line {first + 1}: below --- {_NOTHING} stand the name of a new file and one "
            "hunk, whose lines all begin with +"
        )
    return "\n".join(line for hunk in hunks for line in hunk.new)


def _name(text: str) -> str:
    """A path as a header has it, quoted or not: a time may stand behind a tab."""
    if not text.startswith('"'):
        return text.split("\t", 1)[0].strip()
    match = _QUOTED.match(text)
    if match is None or text[match.end() :].split("\t", 1)[0].strip():
        raise ToolError(f"patch: {quoted(text)} is no quoted name as git writes it")
    return _unquoted(match[1])


def _unquoted(text: str) -> str:
    """What git quoted as C does, its bytes in octal."""

    def plain(match: re.Match[bytes]) -> bytes:
        escaped = match[1]
        return bytes([int(escaped, 8)]) if len(escaped) == 3 else _ESCAPES[escaped]

    try:
        return re.sub(rb"\\([0-3][0-7]{2}|.)", plain, text.encode()).decode()
    except (KeyError, UnicodeError) as error:
        raise ToolError(f"patch: {quoted(text)} is no quoted name as git writes it") from error


def _named_twice(text: str) -> str | None:
    """The path of which ``diff --git`` has ``a/`` and ``b/``; None where these differ."""
    if (match := _QUOTED.match(text)) is not None:
        old, new = _unquoted(match[1]), _name(text[match.end() :].strip())
    else:
        half = len(text) // 2
        old, new = text[:half], text[half + 1 :]
    if old.startswith("a/") and new.startswith("b/"):
        old, new = old.removeprefix("a/"), new.removeprefix("b/")
    return old if old == new else None


def _ranged(lines: _Lines, match: re.Match[str], number: int) -> tuple[Hunk, bool | None]:
    """A hunk, and whether the file then ends with a line end, where the hunk says so. The counts
    say where it ends: a line of it may look like the next header."""
    first, olds, _, news = match.groups()
    wanted = int(olds or 1), int(news or 1)
    old: list[str] = []
    new: list[str] = []
    ends = None
    while lines.left and (len(old) < wanted[0] or len(new) < wanted[1]):
        mark = _take_line(lines, old, new)
        if lines.next.startswith("\\"):
            lines.take()
            ends = mark == "-"
    if (len(old), len(new)) != wanted:
        raise ToolError(
            f"patch, line {lines.at + 1}: the hunk does not have the lines that its @@ says"
        )
    at_end = ends is not None
    return Hunk(number, tuple(old), tuple(new), line=int(first), at_end=at_end), ends


def patched(text: str, change: FileChange) -> str:
    """The text with the hunks of a change applied, from the top down. Raises `ToolError`."""
    crlf = "\n" in text and text.count("\n") == text.count("\r\n")
    plain = text.replace("\r\n", "\n") if crlf else text
    lines = plain.split("\n")
    ends = lines[-1] == ""
    if ends:
        lines.pop()
    if change.ends is not None:
        ends = change.ends
    done: list[str] = []
    at = 0
    for hunk in change.hunks:
        place = _place(lines, hunk, at, change.path)
        done += [*lines[at:place], *hunk.new]
        at = place + len(hunk.old)
    done += lines[at:]
    found = "\n".join(done) + ("\n" if ends and done else "")
    return found.replace("\n", "\r\n") if crlf else found


def _place(lines: Sequence[str], hunk: Hunk, at: int, path: str) -> int:
    """The index of the line at which a hunk begins; nothing in front of `at` counts."""
    about = f"{shown(path)}, hunk {hunk.number}"
    for anchor in hunk.anchors:
        behind = (place for place in range(at, len(lines)) if lines[place].strip() == anchor)
        found = next(behind, None)
        if found is None:
            raise ToolError(
                f"{about}: the line {quoted(anchor)} behind @@ is not in the file there"
            )
        at = found + 1
    if not hunk.old:
        return _inserted(lines, hunk, at, about)
    places = list(occurrences(lines, hunk.old, at))
    if hunk.at_end:
        places = [place for place in places if place + len(hunk.old) == len(lines)]
    if not places:
        raise ToolError(f"{about}: {_missing(lines, hunk, at)}")
    if len(places) > 1 and hunk.line is not None and hunk.line - 1 in places:
        return hunk.line - 1
    if len(places) > 1 and not hunk.anchors:
        where = ", ".join(str(place + 1) for place in places[:_SHOWN])
        raise ToolError(
            f"{about}: its lines are in the file {len(places)} times (lines {where}): give more "
            "context, or behind @@ a line that stands above"
        )
    return places[0]


def _inserted(lines: Sequence[str], hunk: Hunk, at: int, about: str) -> int:
    if hunk.at_end or not lines:
        return len(lines)
    if hunk.anchors:
        return at
    if hunk.line is not None and at <= hunk.line <= len(lines):
        return hunk.line
    raise ToolError(f"{about}: it only adds; give a line of context, or one behind @@")


def occurrences(lines: Sequence[str], wanted: Sequence[str], at: int) -> Iterator[int]:
    """Where `wanted`, which is not empty, stands in `lines` from `at` on; places may overlap.

    The time grows with both together and never with their product (Knuth, Morris and Pratt), so
    that lines that repeat cost no more than others.
    """
    borders = _borders(wanted)
    # The longest line is mostly the rarest. Looking for it alone is ten times as fast.
    rare = max(range(len(wanted)), key=lambda place: len(wanted[place]))
    length = 0
    while at < len(lines):
        if not length:
            try:
                at = lines.index(wanted[rare], at + rare) - rare
            except ValueError:
                return
        length = _longer(wanted, borders, length, lines[at])
        at += 1
        if length == len(wanted):
            yield at - length


def _borders(wanted: Sequence[str]) -> Sequence[int]:
    """For each beginning of `wanted`, the length of its longest shorter end that is one as well."""
    borders = [0]
    for line in wanted[1:]:
        borders.append(_longer(wanted, borders, borders[-1], line))
    return borders


def _longer(wanted: Sequence[str], borders: Sequence[int], length: int, line: str) -> int:
    """How many lines of `wanted` the lines end with that ended with `length` of them before
    `line`."""
    while length == len(wanted) or (length and wanted[length] != line):
        length = borders[length - 1]
    return length + (wanted[length] == line)


def _missing(lines: Sequence[str], hunk: Hunk, at: int) -> str:
    # Behind `at` they are not, or not at the end as they should be.
    if next(occurrences(lines, hunk.old, 0), at) < at:
        return "its lines stand further up; hunks go from the top down"
    where = " at the end" if hunk.at_end else ""
    near = nearest("\n".join(lines), "\n".join(hunk.old), given="the patch")
    return f"its lines are not in the file{where}; {near or 'nothing in it is similar'}"
