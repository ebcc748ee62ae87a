"""When a worker looks for runs: once for a message, and again wherever something may be left.

The clock stands still, so no tick's look helps.
"""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runtime.domain.messages import OutboundMessage, Receipt
from runtime.sessions import claims
from runtime.sessions.claims import Claims
from tests.fakes.model import Gate, Said, ScriptedModel
from tests.scenario.engine import Setup
from tests.scenario.scaling import at_rest, scaled

BOTH = ("sqlite", "postgresql")


def one_turn(setup: Setup) -> Setup:
    """A worker with room for one turn."""
    return replace(setup, settings=replace(setup.settings, turns=1))


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many runs each claim found."""
    found: list[int] = []
    real = claims.claim

    def counted(*given: object, **named: object) -> Claims:
        got = real(*given, **named)
        found.append(len(got.runs))
        return got

    monkeypatch.setattr(claims, "claim", counted)
    return found


@pytest.mark.requirement("SCALE-3")
@pytest.mark.parametrize("dialect", BOTH)
async def test_a_lone_message_is_claimed_once_and_nothing_is_looked_for_behind_it(
    dialect: str, tmp_path: Path, looks: list[int]
) -> None:
    async with scaled(tmp_path, dialect, ScriptedModel(lambda _: "ok")) as (running, _):
        await at_rest(running)
        looks.clear()
        for number in range(3):
            await running.says("hello", chat_id="D-one")
            await running.chat.until(lambda due=number + 1: len(running.chat.sent) == due)
            await at_rest(running)
    assert looks == [1, 1, 1]


@pytest.mark.requirement("MSG-4", "SCALE-3")
@pytest.mark.parametrize("dialect", BOTH)
async def test_what_found_no_room_is_claimed_as_soon_as_a_turn_ends(
    dialect: str, tmp_path: Path
) -> None:
    gate = Gate()
    model = ScriptedModel(
        lambda request: (
            Said("late", before=gate) if request.messages[-1].text == "wait" else "at once"
        )
    )
    async with scaled(tmp_path, dialect, model, one_turn) as (running, _):
        await running.says("wait", chat_id="D-one")
        await gate.reached.wait()
        for chat in ("D-two", "D-three"):
            await running.says("hello", chat_id=chat)
        await at_rest(running)
        assert running.chat.texts("D-two") == []
        gate.open.set()
        await running.chat.until(lambda: len(running.chat.sent) == 3)
        assert [running.chat.texts(chat) for chat in ("D-one", "D-two", "D-three")] == [
            ["late"],
            ["at once"],
            ["at once"],
        ]


@pytest.mark.requirement("MSG-4", "SCALE-3")
@pytest.mark.parametrize("dialect", BOTH)
async def test_what_waits_in_the_lane_of_a_run_is_claimed_as_soon_as_that_ends(
    dialect: str, tmp_path: Path
) -> None:
    gate = Gate()
    model = ScriptedModel(
        lambda request: (
            Said("late", before=gate) if request.messages[-1].text == "wait" else "at once"
        )
    )
    async with scaled(tmp_path, dialect, model) as (running, _):
        await running.says("/queue followup", chat_id="D-one")
        await running.chat.until(lambda: len(running.chat.sent) == 1)
        await running.says("wait", chat_id="D-one")
        await gate.reached.wait()
        await running.says("hello", chat_id="D-one")
        await at_rest(running)
        gate.open.set()
        await running.chat.until(lambda: len(running.chat.sent) == 3)
        assert running.chat.texts("D-one")[1:] == ["late", "at once"]


@pytest.mark.requirement("MSG-21")
@pytest.mark.parametrize("dialect", BOTH)
async def test_what_a_claim_passed_over_for_a_receipt_is_claimed_behind_it(
    dialect: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock stands: only the receipt's end can tell of it."""
    posted, receipt, passed = asyncio.Event(), asyncio.Event(), asyncio.Event()
    real = claims.claim

    def held(*given: object, **named: object) -> Claims:
        if posted.is_set() and not receipt.is_set():
            passed.set()
            return Claims((), passed_over=True)
        return real(*given, **named)

    async with scaled(tmp_path, dialect, ScriptedModel(lambda _: "ok")) as (running, _):
        send = running.chat.send

        async def slow(message: OutboundMessage, **named: Any) -> Receipt:
            done = await send(message, **named)
            posted.set()
            await receipt.wait()
            return done

        monkeypatch.setattr(running.chat, "send", slow)
        monkeypatch.setattr(claims, "claim", held)
        await running.says("hello", chat_id="D-one")
        await posted.wait()
        await running.says("again", chat_id="D-one")
        async with asyncio.timeout(120):
            while not passed.is_set():
                await at_rest(running)
        await at_rest(running)
        assert len(running.chat.sent) == 1
        receipt.set()
        await running.chat.until(lambda: len(running.chat.sent) == 2)
