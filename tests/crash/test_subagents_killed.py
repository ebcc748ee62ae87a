"""A gateway is killed at every commit point of spawning, running and handing back children."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.contract.store_support import postgres_server, schema_templates
from tests.crash.judging import problems
from tests.crash.places import on_postgres, on_sqlite
from tests.crash.play import Case, discover, faults, recoveries
from tests.crash.process import Kill
from tests.crash.teams import effects, handoffs, not_reached, of_team, repeated, unanswered

__all__ = ["schema_templates"]

Templates = Callable[[str], str]
UNITS = {"park", "child-start", "child-slots", "claim", "step", "tools-end", "finish", "receipt"}
LOOKS = (not_reached, unanswered, repeated, handoffs, effects)
POINTS = {f"{unit}:{side}" for unit in UNITS for side in ("begin", "commit")}
ON_POSTGRES: Sequence[Kill] = (
    (1, "park:commit"),
    (1, "child-start:commit"),
    (1, "child-slots:commit"),
    (1, "finish:begin"),
    (1, "finish:commit"),
)


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


@pytest.mark.requirement("SUB-8", "SUB-23")
@pytest.mark.parametrize("look", LOOKS)
def test_whatever_dies_children_end_and_the_person_gets_one_answer(
    cases: Sequence[Case], look: Callable[[Case], Sequence[str]]
) -> None:
    assert problems(cases, look) == ""


@pytest.mark.requirement("SUB-8", "SUB-23", "SCALE-1")
def test_it_is_so_on_postgresql_too(tmp_path_factory: pytest.TempPathFactory) -> None:
    server = postgres_server()
    parent = tmp_path_factory.mktemp("team")

    async def play() -> Sequence[Case]:
        async with on_postgres(server, parent) as make:
            return await faults(of_team(make), ON_POSTGRES)

    played = asyncio.run(play())
    for look in LOOKS:
        assert problems(played, look) == ""
