"""What the processor works until a gateway is ready that was started before, how long the first
reply takes, and how much memory is held."""

import os
import statistics
from pathlib import Path

import pytest

from adapters.system.clock import SystemClock
from tests.conftest import FailAfter
from tests.scenario.process.conftest import place
from tests.scenario.process.program import Place, gateway
from tests.scenario.process.talk import conversation, finished
from tests.wire.openai import ModelServer

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


@pytest.mark.parametrize("when", ["at once", "once loaded"])
async def test_the_first_reply_of_a_provider(
    place: Place, when: str, fail_after: FailAfter, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the first message to its answer, by a model server that answers at once; the aim is
    2 s (OPS-11). The machine's other work counts, so look at `uptime` too."""
    place.loaded = False
    clock = SystemClock()
    async with fail_after(120), ModelServer().running() as server:
        place.variables |= {
            "OPENAI_API_KEY": "sk-test-key",
            "OPENAI_BASE_URL": server.url,
            "GATEHOUSE_MODELS__DEFAULT": "openai:scripted",
        }
        async with gateway(place) as program, conversation(await program.url()) as talk:
            if when == "once loaded":
                await program.says("model_loaded")
            idle = megabytes(program.process.pid)
            taken = []
            for words in ("first", "second"):
                began = clock.monotonic()
                sent = await talk.submit(words)
                await finished(talk, sent.run_id)
                taken.append(clock.monotonic() - began)
            used = megabytes(program.process.pid)
    with capsys.disabled():
        print(f"\n{when}: first reply {taken[0]:.2f} s, second {taken[1]:.2f} s;", end=" ")
        print(f"{idle} MB before, {used} MB after")


def megabytes(pid: int) -> int:
    """What a process holds in memory (proc(5), smaps_rollup)."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Rss:")) // 1024


def processor_seconds(pid: int) -> float:
    """What a process has used so far (proc(5), fields 14 and 15)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
