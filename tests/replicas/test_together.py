"""Replicas that work beside each other: to people they are one gateway."""

import os
from collections import defaultdict

import pytest

from tests.conftest import FailAfter
from tests.contract.bus.conftest import NATS_VARIABLE, NO_NATS
from tests.replicas.town import LIMIT_S, Deployment, Replica, words_of
from tests.scenario.gateway.page import Page
from tests.wire.openai import Answer, Prompt, calls, says, use
from tests.wire.slack import ANNA

ENDS = ("run.completed", "run.cancelled")
BUSES = ("postgresql", "nats")


def settings_of_bus(bus: str) -> str:
    """The configuration that carries signals over this bus."""
    if bus == "postgresql":
        return ""
    url = os.environ.get(NATS_VARIABLE)
    if not url:
        pytest.skip(NO_NATS)
    return f'[bus]\nurl = "{url}"\n'


async def working(deployment: Deployment, run: str, *replicas: Replica) -> tuple[Replica, Replica]:
    """The replica that runs a run, and one that does not."""
    ((worker,),) = await deployment.rows(f"SELECT worker FROM runs WHERE id = '{run}'")
    here = next(one for one in replicas if one.worker == worker)
    return here, next(one for one in replicas if one is not here)


@pytest.mark.requirement("SCALE-1", "MSG-13", "MSG-21")
@pytest.mark.parametrize("bus", BUSES)
async def test_a_run_is_seen_and_stopped_from_another_replica(
    deployment: Deployment, fail_after: FailAfter, bus: str
) -> None:
    # One of its group that loads everything itself, see `nursery`.
    deployment.loaded = False
    deployment.model.plays = lambda prompt: says("I am ", "half way", hold="half", ending=".")
    async with (
        fail_after(LIMIT_S),
        deployment.replicas("a", "b", more=settings_of_bus(bus)) as (a, b),
    ):
        page = await Page.open(a.client)
        run = await page.says("take your time")
        await deployment.model.gate("half").entered.wait()
        here, other = await working(deployment, run, a, b)
        await other.feed.until(lambda: other.feed.text(run) == "I am half way")
        await other.client.post(f"/v1/sessions/{page.session_id}/interrupt")
        assert await here.feed.ended(run) == "run.cancelled"


@pytest.mark.requirement("SCALE-1", "APR-4", "MSG-4")
async def test_a_full_replica_leaves_its_messages_to_another_and_either_takes_an_answer(
    deployment: Deployment, fail_after: FailAfter
) -> None:
    def script(prompt: Prompt) -> Answer:
        if "wait" in prompt.asked:
            return says("Waiting", hold="long", ending=" is over.")
        if not prompt.results:
            return calls(use("exec", command="echo done >> effects"))
        return says("It ran.")

    deployment.model.plays = script
    more = "[workers]\nturns = 1\n"
    async with fail_after(LIMIT_S), deployment.replicas("a", "b", more=more) as (a, b):
        busy = await (await Page.open(a.client, "busy")).says("wait for me")
        await deployment.model.gate("long").entered.wait()
        full, free = await working(deployment, busy, a, b)
        page = await Page.open(full.client, "work")
        run = await page.says("do it")
        await full.feed.until(lambda: "approval.requested" in full.feed.kinds(run))
        await Page(full.client, page.session_id).approve(run)
        assert await full.feed.ended(run) == "run.completed"
        ((worker,),) = await deployment.rows(f"SELECT worker FROM runs WHERE id = '{run}'")
        assert worker == free.worker, "it was accepted and approved on the other one"
        assert await Page(free.client, page.session_id).texts() == ["It ran."]
        assert (deployment.path / "workspace/files/effects").read_text() == "done\n"
        deployment.model.gate("long").opened.set()
        assert await free.feed.ended(busy) == "run.completed"


