"""What a command sees of the file system, as a list that every backend translates.

Reads the file system (symbolic links, what exists) but changes nothing. The deepest entry above a
path decides; what no entry covers is hidden.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from adapters.sandbox.closed_folders import STORES_READABLE, SYSTEM_READABLE
from adapters.sandbox.folder_walk import closed_below, open_to_others
from runtime.domain.errors import InvalidInput
from runtime.ports.sandbox import SandboxCommand

Access = Literal["write", "read", "list", "hide"]

# What ordinary programs look up. Anything else below /etc may be a secret of some service.
ETC_READABLE = tuple(
    f"/etc/{name}"
    for name in (
        *("passwd", "group", "nsswitch.conf", "hosts", "host.conf", "hostname", "gai.conf"),
        *("networks", "protocols", "services", "rpc", "ethertypes", "mime.types", "magic"),
        *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "os-release"),
        *("debian_version", "lsb-release", "redhat-release", "alpine-release", "issue"),
        *("localtime", "timezone", "locale.alias", "locale.conf", "default/locale"),
        *("ssl/certs", "ssl/cert.pem", "ssl/openssl.cnf", "ca-certificates", "pki/tls/certs"),
        *(
            "ca-certificates.conf",
            "pki/tls/openssl.cnf",
            "pki/ca-trust/extracted",
            "crypto-policies",
        ),
        *("profile", "profile.d", "bash.bashrc", "bashrc", "bash_completion.d", "inputrc"),
        *("environment", "shells", "login.defs", "skel", "terminfo", "DIR_COLORS", "vimrc", "vim"),
        *("fonts", "xdg", "X11", "glvnd", "OpenCL", "vulkan", "xml", "sgml", "groff"),
        *("python", "python3", "python3.10", "python3.11", "python3.12", "python3.13", "perl"),
        *("java", "maven", "ghc", "emacs", "R", "texmf", "papersize", "ImageMagick-6"),
        *("ImageMagick-7", "gitconfig", "gitattributes", "wgetrc", "nanorc", "screenrc"),
        *("ssh/ssh_config", "ssh/ssh_config.d", "ssh/ssh_known_hosts", "machine-id"),
    )
)
# Folders in which an administrator keeps services: looked at for every command.
_MIXED = ("/opt", "/usr/local")
_MIXED_DEPTH = 2
# Hidden even from root, who would own them inside as well.
SYSTEM_HIDDEN = ("/etc/gatehouse", "/etc/shadow", "/etc/ssl/private")
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
    """Entries from the shallowest to the deepest, and the links of the system (as on merged-usr).

    A link is (target, path); it is there besides the entries. `closed` are the entries that are
    hidden because others may not read them: their names may be seen.
    """

    entries: tuple[Entry, ...]
    links: tuple[tuple[str, str], ...]
    closed: frozenset[str] = frozenset()


def view_of(command: SandboxCommand, closed: Iterable[str] = ()) -> View:
    """The view that `command` is granted, without what is `closed` in the folders of the system.

    What the operator granted there is granted with everything in it.

    Raises `InvalidInput` when a root is relative, absent, one of the kernel's mounts or a link that
    must be none, and when `cwd` is no directory inside a root.
    """
    granted: dict[str, Access] = {_root(path, "readable"): "read" for path in command.readable}
    granted |= {_unlinked(path): "read" for path in command.unlinked}
    granted |= {_root(path, "writable"): "write" for path in command.writable}
    access, links = _system(network=command.network)
    hidden = _closed_to(granted, closed)
    access |= dict.fromkeys(hidden, "hide")
    access |= granted
    access |= {os.path.realpath(path): "hide" for path in command.hidden}
    entries = tuple(_existing(access))
    cwd = os.path.realpath(command.cwd)
    if not Path(cwd).is_dir() or _access_at(cwd, entries) == "hide":
        raise InvalidInput("cwd", "it must be an existing directory inside a root of the command")
    own = {os.path.realpath(path) for path in (*command.hidden, *SYSTEM_HIDDEN)}
    return View(entries=entries, links=links, closed=hidden - own)


def _system(*, network: bool) -> tuple[dict[str, Access], tuple[tuple[str, str], ...]]:
    access: dict[str, Access] = {}
    links: list[tuple[str, str]] = []
    for path in (*SYSTEM_READABLE, *STORES_READABLE):
        if Path(path).is_symlink():
            links.append((str(Path(path).readlink()), path))
        access[os.path.realpath(path)] = "read"
    # Often a link into /run, which is hidden otherwise; names do not resolve without it.
    for path in (*ETC_READABLE, *(("/etc/resolv.conf",) if network else ())):
        real = os.path.realpath(path)
        if real != path:
            links.append((real, path))
        if real.startswith("/proc/"):
            continue
        if open_to_others(real):
            access[real] = "read"
            access.update(dict.fromkeys(closed_below(real, depth=None), "hide"))
    for path in SYSTEM_HIDDEN:
        access[os.path.realpath(path)] = "hide"
    return access, tuple(links)


def _closed_to(granted: Iterable[str], closed: Iterable[str]) -> frozenset[str]:
    """What others may not read in the folders of the system, but for what was granted there."""
    system = {os.path.realpath(path) for path in SYSTEM_READABLE}
    roots = [path for path in granted if any(path.startswith(f"{each}/") for each in system)]
    looked = (path for mixed in _MIXED for path in closed_below(mixed, depth=_MIXED_DEPTH))
    return frozenset(
        path
        for path in (*closed, *looked)
        if not any(path == root or path.startswith(f"{root}/") for root in roots)
    )


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
    file made directly in it later is not covered. It can be listed only if nothing in it or below
    is hidden, but for names of the system.
    """
    for entry in view.entries:
        if entry.access != "hide":
            inner = [other for other in view.entries if other.path.startswith(f"{entry.path}/")]
            if inner and _only_closed(entry, inner, view):
                yield Entry(entry.path, "list", is_dir=True)
            yield from _grants(entry, inner)


def _only_closed(entry: Entry, inner: list[Entry], view: View) -> bool:
    """Whether listing a folder and all below shows no hidden name, but for the system's."""
    if entry.path in _MIXED or not _narrower(entry, inner):
        return False
    return all(other.access == "read" or other.path in view.closed for other in inner)


def _narrower(entry: Entry, inner: list[Entry]) -> list[Entry]:
    return [other for other in inner if other.access not in ("write", entry.access)]


def _grants(entry: Entry, inner: list[Entry]) -> Iterator[Entry]:
    if not _narrower(entry, inner):
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
