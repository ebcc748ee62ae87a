"""A broad story, told to learn what the code says to its database.

It asks for nothing but that each part comes to its end; that the parts work is proven elsewhere.
A feature that brings statements of its own gets its words here.
"""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from sqlalchemy import Connection, select

from runtime.bus.memory import MemoryBus
from runtime.domain.budgets import BudgetSettings, Limit
from runtime.domain.errors import (
    DeliveryRejected,
    DeliveryRetry,
    DeliveryUnknown,
    GatehouseError,
    ModelRejected,
)
from runtime.domain.people import Trust
from runtime.domain.routes import Generation, RoutePolicy
from runtime.domain.runs import TERMINAL, RunState
from runtime.domain.tools import Effect
from runtime.features.mailboxes.control import MailboxControl
from runtime.features.mailboxes.model import Mail
from runtime.features.mailboxes.settings import MailboxSettings
from runtime.features.mailboxes.tables import mailbox_messages
from runtime.features.personas.control import PersonaControl
from runtime.features.schedules.model import CancelRequest, ScheduleChange
from runtime.features.subagents.rows import agents_due
from runtime.features.subagents.tools import SessionsSpawn
from runtime.features.tasks.board import TaskBoard
from runtime.features.tasks.model import TaskCreate, TaskUpdate
from runtime.intake.assets import AssetUse, Sender
from runtime.intake.capability_scopes import CapabilityScopeRequest, ScopeControl
from runtime.intake.control import Control, ControlServices, ControlSettings, NewConversation
from runtime.intake.gatehouse import IntakeSettings
from runtime.intake.logins import Credential, Logins
from runtime.intake.route_policies import RouteControl, RouteRules
from runtime.intake.sessions import Revision
from runtime.ports.bus import EVENTS
from runtime.ports.model import ModelRequest
from runtime.process.lease_keeper import LeaseSettings
from runtime.sessions import idempotency
from runtime.sessions.open_calls import APPROVAL, QUESTION
from runtime.sessions.unit import Units
from runtime.tools.base import AnyTool
from runtime.tools.builtin.ask import AskUser
from runtime.tools.builtin.files import ReadFile
from runtime.views.reader import Views
from tests.fakes.chat import FakeChat
from tests.fakes.model import Gate, Said, ScriptedModel, ScriptedModels
from tests.scenario.cards import (
    GUEST,
    MEMBER,
    asks,
    call,
    card,
    cards,
    outcome,
    reaches,
    script,
    state,
)
from tests.scenario.engine import OPEN, Setup, World, assets_of, setup_at, world
from tests.scenario.schedules.scheduling import desk
from tests.scenario.tools import Note
from tests.support.kinds import KINDS

_LEASE = LeaseSettings(ttl_s=5.0)
"""Long enough that a busy machine renews it in time: with one second a gateway of the story lost
its lease again and again, and nothing came to its end."""
_COMMANDS = (
    *("/help", "/status", "/usage", "/model", "/plan", "/edit", "/queue collect"),
    *("/queue followup", "/queue wrong", "/approve nothing", "/deny nothing", "/answer nothing x"),
    *("/stop", "/new"),
)


async def tell(url: str, folder: Path) -> None:
    """The whole story on a migrated database."""
    await _small(url, folder)
    await _people(url, folder)
    await _waiting(url, folder)
    await _expiring(url, folder)
    await _sending(url, folder)
    await _dying(url, folder)
    await _owning(url, folder)
    await _spending(url, folder)
    await _spawning(url, folder)
    await _reminding(url, folder)
    await _scheduling(url, folder)
    await _tasking(url, folder)


async def tell_briefly(url: str, folder: Path) -> None:
    """One message with a tool and an approval, and what an owner does beside it."""
    await _small(url, folder)
    await _spending(url, folder)


def _setup(
    url: str, folder: Path, model: ScriptedModel, change: Callable[[Setup], Setup] = lambda one: one
) -> Setup:
    setup = setup_at(folder, url, ScriptedModels(model), alone=url.startswith("sqlite"))
    settings = replace(setup.settings, lease=_LEASE)
    tools = (Note(command=True), Note("keep"), Note("look", effect=Effect.READ))
    return change(replace(setup, settings=settings, tools=(*tools, AskUser())))


async def _done(at: World, run_id: str | None) -> None:
    await reaches(at, run_id, *TERMINAL)


