"""A conversation in which children work, and what must not have happened in it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tests.crash.play import ASKS_TEAM, Case, Make
from tests.crash.process import Order

HANDOVERS: Final = 2
"""Two of the three children work in the background; the third is awaited."""


def of_team(make: Make) -> Make:
    """Orders in which a person asks for what children do."""

    async def made(name: str) -> Order:
        return replace(await make(name), team=True, patience_s=0.0)

    return made


def not_reached(case: Case) -> Sequence[str]:
    """Children work beside each other, so what a recovery did once it may not do again: a case
    whose second point does not come is one of a single death. And one unit may give two of them
    their slots, so that the second time of a point does not come: then nobody died. The first does.
    """
    again = case.order.kill is not None and case.order.kill[0] > 1
    return [] if case.kills or again else ["it died 0 times"]


def unanswered(case: Case) -> Sequence[str]:
    """What the person said and got no answer to."""
    whole = _answers(case)
    return [] if whole else [f"no answer to {ASKS_TEAM!r}"]


def repeated(case: Case) -> Sequence[str]:
    """What the person saw more than once."""
    posts = Counter(post.outbox_id for post in case.posts)
    found = [f"{one} was posted {n} times" for one, n in posts.items() if n > 1]
    whole = _answers(case)
    return found if whole < 2 else [*found, f"answered {whole} times"]


def handoffs(case: Case) -> Sequence[str]:
    """Ends of children that were not told exactly once."""
    told = Counter(
        row["identity"] for row in case.rows.inputs if row["identity"].startswith("handoff:")
    )
    found = [f"{one} was told {n} times" for one, n in told.items() if n > 1]
    return found if len(told) == HANDOVERS else [*found, f"{len(told)} handoffs"]


def effects(case: Case) -> Sequence[str]:
    """What a child did more than once."""
    lines = Counter(case.effects)
    return [f"the effect of {one} was had {n} times" for one, n in lines.items() if n > 1]


def _answers(case: Case) -> int:
    return sum(post.text.startswith(f"{ASKS_TEAM}: ") for post in case.posts)
