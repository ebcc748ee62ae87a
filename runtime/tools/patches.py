"""Patches over several files: read from text, and applied to text. Pure (TOOL-14).

Two spellings are read: the one that begins with ``*** Begin Patch``, and unified diffs as git
writes them. A hunk is placed by its lines and never by a guess: what is not there, or is there
twice, is an error that names the file, the hunk and the nearest place.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from runtime.domain.errors import ToolError
from runtime.tools.nearest import nearest
from runtime.tools.paths import shown

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
    """What becomes of one file. `content` is that of a new one; a deletion may have hunks, which
    must then leave nothing."""

    kind: Kind
    path: str
    hunks: tuple[Hunk, ...] = ()
    moved_to: str | None = None
    content: str = ""

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that it writes, makes or removes."""
        return (self.path,) if self.moved_to is None else (self.path, self.moved_to)


def parse(text: str) -> tuple[FileChange, ...]:
    """The changes of a patch. Raises `ToolError`, with the line that is wrong."""
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    while lines and not lines[0].strip():
        lines.pop(0)
    begun = bool(lines) and lines[0].strip() == BEGIN
    found = _begun(_Lines(lines)) if begun else _unified(_Lines(lines))
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

    def error(self, rule: str) -> ToolError:
        return ToolError(f"patch, line {self.at + 1}: {rule}, not {self.next[:80]!r}")


def _begun(lines: _Lines) -> list[FileChange]:
    lines.take()
    found: list[FileChange] = []
    while lines.left and lines.next.strip() != _END:
        if not lines.next.strip():
            lines.take()
            continue
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
    if not lines.left:
        raise ToolError(f"patch: it does not end with {_END}; it may have been cut")
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
    hunk = _body(lines, Hunk(number, anchors=tuple(filter(None, anchors))))
    if lines.next.strip() == _LAST:
        lines.take()
        hunk = replace(hunk, at_end=True)
    if not (hunk.old or hunk.new):
        raise lines.error("a hunk has lines that begin with a blank, + or -")
    return hunk


def _body(lines: _Lines, hunk: Hunk, goes_on: Callable[[Hunk], bool] | None = None) -> Hunk:
    """The hunk with its lines: up to what begins another thing, or as long as it `goes_on`."""
    while lines.left:
        if goes_on is None and lines.next.startswith(("@@", "*** ")):
            break
        if goes_on is not None and not goes_on(hunk):
            break
        mark, line = lines.next[:1] or " ", lines.next[1:]
        if mark not in " +-":
            raise lines.error("a line of a hunk begins with a blank, + or -")
        lines.take()
        old = hunk.old if mark == "+" else (*hunk.old, line)
        hunk = replace(hunk, old=old, new=hunk.new if mark == "-" else (*hunk.new, line))
    return hunk


def _unified(lines: _Lines) -> list[FileChange]:
    found: list[FileChange] = []
    while lines.left:
        line = lines.next
        if line.startswith(("GIT binary patch", "Binary files ", "old mode ")):
            raise lines.error("a patch changes the text of files alone")
        if line.startswith("rename from "):
            found.append(_renamed(lines))
        elif line.startswith("--- ") and lines.lines[lines.at + 1 :][:1] != []:
            change = _headed(lines)
            last = found[-1] if found else None
            if last is not None and not last.hunks and last.paths == change.paths:
                found.pop()
            found.append(change)
        elif line.startswith("@@"):
            raise lines.error("a hunk stands below the --- and +++ of its file")
        else:
            lines.take()
    return found


def _renamed(lines: _Lines) -> FileChange:
    path = lines.take().removeprefix("rename from ")
    if not lines.next.startswith("rename to "):
        raise lines.error("rename from is followed by rename to")
    return FileChange("update", path, moved_to=lines.take().removeprefix("rename to "))


def _headed(lines: _Lines) -> FileChange:
    old = _name(lines.take().removeprefix("--- "))
    if not lines.next.startswith("+++ "):
        raise lines.error("--- is followed by +++")
    new = _name(lines.take().removeprefix("+++ "))
    both = old.startswith("a/") and new.startswith("b/")
    if both or _NOTHING in (old, new):
        old, new = old.removeprefix("a/"), new.removeprefix("b/")
    hunks: list[Hunk] = []
    ends = True
    while (match := _RANGE.fullmatch(lines.next)) is not None:
        lines.take()
        hunks.append(_ranged(lines, match, len(hunks) + 1))
        while lines.next.startswith("\\"):
            lines.take()
            ends = False
    if old == _NOTHING:
        content = "\n".join(line for hunk in hunks for line in hunk.new)
        return FileChange("add", new, content=f"{content}\n" if ends and content else content)
    if new == _NOTHING:
        return FileChange("delete", old, tuple(hunks))
    return FileChange("update", old, tuple(hunks), None if new == old else new)


_NOTHING: Final = "/dev/null"


def _name(text: str) -> str:
    """A path as a header has it: a time may stand behind a tab."""
    return text.split("\t", 1)[0].strip()


def _ranged(lines: _Lines, match: re.Match[str], number: int) -> Hunk:
    """The counts say where the hunk ends: a line of it may look like the next header."""
    first, olds, _, news = match.groups()
    old, new = int(olds or 1), int(news or 1)

    def goes_on(hunk: Hunk) -> bool:
        whole = len(hunk.old) >= old and len(hunk.new) >= new
        return not whole and not lines.next.startswith("\\")

    hunk = _body(lines, Hunk(number, line=int(first)), goes_on)
    if (len(hunk.old), len(hunk.new)) != (old, new):
        raise ToolError(
            f"patch, line {lines.at + 1}: the hunk does not have the lines that its @@ says"
        )
    return hunk


def patched(text: str, change: FileChange) -> str:
    """The text with the hunks of a change applied, from the top down. Raises `ToolError`."""
    crlf = "\n" in text and text.count("\n") == text.count("\r\n")
    plain = text.replace("\r\n", "\n") if crlf else text
    lines = plain.split("\n")
    ends = lines[-1] == ""
    if ends:
        lines.pop()
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
            raise ToolError(f"{about}: the line {anchor[:80]!r} behind @@ is not in the file there")
        at = found + 1
    if not hunk.old:
        return _inserted(lines, hunk, at, about)
    places = [place for place in range(at, len(lines)) if _fits(lines, hunk.old, place)]
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


def _fits(lines: Sequence[str], wanted: Sequence[str], place: int) -> bool:
    return lines[place] == wanted[0] and tuple(lines[place : place + len(wanted)]) == tuple(wanted)


def _missing(lines: Sequence[str], hunk: Hunk, at: int) -> str:
    if any(_fits(lines, hunk.old, place) for place in range(at)):
        return "its lines stand further up; hunks go from the top down"
    where = " at the end" if hunk.at_end else ""
    near = nearest("\n".join(lines), "\n".join(hunk.old), given="the patch")
    return f"its lines are not in the file{where}; {near or 'nothing in it is similar'}"
