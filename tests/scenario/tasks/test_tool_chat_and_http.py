"""The same tasks by tool, by chat and over HTTP: whichever way one goes, the same is true.

The tools are called by the offline model in the agent loop, the chat is `/tasks` and plain
sentences, and HTTP is `/v1/sessions/{id}/tasks`. Each way reads with its own eyes.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from adapters.models.offline import OfflineModel
from runtime.domain.decisions import PermissionMode
from runtime.domain.ids import code_of
from runtime.sessions.bounds import PolicySettings
from tests.contract.store_support import BOTH
from tests.fakes.model import ScriptedModels
from tests.fakes.sandbox import FakeStdio
from tests.scenario.harness import Plan, Site, database_of, site

ENDS: Final = ("completed", "failed", "cancelled", "interrupted")
SAID: Final = {
    "to be done": "pending",
    "in progress": "in_progress",
    "running": "in_progress",
    "being stopped": "in_progress",
    "blocked": "blocked",
    "done": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
    "stopped": "cancelled",
}
"""How the chat calls each status."""


@dataclass(frozen=True, slots=True)
class Output:
    """What one reads of a command: `status` and `exit_code` of its task, and what it printed."""

    status: str
    exit_code: int | None
    text: str


async def two_lines(stdio: FakeStdio) -> int:
    await stdio.write(b"one\ntwo\n")
    return 0


async def breaks(stdio: FakeStdio) -> int:
    await stdio.write(b"no such thing\n")
    return 3


async def obeys(stdio: FakeStdio) -> int:
    """A command that runs until it is told to end."""
    await stdio.write(b"at work\n")
    await stdio.terminated.wait()
    return 143


class Way(ABC):
    """One way to a session's tasks. A task is named as this way names it."""

    def __init__(self, at: Site, session: str) -> None:
        self.at, self.session = at, session

    async def run(self, sentence: str) -> list[dict[str, object]]:
        """What stands in the conversation of a sentence once its run has ended."""
        run = await self.at.says(self.session, sentence)
        await self.at.state(run, *ENDS)
        found = await self.at.messages(self.session)
        return [one for one in found if one["run_id"] == run]

    async def start(self, command: str) -> str:
        """Start a command in the background, as people do; its task."""
        before = {str(one["id"]) for one in await self.truth()}
        said = await self.run(f"run `{command}` in the background and tell me when it is done")
        (new,) = [one for one in await self.truth() if one["id"] not in before]
        assert code_of(str(new["id"])) in str(said), "who asked is told its name"
        return await self.named(str(new["id"]))

    async def truth(self) -> list[dict[str, object]]:
        """The tasks of the session as they are kept."""
        _, page = await self.at.ask("GET", f"/v1/sessions/{self.session}/tasks?limit=200")
        return list(page["items"])

    async def facts(self, task: str) -> dict[str, object]:
        """What is kept of a task besides its status."""
        (one,) = [one for one in await self.truth() if code_of(str(one["id"])) == code_of(task)]
        return dict(one["metadata"])

    async def over(self, task: str) -> None:
        """Return once a command has ended."""
        (one,) = [one for one in await self.truth() if code_of(str(one["id"])) == code_of(task)]
        path = f"/v1/sessions/{self.session}/tasks/{one['id']}/output?wait=true"
        while (await self.at.ask("GET", path))[1]["task"]["status"] == "in_progress":
            pass

    async def notices(self) -> list[str]:
        """What the gateway told of tasks by itself."""
        found = await self.at.messages(self.session)
        told = re.compile(r"Task `\w+`, .*: (?:done|failed|stopped|cancelled)")
        return [
            str(one["text"])
            for one in found
            if one["kind"] == "notice" and one["answers"] is None and told.match(str(one["text"]))
        ]

    async def named(self, task_id: str) -> str:
        return task_id

    @abstractmethod
    async def add(self, title: str, *, after: Sequence[str] = ()) -> str:
        """Make a task; its name."""

    @abstractmethod
    async def listed(self, status: str = "") -> dict[str, tuple[str, str]]:
        """Code -> title and status, of all tasks or of those of a status."""

    @abstractmethod
    async def mark(self, task: str, status: str) -> str:
        """Give a task another status; "" or why not."""

    @abstractmethod
    async def wait_for(self, task: str, other: str) -> str:
        """Let a task wait for another; "" or why not."""

    @abstractmethod
    async def cause(self, task: str) -> str:
        """Why a task stays blocked."""

    @abstractmethod
    async def stop(self, task: str, reason: str = "") -> str:
        """Stop a task; how it stands then, or why not."""

    @abstractmethod
    async def output(self, task: str) -> Output:
        """What a command printed."""


