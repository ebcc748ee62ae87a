"""Getting the content of attachments: bounded in bytes, in time and in tries (MSG-19).

Bytes are counted as they come; what the platform says about a size only ever refuses. Nothing
here is inside of a transaction, and nothing waits for ever: a file that cannot be had becomes a
sentence.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Literal

import structlog

from runtime.domain.errors import Forbidden, NotFound, Unavailable
from runtime.domain.messages import Attachment
from runtime.ports.chat import Files
from runtime.ports.clock import Clock

log = structlog.get_logger(__name__)

WAITS_S: Final = (1.0, 3.0, 9.0)
"""Between the tries of one file, where its platform is out of reach."""
AT_ONCE: Final = 6
"""Files that a process holds in memory at once, of all its runs; as many again are listened to."""

FindFiles = Callable[[str, str], Awaitable[Files]]
"""The files of an account, by channel and account; raises as `Files.fetch`."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a file is not there. `reason` is the end of a sentence, for the model and for people."""

    state: Literal["refused", "failed"]
    reason: str


@dataclass(frozen=True, slots=True)
class Allowance:
    """What one file may still have: `most` bytes, of which `rule` says whose limit that is, and
    `within_s` seconds."""

    most: int
    rule: str
    within_s: float


def narrowest(within_s: float, *limits: tuple[int, str]) -> Allowance:
    """The least of limits, each as bytes that are left and the words of its rule."""
    most, rule = min(limits, key=lambda one: one[0])
    return Allowance(max(most, 0), rule, within_s)


@asynccontextmanager
async def within(clock: Clock, seconds: float) -> AsyncIterator[None]:
    """Raise `TimeoutError` from the block once `seconds` have passed by the clock."""
    scope, loop = asyncio.timeout(None), asyncio.get_running_loop()
    async with scope:
        timer = clock.call_later(max(seconds, 0.0), lambda: scope.reschedule(loop.time()))
        try:
            yield
        finally:
            timer.cancel()


class Fetcher:
    """Fetches for all runs of a process."""

    def __init__(self, find: FindFiles, clock: Clock) -> None:
        self._find = find
        self._clock = clock
        self.slots = asyncio.Semaphore(AT_ONCE)
        """The places for a file in memory."""
        self.ears = asyncio.Semaphore(AT_ONCE)
        """Those for a recording that is transcribed, apart from the others, so that a slow
        transcription keeps nobody's picture waiting."""

    async def fetch(
        self, channel: str, account: str, attachment: Attachment, allowed: Allowance
    ) -> bytes | Missing:
        """The content, or why it cannot be had; never raises but for a cancellation."""
        if (attachment.size_bytes or 0) > allowed.most:
            return Missing("refused", allowed.rule)
        try:
            async with within(self._clock, allowed.within_s):
                return await self._tries(channel, account, attachment, allowed)
        except TimeoutError:
            return Missing("failed", "fetching it took too long")

    async def _tries(
        self, channel: str, account: str, attachment: Attachment, allowed: Allowance
    ) -> bytes | Missing:
        for wait in (*WAITS_S, None):
            try:
                files = await self._find(channel, account)
                return await _read(files, attachment, allowed)
            except (Forbidden, NotFound) as error:
                reason = "it is no longer there" if isinstance(error, NotFound) else str(error)
                return Missing("failed", reason.rstrip("."))
            except Unavailable as error:
                log.warning("file_unavailable", channel=channel, reason=str(error))
            if wait is not None:
                await self._clock.sleep(wait)
        return Missing("failed", f"{channel} could not be reached, although I tried several times")


async def _read(files: Files, attachment: Attachment, allowed: Allowance) -> bytes | Missing:
    pieces, size = list[bytes](), 0
    stream = files.fetch(attachment)
    close = getattr(stream, "aclose", None)
    try:
        async for piece in stream:
            size += len(piece)
            if size > allowed.most:
                return Missing("refused", allowed.rule)
            pieces.append(piece)
    finally:
        if close is not None:
            await close()
    return b"".join(pieces)
