"""One gateway that is going to be killed: an engine, a scripted model, a chat over a socket.

It tells the platform's process each crash point that it passes, before it dies at the ordered one.
A point is named by its phase (how many messages and presses had begun to arrive) and its name.
"""

import asyncio
import json
import os
import signal
import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any

from adapters.sandbox.cgroups import Cgroups
from adapters.sandbox.unconfined import Unconfined
from runtime.domain.decisions import PermissionMode
from runtime.domain.errors import DeliveryUnknown
from runtime.domain.messages import (
    ApprovalPart,
    ButtonPress,
    ChatAddress,
    InboundMessage,
    OutboundMessage,
    Receipt,
)
from runtime.domain.tools import Effect, Touches
from runtime.domain.transcript import AssistantMessage, ToolMessage, UserMessage
from runtime.features.subagents.tools import SessionsSpawn
from runtime.ports.chat import AdapterStatus, Capabilities, Posted
from runtime.ports.gatehouse import Gatehouse
from runtime.ports.model import ModelRequest
from runtime.process.lease_keeper import LeaseSettings
from runtime.sessions.bounds import PolicySettings
from runtime.tools.base import Arguments, Tool, ToolContext, ToolOutput
from tests.crash.clock import RATE, FastClock
from tests.crash.growing import ENDING, Shown, SlowModel, SocketStreams, slowly, text_of
from tests.fakes.model import Gate, Said, ScriptedModels
from tests.scenario.engine import setup_at, world

LEASE_S = 60.0
INBOUND = ("accept:begin", "press:begin")

ANY_PHASE = -1
Kill = tuple[int, str]
"""(phase, point); `ANY_PHASE` is the first time that the point is passed at all."""


@dataclass(frozen=True)
class Order:
    """What a process is to do. `kill` None: live until somebody else ends it.

    `then` is where the gateway dies that is started after it. With `freeze` it does not die at the
    point, but stops until somebody wakes it. `rate` is how many times as fast as the machine's its
    clock runs, `skew_ms` how wrong its wall clock is; `lease_s` and `pause_s`, how long a chat
    waits between two posts, are by that clock. `patience_s` is how long the model waits, by the
    machine's clock, for what it has said to be shown; 0: no text grows. With `team` children are
    asked for, and nothing else; with `cards` the platform shows them at work. With `mail` the tools
    are the real ones, and an agent writes to another. With `commands` the tools are the product's
    own and commands run without a sandbox, unasked.
    """

    url: str
    folder: Path
    port: int
    epoch_ms: int
    lookup: bool = True
    kill: Kill | None = None
    then: Kill | None = None
    freeze: bool = False
    rate: int = RATE
    skew_ms: int = 0
    pause_s: float = 0.0
    lease_s: float = LEASE_S
    queue_mode: str = "followup"
    patience_s: float = 3.0
    team: bool = False
    cards: bool = False
    mail: bool = False
    commands: bool = False

    @property
    def effects(self) -> Path:
        """Where the tools with an effect leave a line each time they run."""
        return self.folder / "effects"


class Points:
    """Reports each point to the platform's process, and dies at the ordered one."""

    def __init__(self, order: Order) -> None:
        self._kill = order.kill
        self._signal = signal.SIGSTOP if order.freeze else signal.SIGKILL
        self._phase = 0
        self._lock = threading.Lock()
        self._socket = socket.create_connection(("127.0.0.1", order.port))
        self._socket.sendall(b'{"role": "points"}\n')

    def __call__(self, name: str) -> None:
        with self._lock:
            self._phase += name in INBOUND
            here = (self._phase, name)
            self._socket.sendall(json.dumps(here).encode() + b"\n")
            if self._kill in (here, (ANY_PHASE, name)):
                self._kill = None
                os.kill(os.getpid(), self._signal)


class TextArguments(Arguments):
    """What to write down."""

    text: str = ""


