"""A gateway is killed at every commit point of spawning, running and handing back children."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.contract.store_support import postgres_server, schema_templates
from tests.crash.judging import not_reached, problems
from tests.crash.places import on_postgres, on_sqlite
from tests.crash.play import ASKS_TEAM, Case, Make, discover, faults, recoveries
from tests.crash.process import Kill, Order

__all__ = ["schema_templates"]

Templates = Callable[[str], str]
UNITS = {"park", "child-start", "child-slots", "claim", "step", "tools-end", "finish", "receipt"}
POINTS = {f"{unit}:{side}" for unit in UNITS for side in ("begin", "commit")}
ON_POSTGRES: Sequence[Kill] = (
    (1, "park:commit"),
    (1, "child-start:commit"),
    (1, "child-slots:commit"),
    (1, "finish:begin"),
    (1, "finish:commit"),
)


def of_team(make: Make) -> Make:
    async def made(name: str) -> Order:
        return replace(await make(name), team=True, patience_s=0.0)

    return made


@pytest.fixture(scope="module")
def cases(schema_templates: Templates, tmp_path_factory: pytest.TempPathFactory) -> Sequence[Case]:
    """A death at each point, and at each that only a recovering gateway passes; on SQLite."""
    template, parent = Path(schema_templates("sqlite")), tmp_path_factory.mktemp("team")
    make = of_team(on_sqlite(template, parent, lookup=True))

    async def play() -> Sequence[Case]:
        points = await discover(await make("recorded"))
        assert {name for _, name in points} >= POINTS
        played = await faults(make, points)
        return [*played, *await recoveries(make, played, points)]

    return asyncio.run(play())


def answers(case: Case) -> Sequence[str]:
    """What the person did not see exactly once."""
    whole = [post for post in case.posts if post.text.startswith(f"{ASKS_TEAM}: ")]
    posts = Counter(post.outbox_id for post in case.posts)
    found = [f"{one} was posted {n} times" for one, n in posts.items() if n > 1]
    return [*found, *([] if len(whole) == 1 else [f"answered {len(whole)} times"])]


def handoffs(case: Case) -> Sequence[str]:
    """Ends of children that were not told exactly once."""
    told = Counter(
        row["identity"] for row in case.rows.inputs if row["identity"].startswith("handoff:")
    )
    found = [f"{one} was told {n} times" for one, n in told.items() if n > 1]
    return found if len(told) == 2 else [*found, f"{len(told)} handoffs"]


def effects(case: Case) -> Sequence[str]:
    lines = Counter(case.effects)
    return [f"the effect of {one} was had {n} times" for one, n in lines.items() if n > 1]


@pytest.mark.requirement("SUB-8", "SUB-23")
@pytest.mark.parametrize("look", [not_reached, answers, handoffs, effects])
def test_whatever_dies_children_end_and_the_person_gets_one_answer(
    cases: Sequence[Case], look: Callable[[Case], Sequence[str]]
) -> None:
    assert problems(cases, look) == ""


@pytest.mark.requirement("SUB-8", "SUB-23", "SCALE-1")
def test_it_is_so_on_postgresql_too(
    schema_templates: Templates, tmp_path_factory: pytest.TempPathFactory
) -> None:
    server = postgres_server()
    template, parent = schema_templates("postgresql"), tmp_path_factory.mktemp("team")

    async def play() -> Sequence[Case]:
        async with on_postgres(server, template, parent) as make:
            return await faults(of_team(make), ON_POSTGRES)

    played = asyncio.run(play())
    for look in (not_reached, answers, handoffs, effects):
        assert problems(played, look) == ""