async def _small(url: str, folder: Path) -> None:
    model = ScriptedModel(
        script(Said(calls=(call("a", "look"), call("b", "keep"))), Said(calls=(call("c"),)), "done")
    )
    async with world(_setup(url, folder, model)) as at:
        accepted = await at.says("do it", message_id="first")
        await at.presses((await card(at)).open_call_id, "once")
        await at.sees(2)
        await outcome(at)
        await _done(at, accepted.run_id)
        await at.says("do it", message_id="first")


async def _people(url: str, folder: Path) -> None:
    def strict(setup: Setup) -> Setup:
        rules = replace(OPEN, allow_users=frozenset({MEMBER}))
        intake = replace(setup.settings.intake, access={"test": rules})
        return replace(setup, settings=replace(setup.settings, intake=intake))

    async with world(_setup(url, folder, ScriptedModel(lambda _: "yes"), strict)) as at:
        control, views = _control(at), Views(at.database, KINDS)
        for user in ("U-stranger", "U-other"):
            await at.says("let me in", user=user)
            await at.says("please", user=user)
        for pending, trust in zip(
            (await views.pairings()).items, (Trust.MEMBER, None), strict=True
        ):
            if trust is None:
                await control.deny_pairing(pending.code)
            else:
                await control.approve_pairing(pending.code, trust=trust)
        with suppress(GatehouseError):
            await control.approve_pairing("nothing")
        code = (await control.new_owner_code()).code
        await at.says("000000", user="U-late")
        await at.says(code, user="U-late")
        for number, (user, kind) in enumerate(((MEMBER, "direct"), (GUEST, "group"))):
            accepted = await at.says("hello", user=user, kind=kind, chat_id=f"C{number}")
            await _done(at, accepted.run_id)
        await at.says("psst", user=GUEST, kind="group", chat_id="C1", mentions=False)
        await at.says("beep", user="U-robot", kind="group", chat_id="C1", is_bot=True)
        for text in _COMMANDS:
            await at.says(text)
        await views.people()


async def _waiting(url: str, folder: Path) -> None:
    gate = Gate()
    steps = {
        "ask": (Said(calls=(asks("Which?", "a", "b"),)), "thanks"),
        "allow": (Said(calls=(call("x"),)), Said(calls=(call("x"),)), "done"),
        "deny": (Said(calls=(call("y"), call("z"))), "as you like"),
        "park": (Said(calls=(call("p"),)), "done"),
        "hold": (Said("some words and more", middle=gate, at=1), "done"),
    }

    def says(request: object) -> Said | str:
        said = next(one for one in reversed(request.messages) if getattr(one, "role", "") == "user")
        told = next((steps[word] for word in steps if word in said.text), ("fine",))
        return told[min(request.step, len(told)) - 1]

    async with world(_setup(url, folder, ScriptedModel(says))) as at:
        asked = await at.says("ask")
        question = await card(at)
        await at.says("in the meantime")
        await at.says("/answer nothing a")
        await at.presses(question.open_call_id, "a")
        await _done(at, asked.run_id)
        allowed = await at.says("allow", chat_id="D-1")
        await at.presses((await _next_card(at)).open_call_id, "session")
        await _done(at, allowed.run_id)
        denied = await at.says("deny", chat_id="D-2")
        await reaches(at, denied.run_id, RunState.WAITING_FOR_APPROVAL)
        await at.says("/deny", chat_id="D-2")
        for waiting in (await Views(at.database, KINDS).open_calls("approval")).items:
            await at.presses(waiting.request_id, "deny")
        await _done(at, denied.run_id)
        parked = await at.says("park", chat_id="D-3")
        await reaches(at, parked.run_id, RunState.WAITING_FOR_APPROVAL)
        await at.says("and this", chat_id="D-3")
        await at.says("/stop", chat_id="D-3")
        await _done(at, parked.run_id)
        held = await at.says("hold", chat_id="D-4")
        await gate.reached.wait()
        await at.says("behind it", chat_id="D-4")
        await at.says("/status", chat_id="D-4")
        await at.says("/stop", chat_id="D-4")
        await _done(at, held.run_id)
        await at.says("/queue collect", chat_id="D-5")
        burst = [await at.says(f"part {number}", chat_id="D-5") for number in range(3)]
        await _done(at, burst[-1].run_id)
        await at.says("/new", chat_id="D-5")
        again = await at.says("anew", chat_id="D-5")
        await _done(at, again.run_id)
        await at.says("/undo", chat_id="D-2")


