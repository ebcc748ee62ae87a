"""Commands in the chat: what each says and does, for whom, and never through the model (MSG-12)."""

from dataclasses import replace

import pytest

from runtime.commands.table import CommandSettings
from runtime.domain.runs import RunState
from runtime.domain.transcript import UserMessage
from runtime.sessions import sessions, transcripts
from runtime.sessions.sessions import Session
from runtime.tools.builtin.ask import AskUser
from tests.fakes.chat import FAST, FakeChat
from tests.fakes.model import Gate, Said, ScriptedModel, ScriptedModels
from tests.scenario.cards import (
    GUEST,
    MEMBER,
    asks,
    both,
    call,
    card,
    cards,
    offering,
    reaches,
    results,
    state,
)
from tests.scenario.conftest import Worlds, intake
from tests.scenario.engine import OPEN, Details, World
from tests.scenario.tools import Note
from tests.support.kinds import COMMANDS

ACCESS = intake(
    access={"test": replace(OPEN, dm_policy="open", allow_users=frozenset({MEMBER}))},
    commands=CommandSettings(models=("a:one", "b:two"), default_model="a:one", version="1.2"),
)
FOR_GUESTS = {"help", "status", "new", "stop"}
FOR_OWNERS = {"persona"}


@pytest.mark.requirement("MSG-12")
@pytest.mark.parametrize("name", sorted(COMMANDS.names))
@pytest.mark.parametrize("form", ["/{}", "!{}", "/{}@gatehouse_bot"])
async def test_every_command_is_answered_without_the_model(
    worlds: Worlds, name: str, form: str
) -> None:
    model = ScriptedModel([])
    async with worlds(model, change=ACCESS) as world:
        said = await world.says(form.format(name))
        assert (said.disposition, said.reason) == ("command", name)
        (answer,) = await world.sees(1)
        assert answer
        assert world.chat.sent[0].message.reply_to is not None
        assert model.requests == []


@pytest.mark.requirement("MSG-12")
async def test_a_mention_and_a_word_are_a_command_in_a_group(worlds: Worlds) -> None:
    async with worlds(ScriptedModel([]), change=ACCESS) as world:
        said = await world.says("status", chat_id="G", kind="group")
        assert said.disposition == "command"
        assert "Gatehouse 1.2" in (await world.sees(1))[0]


@pytest.mark.requirement("MSG-12")
@pytest.mark.parametrize("name", sorted(COMMANDS.names))
async def test_a_guest_gets_the_harmless_ones_and_no_others(worlds: Worlds, name: str) -> None:
    async with worlds(ScriptedModel([]), change=ACCESS) as world:
        await world.says(f"/{name} x", user=GUEST)
        (answer,) = await world.sees(1)
        refused = answer == f"`/{name}` is not open to guests."
        assert refused is (name not in FOR_GUESTS | {"start"})


@pytest.mark.requirement("MSG-12")
async def test_help_names_what_this_person_may_use(worlds: Worlds) -> None:
    async with worlds(ScriptedModel([]), change=ACCESS) as world:
        for user in ("U-owner", MEMBER, GUEST):
            await world.says("/help", user=user)
        owner, member, guest = await world.sees(3)
        listed = {one.name for one in COMMANDS.listed}
        assert listed == COMMANDS.names - {"start"}
        assert all(f"`/{name}`" in owner for name in listed)
        assert {name for name in listed if f"`/{name}`" not in member} == FOR_OWNERS
        assert {name for name in COMMANDS.names if f"`/{name}`" in guest} == FOR_GUESTS


@pytest.mark.requirement("MSG-12")
@pytest.mark.parametrize("user", ["U-owner", GUEST])
async def test_a_known_person_who_says_start_is_greeted_without_the_model(
    worlds: Worlds, user: str
) -> None:
    model = ScriptedModel([])
    async with worlds(model, change=ACCESS) as world:
        assert (await world.says("/start", user=user)).disposition == "command"
        (greeting,) = await world.sees(1)
        assert greeting.startswith(f"Hello, {user.removeprefix('U-')}. ")
        assert "`/help`" in greeting
        assert "`/start`" not in greeting
        assert model.requests == []


