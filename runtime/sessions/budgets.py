"""Budget rows: what is used and reserved, and the open reservation of each run.

A call reserves before it goes out and settles with what it used (MSG-20). Rows are locked, so any
number of replicas count on the same figures; always in the order of their keys, so that two units
do not wait for each other. This module decides nothing about limits but whether one is reached.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, Row, and_, bindparam, delete, insert, select, update

from runtime.domain.budgets import (
    Amount,
    Budget,
    BudgetKey,
    Scope,
    Standing,
    Unit,
    judge,
    micro_usd,
)
from runtime.domain.runs import RunState, Usage
from runtime.sessions import totals
from runtime.sessions.tables import budget_reservations, budgets, runs
from runtime.store.dialect import lock_rows
from runtime.store.statements import hot, insert_new


@dataclass(frozen=True, slots=True)
class Reservation:
    """What one call of a run may use; one call of a run is under way at a time."""

    run_id: str
    step: int
    amount: Amount
    created_ms: int


@dataclass(frozen=True, slots=True)
class Charge:
    """What a call did use. `priced` is False where nobody knows what it cost."""

    amount: Amount = field(default_factory=Amount)
    priced: bool = True


@dataclass(frozen=True, slots=True)
class Refusal:
    """The budget that refuses a call, by which measure, and whether waiting may help."""

    budget: Budget
    unit: Unit
    wait: bool


PaidBy = Callable[[Connection, str], Sequence[str]]
"""The sessions that spend on the account of a run, besides its own."""


def _by_none(_conn: Connection, _run_id: str) -> Sequence[str]:
    return ()


_KEY = and_(
    budgets.c.scope == bindparam("of_scope"),
    budgets.c.scope_id == bindparam("of_id"),
    budgets.c.day == bindparam("of_day"),
)
_STANDING = (
    budgets.c.used_tokens,
    budgets.c.used_micro_usd,
    budgets.c.reserved_tokens,
    budgets.c.reserved_micro_usd,
    budgets.c.unpriced_calls,
)
_ONE = hot(select(*_STANDING).where(_KEY))
_LOCK = hot(lock_rows(select(*_STANDING).where(_KEY), skip_locked=False))
_CHANGE = hot(
    update(budgets)
    .where(_KEY)
    .values(
        used_tokens=budgets.c.used_tokens + bindparam("more_tokens"),
        used_micro_usd=budgets.c.used_micro_usd + bindparam("more_money"),
        reserved_tokens=budgets.c.reserved_tokens + bindparam("held_tokens"),
        reserved_micro_usd=budgets.c.reserved_micro_usd + bindparam("held_money"),
        unpriced_calls=budgets.c.unpriced_calls + bindparam("more_unpriced"),
    )
)
_INSERT = hot(insert(budget_reservations))
_TAKEN = (
    budget_reservations.c.tokens,
    budget_reservations.c.micro_usd,
    budget_reservations.c.budgets,
)
_TAKE = hot(
    delete(budget_reservations)
    .where(budget_reservations.c.run_id == bindparam("of_run"))
    .returning(*_TAKEN)
)
_TAKE_IDLE = (
    delete(budget_reservations)
    .where(
        budget_reservations.c.run_id.not_in(
            select(runs.c.id).where(runs.c.state == RunState.RUNNING.value)
        )
    )
    .returning(*_TAKEN)
)


def reserve(
    conn: Connection, wanted: Reservation, held: Sequence[Budget], paid_by: PaidBy = _by_none
) -> Refusal | None:
    """Reserve for one call on each of the budgets, or on none: then the refusal.

    The run has no open reservation; `settle` before this takes an earlier one away.
    """
    if not held:
        return None
    standings = {
        budget.key: _locked(conn, budget.key, paid_by)
        for budget in sorted(held, key=lambda one: one.key)
    }
    refusal = _refusal(held, standings)
    if refusal is not None:
        return refusal
    for key in standings:
        _change(conn, key, held=wanted.amount)
    _INSERT.change(
        conn,
        run_id=wanted.run_id,
        step=wanted.step,
        tokens=wanted.amount.tokens,
        micro_usd=wanted.amount.micro_usd,
        budgets=json.dumps([[key.scope.value, key.id, key.day] for key in standings]),
        created_ms=wanted.created_ms,
    )
    return None


def settle(conn: Connection, run_id: str, charge: Charge) -> bool:
    """Turn a run's open reservation into what was used; False, and nothing, where there is none.

    It is counted where it was reserved: a call that crosses midnight belongs to the day it began.
    """
    row = _TAKE.first(conn, of_run=run_id)
    if row is None:
        return False
    amount = _negative(row)
    for key in sorted(_keys(row)):
        _change(conn, key, used=charge.amount, held=amount, unpriced=not charge.priced)
    return True


def release_idle(conn: Connection) -> int:
    """Take away the reservations of runs that do not run any more; how many there were.

    Their worker died during a call. What the call cost is not known, so nothing is counted.
    """
    rows = conn.execute(_TAKE_IDLE).all()
    freed: dict[BudgetKey, Amount] = {}
    for row in rows:
        for key in _keys(row):
            before, more = freed.get(key, Amount()), _negative(row)
            tokens, money = before.tokens + more.tokens, before.micro_usd + more.micro_usd
            freed[key] = Amount(tokens, money)
    for key, amount in sorted(freed.items(), key=lambda one: one[0]):
        _change(conn, key, held=amount)
    return len(rows)


def standings(
    conn: Connection, keys: Iterable[BudgetKey], paid_by: PaidBy = _by_none
) -> Mapping[BudgetKey, Standing]:
    """Where budgets stand; one that nobody used yet stands where it would begin."""
    found = {}
    for key in keys:
        row = _ONE.first(conn, of_scope=key.scope.value, of_id=key.id, of_day=key.day)
        found[key] = Standing(_before(conn, key, paid_by)) if row is None else _standing(row)
    return found


def charge_of(usage: Usage) -> Charge:
    """What a response's usage counts for. Cached tokens are part of those that went in."""
    tokens = usage.input_tokens + usage.output_tokens
    if usage.cost_usd is None:
        return Charge(Amount(tokens), priced=False)
    return Charge(Amount(tokens, micro_usd(usage.cost_usd)))


