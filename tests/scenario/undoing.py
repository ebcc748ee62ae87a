"""What the tests of `/undo` stand on: worlds on both databases, whole turns, and whole tables."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Connection, select, text

from runtime.domain.decisions import PermissionMode
from runtime.domain.people import Speaker, Trust
from runtime.domain.runs import RunState
from runtime.ports.model import ModelRequest
from runtime.sessions import tables
from runtime.sessions.bounds import PolicySettings
from runtime.sessions.outbox import OPEN as ON_ITS_WAY
from runtime.store.metadata import metadata
from tests.fakes.model import ScriptedModel, ScriptedModels
from tests.scenario.cards import MEMBER, reaches
from tests.scenario.conftest import intake
from tests.scenario.engine import OPEN, Setup, World, setup_at, world

OTHER = "U-other"
GROUP = {"chat_id": "G", "kind": "group"}
EVERYBODY = replace(OPEN, dm_policy="open", allow_users=frozenset({MEMBER, OTHER}))
NOTHING = "There is nothing to take back in this conversation."
BYPASS = PolicySettings(mode=PermissionMode.BYPASS)
OWNER_HERE = Speaker(
    person_id="p", channel="test", account="A1", user_id="U-owner", trust=Trust.OWNER
)
Rows = list[dict[str, object]]
Start = Callable[..., AbstractAsyncContextManager[World]]


@pytest.fixture
def start(tmp_path: Path, migrated_url: str) -> Start:
    """Makes worlds on one database of either kind."""

    def make(
        model: ScriptedModel, change: Callable[[Setup], Setup] = lambda setup: setup
    ) -> AbstractAsyncContextManager[World]:
        alone = migrated_url.startswith("sqlite")
        setup = setup_at(tmp_path, migrated_url, ScriptedModels(model), alone=alone)
        return world(change(intake(access={"test": EVERYBODY})(setup)))

    return make


def told(request: ModelRequest) -> str:
    """Everything that the model is given of the conversation, in one text."""
    return "\n".join(str(message.model_dump()) for message in request.messages)


async def rows(at: World, table: str) -> Rows:
    """A whole table, in the order of its keys."""
    found = metadata.tables[table]
    query = select(found).order_by(*found.primary_key.columns)
    return await at.database.read(lambda conn: [dict(row._mapping) for row in conn.execute(query)])


async def until(at: World, holds: Callable[[Connection], bool]) -> None:
    """Return once something holds in the database."""
    async with asyncio.timeout(120):
        while not await at.database.read(holds):
            pass


async def quiet(at: World) -> None:
    """Return once no conversation has a run and nothing is on its way to a chat."""
    table = tables.lanes.c
    held = table.active_run.is_not(None) | table.ready_ms.is_not(None)
    at_work = select(table.session_id).where(held, table.parent_id.is_(None))
    sends = select(tables.outbox.c.id).where(text(ON_ITS_WAY))
    await until(at, lambda conn: not any(conn.execute(one).first() for one in (at_work, sends)))


async def says(at: World, words: str, **more: object) -> str:
    """One turn from beginning to end; its run."""
    accepted = await at.says(words, **more)
    assert accepted.run_id is not None, accepted
    await reaches(at, accepted.run_id, *(RunState.COMPLETED, RunState.FAILED, RunState.CANCELLED))
    await quiet(at)
    return accepted.run_id


async def undoes(at: World, **more: object) -> str:
    """What the chat says to `/undo`."""
    before = len(at.chat.sent)
    accepted = await at.says("/undo", **more)
    assert (accepted.disposition, accepted.reason) == ("command", "undo")
    await at.chat.until(lambda: len(at.chat.sent) > before)
    await quiet(at)
    return at.chat.texts()[before]


async def undone(at: World) -> set[str]:
    """The runs that are marked."""
    return {str(one["id"]) for one in await rows(at, "runs") if one["undone_ms"] is not None}
