"""What the gateway tells the supervisor of one command, as JSON.

Standard library only: the supervisor runs isolated, without the gateway's packages.
"""

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class LandlockSpec:
    """Bit masks of landlock(7); `rules` pairs a path with the rights under it."""

    handled_fs: int
    handled_net: int
    scoped: int
    rules: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """One command.

    `rlimits` pairs a number of setrlimit(2) with its value. `processes` is a limit for
    RLIMIT_NPROC, counted from what the user runs already.
    `seccomp` is a filter in hexadecimal; with `broker_modes` it asks the supervisor about modes.
    `cgroups` are directories to join first. `temporary` is a directory to
    remove when nobody is left.
    """

    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    rlimits: tuple[tuple[int, int], ...] = ()
    processes: int | None = None
    cgroups: tuple[str, ...] = ()
    drop_capabilities: bool = False
    landlock: LandlockSpec | None = None
    seccomp: str | None = None
    broker_modes: bool = False
    keep_fds: tuple[int, ...] = ()
    temporary: str | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "LaunchSpec":
        """The inverse of `to_json`; lists become tuples again."""
        raw = json.loads(text)
        landlock = raw.pop("landlock")
        if landlock is not None:
            rules = tuple((path, rights) for path, rights in landlock.pop("rules"))
            landlock = LandlockSpec(rules=rules, **landlock)
        rlimits = tuple((number, value) for number, value in raw.pop("rlimits"))
        lists = {key: tuple(value) for key, value in raw.items() if isinstance(value, list)}
        return cls(landlock=landlock, rlimits=rlimits, **(raw | lists))
