"""`python -m tests.replicas.scheduled_kills --kills 200`: two replicas with schedules that are due
every second, killed at random moments, and then the books.

Exit code 0: each time fired once or says why it did not, and nobody read a thing twice or early.
1: something is wrong, and is printed. 2: PostgreSQL is missing.
"""

import argparse
import asyncio
import os
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gateway.cli.client import GatewayClient
from runtime.domain.json_fields import object_of, text_of
from tests.contract.store_support import NO_POSTGRES, POSTGRES_VARIABLE, PostgresServer
from tests.replicas.town import CLOCK, SHORT_LEASE_S, Deployment, Replica, deployment_at
from tests.wire.openai import Answer, Prompt, says

EVERY_SECOND: Final = {"type": "cron", "expression": "* * * * * *", "timezone": "UTC"}
SECOND_MS: Final = 1000
LONGEST_LIFE_S: Final = 3.0
"""A replica is killed at a random moment of as many seconds after it is ready."""
TOLD_TOGETHER: Final = re.compile(r"(?:at least )?([\d,]+) later times? fired together with that")
SAYS: Final = "numbers of"


def answer(prompt: Prompt) -> Answer:
    """What a run of a schedule says; the model names the schedule that asked."""
    found = re.search(r"the numbers of (\w+)", prompt.asked)
    return says(f"{SAYS} {found.group(1)}" if found else "hello")


@dataclass
class Books:
    """What is compared at the end: times by schedule, and what people read."""

    wrong: list[str] = field(default_factory=list)
    fired: int = 0
    skipped: Counter[str] = field(default_factory=Counter)

    def lines(self) -> Iterator[str]:
        """The books in words."""
        yield f"fired {self.fired:,}, skipped {sum(self.skipped.values()):,}"
        for reason, times in self.skipped.most_common():
            yield f"  {times:,} because {reason}"
        yield f"wrong: {len(self.wrong)}"
        yield from self.wrong[:40]


async def make_schedules(client: GatewayClient, session_id: str, person_id: str) -> list[str]:
    """Plain reminders and requests under each overlap policy."""
    asked = [
        {"name": "plain", "deliver_text": "tea"},
        {"name": "skip", "overlap_policy": "skip"},
        {"name": "queue", "overlap_policy": "queue_one"},
        {"name": "parallel", "overlap_policy": "parallel"},
    ]
    made = []
    for one in asked:
        body = {"target_session_id": session_id, "owner_person_id": person_id, **one}
        body["cadence"] = EVERY_SECOND
        if "deliver_text" not in one:
            body["request"] = {"content": f"post the numbers of {one['name']}"}
        found = await client.post("/v1/schedules", body)
        made.append(text_of(object_of(found, "schedule"), "schedule_id"))
    return made


async def killing(at: Deployment, kills: int, luck: random.Random) -> None:
    """Two replicas, of which one at a time dies at random and is started again."""
    async with AsyncExitStack() as ends:
        stacks: dict[str, AsyncExitStack] = {}
        alive: dict[str, Replica] = {}

        async def start(name: str) -> None:
            stacks[name] = await ends.enter_async_context(AsyncExitStack())
            alive[name] = await stacks[name].enter_async_context(at.replica(name))

        for name in ("a", "b"):
            await start(name)
        at.telegram.user_says(at.chat, at.ann, "hello")
        await at.settled(1)
        ((session_id,),) = await at.rows("SELECT session_id FROM runs")
        ((person,),) = await at.rows("SELECT person_id FROM accounts WHERE channel = 'telegram'")
        await make_schedules(alive["a"].client, str(session_id), str(person))
        for number in range(kills):
            name = luck.choice(("a", "b"))
            await CLOCK.sleep(luck.uniform(0, LONGEST_LIFE_S))
            await alive[name].killed()
            await stacks[name].aclose()
            await start(name)
            if number % 10 == 9:
                sys.stderr.write(f"{number + 1} kills\n")
        for (one,) in await at.rows("SELECT id FROM schedules"):
            await alive["b"].client.post(f"/v1/schedules/{one}/cancel")
        await at.until("SELECT count(*) FROM runs WHERE ended_ms IS NULL", 0)
        open_ones = "state IN ('pending', 'sending', 'streaming')"
        await at.until(f"SELECT count(*) FROM outbox WHERE {open_ones}", 0)
        await at.until("SELECT count(*) FROM schedule_fires WHERE status = 'dispatched'", 0)


