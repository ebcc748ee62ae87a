"""What the connection itself does: sockets, pages of proxies, and a library that stays out."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio
from aiohttp import web
from pydantic import SecretStr

from adapters.telegram.adapter import TelegramAdapter
from adapters.telegram.settings import TelegramSettings
from runtime.domain.errors import DeliveryRetry, DeliveryUnknown
from tests.contract.chat.telegram_support import Progress, WatchedClock, to
from tests.fakes.gatehouse import FakeGatehouse
from tests.wire.telegram import Chat

Answer = Callable[[str], Awaitable[web.Response]]


class Line:
    """An HTTP server that answers every method with what `answer` says."""

    def __init__(self) -> None:
        self.answer: Answer | None = None
        self.methods: list[str] = []
        self.adapter: TelegramAdapter | None = None

    async def handle(self, request: web.Request) -> web.Response:
        self.methods.append(request.match_info["method"].lower())
        assert self.answer is not None
        return await self.answer(self.methods[-1])


@pytest_asyncio.fixture
async def line() -> AsyncIterator[Line]:
    made = Line()
    app = web.Application()
    app.router.add_post("/bot{token}/{method}", made.handle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    settings = TelegramSettings(
        token=SecretStr("123456:TEST-TOKEN"),
        api_url=f"http://127.0.0.1:{runner.addresses[0][1]}/",
    )
    made.adapter = TelegramAdapter(settings, WatchedClock())
    yield made
    await made.adapter.close()
    await runner.cleanup()


async def test_stopping_closes_the_long_poll_at_once(line: Line) -> None:
    waiting, gone = asyncio.Event(), asyncio.Event()
    answers: dict[str, object] = {"getme": {"id": 1, "username": "b"}, "getwebhookinfo": {}}

    async def answer(method: str) -> web.Response:
        if method in answers:
            return web.json_response({"ok": True, "result": answers[method]})
        if line.methods.count(method) == 1:
            return web.json_response({"ok": True, "result": []})
        waiting.set()
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()
        raise AssertionError("unreachable")

    line.answer = answer
    assert line.adapter is not None
    await line.adapter.connect()
    listening = asyncio.create_task(line.adapter.listen(FakeGatehouse()), name="listen")
    async with asyncio.timeout(60):
        await waiting.wait()
        assert line.adapter.status().connected
        listening.cancel()
        await asyncio.wait([listening])
        await gone.wait()
    assert not line.adapter.status().connected


@pytest.mark.requirement("MSG-11")
@pytest.mark.parametrize(
    ("status", "body", "outcome"),
    [
        (502, "<h1>Bad Gateway</h1>", DeliveryUnknown),
        (504, "", DeliveryUnknown),
        (200, "<h1>Log in to the wireless network</h1>", DeliveryUnknown),
        (200, '{"ok": true, "result": {}}', DeliveryUnknown),
        (503, "<h1>Service Unavailable</h1>", DeliveryRetry),
        (407, "<h1>Proxy Authentication Required</h1>", DeliveryRetry),
        (429, "slow down", DeliveryRetry),
        (500, '{"ok": false, "error_code": 500, "description": "Internal"}', DeliveryRetry),
    ],
)
async def test_only_what_surely_was_not_posted_is_sent_again(
    line: Line, status: int, body: str, outcome: type[Exception]
) -> None:
    async def answer(_: str) -> web.Response:
        return web.Response(status=status, text=body)

    line.answer = answer
    assert line.adapter is not None
    with pytest.raises(outcome):
        await line.adapter.send(to(Chat(5, "private"), "hi"), posted=(), on_posted=Progress())
    assert line.methods == ["sendmessage"]


def test_a_gateway_without_telegram_does_not_carry_the_library() -> None:
    code = "import sys, adapters.telegram; print('telegram' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
