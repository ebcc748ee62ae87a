"""A file that the agent sends: as it was, once, in its place, and never in silence (MSG-19)."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.agent.file_cleanup import Leftovers
from runtime.agent.working_folders import Site
from runtime.bus.memory import MemoryBus
from runtime.domain.decisions import PermissionMode
from runtime.domain.errors import DeliveryRetry
from runtime.domain.messages import FilePart, OutboundMessage, Receipt, TextPart
from runtime.domain.runs import RunState
from runtime.intake.sessions import SessionControl
from runtime.ports.chat import Posted
from runtime.ports.model import ModelRequest
from runtime.sessions import outbox
from runtime.sessions.bounds import PolicySettings
from runtime.sessions.unit import Units
from runtime.tools.builtin.send_file import SendFile
from runtime.tools.outgoing_files import Room, Sending, SendLimits, room_for
from runtime.workspace.layout import Layout
from tests.fakes.chat import FAST, FakeChat, FakeStreams, Sent
from tests.fakes.clock import FakeClock
from tests.fakes.model import Gate, Said, ScriptedModel
from tests.scenario.cards import (
    audited,
    both,
    card,
    offering,
    policy,
    reaches,
    results,
    rows,
    ruled,
)
from tests.scenario.conftest import Worlds
from tests.scenario.engine import Setup, World, world
from tests.scenario.streams import Stage
from tests.scenario.streams import rows as outbox_rows
from tests.support.kinds import KINDS

FILES = replace(FAST, files=True, file_bytes=1_000_000, lookup=True)


def chat_with_files() -> FakeChat:
    """A chat that takes files of up to 1 MB, and can be asked what it has."""
    return FakeChat(capabilities=FILES)


def sends(path: str = "plan.md", caption: str = "") -> tuple[str, str]:
    """The call that sends a file."""
    return "send_file", json.dumps({"path": path, **({"caption": caption} if caption else {})})


def limited(**limits: int) -> Callable[[Setup], Setup]:
    """A change of what may be sent."""
    return lambda setup: replace(setup, sends=SendLimits(**limits))


def told(model: ScriptedModel, place: int = -1) -> str:
    """What the model was told of its last calls."""
    return "\n".join(one.content for one in results(model.requests[place]))


def files_in(messages: Sequence[Sent]) -> list[str]:
    """What is in the files that were posted."""
    parts = [part for one in messages for part in one.message.parts if isinstance(part, FilePart)]
    return [Path(part.path).read_text() for part in parts]


async def posts(at: World, amount: int) -> list[Sent]:
    """What was posted, once there are so many."""
    await at.chat.until(lambda: len(at.chat.sent) >= amount)
    return at.chat.sent


def plan(at: World, text: str = "# Plan\n", name: str = "plan.md") -> Path:
    """A file of the working folder."""
    path = at.workspace / "files" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.requirement("MSG-19")
async def test_a_file_arrives_with_its_caption_in_front_of_the_reply(worlds: Worlds) -> None:
    model = ScriptedModel([Said(calls=(sends("notes/plan.md", "The **plan**"),)), "There it is."])
    async with worlds(model, chat=chat_with_files()) as at:
        plan(at, name="notes/plan.md")
        accepted = await at.says("send me the plan")
        sent, reply = await posts(at, 2)
        await reaches(at, accepted.run_id, RunState.COMPLETED)
        (entry,) = await audited(at, "file.send")
    caption, part = sent.message.parts
    assert caption == TextPart(markdown="The **plan**")
    assert isinstance(part, FilePart)
    assert (part.name, part.media_type, part.size_bytes) == ("plan.md", "text/plain", 7)
    assert files_in([sent]) == ["# Plan\n"]
    assert not sent.message.final
    assert (reply.text, reply.message.final) == ("There it is.", True)
    assert entry.data["files"] == [{"name": "plan.md", "size_bytes": 7, "digest": part.digest}]
    assert entry.data["outbox_id"] == sent.outbox_id
    assert "is on its way to this chat" in told(model)


@pytest.mark.requirement("RUN-6")
async def test_a_deleted_conversation_takes_the_copies_of_its_files_along(worlds: Worlds) -> None:
    model = ScriptedModel([Said(calls=(sends(),)), "There.", Said(calls=(sends(),)), "There."])
    async with worlds(model, chat=chat_with_files()) as at:
        plan(at)
        accepted = await at.says("send me the plan")
        await posts(at, 2)
        await at.says("me too", chat_id="D-other")
        gone, _, kept, _ = await posts(at, 4)
        await at.engine.drain(5.0)
        keeping = SessionControl(
            Units(at.database, MemoryBus(), KINDS), lambda: at.workspace, "owner"
        )
        await keeping.delete(accepted.session_id or "")
        with pytest.raises(FileNotFoundError):
            files_in([gone])
        assert files_in([kept]) == ["# Plan\n"]


@pytest.mark.requirement("MSG-19", "MSG-10")
async def test_several_files_keep_the_order_of_their_calls(worlds: Worlds) -> None:
    calls = tuple(sends(f"{name}.txt") for name in "abc")
    async with worlds(
        ScriptedModel([Said(calls=calls), "All three."]), chat=chat_with_files()
    ) as at:
        for name in "abc":
            plan(at, name, f"{name}.txt")
        await at.says("send them")
        sent = await posts(at, 4)
    assert files_in(sent) == ["a", "b", "c"]
    assert sent[-1].text == "All three."


@pytest.mark.requirement("MSG-19")
async def test_a_later_change_of_the_file_changes_nothing_of_a_send_that_is_tried_again(
    worlds: Worlds,
) -> None:
    gate = Gate()
    model = ScriptedModel([Said(calls=(sends(),)), Said("Sent.", before=gate)])
    chat = chat_with_files()
    chat.failures.append(DeliveryRetry("busy", after_s=0.01))
    async with worlds(model, chat=chat) as at:
        path = plan(at)
        await at.says("send me the plan")
        await gate.reached.wait()
        path.write_text("something else")
        await posts(at, 1)
        assert files_in(at.chat.sent) == ["# Plan\n"]


class Stuck(FakeChat):
    """A platform that never answers; `asked` is set when it was handed something."""

    def __init__(self) -> None:
        super().__init__(capabilities=FILES)
        self.asked = asyncio.Event()

    async def send(
        self, message: OutboundMessage, *, posted: Sequence[str], on_posted: Posted
    ) -> Receipt:
        """Wait until the process is gone."""
        self.asked.set()
        await asyncio.Event().wait()
        return await super().send(message, posted=posted, on_posted=on_posted)


def by_progress(request: ModelRequest) -> Said | str:
    """Send the file, then say so: whichever process asks."""
    return Said(calls=(sends(),)) if request.step == 1 else "Sent."


@pytest.mark.requirement("MSG-7", "MSG-19")
async def test_a_crash_while_the_file_is_copied_sends_it_once(worlds: Worlds) -> None:
    gate = Gate()

    async def room(_run_id: str) -> Room:
        await gate.wait()
        return room_for(SendLimits(), "test", 0)

    model = ScriptedModel(by_progress)
    held = offering(SendFile(Sending(room)))
    async with worlds(model, chat=chat_with_files(), change=held) as at:
        plan(at)
        accepted = await at.says("send me the plan")
        await gate.reached.wait()
    async with worlds(model, chat=chat_with_files()) as again:
        sent = await posts(again, 2)
        await reaches(again, accepted.run_id, RunState.COMPLETED)
        assert files_in(sent) == ["# Plan\n"]
        assert [row.result.status for row in await rows(again, accepted.run_id) if row.result] == [
            "ok"
        ]


@pytest.mark.requirement("MSG-9", "MSG-11", "MSG-19")
async def test_a_crash_in_front_of_the_send_sends_the_same_bytes_once(worlds: Worlds) -> None:
    model, stuck = ScriptedModel(by_progress), Stuck()
    async with worlds(model, chat=stuck) as at:
        path = plan(at)
        accepted = await at.says("send me the plan")
        await stuck.asked.wait()
        await reaches(at, accepted.run_id, RunState.COMPLETED)
        path.write_text("something else")
    async with worlds(model, chat=chat_with_files()) as again:
        sent = await posts(again, 2)
        assert files_in(sent) == ["# Plan\n"]
        assert sent[-1].text == "Sent."


@pytest.mark.requirement("MSG-11", "MSG-19")
async def test_a_send_without_an_answer_is_found_and_not_made_twice(worlds: Worlds) -> None:
    chat = chat_with_files()
    chat.unanswered = 1
    async with worlds(ScriptedModel(by_progress), chat=chat) as at:
        plan(at)
        await at.says("send me the plan")
        sent = await posts(at, 2)
        assert [one.text for one in sent] == ["file", "Sent."]


@pytest.mark.requirement("MSG-11", "MSG-19")
async def test_where_nobody_can_look_a_file_is_unknown_and_not_sent_again(worlds: Worlds) -> None:
    chat = FakeChat(capabilities=replace(FILES, lookup=False))
    chat.unanswered = 1
    async with worlds(ScriptedModel(by_progress), chat=chat) as at:
        plan(at)
        await at.says("send me the plan")
        sent = await posts(at, 2)
        assert [one.text for one in sent] == ["file", "Sent."]
        row = await at.database.read(lambda conn: outbox.get(conn, sent[0].outbox_id))
        assert row is not None
        assert row.state == "unknown"


@pytest.mark.requirement("MSG-19")
async def test_a_run_sends_no_more_files_than_it_may(worlds: Worlds) -> None:
    model = ScriptedModel([Said(calls=(sends(),)), Said(calls=(sends(), sends())), "Done."])
    async with worlds(model, chat=chat_with_files(), change=limited(per_run=2)) as at:
        plan(at)
        accepted = await at.says("send it three times")
        sent = await posts(at, 3)
        assert [one.text for one in sent] == ["file", "file", "Done."]
        states = [row.result.status for row in await rows(at, accepted.run_id) if row.result]
    assert states == ["ok", "ok", "error"]
    assert "this run has sent 2 files, the most that it may (delivery.files_per_run)" in told(model)


@pytest.mark.requirement("MSG-19")
@pytest.mark.parametrize(
    ("can", "said"),
    [
        ({"files": False}, "path: test takes no files"),
        ({"file_bytes": 5}, "has 7 bytes, more than 5 bytes (the limit of test)"),
    ],
)
async def test_what_the_platform_takes_is_known_when_the_tool_runs(
    worlds: Worlds, can: dict[str, int], said: str
) -> None:
    model = ScriptedModel([Said(calls=(sends(),)), "I cannot."])
    chat = FakeChat(capabilities=replace(FILES, **can))
    async with worlds(model, chat=chat) as at:
        plan(at)
        await at.says("send me the plan")
        sent = await posts(at, 1)
    assert [one.text for one in sent] == ["I cannot."]
    assert said in told(model)


@pytest.mark.requirement("MSG-19")
@pytest.mark.parametrize(
    ("can", "said"),
    [
        ({"files": False}, "The file `plan.md` could not be sent: this chat takes no files."),
        (
            {"file_bytes": 5},
            "The file `plan.md` could not be sent: it has 7 bytes, and this chat takes at most "
            "5 bytes.",
        ),
    ],
)
async def test_where_only_the_deliverer_knows_the_platform_the_chat_says_what_is_missing(
    worlds: Worlds, can: dict[str, int], said: str
) -> None:
    async def room(_run_id: str) -> Room:
        return room_for(SendLimits(), "test", 0)

    model = ScriptedModel([Said(calls=(sends(caption="Look:"),)), "There."])
    chat = FakeChat(capabilities=replace(FILES, **can))
    async with worlds(model, chat=chat, change=offering(SendFile(Sending(room)))) as at:
        plan(at)
        await at.says("send me the plan")
        sent = await posts(at, 2)
    assert [one.text for one in sent] == [f"Look:\n{said}", "There."]


@pytest.mark.requirement("MSG-19")
async def test_a_copy_that_was_changed_or_is_gone_is_not_sent_and_the_chat_says_so(
    worlds: Worlds,
) -> None:
    model, stuck = ScriptedModel(by_progress), Stuck()
    async with worlds(model, chat=stuck) as at:
        plan(at)
        accepted = await at.says("send me the plan")
        await stuck.asked.wait()
        await reaches(at, accepted.run_id, RunState.COMPLETED)
        for copy in (at.workspace / ".gatehouse" / "outputs" / "sent").iterdir():
            copy.write_text("# Lies")
    async with worlds(model, chat=chat_with_files()) as again:
        sent = await posts(again, 2)
    said = "The file `plan.md` could not be sent: its copy is gone."
    assert [one.text for one in sent] == [said, "Sent."]


@pytest.mark.requirement("POL-2", "POL-3", "APR-1")
async def test_a_rule_can_ask_about_a_file_and_what_was_allowed_is_sent_once(
    worlds: Worlds,
) -> None:
    change = ruled(ask=("send_file(plan*)",))
    async with worlds(ScriptedModel(by_progress), chat=chat_with_files(), change=change) as at:
        plan(at)
        await at.says("send me the plan")
        part = await card(at)
        assert len(at.chat.sent) == 1
        await at.presses(part.open_call_id, "once")
        sent = await posts(at, 3)
        assert files_in(sent) == ["# Plan\n"]


@pytest.mark.requirement("POL-2")
async def test_plan_mode_sends_nothing(worlds: Worlds) -> None:
    model = ScriptedModel([Said(calls=(sends(),)), "I may not."])
    change = policy(PolicySettings(mode=PermissionMode.PLAN))
    async with worlds(model, chat=chat_with_files(), change=both(change)) as at:
        plan(at)
        await at.says("send me the plan")
        sent = await posts(at, 1)
    assert [one.text for one in sent] == ["I may not."]
    assert "Denied by policy (mode: plan mode is read-only)" in told(model)


@pytest.mark.requirement("MSG-19", "REN-4")
async def test_what_was_said_before_stands_before_the_file_and_the_reply_behind_it(
    tmp_path: Path,
) -> None:
    stage, gate = Stage(tmp_path, files=True), Gate()
    first = "Let me fetch the plan for you, one moment."
    model = ScriptedModel(
        [Said(first, calls=(sends(),), chunk=20, middle=gate, at=1), "There you are."]
    )
    setup = replace(await stage.setup(model), tools=())
    async with world(setup, stage.chat) as at:
        plan(at)
        await at.says("send me the plan")
        await stage.until(lambda: stage.chat.texts() == [first[:20]])
        gate.open.set()
        await stage.until(lambda: len(stage.chat.texts()) == 3)
        await stage.settled(at)
        assert stage.chat.texts() == [first, "file", "There you are."]
        assert [kind for kind, _ in await outbox_rows(at)] == ["said", "file", "final"]
        assert isinstance(stage.chat.streams, FakeStreams)


@pytest.mark.requirement("MSG-19", "MSG-21")
async def test_a_file_goes_out_at_once_and_waits_for_no_tick(tmp_path: Path) -> None:
    stage, gate = Stage(tmp_path, files=True), Gate()
    model = ScriptedModel([Said(calls=(sends(),)), Said("Sent.", before=gate)])
    async with world(replace(await stage.setup(model), tools=()), stage.chat) as at:
        plan(at)
        await at.says("send me the plan")
        await posts(at, 1)
        assert stage.chat.texts() == ["file"]


def site(at: World) -> Site:
    """Where files are kept."""
    return Site(Layout.of(at.workspace))


@pytest.mark.requirement("MSG-19")
async def test_copies_are_removed_after_their_time_and_not_while_they_are_needed(
    worlds: Worlds,
) -> None:
    stuck = Stuck()
    async with worlds(ScriptedModel(by_progress), chat=stuck) as at:
        plan(at)
        await at.says("send me the plan")
        await stuck.asked.wait()
        clock = FakeClock(at.engine.parts.clock.now_ms() + 10_000_000)
        keeper = Leftovers(at.database, clock, site(at), keep_s=3600)
        assert await keeper.clear_sent() == 0
    async with worlds(ScriptedModel(by_progress), chat=chat_with_files()) as again:
        await posts(again, 2)
        keeper = Leftovers(again.database, clock, site(again), keep_s=36_000)
        assert await keeper.clear_sent() == 0, "it is young"
        keeper = Leftovers(again.database, clock, site(again), keep_s=3600)
        running = asyncio.create_task(keeper.run(), name="leftovers")
        folder = again.workspace / ".gatehouse" / "outputs" / "sent"
        while list(folder.iterdir()):
            await clock.advance(3600)
        running.cancel()
