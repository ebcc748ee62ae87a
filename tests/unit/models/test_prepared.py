"""What a provider's library does once, and not again for each request.

The figures are in docs/performance.md. Each test also fails when the library no longer works where
the test looks.
"""

from contextlib import aclosing

import pytest
from pydantic import SecretStr

from adapters.models import names
from adapters.models.names import Provider
from adapters.models.provider import ProviderModel, connect
from adapters.models.settings import ModelSettings
from tests.unit.models.counting import counted
from tests.unit.models.samples import request
from tests.wire.aimock import Aimock

KEY = SecretStr("sk-test-0123456789")
ANSWER = {"match": {"userMessage": "hello"}, "response": {"content": "Hello."}}


def model_at(url: str, wire: Provider) -> ProviderModel:
    """A model that is asked in the format of `wire`."""
    settings = ModelSettings(
        openai_api_key=KEY,
        openai_base_url=f"{url}/v1",
        anthropic_api_key=KEY,
        anthropic_base_url=url,
        gemini_api_key=KEY,
        gemini_base_url=url,
        ollama_url=url,
        ollama_model="small",
    )
    return connect(names.default_name(wire, settings), settings)


async def ask(model: ProviderModel) -> None:
    """Ask once, and read the answer to its end."""
    async with aclosing(model.respond(request("hello"))) as stream:
        async for _ in stream:
            pass


@pytest.mark.parametrize("wire", ["openai", "compatible", "ollama", "anthropic"])
async def test_no_request_makes_a_client_of_its_own(aimock: Aimock, wire: Provider) -> None:
    await aimock.load(ANSWER)
    file = f"{'anthropic' if wire == 'anthropic' else 'openai'}/_client.py"
    with counted(file) as called:
        model = model_at(aimock.url, wire)
    assert "__init__" in called, f"{file} is not where clients are made any more"
    with counted(file) as called:
        await ask(model)
    assert "__init__" not in called
    await model.close()
