"""A message for another conversation, through the real path: asked about, and sent once."""

import json
from dataclasses import replace

import pytest

from adapters.models.offline import OfflineModel
from runtime.domain.messages import MOVED, ApprovalPart, ChatAddress
from runtime.features.subagents.rows.agents import SUBAGENT
from runtime.ports.model import ModelRequest
from runtime.sessions import lanes
from runtime.sessions.lanes import NewSession
from runtime.store import Connection
from tests.fakes.model import Said, ScriptedModel
from tests.scenario.cards import (
    GUEST,
    MEMBER,
    audited,
    both,
    card,
    cards,
    reaches,
    results,
    rows,
    ruled,
)
from tests.scenario.cards import RunState as State
from tests.scenario.conftest import Worlds, intake
from tests.scenario.engine import OPEN, OWNER, World
from tests.scenario.test_sent_files import Stuck

MEMBERS = intake(access={"test": replace(OPEN, allow_users=frozenset({MEMBER, "U-other"}))})
ALLOWED = ruled(allow=("send_message(test:A1:**)",))


def sends(to: str = "test:A1:G2", text: str = "The report is ready.") -> tuple[str, str]:
    return "send_message", json.dumps({"to": to, "text": text})


def once(request: ModelRequest) -> Said | str:
    """Send it, then say what came of it."""
    if request.messages[-1].role != "tool":
        return Said(calls=(sends(),))
    return results(request)[0].content


async def group(world: World, chat_id: str, user: str = OWNER) -> None:
    """Somebody spoke in a group."""
    await world.says("/help", chat_id=chat_id, kind="group", user=user)


@pytest.mark.requirement("TOOL-14", "POL-2", "APR-1")
async def test_it_is_asked_about_and_arrives_once_in_the_other_chat(worlds: Worlds) -> None:
    async with worlds(ScriptedModel(once)) as world:
        await group(world, "G2")
        await world.sees(1, "G2")
        await world.says("tell them")
        shown = await card(world)
        assert isinstance(shown, ApprovalPart)
        assert "test:A1:G2" in shown.arguments
        assert "The report is ready." in shown.arguments
        assert len(world.chat.texts("G2")) == 1
        await world.presses(shown.open_call_id, "once")
        assert (await world.sees(2, "G2"))[1] == "The report is ready."
        await world.chat.until(
            lambda: "it is on its way to test:A1:G2" in world.chat.texts(f"D-{OWNER}")
        )
        assert len(world.chat.texts("G2")) == 2
        (entry,) = await audited(world, "message.send")
        assert entry.data["to"] == {
            "channel": "test",
            "account": "A1",
            "chat_id": "G2",
            "chat_kind": "group",
            "thread_id": None,
            "joins_chat": False,
        }


@pytest.mark.requirement("TOOL-14", "MSG-9")
async def test_a_crash_in_front_of_the_send_sends_it_once(worlds: Worlds) -> None:
    stuck = Stuck()
    async with worlds(ScriptedModel(once), chat=stuck, change=ALLOWED) as before:
        await group(before, "G2")
        await stuck.asked.wait()
        said = await before.says("tell them")
        await reaches(before, said.run_id, State.COMPLETED)
    async with worlds(ScriptedModel(once)) as after:
        await after.chat.until(lambda: "The report is ready." in after.chat.texts("G2"))
        await after.chat.until(lambda: len(after.chat.texts(f"D-{OWNER}")) == 1)
        assert after.chat.texts("G2").count("The report is ready.") == 1


@pytest.mark.requirement("TOOL-14", "POL-4")
@pytest.mark.parametrize(
    ("to", "arrives"),
    [
        ("test:A1:G1", True),
        ("test:A1:G2", False),
        ("test:A1:D-U-other", False),
        ("test:A1:D-U-owner", False),
        ("test:A1:none", False),
    ],
)
async def test_a_member_reaches_where_they_speak_themselves(
    worlds: Worlds, to: str, arrives: bool
) -> None:
    model = ScriptedModel([Said(calls=(sends(to),)), "Done."])
    async with worlds(model, change=both(MEMBERS, ALLOWED)) as world:
        await group(world, "G1", MEMBER)
        await group(world, "G2", "U-other")
        await world.says("/help")
        await world.says("/help", user="U-other")
        said = await world.says("tell them", user=MEMBER)
        await reaches(world, said.run_id, State.COMPLETED)
        (row,) = await rows(world, said.run_id)
        assert row.result is not None
        assert (row.result.status == "ok") == arrives
        if not arrives:
            assert "is not another conversation here" in row.result.content
            assert "test:A1:G1" in row.result.content
            assert "G2" not in row.result.content.split("\n", 1)[1]


