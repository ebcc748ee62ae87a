"""How the gateway that is going to be killed shows its texts while they grow.

On a platform that can be asked, a text grows in a post that is found again, as on Slack. On one
that cannot, it grows as a draft in a direct chat and in a post elsewhere, as on Telegram.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any

from adapters.system.clock import SystemClock
from runtime.domain.messages import ChatAddress, OutboundMessage, Receipt, TextPart
from runtime.ports.chat import Posted
from runtime.ports.model import ModelRequest, ModelResponse, TextChunk
from tests.fakes.model import Said, ScriptedModel

INTERVAL_S = 0.1
ENDING = " That is what I know of it, and it is all that I have to say."
"""Of every text of the model, so that half of one is told from a whole one."""
PIECES = 3
Ask = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


def whole(text: str) -> bool:
    """Whether nothing is missing at the end of a text of the model."""
    return text.endswith(ENDING)


def slowly(text: str, *calls: tuple[str, str]) -> Said:
    """A response that comes in pieces, of which each is worth showing."""
    said = text + ENDING
    return Said(said, calls=calls, chunk=-(-len(said) // PIECES))


class Shown:
    """What of each run's text the platform shows; a model waits for it between two pieces."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._texts: dict[str, str] = {}
        self._changed = asyncio.Event()

    def note(self, message: OutboundMessage) -> None:
        """The platform shows a message so far."""
        self._texts[message.run_id or ""] = text_of(message)
        self._changed.set()

    async def until(self, run_id: str, text: str) -> None:
        """Until a run's text is seen, or for `patience_s` seconds of the machine's clock: another
        process may be the deliverer, and not everything is shown."""
        began = SystemClock().monotonic()
        while self._texts.get(run_id) != text:
            left = began + self._patience_s - SystemClock().monotonic()
            if left <= 0:
                return
            self._changed.clear()
            timer = SystemClock().call_later(left, self._changed.set)
            await self._changed.wait()
            timer.cancel()


class SlowModel(ScriptedModel):
    """Says nothing more until what it has said is shown."""

    shown: Shown

    async def respond(
        self, request: ModelRequest
    ) -> AsyncGenerator[TextChunk | ModelResponse, None]:
        """As `Model.respond`."""
        said, pieces = "", 0
        async for item in super().respond(request):
            yield item
            if isinstance(item, TextChunk):
                said, pieces = said + item.text, pieces + 1
                if pieces < PIECES:
                    await self.shown.until(request.run_id, said)


class SocketStreams:
    """`Streams` on a platform in another process, which is asked by `ask`."""

    def __init__(self, ask: Ask, shown: Shown, *, lookup: bool) -> None:
        self._ask = ask
        self._shown = shown
        self._lookup = lookup

    def interval_s(self, target: ChatAddress) -> float | None:
        return INTERVAL_S

    def grows_by_edits(self, target: ChatAddress, stream: str | None) -> bool:
        if stream is None:
            return self._lookup or target.chat_kind != "direct"
        return stream != ""

    def ends_by_edit(
        self, message: OutboundMessage, stream: str, *, shown: OutboundMessage | None = None
    ) -> bool:
        return stream != ""

    async def open(self, message: OutboundMessage) -> str:
        if self._lookup or message.target.chat_kind != "direct":
            answer = await self._ask(_request("post", message))
            self._shown.note(message)
            return str(answer["id"])
        await self._draft(message)
        return ""

    async def grow(self, message: OutboundMessage, stream: str) -> None:
        if not stream:
            await self._draft(message)
            return
        await self._ask(_request("grow", message) | {"of": stream})
        self._shown.note(message)

    async def close(
        self,
        message: OutboundMessage,
        stream: str,
        *,
        posted: Sequence[str],
        on_posted: Posted,
        shown: OutboundMessage | None = None,
    ) -> Receipt:
        if posted:
            return Receipt(message_ids=tuple(posted))
        if stream:
            await self._ask(_request("close", message) | {"of": stream})
            return Receipt(message_ids=(stream,))
        answer = await self._ask(_request("post", message))
        await on_posted(answer["id"])
        return Receipt(message_ids=(answer["id"],))

    async def find(self, message: OutboundMessage) -> str | None:
        if not self._lookup:
            return None
        found = await self._ask({"op": "lookup", "outbox_id": message.outbox_id})
        return found["id"] and str(found["id"])

    async def _draft(self, message: OutboundMessage) -> None:
        await self._ask(_request("draft", message))
        self._shown.note(message)


def text_of(message: OutboundMessage) -> str:
    """The words of a message's first part; what it is where it has none."""
    part = message.parts[0]
    return part.markdown if isinstance(part, TextPart) else part.kind


def _request(operation: str, message: OutboundMessage) -> dict[str, Any]:
    return {"op": operation, "outbox_id": message.outbox_id, "text": text_of(message)}
