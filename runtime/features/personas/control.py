"""Personas, as the owner binds them by the API (CTX-11).

The files are read here, before the unit that binds them: a unit does not touch the disk.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

from runtime.sessions.personas import bind
from runtime.sessions.unit import Unit, Units
from runtime.views.models import SessionView
from runtime.views.reader import one_session
from runtime.workspace.personas import read_persona


class PersonaControl:
    """Binds personas for the owner; `workspace` is asked each time, `actor` is who does it."""

    def __init__(self, units: Units, workspace: Callable[[], Path], actor: str) -> None:
        self._units = units
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

        def work(unit: Unit) -> SessionView:
            bind(unit.conn, unit.lane(session_id), persona, by=self._actor)
            unit.changed(session_id)
            unit.save()
            return one_session(unit.conn, session_id)

        return await self._units.run(work, name="persona")
