"""Tasks by the API: made, listed, changed, blocked and stopped, and what commands print (TSK-1,
TSK-2), on each database."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from runtime.domain.decisions import PermissionMode
from runtime.domain.events import EventKind
from runtime.features.tasks import changes
from runtime.features.tasks.output_file import CAP_BYTES, KEPT_BYTES, marker, output_path
from runtime.sessions.bounds import PolicySettings
from tests.contract.store_support import BOTH
from tests.fakes.clock import FakeClock
from tests.fakes.model import Said, ScriptedModel, ScriptedModels
from tests.fakes.sandbox import FakeStdio
from tests.scenario.harness import READER, Plan, Site, database_of, site
from tests.scenario.http.conftest import Sites

MANY = b"".join(b"line %06d\n" % number for number in range(25_000))
"""300,000 bytes, all of them different lines."""
HUGE = (b"y" * 1023 + b"\n") * 9 * 1024
"""9 MiB: more than a file of output keeps."""


@pytest.fixture(params=BOTH)
async def database(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    async with database_of(request.param) as url:
        yield url


@pytest.fixture
def sites(tmp_path: Path, database: str) -> Sites:
    """Gateways on one database, of each kind, whose commands need no approval."""

    def make(
        *script: Said | str, change: Callable[[Plan], None] = lambda plan: None
    ) -> AbstractAsyncContextManager[Site]:
        plan = Plan(
            tmp_path,
            ScriptedModels(ScriptedModel(script)),
            database=database,
            policy=PolicySettings(mode=PermissionMode.BYPASS),
            programs={
                "many": prints(MANY),
                "huge": prints(HUGE),
                "fails": prints(b"oh\n", 3),
                "obeys": obeys,
            },
        )
        change(plan)
        return site(plan)

    return make


def prints(text: bytes, code: int = 0) -> Callable[[FakeStdio], object]:
    async def program(stdio: FakeStdio) -> int:
        await stdio.write(text)
        return code

    return program


async def obeys(stdio: FakeStdio) -> int:
    """A command that prints a line and runs until it is told to end."""
    await stdio.write(b"at work\n")
    await stdio.terminated.wait()
    return 143


def starts(command: str) -> tuple[Said, str]:
    """What a model says that starts a command in the background."""
    return Said(calls=(("exec", json.dumps({"command": command, "background": True})),)), "It runs."


async def begun(gateway: Site) -> tuple[str, dict[str, object]]:
    """A session whose model has started a command, and its task."""
    session = await gateway.session()
    await gateway.state(await gateway.says(session, "run it"), "completed")
    _, page = await gateway.ask("GET", f"/v1/sessions/{session}/tasks")
    return session, page["items"][-1]


async def read(
    gateway: Site, session: str, task: dict[str, object], query: str = ""
) -> dict[str, object]:
    """The view of an output."""
    path = f"/v1/sessions/{session}/tasks/{task['id']}/output?{query}"
    status, view = await gateway.ask("GET", path)
    assert status == 200, view
    return view


async def ended(gateway: Site, session: str, task: dict[str, object]) -> dict[str, object]:
    """The view of the output of a command that has ended."""
    status = "in_progress"
    while status == "in_progress":
        status = (await read(gateway, session, task, "wait=true"))["task"]["status"]
    return await read(gateway, session, task)


async def made(gateway: Site, session: str, title: str, **asked: object) -> dict[str, object]:
    """A task that was just made."""
    path = f"/v1/sessions/{session}/tasks"
    status, task = await gateway.ask("POST", path, {"title": title, **asked})
    assert status == 201, task
    return task


async def now(gateway: Site, session: str, task: dict[str, object]) -> dict[str, object]:
    """A task as it is now."""
    status, found = await gateway.ask("GET", f"/v1/sessions/{session}/tasks/{task['id']}")
    assert status == 200, found
    return found


async def marked(
    gateway: Site, session: str, task: dict[str, object], **changed: object
) -> dict[str, object]:
    """A task as a change left it."""
    path = f"/v1/sessions/{session}/tasks/{task['id']}"
    status, found = await gateway.ask("PATCH", path, changed)
    assert status == 200, found
    return found


@pytest.mark.requirement("TSK-1")
async def test_a_task_is_made_read_listed_and_changed(sites: Sites) -> None:
    async with sites() as gateway:
        session = await gateway.session()
        task = await made(gateway, session, "Write the notes", metadata={"ticket": 7})
        assert task["status"] == "pending"
        assert task["metadata"] == {"ticket": 7}
        assert await now(gateway, session, task) == task
        changed = await marked(
            gateway,
            session,
            task,
            title="Write them",
            status="in_progress",
            metadata={"ticket": None, "page": 1},
        )
        assert (changed["title"], changed["status"]) == ("Write them", "in_progress")
        assert changed["metadata"] == {"page": 1}
        other = await made(gateway, session, "Send them")
        path = f"/v1/sessions/{session}/tasks"
        status, page = await gateway.ask("GET", f"{path}?limit=1")
        assert (status, page["items"]) == (200, [changed])
        assert page["pagination"]["total_count"] == 2
        cursor = page["pagination"]["next_cursor"]
        _, page = await gateway.ask("GET", f"{path}?limit=1&cursor={cursor}")
        assert page == {"items": [other], "pagination": {"total_count": 2}}
        _, page = await gateway.ask("GET", f"{path}?status=pending")
        assert page["items"] == [other]


@pytest.mark.requirement("TSK-1")
async def test_what_comes_first_blocks_a_task_until_all_of_it_is_completed(sites: Sites) -> None:
    async with sites() as gateway:
        session = await gateway.session()
        first, second = [await made(gateway, session, title) for title in ("one", "two")]
        both = [first["id"], second["id"]]
        last = await made(gateway, session, "three", blocked_by=both)
        assert (last["status"], sorted(last["blocked_by"])) == ("blocked", sorted(both))
        path = f"/v1/sessions/{session}/tasks/{last['id']}"
        status, problem = await gateway.ask("PATCH", path, {"status": "completed"})
        named = ", ".join(sorted(both))
        assert (status, problem["detail"]) == (
            409,
            f"the task is blocked by {named} and cannot become completed",
        )
        assert (await now(gateway, session, first))["blocks"] == [last["id"]]
        await marked(gateway, session, first, status="completed")
        assert (await now(gateway, session, last))["status"] == "blocked"
        await marked(gateway, session, second, status="completed")
        assert (await now(gateway, session, last))["status"] == "pending"


@pytest.mark.requirement("TSK-1")
@pytest.mark.parametrize(("end", "said"), [("failed", "failed"), ("cancelled", "was cancelled")])
async def test_a_blocker_that_is_lost_keeps_a_task_blocked_and_is_named(
    sites: Sites, end: str, said: str
) -> None:
    async with sites() as gateway:
        session = await gateway.session()
        first = await made(gateway, session, "one")
        last = await made(gateway, session, "two", blocked_by=[first["id"]])
        await marked(gateway, session, first, status=end)
        found = await now(gateway, session, last)
        assert found["status"] == "blocked"
        assert found["metadata"]["blocked_reason"] == f"{first['id']} (one) {said}"
        path = f"/v1/sessions/{session}/tasks/{last['id']}"
        status, problem = await gateway.ask("PATCH", path, {"status": "in_progress"})
        assert (status, problem["state"]) == (409, "blocked")
        assert str(first["id"]) in str(problem["detail"])
        free = await marked(gateway, session, last, blocked_by=[])
        assert (free["status"], free["metadata"]) == ("pending", {})


@pytest.mark.requirement("TSK-1")
async def test_tasks_wait_for_each_other_in_no_circle(sites: Sites) -> None:
    async with sites() as gateway:
        session = await gateway.session()
        one = await made(gateway, session, "one")
        two = await made(gateway, session, "two", blocked_by=[one["id"]])
        three = await made(gateway, session, "three", blocked_by=[two["id"]])
        for blockers in ([three["id"]], [one["id"]]):
            path = f"/v1/sessions/{session}/tasks/{one['id']}"
            status, problem = await gateway.ask("PATCH", path, {"blocked_by": blockers})
            assert (status, problem["field"]) == (422, "blocked_by")
            assert "wait for itself" in str(problem["rule"])
        assert (await now(gateway, session, one))["blocked_by"] == []


@pytest.mark.requirement("TSK-1", "API-3")
async def test_what_cannot_be_is_refused_with_its_name_and_changes_nothing(sites: Sites) -> None:
    async with sites() as gateway:
        session, other = await gateway.session(), await gateway.session()
        task = await made(gateway, session, "one")
        path = f"/v1/sessions/{session}/tasks"
        one = f"{path}/{task['id']}"
        for method, where, body, field in (
            ("POST", path, {}, "title"),
            ("POST", path, {"title": " "}, "title"),
            ("POST", path, {"title": "x", "blocked_by": ["tsk_none"]}, "blocked_by"),
            ("POST", path, {"title": "x", "notify": "never"}, "notify"),
            ("POST", path, {"title": "x", "metadata": {"k": "x" * 20_000}}, "metadata"),
            ("PATCH", one, {"status": "blocked"}, "status"),
            ("PATCH", one, {"title": " "}, "title"),
            ("PATCH", one, {"title": "y", "blocked_by": ["tsk_none"]}, "blocked_by"),
            ("GET", f"{path}?status=over", None, "status"),
            ("GET", f"{path}?limit=201", None, "limit"),
            ("GET", f"{path}?cursor=x", None, "cursor"),
            ("GET", f"{one}/output?tail_bytes=262145", None, "tail_bytes"),
            ("GET", f"{one}/output?timeout_ms=600001", None, "timeout_ms"),
            ("POST", f"{one}/stop", {"reason": "x" * 501}, "reason"),
            ("POST", f"{one}/input", {"text": "y"}, "task_id"),
        ):
            status, problem = await gateway.ask(method, where, body)
            assert (status, problem["field"]) == (422, field), (where, problem)
        assert await now(gateway, session, task) == task
        # A task of another session is none that one could wait for.
        asked = {"title": "x", "blocked_by": [task["id"]]}
        status, problem = await gateway.ask("POST", f"/v1/sessions/{other}/tasks", asked)
        assert (status, problem["field"]) == (422, "blocked_by")
        theirs = f"/v1/sessions/{other}/tasks/{task['id']}"
        for method, where in (
            ("GET", theirs),
            ("PATCH", theirs),
            ("GET", f"{theirs}/output"),
            ("POST", f"{theirs}/stop"),
            ("POST", f"{theirs}/input"),
            ("GET", "/v1/sessions/ses_none/tasks"),
            ("POST", "/v1/sessions/ses_none/tasks"),
        ):
            body = {"title": "x"} if where.endswith("tasks") and method == "POST" else None
            assert (await gateway.ask(method, where, body))[0] == 404, where
        for method, where in (("POST", path), ("PATCH", one), ("POST", f"{one}/stop")):
            assert (await gateway.ask(method, where, {}, token=READER))[0] == 403


@pytest.mark.requirement("TSK-1", "TSK-5")
async def test_a_stop_cancels_what_nobody_runs_and_leaves_what_is_over(sites: Sites) -> None:
    async with sites() as gateway:
        session = await gateway.session()
        task = await made(gateway, session, "one")
        path = f"/v1/sessions/{session}/tasks/{task['id']}/stop"
        status, stopped = await gateway.ask("POST", path, {"reason": "not needed"})
        assert (status, stopped["status"]) == (200, "cancelled")
        assert stopped["metadata"] == {"stop_requested": True, "stop_reason": "not needed"}
        assert await gateway.ask("POST", path, {"reason": "another"}) == (200, stopped)
        assert await gateway.ask("POST", path) == (200, stopped)
        one = f"/v1/sessions/{session}/tasks/{task['id']}"
        status, problem = await gateway.ask("PATCH", one, {"status": "pending"})
        assert (status, problem["state"]) == (409, "cancelled")


@pytest.mark.requirement("TSK-1", "RUN-4")
async def test_a_request_that_is_repeated_makes_one_task(sites: Sites) -> None:
    async with sites() as gateway:
        session = await gateway.session()
        path, key = f"/v1/sessions/{session}/tasks", {"Idempotency-Key": "k1"}
        answers = [await gateway.ask("POST", path, {"title": "one"}, headers=key) for _ in range(2)]
        assert answers[0] == answers[1]
        _, page = await gateway.ask("GET", path)
        assert page["pagination"]["total_count"] == 1
        assert (await gateway.ask("POST", path, {"title": "two"}, headers=key))[0] == 409
        # A key is of one session: the same one in another makes a task there.
        theirs = f"/v1/sessions/{await gateway.session()}/tasks"
        status, other = await gateway.ask("POST", theirs, {"title": "one"}, headers=key)
        assert (status, other["id"] != answers[0][1]["id"]) == (201, True)


@pytest.mark.requirement("TSK-1", "API-4")
async def test_each_change_of_a_task_is_an_event(sites: Sites) -> None:
    async with sites() as gateway:
        session = await gateway.session()
        async with gateway.feed(f"session_id={session}&kinds=task&last_event_id=0") as feed:
            task = await made(gateway, session, "one")
            await marked(gateway, session, task, status="completed")
            for kind, status in (
                (EventKind.TASK_CREATED, "pending"),
                ("task.changed", "completed"),
            ):
                sent = await feed.until(kind)
                assert sent.data["data"]["task_id"] == task["id"]
                assert sent.data["data"]["status"] == status


@pytest.mark.requirement("TSK-3")
async def test_waiting_ends_with_its_time(sites: Sites) -> None:
    clock = FakeClock()

    def timed(plan: Plan) -> None:
        plan.http_clock = clock

    async with sites(change=timed) as gateway:
        session = await gateway.session()
        task = await made(gateway, session, "one")
        path = f"/v1/sessions/{session}/tasks/{task['id']}/output"
        _, view = await gateway.ask("GET", path)
        assert view["retrieval_status"] == "not_ready"
        _, view = await gateway.ask("GET", f"{path}?wait=true&timeout_ms=0")
        assert view["retrieval_status"] == "timeout"


@pytest.mark.requirement("TSK-1", "TSK-2")
async def test_the_excerpt_is_the_end_of_the_output_and_full_gives_all_of_it(
    sites: Sites,
) -> None:
    async with sites(*starts("many")) as gateway:
        session, task = await begun(gateway)
        view = await ended(gateway, session, task)
        assert view["task"]["metadata"]["exit_code"] == 0
        path = output_path(session, str(task["id"]))
        whole = {
            "retrieval_status": "success",
            "task": view["task"],
            "output_file_path": path,
            "output_size_bytes": len(MANY),
            "output_total_bytes": len(MANY),
            "output_rotated": False,
            "output_rotation_count": 0,
            "output_text": None,
        }
        assert (gateway.workspace / path).read_bytes() == MANY
        assert view["task"]["output"] == path
        tail = MANY[-8 * 1024 :].decode()
        cut = {**whole, "output_excerpt": tail, "output_truncated": True}
        assert view == cut
        longest = MANY[-256 * 1024 :].decode()
        assert await read(gateway, session, task, "tail_bytes=262144") == {
            **cut,
            "output_excerpt": longest,
        }
        assert (await read(gateway, session, task, "tail_bytes=7"))["output_excerpt"] == "024999\n"
        assert await read(gateway, session, task, "full=true") == {
            **whole,
            "output_excerpt": tail,
            "output_text": MANY.decode(),
            "output_truncated": False,
        }
        every = await read(gateway, session, task, "full=true&tail_bytes=1")
        assert (every["output_excerpt"], every["output_text"]) == ("\n", MANY.decode())


@pytest.mark.requirement("TSK-2")
async def test_a_view_says_that_earlier_output_was_dropped(sites: Sites) -> None:
    async with sites(*starts("huge")) as gateway:
        session, task = await begun(gateway)
        view = await ended(gateway, session, task)
        assert (view["output_rotated"], view["output_rotation_count"]) == (True, 1)
        assert view["output_total_bytes"] == len(HUGE)
        assert KEPT_BYTES < view["output_size_bytes"] < CAP_BYTES
        assert view["output_truncated"] is True
        view = await read(gateway, session, task, "full=true")
        text = str(view["output_text"]).encode()
        head, _, rest = text.partition(b"\n")
        assert head + b"\n" == marker(len(HUGE) - len(rest), 1)
        assert HUGE.endswith(rest)
        assert view["output_truncated"] is True, "all that is kept is not all that was printed"


@pytest.mark.requirement("TSK-2")
async def test_the_retrieval_says_how_the_reading_went_and_nothing_of_the_task(
    sites: Sites,
) -> None:
    async with sites(*starts("obeys")) as gateway:
        session, task = await begun(gateway)
        view: dict[str, object] = {}
        while not view.get("output_excerpt"):
            view = await read(gateway, session, task)
        assert (view["retrieval_status"], view["output_excerpt"]) == ("not_ready", "at work\n")
        view = await read(gateway, session, task, "wait=true&timeout_ms=0")
        assert (view["retrieval_status"], view["output_excerpt"]) == ("timeout", "at work\n")
        await gateway.ask("POST", f"/v1/sessions/{session}/tasks/{task['id']}/stop", {})
        view = await ended(gateway, session, task)
        assert (view["retrieval_status"], view["task"]["status"]) == ("success", "cancelled")


@pytest.mark.requirement("TSK-2")
async def test_the_output_of_a_command_that_failed_is_read_with_success(sites: Sites) -> None:
    async with sites(*starts("fails")) as gateway:
        session, task = await begun(gateway)
        view = await ended(gateway, session, task)
        assert view["retrieval_status"] == "success"
        assert (view["task"]["status"], view["task"]["metadata"]["exit_code"]) == ("failed", 3)
        assert view["output_excerpt"] == "oh\n"


@pytest.mark.requirement("TSK-2")
async def test_what_prints_nothing_has_no_output_to_show(sites: Sites) -> None:
    async with sites() as gateway:
        session = await gateway.session()
        task = await made(gateway, session, "one")
        for query, status in (("", "not_ready"), ("wait=true&timeout_ms=0", "timeout")):
            assert await read(gateway, session, task, query) == {
                "retrieval_status": status,
                "task": task,
                "output_file_path": None,
                "output_excerpt": None,
                "output_text": None,
                "output_size_bytes": None,
                "output_total_bytes": None,
                "output_truncated": False,
                "output_rotated": False,
                "output_rotation_count": 0,
            }
        done = await marked(gateway, session, task, status="completed")
        view = await read(gateway, session, task, "wait=true&full=true")
        assert (view["retrieval_status"], view["task"]) == ("success", done)


@pytest.mark.requirement("TSK-1")
async def test_each_field_is_kept_as_it_was_given_and_changed_alone(sites: Sites) -> None:
    async with sites() as gateway:
        session = await gateway.session()
        given = {
            "description": "with a can",
            "owner_agent_id": "agt_1",
            "metadata": {"room": {"floor": 2}},
        }
        task = await made(gateway, session, "  Water the plants ", **given)
        assert task == {
            "id": task["id"],
            "title": "Water the plants",
            "status": "pending",
            "blocked_by": [],
            "blocks": [],
            "output": None,
            **given,
            "created_at_ms": task["created_at_ms"],
            "updated_at_ms": task["created_at_ms"],
        }
        for field, value in (
            ("title", "Water them"),
            ("description", "all"),
            ("owner_agent_id", "agt_2"),
            ("status", "in_progress"),
            ("status", "pending"),
        ):
            before = await now(gateway, session, task)
            after = await marked(gateway, session, task, **{field: value})
            assert after == {**before, field: value, "updated_at_ms": after["updated_at_ms"]}
            assert after["updated_at_ms"] >= before["updated_at_ms"]
            assert await now(gateway, session, task) == after
        free = await marked(gateway, session, task, owner_agent_id=None)
        assert free["owner_agent_id"] is None
        assert await marked(gateway, session, task) == free


@pytest.mark.requirement("TSK-1")
async def test_tasks_are_listed_by_each_status_in_the_order_of_their_making(sites: Sites) -> None:
    async with sites() as gateway:
        session = await gateway.session()
        blocker = await made(gateway, session, "pending")
        await made(gateway, session, "blocked", blocked_by=[blocker["id"]])
        for status in ("in_progress", "completed", "failed", "cancelled"):
            task = await made(gateway, session, status)
            await marked(gateway, session, task, status=status)
        path = f"/v1/sessions/{session}/tasks"
        _, whole = await gateway.ask("GET", path)
        assert sorted(str(one["id"]) for one in whole["items"]) == [
            one["id"] for one in whole["items"]
        ]
        for one in whole["items"]:
            _, page = await gateway.ask("GET", f"{path}?status={one['status']}")
            assert page == {"items": [one], "pagination": {"total_count": 1}}
            assert one["title"] == one["status"]


@pytest.mark.requirement("TSK-1", "API-3")
async def test_a_session_has_so_many_open_tasks_and_no_more(
    sites: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "MOST_OPEN", 2)
    async with sites() as gateway:
        session = await gateway.session()
        first, _ = [await made(gateway, session, title) for title in ("one", "two")]
        path = f"/v1/sessions/{session}/tasks"
        status, problem = await gateway.ask("POST", path, {"title": "three"})
        assert (status, "2 tasks" in str(problem["detail"])) == (429, True)
        await marked(gateway, session, first, status="completed")
        await made(gateway, session, "three")


@pytest.mark.requirement("TSK-1")
async def test_what_the_gateway_found_out_counts_for_more_than_what_was_written(
    sites: Sites,
) -> None:
    async with sites() as gateway:
        session = await gateway.session()
        task = await made(gateway, session, "one", metadata={"stop_reason": "mine", "ticket": 7})
        path = f"/v1/sessions/{session}/tasks/{task['id']}/stop"
        _, stopped = await gateway.ask("POST", path, {"reason": "enough"})
        assert stopped["metadata"] == {"stop_requested": True, "stop_reason": "enough", "ticket": 7}


@pytest.mark.requirement("TSK-1")
async def test_what_a_task_waits_for_is_changed_and_it_with_it(sites: Sites) -> None:
    async with sites() as gateway:
        session = await gateway.session()
        one, two, task = [await made(gateway, session, title) for title in ("one", "two", "three")]
        behind = await marked(gateway, session, task, blocked_by=[one["id"]])
        assert (behind["status"], behind["blocked_by"]) == ("blocked", [one["id"]])
        behind = await marked(gateway, session, task, blocked_by=[two["id"], two["id"]])
        assert (behind["status"], behind["blocked_by"]) == ("blocked", [two["id"]])
        assert (await now(gateway, session, one))["blocks"] == []
        await marked(gateway, session, one, status="failed")
        assert (await now(gateway, session, task))["metadata"] == {}
        await marked(gateway, session, two, status="completed")
        assert (await now(gateway, session, task))["status"] == "pending"
        late = await made(gateway, session, "late", blocked_by=[one["id"]])
        assert late["metadata"]["blocked_reason"] == f"{one['id']} (one) failed"
        path = f"/v1/sessions/{session}/tasks/{one['id']}"
        status, problem = await gateway.ask("PATCH", path, {"blocked_by": [two["id"]]})
        assert (status, problem["state"]) == (409, "failed")


@pytest.mark.requirement("TSK-1", "API-3")
async def test_a_command_is_no_task_whose_status_people_set(sites: Sites) -> None:
    async with sites(*starts("obeys")) as gateway:
        session, task = await begun(gateway)
        path = f"/v1/sessions/{session}/tasks/{task['id']}"
        status, problem = await gateway.ask("PATCH", path, {"status": "completed"})
        assert (status, problem["state"]) == (409, "in_progress")
        other = await made(gateway, session, "other")
        status, problem = await gateway.ask("PATCH", path, {"blocked_by": [other["id"]]})
        assert (status, problem["field"]) == (422, "blocked_by")
        # Its words are the command, by which people allow what is typed into it.
        status, problem = await gateway.ask("PATCH", path, {"title": "the server"})
        assert (status, problem["state"]) == (409, "in_progress"), problem
        _, kept = await gateway.ask("GET", path)
        assert kept["title"] == task["title"]


@pytest.mark.requirement("API-4", "TSK-1")
async def test_events_tell_of_blocked_tasks_and_of_commands_too(sites: Sites) -> None:
    async with sites(*starts("obeys")) as gateway:
        session, task = await begun(gateway)
        waiting = await made(gateway, session, "then this", blocked_by=[task["id"]])
        await gateway.ask("POST", f"/v1/sessions/{session}/tasks/{task['id']}/stop", {})
        wanted = [
            ("task.created", task["id"], "in_progress"),
            ("task.created", waiting["id"], "pending"),
            ("task.changed", waiting["id"], "blocked"),
            ("task.changed", task["id"], "in_progress"),
            ("task.changed", task["id"], "cancelled"),
            ("task.changed", waiting["id"], "blocked"),
        ]
        async with gateway.feed(f"session_id={session}&kinds=task&last_event_id=0") as feed:
            for kind, named, status in wanted:
                while True:
                    sent = await feed.until("task.created", "task.changed")
                    data = sent.data["data"]
                    if (sent.kind, data["task_id"], data["status"]) == (kind, named, status):
                        break
            assert {one.kind for one in feed.seen if one.id} == {"task.created", "task.changed"}
