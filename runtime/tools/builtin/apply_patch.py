"""Changing several files at once, all or none (TOOL-14).

Every hunk is placed before anything is written, and every new content is on the disk before the
first file is replaced. What fails then is put back. A process that dies in between leaves a note
of what the patch makes of each file, so that the same call, run again, does what is left of it.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from pydantic import Field
from typing_extensions import override

from runtime.domain.counts import counted
from runtime.domain.errors import ToolError
from runtime.domain.tools import Effect, Touches
from runtime.tools import atomic_write
from runtime.tools.atomic_write import HASHED, Staged, exclusive, present, refuse_changed
from runtime.tools.base import Arguments, Tool, ToolContext, ToolOutput
from runtime.tools.builtin.file_context import decoded, guard, off_loop
from runtime.tools.patch_notes import Note, Noted, digest, note_of
from runtime.tools.patches import FileChange, parse, patched
from runtime.tools.paths import PathGuard, Spot, absent, os_error, shown

MOST_BYTES: Final = 64 * 1024 * 1024
"""Of all files of one patch, before and after."""
_ERRORS_SHOWN: Final = 8


class PatchArguments(Arguments):
    patch: str = Field(max_length=400_000, description="*** Begin Patch or unified diff")


class ApplyPatch(Tool[PatchArguments]):
    """Adds, updates, moves and deletes files. ``idempotent``: what it did is noted, so the same
    call does it once."""

    name = "apply_patch"
    own_words = True
    description = "Add, change, move, delete files: all or nothing."
    arguments = PatchArguments
    effect = Effect.IDEMPOTENT
    example = (
        '{"patch": "*** Begin Patch\\n*** Update File: notes/plan.md\\n@@\\n # Plan\\n-draft\\n'
        '+final\\n*** Delete File: notes/old.md\\n*** End Patch\\n"}'
    )

    @override
    def touches(self, arguments: PatchArguments, context: ToolContext) -> Touches:
        guarded = guard(context)
        changes = parse(arguments.patch)
        paths = {text: str(guarded.writable(text)) for change in changes for text in change.paths}
        read = [paths[change.path] for change in changes if change.kind != "add"]
        subject, *also = (context.resolved.name(Path(path)) for path in paths.values())
        return Touches(
            reads=tuple(read),
            writes=tuple(paths.values()),
            subject=subject,
            also=tuple(also),
            like=("write_file", "edit_file"),
        )

    @override
    async def run(self, arguments: PatchArguments, context: ToolContext) -> ToolOutput:
        changes = parse(arguments.patch)
        note = note_of(arguments.patch, context)
        return ToolOutput(await off_loop(lambda: _apply(changes, note, context), "the patch"))


def _apply(changes: Sequence[FileChange], note: str, context: ToolContext) -> str:
    with prepared(changes, note, context) as patch:
        for _ in patch.commit():
            pass
        for step, staged in patch.staged:
            if staged is not None:
                context.files.note(step.spot.path, staged.seen)
        return "\n".join(patch.said)


@dataclass(frozen=True, slots=True)
class Step:
    """One file's change: `new` takes the place of `old`, None is no file. A new file gets the mode
    and owner of `like`, or is `executable`. What is staged for it has the name `part`."""

    text: str
    spot: Spot
    old: tuple[os.stat_result, bytes] | None
    new: bytes | None
    like: os.stat_result | None = None
    executable: bool = False
    part: str = field(default_factory=atomic_write.staged_name)

    @property
    def noted(self) -> Noted:
        """What the note of its call says of it."""
        return Noted(digest=None if self.new is None else digest(self.new), staged=self.part)


@dataclass
class Patch:
    """A patch whose files are held: all its `steps` fit. `said` is a line for each file; an error
    ends with `otherwise`."""

    steps: Sequence[Step]
    said: Sequence[str]
    note: Note
    otherwise: str
    staged: list[tuple[Step, Staged | None]] = field(default_factory=list)

    def commit(self) -> Iterator[Step]:
        """Do it, step by step; nothing is left of it where one fails. Raises `ToolError`."""
        try:
            # The note first: it knows what a process that dies while it stages leaves behind.
            self.note.write({str(one.spot.path): one.noted for one in self.steps})
            for step in self.steps:
                self.staged.append((step, _staged(step)))
        except (ToolError, OSError) as error:
            self._drop()
            self.note.restore()
            raise ToolError(f"{_said(error)}; {self.otherwise}") from error
        done: list[tuple[Step, Staged | None]] = []
        for step, staged in self.staged:
            try:
                _do(step, staged)
            except (ToolError, OSError) as error:
                self._drop()
                left = [one.text for one, made in reversed(done) if not _undone(one, made)]
                if left:
                    names = ", ".join(map(shown, left))
                    raise ToolError(f"{_said(error)}; {names} could not be put back") from error
                self.note.restore()
                raise ToolError(f"{_said(error)}; {self.otherwise}") from error
            done.append((step, staged))
            yield step

    def _drop(self) -> None:
        for step, staged in self.staged:
            if staged is not None:
                atomic_write.drop(step.spot, staged.name)


@contextmanager
def prepared(changes: Sequence[FileChange], note: str, context: ToolContext) -> Iterator[Patch]:
    """A patch that fits, with its files held until the context is left. Raises `ToolError` with
    all that does not."""
    guarded = guard(context)
    with ExitStack() as stack:
        spots = _held(changes, guarded, stack)
        stack.enter_context(exclusive(*spots.values()))
        noted = Note.read(context.layout.home, note)
        noted.clear(spots.values())
        otherwise = _otherwise(spots, noted)
        steps: list[Step] = []
        said: list[str] = []
        wrong: list[str] = []
        for change in changes:
            try:
                steps += _steps(change, spots, noted, context)
                said.append(_line(change, spots, context))
            except ToolError as error:
                wrong.append(error.detail)
        if wrong:
            more = len(wrong) - _ERRORS_SHOWN
            rest = [f"and {more} more files do not fit"] if more > 0 else []
            lines = "\n".join([*wrong[:_ERRORS_SHOWN], *rest])
            raise ToolError(f"{lines}\n{otherwise}")
        _refuse_large(steps)
        made: list[Path] = []
        try:
            placed = [_placed(step, guarded, stack, made) for step in steps]
            yield Patch(placed, said, noted, otherwise)
        except ToolError:
            guarded.take_away(made)
            raise


def _held(
    changes: Sequence[FileChange], guarded: PathGuard, stack: ExitStack
) -> Mapping[str, Spot]:
    """The place of each path, open until the stack is left."""
    spots: dict[str, Spot] = {}
    for text in (text for change in changes for text in change.paths):
        spot = stack.enter_context(guarded.writing(text))
        if spot.path in {other.path for other in spots.values()}:
            raise ToolError(f"{shown(text)} is named twice in the patch; say all of it at once")
        spots[text] = spot
    return spots


def _otherwise(spots: Mapping[str, Spot], noted: Note) -> str:
    """What is true of the patch where it is not applied now."""
    done = [
        shown(text)
        for text, spot in spots.items()
        if (found := _present(spot, text)) is not None and noted.reached(spot, found[1])
    ]
    if not done:
        return "nothing was changed"
    return f"of it only this was done, before the gateway was stopped: {', '.join(done)}"


def _placed(step: Step, guarded: PathGuard, stack: ExitStack, made: list[Path]) -> Step:
    """The step with the folders that it needs: they are made once all of the patch fits."""
    if not step.spot.missing:
        return step
    spot = stack.enter_context(guarded.parent(step.text, follow_last=False, make=True, made=made))
    return replace(step, spot=spot)


def _steps(
    change: FileChange, spots: Mapping[str, Spot], noted: Note, context: ToolContext
) -> Sequence[Step]:
    """What is to be done for one change, or is left of it. Raises `ToolError`."""
    here = {path: _present(spots[path], path) for path in change.paths}
    contents = {path: file and file[1] for path, file in here.items()}
    if all(noted.reached(spots[path], contents[path]) for path in change.paths):
        return ()
    source = here[change.path]
    if change.kind == "add":
        if source is not None:
            raise ToolError(f"{shown(change.path)} exists already; update it instead")
        new = change.content.encode()
        spot = spots[change.path]
        return [Step(change.path, spot, None, new, executable=change.executable)]
    if source is None:
        raise absent(change.path)
    refuse_changed(spots[change.path], change.path, source, context.files)
    made = _changed(change, source[1])
    if change.moved_to is None:
        return [Step(change.path, spots[change.path], source, made)]
    gone = Step(change.path, spots[change.path], source, None)
    if here[change.moved_to] is not None:
        if noted.reached(spots[change.moved_to], contents[change.moved_to]):
            return [gone]
        raise ToolError(f"{shown(change.moved_to)} exists already; nothing is moved over it")
    return [Step(change.moved_to, spots[change.moved_to], None, made, source[0]), gone]


def _present(spot: Spot, text: str) -> tuple[os.stat_result, bytes] | None:
    found = None if spot.missing else present(spot, text)
    if found is None:
        return None
    status, content = found
    if content is None:
        raise ToolError(f"{shown(text)} has more than {HASHED:,} bytes: change it with a command")
    return status, content


def _changed(change: FileChange, content: bytes) -> bytes | None:
    """What becomes of a file; None where it is deleted."""
    if not change.hunks:
        return None if change.kind == "delete" else content
    text = decoded(content, change.path)
    done = patched(text, change)
    if change.kind == "delete":
        if done:
            raise ToolError(f"{shown(change.path)} has other lines than the patch deletes")
        return None
    if done == text and change.moved_to is None:
        raise ToolError(f"{shown(change.path)}: the patch changes nothing in it")
    return done.encode()


def _refuse_large(steps: Sequence[Step]) -> None:
    size = sum(len(step.new or b"") + len(step.old[1] if step.old else b"") for step in steps)
    if size > MOST_BYTES:
        raise ToolError(f"the patch is about {size:,} bytes, more than {MOST_BYTES:,}; split it")


def _line(change: FileChange, spots: Mapping[str, Spot], context: ToolContext) -> str:
    name = context.resolved.name(spots[change.path].path)
    if change.kind != "update":
        return f"{'added' if change.kind == 'add' else 'deleted'} {name}"
    hunks = f", {counted(len(change.hunks), 'hunk')}" if change.hunks else ""
    if change.moved_to is None:
        return f"updated {name}{hunks}"
    return f"moved {name} to {context.resolved.name(spots[change.moved_to].path)}{hunks}"


def _staged(step: Step) -> Staged | None:
    if step.new is None:
        return None
    like = step.old[0] if step.old else step.like
    return atomic_write.stage(step.spot, step.new, like, name=step.part, executable=step.executable)


def _do(step: Step, staged: Staged | None) -> None:
    old = step.old and step.old[0]
    if staged is not None:
        atomic_write.put(step.spot, step.text, staged, old)
    elif old is not None:
        atomic_write.remove(step.spot, step.text, old)


def _undone(step: Step, staged: Staged | None) -> bool:
    """Put back what was there; False where somebody has changed it since, or it cannot be."""
    made = None if staged is None else staged.status
    try:
        if step.old is None:
            if made is not None:
                atomic_write.remove(step.spot, step.text, made)
            return True
        before = atomic_write.stage(step.spot, step.old[1], step.old[0], name=step.part)
        try:
            atomic_write.put(step.spot, step.text, before, made)
        except (ToolError, OSError):
            atomic_write.drop(step.spot, before.name)
            return False
    except (ToolError, OSError):
        return False
    return True


def _said(error: ToolError | OSError) -> str:
    return error.detail if isinstance(error, ToolError) else os_error(error, "the patch").detail
