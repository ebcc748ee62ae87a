"""Requests that the present state refuses: what each route of the API has of its own (API-3)."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from runtime.intake.access import ChannelAccess
from runtime.intake.gatehouse import IntakeSettings
from tests.fakes.model import Said
from tests.scenario.engine import writes
from tests.scenario.harness import Site
from tests.scenario.http.conftest import ASKS, WONDERS
from tests.scenario.http.test_assets import uploads
from tests.scenario.http.test_auth import IDS
from tests.scenario.http.test_files import sends, sent
from tests.scenario.http.test_health import stranger

SESSION = "/v1/sessions/{session_id}"
TASK = f"{SESSION}/tasks/{{task_id}}"
SCHEDULE = "/v1/schedules/{schedule_id}"
SIDECHAINS = "/v1/agents/{agent_id}/sidechains"
RUN = "/v1/runs/{run_id}"
KEY = {"Idempotency-Key": "once"}


@dataclass(frozen=True, slots=True)
class Request:
    """One request, for which everything is as it must be."""

    path: str
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)
    data: bytes | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A refusal. `state` is the present one that it names (409), or the kind of what there is not
    (404). `declared`: the route declares it for itself, and not for the ids in its path."""

    route: str
    status: int
    state: str
    prepare: Callable[[Site], Awaitable[Request]]
    script: Sequence[Said | str] = ()
    note: str = ""
    declared: bool = True

    @property
    def name(self) -> str:
        """Of the test's case."""
        return f"{self.route}-{self.status}{self.note and '-' + self.note}"

    @property
    def method(self) -> str:
        return self.route.partition(" ")[0]


def _at(path: str, **ids: str) -> str:
    return path.format_map(IDS | ids)


def _make_persona(gateway: Site) -> None:
    folder = gateway.workspace / "personas" / "ops"
    folder.mkdir(parents=True)
    (folder / "SOUL.md").write_text("You run the machines.\n", encoding="utf-8")


async def _waits(gateway: Site) -> tuple[str, str]:
    """A session and its run, which waits for a person."""
    session = await gateway.session()
    run = await gateway.says(session, "go on")
    await gateway.state(run, "waiting_for_approval", "waiting_for_user_question")
    return session, run


def _busy(path: str, body: object = None) -> Callable[[Site], Awaitable[Request]]:
    async def prepare(gateway: Site) -> Request:
        _make_persona(gateway)
        session, _ = await _waits(gateway)
        return Request(_at(path, session_id=session), body)

    return prepare


def _used(path: str, first: object, second: object) -> Callable[[Site], Awaitable[Request]]:
    """A key that was used for another request."""

    async def prepare(gateway: Site) -> Request:
        session = await gateway.session()
        where = _at(path, session_id=session)
        bodies = [_naming(one, session) for one in (first, second)]
        status, made = await gateway.ask("POST", where, bodies[0], headers=KEY)
        assert status < 300, made
        if "run_id" in made:
            await gateway.state(str(made["run_id"]), "completed")
        return Request(where, bodies[1], KEY)

    return prepare


def _naming(body: object, session: str) -> object:
    named = isinstance(body, dict) and "target_session_id" in body
    return {**body, "target_session_id": session} if named else body


async def ran(gateway: Site) -> str:
    """A session whose agent has the rights of a run."""
    session = await gateway.session()
    await gateway.state(await gateway.says(session, "hello"), "completed")
    return session


def mail(sender: str, to: str, text: str = "Look.") -> dict[str, object]:
    """A message from one agent to another."""
    return {"from": sender, "to": to, "payload": {"type": "message", "text": text}}


def subtask(name: str = "one") -> dict[str, object]:
    """What a program asks a new agent to do."""
    return {"subtask": {"name": name, "description": "Looks.", "prompt": "Look."}}


async def agent_of(gateway: Site, session: str) -> str:
    """An agent of a session, which has done what it was to do."""
    status, made = await gateway.ask("POST", f"/v1/agents/{session}/sidechains", subtask())
    assert status == 201, made
    await quiet(gateway)
    return str(made["session_id"])


async def _mail_used(gateway: Site) -> Request:
    session = await ran(gateway)
    agent = await agent_of(gateway, session)
    sent = mail(agent, session)
    status, _ = await gateway.ask("POST", "/v1/mailboxes", sent, headers=KEY)
    assert status == 202
    await quiet(gateway)
    return Request("/v1/mailboxes", mail(agent, session, "Look again."), KEY)


async def quiet(gateway: Site) -> None:
    """Return once no run is at work or waits for its turn."""
    async with gateway.feed("last_event_id=0") as feed:
        while True:
            _, page = await gateway.ask("GET", "/v1/runs")
            if all(run["state"] not in ("queued", "running") for run in page["items"]):
                return
            await feed.next()


