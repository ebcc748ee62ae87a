"""What a command sees of the file system, as a list that every backend translates.

Reads the file system (symbolic links, what exists) but changes nothing. The deepest entry above a
path decides; what no entry covers is hidden.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from runtime.domain.errors import InvalidInput
from runtime.ports.sandbox import SandboxCommand

Access = Literal["write", "read", "hide"]

SYSTEM_READABLE = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix/store",
    "/gnu/store",
)
# Hidden even from root, who would own them inside as well.
SYSTEM_HIDDEN = (
    "/etc/docker",
    "/etc/gatehouse",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/kubernetes",
    "/etc/rancher",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/ssh",
    "/etc/ssl/private",
    "/etc/sudoers",
    "/etc/sudoers.d",
)
# The namespaced backend mounts its own here, and nothing of the host's may take their place.
_OWN_MOUNTS = ("/", "/proc", "/dev", "/sys")


@dataclass(frozen=True, slots=True)
class Entry:
    """One resolved path, what is granted on it, and whether it is a directory."""

    path: str
    access: Access
    is_dir: bool


@dataclass(frozen=True, slots=True)
class View:
    """Entries from the shallowest to the deepest, and the links at `/` (as on merged-usr)."""

    entries: tuple[Entry, ...]
    links: tuple[tuple[str, str], ...]


def view_of(command: SandboxCommand) -> View:
    """The view that `command` is granted.

    Raises `InvalidInput` when a root is relative, absent, one of the kernel's mounts or a link that
    must be none, and when `cwd` is no directory inside a root.
    """
    access, links = _system(network=command.network)
    for path in command.readable:
        access[_root(path, "readable")] = "read"
    for path in command.unlinked:
        access[_unlinked(path)] = "read"
    for path in command.writable:
        access[_root(path, "writable")] = "write"
    for path in command.hidden:
        access[os.path.realpath(path)] = "hide"
    entries = tuple(_existing(access))
    cwd = os.path.realpath(command.cwd)
    if not Path(cwd).is_dir() or _access_at(cwd, entries) == "hide":
        raise InvalidInput("cwd", "it must be an existing directory inside a root of the command")
    return View(entries=entries, links=links)


def _system(*, network: bool) -> tuple[dict[str, Access], tuple[tuple[str, str], ...]]:
    access: dict[str, Access] = {}
    links: list[tuple[str, str]] = []
    for path in SYSTEM_READABLE:
        if Path(path).is_symlink():
            links.append((str(Path(path).readlink()), path))
        access[os.path.realpath(path)] = "read"
    for path in SYSTEM_HIDDEN:
        access[os.path.realpath(path)] = "hide"
    if network:
        # Often a link into /run, which is hidden otherwise; names do not resolve without it.
        access[os.path.realpath("/etc/resolv.conf")] = "read"
    return access, tuple(links)


def _root(path: str, field: str) -> str:
    if not Path(path).is_absolute():
        raise InvalidInput(field, f"{path} must be an absolute path")
    real = os.path.realpath(path)
    if not os.path.lexists(real):
        raise InvalidInput(field, f"{path} does not exist")
    if any(real == mount or real.startswith(f"{mount}/") for mount in _OWN_MOUNTS):
        raise InvalidInput(field, f"{path} cannot be granted: it belongs to the kernel")
    return real


def _unlinked(path: str) -> str:
    real = _root(path, "unlinked")
    if real != path:
        raise InvalidInput("unlinked", f"{path} is, or is reached through, a link")
    return real


def _existing(access: Mapping[str, Access]) -> Iterator[Entry]:
    for path in sorted(access, key=lambda each: (each.count("/"), each)):
        try:
            mode = Path(path).stat().st_mode
        except OSError:
            # Absent, or not to be seen by the gateway itself, and so not by the command either.
            continue
        yield Entry(path, access[path], stat.S_ISDIR(mode))


def _access_at(path: str, entries: tuple[Entry, ...]) -> Access:
    found: Access = "hide"
    for entry in entries:
        if path == entry.path or path.startswith(f"{entry.path}/"):
            found = entry.access
    return found


def flatten(view: View) -> Iterator[Entry]:
    """The grants of `view` as a union, for a backend that can only add and not mask.

    A directory that holds an entry with less access is granted child by child, as it is now: a
    file made directly in it later is not covered, and its listing is refused.
    """
    for entry in view.entries:
        if entry.access != "hide":
            inner = [other for other in view.entries if other.path.startswith(f"{entry.path}/")]
            yield from _grants(entry, inner)


def _grants(entry: Entry, inner: list[Entry]) -> Iterator[Entry]:
    narrower = [other for other in inner if other.access not in ("write", entry.access)]
    if not narrower:
        yield entry
        return
    named = {other.path for other in inner}
    try:
        children = sorted(os.scandir(entry.path), key=lambda each: each.name)
    except OSError:
        # What the gateway cannot list, it cannot grant in parts.
        return
    for child in children:
        if child.path in named or child.is_symlink():
            continue
        below = [other for other in inner if other.path.startswith(f"{child.path}/")]
        yield from _grants(Entry(child.path, entry.access, child.is_dir()), below)
