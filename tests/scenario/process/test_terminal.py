"""The terminal chat of the real program in a real terminal: keys go in, the screen comes out."""

import asyncio
import fcntl
import os
import pty
import re
import struct
import sys
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gateway.cli.client import GatewayClient
from tests.conftest import FailAfter
from tests.scenario.process.program import ADMIN, Place, gateway
from tests.scenario.process.talk import conversation, followed

pytestmark = pytest.mark.requirement("TTY-1")
CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[P\]].*?(?:\x07|\x1b\\)|\x1b.", re.DOTALL)
CTRL_C, CTRL_D, CTRL_Y = "\x03", "\x04", "\x19"


class Terminal:
    """A program with a terminal of 100 by 30; what it drew, without what steers the terminal."""

    def __init__(self, process: asyncio.subprocess.Process, end: int) -> None:
        self.process = process
        self._end = end
        self._raw = b""
        self._drawn = asyncio.Event()
        asyncio.get_running_loop().add_reader(end, self._read)

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self._end, keys.encode())

    async def shows(self, text: str) -> None:
        """Wait until something was drawn; what was drawn before it is forgotten."""
        while text not in self.drawn:
            self._drawn.clear()
            try:
                await self._drawn.wait()
            except asyncio.CancelledError as error:
                error.add_note(f"waited for {text!r} and saw:\n{self.drawn}")
                raise
        self._raw = b""

    @property
    def drawn(self) -> str:
        return CONTROL.sub("", self._raw.decode(errors="replace"))

    async def ended(self) -> int:
        return await self.process.wait()

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._end)
        os.close(self._end)

    def _read(self) -> None:
        try:
            self._raw += os.read(self._end, 1 << 16)
        except OSError:  # nobody holds the other end any more
            asyncio.get_running_loop().remove_reader(self._end)
        self._drawn.set()


@asynccontextmanager
async def running(place: Place) -> AsyncIterator[str]:
    """Where a gateway answers: a chat that finds none starts its own."""
    async with gateway(place) as program:
        yield await program.url()


@asynccontextmanager
async def terminal(place: Place, *arguments: str) -> AsyncIterator[Terminal]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gateway", *arguments),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=place.path,
        env={**place.environment(), "TERM": "xterm-256color", "LANG": "C.UTF-8"},
        start_new_session=True,
        # The terminal that its Ctrl+C comes from.
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    shown = Terminal(process, ours)
    try:
        yield shown
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        shown.close()


async def until_run_is(url: str, state: str) -> None:
    """Wait until the one run came so far."""
    async with (
        GatewayClient(url, ADMIN) as client,
        conversation(url) as talk,
        followed(talk) as news,
    ):
        while [one["state"] for one in await client.items("/v1/runs")] != [state]:
            news.clear()
            await news.wait()


LONG = "run `sleep 600`"
"""What a person allows, and then does not want any more."""


async def test_ctrl_c_in_the_chat_stops_the_run_first_and_then_leaves(
    place: Place, fail_after: FailAfter
) -> None:
    async with fail_after(60), running(place) as url, terminal(place, "chat") as screen:
        await screen.shows("Write a message")
        screen.press("/sta")
        await screen.shows("/status")
        screen.press("\t")
        await screen.shows("/status")
        screen.press("\r")
        await screen.shows("now: idle")
        screen.press(f"{LONG}\r")
        await screen.shows("Ctrl+Y allow")
        screen.press(CTRL_Y)
        await screen.shows("Allowed by")
        screen.press(CTRL_C)
        await screen.shows("Ctrl+C again leaves")
        await until_run_is(url, "cancelled")
        assert screen.process.returncode is None
        screen.press(CTRL_C)
        assert await screen.ended() == 0
        assert "continues" not in screen.drawn


async def test_who_leaves_while_a_run_is_at_work_is_told_that_it_goes_on(
    place: Place, fail_after: FailAfter
) -> None:
    async with fail_after(60), running(place) as url, terminal(place, "chat") as screen:
        await screen.shows("Write a message")
        screen.press(f"{LONG}\r")
        await screen.shows("Ctrl+Y allow")
        screen.press(CTRL_D)
        assert await screen.ended() == 0
        assert "continues without you: `gatehouse runs list` shows it" in screen.drawn
        await until_run_is(url, "waiting_for_approval")


async def test_ctrl_c_stops_the_run_of_one_message(place: Place, fail_after: FailAfter) -> None:
    place.configure('[policy]\nallow = ["exec(sleep:*)"]\n')
    async with fail_after(60), running(place) as url, terminal(place, "chat", "-m", LONG) as screen:
        await until_run_is(url, "running")
        screen.press(CTRL_C)
        assert await screen.ended() == 130
        assert "stopping the run" in screen.drawn
        await until_run_is(url, "cancelled")