async def _never_ran(gateway: Site) -> Request:
    sender, to = await gateway.session(), await gateway.session()
    return Request("/v1/mailboxes", mail(sender, to))


async def _mail_to_nobody(gateway: Site) -> Request:
    return Request("/v1/mailboxes", mail(await ran(gateway), "ses_1"))


async def _sidechain_used(gateway: Site) -> Request:
    path = f"/v1/agents/{await ran(gateway)}/sidechains"
    status, made = await gateway.ask("POST", path, subtask(), headers=KEY)
    assert status == 201, made
    await quiet(gateway)
    return Request(path, subtask("two"), KEY)


async def _has_no_rights(gateway: Site) -> Request:
    return Request(_at(f"{SIDECHAINS}/explain", agent_id=await gateway.session()), subtask())


async def _upload_used(gateway: Site) -> Request:
    status, made, _ = await uploads(gateway, b"one", headers=KEY)
    assert status == 201, made
    return Request("/v1/assets", headers=KEY, data=b"two")


async def _upload_gone(gateway: Site) -> Request:
    _, made, _ = await uploads(gateway, b"one")
    (kept,) = (gateway.workspace / ".gatehouse/assets").iterdir()
    kept.unlink()
    return Request(f"/v1/assets/{made['id']}")


async def _no_gate(gateway: Site) -> Request:
    asked = _naming(REMINDER, await gateway.session())
    _, made = await gateway.ask("POST", "/v1/schedules", asked)
    path = f"/v1/schedules/{made['schedule']['schedule_id']}/gate"
    return Request(path, GATE)


async def _another_gate(gateway: Site) -> Request:
    """The answer to a command that nobody was shown."""
    schedule = await gated(gateway, await gateway.session())
    return Request(f"/v1/schedules/{schedule}/gate", GATE)


async def gated(gateway: Site, session: str) -> str:
    """A schedule whose gate waits for an answer."""
    asked = {
        "name": "Numbers",
        "target_session_id": session,
        "request": {"content": "Post the numbers"},
        "cadence": REMINDER["cadence"],
        "gate": {"command": "true"},
    }
    status, made = await gateway.ask("POST", "/v1/schedules", asked)
    assert status == 201, made
    schedule = str(made["schedule"]["schedule_id"])
    async with writes(gateway.database) as news:
        while (await gate_of(gateway, schedule))["digest"] is None:
            await news.wait()
            news.clear()
    return schedule


async def gate_of(gateway: Site, schedule: str) -> dict[str, object]:
    """The gate of a schedule as it stands."""
    _, shown = await gateway.ask("GET", f"/v1/schedules/{schedule}")
    return dict(shown["schedule"]["gate"])


def _ended(name: str, body: object) -> "_Prepare":
    async def prepare(gateway: Site) -> Request:
        session = await gateway.session()
        await gateway.ask("POST", _at(f"{SESSION}/end", session_id=session))
        return Request(_at(f"{SESSION}/{name}", session_id=session), body)

    return prepare


def _answered(
    kind: str, key: str, answer: Mapping[str, str]
) -> Callable[[Site], Awaitable[Request]]:
    async def prepare(gateway: Site) -> Request:
        _, run = await _waits(gateway)
        _, page = await gateway.ask("GET", f"/v1/{kind}")
        body = {key: [{**answer, "request_id": page["items"][0]["request_id"]}]}
        path = _at(f"{RUN}/{kind}", run_id=run)
        status, _ = await gateway.ask("POST", path, body)
        assert status == 200
        await gateway.state(run, "completed")
        return Request(path, body)

    return prepare


def _let_in(path: str) -> Callable[[Site], Awaitable[Request]]:
    async def prepare(gateway: Site) -> Request:
        gateway.engine.intake.change(IntakeSettings(access={"slack": ChannelAccess()}))
        code = await stranger(gateway, "kim")
        status, _ = await gateway.ask("POST", f"/v1/pairings/{code}/deny")
        assert status == 200
        return Request(_at(path, code=code), {} if path.endswith("approve") else None)

    return prepare


REMINDER = {
    "name": "Numbers",
    "target_session_id": "",
    "deliver_text": "Post the numbers",
    "cadence": {"type": "interval", "every_seconds": 86_400},
}


def _cancelled(name: str = "", body: object = None) -> "_Prepare":
    async def prepare(gateway: Site) -> Request:
        asked = _naming(REMINDER, await gateway.session())
        _, made = await gateway.ask("POST", "/v1/schedules", asked)
        path = f"/v1/schedules/{made['schedule']['schedule_id']}"
        status, _ = await gateway.ask("POST", f"{path}/cancel", {})
        assert status == 200
        return Request(path + name, body)

    return prepare


