"""What the processor works until a gateway is ready that was started before."""

import os
import statistics
from pathlib import Path

import pytest

from tests.conftest import FailAfter
from tests.scenario.process.conftest import place
from tests.scenario.process.program import Place, gateway

__all__ = ["place"]
STARTS = 5


async def test_a_second_start(
    place: Place, fail_after: FailAfter, capsys: pytest.CaptureFixture[str]
) -> None:
    place.loaded = False
    taken: list[float] = []
    async with fail_after(120):
        for _ in range(1 + STARTS):
            async with gateway(place) as program:
                await program.url()
                taken.append(processor_seconds(program.process.pid))
    with capsys.disabled():
        again = taken[1:]
        print(f"\nfirst start {taken[0]:.2f} s of the processor, then", end=" ")
        print(f"{min(again):.2f} to {max(again):.2f} s, median {statistics.median(again):.2f} s")


def processor_seconds(pid: int) -> float:
    """What a process has used so far (proc(5), fields 14 and 15)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
