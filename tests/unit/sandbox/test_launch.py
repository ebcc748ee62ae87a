"""The supervisor's start, which comes before every command, and what it is told."""

import subprocess
import sys
from pathlib import Path

from adapters.sandbox.launch_spec import (
    DiskSpec,
    LandlockSpec,
    LaunchSpec,
    LimitsSpec,
    from_bytes,
    to_bytes,
)

ROOT = Path(__file__).parents[3]
COSTLY = {"dataclasses", "inspect", "json", "pathlib", "re", "shutil", "socket", "typing"}
PRINT_IMPORTS = (
    "import sys; sys.path.append(sys.argv[1]); "
    "import adapters.sandbox.launcher; print(*sys.modules)"
)


def test_the_supervisor_starts_without_costly_imports() -> None:
    """Each of them would take more processor time than all of the supervisor's own modules."""
    command = (sys.executable, "-I", "-S", "-B", "-c", PRINT_IMPORTS, str(ROOT))
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = set(said.stdout.split())
    assert "adapters.sandbox.launcher" in loaded
    assert not loaded & COSTLY


def test_a_spec_reaches_the_supervisor_as_it_was() -> None:
    spec = LaunchSpec(
        argv=("/bin/echo", "ä"),
        cwd="/",
        env={"A": "b"},
        limits=LimitsSpec(
            rlimits=((4, 0),), nice=10, disk=DiskSpec(folders=("/w",), limit=5, reserve=6)
        ),
        landlock=LandlockSpec(handled_fs=1, handled_net=2, scoped=3, rules=(("/w", 4),)),
        seccomp=b"\0\xff",
    )
    assert from_bytes(to_bytes(spec)) == spec


def test_a_spec_without_a_disk_and_without_landlock_reaches_it_too() -> None:
    spec = LaunchSpec(argv=("/bin/true",), cwd="/", env={}, limits=LimitsSpec())
    told = from_bytes(to_bytes(spec))
    assert (told.limits.disk, told.landlock, told.seccomp, told.argv) == (
        None,
        None,
        None,
        ("/bin/true",),
    )
