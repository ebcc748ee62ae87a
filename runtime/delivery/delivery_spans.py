"""What a delivery says of itself to a tracer. Pure."""

from contextlib import AbstractContextManager

from runtime.ports import tracing
from runtime.ports.tracing import Span, Tracer, Value
from runtime.sessions.outbox import OutboxRow


def delivery_span(tracer: Tracer, row: OutboxRow) -> AbstractContextManager[Span]:
    """The span of one attempt. It is of its run's trace; what has no run has a trace of its own."""
    message = row.message
    facts: dict[str, Value] = {tracing.OUTBOX: message.outbox_id}
    facts[tracing.CHANNEL] = message.target.channel
    if message.run_id is not None:
        facts[tracing.RUN] = message.run_id
    if message.session_id is not None:
        facts[tracing.CONVERSATION] = message.session_id
    of = message.run_id or message.outbox_id
    return tracer.span("deliver", of, message.target.channel, facts)