class ByTool(Way):
    """The tools, called by name with their arguments."""

    async def call(self, tool: str, **arguments: object) -> tuple[bool, str]:
        """Whether a call went well, and what it gave the model."""
        given = json.dumps(arguments)
        said = await self.run(f"use tool `{tool}` with `{given}`")
        (call,) = [call for one in said for call in one["calls"]]
        assert call["name"] == tool, "the call is kept under the tool's own name"
        return call["status"] == "ok", str(call["result"])

    async def add(self, title: str, *, after: Sequence[str] = ()) -> str:
        good, told = await self.call("task_create", title=title, blocked_by=list(after))
        assert good, told
        return _line(told)[0]

    async def listed(self, status: str = "") -> dict[str, tuple[str, str]]:
        _, told = await self.call("task_list", **({"status": status} if status else {}))
        if told == "There are no such tasks.":
            return {}
        lines = [_line(line) for line in told.splitlines()]
        return {code_of(task): (title, status) for task, title, status, _ in lines}

    async def mark(self, task: str, status: str) -> str:
        good, told = await self.call("task_update", id=task, status=status)
        return "" if good else told

    async def wait_for(self, task: str, other: str) -> str:
        good, told = await self.call("task_update", id=task, blocked_by=[other])
        return "" if good else told

    async def cause(self, task: str) -> str:
        _, told = await self.call("task_get", id=task)
        return str(json.loads(told)["metadata"]["blocked_reason"])

    async def stop(self, task: str, reason: str = "") -> str:
        good, told = await self.call("task_stop", id=task, **({"reason": reason} if reason else {}))
        return _line(told)[2] if good else told

    async def output(self, task: str) -> Output:
        _, told = await self.call("task_output", id=task)
        first, *lines = told.splitlines()
        _, _, status, code = _line(first)
        facts = ("terminal_reason: ", "stop_reason: ")
        printed = [line for line in lines if not line.startswith(facts)]
        return Output(status, code, "\n".join(printed))


def _line(text: str) -> tuple[str, str, str, int | None]:
    """Id, title, status and exit code of a task as the tools tell of it: the status leads."""
    found = re.match(
        r"\[(\w+)(?:, exit code (-?\d+))?\] (tsk_\w+): (.+?)(?:, blocked by .+)?$", text
    )
    assert found, text
    status, code, task, title = found.groups()
    return task, title, status, None if code is None else int(code)


class ByChat(Way):
    """`/tasks`, and plain sentences that the offline model understands."""

    async def named(self, task_id: str) -> str:
        return code_of(task_id)

    async def says(self, command: str) -> str:
        """What a command is answered."""
        before = {str(one["key"]) for one in await self.at.messages(self.session)}
        async with self.at.feed(f"session_id={self.session}") as feed:
            await self.at.ask("POST", f"/v1/sessions/{self.session}/runs", {"content": command})
            while True:
                for one in await self.at.messages(self.session):
                    if one["key"] not in before and one["answers"] is not None:
                        return str(one["text"])
                await feed.next()

    async def reply(self, sentence: str) -> str:
        """What the offline model says to a sentence."""
        said = await self.run(sentence)
        return str(next(one["text"] for one in reversed(said) if one["kind"] == "assistant"))

    async def add(self, title: str, *, after: Sequence[str] = ()) -> str:
        behind = f", after tasks {', '.join(after)}" if after else ""
        told = await self.reply(f"add a task to {title}{behind}")
        found = re.search(r"tsk_\w+", told)
        assert found, told
        return code_of(found.group())

    async def listed(self, status: str = "") -> dict[str, tuple[str, str]]:
        if status:
            told = await self.reply(f"list {status} tasks")
            lines = [_line(line) for line in told.splitlines() if line.startswith("[")]
            return {code_of(task): (title, status) for task, title, status, _ in lines}
        told = await self.says("/tasks")
        rows = re.findall(
            r"^- `(\w+)` `(.+)`: ([^,:\n]+?)(?: with exit code .+|[,:].*)?$", told, re.M
        )
        return {code: (title, SAID[standing]) for code, title, standing in rows}

    async def mark(self, task: str, status: str) -> str:
        return _refused(await self.reply(f"mark task {task} as {status}"))

    async def wait_for(self, task: str, other: str) -> str:
        return _refused(await self.reply(f"let task {task} wait for task {other}"))

    async def cause(self, task: str) -> str:
        told = await self.says("/tasks")
        found = re.search(rf"^- `{task}` .+: blocked, because (.+)$", told, re.M)
        assert found, told
        return found.group(1)

    async def stop(self, task: str, reason: str = "") -> str:
        if reason:
            told = await self.reply(f"stop task {task} because {reason}")
            line = next((one for one in told.splitlines() if one.startswith("[")), "")
            return _line(line)[2] if line else told
        told = await self.says(f"/tasks stop {task}")
        found = re.fullmatch(
            r"Task `\w+` is (?:over already: )?(.+?)(?: already| with exit code \d+)?\.", told
        )
        return SAID[found.group(1)] if found else told

    async def output(self, task: str) -> Output:
        told = await self.says(f"/tasks output {task}")
        found = re.fullmatch(
            r"Task `\w+`, `.+`: ([\w ]+?)(?: with exit code (\d+))?\.\n\n"
            r"(?:```\n(.*)\n```|It has printed nothing\.)",
            told,
            re.S,
        )
        assert found, told
        status = SAID[found.group(1)]
        code = found.group(2) or ("0" if status == "completed" else None)
        return Output(status, None if code is None else int(code), found.group(3) or "")


