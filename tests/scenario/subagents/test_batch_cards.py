"""The card of a batch: one message that is changed as its agents get on, and ends in one line."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from sqlalchemy import Connection, select

from runtime.domain.messages import TextPart
from runtime.features.subagents.batch_card import DIRECT_MS
from runtime.sessions.tables import outbox
from tests.contract.store_support import dialect, migrated_url, schema_templates
from tests.fakes.chat import FAST, FakeChat
from tests.fakes.clock import FakeClock
from tests.fakes.model import Gate, Said, ScriptedModel, ScriptedModels
from tests.scenario.cast import Cast, played, spawn
from tests.scenario.engine import World, setup_at, world

__all__ = ["dialect", "migrated_url", "schema_templates"]

LIVE = replace(FAST, live_cards=True)
TWO = spawn(agents=[{"task": "Look.", "id": "one"}, {"task": "Look.", "id": "two"}])


def background(*names: str) -> tuple[str, str]:
    agents = [{"task": "Look.", "id": name} for name in names]
    return spawn(mode="background", agents=agents)


def shown(path: Path, url: str, cast: Cast, clock: FakeClock) -> AbstractAsyncContextManager[World]:
    """A world whose platform shows live cards, in a time of its own."""
    models = ScriptedModels(ScriptedModel(cast))
    setup = setup_at(path, url, models, alone=url.startswith("sqlite"), clock=clock)
    return world(setup, platform())


def platform() -> FakeChat:
    """A chat with live cards, in which people see what was changed."""
    chat = FakeChat(capabilities=LIVE)
    chat.shows_edits = True
    return chat


async def passes(clock: FakeClock, condition: Callable[[], bool]) -> None:
    """Let time pass until `condition` holds."""
    async with asyncio.timeout(180):
        while not condition():
            await clock.advance(0.25)


async def kinds(at: World) -> list[str]:
    """What the outbox holds, in order."""

    def read(conn: Connection) -> list[str]:
        return list(conn.execute(select(outbox.c.kind).order_by(outbox.c.position)).scalars())

    return await at.database.read(read)


async def changes(at: World) -> list[int]:
    """When each state of the card was put into the outbox, in order: milliseconds."""
    query = select(outbox.c.created_ms).where(outbox.c.kind.in_(("batch", "edit")))

    def read(conn: Connection) -> list[int]:
        return list(conn.execute(query.order_by(outbox.c.position)).scalars())

    return await at.database.read(read)


def edits(at: World) -> list[str]:
    """What the changes of the card said."""
    parts = [part for one in at.chat.edits for part in one.parts]
    return [part.markdown for part in parts if isinstance(part, TextPart)]


@pytest.mark.requirement("SUB-7")
async def test_a_card_is_changed_in_place_and_ends_in_front_of_the_answer(
    tmp_path: Path, migrated_url: str
) -> None:
    first, second = Gate(), Gate()
    cast = Cast(
        [Said(calls=(background("one", "two"),)), "On their way.", "One is back.", "Both."],
        {"one": [Said("a", before=first)], "two": [Said("b", before=second)]},
    )
    clock = FakeClock()
    async with shown(tmp_path, migrated_url, cast, clock) as at:
        await at.says("look")
        await passes(clock, lambda: "On their way." in at.chat.texts())
        await passes(clock, lambda: first.reached.is_set() and second.reached.is_set())
        card = at.chat.sent[0]
        assert card.text.splitlines()[0] == "**2 subagents at work**, 0 done"
        assert r'- `one` ("Look\.") explore: waiting' in card.text
        await passes(clock, lambda: r'`two` ("Look\.") explore: running' in at.chat.sent[0].text)
        before = len(edits(at))

        first.open.set()
        await passes(clock, lambda: "1 done" in at.chat.sent[0].text)
        changed = await changes(at)
        assert len(changed) >= 3
        # The pause is counted from the beginning of a unit, and the row is put at its end.
        assert min(later - earlier for earlier, later in pairwise(changed)) > DIRECT_MS - 1000
        await passes(clock, lambda: "One is back." in at.chat.texts())
        assert r'`one` ("Look\.") explore: completed' in at.chat.sent[0].text
        assert len(edits(at)) == before + 1, "changed with news alone"

        second.open.set()
        await passes(clock, lambda: "Both." in at.chat.texts())
        last = edits(at)[-1]
        # Of many it says where to read more, by a command as people type it there.
        assert all(
            part.names_commands for one in (card.message, *at.chat.edits) for part in one.parts
        )
        assert last.startswith("**2 subagents**: 2 completed. ")
        assert "220 tokens, $0.0020" in last
        await clock.advance(60)
        assert edits(at)[-1] == last
        assert at.chat.texts() == [last, "On their way.", "One is back.", "Both."]
        there = await kinds(at)
        assert there[:2] == ["batch", "final"]
        assert there[-2:] == ["edit", "final"], "its last words stand in front of the answer"


@pytest.mark.requirement("SUB-7")
async def test_awaited_agents_have_a_card_and_what_failed_is_named(
    tmp_path: Path, migrated_url: str
) -> None:
    stays = Gate()
    cast = Cast(
        [Said(calls=(TWO,)), "One was stopped."],
        {"one": ["a"], "two": [Said("b", before=stays), "never"]},
    )
    clock = FakeClock()
    async with shown(tmp_path, migrated_url, cast, clock) as at:
        await at.says("look")
        await passes(clock, lambda: stays.reached.is_set() and "1 done" in at.chat.sent[0].text)
        await at.says("/stop")
        await passes(clock, lambda: at.chat.sent[0].text.startswith("**2 subagents**"))
        assert "1 completed, 1 cancelled (`two`)." in at.chat.sent[0].text
        assert sum("subagents" in text for text in at.chat.texts()) == 1


@pytest.mark.requirement("SUB-7")
async def test_one_agent_alone_and_a_platform_without_cards_get_none(
    tmp_path: Path, migrated_url: str
) -> None:
    cast = Cast(
        [Said(calls=(spawn(task="Look.", id="one"),)), "One.", Said(calls=(background("a", "b"),))]
        + ["Both are on their way."] * 3,
        {name: [name] for name in ("one", "a", "b")},
    )
    async with played(tmp_path, migrated_url, cast) as at:
        await at.says("look")
        assert await at.sees(1) == ["One."]
        assert "batch" not in await kinds(at)
        await at.says("look again")
        await at.sees(2)
        assert "batch" in await kinds(at)
        assert not any("subagents" in text for text in at.chat.texts())
        assert at.chat.edits == []


@pytest.mark.requirement("SUB-7")
async def test_a_child_that_sends_others_shows_no_card_of_its_own(
    tmp_path: Path, migrated_url: str
) -> None:
    cast = Cast(
        [Said(calls=(spawn(task="Look.", id="top", type="general"),)), "Done."],
        {"top": [Said(calls=(TWO,)), "x"], "one": ["a"], "two": ["b"]},
    )
    async with played(tmp_path, migrated_url, cast) as at:
        await at.says("look")
        assert await at.sees(1) == ["Done."]
        assert await kinds(at) == ["final"]


@pytest.mark.requirement("SUB-23")
async def test_after_a_crash_the_same_card_goes_on(tmp_path: Path, migrated_url: str) -> None:
    stays = Gate()
    script = Cast(
        [Said(calls=(background("one", "two"),)), *["Said."] * 4],
        {"one": ["a"], "two": [Said("b", before=stays), "b"]},
    )
    clock, chat = FakeClock(), platform()
    models = ScriptedModels(ScriptedModel(script))
    setup = setup_at(
        tmp_path, migrated_url, models, alone=migrated_url.startswith("sqlite"), clock=clock
    )
    async with world(setup, chat) as at:
        await at.says("look")
        await passes(clock, stays.reached.is_set)
        await passes(clock, lambda: "1 done" in chat.sent[0].text)
    stays.open.set()
    async with world(setup, chat) as at:
        await passes(clock, lambda: chat.sent[0].text.startswith("**2 subagents**: 2 completed"))
        assert sum("subagents" in text for text in chat.texts()) == 1
