"""Confinement by Landlock, a system call filter and rlimits; needs no privilege and no program.

It works where namespaces are refused, as inside Docker. What it cannot do is said in
`confinement`. Version 3 of Landlock is the least that holds: before it, truncation was not seen.
Changes of modes, which no version sees, go through the supervisor (`modes`).
"""

import platform
from dataclasses import replace
from pathlib import Path

from adapters.sandbox import confine, seccomp
from adapters.sandbox.backend import Backend, private_directory
from adapters.sandbox.cgroups import Cgroups
from adapters.sandbox.process import Plan
from adapters.sandbox.spec import LandlockSpec
from adapters.sandbox.views import View, flatten, view_of
from runtime.ports.clock import Clock
from runtime.ports.sandbox import SandboxCommand, SandboxUnavailable

LEAST_ABI = 3
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 0x1, 0x2, 0x4, 0x8
_MAKE_CHAR, _MAKE_BLOCK, _TRUNCATE, _IOCTL_DEV = 0x40, 0x800, 0x4000, 0x8000
_ALL_OF_ABI_3 = 0x7FFF
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_WRITE = _ALL_OF_ABI_3 & ~(_MAKE_CHAR | _MAKE_BLOCK)
_TCP = 0x3
_ABSTRACT_SOCKETS_AND_SIGNALS = 0x3
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")


class Landlock(Backend):
    """`Sandbox` by the Linux security module; see `available`."""

    name = "landlock"

    def __init__(self, clock: Clock, *, cgroups: Cgroups) -> None:
        super().__init__(clock, cgroups=cgroups)
        self._abi = confine.landlock_abi()
        self._machine = platform.machine()

    def available(self) -> SandboxUnavailable | None:
        """Why it cannot be used here, or None."""
        if self._abi < LEAST_ABI:
            return SandboxUnavailable(
                f"Landlock version {self._abi} is too old or switched off.",
                hint="Linux 6.2 or newer with Landlock among its security modules is needed.",
            )
        if not seccomp.supported(self._machine):
            return SandboxUnavailable(f"There is no system call filter for {self._machine}.")
        return None

    def plan(self, command: SandboxCommand) -> Plan:
        refused = self.available()
        if refused is not None:
            raise refused
        view = view_of(command)
        temporary = private_directory()
        try:
            common = self.common(command, temporary=temporary)
        except BaseException:
            Path(temporary).rmdir()
            raise
        spec = replace(
            common.spec(),
            drop_capabilities=True,
            landlock=self._rules(view, temporary, network=command.network),
            seccomp=seccomp.program(self._machine, _filter(network=command.network)).hex(),
            broker_modes=True,
            temporary=temporary,
        )
        return Plan(spec=spec, token=common.token, group=common.held.group, temporary=temporary)

    def confinement(self) -> str:
        signals = "" if self._abi >= 6 else " Processes of this user can be signalled from inside."
        return (
            f"files by Landlock version {self._abi}, system calls and sockets by seccomp, "
            "capabilities dropped. /tmp is not private but closed: TMPDIR names a directory of "
            "the command's own. The times of other files that this user owns can be changed, "
            f"their content and modes cannot.{signals}"
        )

    def _rules(self, view: View, temporary: str, *, network: bool) -> LandlockSpec:
        rules = [(device, _READ_FILE | _WRITE_FILE | _TRUNCATE) for device in _DEVICES]
        rules = [rule for rule in rules if Path(rule[0]).exists()]
        rules += [("/proc", _READ_FILE | _READ_DIR), (temporary, _WRITE)]
        for entry in flatten(view):
            rules.append((entry.path, _WRITE if entry.access == "write" else _READ))
        return LandlockSpec(
            handled_fs=_ALL_OF_ABI_3 | (_IOCTL_DEV if self._abi >= 5 else 0),
            handled_net=_TCP if self._abi >= 4 and not network else 0,
            scoped=_ABSTRACT_SOCKETS_AND_SIGNALS if self._abi >= 6 else 0,
            rules=tuple(rules),
        )


def _filter(*, network: bool) -> seccomp.Filter:
    # No AF_UNIX even with the network: Landlock does not see connect(2) to a socket in the file
    # system, and behind one of them may be a Docker daemon.
    families = (seccomp.AF_INET, seccomp.AF_INET6, seccomp.AF_NETLINK) if network else ()
    return seccomp.Filter(families=families, broker_modes=True)
