"""Which model is taken when, by which name, and what that costs before it is asked."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from pydantic import SecretStr

from adapters.models.local_servers import discover
from adapters.models.model_registry import Catalog, LazyModel
from adapters.models.names import ANTHROPIC_MODEL, GOOGLE_MODEL, OPENAI_MODEL, PROVIDERS, missing
from adapters.models.settings import ModelSettings
from runtime.domain.errors import InvalidInput, ModelRejected
from runtime.domain.runs import Usage
from runtime.ports.model import ModelRequest, ModelResponse, TextChunk
from tests.conftest import FailAfter
from tests.unit.models.raw import answering
from tests.unit.models.samples import collect, request

KEY = SecretStr("sk-test-key")
ALL = ModelSettings(
    openai_api_key=KEY,
    anthropic_api_key=KEY,
    gemini_api_key=KEY,
    openai_base_url="http://127.0.0.1:1/v1",
    compatible_model="local-one",
    ollama_url="http://127.0.0.1:1",
    ollama_model="small",
)


class Library:
    """What a provider's library is to a model; `loads` counts how often it was loaded."""

    def __init__(self) -> None:
        self.loads: list[str] = []
        self.trouble: Exception | None = None

    def load(self, name: str, _: ModelSettings) -> "Library":
        self.loads.append(name)
        if self.trouble is not None:
            raise self.trouble
        return self

    async def respond(self, _: ModelRequest) -> AsyncGenerator[TextChunk | ModelResponse, None]:
        yield TextChunk("")

    async def close(self) -> None: ...


@pytest.mark.requirement("OPS-11")
async def test_the_default_models_library_is_loaded_ahead_and_once() -> None:
    library = Library()
    catalog = Catalog(ALL, load=library.load)
    assert await catalog.load()
    assert await catalog.load()
    async for _ in catalog.get(catalog.default).respond(request()):
        pass
    assert library.loads == [catalog.default]
    assert not await Catalog(ModelSettings(), load=library.load).load()
    assert len(library.loads) == 1, "the offline model has none"
    library.trouble = ImportError("No module named 'openai'")
    with pytest.raises(ModelRejected):
        await Catalog(ALL, load=library.load).load()


@pytest.mark.requirement("OPS-3")
def test_a_model_is_found_in_the_order_of_the_contract() -> None:
    order = []
    left = ALL
    for gone in (
        "openai_api_key",
        "anthropic_api_key",
        "gemini_api_key",
        "openai_base_url",
        "ollama_url",
        "default",
    ):
        order.append(Catalog(left).default)
        left = left.model_copy(update={gone: None})
    assert order == [
        "compatible:local-one",
        f"anthropic:{ANTHROPIC_MODEL}",
        f"google:{GOOGLE_MODEL}",
        "compatible:local-one",
        "ollama:small",
        "offline:offline",
    ]


@pytest.mark.requirement("OPS-3")
@pytest.mark.parametrize(
    "url", [None, "https://api.openai.com/v1", "https://eu.api.openai.com/v1/"]
)
def test_a_key_without_another_server_is_for_openai(url: str | None) -> None:
    settings = ALL.model_copy(update={"openai_base_url": url})
    assert Catalog(settings).default == f"openai:{OPENAI_MODEL}"


@pytest.mark.requirement("OPS-3")
def test_the_operators_word_decides_otherwise() -> None:
    settings = ALL.model_copy(update={"default": "google:gemini-of-mine"})
    assert Catalog(settings).default == "google:gemini-of-mine"


@pytest.mark.requirement("OPS-3")
async def test_with_nothing_configured_the_offline_model_answers() -> None:
    async with answering(b"") as nobody:
        pass
    catalog = Catalog(await discover(ModelSettings(), local=nobody.url))
    assert catalog.default == "offline:offline"
    _, response = await collect(catalog.get(catalog.default), request("hello"))
    assert "offline model" in response.text


@asynccontextmanager
async def server(path: str, answer: object) -> AsyncIterator[str]:
    async def handle(_: web.Request) -> web.StreamResponse:
        return web.json_response(answer)

    async with serving(path, handle) as url:
        yield url


