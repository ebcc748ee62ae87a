"""Confinement by bubblewrap: namespaces of the command's own, made by a small vetted program."""

import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from adapters.sandbox import seccomp
from adapters.sandbox.backend import Backend
from adapters.sandbox.closed_folders import closed_tables
from adapters.sandbox.command_process import Plan
from adapters.sandbox.file_view import Entry, View
from adapters.sandbox.launch_spec import LaunchSpec
from runtime.domain.errors import InvalidInput
from runtime.ports.sandbox import TASK_TOKEN, SandboxCommand, SandboxUnavailable

# Root without capabilities still owns these, and bwrap covers only what looks writable from above:
# with a line in /proc/sys/kernel/core_pattern the host would run a program of the command's choice.
_KERNEL_FILES = tuple(
    f"/proc/{name}" for name in ("acpi", "bus", "fs", "irq", "scsi", "sys", "sysrq-trigger")
)
# These tell of the machine even where the file's mode would let anybody read it.
_KERNEL_SECRETS = ("/proc/kcore", "/proc/keys", "/proc/kmsg", "/proc/timer_list")
# Where it mounts a file system of the command's own, which lies in memory.
_SHARED_TMP = "/tmp"
_NETWORK_SETTINGS = "/proc/sys/net/"
# The host's devices that bwrap shows.
_DEVICES = tuple(f"/dev/{name}" for name in ("full", "null", "random", "tty", "urandom", "zero"))
# bwrap itself and the reaper that is pid 1 inside.
_MACHINERY = 2
_BIND_FD = "--ro-bind-fd"
_MACHINE = platform.machine()
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(eq=False)
class Bubblewrap(Backend):
    """`Sandbox` by the program `bwrap`."""

    name = "bubblewrap"
    asks_forks = seccomp.supported(_MACHINE)

    program: str = "bwrap"

    def available(self) -> SandboxUnavailable | None:
        if self._program is None:
            return SandboxUnavailable(
                "bubblewrap is not installed.",
                hint="Install the package bubblewrap (apt install bubblewrap).",
            )
        return None

    def plan(self, command: SandboxCommand) -> Plan:
        refused = self.available()
        if refused is not None or self._program is None:
            raise refused or SandboxUnavailable("bubblewrap is not installed.")
        view = self.view(command)
        with ExitStack() as undo:
            held = self._held(command, undo)
            plan = self.bare(command, shared=_SHARED_TMP, overhead=_MACHINERY)
            undo.pop_all()
        bare = plan.spec
        argv = [self._program, *self._arguments(command, view, bare, held)]
        keep = tuple(held.values())
        if seccomp.supported(_MACHINE):
            descriptor = self._filter(network=command.network)
            argv += ["--seccomp", str(descriptor)]
            keep = (*keep, descriptor)
        spec = LaunchSpec(
            argv=(*argv, "--", *bare.argv),
            cwd="/",
            env={TASK_TOKEN: plan.token},
            limits=bare.limits,
            keep_fds=keep,
            # Over all of bwrap, beside the filter that bwrap sets for the command.
            seccomp=seccomp.forks(_MACHINE) if bare.limits.tasks is not None else None,
            asks_supervisor=bare.limits.tasks is not None,
            # Only root owns them, and only root may mount here.
            fixed_devices=_DEVICES if os.geteuid() == 0 else (),
        )
        return replace(plan, spec=spec, shell_status=True, machinery=_MACHINERY)

    def confinement(self) -> str:
        calls = "" if seccomp.supported(_MACHINE) else f" No call filter for {_MACHINE}."
        return (
            "own namespaces for files, processes, network, users and IPC; no capabilities; only "
            "the workspace is writable and /tmp is the command's own; without a network, "
            "sockets in folders that are granted can be connected to; the processor is shared, at "
            f"a low priority.{calls}"
        )

    @cached_property
    def _program(self) -> str | None:
        return shutil.which(self.program)

    @cached_property
    def _binds_descriptors(self) -> bool:
        """Whether this bwrap mounts what a descriptor holds."""
        asked = (self._program or "", "--help")
        said = subprocess.run(asked, capture_output=True, text=True, check=False)
        return _BIND_FD in said.stdout

    def _held(self, command: SandboxCommand, undo: ExitStack) -> dict[str, int]:
        """Descriptors of the folders that must be no links, so that nothing which takes their place
        between the look and the mount is shown. An older bwrap leaves that moment open."""
        held: dict[str, int] = {}
        for path in command.unlinked if command.unlinked and self._binds_descriptors else ():
            try:
                held[path] = os.open(path, _FOLDER)
            except OSError as error:
                raise InvalidInput("unlinked", f"{path} is no folder any more") from error
            undo.callback(os.close, held[path])
        return held

    def _arguments(
        self, command: SandboxCommand, view: View, bare: LaunchSpec, held: Mapping[str, int]
    ) -> list[str]:
        flags = ["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
        if command.network:
            flags.append("--share-net")
        flags += ["--hostname", "sandbox", "--clearenv", "--chdir", bare.cwd]
        for name, value in bare.env.items():
            flags += ["--setenv", name, value]
        flags += ["--proc", "/proc", *_cover_kernel_files(network=command.network)]
        size = ("--size", str(command.limits.memory_bytes))
        flags += ["--dev", "/dev", *size, "--tmpfs", "/dev/shm", *size, "--tmpfs", _SHARED_TMP]
        flags += ["--symlink", "../tmp", "/var/tmp"]
        for target, link in view.links:
            flags += ["--symlink", target, link]
        for entry in view.entries:
            descriptor = held.get(entry.path) if entry.access == "read" else None
            if descriptor is None:
                flags += _mount(entry, view)
            else:
                flags += [_BIND_FD, str(descriptor), entry.path]
        # Otherwise what is written beside the mounts would seem to succeed, and vanish.
        for path in _masked(view):
            flags += ["--remount-ro", path]
        return [*flags, "--remount-ro", "/dev", "--remount-ro", "/"]

    def _filter(self, *, network: bool) -> int:
        """A descriptor from which bwrap reads the filter."""
        families: tuple[int, ...] = (seccomp.AF_INET, seccomp.AF_INET6, seccomp.AF_NETLINK)
        if not network:
            # With the host's network come its abstract sockets, so only a network of the
            # command's own may have AF_UNIX.
            families = (seccomp.AF_UNIX, *families)
        descriptor = os.memfd_create("gatehouse-seccomp", os.MFD_CLOEXEC)
        os.write(descriptor, seccomp.program(_MACHINE, seccomp.Filter(families)))
        os.lseek(descriptor, 0, os.SEEK_SET)
        return descriptor


def _cover_kernel_files(*, network: bool) -> list[str]:
    flags: list[str] = []
    for path in _KERNEL_FILES:
        flags += ["--ro-bind-try", path, path]
    for path in sorted({*_KERNEL_SECRETS, *closed_tables()}):
        # A network of the command's own has settings of its own, and not all of these.
        if network or not path.startswith(_NETWORK_SETTINGS):
            flags += _mask(path)
    return flags


def _mask(path: str) -> list[str]:
    if not Path(path).exists():
        return []
    if Path(path).is_dir():
        return ["--perms", "0755", "--tmpfs", path, "--remount-ro", path]
    return ["--ro-bind", "/dev/null", path]


def _masked(view: View) -> list[str]:
    """Hidden directories inside something that is mounted; the others are not there at all."""
    return [
        entry.path
        for entry in view.entries
        if entry.access == "hide" and entry.is_dir and _is_inside(entry, view)
    ]


def _is_inside(entry: Entry, view: View) -> bool:
    mounted = (other for other in view.entries if other.access != "hide")
    return any(entry.path.startswith(f"{other.path}/") for other in mounted)


def _mount(entry: Entry, view: View) -> list[str]:
    if entry.access == "write":
        return ["--bind", entry.path, entry.path]
    if entry.access == "read":
        return ["--ro-bind", entry.path, entry.path]
    if not _is_inside(entry, view):
        return []
    if not entry.is_dir:
        return ["--ro-bind", "/dev/null", entry.path]
    return ["--perms", "0755", "--tmpfs", entry.path]
