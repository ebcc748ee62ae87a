"""One replica of several dies, freezes or is cut off under load: the others go on for it."""

import signal
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import pytest
from sqlalchemy import make_url

from tests.conftest import FailAfter
from tests.replicas.town import CLOCK, LIMIT_S, SHORT_LEASE_S, Deployment, Replica, words_of
from tests.scenario.gateway.page import Page
from tests.scenario.process.test_store_away import Road, until_ready
from tests.wire.openai import Answer, Prompt, calls, says, use
from tests.wire.slack import ANNA
from tests.wire.telegram import Chat, User

HELD = 6
ALLOWED = '[policy]\nallow = ["exec"]\n'


@pytest.fixture
def deployment(deployment: Deployment) -> Deployment:
    """With short leases, because a replica of it will be lost."""
    deployment.lease_s = SHORT_LEASE_S
    return deployment


def script(prompt: Prompt) -> Answer:
    """Leaves a line for each message, then answers it; what is to be held waits in its stream."""
    asked = words_of(prompt)
    if asked.startswith("hold"):
        return says(f"re {asked}", hold="held", ending=".")
    if not prompt.results:
        return calls(use("exec", command=f"echo {asked.replace(' ', '-')} >> effects"))
    return says(f"re {asked}")


@dataclass
class Crowd:
    """People on the page, in Telegram and in Slack, and what each of them was answered."""

    deployment: Deployment
    sessions: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    guests: list[tuple[Chat, User]] = field(default_factory=list)

    async def open(self, replica: Replica) -> None:
        """Sessions of the page."""
        for number in range(HELD):
            self.sessions.append((await Page.open(replica.client, f"p{number}")).session_id)

    async def hold(self, replica: Replica) -> None:
        """Runs that are in the middle of an answer."""
        for number, session in enumerate(self.sessions):
            await Page(replica.client, session).says(f"hold {number}")
            self.said.append(f"hold {number}")
        running = "SELECT count(*) FROM runs WHERE state = 'running'"
        await self.deployment.until(running, len(self.sessions))
        while len(self.deployment.model.about("hold")) < len(self.sessions):
            await CLOCK.sleep(0.05)

    async def talk(self, replica: Replica, what: str) -> None:
        """One more message of everybody; the page's go to a replica that lives."""
        at = self.deployment
        for number, session in enumerate(self.sessions):
            await Page(replica.client, session).says(f"{what} p{number}")
            self.said.append(f"{what} p{number}")
        at.telegram.user_says(at.chat, at.ann, f"{what} t")
        await at.slack.user_says(at.direct, ANNA, f"{what} s")
        self.said += [f"{what} t", f"{what} s"]

    async def answered(self, replica: Replica) -> None:
        """Everybody has exactly one answer to each message."""
        at = self.deployment
        await at.settled(len(self.said))
        seen = [*at.telegram_texts(), *at.slack_texts()]
        for session in self.sessions:
            texts = await Page(replica.client, session).texts()
            seen += [text for text in texts if text.startswith("re ")]
        wanted = Counter(f"re {one}{'.' if one.startswith('hold') else ''}" for one in self.said)
        assert Counter(seen) == wanted
        lines = (at.path / "workspace/files/effects").read_text().splitlines()
        assert [one for one, times in Counter(lines).items() if times > 1] == []
        ends = await at.rows("SELECT DISTINCT state FROM runs")
        assert ends == [("completed",)]


async def worker_of_most(deployment: Deployment, replicas: list[Replica]) -> Replica:
    """The replica with the most runs in hand."""
    ((worker,), *_) = await deployment.rows(
        "SELECT worker FROM runs WHERE state = 'running' GROUP BY worker ORDER BY count(*) DESC"
    )
    return next(one for one in replicas if one.worker == worker)


async def in_hand(deployment: Deployment, victim: Replica) -> list[object]:
    """The runs that a replica works on."""
    query = f"SELECT id FROM runs WHERE state = 'running' AND worker = '{victim.worker}'"
    return [run for (run,) in await deployment.rows(query)]


async def taken_over(deployment: Deployment, victim: Replica, held: list[object]) -> None:
    """Until what a lost replica had in hand goes on elsewhere, and no lane waits."""
    assert held, "it had runs in hand"
    names = ", ".join(f"'{run}'" for run in held)
    # One that it ended between the look at its hands and the fault is not resumed.
    resumed = "EXISTS (SELECT 1 FROM events WHERE run_id = runs.id AND kind = 'run.resumed')"
    lost = f"SELECT count(*) FROM runs WHERE id IN ({names}) AND state <> 'completed'"
    await deployment.until(f"{lost} AND NOT {resumed}", 0)
    left = f"SELECT count(*) FROM runs WHERE state = 'running' AND worker = '{victim.worker}'"
    await deployment.until(left, 0)
    await deployment.until("SELECT count(*) FROM lanes WHERE ready_ms IS NOT NULL", 0)


