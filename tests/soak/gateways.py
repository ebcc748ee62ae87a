"""The gateways of a soak: started, killed, started again, and weighed."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gateway.cli.client import GatewayClient
from runtime.ports.clock import Clock
from tests.scenario.process.program import ADMIN, Program, gateway
from tests.scenario.process.program import Place as Machine

KEPT_LINES = 2_000
NOT_SERVING = "http://127.0.0.1:9"


@dataclass
class Replica:
    """One gateway process after the other. `lives` counts them; `meant` is a death by a fault."""

    machine: Machine
    program: Program | None = None
    url: str = NOT_SERVING
    up: asyncio.Event = field(default_factory=asyncio.Event)
    lives: int = 0
    meant: bool = False
    ending: bool = False

    async def keep(self, oddities: list[str]) -> None:
        """Run it and start it again whenever it ended, until told otherwise."""
        while not self.ending:
            async with gateway(self.machine) as program:
                self.program, self.meant = program, False
                self.lives += 1
                self.url = await program.url()
                self.up.set()
                code = await program.ended()
                self.up.clear()
                if not self.meant or code not in (0, -signal.SIGKILL):
                    oddities.append(f"a gateway ended with {code}: {program.err[-3:]}")
                oddities += [line for line in program.err if "Traceback" in line][:3]

    async def dies(self, number: signal.Signals) -> None:
        """End it by a signal, once it is up, and wait until another one is."""
        await self.up.wait()
        assert self.program is not None
        self.meant = True
        self.up.clear()
        self.program.signal(number)
        await self.up.wait()

    def resident_mb(self) -> tuple[int, float] | None:
        """(process id, resident megabytes) now; None while it is not up."""
        if self.program is None or not self.up.is_set():
            return None
        pid = self.program.process.pid
        try:
            lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
        except OSError:
            return None
        found = [line.split()[1] for line in lines if line.startswith("VmRSS:")]
        return (pid, int(found[0]) / 1024) if found else None

    def forget(self) -> None:
        """Drop what it said long ago."""
        if self.program is not None:
            del self.program.err[:-KEPT_LINES]


@dataclass
class Gateways:
    """All replicas; SQLite has one. `oddities` are things that no fault explains."""

    replicas: list[Replica]
    clock: Clock
    oddities: list[str] = field(default_factory=list)

    def url(self) -> str:
        """The address of one that is up, or of nothing."""
        return next((one.url for one in self.replicas if one.up.is_set()), NOT_SERVING)

    def client(self) -> GatewayClient:
        """A client of one that is up."""
        return GatewayClient(self.url(), ADMIN)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """All of them, up when the block begins; told to end when it does."""
        async with asyncio.TaskGroup() as group:
            for number, one in enumerate(self.replicas):
                group.create_task(one.keep(self.oddities), name=f"gateway {number}")
                await one.up.wait()
            yield
            for one in self.replicas:
                await one.up.wait()
                assert one.program is not None
                one.ending = one.meant = True
                one.program.signal(signal.SIGTERM)
