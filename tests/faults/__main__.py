"""`make faults`: play the matrix, or random kills with `--kills`, and write the page.

Exit code 0: nothing was lost, doubled or broken. 1: something was, and the page says so too.
2: PostgreSQL is missing; a page with half of the matrix would claim too much.
"""

import argparse
import asyncio
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from adapters.system.clock import SystemClock
from tests.contract.store_support import NO_POSTGRES
from tests.faults import page
from tests.faults.load import Tally, endure
from tests.faults.outcomes import outcome
from tests.faults.worlds import TEAMS, WORLDS, Pace, World, play, server

RATE = 1
LEASE_S = 15.0
LOAD = Pace(rate=20, lease_s=60.0)
"""Random kills run on a fast clock: what they look for is bad timing, not how long a lease is."""
SEED = 20261121


def main() -> int:
    """The command's whole life; its exit code."""
    given = _arguments()
    if server() is None:
        sys.stderr.write(f"{NO_POSTGRES}\n")
        return 2
    if given.kills:
        return asyncio.run(_random_kills(given))
    return asyncio.run(_matrix(given))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make faults", description=__doc__)
    parser.add_argument("--kills", type=int, default=0, help="random kills, shared by the worlds")
    parser.add_argument("--rate", type=int, default=RATE, help="how fast the clock runs")
    parser.add_argument("--seed", type=int, default=SEED, help="of the random kills")
    parser.add_argument("--page", type=Path, default=page.PAGE, help="where the result goes")
    return parser.parse_args()


async def _matrix(given: argparse.Namespace) -> int:
    pace = Pace(given.rate, LEASE_S * (4 if given.rate > 1 else 1))
    played = {}
    clock = SystemClock()
    began = clock.monotonic()
    for world in (*WORLDS, *TEAMS):
        cases = [(case, outcome(case)) for case in await play(world, pace)]
        played[world] = cases
        wrong = [f"{case.name}: {one}" for case, one in cases if not one.good]
        _say(sys.stdout, f"{world.name}: {len(cases)} cases, {len(wrong)} wrong", *wrong)
    about = (
        f"{_machine(clock)} The lease lives {pace.lease_s:g} s by a clock that runs {pace.rate} "
        f"times as fast as the machine's. All of it took {clock.monotonic() - began:.0f} s."
    )
    page.update(page.POINTS, page.points_text(played, about), path=given.page)
    return int(any(not one.good for cases in played.values() for _, one in cases))


async def _random_kills(given: argparse.Namespace) -> int:
    tallies: dict[World, Tally] = {}
    clock = SystemClock()
    began = clock.monotonic()
    for number, world in enumerate(WORLDS):
        share = given.kills // len(WORLDS) + (number < given.kills % len(WORLDS))
        tallies[world] = await endure(world, LOAD, kills=share, seed=given.seed + number)
        _say(sys.stdout, f"{world.name}: {tallies[world]}")
    about = (
        f"{_machine(clock)} Eight people write all the time; every fourth message needs an "
        f"approval, which is given. A gateway is killed every half a second or so of the machine's "
        f"clock, seed {given.seed}; its own clock runs {LOAD.rate} times as fast, so its lease of "
        f"{LOAD.lease_s:g} s lives {LOAD.lease_s / LOAD.rate:g} s. All of it took "
        f"{clock.monotonic() - began:.0f} s."
    )
    page.update(page.KILLS, page.kills_text(tallies, about), path=given.page)
    return int(any(_wrong(tallies)))


def _wrong(tallies: Mapping[World, Tally]) -> Iterator[Tally]:
    return (one for one in tallies.values() if not one.good)


def _say(stream: TextIO, *lines: str) -> None:
    for line in lines:
        stream.write(f"{line}\n")
    stream.flush()


def _machine(clock: SystemClock) -> str:
    day = datetime.fromtimestamp(clock.now_ms() / 1000, UTC).date().isoformat()
    return (
        f"Run on {day}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, PostgreSQL on the same machine."
    )


if __name__ == "__main__":
    sys.exit(main())
