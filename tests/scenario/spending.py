"""Budgets for scenarios: how a setup gets limits, and what the rows say was spent.

Every response of the scripted model uses 110 tokens and a tenth of a cent, unless it says other.
"""

import json
from collections.abc import Callable
from dataclasses import replace

from sqlalchemy import select

from runtime.domain.budgets import BudgetSettings, Limit
from runtime.domain.runs import RunState
from runtime.sessions import runs, tables
from runtime.store import Database
from tests.fakes.model import USAGE, ScriptedModel
from tests.scenario.engine import Setup, World

CALL = USAGE.input_tokens + USAGE.output_tokens
Change = Callable[[Setup], Setup]


def limits(**given: Limit | str) -> Change:
    """A setup with these budgets, enforced and shown."""

    def change(setup: Setup) -> Setup:
        budgets = BudgetSettings(**given)
        intake = setup.settings.intake
        commands = replace(intake.commands, budgets=budgets)
        settings = replace(
            setup.settings, budgets=budgets, intake=replace(intake, commands=commands)
        )
        return replace(setup, settings=settings)

    return change


def both(*changes: Change) -> Change:
    def change(setup: Setup) -> Setup:
        for one in changes:
            setup = one(setup)
        return setup

    return change


def talking() -> ScriptedModel:
    return ScriptedModel(lambda request: "an answer")


async def figures(database: Database) -> list[tuple[str, int, int]]:
    """(scope, tokens used, tokens reserved) of every budget."""
    query = select(
        tables.budgets.c.scope, tables.budgets.c.used_tokens, tables.budgets.c.reserved_tokens
    ).order_by(tables.budgets.c.scope, tables.budgets.c.scope_id, tables.budgets.c.day)
    rows = await database.read(lambda conn: conn.execute(query).all())
    return [(row[0], row[1], row[2]) for row in rows]


async def state(world: World, run_id: str | None) -> RunState:
    return (await world.database.read(lambda conn: runs.get(conn, run_id or ""))).state


async def reason_of_end(world: World, run_id: str | None) -> str:
    query = select(tables.events.c.data).where(
        tables.events.c.run_id == run_id, tables.events.c.kind == "run.completed"
    )
    data = await world.database.read(lambda conn: conn.execute(query).scalar_one())
    return str(json.loads(data)["reason"])