@pytest.mark.requirement("SCALE-2", "MSG-7", "MSG-9", "MSG-10")
async def test_one_of_three_is_killed_under_load(
    deployment: Deployment, fail_after: FailAfter
) -> None:
    deployment.model.plays = script
    async with fail_after(LIMIT_S), deployment.replicas("a", "b", "c", more=ALLOWED) as three:
        crowd = Crowd(deployment)
        await crowd.open(three[0])
        await crowd.hold(three[0])
        victim = await worker_of_most(deployment, three)
        rest = [one for one in three if one is not victim]
        await crowd.talk(victim, "before")
        held = await in_hand(deployment, victim)
        await victim.killed()
        await crowd.talk(rest[0], "after")
        await taken_over(deployment, victim, held)
        for lease in ("timers", "deliver:telegram", "listen:telegram", "deliver:slack"):
            await deployment.held_by_another(lease, victim.worker)
        deployment.model.gate("held").opened.set()
        await crowd.answered(rest[1])
        for replica in rest:
            assert "terminated by other getUpdates" not in replica.program.transcript


@pytest.mark.requirement("SCALE-2", "MSG-7", "MSG-9", "MSG-11")
async def test_a_frozen_replica_that_wakes_up_late_changes_nothing(
    deployment: Deployment, fail_after: FailAfter
) -> None:
    """SIGSTOP past its lease, then SIGCONT: its runs are over, and it is told so by the fence.

    It is alone at first, so that it holds all runs and Slack's socket. That socket stays open while
    it is frozen, and Slack sends a message to it that only the other replica can answer.
    """
    deployment.model.plays = script
    async with fail_after(LIMIT_S), AsyncExitStack() as stack:
        victim = await stack.enter_async_context(deployment.replica("a", more=ALLOWED))
        crowd = Crowd(deployment)
        await crowd.open(victim)
        await crowd.hold(victim)
        await deployment.slack.wait_for_sockets(1)
        (frozen,) = deployment.slack.sockets
        other = await stack.enter_async_context(deployment.replica("b", more=ALLOWED))
        held = await in_hand(deployment, victim)
        victim.freeze()
        try:
            await taken_over(deployment, victim, held)
            deployment.model.gate("held").opened.set()
            await deployment.slack.wait_for_sockets(2)
            deployment.slack.send_next_over(frozen)
            await crowd.talk(other, "meanwhile")
            await crowd.answered(other)
        finally:
            victim.thaw()
        await victim.program.says("run_lost")
        await victim.program.says("lease_lost")
        await until_ready(victim.client.url, ready=True)
        await crowd.talk(victim, "later")
        await crowd.answered(victim)


@pytest.mark.requirement("SCALE-2", "MSG-7", "MSG-9")
async def test_a_replica_that_is_cut_from_the_database_is_replaced_and_comes_back(
    deployment: Deployment, fail_after: FailAfter
) -> None:
    deployment.model.plays = script
    there = make_url(deployment.server.url(deployment.database))
    road = Road(there.host or "127.0.0.1", there.port or 5432)
    await road.mend()
    url = there.set(host="127.0.0.1", port=road.listening).render_as_string(hide_password=False)
    async with fail_after(LIMIT_S), AsyncExitStack() as stack:
        cut_off = await stack.enter_async_context(deployment.replica("a", url=url, more=ALLOWED))
        crowd = Crowd(deployment)
        await crowd.open(cut_off)
        await crowd.hold(cut_off)
        other = await stack.enter_async_context(deployment.replica("b", more=ALLOWED))
        await crowd.talk(cut_off, "before")
        held = await in_hand(deployment, cut_off)
        await road.cut()
        await until_ready(cut_off.client.url, ready=False)
        await taken_over(deployment, cut_off, held)
        await crowd.talk(other, "meanwhile")
        deployment.model.gate("held").opened.set()
        await crowd.answered(other)
        await road.mend()
        await until_ready(cut_off.client.url, ready=True)
        await crowd.talk(cut_off, "after")
        await crowd.answered(cut_off)
        cut_off.program.signal(signal.SIGTERM)
        assert await cut_off.program.ended() == 0
        await road.cut()
