"""Spans of a run's work, for whoever follows it through a tracing system (OPS-8).

The engine knows no tracing library. It opens a span around a turn, a call of a model, a call of a
tool and a delivery, and says of it what the OpenTelemetry conventions for generative AI have names
for. A `Tracer` must return at once and raise nothing. What people, models or tools said goes
through `content` only, and is put together only where an operator asked for it.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Final, Literal

SpanKind = Literal["invoke_agent", "chat", "execute_tool", "deliver"]
"""``invoke_agent`` is a turn: a run from where it stands to its end, or to where it waits."""
Value = str | int | float | bool

PROVIDER: Final = "gen_ai.provider.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
RESPONSE_MODEL: Final = "gen_ai.response.model"
MAX_TOKENS: Final = "gen_ai.request.max_tokens"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHED_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
FINISH_REASON: Final = "gen_ai.response.finish_reasons"
CONVERSATION: Final = "gen_ai.conversation.id"
AGENT: Final = "gen_ai.agent.name"
TOOL: Final = "gen_ai.tool.name"
TOOL_CALL: Final = "gen_ai.tool.call.id"
SYSTEM: Final = "gen_ai.system_instructions"
INPUT: Final = "gen_ai.input.messages"
OUTPUT: Final = "gen_ai.output.messages"
ARGUMENTS: Final = "gen_ai.tool.call.arguments"
RESULT: Final = "gen_ai.tool.call.result"
RUN: Final = "gatehouse.run.id"
STEP: Final = "gatehouse.run.step"
ATTEMPT: Final = "gatehouse.run.attempt"
STATE: Final = "gatehouse.run.state"
COST: Final = "gatehouse.cost_usd"
OUTBOX: Final = "gatehouse.outbox.id"
CHANNEL: Final = "gatehouse.channel"
OUTCOME: Final = "gatehouse.outcome"


class Span:
    """One piece of work while it is done; of this one nothing is kept. An error that passes its end
    is noted by its type."""

    def note(self, name: str, value: Value) -> None:
        """Say something of it that nobody said: a number, an id, a name."""

    def content(self, name: str, text: Callable[[], str]) -> None:
        """What was said; `text` is called only where the operator wants it."""

    def failed(self, kind: str) -> None:
        """It came to nothing; `kind` is a word of few, no message."""


class Tracer:
    """Opens spans; this one opens such of which nothing is kept. Those of one run share a trace,
    also over restarts and replicas.

    A span other than a turn's hangs on the run's turn in this process, or on its first turn.
    """

    _nothing: Final[AbstractContextManager[Span]] = nullcontext(Span())

    def span(
        self,
        kind: SpanKind,
        run_id: str,
        name: str,
        facts: Mapping[str, Value],
        /,
        *,
        resumed: bool = False,
    ) -> AbstractContextManager[Span]:
        """A span that ends with the block. `name` says what is invoked, asked, executed or sent to;
        `resumed`: the run had a turn before this one."""
        del kind, run_id, name, facts, resumed
        return self._nothing


NO_TRACER: Final = Tracer()
