"""`mailboxes` and `agents summaries` as a person types them."""

import json

import pytest

from tests.conftest import FailAfter
from tests.scenario.process.program import Place, command, gateway, reaching
from tests.scenario.process.talk import conversation, say

EXPLORE = "ask two explorers to read AGENTS.md and SOUL.md, then compare"


@pytest.mark.requirement("OPS-2", "MBX-1", "AGT-2")
async def test_a_message_is_sent_listed_and_found_among_the_agents(
    place: Place, fail_after: FailAfter
) -> None:
    async with fail_after(120), gateway(place) as program:
        url = await program.url()
        there = reaching(place, url)
        async with conversation(url) as talk:
            await say(talk, EXPLORE)
        listed = await command(there, "agents", "summaries", "--root", "terminal:main", "--json")
        assert listed.code == 0, listed.err
        rows = json.loads(listed.out)
        assert {row["status"] for row in rows} == {"completed"}
        agent = rows[0]["session_id"]
        by_session = ("agents", "summaries", "--session-id", agent)
        shown = await command(there, *by_session, "--status", "completed", "--no-runtime")
        assert shown.out.splitlines()[0].split()[:3] == ["AGENT", "SESSION", "TYPE"]
        assert agent in shown.out
        none = await command(there, *by_session, "--has-runtime")
        assert "There are no such subagents." in none.out + none.err
        wrong = await command(there, *by_session, "--status", "lazy")
        assert (wrong.code, "running" in wrong.err) == (2, True)

        send = ("mailboxes", "send", agent, "terminal:main", "The north is ice.", "--id", "m-1")
        sent = await command(there, *send, "--json")
        assert sent.code == 0, sent.err
        assert json.loads(sent.out) == {"accepted": True, "message_id": "m-1", "duplicate": False}
        again = await command(there, *send)
        assert again.out.strip() == "m-1 was there before."
        for more in ((), ("--dead",)):
            box = await command(there, "mailboxes", "list", agent, "--json", *more)
            assert (box.code, json.loads(box.out)) == (0, [])
        closed = await command(there, "mailboxes", "send", "terminal:main", agent, "Hello?")
        assert closed.code == 1
        assert "has ended" in closed.err
