"""The configured models by name.

A provider's library costs a second and fifty megabytes, so it is imported in a thread: that of the
default model once the gateway is ready (`Catalog.load`), another one when a model of it is asked
for the first time. Until then a model is its name and its size.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Protocol

import structlog

from adapters.models import names
from adapters.models.settings import ModelSettings
from runtime.domain.errors import InvalidInput, ModelRejected
from runtime.domain.optional_libraries import without
from runtime.domain.routes import Generation
from runtime.ports.model import Model, ModelRequest, ModelResponse, TextChunk

log = structlog.get_logger(__name__)


class Connected(Protocol):
    """A model with its library loaded and its connections; `close` gives those back."""

    def respond(self, request: ModelRequest) -> AsyncGenerator[TextChunk | ModelResponse]: ...

    def unfit(self, generation: Generation) -> Mapping[str, str]: ...

    async def close(self) -> None: ...


Load = Callable[[str, ModelSettings], Connected]
Find = Callable[[ModelSettings], Awaitable[ModelSettings]]
"""Asks the server that is configured which model it has, and fills that in; never fails."""


def _load(name: str, settings: ModelSettings) -> Connected:
    # httpx would load it for its own command line, and rich with it: 4 MB.
    with without("click"):
        # The lazy import that this module exists for: pydantic-ai and the provider's own library.
        from adapters.models.provider import connect

        return connect(name, settings)


class LazyModel:
    """A provider's model that loads its library with the first request, or by `load`."""

    def __init__(
        self, name: str, settings: ModelSettings, *, load: Load = _load, find: Find | None = None
    ) -> None:
        self.name = name
        self.context_tokens = names.context_tokens(name, settings)
        self._target = name
        self._find = find
        self._settings = settings
        self._load = load
        self._loading = asyncio.Lock()
        self._loaded: Connected | None = None

    async def respond(
        self, request: ModelRequest
    ) -> AsyncGenerator[TextChunk | ModelResponse, None]:
        """As `Model.respond`. Raises `ModelRejected` when the provider's library is missing.

        Where the operator named no model, the server's list says which one is meant: it is read
        again as long as it said nothing, and when the server does not know the model any more.
        """
        if self._find is not None and names.is_unknown(self._target):
            await self._look_again(self._find)
        try:
            async for item in self._stream(request):
                yield item
        except ModelRejected as error:
            unknown = error.cause == "unknown_model" and self._find is not None
            if not unknown or not await self._look_again(self._find):
                raise
        else:
            return
        async for item in self._stream(request):
            yield item

    async def _stream(self, request: ModelRequest) -> AsyncGenerator[TextChunk | ModelResponse]:
        connected = await self.load()
        async with aclosing(connected.respond(request)) as stream:
            async for item in stream:
                yield item

    async def _look_again(self, find: Find | None) -> bool:
        """Take the model that the server lists now; whether it is another one."""
        if find is None:
            return False
        settings = await find(self._settings)
        target = names.choose(settings)
        if target == self._target or names.split(target)[0] != names.split(self.name)[0]:
            return False
        await self.close()
        self._target, self._settings = target, settings
        self.context_tokens = names.context_tokens(target, settings)
        return True

    async def unfit(self, generation: Generation) -> Mapping[str, str]:
        """As `Model.unfit`."""
        if not generation.given:
            return {}
        return (await self.load()).unfit(generation)

    async def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        loaded, self._loaded = self._loaded, None
        if loaded is not None:
            await loaded.close()

    async def load(self) -> Connected:
        """The model with its library and its connections. Raises `ModelRejected` as `respond`."""
        async with self._loading:
            if self._loaded is None:
                try:
                    self._loaded = await asyncio.to_thread(self._load, self._target, self._settings)
                except ImportError as error:
                    raise ModelRejected(
                        f"{self._target}: {error}",
                        f"The library for {self.name} is not installed on the gateway.",
                        cause="library",
                    ) from None
            return self._loaded


