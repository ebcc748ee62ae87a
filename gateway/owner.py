"""Whoever a home belongs to: their token on every replica, and their way to the page (WEB-2)."""

from dataclasses import dataclass
from pathlib import Path

from gateway import home_token
from runtime.intake.logins import Credential, Logins, fingerprint


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of a home, who has the token in it."""

    home: Path
    logins: Logins

    async def accept(self) -> None:
        """Let every replica accept the token of this home, and no earlier one of it."""
        credential = self._credential()
        if credential is not None:
            await self.logins.homes.keep(credential.home, credential.token)

    async def new_code(self) -> str:
        """A code that logs one browser in, once; empty for a home without a token."""
        credential = self._credential()
        return "" if credential is None else await self.logins.new_code(credential)

    def _credential(self) -> Credential | None:
        token = home_token.read(self.home)
        home = token and home_token.home_of(token)
        if not token or not home:
            return None
        return Credential(role="admin", token=fingerprint(token), home=home)
