"""A disk that is full, a database that is locked or damaged, a workspace that cannot be written."""

import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from gateway.cli.answers import Refused
from tests.conftest import FailAfter
from tests.scenario.gateway.disks import disk, log_in_use
from tests.scenario.gateway.page import Page
from tests.scenario.gateway.town import Serving, Town
from tests.scenario.process.program import command
from tests.scenario.process.test_store_away import until_ready
from tests.wire.openai import says
from tests.wire.slack import Said


async def said_while_the_store_is_away(town: Town, here: Serving, page: Page) -> Said:
    """People write everywhere; the page is told to try again, the platforms are told nothing."""
    said = await town.on_slack("while it was away")
    town.on_telegram("while it was away")
    with pytest.raises(Refused) as refused:
        await page.says("while it was away", key="made-up-key")
    assert refused.value.status == 503
    assert "try again" in str(refused.value)
    await here.program.says("telegram.not_confirmed")
    assert not any(delivery.acked for delivery in said.deliveries)
    assert town.telegram.queue.pending
    return said


async def answered_after_all(town: Town, here: Serving, page: Page, said: Said) -> None:
    """Slack and Telegram deliver again, the person presses send again: one answer each."""
    await page.says("while it was away", key="made-up-key")
    if not all(delivery.acked for delivery in said.deliveries):
        await town.slack.redeliver_unacked()
    await here.feed.settled(6)
    await town.slack.wait_for_quiet()
    await town.telegram.wait_until(lambda: not town.telegram.queue.pending)
    assert town.slack_texts() == ["I am here."] * 2
    assert town.telegram_texts() == ["I am here."] * 2
    assert await page.texts() == ["I am here."] * 2


async def greeted(town: Town, here: Serving) -> Page:
    """One message on each channel is answered, so that everything is connected."""
    town.model.plays = lambda prompt: says("I am here.")
    page = await Page.open(here.client)
    await town.on_slack("hello")
    town.on_telegram("hello")
    await page.says("hello")
    await here.feed.settled(3)
    return page


@pytest.mark.requirement("MSG-1", "MSG-2")
async def test_a_full_disk_takes_no_message_and_loses_none(
    town: Town, tmp_path: Path, fail_after: FailAfter
) -> None:
    with disk(tmp_path / "home", megabytes=16) as small:
        town.configure()
        async with fail_after(90), town.serving() as here:
            page = await greeted(town, here)
            with log_in_use(small.path / "gatehouse.db"):
                small.fill()
                said = await said_while_the_store_is_away(town, here, page)
                line = await here.program.says("is full")
                assert "Free space" in line or "gatehouse.db" in line
                small.free()
                await answered_after_all(town, here, page, said)


@pytest.mark.requirement("MSG-7", "MSG-9")
async def test_a_disk_that_fills_during_a_turn_costs_no_reply_and_doubles_none(
    town: Town, tmp_path: Path, fail_after: FailAfter
) -> None:
    """Full when the page's answer is whole, and full when Slack has the reply already."""
    with disk(tmp_path / "home", megabytes=16) as small, ExitStack() as stack:
        town.configure()
        async with fail_after(90), town.serving() as here:
            page = await greeted(town, here)
            stack.enter_context(log_in_use(small.path / "gatehouse.db"))
            town.model.plays = lambda prompt: says("Half ", hold="half", ending="and whole.")
            posted = town.slack.hold("chat.postMessage")
            await page.says("to the page")
            await town.model.gate("half").entered.wait()
            small.fill()
            town.model.gate("half").opened.set()
            await here.program.says("is full")
            small.free()
            await here.feed.settled(4)
            assert await page.texts() == ["I am here.", "Half and whole."]

            await town.on_slack("to slack")
            await posted.entered.wait()
            small.fill()
            posted.release()
            await here.program.says("receipt_waits")
            small.free()
            await here.feed.settled(5)
            assert town.slack_texts() == ["I am here.", "Half and whole."]
            assert here.feed.kinds().count("delivery.sent") == 5
            assert "Traceback" not in here.program.transcript


