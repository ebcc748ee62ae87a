"""Limits at the door: how fast people and rooms may begin runs, and what a day may cost (POL-8).

A message that would begin a run beyond a limit begins none, and is not kept, so that a flood fills
nothing; its sender is told once in each window and chat that it was left, and when it goes on. What
joins a run that is there begins none and is not asked about. Nor is what comes in by the gateway's
own page, terminal and API: it is the owner's, and a run tells them what is used up.
"""

from dataclasses import dataclass

from runtime.commands.table import CommandSettings
from runtime.domain.budgets import Budget, Spender, Unit, budgets_of, judge, over_line, spender_of
from runtime.domain.messages import ChatAddress, escape_component
from runtime.domain.people import Speaker
from runtime.domain.rates import (
    Full,
    Limited,
    counted,
    full,
    limits_of_runs,
    limits_of_words,
    refusal_line,
)
from runtime.intake.access import LOCAL
from runtime.sessions import budgets, rates
from runtime.sessions.idempotency import first_time
from runtime.store import Connection

SEND_AGAIN = " I did not take this message. Please send it again then."


@dataclass(frozen=True, slots=True)
class Over:
    """A limit that is reached: `reason` is for the log, `line` for the person, None where they
    were told already."""

    reason: str
    line: str | None


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits that hold for one speaker at one place, in one unit of a lane held since `now_ms`.

    Rows of limits are held to the end of the unit, so ask after everything that may refuse.
    """

    settings: CommandSettings
    speaker: Speaker
    place: ChatAddress
    now_ms: int

    @property
    def _spender(self) -> Spender:
        return spender_of(self.speaker, self.place, session_id="")

    def begin(self, conn: Connection) -> Over | None:
        """Count one run that begins now; or the limit that refuses it, and nothing is counted."""
        if self.place.channel in LOCAL:
            return None
        return self._spent(conn) or self._pace(
            conn, limits_of_runs(self.settings.rates, self.speaker, self._spender)
        )

    def speak(self, conn: Connection) -> Over | None:
        """Count one line of the gateway's own to this person, as `begin` does for a run."""
        if self.place.channel in LOCAL:
            return None
        return self._pace(conn, limits_of_words(self.settings.rates, self.speaker, self._spender))

    def _pace(self, conn: Connection, held: tuple[Limited, ...]) -> Over | None:
        if not held:
            return None
        now = self.now_ms
        tallies = rates.lock(conn, [one.name for one in held], now=now)
        closed = [found for one in held if (found := full(one, tallies[one.name], now))]
        if closed:
            return self._over_pace(conn, max(closed, key=lambda one: one.ends_ms))
        rates.keep(conn, {name: counted(one, now) for name, one in tallies.items()}, now=now)
        return None

    def _over_pace(self, conn: Connection, found: Full) -> Over:
        scope = found.limit.scope
        line = refusal_line(found, timezone=self.settings.rates.timezone)
        first = self._untold(conn, found.limit.name, str(found.ends_ms))
        reason = (
            f"the rate of its {scope.value}, {found.limit.rate.most(found.span)} a {found.span}"
        )
        return Over(reason, line if first else None)

    def _spent(self, conn: Connection) -> Over | None:
        found = self._used_up(conn)
        if found is None:
            return None
        budget, unit = found
        key, timezone = budget.key, self.settings.budgets.timezone
        # The limit is part of it: who raises one and uses it up the same day is told again.
        window = f"{key.day}:{budget.limit.tokens}:{budget.limit.micro_usd}"
        first = self._untold(conn, f"{key.scope.value}:{key.id}", window)
        line = over_line(budget, unit, timezone=timezone) + SEND_AGAIN
        return Over(f"the budget of its {key.scope.value}", line if first else None)

    def _used_up(self, conn: Connection) -> tuple[Budget, Unit] | None:
        """A budget of today that has nothing left; those of sessions and runs are their runs'."""
        settings = self.settings.budgets
        every = budgets_of(settings, self._spender, self.now_ms) if settings.is_set else ()
        held = [one for one in every if one.key.day]
        found = budgets.standings(conn, [one.key for one in held])
        for budget in held:
            verdict, unit = judge(budget.limit, found[budget.key])
            if verdict == "spent":
                return budget, unit
        return None

    def _untold(self, conn: Connection, limit: str, window: str) -> bool:
        """Whether this person was not told of a limit's window in this chat yet; now they are."""
        chat = (self.place.channel, self.place.account, self.place.chat_id)
        parts = (limit, window, self._spender.person, *chat)
        return first_time(conn, "limited:" + ":".join(escape_component(one) for one in parts))
