"""`gatehouse agents tree` against a gateway at work: once, as lines for a pipe, as a picture."""

import asyncio
import os
import pty
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.conftest import FailAfter
from tests.scenario.gateway.page import Page
from tests.scenario.gateway.town import Town
from tests.scenario.process.program import Place, command, gateway, reaching
from tests.wire.openai import Answer, Prompt, calls, says, use

BATCH = [
    {"task": "Explore the north.", "id": "north"},
    {"task": "Compare.", "id": "compare", "depends_on": ["north"]},
]


def plays(prompt: Prompt) -> Answer:
    """Two go out, of whom one waits for the other, who waits for the test."""
    if "You are the subagent north" in prompt.text:
        return says("", hold="north", ending="Ice.")
    if "You are the subagent" in prompt.text:
        return says("Colder than here.")
    if "accepted" in prompt.text:
        return says("On their way.")
    return calls(use("sessions_spawn", mode="background", agents=BATCH))


@asynccontextmanager
async def on_a_terminal(place: Place, *arguments: str) -> AsyncIterator["Screen"]:
    """A command whose output is a terminal; killed when the block ends before it does."""
    ours, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "gateway",
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=theirs,
        stderr=asyncio.subprocess.PIPE,
        cwd=place.path,
        env={**place.environment(), "TERM": "xterm", "COLUMNS": "100", "LINES": "30"},
    )
    os.close(theirs)
    screen = Screen(process)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    file = os.fdopen(ours, "rb", buffering=0)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), file)
    reading = asyncio.create_task(screen.read(reader), name="terminal")
    try:
        yield screen
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()
        reading.cancel()
        await asyncio.wait([reading])
        transport.close()


class Screen:
    """What was written to a terminal."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.written = ""
        self._changed = asyncio.Event()

    async def read(self, reader: asyncio.StreamReader) -> None:
        """Keep what comes until it ends."""
        while piece := await reader.read(4096):
            self.written += piece.decode(errors="replace")
            self._changed.set()

    async def until(self, text: str) -> None:
        """Wait until it was written."""
        while text not in self.written:
            self._changed.clear()
            await self._changed.wait()


@pytest.mark.requirement("AGT-2", "OPS-2")
async def test_the_tree_is_shown_and_watched(town: Town, fail_after: FailAfter) -> None:
    town.model.plays = plays
    async with fail_after(90), town.serving() as here:
        there = reaching(town.place, await here.program.url())
        page = await Page.open(here.client)
        empty = await command(there, "agents", "tree", page.session_id)
        assert (empty.code, empty.out) == (0, "No subagents here.\n")
        unknown = await command(there, "agents", "tree", "ses_nobody")
        assert unknown.code == 1
        await page.says("look around")
        await town.model.gate("north").entered.wait()
        one = await command(there, "agents", "tree")
        assert [line.split()[:3] for line in one.out.splitlines()[2:]] == [
            ["north", "explore", "running"],
            ["compare", "explore", "waiting"],
        ]

        watch = ("agents", "tree", page.session_id, "--watch")
        async with gateway(there, *watch) as lines, on_a_terminal(there, *watch) as screen:
            await lines.until(lines.out, lambda line: line.startswith("compare"))
            await screen.until("waiting")
            town.model.gate("north").opened.set()
            await lines.until(lines.out, lambda line: line.startswith("north (explore) completed"))
            await lines.until(lines.out, lambda line: line.startswith("compare (explore) complet"))
            assert "\x1b" not in lines.transcript
            await screen.until("2 completed")
            assert "\x1b[2K" in screen.written or "\x1b[1A" in screen.written, "drawn in place"
            for watching in (lines.process, screen.process):
                watching.send_signal(signal.SIGINT)
            assert await lines.ended() == 0
            assert lines.err == ["Watching. Ctrl+C ends it."]
            assert await screen.process.wait() == 0


@pytest.mark.requirement("OPS-2")
async def test_watching_outlives_the_gateway(town: Town, fail_after: FailAfter) -> None:
    town.model.plays = plays
    async with fail_after(60), town.serving() as here:
        there = reaching(town.place, await here.program.url())
        async with gateway(there, "agents", "tree", "--watch") as watching:
            await watching.until(watching.err, lambda line: line.startswith("Watching"))
            await here.killed()
            away = await watching.until(watching.err, lambda line: "Trying again" in line)
            assert "gateway" in away
            watching.signal(signal.SIGINT)
            assert await watching.ended() == 0
            assert "Traceback" not in watching.transcript


@pytest.mark.requirement("MSG-12")
async def test_agents_shows_the_tree_in_every_channel(town: Town, fail_after: FailAfter) -> None:
    town.model.plays = plays
    async with fail_after(90), town.serving() as here:
        page = await Page.open(here.client)
        await town.on_slack("look around")
        town.on_telegram("look around")
        await page.says("look around")
        for texts, until in (
            (town.slack_texts, town.slack.until),
            (town.telegram_texts, town.telegram.state.signal.until),
        ):
            await until(lambda texts=texts: "On their way." in texts())
        while len(town.rows("SELECT name FROM agents WHERE name = 'north'")) < 3:
            await here.feed.next()
        await town.on_slack("!agents")
        town.on_telegram("/agents")
        await page.says("/agents")
        await town.slack.until(lambda: any(map(shows_both, town.slack_texts())))
        await town.telegram.state.signal.until(lambda: any(map(shows_both, town.telegram_texts())))
        while not any(map(shows_both, await page.texts("notice"))):
            await here.feed.next()
        town.model.gate("north").opened.set()


def shows_both(text: str) -> bool:
    """Whether a text is the answer of `/agents`: the sums, and a line for each."""
    head, *lines = text.replace("`", "").splitlines()
    named = [one for one in lines if " explore, " in one]
    return head.startswith("2 subagents, 2 at work: ") and len(named) == 2
