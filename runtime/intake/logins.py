"""Logins of the web page: random secrets of which only digests are kept, with an end (WEB-2)."""

import hashlib
import json
import secrets
from typing import Final, Literal

from runtime.domain.value import Value
from runtime.ports.clock import Clock
from runtime.store import Connection, Database, audit, settings

NAME: Final = "http_logins"
LIFE_MS: Final = 7 * 24 * 3600 * 1000
MAX_LOGINS: Final = 100
Role = Literal["admin", "read"]


class Login(Value):
    """One browser. `token` is the fingerprint of the token that it was made with, so that a token
    that is taken back takes its logins with it."""

    role: Role
    token: str
    expires_ms: int


def fingerprint(token: str) -> str:
    """What names a token without being it."""
    return hashlib.sha256(f"token\0{token}".encode()).hexdigest()[:32]


class Logins:
    """Makes, finds and ends logins; they hold over restarts and on every replica."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def create(self, *, role: Role, token: str) -> str:
        """The secret for the browser's cookie; it is not kept here."""
        secret = secrets.token_urlsafe(32)
        now = self._clock.now_ms()
        login = Login(role=role, token=fingerprint(token), expires_ms=now + LIFE_MS)

        def work(conn: Connection) -> None:
            kept = {key: one for key, one in _load(conn).items() if one.expires_ms > now}
            newest = sorted(kept, key=lambda key: kept[key].expires_ms)[-(MAX_LOGINS - 1) :]
            _save(conn, {**{key: kept[key] for key in newest}, _digest(secret): login})
            audit.append(conn, actor="operator", action="login", data={"role": role})

        await self._database.write(work, name="login")
        return secret

    async def find(self, secret: str) -> Login | None:
        """The login of a cookie, if it is one and has not run out."""
        found = (await self._database.read(_load)).get(_digest(secret))
        return found if found is not None and found.expires_ms > self._clock.now_ms() else None

    async def end(self, secret: str) -> None:
        """Log out."""

        def work(conn: Connection) -> None:
            kept = _load(conn)
            if kept.pop(_digest(secret), None) is not None:
                _save(conn, kept)
                audit.append(conn, actor="operator", action="logout", data={})

        await self._database.write(work, name="logout")


def _load(conn: Connection) -> dict[str, Login]:
    kept = json.loads(settings.get(conn, NAME) or "{}")
    return {key: Login.model_validate(one, extra="ignore") for key, one in kept.items()}


def _save(conn: Connection, kept: dict[str, Login]) -> None:
    values = {key: one.model_dump(mode="json") for key, one in kept.items()}
    settings.put(conn, NAME, json.dumps(values))


def _digest(secret: str) -> str:
    return hashlib.sha256(f"login\0{secret}".encode()).hexdigest()
