"""What a conversation looks like: merged by time, paged without holes, old ones kept."""

import pytest

from runtime.ports.model import ModelRequest
from tests.fakes.model import Gate, Said, ScriptedModel, ScriptedModels
from tests.scenario.harness import Plan, Site
from tests.scenario.http.conftest import ASKS, Sites
from tests.scenario.subagents.children import name_of, spawn, told


async def words(gateway: Site, session: str, text: str) -> None:
    """Say something and wait until the answer has been delivered."""
    async with gateway.feed(f"session_id={session}") as feed:
        await gateway.says(session, text)
        await feed.until("delivery.sent")


async def test_commands_and_their_answers_stand_in_the_conversation(sites: Sites) -> None:
    async with sites("hello", "again") as gateway:
        session = await gateway.session()
        await words(gateway, session, "hi")
        await words(gateway, session, "/queue")
        await words(gateway, session, "more")
        kinds = [(one["kind"], one["text"]) for one in await gateway.messages(session)]
        assert kinds[:3] == [("user", "hi"), ("assistant", "hello"), ("user", "/queue")]
        assert kinds[3][0] == "notice"
        assert kinds[4:] == [("user", "more"), ("assistant", "again")]


async def test_pages_fit_together_whatever_their_size(sites: Sites) -> None:
    async with sites("1", "2", "3") as gateway:
        session = await gateway.session()
        for text in ("a", "/status", "b", "/usage", "c"):
            await words(gateway, session, text)
        whole = await gateway.messages(session)
        assert len(whole) == 10
        for size in (1, 3, 7):
            found, cursor = [], ""
            while cursor is not None:
                path = f"/v1/sessions/{session}/messages?limit={size}&cursor={cursor}"
                _, page = await gateway.ask("GET", path)
                assert len(page["items"]) <= size
                found = page["items"] + found
                cursor = page["pagination"].get("next_cursor")
            assert found == whole


async def test_a_new_conversation_leaves_the_old_one_readable(sites: Sites) -> None:
    async with sites("first", "second") as gateway:
        session = await gateway.session()
        await words(gateway, session, "one")
        await words(gateway, session, "/new")
        await words(gateway, session, "two")
        now = [one["text"] for one in await gateway.messages(session)]
        assert now[-2:] == ["two", "second"]
        assert "one" not in now
        old = [one["text"] for one in await gateway.messages(session, transcript="1")]
        assert old[:2] == ["one", "first"]
        assert "two" not in old
        path = f"/v1/sessions/{session}/messages?transcript=3"
        assert (await gateway.ask("GET", path))[0] == 404


async def test_a_message_that_waits_is_shown_at_the_end_until_it_is_taken(sites: Sites) -> None:
    gate = Gate()
    async with sites(Said("slow", before=gate), "next") as gateway:
        session = await gateway.session()
        await gateway.says(session, "now")
        await gate.reached.wait()
        later = await gateway.says(session, "later")
        last = (await gateway.messages(session))[-1]
        assert (last["text"], last["waiting"], last["run_id"]) == ("later", True, later)
        gate.open.set()
        await gateway.state(later, "completed")
        after = await gateway.messages(session)
        assert [one["text"] for one in after] == ["now", "slow", "later", "next"]
        assert next(one for one in after if one["text"] == "later")["key"] == last["key"]


async def test_a_message_that_was_stopped_before_its_turn_stays_visible(sites: Sites) -> None:
    async with sites(ASKS) as gateway:
        session = await gateway.session()
        run = await gateway.says(session, "go")
        await gateway.state(run, "waiting_for_approval")
        later = await gateway.says(session, "never mind")
        await gateway.ask("POST", f"/v1/runs/{later}/cancel")
        await gateway.state(later, "cancelled")
        found = [one for one in await gateway.messages(session) if one["text"] == "never mind"]
        assert [one["waiting"] for one in found] == [False]


async def test_a_stopped_answer_keeps_what_it_had_said(sites: Sites) -> None:
    gate = Gate()
    async with sites(Said("half of an answer", middle=gate, at=1)) as gateway:
        session = await gateway.session()
        run = await gateway.says(session, "go")
        await gate.reached.wait()
        await gateway.ask("POST", f"/v1/sessions/{session}/interrupt")
        await gateway.state(run, "cancelled")
        last = (await gateway.messages(session))[-1]
        assert (last["text"], last["partial"]) == ("half of ", True)


async def test_what_comes_from_outside_is_shown_without_its_frame(sites: Sites) -> None:
    reads = Said("", calls=(("read_file", '{"path": "AGENTS.md"}'),))
    async with sites(reads, "read") as gateway:
        session = await gateway.session()
        await gateway.state(await gateway.says(session, "read it"), "completed")
        (call,) = next(one["calls"] for one in await gateway.messages(session) if one["calls"])
        assert (call["name"], call["status"], call["verdict"]) == ("read_file", "ok", "allow")
        assert "<untrusted" not in call["result"]


@pytest.mark.requirement("MSG-4", "WEB-1")
async def test_what_is_said_about_a_message_stands_behind_it(sites: Sites) -> None:
    async with sites(ASKS, "done", "next") as gateway:
        session = await gateway.session()
        run = await gateway.says(session, "go")
        await gateway.state(run, "waiting_for_approval")
        later = await gateway.says(session, "and then?")
        waits = await gateway.messages(session)
        assert [one["kind"] for one in waits] == ["user", "assistant", "card", "user", "notice"]
        assert waits[-1]["text"].startswith("I will read this next.")
        assert waits[-1]["answers"] == waits[-2]["key"]
        deny = {"request_id": waits[2]["card"]["request_id"], "behavior": "deny"}
        await gateway.ask("POST", f"/v1/runs/{run}/approvals", {"resolutions": [deny]})
        await gateway.state(later, "completed")
        texts = [one["text"] for one in await gateway.messages(session)]
        assert texts[-4:] == ["done", "and then?", waits[-1]["text"], "next"]


@pytest.mark.requirement("SUB-7", "WEB-1")
async def test_a_call_says_whose_answer_it_waits_for_and_a_batch_has_its_card(
    sites: Sites,
) -> None:
    gate = Gate()
    agents = [{"task": "Look.", "id": "one"}, {"task": "Listen.", "id": "two"}]

    def says(request: ModelRequest) -> Said | str:
        if name_of(request):
            return Said("Found.", before=gate)
        return "All done." if "completed" in told(request) else spawn(agents=agents)

    def plays(plan: Plan) -> None:
        plan.models = ScriptedModels(ScriptedModel(says))

    async with sites(change=plays) as gateway:
        session = await gateway.session()
        run = await gateway.says(session, "Look around")
        await gateway.state(run, "waiting_for_children")
        found = await gateway.messages(session, html="1")
        (call,) = next(one["calls"] for one in found if one["calls"])
        assert (call["state"], call["waits_for"]) == ("waiting", "agents")
        card = next(one for one in found if one["kind"] == "agents")
        assert "<strong>2 subagents at work</strong>" in card["html"]
        gate.open.set()
        await gateway.state(run, "completed")
        found = await gateway.messages(session)
        (call,) = next(one["calls"] for one in found if one["calls"])
        assert call["waits_for"] is None
        (ended,) = [one for one in found if one["kind"] == "agents"]
        assert ended["key"] == card["key"]
        assert "2 completed" in ended["text"]
