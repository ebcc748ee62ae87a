"""Budgets of a turn: a model call reserves before it goes out and settles with what it used.

The reservation is an estimate: the prompt by characters / 4, the response by the longest one that
was asked for, money by the model's price. A call may begin while the limit is not yet used or
reserved, so at most one call crosses it, over any number of replicas (MSG-20). What other calls
hold in reserve may come back: then the call waits instead of being refused. Where no limit is set,
no statement is made.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import structlog

from runtime.domain.budgets import (
    Amount,
    BudgetSettings,
    Limit,
    Spender,
    budgets_of,
    over_line,
    spender_of,
)
from runtime.domain.capabilities import Spend
from runtime.domain.runs import Holder, RunState, Usage
from runtime.domain.transcript import estimate_tokens, message_tokens
from runtime.ports.clock import Clock
from runtime.ports.model import ModelRequest, ModelResponse
from runtime.sessions import budgets
from runtime.sessions.budgets import Charge, Refusal, Reservation, charge_of
from runtime.sessions.run_steps import Finish
from runtime.sessions.runs import Run
from runtime.sessions.unit import Unit, Units

log = structlog.get_logger(__name__)

UNBOUNDED: Final = Spend()
WAIT_S = 0.25
"""How long a call waits before it looks again whether calls under way left it room."""

Price = Callable[[str, Usage], float | None]
"""What `usage` of a model costs in US dollars; None where its price is unknown."""


def no_price(model: str, usage: Usage) -> float | None:  # noqa: ARG001 - the signature of a price
    """Knows no price: money is then counted when a response says its cost, and not reserved."""
    return None


@dataclass(slots=True)
class Budgets:
    """The budgets of one engine; `change` sets other limits for every call from then on."""

    units: Units
    clock: Clock
    settings: BudgetSettings
    price: Price = no_price
    _unpriced: set[str] = field(default_factory=set)

    def change(self, settings: BudgetSettings) -> None:
        """Other limits from now on."""
        self.settings = settings

    def of(self, run: Run, holder: Holder, own: Spend = UNBOUNDED) -> "RunBudget":
        """The budgets of one run in this worker's hands; `own` is what bounds its session."""
        spender = spender_of(run.speaker, run.target, session_id=run.session_id, run_id=run.id)
        return RunBudget(self, spender, holder, own)

    def most(self, models: Sequence[str], usage: Usage, *, money: bool = False) -> Usage:
        """`usage` with the cost at the dearest of the models whose price is known, where a limit
        is in money; `money` says that one of the run's own is."""
        if not (money or self.settings.counts_money):
            return usage
        prices = [self.price(model, usage) for model in models]
        known = [one for one in prices if one is not None]
        return usage.model_copy(update={"cost_usd": max(known) if known else None})

    def charge(self, usage: Usage, model: str) -> Charge:
        """What `usage` counts for. A cost that nobody knows is said once for each model."""
        charge = charge_of(usage)
        unheard = model and model not in self._unpriced
        if not charge.priced and unheard and self.settings.counts_money:
            self._unpriced.add(model)
            log.warning("cost_unknown", model=model, counted="tokens only")
        return charge


class RunBudget:
    """What one run may still spend. It remembers only what the rows cannot say."""

    def __init__(self, shared: Budgets, spender: Spender, holder: Holder, own: Spend) -> None:
        self._budgets = shared
        self._bounded = Limit.of(own).is_set
        self._money = own.micro_usd is not None
        self._spender = spender
        self._holder = holder
        self._reserved = False
        self._asked: tuple[Sequence[str], int] = ((), 0)
        self._unsettled = Charge()

    async def reserve(self, request: ModelRequest, models: Sequence[str]) -> str | None:
        """Reserve for one call, however often it is retried and whichever of `models` answers.

        Returns once it is reserved; or the sentence for the person when a budget is used up.
        Raises `StaleLease` when the run became another worker's, and `StoreUnavailable`.
        """
        shared = self._budgets
        if not (shared.settings.is_set or self._bounded):
            return None
        self._asked = (models, prompt_tokens(request))
        usage = Usage(input_tokens=self._asked[1], output_tokens=request.max_output_tokens)
        amount = charge_of(shared.most(models, usage, money=self._money)).amount
        while True:
            settings = shared.settings
            unit = partial(self._reserve, step=request.step, amount=amount, settings=settings)
            refusal = await shared.units.run(unit, name="reserve")
            self._unsettled = Charge()
            if refusal is None:
                self._reserved = True
                return None
            if not refusal.wait:
                scope = refusal.budget.key.scope.value
                log.info("budget_spent", run_id=self._spender.run_id, scope=scope)
                return over_line(refusal.budget, refusal.unit, timezone=settings.timezone)
            await shared.units.database.write(budgets.release_idle, name="release-idle")
            await shared.clock.sleep(WAIT_S)

    def unsaid(self, response: ModelResponse) -> None:
        """A response that no step keeps: what it used is settled before the next call."""
        self._unsettled = self._budgets.charge(response.usage, response.model)

    def charge(self, usage: Usage, model: str) -> Charge | None:
        """What the unit that keeps a response settles; None where nothing was reserved."""
        return self._budgets.charge(usage, model) if self._reserved else None

    def charge_at_end(self, end: Finish, written: str) -> Charge | None:
        """What the unit that ends the run settles, if a call is under way still.

        A call that somebody stopped is charged for its prompt and what it had written: it was
        paid for, and stopping must not be the way around a budget. One that failed is free.
        """
        if not (self._budgets.settings.is_set or self._bounded or self._reserved):
            return None
        if end.state is RunState.CANCELLED:
            models, prompt = self._asked
            used = Usage(input_tokens=prompt, output_tokens=estimate_tokens(written))
            return charge_of(self._budgets.most(models, used, money=self._money))
        if end.state is RunState.COMPLETED and end.message is not None:
            return self._budgets.charge(end.usage, end.message.model)
        return Charge()

    def _reserve(
        self, unit: Unit, *, step: int, amount: Amount, settings: BudgetSettings
    ) -> Refusal | None:
        run_id, holder = self._spender.run_id, self._holder
        conn = unit.conn
        lane, run = unit.owned(run_id, holder)
        # An earlier call of this run: its worker died, or its response was of no use.
        budgets.settle(conn, run_id, self._unsettled)
        wanted = Reservation(run_id, step, amount, lane.now_ms)
        kind = unit.kind(lane)
        payer = kind.payer(conn, run)
        spender = replace(self._spender, run_id=payer.run_id, session_id=payer.session_id)
        held = budgets_of(settings, spender, lane.now_ms)
        own = kind.budgets(conn, run.session_id) if self._bounded else ()
        return budgets.reserve(conn, wanted, (*own, *held), unit.kinds.delegations.paid_by)


def prompt_tokens(request: ModelRequest) -> int:
    """Tokens of all that goes to the model, by characters / 4 (CTX-12), and of the files in it."""
    tools = sum(
        estimate_tokens(tool.name + tool.description + json.dumps(tool.parameters))
        for tool in request.tools
    )
    texts = estimate_tokens(request.system) + estimate_tokens(request.present)
    said = sum(message_tokens(message) for message in request.messages)
    return texts + tools + said + request.enclosed_tokens
