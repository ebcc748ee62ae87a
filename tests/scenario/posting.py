"""A deliverer at work on a real database, under virtual time, with a chat that stops on command."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from runtime.bus.memory import MemoryBus
from runtime.delivery.deliverer import Deliverer
from runtime.delivery.sender import DeliveryServices, DeliverySettings
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import ChatAddress, OutboundMessage, Receipt, TextPart
from runtime.domain.runs import Holder
from runtime.ports.bus import OUTBOX
from runtime.ports.chat import ChatAdapter, Posted
from runtime.process.due_poll import Looks
from runtime.process.supervisor import Supervisor
from runtime.sessions import outbox
from runtime.sessions.outbox import FINAL_RANK, NewRow, OutboxRow
from runtime.sessions.unit import Units
from runtime.store import Database, leases, no_point, open_database
from tests.fakes.chat import FAST, FakeChat
from tests.fakes.clock import FakeClock
from tests.fakes.model import Gate
from tests.scenario.engine import Drain
from tests.support.kinds import KINDS
from tests.support.templates import make_database

WORKER = "wrk_test"
LEASE = leases.delivery("test", "A1")
DAY_MS = 24 * 3600 * 1000


class GatedChat(FakeChat):
    """A chat whose sends wait at gates, by text, before anything is posted or right after."""

    def __init__(self, **capabilities: object) -> None:
        super().__init__(capabilities=replace(FAST, repeatable=False, **capabilities))
        self.before: dict[str, Gate] = {}
        self.after: dict[str, Gate] = {}
        self.attempts: list[tuple[str, float]] = []
        self.clock: FakeClock | None = None
        self.by_text: dict[str, list[Exception]] = {}

    async def send(
        self, message: OutboundMessage, *, posted: Sequence[str], on_posted: Posted
    ) -> Receipt:
        """As `FakeChat.send`, with the gates and the errors of this text."""
        text = message.parts[0].markdown
        self.attempts.append((text, self.clock.monotonic() if self.clock else 0.0))
        if text in self.before:
            await self.before[text].wait()
        if self.by_text.get(text):
            raise self.by_text[text].pop(0)
        receipt = await super().send(message, posted=posted, on_posted=on_posted)
        if text in self.after:
            await self.after[text].wait()
        return receipt


class LoneDeliverer(Deliverer):
    """A deliverer without a process around it: it looks for itself, and has its lease for good."""

    def __init__(self, adapter: ChatAdapter, services: DeliveryServices) -> None:
        self._own_looks = Looks(services.units.database, services.clock)
        super().__init__(
            adapter,
            services,
            looks=self._own_looks,
            held=lambda: True,
            supervisor=Supervisor(services.clock),
        )

    async def run(self, fence: int) -> None:
        """As `Deliverer.run`, with its looks beside it."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._own_looks.run(), name="delivery looks")
            await super().run(fence)


class Post:
    """A deliverer at work on a real database, under virtual time."""

    def __init__(self, database: Database, clock: FakeClock, chat: FakeChat) -> None:
        self.database, self.clock, self.chat = database, clock, chat
        self.bus = MemoryBus()
        self.services = DeliveryServices(
            Units(database, self.bus, KINDS), clock, WORKER, jitter=lambda: 0.5
        )
        self.deliverer = LoneDeliverer(chat, self.services)
        self.task: asyncio.Task[None] | None = None
        self.fence: int | None = None
        self.worker = WORKER

    def serve(self, chat: FakeChat) -> None:
        """Deliver to another platform, from the next start on."""
        self.chat = chat
        self.deliverer = LoneDeliverer(chat, self.services)

    def tell_time(self, clock: FakeClock) -> None:
        """Deliver by this clock from the next start on; the store keeps its own."""
        self.services = replace(self.services, clock=clock)
        self.deliverer = LoneDeliverer(self.chat, self.services)

    async def start(self, worker: str = WORKER, **settings: object) -> None:
        """A worker takes the lease and delivers."""
        services = replace(self.services, worker=worker, settings=DeliverySettings(**settings))
        if settings or worker != WORKER:
            self.deliverer = LoneDeliverer(self.chat, services)
        self.fence = await self.database.write(
            lambda conn: leases.acquire(conn, name=LEASE, holder=worker, ttl_ms=DAY_MS),
            name="lease",
        )
        assert self.fence is not None
        self.worker = worker
        self.task = asyncio.create_task(self.deliverer.run(self.fence), name="deliverer")
        await self.clock.advance(0.0)

    async def lose(self) -> None:
        """The lease is another's from now on, and this worker has not noticed."""
        await self.database.write(leases.void_all, name="lose")

    async def stop(self) -> None:
        """The lease was lost, and the worker knows."""
        if self.task is not None:
            self.task.cancel()
            await asyncio.wait([self.task])
            await self.lose()

    def message(self, text: str, chat: str = "C") -> OutboundMessage:
        return OutboundMessage(
            outbox_id=new_id(IdPrefix.OUTBOX, self.clock.now_ms()),
            target=ChatAddress(channel="test", account="A1", chat_id=chat),
            parts=(TextPart(markdown=text),),
        )

    async def put(
        self,
        text: str,
        chat: str = "C",
        *,
        final: bool = False,
        claim: Holder | None = None,
    ) -> str:
        """Put a message into the outbox; its id."""
        message = self.message(text, chat)
        row = NewRow(
            kind="final" if final else "notice",
            message=message,
            rank=FINAL_RANK if final else 0,
            claim=claim,
        )
        claimed = await self.database.write(lambda conn: outbox.add(conn, row), name="put")
        assert claimed is (claim is not None)
        self.bus.publish(OUTBOX, {})
        return message.outbox_id

    async def row(self, outbox_id: str) -> OutboxRow:
        found = await self.database.read(lambda conn: outbox.get(conn, outbox_id))
        assert found is not None
        return found

    async def until(self, condition: Callable[[], bool], step: float = 0.5) -> None:
        """Let time pass until `condition` holds."""
        async with asyncio.timeout(60):
            while not condition():
                await self.clock.advance(step)

    async def ends(self, outbox_id: str, step: float = 0.5) -> OutboxRow:
        """The row, once it is settled."""
        async with asyncio.timeout(60):
            while (row := await self.row(outbox_id)).state in ("pending", "sending"):
                await self.clock.advance(step)
        return row


@asynccontextmanager
async def post(
    path: Path, chat: FakeChat | None = None, *, point: Callable[[str], None] = no_point
) -> AsyncIterator[Post]:
    url = f"sqlite:///{path}/outbox.db"
    await make_database(url)
    clock = FakeClock()
    database = open_database(url, clock=clock, points=point)
    await database.start()
    clock.drain = Drain(database)
    made = Post(database, clock, chat or GatedChat())
    if isinstance(made.chat, GatedChat):
        made.chat.clock = clock
    try:
        yield made
    finally:
        await made.stop()
        await database.close()