async def _completed(gateway: Site) -> Request:
    """A schedule of one time, which was."""
    asked = {**REMINDER, "max_executions": 1}
    session = await gateway.session()
    _, made = await gateway.ask("POST", "/v1/schedules", _naming(asked, session))
    path = f"/v1/schedules/{made['schedule']['schedule_id']}"
    async with gateway.feed(f"session_id={session}") as feed:
        status, _ = await gateway.ask("POST", f"{path}/trigger", {})
        assert status == 200
        while (await gateway.ask("GET", path))[1]["schedule"]["status"] != "completed":
            await feed.next()
        await feed.until("delivery.sent")
    return Request(f"{path}/cancel", {})


async def _task_over(gateway: Site) -> Request:
    session = await gateway.session()
    path = f"/v1/sessions/{session}/tasks"
    _, task = await gateway.ask("POST", path, {"title": "Look"})
    await gateway.ask("PATCH", f"{path}/{task['id']}", {"status": "cancelled"})
    return Request(f"{path}/{task['id']}", {"status": "pending"})


async def _command_over(gateway: Site) -> Request:
    request = await _task_over(gateway)
    task = request.path.rpartition("/")[2]
    made = f"UPDATE tasks SET kind = 'shell' WHERE id = '{task}'"
    await gateway.database.write(lambda conn: conn.exec_driver_sql(made), name="test")
    return Request(f"{request.path}/input", {"text": "y"})


async def _file_gone(gateway: Site) -> Request:
    (gateway.workspace / "files/a.txt").write_text("a")
    found = await sent(gateway, await gateway.session())
    (copy,) = (gateway.workspace / ".gatehouse" / "outputs" / "sent").iterdir()
    copy.unlink()
    return Request(str(found["files"][0]["url"]))


_Prepare = Callable[[Site], Awaitable[Request]]


def _unknown(path: str, body: object = None) -> _Prepare:
    async def prepare(gateway: Site) -> Request:
        _make_persona(gateway)
        # A session is there where a part of it is asked for that is not.
        ids = {"session_id": await gateway.session()} if "{task_id}" in path else {}
        return Request(_at(path, **ids), body)

    return prepare