class OfflineUntilFound:
    """The model that needs no provider, until one is there that the operator need not name: an
    Ollama on this machine that starts after the gateway (MDL-7)."""

    name = names.OFFLINE

    def __init__(self, settings: ModelSettings, *, load: Load, find: Find) -> None:
        # Lazy: the rules behind its sentences are for those who have no other model.
        from adapters.models.offline import OfflineModel

        self._settings = settings
        self._load = load
        self._find = find
        self._model: OfflineModel | LazyModel = OfflineModel()

    @property
    def context_tokens(self) -> int | None:
        """As `Model.context_tokens`."""
        return self._model.context_tokens

    async def respond(
        self, request: ModelRequest
    ) -> AsyncGenerator[TextChunk | ModelResponse, None]:
        """As `Model.respond`; it looks for a model before each answer until there is one."""
        if not isinstance(self._model, LazyModel):
            await self._look()
        async with aclosing(self._model.respond(request)) as stream:
            async for item in stream:
                yield item

    async def unfit(self, generation: Generation) -> Mapping[str, str]:
        """As `Model.unfit`."""
        return await self._model.unfit(generation)

    async def close(self) -> None:
        """Give back the connections to what was found."""
        if isinstance(self._model, LazyModel):
            await self._model.close()

    async def _look(self) -> None:
        settings = await self._find(self._settings)
        target = names.choose(settings)
        if target == names.OFFLINE or isinstance(self._model, LazyModel):
            return
        log.info("model_found", model=target)
        self._model = LazyModel(target, settings, load=self._load, find=self._find)


class Catalog:
    """`Models` over the operator's settings.

    Raises `InvalidInput` at once for a default, a fallback or an offered name that cannot be used.
    """

    def __init__(
        self, settings: ModelSettings, *, load: Load = _load, find: Find | None = None
    ) -> None:
        self.settings = settings
        """What the operator set, with what was found on this machine."""
        self.fallback = settings.fallback
        self._load = load
        self._find = find if settings.default is None else None
        self._models: dict[str, Model] = {}
        self._closing: list[LazyModel | OfflineUntilFound] = []
        self.default = names.choose(settings)
        self._check("models.default", self.default)
        for field, listed in (("fallback", settings.fallback), ("offered", settings.offered)):
            for name in listed:
                self._check(f"models.{field}", name)

    def get(self, name: str) -> Model:
        """Raises `InvalidInput` for a name that no provider knows, or whose key is missing."""
        if name not in self._models:
            self._models[name] = self._make(name)
        return self._models[name]

    def names(self) -> tuple[str, ...]:
        """The operator's list, or each provider that has a key with its usual model."""
        if self.settings.offered:
            return self.settings.offered
        elsewhere = names.own_server(self.settings)
        ready = [
            names.default_name(provider, self.settings)
            for provider in names.PROVIDERS
            if not names.missing(provider, self.settings)
            # The key is another server's, which does not have OpenAI's usual model.
            and not (elsewhere and provider == "openai")
        ]
        return tuple(dict.fromkeys((self.default, *self.settings.fallback, *ready)))

    async def load(self) -> bool:
        """Load what the default model needs, so that the first message does not wait for it; False
        where it needs nothing.

        Raises `ModelRejected` when its library is missing, and what that library raises.
        """
        default = self.get(self.default)
        if not isinstance(default, LazyModel):
            return False
        await default.load()
        return True

    async def close(self) -> None:
        """Close every provider's connections."""
        for model in self._closing:
            await model.close()

    def _make(self, name: str) -> Model:
        provider, _ = names.split(name)
        if needed := names.missing(provider, self.settings):
            raise InvalidInput("model", f"{name} needs {needed}")
        find = self._find if name == self.default else None
        if provider == "offline" and find is not None:
            until = OfflineUntilFound(self.settings, load=self._load, find=find)
            self._closing.append(until)
            return until
        if provider == "offline":
            # Lazy: the rules behind its sentences are for those who have no other model.
            from adapters.models.offline import OfflineModel

            return OfflineModel()
        model = LazyModel(name, self.settings, load=self._load, find=find)
        self._closing.append(model)
        return model

    def _check(self, field: str, name: str) -> None:
        try:
            self.get(name)
        except InvalidInput as error:
            raise InvalidInput(field, error.rule) from None
