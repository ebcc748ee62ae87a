"""Confinement by Landlock, a system call filter and rlimits; needs no privilege and no program.

It works where namespaces are refused, as inside Docker. What it cannot do is said in
`confinement`. Version 3 of Landlock is the least that holds: before it, truncation was not seen.
Changes of modes, owners and times, which no version sees, and calls about other processes go
through the supervisor (`broker`).
"""

import os
import platform
from dataclasses import dataclass, field, replace
from pathlib import Path

from adapters.sandbox import power_drop, seccomp
from adapters.sandbox.backend import Backend
from adapters.sandbox.closed_folders import shown_tables
from adapters.sandbox.command_process import Plan
from adapters.sandbox.file_view import Access, View, flatten
from adapters.sandbox.launch_spec import LandlockSpec, LaunchSpec, LimitsSpec
from runtime.ports.sandbox import SandboxCommand, SandboxUnavailable

LEAST_ABI = 3
_SCOPES_SIGNALS = 6
KNOWN_LIMITS = (
    "Known limits without namespaces: names, sizes and times of hidden files can be asked for, "
    "though not their content."
)
OTHER_PROCESSES = (
    "Command lines of other processes and the numbers of their open files can be read under /proc."
)
SHARED_PROCESSOR = "The processor is shared, at a low priority."
ROOT_LIMITS = (
    "As root, commands see no process under /proc, not even themselves, because a rule that shows "
    "them shows what only root may read: ps, top and df tell nothing. Run the gateway as an "
    "ordinary user, or with bubblewrap, to have them."
)
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 0x1, 0x2, 0x4, 0x8
_MAKE_CHAR, _MAKE_BLOCK, _TRUNCATE, _IOCTL_DEV = 0x40, 0x800, 0x4000, 0x8000
_ALL_OF_ABI_3 = 0x7FFF
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_WRITE = _ALL_OF_ABI_3 & ~(_MAKE_CHAR | _MAKE_BLOCK)
_RIGHTS: dict[Access, int] = {"write": _WRITE, "read": _READ, "list": _READ_DIR}
_TCP = 0x3
_ABSTRACT_SOCKETS_AND_SIGNALS = 0x3
_MACHINE = platform.machine()
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")


def known_limits() -> str:
    """What is not held here, and what does not work, for this process's user."""
    if os.geteuid() == 0:
        return f"{KNOWN_LIMITS} {SHARED_PROCESSOR} {ROOT_LIMITS}"
    return f"{KNOWN_LIMITS} {OTHER_PROCESSES} {SHARED_PROCESSOR}"


@dataclass(eq=False)
class Landlock(Backend):
    """`Sandbox` by the Linux security module; see `available`. `abi` is how much of it is used."""

    name = "landlock"

    abi: int = field(default_factory=power_drop.landlock_abi)

    def available(self) -> SandboxUnavailable | None:
        if self.abi < LEAST_ABI:
            return SandboxUnavailable(
                f"Landlock version {self.abi} is too old or switched off.",
                hint="Linux 6.2 or newer with Landlock among its security modules is needed.",
            )
        if not seccomp.supported(_MACHINE):
            return SandboxUnavailable(f"There is no system call filter for {_MACHINE}.")
        return None

    def plan(self, command: SandboxCommand) -> Plan:
        refused = self.available()
        if refused is not None:
            raise refused
        view = self.view(command)
        plan = self.bare(command)
        bare = plan.spec
        spec = LaunchSpec(
            argv=bare.argv,
            cwd=bare.cwd,
            env=bare.env,
            limits=bare.limits,
            drop_capabilities=True,
            landlock=self._rules(view, bare.temporary, network=command.network),
            seccomp=seccomp.program(_MACHINE, self._filter(command, bare.limits)),
            asks_supervisor=True,
            temporary=bare.temporary,
        )
        return replace(plan, spec=spec)

    def confinement(self) -> str:
        signals = "Landlock" if self.abi >= _SCOPES_SIGNALS else "its supervisor"
        return (
            f"files by Landlock version {self.abi}, system calls and sockets by seccomp, "
            f"capabilities dropped; signals are kept inside by {signals}. /tmp is not private but "
            "closed: TMPDIR names a directory of the command's own. There is no System V and no "
            f"POSIX IPC. {known_limits()}"
        )

    def _filter(self, command: SandboxCommand, limits: LimitsSpec) -> seccomp.Filter:
        # No AF_UNIX even with the network: Landlock does not see connect(2) to a socket in the file
        # system, and behind one of them may be a Docker daemon.
        networked = (seccomp.AF_INET, seccomp.AF_INET6, seccomp.AF_NETLINK)
        return seccomp.Filter(
            networked if command.network else (),
            namespaces=False,
            signals_scoped=self.abi >= _SCOPES_SIGNALS,
            asks_forks=limits.tasks is not None,
        )

    def _rules(self, view: View, temporary: str | None, *, network: bool) -> LandlockSpec:
        rules = [(device, _READ_FILE | _WRITE_FILE | _TRUNCATE) for device in _DEVICES]
        rules = [rule for rule in rules if Path(rule[0]).exists()]
        tables = shown_tables() if os.geteuid() == 0 else ("/proc",)
        rules += [(table, _READ_FILE | _READ_DIR) for table in tables]
        # Not what TMPDIR says: the operator may set that to a folder of the host.
        if temporary is not None:
            rules.append((temporary, _WRITE))
        for entry in flatten(view):
            rules.append((entry.path, _RIGHTS[entry.access]))
        return LandlockSpec(
            handled_fs=_ALL_OF_ABI_3 | (_IOCTL_DEV if self.abi >= 5 else 0),
            handled_net=_TCP if self.abi >= 4 and not network else 0,
            scoped=_ABSTRACT_SOCKETS_AND_SIGNALS if self.abi >= _SCOPES_SIGNALS else 0,
            rules=tuple(rules),
        )
