"""What `/model` may choose: each provider's own list, asked once in a while."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from pydantic import SecretStr

from adapters.models.model_lists import FAILURE_KEPT_S, KEPT_S, ProviderLists
from adapters.models.settings import ModelSettings
from runtime.commands import models
from runtime.ports.model import ModelListing
from tests.conftest import FailAfter
from tests.fakes.clock import FakeClock
from tests.unit.models.raw import answering

pytestmark = pytest.mark.requirement("MSG-12")
KEY = SecretStr("sk-test-key")
DATA = {"data": [{"id": "one"}, {"id": "two"}, {"id": "no name\n"}]}
GOOGLE = {
    "models": [
        {"name": "models/one", "supportedGenerationMethods": ["generateContent"]},
        {"name": "models/two", "supportedGenerationMethods": ["generateContent", "x"]},
        {"name": "models/vectors", "supportedGenerationMethods": ["embedContent"]},
    ]
}


class Provider:
    """A server that lists models, for who shows the key that it wants."""

    def __init__(self, path: str, key: tuple[str, str], content: object) -> None:
        self.url = ""
        self.status = 200
        self.asked = 0
        self._path, self._key, self._content = path, key, content

    async def answer(self, request: web.Request) -> web.Response:
        self.asked += 1
        name, value = self._key
        assert request.path == self._path
        if name and request.headers.get(name) != value:
            return web.json_response({"error": "who?"}, status=401)
        return web.json_response(self._content, status=self.status)


@asynccontextmanager
async def serving(provider: Provider) -> AsyncIterator[Provider]:
    app = web.Application()
    app.router.add_get("/{any:.*}", provider.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    provider.url = "http://{}:{}".format(*runner.addresses[0][:2])
    try:
        yield provider
    finally:
        await runner.cleanup()


BEARER = ("Authorization", "Bearer sk-test-key")
PROVIDERS: list[tuple[str, Provider, Callable[[str], ModelSettings]]] = [
    (
        "openai",
        Provider("/v1/models", BEARER, DATA),
        lambda url: ModelSettings(
            default="openai:one", openai_api_key=KEY, openai_base_url=f"{url}/v1"
        ),
    ),
    (
        "compatible",
        Provider("/v1/models", ("", ""), DATA),
        lambda url: ModelSettings(openai_base_url=f"{url}/v1/", compatible_model="one"),
    ),
    (
        "anthropic",
        Provider("/v1/models", ("x-api-key", "sk-test-key"), DATA),
        lambda url: ModelSettings(
            default="anthropic:one", anthropic_api_key=KEY, anthropic_base_url=url
        ),
    ),
    (
        "google",
        Provider("/v1beta/models", ("x-goog-api-key", "sk-test-key"), GOOGLE),
        lambda url: ModelSettings(default="google:one", gemini_api_key=KEY, gemini_base_url=url),
    ),
    (
        "ollama",
        Provider("/api/tags", ("", ""), {"models": [{"name": "one"}, {"name": "two"}]}),
        lambda url: ModelSettings(ollama_url=url, ollama_model="one"),
    ),
]


@pytest.mark.parametrize(("name", "provider", "settings"), PROVIDERS)
async def test_each_provider_is_asked_for_its_list_and_the_answer_is_kept(
    name: str, provider: Provider, settings: Callable[[str], ModelSettings]
) -> None:
    clock = FakeClock()
    async with serving(provider):
        lists = ProviderLists(settings(provider.url), clock)
        first = await lists.listing()
        await lists.listing()
        assert provider.asked == 1
        await clock.advance(KEPT_S)
        assert await lists.listing() == first
        assert provider.asked == 2
    assert first.names == (f"{name}:one", f"{name}:two", "offline:offline")
    assert (first.unlisted, first.silent) == ((), {})
    assert name not in first.missing


async def test_a_list_that_comes_in_several_pieces_is_read_to_its_end() -> None:
    many = {"data": [{"id": f"m{number}", "about": "x" * 1_000} for number in range(1_000)]}
    path, settings = "/v1/models", PROVIDERS[1][2]
    async with serving(Provider(path, ("", ""), many)) as provider:
        found = await ProviderLists(settings(provider.url), FakeClock()).listing()
    assert "compatible:m999" in found.names
    assert found.unlisted == ()


@pytest.mark.parametrize(
    ("status", "unlisted", "trouble"),
    [
        (404, ("openai",), {}),
        (401, (), {"openai": "it refused the gateway's key"}),
        (500, (), {"openai": "it answered with the status 500"}),
    ],
)
async def test_what_a_provider_does_not_say_is_told_and_asked_again_soon(
    status: int, unlisted: tuple[str, ...], trouble: dict[str, str]
) -> None:
    clock = FakeClock()
    _, provider, settings = PROVIDERS[0]
    provider.asked, provider.status = 0, status
    async with serving(provider):
        lists = ProviderLists(settings(provider.url), clock)
        found = await lists.listing()
        await clock.advance(FAILURE_KEPT_S)
        await lists.listing()
    assert provider.asked == (1 if unlisted else 2)
    assert found.names[0] == "openai:one", "the default stays"
    assert (found.unlisted, found.silent) == (unlisted, trouble)


async def test_a_provider_that_hangs_or_is_away_holds_nobody_up(fail_after: FailAfter) -> None:
    async with fail_after(10), answering(b"", hold=True) as stuck:
        settings = ModelSettings(
            anthropic_api_key=KEY,
            anthropic_base_url=stuck.url,
            ollama_url="http://127.0.0.1:1",
        )
        found = await ProviderLists(settings, FakeClock()).listing()
    assert found.silent == {
        "anthropic": "it did not answer in time",
        "ollama": "it cannot be reached",
    }


async def test_it_goes_by_the_proxy_that_the_providers_libraries_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, provider, settings = PROVIDERS[0]
    provider.status = 200
    async with serving(provider):
        monkeypatch.setenv("HTTP_PROXY", provider.url)
        found = await ProviderLists(settings("http://provider.invalid"), FakeClock()).listing()
    assert found.names == ("openai:one", "openai:two", "offline:offline")


async def test_the_operators_list_is_the_whole_list() -> None:
    settings = ModelSettings(offered=("openai:mine",), openai_api_key=KEY)
    found = await ProviderLists(settings, FakeClock()).listing()
    assert found == ModelListing(("openai:mine",))


LISTING = ModelListing(
    ("openai:gpt-large", "openai:gpt-small", "ollama:gpt-large", "ollama:tiny:1b"),
    unlisted=("compatible",),
    silent={"google": "it cannot be reached"},
    missing={"anthropic": "ANTHROPIC_API_KEY"},
)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("openai:gpt-large", "openai:gpt-large"),
        ("`openai:gpt-large`", "openai:gpt-large"),
        ("OPENAI:GPT-small", "openai:gpt-small"),
        ("gpt-small", "openai:gpt-small"),
        ("tiny:1b", "ollama:tiny:1b"),
        ("gpt-large", None),
        ("compatible:anything", "compatible:anything"),
        ("compatible:", None),
        ("google:gemini", None),
        ("nonsense", None),
    ],
)
def test_a_model_is_found_by_its_name_where_only_one_is_meant(
    asked: str, found: str | None
) -> None:
    assert models.find(LISTING, asked) == found


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("gpt", "Similar names: `openai:gpt-large`, `openai:gpt-small`, `ollama:gpt-large`."),
        ("openai:gtp-small", "Similar names: `openai:gpt-small`"),
        ("nonsense", "`/model` alone lists those that I can."),
        ("google:gemini", "I could not read the list of google, it cannot be reached."),
        ("anthropic:x", "anthropic is not set up here"),
        ("x" * 500, f"There is no model `{'x' * 64}...`"),
    ],
)
def test_what_is_wrong_with_a_name_is_said_in_plain_words(asked: str, said: str) -> None:
    assert said in models.unknown(LISTING, asked)


def test_a_long_list_is_cut_and_says_how_to_see_more() -> None:
    many = ModelListing(tuple(f"openai:m{number}" for number in range(100)))
    shown = models.listed(many)
    assert shown.count("- `openai:m") == models.SHOWN
    assert "60 more: `/model WORD`" in shown
    assert "`/model compatible:NAME`" in models.listed(LISTING)
    assert "it cannot be reached" in models.listed(LISTING)
