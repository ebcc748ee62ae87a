"""Logins of the web page: random secrets of which only digests are kept, with an end (WEB-2).

A login ends with the token that it was made with. A one-time code is made with a token too, and
becomes a login in the browser that spends it first.
"""

import hashlib
import secrets
from dataclasses import dataclass
from typing import Final, Literal

from runtime.domain.value import Value
from runtime.intake.home_tokens import HomeTokens
from runtime.ports.clock import Clock
from runtime.sessions import audit, settings
from runtime.store import Connection, Database

LOGIN: Final = "http_login:"
CODE: Final = "http_code:"
LIFE_MS: Final = 7 * 24 * 3600 * 1000
CODE_LIFE_MS: Final = 10 * 60 * 1000
MAX_LOGINS: Final = 100
MAX_CODES: Final = 20
Role = Literal["admin", "read"]


class Credential(Value):
    """What somebody is let in with. `token` is the token's fingerprint; `home` names the home whose
    file holds the token, and is empty for a token of the settings."""

    role: Role
    token: str
    home: str = ""


class Login(Value):
    """One browser, or a code that may become one."""

    credential: Credential
    expires_ms: int


def fingerprint(token: str) -> str:
    """What names a token without being it."""
    return hashlib.sha256(f"token\0{token}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Logins:
    """Makes, finds and ends logins; they hold over restarts and on every replica."""

    database: Database
    clock: Clock

    @property
    def homes(self) -> HomeTokens:
        """The tokens of homes, with which browsers log in too."""
        return HomeTokens(self.database, self.clock)

    async def create(self, credential: Credential) -> str:
        """The secret for the browser's cookie; it is not kept here."""
        return await self.database.write(
            lambda conn: self._log_in(conn, credential, "token"), name="login"
        )

    async def find(self, secret: str) -> Login | None:
        """The login of a cookie, if it is one and has not run out."""
        name = LOGIN + _digest(secret)
        return self._lasting(await self.database.read(lambda conn: settings.get(conn, name)))

    async def end(self, secret: str) -> None:
        """Log out."""

        def work(conn: Connection) -> None:
            if settings.remove(conn, LOGIN + _digest(secret)):
                audit.append(conn, actor="operator", action="logout", data={})

        await self.database.write(work, name="logout")

    async def new_code(self, credential: Credential) -> str:
        """A code that becomes one login within ten minutes; only its digest is kept."""
        code = secrets.token_urlsafe(32)

        def work(conn: Connection) -> None:
            self._keep(conn, CODE, code, Login(credential=credential, expires_ms=self._end(CODE)))

        await self.database.write(work, name="login-code")
        return code

    async def spend(self, code: str) -> str | None:
        """The secret of the login that a code becomes; None where it was spent already.

        Of browsers that try at once, on any replica, one is let in.
        """

        def work(conn: Connection) -> str | None:
            name = CODE + _digest(code)
            found = self._lasting(settings.get(conn, name))
            if not settings.remove(conn, name) or found is None:
                return None
            return self._log_in(conn, found.credential, "link")

        return await self.database.write(work, name="login-by-code")

    def _log_in(self, conn: Connection, credential: Credential, by: str) -> str:
        secret = secrets.token_urlsafe(32)
        login = Login(credential=credential, expires_ms=self._end(LOGIN))
        self._keep(conn, LOGIN, secret, login)
        audit.append(
            conn, actor="operator", action="login", data={"role": credential.role, "by": by}
        )
        return secret

    def _end(self, prefix: str) -> int:
        return self.clock.now_ms() + (LIFE_MS if prefix == LOGIN else CODE_LIFE_MS)

    def _keep(self, conn: Connection, prefix: str, secret: str, login: Login) -> None:
        """Keep one more, without those that ran out and the oldest of too many."""
        most = MAX_LOGINS if prefix == LOGIN else MAX_CODES
        kept = {key: _read(text) for key, text in settings.named(conn, prefix).items()}
        by_age = sorted(kept, key=lambda key: kept[key].expires_ms, reverse=True)
        for place, key in enumerate(by_age):
            if place >= most - 1 or kept[key].expires_ms <= self.clock.now_ms():
                settings.remove(conn, prefix + key)
        settings.put(conn, prefix + _digest(secret), login.model_dump_json())

    def _lasting(self, text: str | None) -> Login | None:
        found = None if text is None else _read(text)
        return found if found is not None and found.expires_ms > self.clock.now_ms() else None


def _read(text: str) -> Login:
    return Login.model_validate_json(text)


def _digest(secret: str) -> str:
    return hashlib.sha256(f"login\0{secret}".encode()).hexdigest()