@asynccontextmanager
async def serving(
    path: str, handle: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_get(path, handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@pytest.mark.requirement("OPS-3")
async def test_a_local_ollama_is_found_with_the_model_that_it_has() -> None:
    async with server("/api/tags", {"models": [{"name": "tiny:1b"}, {"name": "big"}]}) as url:
        found = await discover(ModelSettings(), local=url)
    assert Catalog(found).default == "ollama:tiny:1b"
    assert found.ollama_url == url


@pytest.mark.requirement("OPS-3")
async def test_an_ollama_without_a_model_is_no_ollama() -> None:
    async with server("/api/tags", {"models": []}) as url:
        found = await discover(ModelSettings(), local=url)
    assert Catalog(found).default == "offline:offline"


async def test_a_long_list_is_read_to_its_end() -> None:
    tags = {"models": [{"name": "tiny:1b"}, *({"name": "x" * 900} for _ in range(900))]}
    async with server("/api/tags", tags) as url:
        found = await discover(ModelSettings(), local=url)
    assert found.ollama_model == "tiny:1b"


async def test_a_compatible_server_is_asked_for_its_models_name() -> None:
    async with server("/v1/models", {"data": [{"id": "the-one"}]}) as url:
        found = await discover(ModelSettings(openai_base_url=f"{url}/v1"))
    assert Catalog(found).default == "compatible:the-one"


@pytest.mark.requirement("OPS-3")
@pytest.mark.parametrize(
    ("has", "chosen"),
    [(["of-mine", "other"], "of-mine"), (["embeddings", OPENAI_MODEL], OPENAI_MODEL)],
)
async def test_a_key_for_a_server_is_shown_to_it_and_one_of_its_models_is_taken(
    has: list[str], chosen: str
) -> None:
    async def handle(asked: web.Request) -> web.StreamResponse:
        if asked.headers.get("Authorization") != "Bearer sk-test-key":
            return web.Response(status=401)
        response = web.StreamResponse()
        await response.prepare(asked)
        for piece in re.findall(".{1,9}", json.dumps({"data": [{"id": one} for one in has]})):
            await response.write(piece.encode())
        return response

    async with serving("/v1/models", handle) as url:
        found = await discover(ModelSettings(openai_api_key=KEY, openai_base_url=f"{url}/v1"))
        wrong = await discover(
            ModelSettings(openai_api_key=SecretStr("sk-wrong"), openai_base_url=f"{url}/v1")
        )
    catalog = Catalog(found)
    assert (catalog.default, found.unlisted) == (f"compatible:{chosen}", "")
    assert f"openai:{OPENAI_MODEL}" not in catalog.names()
    assert "it refused the gateway's key" in wrong.unlisted


@pytest.mark.requirement("OPS-3")
@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("", "{url} did not list its models: does the address end in /v1?"),
        ("/v1", '{url}/v1 does not list its models. Name one: models.default = "compatible:NAME".'),
        ("/empty", "{url}/empty lists no model. Load one there, and start again."),
    ],
)
async def test_a_server_that_lists_nothing_is_said_with_what_to_do(path: str, said: str) -> None:
    async with server("/empty/models", {"data": []}) as url:
        with_password = url.replace("//", "//user:secret@")
        found = await discover(ModelSettings(openai_base_url=f"{with_password}{path}"))
    assert found.unlisted == said.format(url=url)
    assert Catalog(found).default == "compatible:default"


@pytest.mark.requirement("OPS-3")
async def test_a_server_that_is_not_there_is_said() -> None:
    found = await discover(ModelSettings(openai_base_url="http://127.0.0.1:1/v1"))
    assert found.unlisted.startswith(
        "http://127.0.0.1:1/v1 did not list its models: it cannot be reached."
    )


@pytest.mark.parametrize(
    "settings",
    [ModelSettings(openai_api_key=KEY), ModelSettings(default="offline:offline")],
)
async def test_nobody_is_asked_where_the_choice_is_made(settings: ModelSettings) -> None:
    async with server("/api/tags", {"models": [{"name": "tiny"}]}) as url:
        assert await discover(settings, local=url) == settings