async def _next_card(at: World) -> object:
    await at.chat.until(lambda: len(cards(at)) > 1)
    return cards(at)[-1][1]


async def _expiring(url: str, folder: Path) -> None:
    def soon(setup: Setup) -> Setup:
        agent = replace(setup.settings.agent, approval_expiry_ms=1)
        return replace(setup, settings=replace(setup.settings, agent=agent))

    model = ScriptedModel(script(Said(calls=(call("late"),)), "denied, then"))
    async with world(_setup(url, folder, model, soon)) as at:
        accepted = await at.says("go", chat_id="D-late")
        await _done(at, accepted.run_id)


async def _sending(url: str, folder: Path) -> None:
    chat = FakeChat()
    chat.failures = [
        DeliveryRetry("busy", after_s=0.1),
        DeliveryRejected("the bot was removed"),
        DeliveryUnknown("the line broke"),
    ]
    async with world(_setup(url, folder, ScriptedModel(lambda _: "yes")), chat) as at:
        views = Views(at.database, KINDS)
        for number in range(3):
            await _done(at, (await at.says("hi", chat_id=f"D-out{number}")).run_id)
        # One is tried again and arrives, one is dead, one is unknown.
        await chat.until(lambda: bool(chat.sent))
        while len((await views.delivery_problems()).items) < 2:
            await views.last_position()
        await views.status()


async def _reminding(url: str, folder: Path) -> None:
    async with world(_setup(url, folder, ScriptedModel([]))) as at:
        for text in ("/timezone UTC", "/timezone", "/remind every minute: tea"):
            await at.says(text, chat_id="D-tea")
        code = (await at.sees(3, "D-tea"))[-1].partition("cancel ")[2].partition("`")[0]
        for word in ("pause", "resume", "cancel"):
            await at.says(f"/schedules {word} {code}", chat_id="D-tea")
        await at.says("/remind in 1 second: tea", chat_id="D-tea")
        await at.sees(8, "D-tea")
        await at.says("/schedules", chat_id="D-tea")


async def _scheduling(url: str, folder: Path) -> None:
    async with world(_setup(url, folder, ScriptedModel(["hello", "42", "43"]))) as at:
        table = await desk(at)
        schedules = table.control
        made = await table.make(here=True, overlap_policy="queue_one", max_executions=2)
        await schedules.listing(session_id=table.session_id, status="active")
        await schedules.revise(made, ScheduleChange(name="sums"))
        await schedules.pause(made)
        await schedules.resume(made)
        for total in (1, 2):
            await schedules.trigger(made)
            while (await table.view()).execution_count < total:
                await at.database.read(lambda conn: None)
        await schedules.cancel(await table.make(), CancelRequest(stop_run=True))
        observed = {
            "target_session_id": table.session_id,
            "source": {"session_id": table.session_id},
            "request": {"content": "sum up"},
        }
        made = await table.make(
            heartbeat=True, request=None, observation_materialization=observed, max_executions=1
        )
        await at.says("more", message_id="more")
        await at.sees(4)
        await schedules.trigger(made)
        while (await table.view()).execution_count < 1:
            await at.database.read(lambda conn: None)


async def _tasking(url: str, folder: Path) -> None:
    async with world(_setup(url, folder, ScriptedModel(["hello"]))) as at:
        accepted = await at.says("hi", chat_id="D-tasks")
        await _done(at, accepted.run_id)
        tasks, session = TaskBoard(at.engine.units, at.engine.parts.clock), accepted.session_id
        first = await tasks.create(session, TaskCreate(title="write"))
        second = await tasks.create(session, TaskCreate(title="send", blocked_by=(first.id,)))
        await tasks.update(session, first.id, TaskUpdate(status="completed"))
        await tasks.update(session, second.id, TaskUpdate(blocked_by=()))
        await tasks.listing(session, status="pending")
        await _mailing(at, session)


