"""What is typed into a command at work is judged by whole lines, for the command that the card
names (TOOL-6, POL-3, APR-3)."""

import json

import pytest

from runtime.domain.decisions import PermissionMode
from runtime.domain.errors import Conflict, ToolError
from runtime.features.tasks.model import TaskUpdate, ends_line, is_same_command
from runtime.features.tasks.tools import PIECE
from runtime.sessions.bounds import PolicySettings, rule_lists
from tests.fakes.model import ScriptedModel
from tests.scenario.cards import card, policy, results
from tests.scenario.schedules.test_reminders import House, house
from tests.scenario.tasks.test_background_commands import (
    Begun,
    begins,
    board,
    given,
    running,
    starting,
)
from tests.scenario.tasks.test_tools import by_name

__all__ = ["house"]

NO_RM = policy(PolicySettings(mode=PermissionMode.BYPASS, rules=rule_lists(deny=("exec(rm:*)",))))


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        *[("", True), ("ls\n", True), ("ls", False), ("\n", True)],
        *[("r\\\n", False), ("r\\\\\n", True), ("r\\\\\\\n", False), ("\\\n", False)],
        *[("ls\nrm", False), ("ls\\\nrm\n", True), ("ls\r", False)],
    ],
)
@pytest.mark.requirement("TOOL-6", "POL-3")
def test_a_line_ends_where_nothing_that_follows_can_belong_to_it(text: str, *, ends: bool) -> None:
    assert ends_line(text) is ends


@pytest.mark.parametrize(
    ("named", "same"),
    [("sh  setup.sh\nls ", True), ("sh setup.sh ls", False), ("sh setup.sh", False)],
)
@pytest.mark.requirement("TOOL-6", "APR-3")
def test_a_command_is_named_with_its_line_breaks(named: str, *, same: bool) -> None:
    assert is_same_command(named, "sh setup.sh\nls") is same
    assert not is_same_command("true # sh", "true #\nsh")


@pytest.mark.requirement("TOOL-6", "POL-3")
@pytest.mark.parametrize(
    "piece",
    [
        {"text": "r", "enter": False},
        {"text": "r\\"},
        {"text": "ls\nr\\"},
        {"text": "rm -rf x"},
        {"text": "ls\nrm -rf x"},
        {"text": "r\\\nm -rf x"},
        {"text": "rm -rf x", "enter": False, "close": True},
    ],
)
async def test_no_rule_is_evaded_by_pieces(house: House, piece: dict[str, object]) -> None:
    """Nothing of it reaches the command, so no further piece can end the line."""
    calls = [running("talks")]
    model = ScriptedModel(lambda _request: calls.pop(0) if calls else "It runs.")
    async with begins(house, model, NO_RM) as at:
        command = await Begun.of(at)
        calls.append(by_name("write", id=command.code, command="talks", **piece))
        await at.says("type it")
        await at.sees(2)
        (said,) = results(model.requests[-1])
        assert PIECE in said.content or "deny rule: exec(rm:*)" in said.content
        assert not (await command.output()).output_excerpt


@pytest.mark.requirement("TOOL-6", "APR-1", "APR-3")
async def test_the_card_names_the_command_and_the_whole_line(house: House) -> None:
    calls = [running("talks")]
    model = ScriptedModel(lambda _request: calls.pop(0) if calls else "It runs.")
    async with begins(house, model, policy(PolicySettings(mode=PermissionMode.DEFAULT))) as at:
        await at.says("run it")
        await at.presses((await card(at)).open_call_id, "once")
        await at.chat.until(lambda: "It runs." in at.chat.texts())
        said = await at.says("type it")
        await at.sees(2)
        (task,) = (await board(at).listing(str(said.session_id))).items
        calls.append(by_name("write", id=task.id, command="talks", text="hello there"))
        await at.says("now")
        shown = await card(at, 2)
        assert shown.tool == "task_write"
        asked = json.loads(shown.arguments)
        assert (asked["command"], asked["text"]) == ("talks", "hello there")
        await at.presses(shown.open_call_id, "once")
        begun = Begun(at, str(said.session_id), str(said.run_id), task)
        await begun.printed("heard hello there\n")


@pytest.mark.requirement("TOOL-6", "APR-3")
async def test_what_was_allowed_for_one_command_is_typed_into_no_other(house: House) -> None:
    async with begins(house, starting("talks")) as at:
        command = await Begun.of(at)
        tool = next(one for one in at.engine.parts.registry.tools if one.name == "task_write")

        async def types(**asked: object) -> str:
            bound = tool.bind({"id": command.task.id, **asked})
            return (await bound.run(given(at, command.session, command.run))).content

        with pytest.raises(ToolError, match=r"^command: must be what this task runs: 'talks'"):
            await types(command="cat", text="rm -rf x")
        # Nor can the words that the card names it by be changed.
        for change in ({"title": "cat"}, {"description": "cat"}):
            with pytest.raises(Conflict, match="stay so"):
                await board(at).update(command.session, command.task.id, TaskUpdate(**change))
        # A program may type in pieces; then it ends the line as well.
        await board(at).write(command.session, command.task.id, "rm ")
        with pytest.raises(ToolError, match="the beginning of a line"):
            await types(command="talks", text="-rf x")
        await board(at).write(command.session, command.task.id, "-i\n")
        await types(command=" talks ", text="hello")
        await command.printed("heard rm -i\nheard hello\n")
