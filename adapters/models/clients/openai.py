"""Clients for OpenAI's format: OpenAI itself, compatible servers, Ollama."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, Self, get_args

from openai import AsyncOpenAI, NotGiven, Omit, RequestOptions, Timeout, not_given
from openai.resources.chat import AsyncChat, AsyncCompletions
from openai.types.chat import (
    ChatCompletion,
    ChatCompletionAssistantMessageParam,
    ChatCompletionChunk,
    ChatCompletionToolParam,
    ChatCompletionUserMessageParam,
)
from pydantic import ValidationError
from pydantic_ai.messages import UserPromptPart
from pydantic_ai.models.ollama import OllamaModel
from pydantic_ai.models.openai import (
    OpenAIChatModel,
    OpenAIChatModelSettings,
    OpenAIStreamedResponse,
)
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
from adapters.models.clients.openai_stream import (
    EventDecoder,
    EventStream,
    StreamedAnswer,
    with_deltas,
)
from adapters.models.names import OPENAI_URL
from adapters.models.once import Once
from adapters.models.request_forms import USUAL, Form
from adapters.models.settings import ModelSettings
from adapters.models.thoughts import KEPT
from runtime.domain.routes import Effort, Generation

_LEFT_OUT: Final = (Omit, NotGiven)
"""What stands for a field that is not sent."""


_TOOLS: Final = 1024
"""Tools that are kept in OpenAI's form."""

_FORM: Final = "gatehouse_form"
"""Where the library hands the form of a request on; it is no field of the request."""
_BOUNDS: Final = ("max_completion_tokens", "max_tokens")
_BETWEEN: Final = "\n\n"


class _Chunk(ChatCompletionChunk, defer_build=False):
    """A piece of a stream, made by pydantic's validation.

    The SDK makes it field by field, looking at each type anew: 0.1 ms for each piece. That way
    takes what is not quite OpenAI's format, so it is the second choice.
    """

    @classmethod
    def build(cls, *, response: Any, data: Any) -> Self:  # noqa: ARG003 - the SDK names them
        """The piece from its JSON, where the SDK asks for it. Raises pydantic's `ValidationError`
        for what is no JSON object."""
        data = with_deltas(data)
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
        form = body.pop(_FORM, USUAL)
        if form != USUAL:
            body = _shaped(body, form)
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
            stream_cls=EventStream[_Chunk],
        )


def _shaped(body: dict[str, Any], form: Form) -> dict[str, Any]:
    """The body with what a server takes of it."""
    left_out = {
        "stream_options": not form.usage,
        "stream": not form.stream,
        "tool_choice": not form.tools,
    }
    shaped = {name: value for name, value in body.items() if not left_out.get(name)}
    bound = next((name for name in _BOUNDS if name in shaped), None)
    if bound is not None:
        most = shaped.pop(bound)
        name = bound if form.bound is None else form.bound
        if name:
            shaped[name] = most if form.most is None else min(most, form.most)
    if not form.null:
        shaped["messages"] = [
            {**message, "content": ""} if message.get("content", "") is None else message
            for message in shaped["messages"]
        ]
    return shaped


class _Chat(AsyncChat):
    @cached_property
    def completions(self) -> _Completions:
        return _Completions(self._client)


class _Client(AsyncOpenAI):
    @cached_property
    def chat(self) -> _Chat:
        return _Chat(self)

    def _make_sse_decoder(self) -> EventDecoder:
        """The SDK's hook."""
        return EventDecoder()


class _Model(PreparedTools, OpenAIChatModel):
    """A model of OpenAI's or of a server that speaks its format; a tool stays the same object from
    request to request, so that `_Completions` knows it again."""

    @property
    def _streamed_response_cls(self) -> type[OpenAIStreamedResponse]:
        return StreamedAnswer

    @cached_property
    def _mapped(self) -> Once[ToolDefinition, ChatCompletionToolParam]:
        mapped = super()._map_tool_definition
        return Once(lambda tools: mapped(tools[0], RequestSettings()), limit=_TOOLS)

    async def _map_user_prompt(self, part: UserPromptPart) -> ChatCompletionUserMessageParam:
        """Words alone are one text: many servers take a list only where a picture is in it."""
        message = await super()._map_user_prompt(part)
        content = message["content"]
        if not isinstance(content, str) and (texts := _texts(content)) is not None:
            message["content"] = _BETWEEN.join(texts)
        return message

    @dataclass
    class _MapModelResponseContext(OpenAIChatModel._MapModelResponseContext):
        def _into_message_param(self) -> ChatCompletionAssistantMessageParam | None:
            message = super()._into_message_param()
            details = self.message.provider_details if self.message is not None else None
            fields = (details or {}).get(KEPT)
            if message is not None and isinstance(fields, dict):
                message.update(fields)  # type: ignore[typeddict-item]  # they are no fields of OpenAI's
            return message

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


def _texts(content: Iterable[Any]) -> list[str] | None:
    """The texts of a message that holds nothing but plain texts."""
    parts = list(content)
    plain = {"type", "text"}
    if any(not isinstance(part, dict) or set(part) != plain for part in parts):
        return None
    return [part["text"] for part in parts]


def _client(model: _Model, client: AsyncOpenAI, *, known: bool) -> Client:
    unfit = partial(_unfit, model, known=known)
    return Client(model, client.close, unfit, _effort, shape=_shape, may_think_aloud=not known)


def _shape(form: Form) -> RequestSettings:
    return RequestSettings() if form == USUAL else RequestSettings(extra_body={_FORM: form})


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
