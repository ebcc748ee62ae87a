"""The owners' tokens of the homes that share a database (WEB-2).

Each home keeps its token in a file. The database keeps the fingerprints, so that every replica
accepts the token of any of them. A fingerprint lasts for a day after its home was last at work: a
home that is gone takes its token along.
"""

import hmac
from dataclasses import dataclass
from typing import Final

from runtime.domain.value import Value
from runtime.ports.clock import Clock
from runtime.sessions import audit, settings
from runtime.store import Connection, Database

PREFIX: Final = "http_token:"
LIFE_MS: Final = 24 * 3600 * 1000
RENEW_S: Final = 3600.0
"""How often a home at work says so."""


class HomeToken(Value):
    """What the database knows of one home's token."""

    fingerprint: str
    expires_ms: int


@dataclass(frozen=True, slots=True)
class HomeTokens:
    """Keeps and checks the fingerprints."""

    database: Database
    clock: Clock

    async def keep(self, home: str, fingerprint: str) -> None:
        """Accept this token of a home, and no other of the same home from now on."""

        def work(conn: Connection) -> None:
            now = self.clock.now_ms()
            known = {key: _read(text) for key, text in settings.named(conn, PREFIX).items()}
            for key, one in known.items():
                if one.expires_ms <= now:
                    settings.remove(conn, PREFIX + key)
            if home not in known or known[home].fingerprint != fingerprint:
                audit.append(conn, actor="operator", action="token", data={"home": home})
            token = HomeToken(fingerprint=fingerprint, expires_ms=now + LIFE_MS)
            settings.put(conn, PREFIX + home, token.model_dump_json())

        await self.database.write(work, name="home-token")

    async def holds(self, home: str, fingerprint: str) -> bool:
        """Whether this is the token of a home that was at work within the last day."""
        text = await self.database.read(lambda conn: settings.get(conn, PREFIX + home))
        if text is None:
            return False
        found = _read(text)
        same = hmac.compare_digest(found.fingerprint, fingerprint)
        return same and found.expires_ms > self.clock.now_ms()


def _read(text: str) -> HomeToken:
    return HomeToken.model_validate_json(text)
