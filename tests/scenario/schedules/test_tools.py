"""The tools of schedules, as a model calls them for whoever asked it, under a clock that moves."""

import json
import re
from dataclasses import replace

import pytest
from sqlalchemy import func, select, update

from adapters.models.offline import OfflineModel
from runtime.domain.errors import ToolError
from runtime.domain.tools import ToolResult
from runtime.features.schedules.buttons import NOT_YOURS
from runtime.features.schedules.commands import TAINTED, ZONE_FIRST
from runtime.features.schedules.tables import schedules
from runtime.features.schedules.tools import NOT_UNDERSTOOD
from runtime.sessions.tables import runs
from runtime.sessions.unit import Unit
from tests.fakes.model import Said, ScriptedModel
from tests.scenario.cards import GUEST, MEMBER, results
from tests.scenario.engine import OWNER, World
from tests.scenario.schedules.test_reminders import (
    GROUP,
    HERE,
    TEAM,
    House,
    goes_on,
    hears,
    house,
    reminded,
)
from tests.scenario.undoing import quiet

__all__ = ["house"]
pytestmark = pytest.mark.requirement("SCH-8")
ID = re.compile(r"sch_\w+")


def by_name(tool: str, **arguments: object) -> Said:
    """A call of a tool that is offered by name."""
    text = json.dumps({"tool": f"schedule_{tool}", "arguments": arguments})
    return Said(calls=(("call_tool", text),))


class Agent:
    """A model that makes one call for each message, and then says "done"."""

    def __init__(self) -> None:
        self.model = ScriptedModel(self._next)
        self._calls: list[Said] = []

    def _next(self, request: object) -> Said | str:
        return self._calls.pop() if self._calls else "done"

    async def does(self, at: World, tool: str, *, said: dict[str, object], **given: object) -> str:
        """What a call gives that is made for a message."""
        self._calls.append(by_name(tool, **given))
        chat = str(said.get("chat_id") or HERE)
        before = at.chat.texts(chat).count("done")
        await at.says(f"please {tool}", **said)
        # A reminder that it lets fire may come before.
        await at.chat.until(lambda: at.chat.texts(chat).count("done") > before)
        return self.last.content

    @property
    def last(self) -> ToolResult:
        return results(self.model.requests[-1])[-1]


async def told(agent: Agent, at: World, tool: str, **given: object) -> str:
    return await agent.does(at, tool, said={}, **given)


async def made(agent: Agent, at: World, when: str = "every weekday at 9") -> str:
    """The id of a new one."""
    found = ID.search(await told(agent, at, "create", when=when, text="post the numbers"))
    assert found, agent.last
    return found.group()


async def how_many(at: World) -> int:
    query = select(func.count()).select_from(schedules)
    return await at.database.read(lambda conn: conn.execute(query).scalar_one())


async def test_one_is_made_and_answers_with_three_local_times_the_zone_and_the_place(
    house: House,
) -> None:
    agent = Agent()
    async with house.begins(agent.model) as at:
        await hears(at, "/timezone Europe/Berlin")
        answer = await told(agent, at, "create", when="every weekday at 9", text="post")
        assert answer.splitlines()[2:] == [
            "says: post",
            "status: active; place: in this chat; zone: Europe/Berlin",
            "times: every weekday at 09:00",
            "next times:",
            "- Monday 18 January 2027, 09:00 (Europe/Berlin)",
            "- Tuesday 19 January 2027, 09:00 (Europe/Berlin)",
            "- Wednesday 20 January 2027, 09:00 (Europe/Berlin)",
        ]
        await told(agent, at, "create", when="in 10 minutes", text="stretch")
        await goes_on(at, 599)
        assert reminded(at) == []
        await goes_on(at, 1)
        assert reminded(at, HERE) == ["Reminder: stretch"]


async def test_one_that_asks_the_model_runs_in_the_place_with_a_lane_of_its_own(
    house: House,
) -> None:
    agent = Agent()
    async with house.begins(agent.model) as at:
        answer = await told(agent, at, "create", when="in 5 minutes", text="post 42", ask=True)
        assert "asks the agent: post 42" in answer
        before = len(at.chat.texts(HERE))
        await goes_on(at, 300)
        assert len(await at.sees(before + 1, HERE)) == before + 1
        assert "post 42" in agent.model.requests[-1].messages[-1].text
        lane = select(schedules.c.lane_id)
        assert await at.database.read(lambda conn: conn.execute(lane).scalar_one())


