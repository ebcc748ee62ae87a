"""What one update is to the engine: stored or applied before this returns (MSG-1).

The poller and the webhook bring updates; both confirm them afterwards. What goes back to Telegram
from here (the answer to a press, a greeting) is best effort and never holds an update back.
"""

from collections.abc import Sequence

import structlog

from adapters.platforms.recent_values import Recent
from adapters.telegram import ingress
from adapters.telegram.callbacks import Seal
from adapters.telegram.client import TelegramClient
from adapters.telegram.failures import TelegramFailure
from adapters.telegram.ingress import CHANNEL, Bot, Heard, Ignored, Joined, Pressing
from runtime.domain.messages import ButtonPress, InboundMessage, Move
from runtime.domain.value import JsonObject
from runtime.ports.clock import Clock
from runtime.ports.gatehouse import Gatehouse, Pressed

log = structlog.get_logger(__name__)

# `answerCallbackQuery`: 0-200 characters.
MOST_ANSWER = 200
# Best effort must not keep people's messages waiting.
ANSWER_TIMEOUT_S = 10.0
_FORGED = Pressed(
    accepted=False,
    text="I do not know this button. It may be from before my token was changed.",
)
_MANY = 1_000


class Hearing:
    """Takes the updates of one bot."""

    def __init__(
        self, client: TelegramClient, clock: Clock, seal: Seal, *, greeting: bool = True
    ) -> None:
        self._client = client
        self._greeting = greeting
        self._clock = clock
        self._seal = seal
        self._greeted: Recent[str, bool] = Recent(_MANY)
        self._addressed: Recent[tuple[str, str], bool] = Recent(_MANY)

    async def take(self, updates: Sequence[JsonObject], bot: Bot, gatehouse: Gatehouse) -> None:
        """One update, or all the parts of an album. Raises `Unavailable`: it must come again."""
        now_ms = self._clock.now_ms()
        heard = [ingress.read_update(update, bot, received_at_ms=now_ms) for update in updates]
        for one in heard:
            if isinstance(one, Ignored):
                tell = log.warning if one.strange else log.debug
                tell("telegram.ignored", reason=one.reason)
        messages = [one for one in heard if isinstance(one, InboundMessage)]
        if len(messages) > 1:
            await gatehouse.accept(ingress.as_one(messages))
            return
        for one in heard:
            await self._apply(one, bot, gatehouse)

    async def _apply(self, heard: Heard, bot: Bot, gatehouse: Gatehouse) -> None:
        match heard:
            case InboundMessage(edited_at=None):
                await gatehouse.accept(self._with_its_album(heard))
            case InboundMessage():
                await gatehouse.revise(heard)
            case Pressing():
                await self._answer(heard, await self._pressed(heard, bot, gatehouse))
            case Move():
                await gatehouse.move(heard)
            case Joined():
                await self._greet(heard, bot)

    def _with_its_album(self, part: InboundMessage) -> InboundMessage:
        """A webhook brings the parts one by one, and only one of them mentions the bot.

        Best effort: another replica may have heard that one.
        """
        if part.album is None:
            return part
        album = (part.chat_id, part.album)
        if part.mentions_bot or part.replies_to_bot:
            self._addressed.put(album, True)
        elif self._addressed.get(album):
            return part.model_copy(update={"mentions_bot": True})
        return part

    async def _pressed(self, press: Pressing, bot: Bot, gatehouse: Gatehouse) -> Pressed:
        chosen = self._seal.read(press.data)
        if chosen is None:
            log.warning("telegram.forged_button", user=press.sender.id, chat=press.chat_id)
            return _FORGED
        return await gatehouse.press(
            ButtonPress(
                channel=CHANNEL,
                account=str(bot.id),
                chat_id=press.chat_id,
                sender=press.sender,
                open_call_id=chosen.open_call_id,
                choice=chosen.choice,
                option=chosen.option,
                press_id=press.query_id,
                received_at_ms=self._clock.now_ms(),
            )
        )

    async def _answer(self, press: Pressing, pressed: Pressed) -> None:
        """Shown to the presser alone; a refusal stays until they close it."""
        text = pressed.text
        if len(text) > MOST_ANSWER:
            text = f"{text[: MOST_ANSWER - 1]}\N{HORIZONTAL ELLIPSIS}"
        await self._tell(
            "answerCallbackQuery",
            {
                "callback_query_id": press.query_id,
                "text": text,
                "show_alert": not pressed.accepted,
            },
        )

    async def _greet(self, joined: Joined, bot: Bot) -> None:
        """Once: Telegram tells of the same joining again until it was confirmed."""
        if not self._greeting or self._greeted.get(joined.chat_id):
            return
        self._greeted.put(joined.chat_id, True)
        text = (
            f"Hello. Mention me as @{bot.username}, or reply to me, and I answer. If I stay "
            f"silent, my owner has to allow this group first: its id is {joined.chat_id}."
        )
        await self._tell("sendMessage", {"chat_id": int(joined.chat_id), "text": text})

    async def _tell(self, method: str, payload: JsonObject) -> None:
        try:
            await self._client.call(method, payload, timeout_s=ANSWER_TIMEOUT_S)
        except TelegramFailure as failure:
            # A query is answered within seconds or never: "query is too old".
            log.info("telegram.not_told", method=method, reason=str(failure))
