"""What becomes of calls that had begun when their process died (MSG-8). Pure."""

from collections.abc import Sequence
from dataclasses import replace

from runtime.domain.tools import Effect, ToolResult
from runtime.sessions.calls import CallRow

UNKNOWN = (
    "The gateway stopped while this ran, so its outcome is unknown: it may have taken effect, "
    "fully or in part. "
    "Check before you do it again."
)


def settle_crashed(rows: Sequence[CallRow]) -> tuple[CallRow, ...]:
    """The rows of a step whose process died: calls that must not run again get their result."""
    return tuple(_settle(row) for row in rows)


def _settle(row: CallRow) -> CallRow:
    if row.state != "started" or row.effect is not Effect.ONCE or row.result is not None:
        return row
    result = ToolResult(call_id=row.call.id, name=row.call.name, status="unknown", content=UNKNOWN)
    return replace(row, result=result)