@pytest.mark.requirement("MSG-12")
@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "/weather in Rome",
            "I do not know the command `/weather`. `/help` lists the commands that I know.",
        ),
        (
            "/stopp",
            "I do not know the command `/stopp`. Did you mean `/stop`? `/help` lists the "
            "commands that I know.",
        ),
    ],
)
async def test_an_unknown_command_gets_one_line_with_the_nearest_and_starts_no_run(
    worlds: Worlds, text: str, line: str
) -> None:
    model = ScriptedModel([])
    async with worlds(model, change=ACCESS) as world:
        said = await world.says(text)
        assert (said.disposition, said.reason, said.run_id) == ("command", "unknown", None)
        again = await world.says(text, message_id="m1")
        assert again.disposition == "duplicate"
        await world.says("/status")
        assert (await world.sees(2))[0] == line
        assert model.requests == []


@pytest.mark.requirement("MSG-12")
async def test_the_nearest_command_is_one_that_this_person_may_use(worlds: Worlds) -> None:
    async with worlds(ScriptedModel([]), change=ACCESS) as world:
        await world.says("/aprove x", user=GUEST)
        assert "mean" not in (await world.sees(1))[0]


@pytest.mark.requirement("MSG-12")
@pytest.mark.parametrize(
    "text", ["!wow", "/etc/hosts", "/home/x is full", "that is !important", "!important do it"]
)
async def test_what_is_no_command_goes_to_the_model_as_it_is(worlds: Worlds, text: str) -> None:
    model = ScriptedModel(["hm"])
    async with worlds(model, change=ACCESS) as world:
        await world.says(text)
        assert await world.sees(1) == ["hm"]
        assert model.requests[0].messages[-1].text == text


@pytest.mark.requirement("CTX-5")
async def test_only_owners_are_told_which_files_of_the_workspace_are_skipped(
    worlds: Worlds,
) -> None:
    async with worlds(ScriptedModel([]), change=ACCESS) as world:
        (world.workspace / "USER.md").write_bytes(b"Caf\xe9")
        for user in ("U-owner", MEMBER, GUEST):
            await world.says("/status", user=user)
        owner, member, guest = await world.sees(3)
    assert "USER.md is skipped" in owner
    assert "USER.md" not in member + guest


@pytest.mark.requirement("MSG-12")
async def test_in_a_group_an_unknown_command_is_answered_where_it_is_said_to_the_bot(
    worlds: Worlds,
) -> None:
    model = ScriptedModel(["hm"])
    group: Details = {"mentions": True}
    heard = replace(OPEN, group_policy="open", require_mention=False)
    async with worlds(model, change=intake(access={"test": heard})) as world:
        said = await world.says("/weather", chat_id="G", kind="group", **group)
        assert said.disposition == "command"
        group["mentions"] = False
        said = await world.says("/weather", chat_id="G", kind="group", **group)
        assert said.disposition == "queued"
        assert (await world.sees(2))[1] == "hm"


@pytest.mark.requirement("MSG-12", "MSG-4")
@pytest.mark.parametrize("waiting", [call("a"), asks("Which?")])
async def test_every_text_of_ours_names_commands_as_the_channel_spells_them(
    worlds: Worlds, waiting: tuple[str, str]
) -> None:
    chat = FakeChat(capabilities=replace(FAST, command_prefix="!"))
    tools = offering(Note(command=True), AskUser())
    model = ScriptedModel([Said(calls=(waiting,))])
    async with worlds(model, chat=chat, change=both(ACCESS, tools)) as world:
        await world.says("do it", chat_id="G", kind="group")
        await card(world)
        late = world.engine.parts.clock.now_ms() - 3_600_000
        # In turn: the line that names the card, what a member may not do, and what was late.
        await world.says("and this", chat_id="G", kind="group")
        await world.says("!persona", chat_id="G", kind="group", user=MEMBER)
        await world.says("!stop", chat_id="G", kind="group", sent_ms=late)
        for text in ("!help", "!start", "!stopp", "!approve", "!answer", "!persona"):
            await world.says(text, chat_id="G", kind="group")
        texts = (await world.sees(10, "G"))[1:]
        unnamed = [one for one in texts if not any(f"`!{name}" in one for name in COMMANDS.names)]
        # Where no approval waits, a bare `!approve` has none to name.
        assert len(unnamed) == (0 if waiting == call("a") else 1), unnamed
        assert [one for one in texts if any(f"/{name}" in one for name in COMMANDS.names)] == []


