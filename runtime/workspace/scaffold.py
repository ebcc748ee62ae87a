"""Filling a workspace from the template: what is missing is made, what is there stays (CTX-1).

Built-in skills and definitions of subagents are not copied: they are read where they are, so that
an update reaches them, and one of the same name in the workspace wins.
"""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import resources
from itertools import count
from pathlib import Path

from runtime.domain.errors import Unavailable
from runtime.workspace.content import AGENTS_FOLDER, SKILLS_FOLDER
from runtime.workspace.layout import FILES
from runtime.workspace.open_folders import settle
from runtime.workspace.text_files import real

TEMPLATE = "workspace_template"
FOLDERS = ("memory", SKILLS_FOLDER, AGENTS_FOLDER)
"""Made even where the template has nothing for them."""
OWN = ".gatehouse"
"""What the gateway keeps; no link, so that it does so here."""


@dataclass(slots=True)
class ScaffoldReport:
    """Paths relative to the workspace, with `/`. `overwritten` pairs a file with its backup."""

    made: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    overwritten: list[tuple[str, str]] = field(default_factory=list)


def find_template(packages: Path | None = None) -> Path:
    """The folder of the template: inside the installed gateway, or beside the packages.

    `packages` is the folder that holds the packages, found where None. Raises `Unavailable`.
    """
    if packages is None:
        packages = Path(str(resources.files("runtime"))).parent
    for place in (packages / "gateway" / TEMPLATE, packages / TEMPLATE):
        if place.is_dir():
            return place
    raise Unavailable(
        f"the workspace template is missing in {packages}.",
        hint="Install the gateway again: its files are not complete.",
    )


def scaffold(
    root: Path, template: Path, *, force: bool = False, dry_run: bool = False
) -> ScaffoldReport:
    """Make what `root` lacks; with `force`, also replace what differs from the template.

    A replaced file is kept as `NAME.bak-<n>`. What is not a plain file (a link, a folder) is never
    replaced. `dry_run` reports and touches nothing. Blocks on files. Raises `Unavailable` when
    the workspace cannot be written; what was made until then stays.
    """
    report = ScaffoldReport()
    try:
        if not dry_run:
            _folders(root)
        for source, relative in _sources(template):
            _one(source, root / relative, report, name=relative, force=force, dry_run=dry_run)
    except OSError as error:
        said = error.strerror or type(error).__name__
        raise Unavailable(
            f"The workspace {root} cannot be written: {said}.",
            hint="Make the folder writable for the user that runs the gateway, free some space, "
            "or name another folder in the configuration.",
        ) from error
    return report


def _folders(root: Path) -> None:
    # Notes about people are nobody else's business on a machine with several users.
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    for folder in FOLDERS:
        # Whatever has the name already, a link to nowhere included, is left as it is.
        with suppress(FileExistsError):
            (root / folder).mkdir()
    for folder in (OWN, FILES):
        path = root / folder
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
        if not path.is_dir() or (folder == OWN and path.is_symlink()):
            raise Unavailable(
                f"The workspace {root} cannot get its working folder {FILES}/: "
                f"{folder} is not a folder.",
                hint=f"{OWN}/ and {FILES}/ in it must be folders that the user who runs the "
                "gateway may write.",
            )


def _sources(template: Path) -> Iterator[tuple[Path, str]]:
    for path in sorted(template.rglob("*")):
        relative = path.relative_to(template)
        if path.is_file() and relative.parts[0] not in (SKILLS_FOLDER, AGENTS_FOLDER):
            yield path, relative.as_posix()


def _one(
    source: Path, target: Path, report: ScaffoldReport, *, name: str, force: bool, dry_run: bool
) -> None:
    absent = not target.is_symlink() and not target.exists() and _parent_is_inside(target, name)
    if absent and (dry_run or _make(source, target)):
        report.made.append(name)
        return
    if not (force and _replaceable(source, target)):
        report.kept.append(name)
        return
    backup = _backup_name(target)
    if not dry_run:
        backup = _back_up(target)
        _replace(source, target)
    report.overwritten.append((name, name.removesuffix(target.name) + backup.name))


def _parent_is_inside(target: Path, name: str) -> bool:
    """False where a folder on the way is a link to somewhere else: nothing is made there."""
    root = real(target.parents[name.count("/")])
    parent = real(target.parent)
    return parent == root or root in parent.parents


def _replaceable(source: Path, target: Path) -> bool:
    plain = target.is_file() and not target.is_symlink()
    return plain and target.read_bytes() != source.read_bytes()


def _make(source: Path, target: Path) -> bool:
    """Create `target` whole; False when somebody else made it meanwhile."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary(source, target)
    try:
        try:
            target.hardlink_to(temporary)
        except OSError:
            # The name is taken, or the file system knows no hard links: then the file is written
            # in place, and that fails too if the name is taken.
            return _make_in_place(source, target)
        return True
    finally:
        temporary.unlink()
        settle(target.parent)


def _make_in_place(source: Path, target: Path) -> bool:
    try:
        with target.open("xb") as file:
            file.write(source.read_bytes())
    except FileExistsError:
        return False
    return True


def _replace(source: Path, target: Path) -> None:
    temporary = _temporary(source, target)
    try:
        shutil.copymode(target, temporary)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    settle(target.parent)


def _temporary(source: Path, target: Path) -> Path:
    """A copy of `source` beside `target`, on the disk."""
    path = target.with_name(f".gatehouse-{secrets.token_hex(8)}.tmp")
    try:
        with path.open("xb") as file:
            file.write(source.read_bytes())
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path


def _back_up(target: Path) -> Path:
    """Copy `target` to a name that nobody has; the copy is on the disk on return."""
    content = target.read_bytes()
    while True:
        backup = _backup_name(target)
        # Two gateways may look for a free name at the same time.
        with suppress(FileExistsError), backup.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            shutil.copystat(target, backup)
            return backup


def _backup_name(target: Path) -> Path:
    names = (target.with_name(f"{target.name}.bak-{n}") for n in count(1))
    return next(name for name in names if not (name.is_symlink() or name.exists()))
