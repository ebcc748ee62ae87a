"""A command that nothing confines pays for no look at the system."""

import sys
from pathlib import Path

from adapters.sandbox.cgroups import Cgroups
from adapters.sandbox.closed_folders import ClosedPaths
from adapters.sandbox.unconfined import Unconfined
from adapters.system.clock import SystemClock
from runtime.ports.sandbox import SandboxCommand


async def test_the_folders_of_the_system_are_not_walked(tmp_path: Path) -> None:
    """The walk takes a second of the processor, and only a view needs what it finds."""
    (tmp_path / "closed").touch(mode=0o600)
    closed = ClosedPaths((str(tmp_path),))
    sandbox = Unconfined(SystemClock(), cgroups=Cgroups(), closed=closed)
    command = SandboxCommand((sys.executable, "-I", "-S", "-c", ""), str(tmp_path))
    async with await sandbox.start(command) as process:
        assert (await process.wait()).code == 0
    assert not closed.walked
