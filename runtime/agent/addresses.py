"""Which addresses of a step's calls were given by somebody other than the model (POL-10).

What is looked through is the window, which is all that the model knows of the conversation; so the
cost does not grow with the session.
"""

from collections.abc import Iterable, Sequence
from functools import partial

from runtime.domain.addresses import given_address
from runtime.domain.errors import ToolError
from runtime.domain.tools import ToolCall
from runtime.sessions.sessions import Session
from runtime.sessions.told_text import Heard, above, as_heard
from runtime.sessions.transcripts import Line
from runtime.store import Database
from runtime.tools.registry import Registry


async def given(
    database: Database,
    registry: Registry,
    session: Session,
    lines: Sequence[Line],
    calls: Iterable[ToolCall],
) -> frozenset[str]:
    """The addresses that `calls` fetch and that were given; `lines` are the session's window."""
    asked = fetched(registry, calls)
    if not asked:
        return frozenset()
    below = session.parent_id is not None
    known = [as_heard([line.message for line in lines], below=below)]
    if below:
        known += await database.read(partial(above, session_id=session.id))
    return among(asked, known)


def fetched(registry: Registry, calls: Iterable[ToolCall]) -> frozenset[str]:
    """The addresses of pages that `calls` fetch."""
    return frozenset(address for call in calls if (address := _address(registry, call)) is not None)


def among(asked: Iterable[str], known: Sequence[Heard]) -> frozenset[str]:
    """Those addresses that were given in one of the conversations."""
    return frozenset(one for one in asked if any(given_address(each, one) for each in known))


def _address(registry: Registry, call: ToolCall) -> str | None:
    try:
        return registry.prepare(call).fetches
    except ToolError:
        return None