class Writes(Tool[TextArguments]):
    """Leaves a line in a file; nothing can take it back."""

    arguments = TextArguments
    description = "Write a line."
    example = '{"text": "milk"}'

    def __init__(self, name: str, effects: Path, *, effect: Effect, command: bool = False) -> None:
        self.name = name
        self.effect = effect
        self._effects = effects
        self._command = command

    def touches(self, arguments: TextArguments, context: ToolContext) -> Touches:
        command = arguments.text if self._command else None
        return Touches(command=command, subject=arguments.text)

    async def run(self, arguments: TextArguments, context: ToolContext) -> ToolOutput:
        if self.effect is Effect.ONCE:
            descriptor = os.open(self._effects, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.write(descriptor, f"{arguments.text}\n".encode())
            os.close(descriptor)
        return ToolOutput(f"{self.name} {arguments.text}")


def script(request: ModelRequest) -> Said | str:
    """A person's "note X" or "pay X" becomes calls; results become an answer that names them.

    "hold X" is thought about for ever.
    """
    last = request.messages[-1]
    asked = next(one.text for one in reversed(request.messages) if isinstance(one, UserMessage))
    verb, _, what = asked.partition(" ")
    if verb in ("mail", "post"):
        return mail(request, verb, what)
    if verb == "run":
        if isinstance(last, ToolMessage):
            return Said(f"It runs.{ENDING}")
        return Said(calls=(("exec", json.dumps({"command": what, "background": True})),))
    if verb in ("team", "explore"):
        return team(request, verb, what)
    if isinstance(last, ToolMessage):
        return slowly(f"{asked}: {' '.join(result.status for result in last.results)}")
    if verb == "hold":
        return Said("never", before=Gate())
    arguments = json.dumps({"text": what})
    calls = [(verb, arguments), ("look", arguments)] if verb == "note" else [(verb, arguments)]
    return slowly("I am on it.", *calls)


def team(request: ModelRequest, verb: str, what: str) -> Said:
    """Two children, of whom the second needs the first, are sent out in the background, and a third
    is awaited; each has an effect. The answer names what all of them found."""
    told = "\n".join(str(message) for message in request.messages)
    if verb == "explore":
        if isinstance(request.messages[-1], ToolMessage):
            return Said(f"Found {what}.")
        return Said(calls=(("note", json.dumps({"text": what})),))
    found = [one for one in ("north", "east", "south") if f"Found {one}." in told]
    if "accepted" not in told:
        agents = [
            {"task": "explore north", "id": "n", "type": "general"},
            {"task": "explore east", "id": "e", "type": "general", "depends_on": ["n"]},
        ]
        sent = {"mode": "background", "agents": agents}
        awaited = {"task": "explore south", "type": "general"}
        return Said(
            calls=(("sessions_spawn", json.dumps(sent)), ("sessions_spawn", json.dumps(awaited)))
        )
    if len(found) == TEAM:
        return Said(f"team {what}: {' '.join(found)}{ENDING}")
    return Said(f"So far: {len(found)}.{ENDING}")


def mail(request: ModelRequest, verb: str, what: str) -> Said:
    """A child writes to the root, which reads it in a run of its own and tells the person."""
    last = request.messages[-1]
    if verb == "post":
        if isinstance(last, ToolMessage):
            return Said("Posted.")
        to = {"to": "agent:root", "text": f"about {what}"}
        return Said(calls=(("send_message", json.dumps(to)),))
    # Its end may come into the same run, behind what it wrote.
    heard = takewhile(lambda one: not isinstance(one, AssistantMessage), reversed(request.messages))
    if any("wrote to you" in str(one) for one in heard):
        return Said(f"mail {what}: read{ENDING}")
    if "accepted" in str(request.messages):
        return Said(f"Fine.{ENDING}")
    asked = {"task": f"post {what}", "id": "p", "type": "general", "mode": "background"}
    return Said(calls=(("sessions_spawn", json.dumps(asked)),))


TEAM = 3
PATIENT_MS = 24 * 3600 * 1000


class SocketChat:
    """A chat adapter whose platform is another process."""

    channel = "test"
    account = "A1"
    files = webhook = None

    def __init__(self, port: int, shown: Shown | None, *, lookup: bool, pause_s: float) -> None:
        self.capabilities = Capabilities(
            chat_rate=1 / pause_s if pause_s else 1e6,
            chat_burst=1 if pause_s else 1_000_000,
            account_rate=1e6,
            account_burst=1_000_000,
            lookup=lookup,
            typing_interval_s=None,
            edits=True,
        )
        self.listening = asyncio.Event()
        self._port = port
        self._lock = asyncio.Lock()
        self._connection: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.streams = shown and SocketStreams(self._ask, shown, lookup=lookup)

    def status(self) -> AdapterStatus:
        return AdapterStatus(connected=True)

    async def connect(self) -> None:
        self._connection = await self._open("requests")

    async def _open(self, role: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(json.dumps({"role": role}).encode() + b"\n")
        await writer.drain()
        return reader, writer

    async def listen(self, gatehouse: Gatehouse) -> None:
        """What the platform delivers is stored, and only then acknowledged (MSG-1)."""
        reader, writer = await self._open("listen")
        self.listening.set()
        while line := await reader.readline():
            delivered = json.loads(line)
            if "press" in delivered:
                await gatehouse.press(ButtonPress.model_validate(delivered["press"]))
            else:
                await gatehouse.accept(InboundMessage.model_validate(delivered["message"]))
            writer.write(json.dumps({"acknowledged": delivered["id"]}).encode() + b"\n")
            await writer.drain()

    async def send(
        self, message: OutboundMessage, *, posted: Sequence[str], on_posted: Posted
    ) -> Receipt:
        if posted:
            return Receipt(message_ids=tuple(posted))
        answer = await self._ask({"op": "post", **_said(message)})
        await on_posted(answer["id"])
        return Receipt(message_ids=(answer["id"],))

    async def edit(self, message: OutboundMessage, receipt: Receipt) -> None:
        await self._ask({"op": "edit", "of": list(receipt.message_ids), **_said(message)})

    async def typing(self, target: ChatAddress, state: str) -> None:
        return

    async def lookup(self, message: OutboundMessage, *, posted: Sequence[str]) -> Receipt | None:
        found = await self._ask({"op": "lookup", "outbox_id": message.outbox_id})
        return None if found["id"] is None else Receipt(message_ids=(found["id"],))

    async def close(self) -> None:
        return

    async def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._connection is not None
        reader, writer = self._connection
        async with self._lock:
            writer.write(json.dumps(request).encode() + b"\n")
            await writer.drain()
            line = await reader.readline()
        if not line:
            raise DeliveryUnknown("the platform hung up")
        return dict(json.loads(line))


def _said(message: OutboundMessage) -> dict[str, str]:
    part = message.parts[0]
    text = text_of(message)
    if isinstance(part, ApprovalPart):
        text = f"card {part.tool} {part.outcome}".strip()
    return {"outbox_id": message.outbox_id, "text": text}


async def serve(order: Order) -> None:
    """Run the engine until the process is ended."""
    tools = (
        Writes("note", order.effects, effect=Effect.ONCE),
        Writes("look", order.effects, effect=Effect.READ),
        Writes("pay", order.effects, effect=Effect.ONCE, command=True),
        SessionsSpawn(),
    )
    model = SlowModel(script)
    model.shown = Shown(order.patience_s)
    models = ScriptedModels(model)
    clock = FastClock(order.epoch_ms, order.rate, order.skew_ms)
    sandbox = Unconfined(clock, cgroups=Cgroups(memory=None, pids=None))
    setup = setup_at(
        order.folder,
        order.url,
        models,
        tools=() if order.mail or order.commands else tools,
        clock=clock,
        point=Points(order),
        sandbox=sandbox if order.commands else None,
        alone=order.url.startswith("sqlite"),
    )
    intake = replace(setup.settings.intake, queue_mode=order.queue_mode)
    # A slow machine on a fast clock must not end the awaiting of a child.
    setup = replace(setup, children=replace(setup.children, await_ms=PATIENT_MS))
    settings = replace(setup.settings, intake=intake, lease=LeaseSettings(order.lease_s))
    if order.commands:
        settings = replace(settings, policy=PolicySettings(mode=PermissionMode.BYPASS))
    shown = model.shown if order.patience_s else None
    chat: Any = SocketChat(order.port, shown, lookup=order.lookup, pause_s=order.pause_s)
    chat.capabilities = replace(chat.capabilities, live_cards=order.cards)
    async with world(replace(setup, settings=settings), chat):
        await asyncio.Event().wait()


def main(order: Order) -> None:
    """The process's whole life."""
    log = os.open(order.folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(log, stream)
    asyncio.run(serve(order))
