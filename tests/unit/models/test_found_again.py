"""A model server that comes later, or has another model, is found without a restart (MDL-7)."""

from collections.abc import AsyncGenerator

import pytest

from adapters.models import model_lists
from adapters.models.model_registry import Catalog
from adapters.models.settings import ModelSettings
from runtime.domain.errors import ModelRejected, ModelRetry
from runtime.domain.runs import Usage
from runtime.ports.model import ModelRequest, ModelResponse, TextChunk
from tests.unit.models.raw import Body, answering, refusal
from tests.unit.models.samples import collect, request

pytestmark = pytest.mark.requirement("MDL-7")
SERVER = ModelSettings(openai_base_url="http://127.0.0.1:1/v1")


class Server:
    """A model server that has one model, or is away."""

    def __init__(self) -> None:
        self.model = ""
        self.size: int | None = None
        self.takes_any_name = False
        self.looked = 0
        self.asked: list[str] = []

    async def find(self, settings: ModelSettings) -> ModelSettings:
        self.looked += 1
        sizes = {} if self.size is None else {f"compatible:{self.model}": self.size}
        found = {"compatible_model": self.model or None, "sizes": sizes}
        return settings.model_copy(update=found)

    def load(self, name: str, _: ModelSettings) -> "Connected":
        return Connected(self, name)


class Connected:
    def __init__(self, server: Server, name: str) -> None:
        self._server = server
        self._name = name

    async def respond(self, _: ModelRequest) -> AsyncGenerator[TextChunk | ModelResponse, None]:
        self._server.asked.append(self._name)
        if not self._server.model:
            raise ModelRetry("refused")
        known = self._server.takes_any_name or self._name == f"compatible:{self._server.model}"
        if not known:
            raise ModelRejected("404", "It is not known.", cause="unknown_model")
        yield ModelResponse("fine", (), Usage(), self._name)

    async def close(self) -> None: ...


async def test_a_server_that_starts_later_is_found_with_its_model() -> None:
    server = Server()
    catalog = Catalog(SERVER, load=server.load, find=server.find)  # type: ignore[arg-type]  # a part
    model = catalog.get(catalog.default)
    with pytest.raises(ModelRetry):
        await collect(model, request("hi"))
    server.model, server.size = "late", 4_096
    _, response = await collect(model, request("hi"))
    assert (response.text, response.model) == ("fine", "compatible:late")
    assert model.context_tokens == 4_096
    looked = server.looked
    await collect(model, request("hi"))
    assert server.looked == looked, "what is known is not asked for"


async def test_a_server_that_takes_any_name_is_asked_by_the_one_that_it_lists() -> None:
    server = Server()
    server.model, server.size, server.takes_any_name = "late", 4_096, True
    catalog = Catalog(SERVER, load=server.load, find=server.find)  # type: ignore[arg-type]  # a part
    model = catalog.get(catalog.default)
    _, response = await collect(model, request("hi"))
    assert (response.model, model.context_tokens) == ("compatible:late", 4_096)


async def test_a_server_that_changes_its_model_is_asked_for_the_new_one() -> None:
    server = Server()
    server.model = "old"
    settings = await server.find(SERVER)
    catalog = Catalog(settings, load=server.load, find=server.find)  # type: ignore[arg-type]  # a part
    model = catalog.get(catalog.default)
    await collect(model, request("hi"))
    server.model = "new"
    _, response = await collect(model, request("hi"))
    assert response.model == "compatible:new"
    assert server.asked == ["compatible:old", "compatible:old", "compatible:new"]


async def test_an_ollama_that_starts_later_answers_in_place_of_the_offline_model() -> None:
    there: list[str] = []
    looked: list[str] = []

    async def find(settings: ModelSettings) -> ModelSettings:
        looked.append("")
        name = {"ollama_url": "http://127.0.0.1:1", "ollama_model": there[0]} if there else {}
        return settings.model_copy(update=name)

    server = Server()
    server.model = "small"

    def load(name: str, _: ModelSettings) -> Connected:
        return Connected(server, name.replace("ollama", "compatible"))

    catalog = Catalog(ModelSettings(), load=load, find=find)  # type: ignore[arg-type]  # a part
    model = catalog.get(catalog.default)
    _, response = await collect(model, request("hi"))
    assert (response.model, model.context_tokens) == ("offline:offline", 128_000)
    there.append("small")
    for _ in range(2):
        _, response = await collect(model, request("hi"))
        assert (response.text, server.asked[-1]) == ("fine", "compatible:small")
    assert model.context_tokens is None
    assert len(looked) == 2, "what is known is not asked for"
    await catalog.close()


async def test_the_offline_model_by_name_looks_for_nothing() -> None:
    async def find(_: ModelSettings) -> ModelSettings:
        raise AssertionError("nobody is asked")

    named = ModelSettings(default="offline:offline")
    catalog = Catalog(named, find=find)
    _, response = await collect(catalog.get(catalog.default), request("hi"))
    assert response.model == "offline:offline"


async def test_a_model_that_was_named_is_no_other_one() -> None:
    server = Server()
    server.model = "new"
    named = SERVER.model_copy(update={"default": "compatible:old"})
    catalog = Catalog(named, load=server.load, find=server.find)  # type: ignore[arg-type]  # a part
    with pytest.raises(ModelRejected):
        await collect(catalog.get(catalog.default), request("hi"))
    assert server.looked == 0


@pytest.mark.requirement("MDL-5")
@pytest.mark.parametrize(
    "more",
    [
        {"max_model_len": 4_096},
        {"context_length": 4_096},
        {"context_window": 4_096},
        {"max_context_length": 8_192, "loaded_context_length": 4_096},
        {"meta": {"n_ctx": 4_096}},
    ],
    ids=str,
)
async def test_the_size_of_a_context_is_read_in_the_servers_list(more: Body) -> None:
    listed = refusal(200, {"object": "list", "data": [{"id": "m", **more}, {"id": "n"}]})
    async with answering(listed) as server:
        settings = ModelSettings(openai_base_url=f"{server.url}/v1")
        found = await model_lists.ask("compatible", settings)
    assert found.names == ("m", "n")
    assert found.sizes == {"m": 4_096}


async def test_a_size_that_is_none_counts_as_not_said() -> None:
    entries = [{"id": "m", "max_model_len": "big"}, {"id": "n", "context_length": None}]
    async with answering(refusal(200, {"data": entries})) as server:
        settings = ModelSettings(openai_base_url=f"{server.url}/v1")
        found = await model_lists.ask("compatible", settings)
    assert (found.names, found.sizes) == (("m", "n"), {})
