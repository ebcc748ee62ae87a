"""Clients for OpenAI's format: OpenAI itself, compatible servers, Ollama."""

import json
from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any, Final, Self, get_args

from openai import AsyncOpenAI, AsyncStream, NotGiven, Omit, RequestOptions, Timeout, not_given
from openai.resources.chat import AsyncChat, AsyncCompletions
from openai.types.chat import ChatCompletion, ChatCompletionChunk, ChatCompletionToolParam
from pydantic import ValidationError
from pydantic_ai.models.ollama import OllamaModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIChatModelSettings
from pydantic_ai.providers import Provider
from pydantic_ai.providers.ollama import OllamaProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
from pydantic_ai.settings import ModelSettings as RequestSettings
from pydantic_ai.tools import ToolDefinition

from adapters.models.clients.client import (
    CONNECT_TIMEOUT_S,
    NO_KEY,
    Client,
    PreparedTools,
    key_text,
    one_of,
)
from adapters.models.clients.http import HttpClient
from adapters.models.names import OPENAI_URL
from adapters.models.once import Once
from adapters.models.settings import ModelSettings
from runtime.domain.routes import Effort, Generation

_LEFT_OUT: Final = (Omit, NotGiven)
"""What stands for a field that is not sent."""


_TOOLS: Final = 1024
"""Tools that are kept in OpenAI's form."""


class _Chunk(ChatCompletionChunk, defer_build=False):
    """A piece of a stream, made by pydantic's validation.

    The SDK makes it field by field, looking at each type anew: 0.1 ms for each piece. That way
    takes what is not quite OpenAI's format, so it is the second choice.
    """

    @classmethod
    def build(cls, *, response: Any, data: Any) -> Self:  # noqa: ARG003 - the SDK names them
        """The piece from its JSON, where the SDK asks for it. Raises pydantic's `ValidationError`
        for what is no JSON object."""
        try:
            return cls.model_validate(data)
        except ValidationError:
            if not isinstance(data, dict):
                raise
            return cls.construct(**data)


def _json(value: object) -> str:
    """As the SDK writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


class _Completions(AsyncCompletions):
    """Sends what it is given as it is.

    The SDK's own method walks through every field of every message and tool, once for each kind
    that it could be, and changes none: 84 ms of the event loop for 200 messages. So the body is
    posted as to an endpoint that the SDK has no method for. The tools, which are most of a short
    prompt, are put into JSON once for as long as they are the same.
    """

    @cached_property
    def _tools(self) -> Once[object, str]:
        return Once(_json)

    async def create(
        self,
        *,
        extra_headers: Mapping[str, str | Omit] | None = None,
        extra_query: Mapping[str, object] | None = None,
        extra_body: object = None,
        timeout: float | Timeout | NotGiven | None = not_given,
        **fields: Any,
    ) -> Any:
        body = {name: value for name, value in fields.items() if not isinstance(value, _LEFT_OUT)}
        if isinstance(extra_body, Mapping):
            body.update(extra_body)
        stream = bool(body.get("stream"))
        tools = body.pop("tools", None)
        text = _json(body)
        if tools is not None:
            text = f'{text[:-1]},"tools":{self._tools(tools)}}}'
        # As the SDK's method: by the client's key, and by no administrator's of the environment.
        options: RequestOptions = {
            "headers": extra_headers or {},
            "params": extra_query or {},
            "security": {"bearer_auth": True},
        }
        if not isinstance(timeout, NotGiven):
            options["timeout"] = timeout
        return await self._client.post(
            "/chat/completions",
            cast_to=ChatCompletion,
            content=text.encode(),
            options=options,
            stream=stream,
            stream_cls=AsyncStream[_Chunk],
        )


class _Chat(AsyncChat):
    @cached_property
    def completions(self) -> _Completions:
        return _Completions(self._client)


class _Client(AsyncOpenAI):
    @cached_property
    def chat(self) -> _Chat:
        return _Chat(self)


class _Model(PreparedTools, OpenAIChatModel):
    """A model of OpenAI's or of a server that speaks its format; a tool stays the same object from
    request to request, so that `_Completions` knows it again."""

    @cached_property
    def _mapped(self) -> Once[ToolDefinition, ChatCompletionToolParam]:
        mapped = super()._map_tool_definition
        return Once(lambda tools: mapped(tools[0], RequestSettings()), limit=_TOOLS)

    def _map_tool_definition(
        self,
        f: ToolDefinition,
        model_settings: RequestSettings,  # noqa: ARG002 - no setting changes a tool of this format
    ) -> ChatCompletionToolParam:
        return self._mapped((f,))


class _OllamaModel(_Model, OllamaModel):
    """A model of Ollama's."""


def connect(own: str, settings: ModelSettings, provider: str) -> Client:
    """A client for OpenAI itself, a server that speaks its format, or Ollama's."""
    local = provider == "ollama"
    base = f"{(settings.ollama_url or '').rstrip('/')}/v1" if local else settings.openai_base_url
    client = _Client(
        api_key=NO_KEY if local else key_text(settings.openai_api_key),
        base_url=base or OPENAI_URL,
        max_retries=0,
        http_client=HttpClient(),
        timeout=Timeout(settings.timeout_s, connect=CONNECT_TIMEOUT_S),
    )
    if local:
        here = _OllamaModel(own, provider=OllamaProvider(openai_client=client))
        return _client(here, client, known=False)
    if provider == "compatible":
        via: Provider[AsyncOpenAI] = OpenAICompatibleProvider("compatible", openai_client=client)
        return _client(_Model(own, provider=via), client, known=False)
    via = OpenAIProvider(openai_client=client)
    return _client(_Model(own, provider=via), client, known=True)


def _client(model: _Model, client: AsyncOpenAI, *, known: bool) -> Client:
    return Client(model, client.close, partial(_unfit, model, known=known), _effort)


def _effort(effort: Effort) -> RequestSettings:
    return OpenAIChatModelSettings(openai_reasoning_effort=effort)


def _unfit(model: _Model, generation: Generation, *, known: bool) -> Mapping[str, str]:
    """What models of OpenAI's refuse: sampling while they reason, an effort where they do not, or
    one that they have not. What another server's models can do is not `known`: it says so itself.
    """
    profile, effort = model.profile, generation.reasoning_effort
    reasons = profile.get("openai_supports_reasoning", False)
    efforts = profile.get("openai_reasoning_efforts")
    off = "none" in efforts if efforts else profile.get("openai_supports_reasoning_effort_none")
    active = profile.get("thinking_enabled_by_default", False) if effort is None else True
    found = dict[str, str]()
    if reasons and (active or not off):
        rule = f"cannot be set for {model.model_name} while it reasons; leave it out"
        found = {name: rule for name in ("temperature", "top_p") if name in generation.given}
    if effort is None or not (known or reasons):
        return found
    if not reasons:
        found["reasoning_effort"] = f"cannot be set for {model.model_name}; leave it out"
        return found
    taken = [one for one in get_args(Effort) if efforts is None or one in efforts]
    if not profile.get("openai_supports_minimal_reasoning_effort", True):
        taken = [one for one in taken if one != "minimal"]
    if effort not in taken:
        found["reasoning_effort"] = f"must be {one_of(taken)} for {model.model_name}"
    return found