async def compare(at: Deployment) -> Books:
    """Each second of each schedule against its rows, and what people read against the outbox."""
    books = Books()
    for row in await at.rows("SELECT id, name, created_ms, updated_ms FROM schedules"):
        schedule_id, name, made, ended = row
        assert isinstance(made, int)
        assert isinstance(ended, int)
        await _times(at, books, str(schedule_id), str(name), (made, ended))
    for run, times in await at.rows(
        "SELECT run_id, count(*) FROM schedule_fires WHERE run_id IS NOT NULL "
        "GROUP BY run_id HAVING count(*) > 1"
    ):
        books.wrong.append(f"the run {run} stands for {times} times")
    for state, times in await at.rows("SELECT state, count(*) FROM outbox GROUP BY state"):
        if state != "sent":
            books.skipped[f"the delivery is {state}"] += int(str(times))
    sent = Counter(
        str(text)
        for (text,) in await at.rows(
            "SELECT message::jsonb #>> '{parts,0,markdown}' FROM outbox WHERE state <> 'dead'"
        )
    )
    read = Counter(at.telegram_texts())
    for text, times in read.items():
        if times > sent[text]:
            books.wrong.append(f"people read {text!r} {times} times, {sent[text]} were sent")
    return books


async def _times(
    at: Deployment, books: Books, schedule_id: str, name: str, span: tuple[int, int]
) -> None:
    query = (
        "SELECT slot_ms, status, reason, coalesce(dispatched_ms, fired_ms) FROM schedule_fires "
        f"WHERE schedule_id = '{schedule_id}' ORDER BY slot_ms"
    )
    covered: set[int] = set()
    for slot, status, reason, at_ms in await at.rows(query):
        assert isinstance(slot, int)
        assert isinstance(at_ms, int)
        covered.add(slot)
        if status in ("fired", "settled"):
            books.fired += 1
            if at_ms < slot:
                books.wrong.append(f"{name}: {slot} fired {slot - at_ms} ms early")
            continue
        if not reason:
            books.wrong.append(f"{name}: {slot} is {status} without a reason")
        together = TOLD_TOGETHER.search(str(reason))
        total = 1 if together is None else int(together.group(1).replace(",", ""))
        covered.update(slot - SECOND_MS * back for back in range(total))
        kind = "it fired with an earlier one" if together else str(reason)
        books.skipped[kind] += total
    first = span[0] // SECOND_MS * SECOND_MS + SECOND_MS
    last = max(covered, default=first)
    missing = [slot for slot in range(first, last, SECOND_MS) if slot not in covered]
    books.wrong += [f"{name}: nothing says what became of {slot}" for slot in missing]
    if span[1] - last > 10 * SECOND_MS + SHORT_LEASE_S * SECOND_MS:
        books.wrong.append(f"{name}: nothing fired in the last {span[1] - last} ms")


async def main() -> int:
    """The command's whole life; its exit code."""
    parser = argparse.ArgumentParser(prog="scheduled_kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=14)
    given = parser.parse_args()
    url = os.environ.get(POSTGRES_VARIABLE)
    if not url:
        sys.stderr.write(f"{NO_POSTGRES}\n")
        return 2
    with tempfile.TemporaryDirectory() as folder:
        async with deployment_at(Path(folder), PostgresServer(url)) as at:
            at.lease_s = SHORT_LEASE_S
            at.loaded = False
            at.model.plays = answer
            await killing(at, given.kills, random.Random(given.seed))
            books = await compare(at)
    for line in books.lines():
        sys.stdout.write(f"{line}\n")
    return 1 if books.wrong else 0


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
