"""Conditions of schedules by the tools, as a model calls them for whoever asked it (SCH-9)."""

import json
from dataclasses import replace

import pytest
from sqlalchemy import Connection, select

from runtime.domain.messages import ApprovalPart
from runtime.features.schedules.kind import SPEAK
from runtime.features.schedules.tables import schedules
from runtime.features.schedules.tools import ELSEWHERE, TAINTED
from runtime.sessions import runs
from runtime.sessions.tables import messages, sessions
from tests.fakes.model import Said
from tests.fakes.sandbox import FakeSandbox
from tests.scenario.cards import MEMBER, card, results
from tests.scenario.engine import OWNER, Setup
from tests.scenario.schedules.test_gates import COMMAND, printing, script
from tests.scenario.schedules.test_reminders import GROUP, HERE, House, goes_on, hears, house
from tests.scenario.schedules.test_tools import ID, Agent, told

__all__ = ["house"]
pytestmark = pytest.mark.requirement("SCH-9")


async def test_a_gate_is_made_shown_and_edited_and_asked_about_each_time(house: House) -> None:
    agent, gate = Agent(), printing("news")

    def change(setup: Setup) -> Setup:
        programs = {COMMAND: gate, f"{COMMAND} now": gate}
        return replace(setup, sandbox=FakeSandbox(setup.clock, programs))

    async with house.begins(agent.model, change=change) as at:
        script(at)
        await hears(at, "/timezone UTC")
        answer = await told(
            agent, at, "create", when="every 10 minutes", text="post it", gate=COMMAND
        )
        assert "asks the agent: post it" in answer
        assert f"only if its gate prints news (waiting for approval): {COMMAND}" in answer
        found = ID.search(answer)
        assert found
        await goes_on(at, 1)
        shown = await card(at)
        assert isinstance(shown, ApprovalPart)
        assert shown.arguments == COMMAND
        assert "It runs every 600 seconds." in shown.reason
        await at.presses(shown.open_call_id, "approve")
        answer = await told(agent, at, "get", id=found.group())
        assert f"only if its gate prints news (approved): {COMMAND}" in answer
        answer = await told(agent, at, "update", id=found.group(), gate=f"{COMMAND} now")
        assert "(waiting for approval)" in answer
        await goes_on(at, 600)
        assert gate.ran == 0
        shown = await card(at, 2)
        assert isinstance(shown, ApprovalPart)
        assert shown.arguments == f"{COMMAND} now"
        await at.presses(shown.open_call_id, "approve")
        await goes_on(at, 600)
        assert gate.ran == 1
        refused = await told(agent, at, "update", id=found.group(), gate=COMMAND)
        assert refused == TAINTED, "what it printed decides about no command"


async def test_where_an_approver_does_not_read_the_card_goes_to_an_owner(house: House) -> None:
    agent, gate = Agent(), printing("news")
    async with house.begins(agent.model, change=gate.change) as at:
        script(at)
        await hears(at, "hello")
        said = {"user": MEMBER, "chat_id": GROUP, "kind": "group"}
        await hears(at, "/timezone UTC", **said)
        await agent.does(
            at, "create", said=said, when="every 10 minutes", text="post it", gate=COMMAND
        )
        await goes_on(at, 1)
        shown = await card(at)
        (target,) = [one.target.chat_id for one in at.chat.sent if shown in one.message.parts]
        assert target == HERE
        assert f"goes to test {GROUP}." in shown.reason


async def test_observations_and_heartbeats_are_made_by_name(house: House) -> None:
    agent = Agent()
    async with house.begins(agent.model) as at:
        await hears(at, "/timezone UTC")
        answer = await told(agent, at, "create", when="every day at 9", text="look", watch="inbox")
        assert "only if something changed under: inbox" in answer
        before = len(at.chat.texts(HERE))
        accepted = await at.says("hi")
        await at.sees(before + 1, HERE)
        session = accepted.session_id or ""
        answer = await told(
            agent, at, "create", when="every day at 9", text="sum up", observe=session
        )
        assert f"only if something was said in: {session}" in answer
        answer = await told(agent, at, "create", when="every day at 9", text="look", heartbeat=True)
        assert f"as a heartbeat: only what is given by {SPEAK} is heard" in answer
        for arguments, rule in (
            ({"watch": "inbox", "observe": session}, "exactly one of session_id and watch_path"),
            ({"observe": "ses_unknown"}, "may read"),
            ({"heartbeat": True, "text": "x" * 2_001}, "at most 2,000 characters"),
        ):
            given = {"when": "every day at 9", "text": "look", **arguments}
            assert rule in await told(agent, at, "create", **given)


async def test_a_group_is_told_nothing_of_what_its_asker_says_elsewhere(house: House) -> None:
    """An owner may read every session, but not everybody who reads along may."""
    agent = Agent()
    async with house.begins(agent.model) as at:
        await hears(at, "/timezone UTC")
        before = len(at.chat.texts(HERE))
        private = (await at.says("my secret")).session_id or ""
        await at.sees(before + 1, HERE)
        said: dict[str, object] = {"chat_id": GROUP, "kind": "group"}
        given = {"when": "every day at 9", "text": "sum up"}
        for other in (private, "ses_unknown"):
            refused = await agent.does(at, "create", said=said, observe=other, **given)
            assert ELSEWHERE in refused
        before = len(at.chat.texts(GROUP))
        here = (await at.says("hello", chat_id=GROUP, kind="group")).session_id or ""
        await at.sees(before + 1, GROUP)
        made = await agent.does(at, "create", said=said, observe=here, **given)
        assert f"only if something was said in: {here}" in made


async def test_no_other_run_gives_the_result_of_a_heartbeat(house: House) -> None:
    agent = Agent()
    async with house.begins(agent.model) as at:
        agent._calls.append(Said(calls=((SPEAK, '{"speak": true, "text": "psst"}'),)))
        await at.says("please speak", user=OWNER)
        await at.sees(1, HERE)
        assert at.chat.texts(HERE) == ["done"], "it says nothing there"
    assert results(agent.model.requests[-1])[0].status == "ok"


@pytest.mark.requirement("MSG-3")
async def test_one_made_in_a_chat_runs_beside_it_answers_there_and_leaves_a_line(
    house: House,
) -> None:
    agent = Agent()
    async with house.begins(agent.model) as at:
        there = {"user": MEMBER, "chat_id": GROUP, "kind": "channel", "thread": "T7"}
        await agent.does(
            at, "create", said=there, when="in 5 minutes", text="post 42", ask=True, name="sums"
        )
        before = len(at.chat.texts(GROUP))
        await goes_on(at, 300)
        await at.sees(before + 1, GROUP)
        sent = at.chat.sent[-1]
        assert (sent.text, sent.target.chat_id, sent.target.thread_id) == ("done", GROUP, "T7")
        await goes_on(at, 1)

        def look(conn: Connection) -> tuple[str, str, str | None, list[str]]:
            row = conn.execute(select(schedules)).one()
            key = select(sessions.c.key).where(sessions.c.id == row.lane_id)
            said = select(messages.c.payload).where(
                messages.c.session_id == row.session_id, messages.c.role == "notice"
            )
            lines = [json.loads(one)["text"] for one in conn.execute(said).scalars()]
            return row.id, conn.execute(key).scalar_one(), row.lane_id, lines

        made, key, lane, lines = await at.database.read(look)
        assert key == f"schedule:{made}"
        assert lines == ["The schedule 'sums' ran at its time and answered: done"]
        run = agent.model.requests[-1].run_id
        found = await at.database.read(lambda conn: runs.get(conn, run))
        assert found.session_id == lane