async def _mailing(at: World, sender: str) -> None:
    other = (await at.says("hi", chat_id="D-mail")).session_id or ""
    allowed = MailboxSettings(allowed=frozenset({(sender, other)}))
    mailboxes = MailboxControl(at.engine.units, assets_of(at), allowed)
    body = {"from": sender, "to": other, "payload": {"type": "message", "text": "hi"}}
    sent = Mail.model_validate(body)
    await mailboxes.post(sent, idempotency_key="k")
    await mailboxes.post(sent, idempotency_key="k")
    await mailboxes.queued(other)
    await mailboxes.dead(other)
    while not await at.database.read(delivered):
        await at.database.read(lambda conn: None)


def delivered(conn: Connection) -> bool:
    """Whether the keeper of mailboxes has seen that a message was read."""
    return "delivered" in conn.execute(select(mailbox_messages.c.state)).scalars()


async def _spawning(url: str, folder: Path) -> None:
    """Children that are awaited, that fail, that wait for others, that share the record of files,
    and that are stopped."""
    gate = Gate()

    def plays(request: ModelRequest) -> Said | str | ModelRejected:
        text = "\n".join(str(message) for message in request.messages)
        if "You are the subagent wrong" in text:
            return ModelRejected("no such model", "It cannot be asked.")
        if "You are the subagent slow" in text:
            return Said("never", before=gate)
        if "You are the subagent second" in text:
            return f"Found it. {'It is long. ' * 500}"
        if "You are the subagent" in text:
            return "Found it."
        if "Found it." in text or "accepted" in text:
            return "That is all."
        batch = [
            {"task": "look", "id": "first", "group": "g"},
            {"task": "look", "id": "second", "group": "g", "depends_on": ["first"]},
            {"task": "look", "id": "wrong"},
            {"task": "look", "id": "third", "depends_on": ["wrong"]},
        ]
        if "share" in text and "the plan" not in text:
            return Said(calls=(("read_file", json.dumps({"path": "plan.md"})),))
        if "hold" in text or "share" in text:
            batch = [{"task": "look", "id": "slow" if "hold" in text else "near"}]
        mode = "background" if "hold" in text else "await"
        isolation = "shared" if "share" in text else "full"
        arguments = json.dumps({"agents": batch, "mode": mode, "isolation": isolation})
        return Said(calls=(("sessions_spawn", arguments),))

    with_spawn = partial(_with_tools, (SessionsSpawn(), ReadFile()))
    (folder / "workspace" / "files").mkdir(parents=True, exist_ok=True)
    (folder / "workspace" / "files" / "plan.md").write_text("the plan")
    async with world(_setup(url, folder, ScriptedModel(plays), with_spawn)) as at:
        await _done(at, (await at.says("find it", chat_id="D-spawning")).run_id)
        await _done(at, (await at.says("share it", chat_id="D-sharing")).run_id)
        await at.says("hold it", chat_id="D-stopping")
        await gate.reached.wait()
        await at.says("/stop", chat_id="D-stopping")
        async with at.engine.parts.bus.subscribe(EVENTS) as signals:
            while await at.database.read(lambda conn: bool(agents_due.stopped(conn))):
                await anext(aiter(signals))


def _with_tools(tools: Sequence[AnyTool], setup: Setup) -> Setup:
    return replace(setup, tools=(*setup.tools, *tools))


async def _dying(url: str, folder: Path) -> None:
    gate = Gate()
    held = Said("it begins", middle=gate, at=1)
    first = script(Said(calls=(call("once", "keep"),)), held)
    async with world(_setup(url, folder, ScriptedModel(first))) as at:
        accepted = await at.says("die", chat_id="D-dying")
        await gate.reached.wait()
    async with world(_setup(url, folder, ScriptedModel(lambda _: "still here"))) as at:
        await _done(at, accepted.run_id)
        await at.engine.drain(1.0)


def _control(at: World) -> Control:
    parts = at.engine.parts
    settings = ControlSettings(workspace=at.workspace)
    services = ControlServices(
        Units(at.database, MemoryBus(), KINDS), parts.clock, at.engine.intake, lambda: settings
    )
    return Control(services)


