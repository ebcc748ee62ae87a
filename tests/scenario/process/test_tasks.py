"""`gatehouse tasks`: the tasks of a session on the command line, with real commands behind them."""

import json
import signal

import pytest

from runtime.domain.ids import code_of
from tests.conftest import FailAfter
from tests.scenario.process.program import Place, command, gateway, reaching

SETTINGS = '[tools]\nsandbox = "none"\n[policy]\nallow = ["exec"]\n'
HERE = "terminal:main"
BEGIN = "run `echo begun; cat` in the background and tell me when it is done"

pytestmark = pytest.mark.requirement("OPS-2", "TSK-1")


@pytest.mark.requirement("TSK-2", "TSK-5")
async def test_a_command_is_watched_followed_shown_and_stopped(
    place: Place, fail_after: FailAfter
) -> None:
    place.configure(SETTINGS)
    async with fail_after(120), gateway(place) as program:
        there = reaching(place, await program.url())
        await command(there, "chat", "-m", "hello")
        none = await command(there, "tasks", "list", HERE)
        assert (none.code, none.out) == (0, "")
        assert none.err == "There are no such tasks in this session.\n"
        assert (await command(there, "tasks", "list", HERE, "--json")).out == "[]\n"
        async with gateway(there, "tasks", "list", HERE, "--watch") as watched:
            await watched.until(watched.err, lambda line: line.startswith("There are no such"))
            said = await command(there, "chat", "-m", BEGIN)
            assert "task_output shows what it prints" in said.out
            (task,) = json.loads((await command(there, "tasks", "list", HERE, "--json")).out)
            await watched.until(
                watched.out, lambda line: task["id"] in line and "in_progress" in line
            )
            async with gateway(there, "tasks", "output", HERE, task["id"], "--follow") as followed:
                await followed.until(followed.out, lambda line: line == "begun")
                stopped = await command(
                    there, "tasks", "stop", HERE, task["id"], "--reason", "enough"
                )
                assert stopped.out == f"{task['id']} is in_progress, and was told to stop.\n"
                assert await followed.ended() == 0
                assert followed.err[-1].startswith(f"{task['id']} is cancelled: ")
                assert followed.out == ["begun"]
            await watched.until(
                watched.out, lambda line: task["id"] in line and "cancelled" in line
            )
            watched.signal(signal.SIGINT)
            assert await watched.ended() == 0
        again = await command(there, "tasks", "stop", HERE, task["id"], "--reason", "late")
        assert again.out == f"{task['id']} is cancelled.\n"
        shown = await command(there, "tasks", "show", HERE, task["id"])
        assert "\nstatus      cancelled\n" in shown.out
        assert "\nstop_reason: enough\n" in shown.out
        assert "\nprocess_tree_shutdown_confirmed: True\n" in shown.out
        found = json.loads((await command(there, "tasks", "show", HERE, task["id"], "--json")).out)
        assert (found["status"], found["metadata"]["stop_reason"]) == ("cancelled", "enough")
        listed = await command(there, "tasks", "list", HERE, "--status", "cancelled")
        assert task["id"] in listed.out
        assert (await command(there, "tasks", "list", HERE, "--status", "failed")).out == ""


@pytest.mark.requirement("TSK-2")
async def test_an_output_is_shown_from_its_end_or_whole(
    place: Place, fail_after: FailAfter
) -> None:
    place.configure(SETTINGS)
    async with fail_after(120), gateway(place) as program:
        there = reaching(place, await program.url())
        await command(there, "chat", "-m", "run `echo one; echo two` in the background")
        (task,) = json.loads((await command(there, "tasks", "list", HERE, "--json")).out)
        read = ("tasks", "output", HERE, task["id"])
        assert (await command(there, *read, "--follow")).out == "one\ntwo\n"
        assert (await command(there, *read)).out == "one\ntwo\n"
        code = code_of(task["id"])
        assert (await command(there, "tasks", "output", HERE, code)).out == "one\ntwo\n"
        stopped = await command(there, "tasks", "stop", HERE, code)
        assert stopped.out == f"{task['id']} is completed.\n"
        assert (await command(there, *read, "--tail", "4")).out == "two\n"
        assert (await command(there, *read, "--full")).out == "one\ntwo\n"
        view = json.loads((await command(there, *read, "--full", "--json")).out)
        assert (view["retrieval_status"], view["task"]["status"]) == ("success", "completed")
        assert (view["output_text"], view["output_total_bytes"]) == ("one\ntwo\n", 8)
        shown = await command(there, "tasks", "show", HERE, task["id"])
        assert "\nresult      exit code 0\n" in shown.out
        assert (await command(there, "tasks", "show", HERE, code)).out == shown.out


async def test_what_is_wrong_is_said_and_nothing_is_done(
    place: Place, fail_after: FailAfter
) -> None:
    async with fail_after(90), gateway(place) as program:
        there = reaching(place, await program.url())
        await command(there, "chat", "-m", "add a task to water the plants")
        (task,) = json.loads((await command(there, "tasks", "list", HERE, "--json")).out)
        for given, code, told in (
            (("list", "terminal:none"), 1, "terminal:none"),
            (("list", HERE, "--status", "over"), 2, "in_progress"),
            (("list", HERE, "--watch", "--json"), 2, "--watch is for people"),
            (("show", HERE, "tsk_none"), 1, "no task has the id tsk_none"),
            (("stop", HERE, "tsk_none"), 1, "no task has the id tsk_none"),
            (("output", HERE, "tsk_none"), 1, "no task has the id tsk_none"),
            (("output", HERE, task["id"], "--full", "--tail", "5"), 2, "use one of them"),
            (("output", HERE, task["id"], "--tail", "262145"), 2, "262"),
            (("output", HERE, task["id"], "--follow", "--json"), 2, "--follow is for people"),
        ):
            ended = await command(there, "tasks", *given)
            assert (ended.code, ended.out) == (code, ""), (given, ended)
            assert told in " ".join(ended.err.split()), (given, ended.err)
            assert "Traceback" not in ended.err
        assert (await command(there, "tasks", "output", HERE, task["id"])).err == (
            "It has printed nothing.\n"
        )
        (same,) = json.loads((await command(there, "tasks", "list", HERE, "--json")).out)
        assert same == task