@pytest.mark.requirement("MSG-1", "MSG-2")
async def test_a_database_that_another_program_locks_takes_no_message_and_loses_none(
    town: Town, fail_after: FailAfter
) -> None:
    async with fail_after(90), town.serving() as here:
        page = await greeted(town, here)
        with closing(sqlite3.connect(town.place.home / "gatehouse.db")) as other:
            other.execute("BEGIN IMMEDIATE")
            said = await said_while_the_store_is_away(town, here, page)
            await here.program.says("is locked by another process")
            other.rollback()
        await answered_after_all(town, here, page, said)


async def test_a_database_that_is_locked_at_the_start_is_said_plainly(
    town: Town, fail_after: FailAfter
) -> None:
    async with fail_after(60):
        assert (await command(town.place, "migrate")).code == 0
        with closing(sqlite3.connect(town.place.home / "gatehouse.db")) as other:
            other.execute("BEGIN IMMEDIATE")
            ended = await command(town.place, "serve")
        assert ended.code == 1
        assert "is locked by another process" in ended.err
        assert "Traceback" not in ended.err


async def test_a_database_whose_pages_are_damaged_is_said_plainly_at_the_start_and_left_alone(
    town: Town, fail_after: FailAfter
) -> None:
    async with fail_after(90):
        async with town.serving() as here:
            await greeted(town, here)
            here.program.process.terminate()
            assert await here.program.ended() == 0
        file = town.place.home / "gatehouse.db"
        whole = file.read_bytes()
        damaged = whole[:4096] + b"\xa5" * (len(whole) - 4096)
        file.write_bytes(damaged)
        ended = await command(town.place, "serve")
        assert ended.code == 1
        assert "gatehouse.db" in ended.err
        assert "gatehouse backup restore" in ended.err
        assert "Traceback" not in ended.err
        assert file.read_bytes() == damaged
        file.write_bytes(whole)
        await town.on_slack("and now?")
        async with town.serving() as here:
            await here.feed.settled(4)
            assert town.slack_texts() == ["I am here."] * 2


async def test_a_database_that_is_damaged_while_it_runs_is_named_in_the_status(
    town: Town, fail_after: FailAfter
) -> None:
    async with fail_after(90), town.serving() as here:
        await greeted(town, here)
        file = town.place.home / "gatehouse.db"
        with file.open("r+b") as pages:
            pages.seek(4096)
            pages.write(b"\xa5" * (file.stat().st_size - 4096))
        (town.place.home / "gatehouse.db-wal").write_bytes(b"")
        await until_ready(await here.program.url(), ready=False)
        status = await here.client.get("/v1/status")
        assert status["checks"]["database"] is False
        assert "gatehouse.db" in status["reasons"]["database"]
        await here.killed()


async def test_a_disk_that_takes_no_writes_is_said_before_anything_starts(
    town: Town, tmp_path: Path, fail_after: FailAfter
) -> None:
    with disk(tmp_path / "workspace", megabytes=1) as mounted:
        town.place.variables["GATEHOUSE_WORKSPACE__PATH"] = str(mounted.path)
        mounted.read_only()
        async with fail_after(60):
            ended = await command(town.place, "serve")
        assert ended.code == 1
        assert str(mounted.path) in ended.err
        assert "cannot be written" in ended.err
        assert "Traceback" not in ended.err
        assert town.slack.calls == [], "nothing was connected"


async def test_a_broken_configuration_names_the_place_and_connects_nothing(
    town: Town, fail_after: FailAfter
) -> None:
    file = town.configure('[queue\nmode = "collect"\n')
    async with fail_after(60):
        ended = await command(town.place, "serve")
        assert ended.code == 1
        assert str(file) in ended.err
        assert "line" in ended.err
        file.write_text('[slack]\nownerz = ["U0ANNA"]\nconnections = "many"\n')
        both = await command(town.place, "serve")
        assert both.code == 1
        assert "slack.owners" in both.err
        assert "slack.connections" in both.err
    assert "Traceback" not in ended.err + both.err
    assert town.slack.calls == []
