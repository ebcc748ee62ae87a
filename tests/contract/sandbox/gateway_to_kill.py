"""A gateway in small that starts one command, says its identity and waits to be killed."""

import asyncio
import sys
from pathlib import Path

from adapters.sandbox.cgroups import Cgroups
from tests.contract.sandbox.conftest import Bench, HandClock, build, read_until


async def main(name: str, workspace: str) -> None:
    clock = HandClock()
    bench = Bench(await build(name, clock, Cgroups()), clock, Path(workspace).parent)
    command = bench.command("setsid sleep 1000 & echo $TMPDIR up; sleep 1000")
    async with await bench.sandbox.start(command) as process:
        temporary = (await read_until(process, "up")).split()[0]
        identity = process.identity
        sys.stdout.write(f"{identity.pid} {identity.started_ticks} {identity.token} {temporary}\n")
        sys.stdout.flush()
        await process.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