@pytest.mark.requirement("MSG-12")
async def test_new_starts_with_nothing_and_the_old_stays_readable(worlds: Worlds) -> None:
    model = ScriptedModel(["hello Ann", "I do not know it"])
    async with worlds(model, change=ACCESS) as world:
        first = await world.says("my name is Ann")
        await world.sees(1)
        await world.says("/new")
        second = await world.says("what is my name?")
        await world.sees(3)
        assert second.session_id == first.session_id
        assert [m.text for m in model.requests[1].messages] == ["what is my name?"]
        old = await world.database.read(
            lambda conn: transcripts.since(conn, first.session_id or "", transcript=1, first=1)
        )
        assert [line.message.text for line in old] == ["my name is Ann", "hello Ann"]


@pytest.mark.requirement("MSG-12")
async def test_new_gives_up_what_waits_for_a_person(worlds: Worlds) -> None:
    note = Note(command=True)
    model = ScriptedModel([Said(calls=(call("a"),)), "fresh"])
    async with worlds(model, change=both(ACCESS, offering(note))) as world:
        accepted = await world.says("do it")
        await card(world)
        await world.says("/new")
        await reaches(world, accepted.run_id, RunState.CANCELLED)
        await world.says("hello")
        await world.chat.until(lambda: "fresh" in world.chat.texts())
        assert [m.role for m in model.requests[1].messages] == ["user"]


@pytest.mark.requirement("MSG-12")
@pytest.mark.parametrize("tool", [False, True])
async def test_new_starts_with_nothing_while_a_run_is_at_work(worlds: Worlds, tool: bool) -> None:
    gate = Gate()
    note = Note(gate=gate)
    busy = Said(calls=(call("slow"),)) if tool else Said("half of it", chunk=4, middle=gate, at=1)
    model = ScriptedModel([busy, "fresh"])
    async with worlds(model, change=both(ACCESS, offering(note))) as world:
        accepted = await world.says("work")
        await gate.reached.wait()
        await world.says("/new")
        await reaches(world, accepted.run_id, RunState.CANCELLED)
        await world.says("hello")
        await world.chat.until(lambda: "fresh" in world.chat.texts())
        assert [m.role for m in model.requests[1].messages] == ["user"]


@pytest.mark.requirement("MSG-12")
async def test_commands_pass_a_busy_lane(worlds: Worlds) -> None:
    gate = Gate()
    model = ScriptedModel([Said("in the end", before=gate)])
    async with worlds(model, change=ACCESS) as world:
        await world.says("work")
        await gate.reached.wait()
        await world.says("/status")
        assert "now: running, 0 queued" in (await world.sees(1))[0]
        gate.open.set()
        assert (await world.sees(2))[1] == "in the end"


@pytest.mark.requirement("MSG-12", "MSG-2")
async def test_a_command_that_is_delivered_again_is_applied_once(worlds: Worlds) -> None:
    model = ScriptedModel(["one", "two"])
    async with worlds(model, change=ACCESS) as world:
        await world.says("/new", message_id="m-new")
        await world.says("remember this")
        await world.sees(2)
        again = await world.says("/new", message_id="m-new")
        assert again.disposition == "duplicate"
        await world.says("what did I say?")
        await world.sees(3)
        assert len(model.requests[1].messages) == 3
        assert len(world.chat.sent) == 3


