"""Looking for a model server on this machine, once, at start.

It asks only where nothing else would be chosen, waits 300 ms at most, and never fails: a server
that does not answer is a server that is not there.
"""

import asyncio
from typing import Final

import aiohttp
from pydantic import BaseModel, ValidationError

from adapters.models.settings import ModelSettings

LOCAL_OLLAMA: Final = "http://127.0.0.1:11434"
BOUND_S: Final = 0.3
_MAX_BYTES: Final = 1_000_000


class _Tag(BaseModel):
    name: str


class _Tags(BaseModel):
    models: list[_Tag] = []


class _Model(BaseModel):
    id: str


class _ModelList(BaseModel):
    data: list[_Model] = []


async def discover(settings: ModelSettings, *, local: str = LOCAL_OLLAMA) -> ModelSettings:
    """The same settings with a local Ollama's address and the missing model names filled in.

    An Ollama that has no model is as good as none, and is left out unless the operator named it.
    """
    if settings.default is not None:
        return settings
    if settings.openai_api_key or settings.anthropic_api_key or settings.gemini_api_key:
        return settings
    if settings.openai_base_url is not None:
        return await _compatible(settings, settings.openai_base_url)
    return await _ollama(settings, settings.ollama_url or local)


async def _compatible(settings: ModelSettings, base_url: str) -> ModelSettings:
    if settings.compatible_model is not None:
        return settings
    body = await _ask(f"{base_url.rstrip('/')}/models")
    try:
        found = _ModelList.model_validate_json(body).data
    except ValidationError:
        return settings
    return settings.model_copy(update={"compatible_model": found[0].id}) if found else settings


async def _ollama(settings: ModelSettings, url: str) -> ModelSettings:
    body = await _ask(f"{url.rstrip('/')}/api/tags")
    try:
        found = _Tags.model_validate_json(body).models
    except ValidationError:
        return settings
    if not found:
        return settings
    name = settings.ollama_model or found[0].name
    return settings.model_copy(update={"ollama_url": url, "ollama_model": name})


async def _ask(url: str) -> bytes:
    try:
        async with (
            asyncio.timeout(BOUND_S),
            aiohttp.ClientSession() as session,
            session.get(url, allow_redirects=False) as response,
        ):
            return await whole(response, _MAX_BYTES) if response.status == 200 else b""
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
        return b""


async def whole(response: aiohttp.ClientResponse, most: int) -> bytes:
    """The body, at most `most` bytes of it. One reading alone gives no more than what has come."""
    try:
        return await response.content.readexactly(most)
    except asyncio.IncompleteReadError as end:
        return end.partial