async def _owning(url: str, folder: Path) -> None:
    async with world(_setup(url, folder, ScriptedModel(lambda _: "yes"))) as at:
        control, views = _control(at), Views(at.database, KINDS)
        new = NewConversation(title="Plans", key="room-1")
        made, _ = await control.create_session(new, idempotency_key="one")
        await control.create_session(new, idempotency_key="one")
        for key in ("a", "a"):
            said = await control.submit(made.id, ["hello"], idempotency_key=key)
        await _done(at, said.run_id)
        await control.cancel(str(said.run_id))
        await control.interrupt(made.id)
        for name, value in (("mode", "plan"), ("permission_mode", None), ("queue_mode", "collect")):
            await control.change_session(made.id, {name: value})
        await _another_persona(at, control, made.id)
        await _reading(at, views, made.id)
        await control.end_session(made.id)
        await _uploading(control, made.id)
        await control.sessions.revise(made.id, Revision(title="Named", archived=True))
        logins = Logins(at.database, at.engine.parts.clock)
        secret = await logins.create(Credential(role="admin", token="made-up-token"))
        await logins.find(secret)
        await logins.end(secret)
        at.engine.intake.change(IntakeSettings(access={"test": OPEN}))


async def _uploading(control: Control, session_id: str) -> None:
    """A file that the session uses, sent twice, and what of it is removed in time."""

    async def pieces() -> AsyncIterator[bytes]:
        yield b"a file"

    for _ in range(2):
        file, _ = await control.assets.receive(
            pieces(), "a.txt", Sender("made-up", "owner"), idempotency_key="one"
        )
    await control.assets.attach(session_id, AssetUse(file.id))
    _, content = await control.assets.open(file.id)
    if content is not None:
        content.close()
    await control.assets.sweep()
    await control.units.database.write(idempotency.expire, name="keys-expire")


async def _another_persona(at: World, control: Control, session_id: str) -> None:
    folder = at.workspace / "personas" / "kind"
    folder.mkdir(parents=True)
    (folder / "SOUL.md").write_text("Be kind.")
    personas = PersonaControl(control.units, control.workspace, control.actor.id)
    await personas.bind(session_id, "kind")
    said = await control.submit(session_id, ["and now?"])
    await _done(at, said.run_id)
    await personas.bind(session_id, None)
    scopes = ScopeControl(control.units, control.workspace, lambda: ["exec"], control.actor.id)
    await scopes.narrow(session_id, CapabilityScopeRequest(denied_tools=("exec",), paths=(".",)))
    await scopes.narrow(session_id, None)
    routes = RouteControl(control, RouteRules())
    await routes.change(session_id, RoutePolicy(generation=Generation(temperature=0.5)))
    await routes.change(session_id, None)
    for word in ("/persona", "/persona kind", "/persona off"):
        await at.says(word)


async def _reading(at: World, views: Views, session_id: str) -> None:
    first = await views.sessions(limit=1)
    await views.sessions(limit=1, cursor=first.next_cursor)
    await views.session(session_id)
    for one in (await views.sessions()).items:
        page = await views.transcript(one.id, limit=1)
        await views.transcript(one.id, transcript=1)
        if page.next_cursor is not None:
            await views.transcript(one.id, before=page.next_cursor)
    runs = await views.runs(limit=1)
    await views.runs(limit=1, cursor=runs.next_cursor)
    await views.runs(session_id=session_id, status=RunState.COMPLETED)
    run = runs.items[0]
    await views.run(run.id)
    events = await views.run_events(run.id, limit=1)
    await views.run_events(run.id, cursor=events.next_cursor)
    await views.events_after(0, session_id=session_id)
    await views.events_after(0, run_id=run.id)
    await views.events_after(0)
    await views.last_position()
    for kind in (APPROVAL, QUESTION):
        await views.open_calls(kind, limit=1)
        await views.open_calls(kind, session_id=session_id)
    await views.status()
    await views.pairings()
    problems = await views.delivery_problems(limit=1)
    await views.delivery_problems(cursor=problems.next_cursor)
    assert await state(at, run.id)


async def _spending(url: str, folder: Path) -> None:
    def bounded(setup: Setup) -> Setup:
        budgets = BudgetSettings(
            run=Limit(100_000), session=Limit(200), person_day=Limit(100_000), day=Limit(10**6)
        )
        intake = setup.settings.intake
        commands = replace(intake.commands, budgets=budgets)
        intake = replace(intake, commands=commands)
        settings = replace(setup.settings, budgets=budgets, intake=intake)
        return replace(setup, settings=settings)

    async with world(_setup(url, folder, ScriptedModel(lambda _: "cheap"), bounded)) as at:
        for text in ("one", "two", "three"):
            await _done(at, (await at.says(text, chat_id="D-money")).run_id)
        await at.says("/usage", chat_id="D-money")