def _refusal(held: Sequence[Budget], standings: Mapping[BudgetKey, Standing]) -> Refusal | None:
    """The first budget that is spent, else the first that makes the call wait."""
    waiting = None
    for budget in held:
        verdict, unit = judge(budget.limit, standings[budget.key])
        if verdict == "spent":
            return Refusal(budget, unit, wait=False)
        if verdict == "wait":
            waiting = waiting or Refusal(budget, unit, wait=True)
    return waiting


def _locked(conn: Connection, key: BudgetKey, paid_by: PaidBy) -> Standing:
    names = {"of_scope": key.scope.value, "of_id": key.id, "of_day": key.day}
    row = _LOCK.first(conn, **names)
    if row is None:
        before = _before(conn, key, paid_by)
        insert_new(
            conn,
            budgets,
            {
                "scope": key.scope.value,
                "scope_id": key.id,
                "day": key.day,
                "used_tokens": before.tokens,
                "used_micro_usd": before.micro_usd,
            },
        )
        row = _LOCK.first(conn, **names)
    if row is None:
        raise RuntimeError(f"the budget {key} is gone")
    return _standing(row)


def _before(conn: Connection, key: BudgetKey, paid_by: PaidBy) -> Amount:
    """What was used before the first limit was set: a session and a run count from their start,
    with all that others used on their account."""
    if key.scope is Scope.SESSION:
        return charge_of(totals.of_tree(conn, key.id)).amount
    if key.scope is Scope.RUN:
        return charge_of(totals.of_payer(conn, key.id, paid_by(conn, key.id))).amount
    return Amount()


_NOTHING = Amount()


def _change(
    conn: Connection,
    key: BudgetKey,
    *,
    used: Amount = _NOTHING,
    held: Amount = _NOTHING,
    unpriced: bool = False,
) -> None:
    _CHANGE.change(
        conn,
        of_scope=key.scope.value,
        of_id=key.id,
        of_day=key.day,
        more_tokens=used.tokens,
        more_money=used.micro_usd,
        held_tokens=held.tokens,
        held_money=held.micro_usd,
        more_unpriced=int(unpriced),
    )


def _standing(row: Row[int, int, int, int, int]) -> Standing:
    return Standing(
        used=Amount(row.used_tokens, row.used_micro_usd),
        reserved=Amount(row.reserved_tokens, row.reserved_micro_usd),
        unpriced=row.unpriced_calls,
    )


def _keys(row: Row[int, int, str]) -> Sequence[BudgetKey]:
    return [BudgetKey(Scope(scope), of, day) for scope, of, day in json.loads(row.budgets)]


def _negative(row: Row[int, int, str]) -> Amount:
    return Amount(-row.tokens, -row.micro_usd)