@pytest.mark.requirement("SCALE-1", "MSG-4", "MSG-10")
async def test_lanes_and_platforms_have_one_owner_at_a_time(
    deployment: Deployment, fail_after: FailAfter
) -> None:
    """Messages of several people come in by both replicas and by two platforms at once.

    The first of everybody are held until all of them run: more than one replica has room for.
    """

    def script(prompt: Prompt) -> Answer:
        words = words_of(prompt)
        return says(f"re {words}", hold="all" if words == "message 0" else "", ending="")

    deployment.model.plays = script
    more = "[workers]\nturns = 4\n"
    async with fail_after(LIMIT_S), deployment.replicas("a", "b", more=more) as (a, b):
        pages = [await Page.open(a.client, f"p{number}") for number in range(5)]
        wanted = [f"message {number}" for number in range(4)]
        for number, text in enumerate(wanted):
            client = (a, b)[number % 2].client
            for page in pages:
                await Page(client, page.session_id).says(text)
            deployment.telegram.user_says(deployment.chat, deployment.ann, text)
            await deployment.slack.user_says(deployment.direct, ANNA, text)
        lanes = len(pages) + 2
        await deployment.until("SELECT count(*) FROM runs WHERE state = 'running'", lanes)
        ((workers,),) = await deployment.rows("SELECT count(DISTINCT worker) FROM runs")
        assert workers == 2, "both work"
        deployment.model.gate("all").opened.set()
        runs = lanes * len(wanted)
        for replica in (a, b):
            await replica.feed.settled(runs)
        for page in pages:
            assert await page.texts() == [f"re {text}" for text in wanted]
        assert [text.split(" ", 1)[0] for text in deployment.telegram_texts()] == ["re"] * 4
        assert len(deployment.slack_texts()) == len(wanted)
        assert await overlapping(deployment) == []
        assert len(deployment.slack.sockets) == 1
        for replica in (a, b):
            assert "getUpdates" not in replica.program.transcript, "two pollers met"


async def overlapping(deployment: Deployment) -> list[object]:
    """Sessions in which a run began before the one before it had ended."""
    active: dict[object, set[object]] = defaultdict(set)
    found = []
    for session, run, kind in await deployment.rows(
        "SELECT session_id, run_id, kind FROM events ORDER BY session_id, seq"
    ):
        if kind in ("run.started", "run.resumed"):
            active[session].add(run)
        elif kind in ENDS:
            active[session].discard(run)
        if len(active[session]) > 1:
            found.append(session)
    return found


@pytest.mark.requirement("SCALE-1", "MSG-5")
async def test_what_comes_in_by_either_replica_is_collected_into_one_run(
    deployment: Deployment, fail_after: FailAfter
) -> None:
    def script(prompt: Prompt) -> Answer:
        first = words_of(prompt).startswith("first")
        return says("One", hold="first", ending=".") if first else says("All.")

    deployment.model.plays = script
    async with fail_after(LIMIT_S), deployment.replicas("a", "b") as (a, b):
        page = await Page.open(a.client)
        await page.says("/queue collect")
        first = await page.says("first one")
        await deployment.model.gate("first").entered.wait()
        for number in range(4):
            await Page((a, b)[number % 2].client, page.session_id).says(f"part {number}")
        deployment.model.gate("first").opened.set()
        assert await b.feed.ended(first) == "run.completed"
        await deployment.settled(2)
        assert len(deployment.model.about("part")) == 1
        rows = await deployment.rows(
            "SELECT count(*), count(DISTINCT run_id) FROM inputs WHERE message LIKE '%part %'"
        )
        assert rows == [(4, 1)]
        ((waited,),) = await deployment.rows(
            "SELECT r.started_ms - max(i.received_ms) FROM runs r JOIN inputs i "
            "ON i.run_id = r.id WHERE i.message LIKE '%part %' GROUP BY r.started_ms"
        )
        assert isinstance(waited, int)
        assert waited >= 700, "the quiet time holds over both"
