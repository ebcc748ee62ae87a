"""A gateway is killed while a message steers or interrupts a run: none is lost, none doubled."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.domain.runs import RunState
from tests.contract.store_support import schema_templates
from tests.crash.places import on_sqlite
from tests.crash.platform import Platform
from tests.crash.play import Conversation, conversation
from tests.crash.process import Kill
from tests.stateful import invariants
from tests.stateful.invariants import UNSETTLED
from tests.stateful.snapshot import Record, Snapshot

__all__ = ["schema_templates"]

SIDE_BY_SIDE = 4
STEERED: Sequence[Kill] = (
    (2, "accept:begin"),
    (2, "accept:commit"),
    (3, "press:commit"),
    (3, "claim:commit"),
    (3, "tools-start:commit"),
    (3, "tools-end:begin"),
    (3, "tools-end:commit"),
    (3, "step:commit"),
    (3, "finish:begin"),
    (3, "finish:commit"),
)
PASSED_ON: Sequence[Kill] = ((3, "accept:begin"), (3, "accept:commit"), (3, "claim:commit"))
INTERRUPTED: Sequence[Kill] = (
    (2, "accept:begin"),
    (2, "accept:commit"),
    (2, "finish:begin"),
    (2, "finish:commit"),
    (2, "claim:commit"),
)
Play = Callable[[Conversation, Platform], Awaitable[Snapshot]]


def message(row: Record) -> str:
    """The platform's id of an input's message."""
    return str(json.loads(row["message"])["message_id"])


def quiet(rows: Snapshot) -> bool:
    return not any(row["state"] in UNSETTLED for row in rows.outbox)


def ended(rows: Snapshot, *states: RunState) -> bool:
    return [row["state"] for row in rows.runs] == list(states) and quiet(rows)


async def steer(talk: Conversation, platform: Platform) -> Snapshot:
    """A message reaches a run that waits for an approval, which is then given."""
    platform.says("m1", "pay rent")
    rows = await talk.until(lambda rows: bool(rows.open_calls) and quiet(rows))
    platform.says("m2", "note milk")
    await talk.until(lambda rows: len(rows.inputs) == 2 and quiet(rows))
    platform.presses(str(rows.open_calls[0]["id"]), "once")
    return await talk.until(lambda rows: ended(rows, RunState.COMPLETED))


async def stop(talk: Conversation, platform: Platform) -> Snapshot:
    """The same, but the run is stopped before it has heard anything."""
    platform.says("m1", "pay rent")
    await talk.until(lambda rows: bool(rows.open_calls) and quiet(rows))
    platform.says("m2", "note milk")
    await talk.until(lambda rows: len(rows.inputs) == 2 and quiet(rows))
    platform.says("m3", "/stop")
    return await talk.until(lambda rows: ended(rows, RunState.CANCELLED, RunState.COMPLETED))


async def interrupt(talk: Conversation, platform: Platform) -> Snapshot:
    """A message ends a run whose model says nothing."""
    platform.says("m1", "hold on")
    await talk.until(lambda rows: any(row["state"] == "running" for row in rows.runs))
    platform.says("m2", "note milk")
    return await talk.until(lambda rows: ended(rows, RunState.INTERRUPTED, RunState.COMPLETED))


async def killed_at(
    points: Sequence[Kill], play: Play, *, mode: str, template: Path, parent: Path
) -> None:
    """Play it once for each point, and look at what came of it."""
    make, room = on_sqlite(template, parent, lookup=True), asyncio.Semaphore(SIDE_BY_SIDE)

    async def one(number: int, kill: Kill) -> None:
        async with room:
            order = replace(await make(f"{mode}-{number}"), kill=kill, queue_mode=mode)
            platform = Platform()
            async with conversation(order, platform) as talk:
                rows = await play(talk, platform)
                await talk.died(1)
                assert talk.gateway.kills == 1, f"it did not die at {kill}"
            invariants.check(rows)
            assert len({message(row) for row in rows.inputs}) == len(rows.inputs)
            assert all(row["state"] in ("taken", "command") for row in rows.inputs), f"at {kill}"
            answers = [post.text for post in platform.posts if post.text.startswith("note milk: ")]
            assert len(answers) == 1, f"answers after a death at {kill}"
            effects = order.effects.read_text().split()
            assert len(set(effects)) == len(effects), f"an effect was had twice, at {kill}"
            if mode == "interrupt":
                assert not any(post.text.startswith("hold") for post in platform.posts)

    async with asyncio.TaskGroup() as group:
        for number, kill in enumerate(points):
            group.create_task(one(number, kill), name=f"{kill}")


@pytest.fixture(scope="module")
def template(schema_templates: Callable[[str], str]) -> Path:
    """A migrated SQLite file."""
    return Path(schema_templates("sqlite"))


@pytest.mark.requirement("MSG-1", "MSG-5", "MSG-7")
async def test_a_steered_message_is_heard_once(template: Path, tmp_path: Path) -> None:
    await killed_at(STEERED, steer, mode="steer", template=template, parent=tmp_path)


@pytest.mark.requirement("MSG-5", "MSG-13")
async def test_what_a_stopped_run_never_heard_is_answered_once(
    template: Path, tmp_path: Path
) -> None:
    await killed_at(PASSED_ON, stop, mode="steer", template=template, parent=tmp_path)


@pytest.mark.requirement("MSG-1", "MSG-5", "MSG-6")
async def test_an_interrupting_message_is_answered_once(template: Path, tmp_path: Path) -> None:
    await killed_at(INTERRUPTED, interrupt, mode="interrupt", template=template, parent=tmp_path)
