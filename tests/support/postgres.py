"""The PostgreSQL server that tests make databases on; without it a skip says how to get one."""

import os
import uuid
from dataclasses import dataclass

import asyncpg
import pytest
from sqlalchemy import make_url

POSTGRES_VARIABLE = "GATEHOUSE_TEST_POSTGRES_URL"
NO_POSTGRES = (
    f"{POSTGRES_VARIABLE} is not set: install PostgreSQL 13 or newer (Debian: apt install "
    "postgresql) and name a database whose user may create others, for example "
    "postgresql://postgres@127.0.0.1:5432/postgres"
)


@dataclass(frozen=True)
class PostgresServer:
    """Creates and drops databases on the server of `address`."""

    address: str

    def url(self, name: str | None = None) -> str:
        url = make_url(self.address).set(drivername="postgresql")
        return (url.set(database=name) if name else url).render_as_string(hide_password=False)

    async def run(self, statement: str, *, database: str | None = None) -> str:
        url = self.url(database)
        connection = await asyncpg.connect(url)
        try:
            return str(await connection.execute(statement))
        finally:
            await connection.close()

    async def create(self, *, template: str = "template0", encoding: str = "UTF8") -> str:
        name = f"gatehouse_test_{uuid.uuid4().hex}"
        await self.run(
            f"CREATE DATABASE {name} TEMPLATE {template} "
            f"ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'"
        )
        return name

    async def drop(self, name: str) -> None:
        await self.run(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def postgres_server() -> PostgresServer:
    url = os.environ.get(POSTGRES_VARIABLE)
    if not url:
        pytest.skip(NO_POSTGRES)
    return PostgresServer(url)