async def test_a_server_that_hangs_does_not_hold_up_the_start(fail_after: FailAfter) -> None:
    async with fail_after(5), answering(b"", hold=True) as stuck:
        assert await discover(ModelSettings(), local=stuck.url) == ModelSettings()
        assert stuck.asked == 1


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("opnai:gpt-9", "openai:gpt-9"),
        ("antropic:claude", "anthropic:claude"),
        (OPENAI_MODEL, f"openai:{OPENAI_MODEL}"),
        ("claude-sonet-5-5", f"anthropic:{ANTHROPIC_MODEL}"),
        ("ofline", "offline:offline"),
        ("offline:gpt", "offline:offline"),
        ("openai:", "openai:"),
        ("", "offline:offline"),
        ("zzz:zzz", "offline:offline"),
    ],
)
def test_an_unknown_name_is_answered_with_near_ones(name: str, near: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Catalog(ALL).get(name)
    assert near in caught.value.rule


@pytest.mark.parametrize("name", ["nonsense", "gpt-4o"])
def test_a_name_without_a_provider_is_answered_with_the_form(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Catalog(ALL).get(name)
    assert caught.value.rule.startswith(f"{name!r} names no model. Write provider:name, such as ")
    assert "Did you mean offline" not in caught.value.rule


def test_a_provider_without_its_key_says_what_is_missing() -> None:
    with pytest.raises(InvalidInput, match="ANTHROPIC_API_KEY"):
        Catalog(ModelSettings()).get("anthropic:claude-sonnet-5-5")


@pytest.mark.parametrize("field", ["default", "fallback", "offered"])
def test_a_configured_name_that_cannot_be_used_is_refused_at_once(field: str) -> None:
    value = "nobody:knows" if field == "default" else ("nobody:knows",)
    with pytest.raises(InvalidInput) as caught:
        Catalog(ModelSettings.model_validate({field: value}))
    assert caught.value.field == f"models.{field}"


def test_what_is_offered_is_the_operators_list_or_what_has_a_key() -> None:
    some = ModelSettings(anthropic_api_key=KEY, fallback=("anthropic:other",))
    assert Catalog(some).names() == (
        f"anthropic:{ANTHROPIC_MODEL}",
        "anthropic:other",
        "offline:offline",
    )
    assert Catalog(some).fallback == ("anthropic:other",)
    listed = some.model_copy(update={"offered": ("offline:offline",)})
    assert Catalog(listed).names() == ("offline:offline",)


def test_every_provider_knows_what_it_needs_and_how_much_fits() -> None:
    for provider in PROVIDERS:
        assert bool(missing(provider, ModelSettings())) is (provider != "offline")
        assert not missing(provider, ALL)
    catalog = Catalog(ALL)
    assert catalog.get(f"openai:{OPENAI_MODEL}").context_tokens == 1_050_000
    assert catalog.get("ollama:small").context_tokens is None, "its server says so, or nobody"
    listed = Catalog(ALL.model_copy(update={"sizes": {"ollama:small": 8_192}}))
    assert listed.get("ollama:small").context_tokens == 8_192
    bounded = Catalog(ALL.model_copy(update={"context_tokens": 5_000}))
    assert bounded.get("openai:x").context_tokens == 5_000


def test_no_providers_library_is_loaded_before_a_model_is_asked() -> None:
    program = (
        "import asyncio, sys\n"
        "from adapters.models.model_registry import Catalog\n"
        "from adapters.models.settings import ModelSettings\n"
        "some = ModelSettings(default='openai:x', openai_api_key='sk-test-key')\n"
        "catalog = Catalog(some)\n"
        "catalog.names()\n"
        "heavy = {'pydantic_ai', 'openai', 'anthropic', 'google.genai', 'genai_prices'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        # What is loaded then loads no command line: `click` is not there meanwhile.
        "class Looking:\n"
        "    def find_spec(self, name, *others):\n"
        "        assert name != 'adapters.models.provider', sys.modules['click']\n"
        "sys.meta_path.insert(0, Looking())\n"
        "try:\n"
        "    asyncio.run(catalog.load())\n"
        "except AssertionError as error:\n"
        "    assert error.args == (None,)\n"
        "    assert 'click' not in sys.modules\n"
        "else:\n"
        "    sys.exit('it was never loaded')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


class Loaded:
    """What a provider's library would be."""

    closed = False

    async def respond(self, asked: ModelRequest) -> AsyncGenerator[TextChunk | ModelResponse]:
        yield ModelResponse(text="", tool_calls=(), usage=Usage(), model="openai:x")

    async def close(self) -> None:
        self.closed = True


async def test_a_library_is_loaded_once_for_requests_that_come_together() -> None:
    loaded: list[Loaded] = []

    def load(name: str, settings: ModelSettings) -> Loaded:
        loaded.append(Loaded())
        return loaded[-1]

    catalog = Catalog(ALL, load=load)
    model = catalog.get("openai:x")
    async with asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(collect(model, request("hello")), name=f"request {number}")
    assert len(loaded) == 1

    await catalog.close()
    assert loaded[0].closed
    await catalog.close()


async def test_a_library_that_is_not_installed_is_said_in_plain_words() -> None:
    def load(name: str, settings: ModelSettings) -> Loaded:
        raise ImportError("No module named 'openai'")

    with pytest.raises(ModelRejected) as caught:
        await collect(LazyModel("openai:x", ALL, load=load), request("hello"))
    assert "not installed" in caught.value.public
