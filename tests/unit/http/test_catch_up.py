"""Turns of streams that are behind: so many at once, in order, and held up by nobody (API-4)."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from gateway.http.catch_up import Turns
from runtime.process.wakeup import TICK_S
from tests.fakes.clock import FakeClock, settle
from tests.fakes.model import Gate

pytestmark = pytest.mark.requirement("API-4", "SEC-7")


@dataclass
class Line:
    """Streams that ask for turns, by name, and who has had one."""

    clock: FakeClock = field(default_factory=FakeClock)
    had: list[str] = field(default_factory=list)
    gates: dict[str, Gate] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.turns = Turns(self.clock, most=1)

    async def asks(
        self, name: str, beat: Callable[[], object] = lambda: None
    ) -> asyncio.Task[None]:
        """Ask for a turn, which lasts until its gate is opened."""
        gate = self.gates[name] = Gate()

        async def beats() -> None:
            if isinstance(said := beat(), Gate):
                await said.wait()

        async def has() -> None:
            async with self.turns.turn(beats):
                self.had.append(name)
                await gate.wait()

        task = asyncio.create_task(has(), name=name)
        await settle()
        return task

    async def ends(self, name: str) -> None:
        """End a turn."""
        self.gates[name].open.set()
        await settle()


async def test_turns_are_had_one_after_the_other_in_order() -> None:
    line = Line()
    for name in "abc":
        await line.asks(name)
    assert line.had == ["a"]
    await line.ends("a")
    assert line.had == ["a", "b"]
    await line.asks("d")
    await line.ends("b")
    await line.ends("c")
    await line.ends("d")
    assert line.had == ["a", "b", "c", "d"]
    await line.asks("e")
    assert line.had[-1] == "e", "what was given back is free"
    await line.ends("e")


async def test_who_leaves_the_line_or_a_turn_costs_nobody_a_turn() -> None:
    line = Line()
    first, second, third = [await line.asks(name) for name in "abc"]
    second.cancel()
    await settle()
    first.cancel()
    # Given a turn and cancelled, before it could begin.
    third.cancel()
    await asyncio.wait([first, second, third])
    await line.asks("d")
    assert line.had == ["a", "d"]
    await line.ends("d")


async def test_a_reader_that_takes_no_heartbeat_holds_up_nobody() -> None:
    line, slow = Line(), Gate()
    beats: list[str] = []
    await line.asks("a")
    await line.asks("slow", lambda: slow)
    await line.asks("c", lambda: beats.append("c"))
    await line.clock.advance(TICK_S)
    await line.clock.advance(TICK_S)
    assert beats == ["c", "c"]
    assert slow.reached.is_set()
    await line.ends("a")
    assert line.had == ["a", "c"]
    await line.ends("c")
    assert line.had == ["a", "c"]
    slow.open.set()
    await settle()
    assert line.had == ["a", "c", "slow"], "its turn comes once it has written"
    await line.ends("slow")


async def test_a_turn_that_comes_with_a_tick_is_not_lost() -> None:
    line = Line()
    first = await line.asks("a")
    waiting = await line.asks("b")
    line.clock.call_later(TICK_S, line.gates["a"].open.set)
    await line.clock.advance(TICK_S)
    await settle()
    await asyncio.wait([first])
    assert line.had == ["a", "b"]
    await line.ends("b")
    await waiting
