"""What a connection to a provider is, whichever it is, and what every model of ours does."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from pydantic import SecretStr
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings as RequestSettings

from adapters.models.once import Once
from adapters.models.request_forms import USUAL, Form
from runtime.domain.routes import Effort, Generation

CONNECT_TIMEOUT_S: Final = 10.0
NO_KEY: Final = "no-key"
"""The libraries refuse an empty key, and the servers that need none ignore this one."""


@dataclass(frozen=True, slots=True)
class Client:
    """A provider library's model, what gives its connections back, what each request carries.
    `unfit` is as `runtime.ports.model.Model.unfit`, and `effort` sets how hard the model thinks, in
    the library's own terms. `shape` says what of a form the library is told. `may_think_aloud` says
    that the server may leave thoughts in the text, with or without an opening tag."""

    model: Model
    close: Callable[[], Awaitable[None]]
    unfit: Callable[[Generation], Mapping[str, str]]
    effort: Callable[[Effort], RequestSettings]
    request: RequestSettings = field(default_factory=RequestSettings)
    shape: Callable[[Form], RequestSettings] = lambda _: RequestSettings()
    may_think_aloud: bool = False

    def settings(self, generation: Generation, form: Form = USUAL) -> RequestSettings:
        """How the model is to write, as the library is told."""
        found = self.shape(form)
        if generation.temperature is not None and form.sampling:
            found["temperature"] = generation.temperature
        if generation.top_p is not None and form.sampling:
            found["top_p"] = generation.top_p
        if generation.reasoning_effort is not None and form.effort:
            found.update(self.effort(generation.reasoning_effort))
        return found


def key_text(key: SecretStr | None) -> str:
    """The key in clear, for a library's constructor."""
    return key.get_secret_value() if key is not None else NO_KEY


class PreparedTools(Model[Any]):
    """A base in front of a library's model.

    The library copies the schema of each tool and walks through the copy, which takes half a
    millisecond for seventeen tools.
    """

    @cached_property
    def _customized(self) -> Once[ModelRequestParameters, ModelRequestParameters]:
        customize = super().customize_request_parameters
        return Once(lambda parameters: customize(parameters[0]))

    def customize_request_parameters(
        self, model_request_parameters: ModelRequestParameters
    ) -> ModelRequestParameters:
        """As the library's, once for the same parameters."""
        return self._customized((model_request_parameters,))


def one_of(values: Sequence[str]) -> str:
    """The values in words: ``low, medium or high``."""
    *others, last = values
    return f"{', '.join(others)} or {last}" if others else last
