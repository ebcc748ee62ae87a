"""A gateway is killed at every commit point, and people notice nothing but a delay."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.contract.store_support import postgres_server, schema_templates
from tests.crash.growing import ENDING
from tests.crash.judging import (
    broken_rows,
    doubled,
    effects_not_as_told,
    halves,
    halves_not_told,
    lost,
    not_reached,
    problems,
    unresolved,
)
from tests.crash.places import on_postgres, on_sqlite
from tests.crash.platform import OUTSIDE, Platform
from tests.crash.play import Case, Make, conversation, discover, faults, recoveries
from tests.crash.process import Kill
from tests.stateful import invariants

__all__ = ["schema_templates"]

Templates = Callable[[str], str]
DELIVERY = ("begin", "send", "receipt", "outbox", "finish", "stream")
BEFORE_A_SEND = ("outbox-claim:commit", "finish:commit", "begin:begin")
"""A gateway that dies here has surely not sent what it was about to send."""
UNITS = {"accept", "claim", "step", "tools-start", "tools-end", "park", "press", "finish"}
UNITS |= {"outbox-claim", "outbox-progress", "receipt", "lease", "lease-renewal", "void-leases"}
POINTS = {f"{unit}:{side}" for unit in UNITS for side in ("begin", "commit")}
POINTS |= {f"stream-{unit}:{side}" for unit in ("begin", "keep") for side in ("begin", "commit")}
POINTS |= {"send:begin", "send:end", "stream:begun", "stream:kept", "stream:closed"}
ASKED = {f"{done}:kept" for done in ("post", "grow", "close", "edit")}
POINTS |= ASKED
ON_POSTGRES: Sequence[Kill] = (
    (1, "accept:commit"),
    (1, "claim:commit"),
    (1, "step:commit"),
    (1, "tools-end:begin"),
    (1, "finish:begin"),
    (1, "finish:commit"),
    (2, "park:commit"),
    (3, "press:commit"),
    (3, "tools-start:commit"),
    (1, "stream:begun"),
    (1, "post:kept"),
    (1, "stream:kept"),
    (1, "grow:kept"),
    (1, "close:kept"),
    (1, "stream:closed"),
)


async def play_all(make: Make) -> Sequence[Case]:
    points = await discover(await make("recorded"))
    cases = await faults(make, points)
    return [*cases, *await recoveries(make, cases, points)]


async def play_sends(make: Make) -> Sequence[Case]:
    points = await discover(await make("recorded"))
    sends = [one for one in points if one[1].startswith(DELIVERY) or one[1] in OUTSIDE]
    return await faults(make, sends)


@pytest.fixture(scope="module")
def template(schema_templates: Templates) -> Path:
    """A migrated SQLite file."""
    return Path(schema_templates("sqlite"))


@pytest.fixture(scope="module")
def killed(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Sequence[Case]:
    """A conversation for each point, on a platform that can be asked what it has."""
    make = on_sqlite(template, tmp_path_factory.mktemp("lookup"), lookup=True)
    return asyncio.run(play_all(make))


@pytest.fixture(scope="module")
def killed_unasked(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Sequence[Case]:
    """A conversation for each point around a send, on a platform that cannot be asked."""
    make = on_sqlite(template, tmp_path_factory.mktemp("unasked"), lookup=False)
    return asyncio.run(play_sends(make))


@pytest.fixture(scope="module")
def killed_on_postgres(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Case]:
    """A conversation for some of the points, on PostgreSQL: the lease must run out first."""
    server = postgres_server()

    async def played() -> Sequence[Case]:
        async with on_postgres(server, tmp_path_factory.mktemp("postgres")) as make:
            return await faults(make, ON_POSTGRES)

    return asyncio.run(played())


def test_every_point_is_found_and_died_at(killed: Sequence[Case]) -> None:
    first = {case.order.kill[1] for case in killed if case.order.kill is not None}
    assert first >= POINTS
    again = {case.order.then[1] for case in killed if case.order.then is not None}
    assert again >= {"take-over:begin", "outbox-adopt:commit", "outbox-retry:commit"}
    assert problems(killed, not_reached) == ""


@pytest.mark.requirement("MSG-1", "MSG-7")
def test_no_message_is_lost(killed: Sequence[Case]) -> None:
    assert problems(killed, lost) == ""


@pytest.mark.requirement("MSG-9", "MSG-11")
def test_nobody_is_answered_twice(killed: Sequence[Case]) -> None:
    assert problems(killed, doubled) == ""


@pytest.mark.requirement("REN-4", "MSG-11")
def test_no_text_is_left_half(killed: Sequence[Case]) -> None:
    assert problems(killed, halves) == ""


@pytest.mark.requirement("MSG-8", "APR-4")
def test_an_effect_is_had_once_or_the_model_knows_that_it_may_have_been(
    killed: Sequence[Case],
) -> None:
    assert problems(killed, effects_not_as_told) == ""
    told = {post.text for case in killed for post in case.posts}
    told = {text.removesuffix(ENDING) for text in told}
    assert {"note milk: unknown ok", "pay rent: unknown"} <= told


@pytest.mark.requirement("MSG-4", "MSG-6", "MSG-7")
def test_the_rows_are_as_if_nothing_had_happened(killed: Sequence[Case]) -> None:
    assert problems(killed, broken_rows) == ""


@pytest.mark.requirement("MSG-11")
def test_where_the_platform_cannot_be_asked_the_unknown_is_shown_and_not_repeated(
    killed_unasked: Sequence[Case],
) -> None:
    assert problems(killed_unasked, not_reached) == ""
    assert problems(killed_unasked, unresolved) == ""
    assert problems(killed_unasked, doubled) == ""
    assert problems(killed_unasked, halves_not_told) == ""
    assert problems(killed_unasked, broken_rows) == ""
    ends = Counter(row["state"] for case in killed_unasked for row in case.rows.outbox)
    assert ends["unknown"] > 0
    certain = [case for case in killed_unasked if (case.order.kill or (0, ""))[1] in BEFORE_A_SEND]
    assert certain
    assert problems(certain, lost) == ""


@pytest.mark.requirement("MSG-1", "MSG-7", "MSG-8", "MSG-9", "MSG-11")
def test_the_same_on_postgresql(killed_on_postgres: Sequence[Case]) -> None:
    for look in (not_reached, lost, doubled, halves, effects_not_as_told, broken_rows):
        assert problems(killed_on_postgres, look) == ""


@pytest.mark.requirement("APR-4")
async def test_an_approval_asked_before_a_kill_is_answered_after_it(
    template: Path, tmp_path: Path
) -> None:
    order = await on_sqlite(template, tmp_path, lookup=True)("approval")
    platform = Platform()
    async with conversation(order, platform) as talk:
        await talk.first_message()
        card = await talk.card()
        talk.gateway.kill()
        rows = await talk.approve(card)
        assert talk.gateway.kills == 1
    assert order.effects.read_text().split() == ["milk", "rent"]
    assert [post.text for post in platform.posts][-1] == f"pay rent: ok{ENDING}"
    assert len(platform.edits) == 1
    assert platform.edits[0].startswith("card pay Allowed by Ada")
    assert [row["state"] for row in rows.open_calls] == ["answered"]
    invariants.check(rows)


@pytest.mark.requirement("APR-4")
async def test_a_press_that_comes_again_after_a_kill_decides_nothing_new(
    template: Path, tmp_path: Path
) -> None:
    order = await on_sqlite(template, tmp_path, lookup=True)("press")
    platform = Platform()
    async with conversation(replace(order, kill=(3, "press:commit")), platform) as talk:
        await talk.first_message()
        rows = await talk.approve(await talk.card())
        assert talk.gateway.kills == 1
        pressed = [name for _, name in platform.points].count("press:commit")
        assert pressed == 2, "it was not acknowledged, so the platform delivered it again"
    assert order.effects.read_text().split() == ["milk", "rent"]
    decided = [row for row in rows.events if row["kind"] == "approval.decided"]
    assert len(decided) == 1
