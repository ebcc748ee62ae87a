"""The models that each provider lists, asked for when a person wants to choose one.

A list is kept for ten minutes, a failure for half a minute. Asking takes two seconds at most, since
the person's message waits for it, and never fails: what went wrong is part of the answer.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import aiohttp
from pydantic import BaseModel, Field, SecretStr, ValidationError, model_validator

from adapters.models import names
from adapters.models.names import Provider
from adapters.models.settings import ModelSettings
from adapters.platforms.proxies import proxy_for
from runtime.ports.clock import Clock
from runtime.ports.model import ModelListing

KEPT_S: Final = 600.0
FAILURE_KEPT_S: Final = 30.0
BOUND_S: Final = 2.0
_MAX_BYTES: Final = 4_000_000
_NAME: Final = re.compile(r"[\w.:/@+-]{1,200}", re.ASCII)
_GENERATES: Final = "generateContent"
"""What Google says of a model that writes text."""
_NO_LIST: Final = frozenset({404, 405, 501})
_REFUSED: Final = frozenset({401, 403})


_SIZES: Final = (
    "max_model_len",
    "loaded_context_length",
    "max_context_length",
    "context_window",
    "context_length",
    "inputTokenLimit",
)
"""Fields with the size of a model's context in tokens: vLLM's, LM Studio's two, Groq's, that of
OpenRouter and others, Google's. llama.cpp's is `n_ctx` in its `meta`."""


class _Entry(BaseModel):
    """`id` is OpenAI's and Anthropic's, `name` Ollama's and Google's."""

    id: str = ""
    name: str = ""
    methods: tuple[str, ...] = Field((_GENERATES,), alias="supportedGenerationMethods")
    size: int | None = None

    @model_validator(mode="before")
    @classmethod
    def find_size(cls, entry: object) -> object:
        """Put the size where it is read, whatever it is called; what is none is not said."""
        if not isinstance(entry, dict):
            return entry
        meta = entry.get("meta")
        said = [entry.get(name) for name in _SIZES]
        said.append(meta.get("n_ctx") if isinstance(meta, dict) else None)
        whole = (one for one in said if isinstance(one, int) and not isinstance(one, bool))
        return {**entry, "size": next(whole, None)}


class _List(BaseModel):
    data: list[_Entry] | None = None
    models: list[_Entry] | None = None


@dataclass(frozen=True, slots=True)
class Listed:
    """What a provider said: its own names, or that it keeps no list, or what went wrong. `sizes`
    are those of models' contexts in tokens, where it said so."""

    names: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    unlisted: bool = False
    trouble: str = ""


async def ask(
    provider: Provider,
    settings: ModelSettings,
    *,
    within_s: float = BOUND_S,
    by_proxy: bool = True,
) -> Listed:
    """The models that a provider lists, within so many seconds. Never fails.

    It is asked by the machine's proxy, as the providers' own libraries ask for answers.
    """
    url, headers = _request(provider, settings)
    try:
        async with (
            asyncio.timeout(within_s),
            aiohttp.ClientSession(headers=headers) as session,
            # A key goes nowhere but to the address that it was given for.
            session.get(
                url, allow_redirects=False, proxy=proxy_for(url) if by_proxy else None
            ) as response,
        ):
            status, body = response.status, await _whole(response)
    except TimeoutError:
        return Listed(trouble="it did not answer in time")
    except (aiohttp.ClientError, OSError, ValueError):
        return Listed(trouble="it cannot be reached")
    if status in _REFUSED:
        return Listed(trouble="it refused the gateway's key")
    if status != 200 and status not in _NO_LIST:
        return Listed(trouble=f"it answered with the status {status}")
    found = _listed(body) if status == 200 else None
    if found is None:
        return Listed(unlisted=True)
    sizes = {name: size for name, size in found.items() if size is not None and size > 0}
    return Listed(names=tuple(found), sizes=sizes)


async def _whole(response: aiohttp.ClientResponse) -> bytes:
    """The body, as far as it is taken. One reading alone gives no more than what has come."""
    try:
        return await response.content.readexactly(_MAX_BYTES)
    except asyncio.IncompleteReadError as end:
        return end.partial


@dataclass(frozen=True, slots=True)
class _Kept:
    """An answer, and the monotonic time in seconds until which it is not asked for again."""

    until: float
    listed: Listed = Listed()


