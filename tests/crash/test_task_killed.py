"""A command in the background over a `kill -9` at each side of each unit of its life: it is not
lost, its processes are gone, and who asked is told once (TOOL-6, TSK-6)."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from sqlalchemy import Connection, select

from adapters.sandbox.process_tree import find_tree
from adapters.system.clock import SystemClock
from runtime.domain.ids import code_of
from runtime.domain.runs import TERMINAL, RunState
from runtime.features.tasks import rows
from runtime.features.tasks.rows import Task
from runtime.features.tasks.shell_tasks import LOST, RESTARTED
from runtime.features.tasks.tables import tasks
from runtime.ports.sandbox import ProcessIdentity
from runtime.store import open_database
from tests.contract.store_support import postgres_server, schema_templates
from tests.crash.places import on_postgres, on_sqlite
from tests.crash.platform import Platform
from tests.crash.play import PATIENCE_S, conversation
from tests.crash.process import ANY_PHASE, Kill, Order
from tests.stateful import snapshot

__all__ = ["schema_templates"]

QUICK = "echo at work"
ASKS = "printf 'at work\\nGo on? '; read answer"
LASTS = "trap '' TERM; echo at work; setsid sleep 600 & sleep 600"
"""It ignores SIGTERM, and one of its processes is in a session of its own."""


class Play(NamedTuple):
    """What runs, where the gateway dies, and what is to become of the task: its status, the end of
    what people are told of it, and how often they are told anything of it. With `stop` a person
    stops the command once it runs. A `restarted` one says so where no replica could be meant."""

    command: str
    kills: Sequence[Kill]
    status: str = "failed"
    notices: int = 1
    stop: bool = False
    output: str | None = None

    @property
    def restarted(self) -> bool:
        return self.status == "failed"


def at(*points: str) -> Sequence[Kill]:
    return [(ANY_PHASE, point) for point in points]


STARTED = "task-started:commit"
PLAYS = {
    "before it is kept": Play(QUICK, at("task-create:begin"), status="", notices=0),
    "kept, not started": Play(QUICK, at("task-create:commit")),
    "started, not noted": Play(LASTS, at("task-started:begin")),
    "runs": Play(LASTS, at(STARTED)),
    "asks": Play(ASKS, at("task-prompt:commit"), notices=2, output="at work\nGo on? "),
    "ended, not noted": Play(QUICK, at("task-end:begin"), output="at work\n"),
    "ended, nobody told": Play(
        QUICK, at("task-end:commit"), status="completed", output="at work\n"
    ),
    "being stopped": Play(LASTS, [(2, "accept:commit")], stop=True),
    "stopped, not noted": Play(LASTS, at("task-end:begin"), stop=True),
    "stopped, nobody told": Play(LASTS, at("task-end:commit"), status="cancelled", stop=True),
    "before it is marked": Play(LASTS, at(STARTED, "task-lost:begin")),
    "marked": Play(LASTS, at(STARTED, "task-lost:commit")),
    "its processes ended, not noted": Play(LASTS, at(STARTED, "task-tree:begin")),
    "its processes ended": Play(LASTS, at(STARTED, "task-tree:commit")),
}


class Seen(NamedTuple):
    """What came of it. `left` are processes that carry the token of a task."""

    deaths: int
    tasks: Sequence[Task]
    notices: int
    left: int
    output: str


async def played(play: Play, order: Order) -> Seen:
    platform = Platform()
    kills = [*play.kills, None]
    order = replace(order, commands=True, patience_s=0.0, kill=kills[0], then=kills[1])
    database = open_database(order.url, clock=SystemClock(), pool_size=1)
    await database.start()

    def read(conn: Connection) -> tuple[Sequence[Task], bool]:
        taken = snapshot.take(conn)
        ids = conn.execute(select(tasks.c.id)).scalars().all()
        ended = bool(taken.runs) and all(RunState(row["state"]) in TERMINAL for row in taken.runs)
        quiet = all(row["state"] == "sent" for row in taken.outbox)
        return [task for one in ids if (task := rows.find(conn, one))], ended and quiet

    async def until(holds: Callable[[Sequence[Task], bool], bool]) -> Sequence[Task]:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                platform.changed.clear()
                found, quiet = await database.read(read)
                if holds(found, quiet):
                    return found
                await platform.changed.wait()

    def over(found: Sequence[Task], quiet: bool) -> bool:
        kept = all(task.is_over and not task.tree_open for task in found)
        return quiet and kept and bool(found) == bool(play.status)

    try:
        async with conversation(order, platform) as talk:
            platform.says("m1", f"run {play.command}")
            if play.stop:
                (task,) = await until(lambda found, quiet: bool(found) and quiet)
                platform.says("m2", f"/tasks stop {code_of(task.id)}")
            await talk.died(len(play.kills))
            found = await until(over)
            left = [find_tree(ProcessIdentity(0, 0, task.token or "")) for task in found]
            told = [post.text for post in platform.posts if post.text.startswith("Task `")]
            notices = [text for text in told if "being stopped" not in text]
            path = order.folder / "workspace" / ((found[0].output_path or "") if found else "none")
            output = path.read_text() if path.exists() else ""
            return Seen(talk.gateway.kills, found, len(notices), sum(map(len, left)), output)
    finally:
        await database.close()


def check(play: Play, seen: Seen, *reasons: str) -> None:
    assert seen.deaths == len(play.kills)
    assert [task.status for task in seen.tasks] == ([play.status] if play.status else [])
    assert (seen.notices, seen.left) == (play.notices, 0)
    if play.output is not None:
        assert seen.output == play.output
    if play.restarted:
        facts = seen.tasks[0].facts
        assert facts["terminal_reason"] in reasons
        restarted = facts["terminal_reason"] == RESTARTED
        assert facts.get("recovered_on_boot", False) is restarted
        assert facts["process_tree_shutdown_confirmed"] is True


@pytest.mark.requirement("TSK-6", "TOOL-6")
@pytest.mark.parametrize("name", PLAYS)
def test_it_is_not_lost(name: str, schema_templates: Callable[[str], str], tmp_path: Path) -> None:
    make = on_sqlite(Path(schema_templates("sqlite")), tmp_path, lookup=True)

    async def play() -> Seen:
        return await played(PLAYS[name], await make("killed"))

    check(PLAYS[name], asyncio.run(play()), RESTARTED)


@pytest.mark.requirement("TSK-6", "TOOL-6")
@pytest.mark.parametrize("name", PLAYS)
async def test_it_is_not_lost_on_postgres(name: str, tmp_path: Path) -> None:
    """The next life is another replica, unless the lease of the one before is over when it starts,
    which is a question of how fast the machine is."""
    async with on_postgres(postgres_server(), tmp_path) as make:
        check(PLAYS[name], await played(PLAYS[name], await make("killed")), RESTARTED, LOST)
