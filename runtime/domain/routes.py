"""Routes: which model answers a session, and how it is asked to write (RUN-1, AGT-3). Pure."""

from collections.abc import Collection
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from runtime.domain.value import Value

MOST_TOKENS: Final = 1_000_000
_Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00]*$")]

Effort = Literal["minimal", "low", "medium", "high"]


class Generation(Value):
    """How a model writes. What is left out is as the provider has it; ``max_output_tokens`` are
    those of one response, and as the operator has them."""

    temperature: float | None = Field(default=None, ge=0, le=2, allow_inf_nan=False)
    top_p: float | None = Field(default=None, gt=0, le=1, allow_inf_nan=False)
    max_output_tokens: int | None = Field(default=None, ge=1, le=MOST_TOKENS)
    reasoning_effort: Effort | None = None

    @property
    def given(self) -> tuple[str, ...]:
        """The fields that say anything."""
        return tuple(self.model_dump(exclude_none=True))

    def tokens(self, most: int) -> int:
        """The tokens of one response, where the operator allows `most`."""
        return most if self.max_output_tokens is None else min(self.max_output_tokens, most)

    def without(self, fields: Collection[str]) -> "Generation":
        """The same without these fields."""
        if not fields:
            return self
        return self.model_copy(update=dict.fromkeys(fields))


AS_IT_IS: Final = Generation()
"""Everything as the provider and the operator have it."""


class RoutePolicy(Value):
    """The model: its ``provider`` and its name, or both in ``model`` as ``provider:name``; and how
    it writes."""

    provider: _Name | None = None
    model: _Name | None = None
    generation: Generation | None = None

    @property
    def conflict(self) -> str:
        """What does not fit together, behind the name of its field; empty where all does."""
        if self.provider is None:
            return ""
        if self.model is None:
            return "provider: there is no model with it; name one, or leave it out"
        named, colon, _ = self.model.partition(":")
        if colon and named != self.provider:
            return (
                f"provider: {self.provider} stands with a model of {named}; leave one of them out"
            )
        return ""

    @property
    def name(self) -> str | None:
        """The model with its provider; None where none is asked for."""
        if self.model is None or self.provider is None or ":" in self.model:
            return self.model
        return f"{self.provider}:{self.model}"