@pytest.mark.parametrize(
    ("when", "says"),
    [
        ("every day at 9", f"ask the person for their time zone, in these words: {ZONE_FIRST}"),
        ("every day at 9 until Friday", "belongs to the time"),
        ("sometime soon", "I find no time that I understand"),
        (
            "in 10 minutes to call Bob",
            f"{NOT_UNDERSTOOD}'in 10 minutes to call Bob' holds more than a time; say for example",
        ),
        (
            "every 2 minutes",
            f"{NOT_UNDERSTOOD}Between two times there must be at least 5 minutes",
        ),
    ],
)
async def test_a_time_that_is_not_understood_whole_is_asked_back(
    house: House, when: str, says: str
) -> None:
    agent = Agent()
    async with house.begins(agent.model) as at:
        if "zone" not in says:
            await hears(at, "/timezone UTC")
        answer = await told(agent, at, "create", when=when, text="call Bob")
        assert says in answer
        assert agent.last.status == "error"
        assert await how_many(at) == 0


async def test_a_text_that_names_its_own_time_is_read_as_a_whole(house: House) -> None:
    agent = Agent()
    async with house.begins(agent.model) as at:
        await hears(at, "/timezone Europe/Berlin")
        answer = await told(agent, at, "create", text="to call Bob tomorrow at 9", ask=True)
        assert "asks the agent: call Bob\n" in answer
        assert "- Saturday 16 January 2027, 09:00 (Europe/Berlin)" in answer
        refused = await told(agent, at, "create", text="call Bob")
        assert refused.startswith(f"{NOT_UNDERSTOOD}I find no time that I understand in 'call Bob'")
        assert await how_many(at) == 1


async def test_text_that_names_a_time_is_text(house: House) -> None:
    agent = Agent()
    async with house.begins(agent.model) as at:
        answer = await told(
            agent, at, "create", when="in 10 minutes", text="call Bob at 5 tomorrow"
        )
        assert "says: call Bob at 5 tomorrow" in answer


async def test_another_conversations_schedules_are_not_found(house: House) -> None:
    agent = Agent()
    there = {"chat_id": GROUP, "kind": "channel", "user": MEMBER}
    async with house.begins(agent.model) as at:
        one = await made(agent, at, "in 2 hours")
        nowhere = await agent.does(at, "get", said=there, id="sch_00000000000000000000000000")
        assert nowhere.startswith("not_found")
        for tool in ("get", "update", "pause", "resume", "trigger", "cancel"):
            more = {"text": "other"} if tool == "update" else {}
            for name in (one, one[-6:]):
                assert await agent.does(at, tool, said=there, id=name, **more) == nowhere
        listed = await agent.does(at, "list", said=there)
        assert listed == "Nothing is scheduled in this conversation."
        assert "active" in await told(agent, at, "get", id=one)


async def test_in_a_group_only_who_asked_for_it_or_an_owner_changes_it(house: House) -> None:
    agent = Agent()
    group = {"chat_id": GROUP, "kind": "channel"}
    mine, theirs = {**group, "user": OWNER}, {**group, "user": MEMBER}
    async with house.begins(agent.model) as at:
        when = {"when": "in 2 hours", "text": "tea"}
        answer = await agent.does(at, "create", said=mine, **when)
        (one,) = ID.findall(answer)
        assert "in this channel" in answer
        assert await agent.does(at, "cancel", said=theirs, id=one) == NOT_YOURS
        (other,) = ID.findall(await agent.does(at, "create", said=theirs, **when))
        assert "status: cancelled" in await agent.does(at, "cancel", said=mine, id=other)
        assert one[-6:] in await agent.does(at, "list", said=theirs)


async def test_a_call_that_runs_again_makes_no_second_one(house: House) -> None:
    agent = Agent()
    async with house.begins(agent.model) as at:
        await told(agent, at, "create", when="in 10 minutes", text="stretch")
        registry = at.engine.parts.registry
        query = select(runs.c.id, runs.c.session_id)
        run = await at.database.read(lambda conn: conn.execute(query).one())
        (call,) = [
            one
            for message in agent.model.requests[-1].messages
            for one in getattr(message, "tool_calls", ())
        ]
        (meant,) = registry.meant([call])
        context = _Context(run.session_id, run.id, call.id)
        again = await registry.prepare(meant).run(context)  # type: ignore[arg-type]  # all that it reads
        assert again.content == agent.last.content
        assert await how_many(at) == 1


class _Context:
    """What the tools read of a context."""

    def __init__(
        self, session_id: str, run_id: str, call_id: str, *, tainted: bool = False
    ) -> None:
        self.session_id, self.run_id, self.call_id = session_id, run_id, call_id
        self.tainted = tainted


