"""What `send_message` does with a message for another agent: the sender is the agent whose call it
is, whatever the model says."""

import hashlib
from collections.abc import Sequence
from typing import Final

from runtime.domain.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    QueueFull,
    ToolError,
)
from runtime.features.mailboxes import delivery, rows
from runtime.features.mailboxes.delivery import ROOT, Author, Posting
from runtime.features.mailboxes.model import MailPayload
from runtime.features.mailboxes.settings import MailboxSettings
from runtime.sessions import runs
from runtime.sessions.unit import Kinds, Unit, Units
from runtime.store import Connection
from runtime.tools.base import ToolContext

_REFUSALS: Final = (Conflict, Forbidden, InvalidInput, QueueFull)
_IDS: Final = "ses_"
"""How the id of an agent of another conversation begins."""


class MailDesk:
    """Made before the database is open, so `units` comes later."""

    def __init__(self, settings: MailboxSettings) -> None:
        self._settings = settings
        self.units: Units | None = None

    async def send(self, context: ToolContext, to: str, text: str) -> str:
        """Put words into the mailbox of an agent, once for a call; what the model is told. Raises
        `ToolError`."""

        def work(unit: Unit) -> bool:
            session_id = self._found(unit, context.session_id, to)
            run = runs.get(unit.conn, context.run_id)
            led_by = hops_before(unit.conn, unit.kinds, run.session_id, run.id)
            author = Author(run, tainted=run.tainted or context.tainted, led_by=led_by)
            payload = MailPayload(type="message", text=text).kept()
            posting = Posting(_id_of(context), session_id, payload, text)
            return delivery.post(unit, author, posting, self._settings)

        try:
            await self._open().run(work, name="mailbox-send")
        except _REFUSALS as error:
            raise ToolError(str(error)) from error
        return f"it is in the mailbox of {to}, which reads it when its turn comes"

    async def others(self, session_id: str) -> Sequence[str]:
        """The names of the other agents of a session's tree that still read messages."""

        def work(conn: Connection) -> Sequence[str]:
            return [name for name, one in self._tree(conn, session_id) if one != session_id]

        return await self._open().database.read(work)

    def _tree(self, conn: Connection, session_id: str) -> Sequence[tuple[str, str]]:
        root = rows.root_of(conn, session_id) or session_id
        there = self._open().kinds.delegations.below(conn, root)
        return [(ROOT, root), *((one.name, one.session_id) for one in there if one.live)]

    def _found(self, unit: Unit, session_id: str, to: str) -> str:
        root = rows.root_of(unit.conn, session_id) or session_id
        there = unit.kinds.delegations.below(unit.conn, root)
        names = {ROOT: root, **{one.name: one.session_id for one in there}}
        if to in names:
            return names[to]
        if to.startswith(_IDS) and rows.root_of(unit.conn, to) is not None:
            return to
        live = [ROOT, *(one.name for one in there if one.live)]
        near = ", ".join(live)
        raise InvalidInput("to", f"no agent here is called {to[:64]}; there are: {near}")

    def _open(self) -> Units:
        if self.units is None:
            raise ToolError("no agent can be written to here")
        return self.units


def _id_of(context: ToolContext) -> str:
    """The same for a call that is made again; a provider chose the call's own id."""
    digest = hashlib.sha256(context.call_id.encode()).hexdigest()
    return f"{context.run_id}.{digest[:16]}"


def hops_before(conn: Connection, kinds: Kinds, session_id: str, run_id: str) -> int:
    """How many messages led to a run of a session: by what it reads itself, or by the runs that
    gave its agent, and those above, their work."""
    found = rows.hops_of(conn, run_id)
    root = rows.root_of(conn, session_id) or session_id
    if root == session_id:
        return found
    there = {one.session_id: one for one in kinds.delegations.below(conn, root)}
    while session_id in there:
        given = there[session_id]
        found, session_id = max(found, rows.hops_of(conn, given.run_id)), given.parent_id
    return found