def _refused(told: str) -> str:
    return told if "did not work" in told else ""


class ByHttp(Way):
    """The API."""

    async def ask(
        self, method: str, task: str = "", body: object = None
    ) -> tuple[int, dict[str, object]]:
        return await self.at.ask(method, f"/v1/sessions/{self.session}/tasks{task}", body)

    async def add(self, title: str, *, after: Sequence[str] = ()) -> str:
        status, made = await self.ask("POST", "", {"title": title, "blocked_by": list(after)})
        assert status == 201, made
        return str(made["id"])

    async def listed(self, status: str = "") -> dict[str, tuple[str, str]]:
        _, page = await self.ask("GET", f"?status={status}" if status else "")
        return {
            code_of(str(one["id"])): (str(one["title"]), str(one["status"]))
            for one in page["items"]
        }

    async def mark(self, task: str, status: str) -> str:
        code, told = await self.ask("PATCH", f"/{task}", {"status": status})
        return "" if code == 200 else str(told["detail"])

    async def wait_for(self, task: str, other: str) -> str:
        code, told = await self.ask("PATCH", f"/{task}", {"blocked_by": [other]})
        return "" if code == 200 else str(told["detail"])

    async def cause(self, task: str) -> str:
        _, found = await self.ask("GET", f"/{task}")
        return str(found["metadata"]["blocked_reason"])

    async def stop(self, task: str, reason: str = "") -> str:
        code, told = await self.ask("POST", f"/{task}/stop", {"reason": reason} if reason else {})
        return str(told["status"] if code == 200 else told["detail"])

    async def output(self, task: str) -> Output:
        _, view = await self.ask("GET", f"/{task}/output")
        found, text = view["task"], str(view["output_excerpt"])
        return Output(found["status"], found["metadata"].get("exit_code"), text.rstrip())


Begin = Callable[[], AbstractAsyncContextManager[Way]]


@pytest.fixture(params=[ByTool, ByChat, ByHttp], ids=["tool", "chat", "http"])
def kind(request: pytest.FixtureRequest) -> type[Way]:
    return request.param