class ProviderLists:
    """`ModelLists` over the operator's settings, as `discover` filled them in."""

    def __init__(self, settings: ModelSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._read: dict[Provider, _Kept] = {}
        self._asking = asyncio.Lock()

    async def listing(self) -> ModelListing:
        """The operator's own list, or else what every provider with a key lists."""
        settings = self._settings
        if settings.offered:
            return ModelListing(settings.offered)
        lacks = {one: names.missing(one, settings) for one in names.PROVIDERS}
        ready = self._ready([one for one, what in lacks.items() if not what])
        async with self._asking:
            stale = [one for one in ready if one != "offline" and self._is_stale(one)]
            read = await asyncio.gather(*(self._ask(one) for one in stale))
            self._read.update(zip(stale, read, strict=True))
        return ModelListing(
            names=self._names(ready),
            unlisted=tuple(one for one in ready if self._of(one).unlisted),
            silent={one: said for one in ready if (said := self._of(one).trouble)},
            missing={one: what for one, what in lacks.items() if what},
        )

    def _ready(self, providers: list[Provider]) -> list[Provider]:
        """Those that are asked. OpenAI and a compatible server may be one: it is asked once, by the
        provider that the default is of."""
        default, _ = names.split(names.choose(self._settings))
        found: dict[str, Provider] = {}
        for provider in sorted(providers, key=lambda one: one != default):
            found.setdefault(_request(provider, self._settings)[0], provider)
        return sorted(found.values(), key=names.PROVIDERS.index)

    def _names(self, ready: list[Provider]) -> tuple[str, ...]:
        settings = self._settings
        found = [names.choose(settings), *settings.fallback]
        for provider in ready:
            own = self._of(provider).names
            found += [f"{provider}:{name}" for name in own] or [
                names.default_name(provider, settings)
            ]
        return tuple(dict.fromkeys(found))

    def _of(self, provider: Provider) -> Listed:
        return self._kept(provider).listed

    def _kept(self, provider: Provider) -> _Kept:
        return self._read.get(provider, _Kept(0.0))

    def _is_stale(self, provider: Provider) -> bool:
        return self._kept(provider).until <= self._clock.monotonic()

    async def _ask(self, provider: Provider) -> _Kept:
        listed = await ask(provider, self._settings)
        kept_s = FAILURE_KEPT_S if listed.trouble else KEPT_S
        return _Kept(self._clock.monotonic() + kept_s, listed)


def _request(provider: Provider, settings: ModelSettings) -> tuple[str, Mapping[str, str]]:
    """Where a provider lists its models, and what shows who asks."""
    openai = _bearer(settings.openai_api_key)
    asked: dict[Provider, tuple[str, str, Mapping[str, str]]] = {
        "offline": ("", "", {}),
        "openai": (settings.openai_base_url or names.OPENAI_URL, "/models", openai),
        "compatible": (settings.openai_base_url or "", "/models", openai),
        "ollama": (settings.ollama_url or "", "/api/tags", {}),
        "anthropic": (
            settings.anthropic_base_url or names.ANTHROPIC_URL,
            "/v1/models?limit=1000",
            {"x-api-key": _clear(settings.anthropic_api_key), "anthropic-version": "2023-06-01"},
        ),
        "google": (
            settings.gemini_base_url or names.GOOGLE_URL,
            "/v1beta/models?pageSize=1000",
            {"x-goog-api-key": _clear(settings.gemini_api_key)},
        ),
    }
    base, path, headers = asked[provider]
    return f"{base.rstrip('/')}{path}", headers


def _bearer(key: SecretStr | None) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {_clear(key)}"} if key else {}


def _clear(key: SecretStr | None) -> str:
    return key.get_secret_value() if key else ""


def _listed(body: bytes) -> Mapping[str, int | None] | None:
    """The names in a list, in its order, with their sizes; None for what is no list of models."""
    try:
        found = _List.model_validate_json(body)
    except ValidationError:
        return None
    entries = found.data if found.data is not None else found.models
    if entries is None:
        return None
    said = (
        ((one.id or one.name).removeprefix("models/"), one.size)
        for one in entries
        if _GENERATES in one.methods
    )
    return {name: size for name, size in said if _NAME.fullmatch(name)}
