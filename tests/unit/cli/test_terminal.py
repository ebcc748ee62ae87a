"""The full-screen chat, with keys pressed and the screen read."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import permutations

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from adapters.terminal.app import ChatApp
from adapters.terminal.conversation import Call
from gateway.cli.conversation import Doing
from tests.unit.cli.support import FakeConversation, approval, assistant, question, user

pytestmark = pytest.mark.requirement("TTY-1")


@asynccontextmanager
async def screen(conversation: FakeConversation) -> AsyncIterator[Pilot[None]]:
    app = ChatApp(conversation, ["help", "status", "stop"])
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        yield pilot


def shown(pilot: Pilot[None]) -> str:
    """The text on the screen."""
    rows = pilot.app.screen._compositor.render_strips()
    return "\n".join(row.text.rstrip() for row in rows)


async def type_line(pilot: Pilot[None], text: str) -> None:
    pilot.app.query_one("#prompt", Input).value = text
    await pilot.press("enter")
    await pilot.pause()


@pytest.mark.requirement("REN-1")
async def test_it_shows_what_was_said_and_the_tool_steps() -> None:
    call = Call("list_dir", '{"path": "."}', "ok")
    talk = FakeConversation(user("list files"), assistant("Here **they** are.", call))
    async with screen(talk) as pilot:
        seen = shown(pilot)
    assert "Ann: list files" in seen
    assert "Here they are." in seen
    assert '✓ list_dir {"path": "."}' in seen


@pytest.mark.requirement("MSG-22")
async def test_a_turn_that_was_taken_back_is_struck_through() -> None:
    said, answer = user("list files"), assistant("Here they are.")
    talk = FakeConversation(said, answer)
    async with screen(talk) as pilot:
        assert struck(pilot) == ""
        talk.now(replace(said, undone=True), replace(answer, undone=True))
        await pilot.pause()
        assert struck(pilot) == "Ann: list files\nHere they are."
        assert shown(pilot).count("(taken back)") == 2


def struck(pilot: Pilot[None]) -> str:
    """The text on the screen that has a line through it."""
    rows = pilot.app.screen._compositor.render_strips()
    lines = ("".join(part.text for part in row if part.style and part.style.strike) for row in rows)
    return "\n".join(line.rstrip() for line in lines if line)


async def test_a_reply_streams_and_is_replaced_by_the_final_text() -> None:
    talk = FakeConversation(user("hi"))
    async with screen(talk) as pilot:
        talk.now(user("hi"), live="Hel", activity="writing")
        await pilot.pause()
        assert "Hel" in shown(pilot)
        assert "writing" in shown(pilot)
        talk.now(user("hi"), assistant("Hello there."))
        await pilot.pause()
        assert shown(pilot).count("Hel") == 1


async def test_what_a_tool_prints_is_one_line_as_it_is() -> None:
    talk = FakeConversation(user("hi"))
    async with screen(talk) as pilot:
        status = pilot.app.query_one("#status", Static)
        talk.now(user("hi"), activity="output [1/3] [bold]\n[@click=app.quit]x[/]\n")
        await pilot.pause()
        assert "output [1/3] [bold] [@click=app.quit]x[/]" in shown(pilot)
        assert status.size.height == 1


def test_what_a_run_does_is_told_until_that_very_run_is_over() -> None:
    doing = Doing()

    def comes(run: str, state: str, detail: str = "") -> str:
        doing.take({"run_id": run, "state": state, "detail": detail})
        return doing.text

    assert comes("r1", "thinking") == "thinking"
    assert comes("r1", "tool", "exec") == "tool exec"
    assert comes("r1", "output", "one\n\r50%\r60%\n\n") == "output 60%"
    assert comes("r1", "output", "\n\n") == "output 60%", "nothing new was printed"
    assert comes("r2", "thinking") == "thinking"
    assert comes("r1", "done") == "thinking", "the next run began before the end of this was told"
    doing.end("r1")
    assert doing.text == "thinking"
    assert comes("r2", "done") == ""
    assert comes("r2", "thinking") == "thinking", "it gave an answer and goes on"
    doing.end("r2")
    assert doing.text == ""


@pytest.mark.parametrize("order", list(permutations(["thinking", "output", "done", "over"])))
def test_a_run_that_is_over_does_nothing_whatever_came_last(order: tuple[str, ...]) -> None:
    doing = Doing()
    for state in order:
        if state == "over":
            doing.end("r1")
        else:
            doing.take({"run_id": "r1", "state": state, "detail": "50%"})
    assert doing.text == ""


async def test_what_is_typed_is_sent_and_a_refusal_is_shown() -> None:
    talk = FakeConversation()
    async with screen(talk) as pilot:
        await type_line(pilot, "hello")
        assert talk.said == ["hello"]
        assert pilot.app.query_one("#prompt", Input).value == ""
        talk.refusal = "The session has ended."
        await type_line(pilot, "again")
        assert "The session has ended." in shown(pilot)


async def test_a_long_conversation_opens_at_its_end_and_scrolls_back() -> None:
    entries = [user(f"message {number}", key=f"u{number}") for number in range(60)]
    async with screen(FakeConversation(*entries)) as pilot:
        await pilot.pause()
        assert "message 59" in shown(pilot)
        for _ in range(12):
            await pilot.press("pageup")
            await pilot.pause()
        assert "message 0" in shown(pilot)


@pytest.mark.parametrize(
    ("key", "decision"), [("ctrl+y", "once"), ("ctrl+t", "session"), ("ctrl+n", "deny")]
)
async def test_keys_answer_the_open_approval(key: str, decision: str) -> None:
    talk = FakeConversation(approval())
    async with screen(talk) as pilot:
        assert "Approval abc123" in shown(pilot)
        assert "exec" in shown(pilot)
        await pilot.press(key)
        await pilot.pause()
    assert talk.decided == [("abc123", decision)]


@pytest.mark.requirement("APR-10")
@pytest.mark.parametrize("word", ["yes", "y", "no", "n", "allow", "once"])
async def test_plain_words_never_answer_an_approval(word: str) -> None:
    talk = FakeConversation(approval())
    async with screen(talk) as pilot:
        await type_line(pilot, word)
    assert talk.decided == []
    assert talk.said == [word]


@pytest.mark.requirement("APR-10")
async def test_a_key_decides_nothing_where_several_approvals_are_open() -> None:
    talk = FakeConversation(approval(), approval())
    async with screen(talk) as pilot:
        await pilot.press("ctrl+y")
        await pilot.pause()
        assert "/approve abc123, /approve abc123" in shown(pilot)
    assert talk.decided == []


@pytest.mark.requirement("APR-10")
async def test_plain_words_answer_none_of_several_questions() -> None:
    talk = FakeConversation(question("red", "blue"), question("one", "two"))
    async with screen(talk) as pilot:
        await type_line(pilot, "red")
    assert talk.answered == []
    assert talk.said == ["red"]


async def test_without_an_open_approval_keys_and_words_decide_nothing() -> None:
    talk = FakeConversation(approval(settled="Ann allowed it once"))
    async with screen(talk) as pilot:
        assert "Ann allowed it once" in shown(pilot)
        await pilot.press("ctrl+y")
        await pilot.pause()
        assert "Nothing waits" in shown(pilot)
        await type_line(pilot, "yes")
    assert talk.decided == []
    assert talk.said == ["yes"]


@pytest.mark.parametrize(("typed", "answer"), [("2", "blue"), ("green", "green"), ("9", "9")])
async def test_what_is_typed_answers_an_open_question(typed: str, answer: str) -> None:
    talk = FakeConversation(question("red", "blue"))
    async with screen(talk) as pilot:
        assert "1. red" in shown(pilot)
        await type_line(pilot, typed)
        await type_line(pilot, "/status")
    assert talk.answered == [("def456", answer)]
    assert talk.said == ["/status"]


async def test_a_slash_offers_commands_and_tab_completes() -> None:
    async with screen(FakeConversation()) as pilot:
        await pilot.press("slash", "s", "t")
        await pilot.pause()
        assert "/status  /stop" in shown(pilot)
        prompt = pilot.app.query_one("#prompt", Input)
        values = []
        for _ in range(3):
            await pilot.press("tab")
            await pilot.pause()
            values.append(prompt.value)
        assert values == ["/status ", "/stop ", "/status "]


async def test_the_first_ctrl_c_stops_what_runs_and_the_second_leaves() -> None:
    talk = FakeConversation(user("hi"))
    talk.stops = [True, True]
    async with screen(talk) as pilot:
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert "Stopped. Ctrl+C again leaves." in shown(pilot)
        await type_line(pilot, "something else")
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert pilot.app.is_running, "what was said since is at work"
        assert talk.stops == []
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert not pilot.app.is_running


@pytest.mark.parametrize("key", ["ctrl+c", "ctrl+d"])
async def test_keys_leave(key: str) -> None:
    async with screen(FakeConversation()) as pilot:
        await pilot.press(key)
        await pilot.pause()
        assert not pilot.app.is_running


async def test_a_lost_connection_is_said() -> None:
    talk = FakeConversation(user("hi"))
    async with screen(talk) as pilot:
        talk.now(user("hi"), trouble="Not connected: no gateway")
        await pilot.pause()
        assert "Not connected" in shown(pilot)


async def test_nothing_that_is_said_steers_the_terminal() -> None:
    evil = "\x1b[2J\x1b]0;title\x07gone [bold]not markup[/bold]"
    talk = FakeConversation(user(evil), assistant(evil))
    async with screen(talk) as pilot:
        seen = shown(pilot)
        texts = [str(one.render()) for one in pilot.app.query(Static)]
    assert "gone [bold]not markup[/bold]" in seen
    assert "\x1b" not in seen + "".join(texts)
    assert "title" not in seen