@pytest.mark.requirement("MSG-12", "MSG-13")
async def test_stop_ends_what_runs_then_what_waits_then_nothing(worlds: Worlds) -> None:
    gate = Gate()
    model = ScriptedModel([Said("never", before=gate), Said("never", before=gate)])
    async with worlds(model, change=ACCESS) as world:
        first = await world.says("one")
        await gate.reached.wait()
        await world.says("two")
        gate.reached.clear()
        await world.says("/stop")
        assert (await world.sees(1))[0] == "Stopped. 1 waiting message will be answered next."
        await reaches(world, first.run_id, RunState.CANCELLED)
        await gate.reached.wait()
        await world.says("/stop")
        assert (await world.sees(2))[1] == "Stopped."
        async_idle = await world.says("/status")
        assert async_idle.disposition == "command"
        await world.sees(3)


@pytest.mark.requirement("MSG-12", "MSG-13")
async def test_stop_with_nothing_to_stop_says_so(worlds: Worlds) -> None:
    async with worlds(ScriptedModel([]), change=ACCESS) as world:
        await world.says("/stop")
        assert await world.sees(1) == ["There is nothing to stop."]


@pytest.mark.requirement("MSG-12")
async def test_the_queue_mode_is_switched_and_unknown_ones_are_named(worlds: Worlds) -> None:
    async with worlds(ScriptedModel([]), change=ACCESS) as world:
        for text in ("/queue", "/queue COLLECT", "/queue nonsense"):
            said = await world.says(text)
        now, changed, refused = await world.sees(3)
        assert now == ("The queue mode is followup. I know: followup, collect, steer, interrupt.")
        assert changed == "The queue mode is collect now."
        assert "no queue mode 'nonsense'" in refused
        assert (await _session(world, said.session_id)).queue_mode == "collect"


@pytest.mark.requirement("MSG-12")
async def test_the_model_is_chosen_for_the_session_and_given_back(worlds: Worlds) -> None:
    one, two = ScriptedModel(["from one"], name="a:one"), ScriptedModel(["from two"], name="b:two")
    async with worlds(ScriptedModels(one, two), change=ACCESS) as world:
        await world.says("/model b:two")
        await world.says("who?")
        await world.sees(2)
        await world.says("/model sk-secret:none")
        await world.says("/model default")
        await world.says("who now?")
        texts = await world.sees(5)
        assert texts[0] == "The model is b:two from the next step on. `/model default` goes back."
        assert texts[1] == "from two"
        assert texts[2].startswith("There is no model `sk-secret:none` that I can use.")
        assert texts[4] == "from one"


@pytest.mark.requirement("MSG-12", "POL-2")
@pytest.mark.parametrize("mode", ["plan", "ask"])
async def test_plan_and_ask_only_read_until_edit(worlds: Worlds, mode: str) -> None:
    note = Note()
    once = Said(calls=(call("a"),))
    model = ScriptedModel([once, "refused", once, "done"])
    async with worlds(model, change=both(ACCESS, offering(note))) as world:
        await world.says(f"/{mode}")
        await world.says("change it")
        await world.sees(2)
        assert note.begun == 0
        (told,) = results(model.requests[1])
        assert told.status == "denied"
        assert f"{mode} mode is read-only" in told.content
        await world.says("/edit")
        await world.says("now")
        await world.sees(4)
        assert note.kept == ["a"]


@pytest.mark.requirement("MSG-12", "POL-2")
async def test_a_mode_holds_from_the_next_step_of_the_run_that_is_at_work(worlds: Worlds) -> None:
    gate, note = Gate(), Note()
    note.gate = gate
    once = Said(calls=(call("a"),))
    model = ScriptedModel([once, once, "stopped there"])
    async with worlds(model, change=both(ACCESS, offering(note))) as world:
        await world.says("change two things")
        await gate.reached.wait()
        await world.says("/plan")
        await world.sees(1)
        gate.open.set()
        await world.sees(2)
        assert note.kept == ["a"], "what had begun ended, the next step was refused"
        assert results(model.requests[2])[0].status == "denied"


