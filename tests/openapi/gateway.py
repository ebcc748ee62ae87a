"""The gateway that is explored: on a loopback port, with one of everything that has an id."""

import json
from asyncio import get_running_loop
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web

from adapters.models.offline import OfflineModel
from gateway.http.credentials import FailureLimiter
from runtime.domain.messages import InboundMessage
from runtime.domain.people import Sender
from runtime.intake.access import ChannelAccess
from runtime.intake.gatehouse import IntakeSettings
from runtime.ports.model import ModelRequest
from tests.fakes.model import Gate, Said, ScriptedModel, ScriptedModels
from tests.fakes.sandbox import FakeStdio
from tests.scenario.harness import Plan, Site, site
from tests.scenario.http.conftest import ASKS, WONDERS
from tests.scenario.http.refused import agent_of, gate_of, gated, mail, subtask

SESSIONS = 5
STRANGERS = 2
PERSONA = "ops"
SCRIPTED = "scripted:asks"
WATCH = "Keep watch."
"""What an agent is told that never ends, so its mail waits."""


@dataclass
class Known:
    """What exists: ids by the names that paths have for them, and requests that wait, by run."""

    ids: dict[str, list[str]] = field(default_factory=dict)
    approvals: dict[str, str] = field(default_factory=dict)
    questions: dict[str, str] = field(default_factory=dict)
    tasks: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    gates: dict[str, str] = field(default_factory=dict)
    """The digest under which each gate waits, by its schedule."""
    agents: dict[str, str] = field(default_factory=dict)
    """Agents by the session that they work for, which may start more."""
    command: dict[str, str] = field(default_factory=dict)
    """The command that takes input, by its session."""
    fields: dict[str, str] = field(default_factory=dict)
    """What a body may name, by its field."""


@asynccontextmanager
async def explored(path: Path) -> AsyncIterator[tuple[Site, Known]]:
    """A running gateway, and what is in it."""
    script = ScriptedModel(_Script(), name=SCRIPTED)
    plan = Plan(path, ScriptedModels(OfflineModel(), script), prepare=_end_streams)
    plan.programs |= {"true": _does_nothing, "cat": _reads}
    with pytest.MonkeyPatch.context() as patch:
        # Wrong tokens are a part of what is tried here, and their limit has tests of its own.
        patch.setitem(FailureLimiter.__init__.__kwdefaults__, "most", 10**9)
        async with site(plan) as gateway:
            yield gateway, await _fill(gateway)


class _Script:
    """Says what the first runs need, in order, and holds an agent that keeps watch for good."""

    def __init__(self) -> None:
        command = json.dumps({"command": "cat", "background": True})
        self._first = [
            ASKS,
            WONDERS,
            Said(calls=(("send_file", json.dumps({"path": "AGENTS.md"})),)),
            "Done.",
            Said(calls=(("exec", command),)),
        ]

    def __call__(self, request: ModelRequest) -> Said | str:
        if any(WATCH in getattr(message, "text", "") for message in request.messages):
            return Said("Nothing stirs.", before=Gate())
        return self._first.pop(0) if self._first else "Done."


async def _does_nothing(stdio: FakeStdio) -> int:
    """The program behind ``true``."""
    return 0


async def _reads(stdio: FakeStdio) -> int:
    """The program behind ``cat``."""
    await stdio.input.read()
    return 0


def _end_streams(app: web.Application) -> None:
    """Let the gateway end each event stream behind its beginning, as it does when it stops. A
    reader that asks for events which do not come would wait for ever."""
    (close,) = [one for one in app.on_shutdown if getattr(one, "__name__", "") == "close"]
    ended = set()

    async def end(request: web.Request, response: web.StreamResponse) -> None:
        ours = request.headers.get("User-Agent", "").startswith("schemathesis")
        if ours and response.content_type == "text/event-stream":
            task = get_running_loop().create_task(close(app), name="end-stream")
            ended.add(task)
            task.add_done_callback(ended.discard)

    app.on_response_prepare.append(end)


async def _fill(gateway: Site) -> Known:
    folder = gateway.workspace / "personas" / PERSONA
    folder.mkdir(parents=True)
    (folder / "SOUL.md").write_text("You run the machines.\n", encoding="utf-8")
    known = Known()
    sessions = [await gateway.session() for _ in range(SESSIONS)]
    runs = [await gateway.says(sessions[0], "hello")]
    await gateway.state(runs[0], "completed")
    known.approvals = await _waiting(gateway, runs, "approvals")
    known.questions = await _waiting(gateway, runs, "questions")
    known.files = await _file(gateway)
    for session in sessions:
        _, task = await gateway.ask("POST", f"/v1/sessions/{session}/tasks", {"title": "Look"})
        known.tasks[session] = str(task["id"])
    schedules = [await _schedule(gateway, session) for session in sessions]
    gate = await gated(gateway, sessions[0])
    known.gates = {gate: str((await gate_of(gateway, gate))["digest"])}
    agent = await agent_of(gateway, sessions[0])
    known.agents = {sessions[0]: agent}
    known.command = await _command(gateway)
    assets = [await _asset(gateway, name) for name in (b"one", b"two", b"three")]
    known.fields = {
        "target_session_id": sessions[0],
        "asset_id": assets[0],
        "tool": "read_file",
        "persona": PERSONA,
        "model": SCRIPTED,
    }
    known.ids = {
        "session_id": sessions,
        "agent_id": [*await _watchers(gateway), agent, *sessions],
        "run_id": runs,
        "schedule_id": schedules,
        "asset_id": assets,
        "code": [await _stranger(gateway, f"{number}") for number in range(STRANGERS)],
    }
    return known


