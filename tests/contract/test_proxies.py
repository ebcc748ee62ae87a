"""One rule for proxies over all clients (MDL-8), against a proxy that notes what it is asked."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from pydantic import SecretStr

from adapters.models import model_lists
from adapters.models.model_registry import Catalog
from adapters.models.settings import ModelSettings
from adapters.platforms.proxies import proxy_for, proxy_problems, unread_exceptions
from adapters.slack.client import SlackClient
from adapters.slack.failures import SlackFailure
from adapters.slack.settings import SlackSettings
from adapters.telegram.botapi import Transport
from adapters.telegram.failures import TelegramFailure
from adapters.transcription.openai import OpenAITranscriber, TranscriptionSettings
from gateway import wiring
from gateway.cli.checks import proxy
from runtime.domain.errors import InvalidInput, ModelError, Unavailable
from runtime.domain.transcript import UserMessage
from runtime.ports.model import ModelRequest
from tests.fakes.clock import FakeClock

pytestmark = pytest.mark.requirement("MDL-8")

KEY = SecretStr("made-up-key-0001")
NAMES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY")
HOST = "server.invalid"
CLOSED = "localhost:1"
"""Where nothing listens, so that no name service is waited for."""
_REFUSAL = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@dataclass
class Proxy:
    """Notes the first line of each request, and opens no way."""

    url: str = ""
    asked: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Proxy"]:
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        async with server:
            self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            yield self

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.asked.append(head.split(b"\r\n")[0].decode("ascii"))
            writer.write(_REFUSAL)
            await writer.drain()
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()


@pytest.fixture(autouse=True)
def _no_proxy_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
async def counting() -> AsyncIterator[Proxy]:
    async with Proxy().running() as running:
        yield running


async def slack(base: str) -> None:
    settings = SlackSettings(bot_token=KEY, app_token=KEY, api_url=f"{base}/api/")
    client = SlackClient(settings, FakeClock())
    try:
        with pytest.raises(SlackFailure):
            await client.write("auth.test", {})
    finally:
        await client.close()


async def slack_socket(base: str) -> None:
    client = SlackClient(SlackSettings(bot_token=KEY, app_token=KEY), FakeClock())
    try:
        with pytest.raises(SlackFailure):
            await client.open_socket(f"{base.replace('http', 'ws')}/link")
    finally:
        await client.close()


async def slack_file(base: str) -> None:
    client = SlackClient(SlackSettings(bot_token=KEY, app_token=KEY), FakeClock())
    try:
        response = await client.fetch(f"{base}/file")
        response.release()
    except SlackFailure:
        pass
    finally:
        await client.close()


async def telegram(base: str) -> None:
    transport = Transport(5.0)
    try:
        with pytest.raises(TelegramFailure):
            await transport.request("POST", f"{base}/botmade-up/getMe", None, 5.0)
    finally:
        await transport.shutdown()


async def telegram_file(base: str) -> None:
    transport = Transport(5.0)
    try:
        with pytest.raises(TelegramFailure):
            async for _ in transport.pieces(f"{base}/file/botmade-up/a"):
                pass
    finally:
        await transport.shutdown()


async def transcription(base: str) -> None:
    settings = TranscriptionSettings(url=f"{base}/v1", model="whisper-1", key=KEY)
    transcriber = OpenAITranscriber(settings)
    try:
        with pytest.raises(Unavailable):
            await transcriber.transcribe(b"OggS", name="a.oga", media_type="application/ogg")
    finally:
        await transcriber.close()


async def model_list(base: str) -> None:
    settings = ModelSettings(openai_api_key=KEY, openai_base_url=f"{base}/v1")
    assert (await model_lists.ask("compatible", settings)).trouble


def model(name: str) -> Callable[[str], Awaitable[None]]:
    async def ask(base: str) -> None:
        settings = ModelSettings(
            openai_api_key=KEY,
            openai_base_url=f"{base}/v1",
            anthropic_api_key=KEY,
            anthropic_base_url=base,
            gemini_api_key=KEY,
            gemini_base_url=base,
        )
        catalog = Catalog(settings)
        request = ModelRequest(
            system="",
            messages=(UserMessage(text="hello"),),
            present="",
            tools=(),
            max_output_tokens=16,
            run_id="run_1",
            step=1,
        )
        try:
            with pytest.raises(ModelError):
                async for _ in catalog.get(name).respond(request):
                    pass
        finally:
            await catalog.close()

    ask.__name__ = name.partition(":")[0]
    return ask


CLIENTS = [
    slack,
    slack_socket,
    slack_file,
    telegram,
    telegram_file,
    transcription,
    model_list,
    model("compatible:made-up"),
    model("anthropic:claude-made-up"),
    model("google:gemini-made-up"),
]
every_client = pytest.mark.parametrize("client", CLIENTS, ids=lambda one: one.__name__)


@every_client
@pytest.mark.parametrize(
    ("scheme", "variable"),
    [
        ("https", "HTTPS_PROXY"),
        ("https", "https_proxy"),
        ("https", "ALL_PROXY"),
        ("http", "HTTP_PROXY"),
        ("http", "all_proxy"),
    ],
)
async def test_each_client_asks_the_proxy_that_is_set(
    counting: Proxy,
    monkeypatch: pytest.MonkeyPatch,
    client: Callable[[str], Awaitable[None]],
    scheme: str,
    variable: str,
) -> None:
    monkeypatch.setenv(variable, counting.url)
    await client(f"{scheme}://{HOST}")
    assert counting.asked
    assert all(HOST in line for line in counting.asked)
    assert all(line.startswith("CONNECT ") is (scheme == "https") for line in counting.asked)


@every_client
@pytest.mark.parametrize(
    "exceptions",
    [
        "other.example.org,localhost",
        " localhost ",
        "localhost:1",
        " LocalHost",
        "x, localhost:1 ,y",
        "x , *",
        "*",
    ],
)
async def test_no_client_asks_it_for_what_is_excepted(
    counting: Proxy,
    monkeypatch: pytest.MonkeyPatch,
    client: Callable[[str], Awaitable[None]],
    exceptions: str,
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", counting.url)
    monkeypatch.setenv("ALL_PROXY", counting.url)
    monkeypatch.setenv("no_proxy", exceptions)
    await client(f"https://{CLOSED}")
    assert counting.asked == []


@every_client
@pytest.mark.parametrize("exceptions", [".localhost", "ocalhost", "localhost:2", "localhost.x"])
async def test_each_client_asks_it_for_what_only_looks_like_an_exception(
    counting: Proxy,
    monkeypatch: pytest.MonkeyPatch,
    client: Callable[[str], Awaitable[None]],
    exceptions: str,
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", counting.url)
    monkeypatch.setenv("NO_PROXY", exceptions)
    await client(f"https://{CLOSED}")
    assert counting.asked


@pytest.mark.parametrize(
    ("url", "exceptions", "asked"),
    [
        ("https://a.example.org/x", "", True),
        ("https://a.example.org/x", "example.org", False),
        ("https://notexample.org/x", "example.org", True),
        ("https://a.example.org/x", ".EXAMPLE.org", False),
        ("https://example.org/x", " .EXAMPLE.org", True),
        ("https://EXAMPLE.org/x", "Example.ORG", False),
        ("https://a.example.org:8443/x", "a.example.org:8443", False),
        ("https://a.example.org/x", "a.example.org:8443", True),
        ("https://10.1.2.3/x", "10.1.2.3", False),
        ("https://[::1]/x", "::1", False),
        ("https://a.example.org/x", "b, *", False),
        ("wss://a.example.org/x", "", True),
        ("http://a.example.org/x", "", False),
    ],
)
def test_which_hosts_are_excepted(
    monkeypatch: pytest.MonkeyPatch, url: str, exceptions: str, asked: bool
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "proxy.example.org:3128")
    monkeypatch.setenv("NO_PROXY", exceptions)
    assert proxy_for(url) == ("http://proxy.example.org:3128" if asked else None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("socks5://user:made-up-0001@127.0.0.1:1080", "names a SOCKS proxy"),
        ("socks4a://127.0.0.1:1080", "names a SOCKS proxy"),
        ("ftp://127.0.0.1", "names no HTTP proxy"),
        ("http://proxy.example.org:port", "is no address"),
        ("http://", "is no address"),
        ("http://proxy.example.org:3128\n", "has white space"),
    ],
)
@pytest.mark.parametrize("variable", ["ALL_PROXY", "https_proxy", "HTTP_PROXY"])
def test_what_is_not_supported_is_named_at_the_start_and_by_doctor(
    monkeypatch: pytest.MonkeyPatch, variable: str, text: str, said: str
) -> None:
    monkeypatch.setenv(variable, text)
    (found,) = proxy_problems()
    assert found.startswith(f"{variable.upper()} {said}")
    assert "0001" not in found
    with pytest.raises(InvalidInput, match=variable.upper()):
        wiring.check_proxies()
    check = proxy()
    assert (check.state, check.found) == ("fail", found)
    monkeypatch.setenv("NO_PROXY", "*")
    assert proxy_problems() == ()
    wiring.check_proxies()


def test_doctor_says_which_exceptions_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.org:3128")
    assert (proxy().state, proxy().found) == ("ok", "HTTPS_PROXY, except for what NO_PROXY names")
    monkeypatch.setenv("NO_PROXY", "10.0.0.0/8, *.example.org,db.example.org")
    assert unread_exceptions() == ("10.0.0.0/8", "*.example.org")
    assert proxy().state == "warn"
    assert "10.0.0.0/8" in proxy().found


def test_without_a_proxy_doctor_says_so() -> None:
    assert (proxy().state, proxy().found) == ("ok", "none is set")
