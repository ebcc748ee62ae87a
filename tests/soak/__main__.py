"""`python -m tests.soak --seconds 600 --seed 1`: ends with 1 where anything is wrong.

With `--messages 10000 --restart-every 500` it ends with the number of messages, and Slack and
Telegram alone are played: the page has no platform between it and the gateway.
"""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.contract.store_support import PostgresServer
from tests.soak.driver import Order, soak
from tests.soak.report import Report

LONGEST_S = 7 * 24 * 3600.0
FEW, MANY = 3, 20


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--people", type=int, default=0, help="of each kind of conversation")
    parser.add_argument("--messages", type=int, default=0, help="instead of --seconds")
    parser.add_argument(
        "--restart-every", type=int, default=0, help="messages, instead of now and then"
    )
    parser.add_argument("--replicas", type=int, default=1, help="more than one needs --postgres")
    parser.add_argument("--postgres", default="", help="a server where databases may be created")
    parser.add_argument(
        "--beside", default="", help="a checkout of another version, for every second replica"
    )
    found = parser.parse_args()
    if not 1 <= found.seconds <= LONGEST_S:
        parser.error(f"--seconds is between 1 and {LONGEST_S:.0f}")
    if not 0 <= found.restart_every <= found.messages:
        parser.error("--restart-every counts messages: name more of them with --messages")
    if found.replicas > 1 and not found.postgres:
        parser.error("several replicas share a PostgreSQL database: name one with --postgres")
    return found


@asynccontextmanager
async def database(server_url: str) -> AsyncIterator[str]:
    """The URL of a fresh database on the server; empty without one, for SQLite."""
    if not server_url:
        yield ""
        return
    server = PostgresServer(server_url)
    name = await server.create()
    try:
        yield server.url(name).replace("postgresql://", "postgresql+asyncpg://", 1)
    finally:
        await server.drop(name)


async def run(asked: argparse.Namespace) -> Report:
    """One soak in a folder of its own."""
    order = Order(
        seconds=asked.seconds,
        seed=asked.seed,
        people=asked.people or (MANY if asked.messages else FEW),
        pages=0 if asked.messages else 2,
        messages=asked.messages,
        restart_every=asked.restart_every,
        fault_every_s=2.0 if asked.messages else 4.0,
        replicas=asked.replicas,
        beside=asked.beside,
    )
    with TemporaryDirectory(prefix="gatehouse-soak-") as folder:
        async with database(asked.postgres) as url:
            return await soak(Path(folder), replace(order, database_url=url))


if __name__ == "__main__":
    report = asyncio.run(run(arguments()))
    for line in report.lines():
        sys.stdout.write(f"{line}\n")
    sys.exit(1 if report.faults() else 0)