async def _scripted(gateway: Site) -> str:
    session = await gateway.session()
    path = f"/v1/sessions/{session}/route-policy"
    status, _ = await gateway.ask("PUT", path, {"model": SCRIPTED})
    assert status == 200
    return session


async def _waiting(gateway: Site, runs: list[str], kind: str) -> dict[str, str]:
    """The request that waits, by its run."""
    run = await gateway.says(await _scripted(gateway), "go on")
    await gateway.state(run, "waiting_for_approval", "waiting_for_user_question")
    _, page = await gateway.ask("GET", f"/v1/{kind}")
    runs.append(run)
    (request,) = [one["request_id"] for one in page["items"] if one["run_id"] == run]
    return {run: str(request)}


async def _command(gateway: Site) -> dict[str, str]:
    """A command in the background that waits for input, by its session."""
    session = await _scripted(gateway)
    run = await gateway.says(session, "listen")
    await gateway.state(run, "waiting_for_approval")
    _, page = await gateway.ask("GET", f"/v1/approvals?session_id={session}")
    answers = [{"request_id": one["request_id"], "behavior": "allow"} for one in page["items"]]
    await gateway.ask("POST", f"/v1/runs/{run}/approvals", {"resolutions": answers})
    await gateway.state(run, "completed")
    _, tasks = await gateway.ask("GET", f"/v1/sessions/{session}/tasks")
    (task,) = tasks["items"]
    return {session: str(task["id"])}


async def _watchers(gateway: Site) -> list[str]:
    """An agent that works and has mail waiting, and one that was stopped before it read its own."""
    parent = await _scripted(gateway)
    await gateway.state(await gateway.says(parent, "hello"), "completed")
    found = []
    for name in ("one", "two"):
        asked = subtask(name)
        asked["subtask"] |= {"prompt": WATCH}
        status, made = await gateway.ask("POST", f"/v1/agents/{parent}/sidechains", asked)
        assert status == 201, made
        found.append(str(made["session_id"]))
        status, _ = await gateway.ask("POST", "/v1/mailboxes", mail(parent, found[-1]))
        assert status == 202
    await gateway.ask("POST", f"/v1/sessions/{found[1]}/interrupt")
    async with gateway.feed(f"session_id={found[1]}&kinds=mail.dead&last_event_id=0") as feed:
        await feed.next()
    return found


async def _file(gateway: Site) -> dict[str, str]:
    session = await _scripted(gateway)
    async with gateway.feed(f"session_id={session}") as feed:
        await gateway.says(session, "send it")
        for _ in range(2):
            await feed.until("delivery.sent")
    (found,) = [one for one in await gateway.messages(session) if one["kind"] == "file"]
    *_, outbox_id, place = str(found["files"][0]["url"]).split("/")
    return {"outbox_id": outbox_id, "place": place}


async def _schedule(gateway: Site, session: str) -> str:
    asked = {
        "name": "Numbers",
        "target_session_id": session,
        "deliver_text": "Post the numbers",
        "cadence": {"type": "interval", "every_seconds": 86_400},
    }
    status, made = await gateway.ask("POST", "/v1/schedules", asked)
    assert status == 201, made
    return str(made["schedule"]["schedule_id"])


async def _asset(gateway: Site, content: bytes) -> str:
    status, made = await gateway.ask("POST", "/v1/assets", data=content)
    assert status == 201, made
    return str(made["id"])


async def _stranger(gateway: Site, name: str) -> str:
    """The code that a stranger was given."""
    gateway.engine.intake.change(IntakeSettings(access={"slack": ChannelAccess()}))
    message = InboundMessage(
        channel="slack",
        account="T1",
        chat_id=f"D-{name}",
        message_id=f"m-{name}",
        sender=Sender(id=f"U-{name}", name=name),
        text="hello",
        received_at_ms=1,
    )
    await gateway.engine.intake.accept(message)
    _, page = await gateway.ask("GET", "/v1/pairings")
    return next(str(one["code"]) for one in page["items"] if one["name"] == name)
