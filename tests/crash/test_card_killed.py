"""The card of a batch over a `kill -9`: found again, never posted twice, and it ends (SUB-23)."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.contract.store_support import schema_templates
from tests.crash.judging import not_reached, problems
from tests.crash.places import on_sqlite
from tests.crash.play import CARD_ENDED, Case, faults
from tests.crash.process import Kill, Order

__all__ = ["schema_templates"]

POINTS: Sequence[Kill] = (
    (1, "park:commit"),
    (1, "outbox-claim:commit"),
    (1, "send:begin"),
    (1, "post:kept"),
    (1, "send:end"),
    (1, "receipt:begin"),
    (1, "receipt:commit"),
    (1, "finish:commit"),
)


@pytest.fixture(scope="module")
def cases(
    schema_templates: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Sequence[Case]:
    """A death at each point, before and after the platform has the card."""
    template, parent = Path(schema_templates("sqlite")), tmp_path_factory.mktemp("card")
    make = on_sqlite(template, parent, lookup=True)

    async def made(name: str) -> Order:
        return replace(await make(name), team=True, cards=True, patience_s=0.0)

    return asyncio.run(faults(made, POINTS))


@pytest.mark.requirement("SUB-23")
def test_there_is_one_card_and_it_says_how_all_ended(cases: Sequence[Case]) -> None:
    assert problems(cases, not_reached) == ""
    assert problems(cases, cards) == ""


def cards(case: Case) -> Sequence[str]:
    """What a person did not see of one card that ends."""
    posted = [post.text for post in case.posts if "subagents" in post.text]
    found = [] if len(posted) == 1 else [f"{len(posted)} cards"]
    said = [*posted, *case.edits]
    early = [one for one in said[:-1] if one.startswith(CARD_ENDED) and one != said[-1]]
    return [*found, *early, *([] if said[-1].startswith(CARD_ENDED) else said[-1:])]
