"""Personas, as the owner binds them by the API (CTX-11).

The files are read here, before the unit that binds them: a unit does not touch the disk.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

from runtime.ports.bus import EVENTS, Bus
from runtime.sessions.personas import bind
from runtime.store import Connection, Database, lanes
from runtime.views.models import SessionView
from runtime.views.reader import one_session
from runtime.workspace.personas import read_persona


class PersonaControl:
    """Binds personas for the owner; `workspace` is asked each time, `actor` is who does it."""

    def __init__(
        self, database: Database, bus: Bus, workspace: Callable[[], Path], actor: str
    ) -> None:
        self._database = database
        self._bus = bus
        self._workspace = workspace
        self._actor = actor

    async def bind(self, session_id: str, name: str | None) -> SessionView:
        """Give a session the persona `name` as its files are now; None gives it the workspace's
        own again.

        Raises `NotFound` for the session, `InvalidInput` for the persona, and `Conflict` unless
        the session is idle.
        """
        root = self._workspace()
        persona = None if name is None else await asyncio.to_thread(read_persona, root, name)

        def work(conn: Connection) -> SessionView:
            lane = lanes.lock(conn, session_id)
            bind(conn, lane, persona, by=self._actor)
            lanes.save(conn, lane)
            return one_session(conn, session_id)

        view = await self._database.write(work, name="persona")
        self._bus.publish(EVENTS, {"session_id": session_id})
        return view