ALLOWS = {"behavior": "allow", "scope": "once"}
GATE = {"behavior": "allow", "digest": "0" * 64}
OWN = (
    Row("POST /v1/sessions", 409, "used", _used("/v1/sessions", {}, {"title": "Another"})),
    Row(
        f"POST {SESSION}/runs",
        409,
        "used",
        _used(f"{SESSION}/runs", {"content": "hello"}, {"content": "another"}),
        ("Hello.",),
    ),
    *(
        Row(f"POST {SESSION}/{name}", 409, "ended", _ended(name, body), note="ended")
        for name, body in (("runs", {"content": "hello"}), ("tasks", {"title": "Look"}))
    ),
    Row(
        f"POST {SESSION}/tasks",
        409,
        "used",
        _used(f"{SESSION}/tasks", {"title": "One"}, {"title": "Two"}),
    ),
    Row(
        "POST /v1/schedules",
        409,
        "used",
        _used("/v1/schedules", REMINDER, {**REMINDER, "name": "Others"}),
    ),
    Row(f"POST {SESSION}/end", 409, "waiting_for_approval", _busy(f"{SESSION}/end"), (ASKS,)),
    Row(f"DELETE {SESSION}", 409, "waiting_for_approval", _busy(SESSION), (ASKS,)),
    Row(
        f"PUT {SESSION}/persona",
        409,
        "waiting_for_approval",
        _busy(f"{SESSION}/persona", {"persona": "ops"}),
        (ASKS,),
    ),
    Row(
        f"DELETE {SESSION}/persona",
        409,
        "waiting_for_approval",
        _busy(f"{SESSION}/persona"),
        (ASKS,),
    ),
    Row(
        f"PUT {SESSION}/capability-scope",
        409,
        "waiting_for_approval",
        _busy(f"{SESSION}/capability-scope", {"tools": ["read_file"]}),
        (ASKS,),
    ),
    Row(
        f"DELETE {SESSION}/capability-scope",
        409,
        "waiting_for_approval",
        _busy(f"{SESSION}/capability-scope"),
        (ASKS,),
    ),
    Row(
        f"POST {RUN}/approvals",
        409,
        "answered",
        _answered("approvals", "resolutions", ALLOWS),
        (ASKS, "Done."),
    ),
    Row(
        f"POST {RUN}/questions",
        409,
        "answered",
        _answered("questions", "answers", {"text": "main"}),
        (WONDERS, "Done."),
    ),
    *(
        Row(
            f"POST /v1/pairings/{{code}}/{name}",
            409,
            "denied",
            _let_in(f"/v1/pairings/{{code}}/{name}"),
        )
        for name in ("approve", "deny")
    ),
    *(
        Row(f"POST {SCHEDULE}/{name}", 409, "cancelled", _cancelled(f"/{name}", body={}))
        for name in ("pause", "resume", "trigger")
    ),
    Row(f"PATCH {SCHEDULE}", 409, "cancelled", _cancelled(body={"name": "Others"})),
    Row(f"POST {SCHEDULE}/cancel", 409, "completed", _completed),
    Row(f"PATCH {TASK}", 409, "cancelled", _task_over),
    Row(f"POST {TASK}/input", 409, "cancelled", _command_over),
    Row(f"POST {SCHEDULE}/gate", 409, "active", _no_gate),
    Row(f"POST {SCHEDULE}/gate", 409, "waiting_for_approval", _another_gate, note="digest"),
    Row(f"POST {SIDECHAINS}", 409, "used", _sidechain_used, ("Hello.", "I looked.", "It looked.")),
    Row(f"POST {SIDECHAINS}/explain", 409, "idle", _has_no_rights),
    Row(
        "POST /v1/mailboxes",
        409,
        "used",
        _mail_used,
        ("Hello.", "I looked.", "It looked.", "Read."),
    ),
    Row("POST /v1/mailboxes", 409, "idle", _never_ran, note="idle"),
    Row("POST /v1/mailboxes", 404, "agent", _mail_to_nobody, ("Hello.",)),
    Row("POST /v1/assets", 409, "used", _upload_used),
    Row("GET /v1/assets/{asset_id}", 410, "gone", _upload_gone),
    Row("GET /v1/files/{outbox_id}/{place}", 410, "gone", _file_gone, (sends("a.txt"), "There.")),
    Row("GET /v1/agents", 404, "session", _unknown("/v1/agents?session_id=ses_1")),
    Row("GET /v1/agents/summaries", 404, "session", _unknown("/v1/agents/summaries?root=ses_1")),
    Row("GET /v1/events", 404, "session", _unknown("/v1/events?session_id=ses_1")),
    Row("GET /v1/events", 404, "run", _unknown("/v1/events?run_id=run_1"), note="run"),
    Row(
        "POST /v1/schedules",
        404,
        "session",
        _unknown("/v1/schedules", {**REMINDER, "target_session_id": "ses_1"}),
    ),
)
"""What a route declares for itself."""
BODIES = {
    f"PATCH {SESSION}": ("session", {"title": "Another"}),
    f"POST {SESSION}/runs": ("session", {"content": "hello"}),
    f"PUT {SESSION}/mode": ("session", {"mode": "plan"}),
    f"PUT {SESSION}/queue-mode": ("session", {"queue_mode": "steer"}),
    f"PUT {SESSION}/permission-mode": ("session", {"permission_mode": "plan"}),
    f"PUT {SESSION}/route-policy": ("session", {"model": "scripted:model"}),
    f"PUT {SESSION}/persona": ("session", {"persona": "ops"}),
    f"PUT {SESSION}/capability-scope": ("session", {"tools": ["read_file"]}),
    f"POST {SESSION}/policy/explain": ("session", {"tool": "read_file"}),
    f"POST {SESSION}/tasks": ("session", {"title": "Look"}),
    f"PATCH {TASK}": ("task", {"title": "Look"}),
    f"POST {TASK}/stop": ("task", {}),
    f"POST {TASK}/input": ("task", {"text": "y"}),
    f"POST {RUN}/approvals": (
        "run",
        {"resolutions": [{"request_id": "apr_1", "behavior": "allow"}]},
    ),
    f"POST {RUN}/questions": ("run", {"answers": [{"request_id": "que_1", "text": "main"}]}),
    f"PATCH {SCHEDULE}": ("schedule", {"name": "Others"}),
    **{f"POST {SCHEDULE}/{name}": ("schedule", {}) for name in ("pause", "resume", "trigger")},
    f"POST {SCHEDULE}/cancel": ("schedule", {}),
    f"POST {SCHEDULE}/gate": ("schedule", GATE),
    f"POST {SIDECHAINS}": ("agent", subtask()),
    f"POST {SIDECHAINS}/explain": ("agent", subtask()),
    **{f"POST {SESSION}/{name}": ("session", {}) for name in ("interrupt", "end")},
    f"POST {RUN}/cancel": ("run", {}),
    **{f"POST /v1/pairings/{{code}}/{name}": ("pairing", {}) for name in ("approve", "deny")},
}
"""A good body for each route with an id and a body: what there is not, and the body."""
ROWS = (
    *OWN,
    *(
        Row(route, 404, kind, _unknown(route.partition(" ")[2], body), declared=False)
        for route, (kind, body) in BODIES.items()
    ),
)
