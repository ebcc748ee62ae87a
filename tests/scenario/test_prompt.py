"""What a real turn sends to the model, as its requests show it (CTX-2, CTX-3, CTX-6, CTX-7)."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from adapters.models.translation import to_messages
from runtime.ports.model import ModelRequest
from runtime.sessions import claims, transcripts
from runtime.sessions.claims import Claims
from tests.fakes.clock import FakeClock
from tests.fakes.model import Said, ScriptedModel
from tests.scenario.cards import both, call, offering
from tests.scenario.conftest import Worlds, agent
from tests.scenario.engine import OWNER, Setup
from tests.scenario.tools import Note

NOTES = "words that only the owner should read"


def timed(clock: FakeClock) -> Callable[[Setup], Setup]:
    """A setup under virtual time."""
    return lambda setup: replace(setup, clock=clock)


@pytest.mark.requirement("CTX-3", "CTX-2")
async def test_fifty_turns_share_their_beginning_byte_by_byte(worlds: Worlds) -> None:
    clock = FakeClock()
    model = ScriptedModel(
        lambda request: (
            Said(calls=(call(f"n{len(model.requests)}"),)) if request.step == 1 else "noted"
        )
    )
    async with worlds(model, change=both(offering(Note()), timed(clock))) as world:
        for turn in range(50):
            if turn in (10, 30):
                await clock.advance(61.0)
                seen = len(world.chat.texts())
                await world.says("/plan" if turn == 10 else "/edit")
                await world.sees(seen + 1)
            seen = len(world.chat.texts())
            await world.says(f"turn {turn}")
            await world.sees(seen + 1)
    turns = [request for request in model.requests if request.step == 1]
    assert len(turns) == 50
    assert len({request.system for request in turns}) == 1
    assert all(request.tools == turns[0].tools for request in turns)
    assert len({request.present for request in turns}) == 3
    for earlier, later in pairwise(model.requests):
        assert later.messages[: len(earlier.messages)] == earlier.messages
    sent = [_wire(request) for request in turns]
    for before, after in pairwise(sent):
        assert after[: len(before) - 1] == before[:-1], "what is sent is the same but for its end"
    assert "plan: read only" in turns[20].present
    assert "edit: you may change" in turns[40].present


@pytest.mark.requirement("CTX-2")
async def test_a_turn_says_where_it_is_and_who_speaks_when(worlds: Worlds) -> None:
    clock = FakeClock()
    model = ScriptedModel(["hello"])
    change = both(timed(clock), agent(timezone="Europe/Berlin"))
    async with worlds(model, change=change) as world:
        await world.says("hi")
        await world.sees(1)
    (request,) = model.requests
    assert "Session: test:A1:D-U-owner" in request.system
    assert "Channel: test." in request.system
    assert str(world.workspace) in request.system
    assert "read_file" in request.system
    assert "Friday 2027-01-15 09:00 (Europe/Berlin" in request.present
    assert "Speaking: owner" in request.present
    assert '"owner"' in request.present


@pytest.mark.requirement("CTX-6")
@pytest.mark.parametrize(("kind", "told"), [("direct", True), ("group", False), ("topic", False)])
async def test_private_files_are_in_the_prompt_of_the_owners_own_chat_alone(
    worlds: Worlds, kind: str, told: bool
) -> None:
    model = ScriptedModel(["hello"])
    async with worlds(model) as world:
        for name in ("USER.md", "memory/MEMORY.md"):
            (world.workspace / name).write_text(f"{NOTES} in {name}")
        await world.says("hi", user=OWNER, chat_id="G1", kind=kind)
        await world.sees(1)
    (request,) = model.requests
    assert (f"{NOTES} in USER.md" in request.system) is told
    assert (f"{NOTES} in memory/MEMORY.md" in request.system) is told
    assert NOTES not in request.present


@pytest.mark.requirement("CTX-5")
async def test_an_edited_file_is_in_the_next_turns_prompt(worlds: Worlds) -> None:
    model = ScriptedModel(["one", "two"])
    async with worlds(model) as world:
        await world.says("hi")
        await world.sees(1)
        (world.workspace / "SOUL.md").write_text("Speak like a sailor.")
        await world.says("and now?")
        await world.sees(2)
    assert ["Speak like a sailor." in one.system for one in model.requests] == [False, True]


@pytest.mark.requirement("CTX-7")
async def test_a_long_session_costs_no_more_a_turn_and_loses_no_row(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """History is bounded in what is sent, and in what a restarted worker reads for a turn."""
    read: list[int] = []
    real = claims.claim

    def counted(*given: object, **named: object) -> Claims:
        found = real(*given, **named)
        read.extend(len(one.window.lines) for one in found.runs)
        return found

    monkeypatch.setattr(claims, "claim", counted)
    model = ScriptedModel(
        lambda request: Said(calls=(call("x" * 200),)) if request.step == 1 else "y" * 400
    )
    change = both(offering(Note()), agent(window_tokens=2_000))
    async with worlds(model, change=change) as world:
        for turn in range(60):
            said = await world.says(f"turn {turn} " + "z" * 200)
            await world.sees(turn + 1)
    first = len(model.requests)
    assert max(_size(one) for one in model.requests) < 2_500 * 4
    assert max(read) < 60
    read.clear()
    async with worlds(model, change=change) as restarted:
        await restarted.says("do you remember?", message_id="later")
        await restarted.sees(1)
        kept = await restarted.database.read(
            lambda conn: transcripts.since(conn, said.session_id or "", transcript=1, first=1)
        )
    assert len(model.requests) == first + 2
    assert read[0] < 60, "the whole transcript was not read"
    roles = [line.message.role for line in kept]
    assert roles == ["user", "assistant", "tool", "assistant"] * 61


def _wire(request: ModelRequest) -> list[list[object]]:
    """What a provider is given, message by message, without the time stamps of its library."""
    return [
        [
            (part.part_kind, getattr(part, "content", None), getattr(part, "args", None))
            for part in message.parts
        ]
        for message in to_messages(request)
    ]


def _size(request: ModelRequest) -> int:
    """Characters of the history that a request carries."""
    return sum(len(one.model_dump_json()) for one in request.messages) - 100 * len(request.messages)
