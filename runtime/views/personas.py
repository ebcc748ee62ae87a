"""Personas as sessions were given them."""

from collections.abc import Mapping

from runtime.sessions import persona_rows
from runtime.store import Database


class PersonasReader:
    """Reads what is behind a persona's digest."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def files(self, digest: str) -> Mapping[str, str]:
        """Its files as they were then, texts by name. Raises `NotFound`."""
        return await self._database.read(lambda conn: persona_rows.files(conn, digest))