@pytest.mark.requirement("MSG-12", "APR-10")
@pytest.mark.parametrize("word", ["approve", "deny"])
async def test_a_word_without_a_code_decides_nothing_and_lists_what_is_open(
    worlds: Worlds, word: str
) -> None:
    note = Note(command=True)
    model = ScriptedModel([Said(calls=(call("a"), call("b"))), "done"])
    async with worlds(model, change=both(ACCESS, offering(note))) as world:
        await world.says("go")
        second = await card(world, 2)
        first = cards(world)[0][1]
        await world.says(f"/{word}")
        assert (await world.sees(3))[2] == (
            "Say which one:\n"
            f"- `/{word} {first.code}` (approval of `note`)\n"
            f"- `/{word} {second.code}` (approval of `note`)"
        )
        # One that is alone is not guessed either.
        await world.says(f"/deny {second.code}")
        await world.says(f"/{word}")
        assert (await world.sees(5))[4] == (
            f"Say which one:\n- `/{word} {first.code}` (approval of `note`)"
        )
        assert note.begun == 0
        await world.says(f"/approve {first.code}")
        await world.chat.until(lambda: "done" in world.chat.texts())
        assert note.kept == ["a"]
        seen = len(world.chat.texts())
        await world.says(f"/{word}")
        assert (
            "No request of this conversation waits for you." in (await world.sees(seen + 1))[seen]
        )


@pytest.mark.requirement("APR-10")
async def test_a_word_that_replies_to_a_card_means_that_card(worlds: Worlds) -> None:
    note = Note(command=True)
    wanted = Said(calls=(call("a"), call("b"), call("c")))
    model = ScriptedModel([wanted, "done"])
    async with worlds(model, change=both(ACCESS, offering(note))) as world:
        await world.says("go")
        third = await card(world, 3)
        posted = [sent.id for sent in world.chat.sent]
        await world.says("/deny not this one", reply_to=posted[0])
        await world.says("/approve", reply_to=posted[1])
        # A code beside the card counts: it is what was typed.
        await world.says(f"/approve {third.code}", reply_to=posted[1])
        await world.chat.until(lambda: "done" in world.chat.texts())
        assert note.kept == ["b", "c"]
        assert "not this one" in results(model.requests[1])[0].content


@pytest.mark.requirement("MSG-12", "APR-1")
@pytest.mark.parametrize("code", ["zz", "", "%%%%%%", "______", "nosuch1", "apr_"])
async def test_a_code_that_names_nothing_decides_nothing(worlds: Worlds, code: str) -> None:
    note = Note(command=True)
    model = ScriptedModel([Said(calls=(call("a"), call("b")))])
    async with worlds(model, change=both(ACCESS, offering(note))) as world:
        accepted = await world.says("go")
        await card(world, 2)
        await world.says(f"/approve {code}")
        await world.sees(3)
        assert await state(world, accepted.run_id) is RunState.WAITING_FOR_APPROVAL
        assert note.begun == 0


@pytest.mark.requirement("MSG-12")
async def test_usage_counts_what_this_session_spent(worlds: Worlds) -> None:
    async with worlds(ScriptedModel(["hi"]), change=ACCESS) as world:
        await world.says("hello")
        await world.sees(1)
        await world.says("/usage")
        assert "100 tokens in" in (await world.sees(2))[1]
        await world.says("/usage", chat_id="D-other")
        assert "0 tokens in" in (await world.sees(3))[2]


@pytest.mark.requirement("MSG-12")
async def test_a_command_is_not_part_of_the_conversation(worlds: Worlds) -> None:
    model = ScriptedModel(["hi"])
    async with worlds(model, change=ACCESS) as world:
        await world.says("/status")
        await world.says("hello")
        await world.sees(2)
        said = [m for m in model.requests[0].messages if isinstance(m, UserMessage)]
        assert [m.text for m in said] == ["hello"]


async def _session(world: World, session_id: str | None) -> Session:
    return await world.database.read(lambda conn: sessions.get(conn, session_id or ""))