@pytest.fixture(params=BOTH)
async def database(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """Where the rows are."""
    async with database_of(request.param) as url:
        yield url


@pytest.fixture
def begin(tmp_path: Path, kind: type[Way], database: str) -> Begin:
    """A gateway with the offline model, and one way to the tasks of a session."""

    @asynccontextmanager
    async def begun() -> AsyncIterator[Way]:
        plan = Plan(
            tmp_path,
            ScriptedModels(OfflineModel()),
            database=database,
            policy=PolicySettings(mode=PermissionMode.BYPASS),
            programs={"make test": two_lines, "breaks": breaks, "obeys": obeys},
        )
        async with site(plan) as at:
            yield kind(at, await at.session())

    return begun


@pytest.mark.requirement("TSK-1", "CTX-12", "MSG-12", "TOOL-14", "OPS-4")
async def test_a_task_is_made_listed_by_its_status_and_done(begin: Begin) -> None:
    async with begin() as way:
        assert await way.listed() == {}
        one, two = await way.add("water the plants"), await way.add("feed the cat")
        pending = ("water the plants", "pending"), ("feed the cat", "pending")
        assert await way.listed() == dict(zip(map(code_of, (one, two)), pending, strict=True))
        assert await way.mark(one, "in_progress") == ""
        assert await way.listed("in_progress") == {
            code_of(one): ("water the plants", "in_progress")
        }
        assert await way.mark(one, "completed") == ""
        assert await way.listed("pending") == {code_of(two): ("feed the cat", "pending")}
        assert await way.listed("failed") == {}
        assert "completed and cannot become pending" in await way.mark(one, "pending")
        assert (await way.listed())[code_of(one)] == ("water the plants", "completed")


@pytest.mark.requirement("TSK-1")
async def test_what_blocks_a_task_frees_it_once_all_of_it_is_completed(begin: Begin) -> None:
    async with begin() as way:
        one, two = await way.add("first"), await way.add("second")
        last = await way.add("third", after=[one, two])
        assert (await way.listed())[code_of(last)] == ("third", "blocked")
        assert "blocked" in await way.mark(last, "in_progress")
        await way.mark(one, "completed")
        assert await way.listed("blocked") == {code_of(last): ("third", "blocked")}
        await way.mark(two, "completed")
        assert (await way.listed())[code_of(last)] == ("third", "pending")


@pytest.mark.requirement("TSK-1")
async def test_a_blocker_that_failed_keeps_it_blocked_and_is_named(begin: Begin) -> None:
    async with begin() as way:
        one = await way.add("first")
        last = await way.add("second", after=[one])
        await way.mark(one, "failed")
        assert (await way.listed())[code_of(last)] == ("second", "blocked")
        cause = await way.cause(last)
        assert code_of(one) in cause
        assert cause.endswith("(first) failed")


@pytest.mark.requirement("TSK-1")
async def test_no_task_waits_for_itself(begin: Begin) -> None:
    async with begin() as way:
        one = await way.add("first")
        last = await way.add("second", after=[one])
        for other in (last, one):
            assert "wait for itself" in await way.wait_for(one, other)
        assert (await way.listed())[code_of(one)] == ("first", "pending")
        await way.mark(one, "completed")
        assert (await way.listed())[code_of(last)] == ("second", "pending")


@pytest.mark.requirement("TSK-1", "TSK-5")
async def test_a_stop_keeps_its_reason_and_changes_nothing_that_is_over(begin: Begin) -> None:
    async with begin() as way:
        one, done = await way.add("first"), await way.add("second")
        await way.mark(done, "completed")
        assert await way.stop(done) == "completed"
        assert await way.facts(done) == {}
        assert await way.stop(one, "it takes too long") == "cancelled"
        assert await way.stop(one, "something else") == "cancelled"
        assert await way.facts(one) == {
            "stop_requested": True,
            "stop_reason": "it takes too long",
        }


@pytest.mark.requirement("TSK-1", "TSK-2", "TOOL-6", "OPS-4")
@pytest.mark.parametrize(
    ("command", "expected", "told"),
    [
        ("make test", Output("completed", 0, "one\ntwo"), "done."),
        ("breaks", Output("failed", 3, "no such thing"), "failed with exit code 3."),
    ],
)
async def test_a_command_in_the_background_is_read_and_who_asked_is_told_once(
    begin: Begin, command: str, expected: Output, told: str
) -> None:
    async with begin() as way:
        task = await way.start(command)
        await way.over(task)
        assert await way.output(task) == expected
        assert await way.listed(expected.status) == {code_of(task): (command, expected.status)}
        (notice,) = await way.notices()
        assert notice.startswith(f"Task `{code_of(task)}`, `{command}`: {told}")
        assert await way.stop(task) == expected.status


@pytest.mark.requirement("TSK-1", "TSK-2", "TSK-5")
async def test_a_command_at_work_is_read_and_stopped(begin: Begin) -> None:
    async with begin() as way:
        task = await way.start("obeys")
        assert (await way.output(task)).status == "in_progress"
        waiting = await way.add("tidy up", after=[task])
        assert await way.stop(task) == "in_progress"
        assert (await way.facts(task))["stop_requested"] is True
        await way.over(task)
        assert (await way.output(task)).text == "at work"
        assert (await way.listed())[code_of(task)] == ("obeys", "cancelled")
        assert code_of(task) in await way.cause(waiting)
        (notice,) = await way.notices()
        assert notice.startswith(f"Task `{code_of(task)}`, `obeys`: stopped.")


@pytest.mark.requirement("TSK-1", "TSK-5")
async def test_another_session_has_no_such_task(begin: Begin, kind: type[Way]) -> None:
    async with begin() as way:
        task = await way.add("mine")
        other = kind(way.at, await way.at.session())
        assert await other.listed() == {}
        for refusal in (
            await other.mark(task, "completed"),
            await other.stop(task),
            await other.wait_for(task, task),
        ):
            assert re.search(r"no task (?:has the id|`\w+` here)", refusal), refusal
        assert await way.listed() == {code_of(task): ("mine", "pending")}