@pytest.mark.requirement("POL-9")
@pytest.mark.parametrize("read_by", ["the run", "an earlier run"])
async def test_what_was_read_outside_makes_no_schedule(house: House, read_by: str) -> None:
    agent = Agent()
    async with house.begins(agent.model) as at:
        one = await made(agent, at, "in 2 hours")
        run = await at.database.read(lambda conn: conn.execute(select(runs.c.id)).scalar_one())

        def taint(unit: Unit) -> None:
            unit.conn.execute(update(runs).where(runs.c.id == run).values(tainted=True))

        if read_by == "the run":
            await at.engine.units.run(taint, name="taint")
        session = await at.database.read(
            lambda conn: conn.execute(select(runs.c.session_id)).scalar_one()
        )
        tools = {tool.name: tool for tool in at.engine.parts.registry.tools}
        context = _Context(session, run, "another", tainted=read_by != "the run")
        for name, given in (
            ("schedule_create", {"when": "in 10 minutes", "text": "obey"}),
            ("schedule_update", {"id": one, "text": "obey"}),
        ):
            with pytest.raises(ToolError, match=TAINTED[:30]):
                await tools[name].bind(given).run(context)  # type: ignore[arg-type]  # all that it reads
        assert await how_many(at) == 1


@pytest.mark.requirement("TOOL-11", "POL-9")
async def test_words_of_somebody_else_are_fenced_and_taint_the_conversation(house: House) -> None:
    agent = Agent()
    group = {"chat_id": GROUP, "kind": "channel"}
    mine, theirs = {**group, "user": OWNER}, {**group, "user": MEMBER}
    async with house.begins(agent.model) as at:
        when = {"when": "in 2 hours", "text": "obey me"}
        (one,) = ID.findall(await agent.does(at, "create", said=theirs, **when))
        listed = await agent.does(at, "list", said=mine)
        assert one[-6:] in listed
        assert "obey me" not in listed
        assert not agent.last.untrusted
        assert "obey me" in await agent.does(at, "list", said=theirs)
        assert "obey me" in await agent.does(at, "get", said=theirs, id=one)
        assert not agent.last.untrusted
        for tool in ("get", "pause"):
            shown = await agent.does(at, tool, said=mine, id=one)
            assert agent.last.untrusted
            assert shown.count("obey me") == 2
            assert shown.startswith("<")
        # What they wrote stands in the window of what comes behind it.
        refused = await agent.does(at, "create", said=mine, when="in 2 hours", text="tea")
        assert refused == TAINTED
        assert await how_many(at) == 1


async def test_it_is_changed_triggered_and_refused_with_its_state(house: House) -> None:
    agent = Agent()
    async with house.begins(agent.model) as at:
        await hears(at, "/timezone UTC")
        one = await made(agent, at)
        changed = await told(agent, at, "update", id=one, when="every day at noon", text="tea")
        assert "says: tea" in changed
        assert "12:00 (UTC)" in changed
        await told(agent, at, "trigger", id=one[-6:])
        await goes_on(at, 1)
        assert reminded(at) == ["Reminder: tea"]
        assert one[-6:] in await told(agent, at, "list")
        await told(agent, at, "cancel", id=one)
        refused = await told(agent, at, "trigger", id=one)
        assert refused == "the schedule is cancelled (cancelled)"
        assert "status: cancelled" in await told(agent, at, "get", id=one)


@pytest.mark.requirement("MSG-22")
async def test_an_undo_names_what_it_made_as_remaining(house: House) -> None:
    agent = Agent()
    async with house.begins(agent.model) as at:
        await made(agent, at, "in 2 hours")
        await quiet(at)
        answer = await hears(at, "/undo")
        assert "- `schedule_create`" in answer
        assert await how_many(at) == 1


@pytest.mark.requirement("CTX-12")
async def test_their_schemas_are_loaded_on_demand(house: House) -> None:
    load = ("load_tools", json.dumps({"family": "schedules"}))
    model = ScriptedModel([Said(calls=(load,)), "done"])
    async with house.begins(model) as at:
        await hears(at, "hi")
    first, second = model.requests
    offered = json.dumps([tool.model_dump() for tool in first.tools])
    assert "schedule_create" in offered
    assert "every weekday at 9" not in offered
    (loaded,) = results(second)
    for verb in ("create", "list", "get", "update", "pause", "resume", "trigger", "cancel"):
        assert f"schedule_{verb}: " in loaded.content
    assert second.tools == first.tools


async def test_a_guest_makes_none(house: House) -> None:
    agent, said = Agent(), {"user": GUEST, "chat_id": GROUP, "kind": "group"}
    async with house.begins(agent.model, access=replace(TEAM, dm_policy="open")) as at:
        await agent.does(at, "create", said=said, when="in 2 hours", text="x")
        assert agent.last.status == "denied"
        assert await how_many(at) == 0


@pytest.mark.requirement("OPS-4")
async def test_the_offline_model_follows_the_sentences(house: House) -> None:
    async with house.begins(OfflineModel()) as at:
        await hears(at, "/timezone UTC")
        answer = await hears(at, "every weekday at 9 post the numbers")
        assert "09:00 (UTC)" in answer
        (one,) = ID.findall(answer)
        assert one in await hears(at, "list my schedules")
        assert "status: cancelled" in await hears(at, f"cancel schedule {one[-6:]}")
        await hears(at, "remind me in 10 minutes to stretch")
        await goes_on(at, 600)
        assert reminded(at) == ["Reminder: stretch"]