@pytest.mark.requirement("TOOL-14", "POL-4")
async def test_a_member_reaches_their_own_chat_from_a_group_and_a_guest_none(
    worlds: Worlds,
) -> None:
    def script(request: ModelRequest) -> Said | str:
        if request.messages[-1].role == "tool":
            return results(request)[0].status
        return Said(calls=(sends(f"test:A1:D-{MEMBER}", "For you."),))

    async with worlds(ScriptedModel(script), change=both(MEMBERS, ALLOWED)) as world:
        await world.says("/help", user=MEMBER)
        await world.sees(1, f"D-{MEMBER}")
        await world.says("remind me", user=MEMBER, chat_id="G1", kind="group")
        assert (await world.sees(2, f"D-{MEMBER}"))[1] == "For you."
        assert await world.sees(1, "G1") == ["ok"]
        await world.says("tell them", user=GUEST, chat_id="G1", kind="group")
        assert (await world.sees(2, "G1"))[1] == "denied"
        assert len(world.chat.texts(f"D-{MEMBER}")) == 2
        assert cards(world) == []


@pytest.mark.requirement("TOOL-14", "OPS-4")
async def test_the_offline_model_sends_to_a_key(worlds: Worlds) -> None:
    async with worlds(OfflineModel(), change=ALLOWED) as world:
        await group(world, "G2")
        await world.says("send 'hello there' to test:A1:G2")
        await world.chat.until(lambda: "hello there" in world.chat.texts("G2"))
        assert "It is sent:" in (await world.sees(1, f"D-{OWNER}"))[0]


@pytest.mark.requirement("TOOL-14")
async def test_the_list_has_conversations_that_somebody_delivers_to_and_no_other(
    worlds: Worlds,
) -> None:
    keys = {"test:A1:G3": "A1", "test:A9:G4": "A9", f"test:A1:G5:{MOVED}:G6": "A1"}

    def makes(conn: Connection) -> None:
        for key, account in keys.items():
            place = ChatAddress(channel="test", account=account, chat_id=key, chat_kind="group")
            new = NewSession(key=key, address=place, mode="edit", queue_mode="followup")
            parent = lanes.create(conn, new)
            assert parent is not None
            child = replace(new, key=f"{SUBAGENT}:{account}", kind=SUBAGENT, parent=parent)
            lanes.create(conn, child)

    async with worlds(ScriptedModel([Said(calls=(("send_message", "{}"),)), "Done."])) as world:
        await world.database.write(makes, name="test")
        await group(world, "G2")
        said = await world.says("whom?", chat_id="G1", kind="group")
        await reaches(world, said.run_id, State.COMPLETED)
        (row,) = await rows(world, said.run_id)
        assert row.result is not None
        listed = row.result.content.split("\n")[1:]
        assert sorted(listed) == ["- test:A1:G2 (group)", "- test:A1:G3 (group)"]


@pytest.mark.requirement("TOOL-14", "POL-4")
async def test_direct_chats_are_listed_in_a_direct_chat_alone(worlds: Worlds) -> None:
    """All of a group read what is listed there."""

    def lists(request: ModelRequest) -> Said | str:
        last = request.messages[-1].role == "tool"
        return results(request)[0].content if last else Said(calls=(("send_message", "{}"),))

    async with worlds(ScriptedModel(lists), change=MEMBERS) as world:
        await world.says("/help", user=MEMBER)
        await group(world, "G2")
        await world.says("whom?", chat_id="G1", kind="group")
        assert "(direct)" not in (await world.sees(1, "G1"))[0]
        assert "test:A1:G2 (group)" in world.chat.texts("G1")[0]
        await world.says("whom?")
        assert f"test:A1:D-{MEMBER} (direct)" in (await world.sees(1, f"D-{OWNER}"))[0]
