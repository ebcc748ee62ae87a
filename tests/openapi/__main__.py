"""`python -m tests.openapi --examples 2000`: explores the API with both tokens, for hours.

It ends with 1 where anything is found, and says how each route answered.
"""

import argparse
import asyncio
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.openapi.exploration import TOKENS, Findings, Order, Role, explore

MOST_EXAMPLES = 1_000_000


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(prog="tests.openapi", description=__doc__)
    parser.add_argument("--examples", type=int, default=2_000, help="for each route")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--role", choices=[*TOKENS, "both"], default="both", help="the token")
    parser.add_argument("--path", help="a regular expression: only routes with such a path")
    found = parser.parse_args()
    if not 1 <= found.examples <= MOST_EXAMPLES:
        parser.error(f"--examples must be 1 to {MOST_EXAMPLES:,}")
    return found


def show(role: Role, findings: Findings, seconds: float) -> None:
    """Print what was reached."""
    if not findings.answers:
        _say(f"{role}: nothing was asked.\n{findings.told}")
        return
    for route, statuses in sorted(findings.statuses.items()):
        said = ", ".join(f"{status}: {number:,}" for status, number in sorted(statuses.items()))
        _say(f"{route:64} {said}")
    every = Counter(status for _, status, _ in findings.answers)
    times = sorted(ms for *_, ms in findings.answers)
    middle, late = times[len(times) // 2], times[len(times) * 99 // 100]
    _say(
        f"{role}: {len(times):,} requests to {len(findings.statuses)} routes in {seconds:,.0f} s;"
        f" {sum(number for status, number in every.items() if status >= 500):,} answers of 5xx;"
        f" p50 {middle:.1f} ms, p99 {late:.1f} ms"
    )
    _say("Nothing was found." if findings.passed else findings.told)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def main() -> int:
    """Explore with each token."""
    asked = arguments()
    roles = [role for role in TOKENS if asked.role in (role, "both")]
    passed = True
    for role in roles:
        with TemporaryDirectory(prefix="gatehouse-openapi-") as folder:
            began = time.perf_counter()
            order = Order(role, asked.examples, asked.seed, path=asked.path)
            findings = await explore(Path(folder), order)
            show(role, findings, time.perf_counter() - began)
            passed &= findings.passed
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
