"""What the gateway tells the supervisor of one command.

Standard library only: the supervisor runs isolated, without the gateway's packages. And little of
it, as in all modules that the supervisor imports at its start: ``dataclasses``, ``pathlib``,
``typing`` and ``json`` would triple the processor time of that start, which comes before every
command.
"""

import marshal
from types import SimpleNamespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import dataclass_transform

    @dataclass_transform(kw_only_default=True, frozen_default=True)
    class _Values:
        """What a frozen dataclass is to the type checker."""
else:
    _Values = SimpleNamespace

DISK_INTERVAL_S = 1.0


class LandlockSpec(_Values):
    """Bit masks of landlock(7); `rules` pairs a path with the rights under it."""

    handled_fs: int
    handled_net: int
    scoped: int
    rules: tuple[tuple[str, int], ...]


class DiskSpec(_Values):
    """What a command may add below `folders`; sizes are bytes.

    `limit` holds for its whole session, which began at `since_ns` (now, if it is None) and was
    `charged` with what its earlier commands wrote. `reserve` must be left free on each disk. All
    is measured every `interval_s` seconds.
    """

    folders: tuple[str, ...]
    limit: int
    reserve: int
    charged: int = 0
    since_ns: int | None = None
    interval_s: float = DISK_INTERVAL_S


class LimitsSpec(_Values):
    """What one command may use.

    `rlimits` pairs a number of setrlimit(2) with its value. `processes` is a limit for
    RLIMIT_NPROC, counted from what the user runs already; `tasks` is one that the supervisor holds,
    which is asked at each fork. `cgroups` are directories to join first.
    `nice` is added to the priority's number.
    """

    rlimits: tuple[tuple[int, int], ...] = ()
    processes: int | None = None
    tasks: int | None = None
    cgroups: tuple[str, ...] = ()
    disk: DiskSpec | None = None
    nice: int = 0


class LaunchSpec(_Values):
    """One command.

    `seccomp` is a filter; with `asks_supervisor` some of its verdicts are questions.
    `temporary` is a directory to remove when nobody is left.
    `fixed_devices` can be read and written, but their modes, owners and times stay.
    """

    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    limits: LimitsSpec
    drop_capabilities: bool = False
    landlock: LandlockSpec | None = None
    seccomp: bytes | None = None
    asks_supervisor: bool = False
    keep_fds: tuple[int, ...] = ()
    fixed_devices: tuple[str, ...] = ()
    temporary: str | None = None


def to_bytes(spec: LaunchSpec) -> bytes:
    """`spec` for a supervisor, which is the same interpreter."""
    return marshal.dumps(_plain(spec))


def from_bytes(data: bytes) -> LaunchSpec:
    """The inverse of `to_bytes`."""
    values = marshal.loads(data)
    limits = values.pop("limits")
    disk, landlock = limits.pop("disk", None), values.pop("landlock", None)
    return LaunchSpec(
        limits=LimitsSpec(disk=None if disk is None else DiskSpec(**disk), **limits),
        landlock=None if landlock is None else LandlockSpec(**landlock),
        **values,
    )


def _plain(values: _Values) -> dict[str, object]:
    return {
        name: _plain(value) if isinstance(value, _Values) else value
        for name, value in vars(values).items()
    }
