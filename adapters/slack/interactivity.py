"""Presses and forms: to the engine, and its answer to the person who pressed, and nobody else; and
the App Home, published when a person opens it, and after what they did there.

Slack never repeats a press. So a store that is away is told to the person, who presses again.
"""

import structlog

from adapters.rendering import render_slack
from adapters.slack.ack_deadline import best_effort
from adapters.slack.actions import FIELD, HOME, Press, Submission, read_interaction
from adapters.slack.cards import form, home_view
from adapters.slack.client import SlackClient
from adapters.slack.directory import Directory
from adapters.slack.ingress import CHANNEL, Bot, Ignored
from adapters.slack.socket_mode import Ack
from runtime.domain.errors import StoreUnavailable
from runtime.domain.messages import ButtonPress
from runtime.domain.people import Sender
from runtime.domain.value import JsonObject
from runtime.ports.clock import Clock
from runtime.ports.gatehouse import Gatehouse, Pressed

log = structlog.get_logger(__name__)

NOT_STORED = "This could not be stored just now. Please do it again in a moment."


class Interactivity:
    """The buttons, forms and App Homes of one workspace."""

    def __init__(self, client: SlackClient, bot: Bot, directory: Directory, clock: Clock) -> None:
        self._client = client
        self._bot = bot
        self._directory = directory
        self._clock = clock

    async def act(self, payload: JsonObject, gatehouse: Gatehouse) -> Ack:
        """What a person did; the acknowledgement holds what their form is answered."""
        done = read_interaction(payload)
        if isinstance(done, Ignored):
            log.info("slack.ignored", reason=done.reason)
            return Ack()
        if isinstance(done, Submission):
            return await self._submitted(done, gatehouse)
        if done.form:
            await self._open_form(done)
            return Ack()
        pressed = await self._press(done, gatehouse)
        await self._tell(done, pressed.text, gatehouse)
        return Ack()

    async def publish_home(self, user: str, gatehouse: Gatehouse, *, note: str = "") -> None:
        """Show it as it is now. What Slack refuses is logged. Raises `StoreUnavailable`."""
        name = await self._directory.name(user)
        sender = Sender(id=user, name=name, timezone=self._directory.zone(user))
        home = await gatehouse.home(channel=CHANNEL, account=self._bot.team_id, sender=sender)
        view = home_view(home, note)
        async with best_effort(self._clock, log.warning, "slack.no_home"):
            await self._client.write("views.publish", {"user_id": user, "view": view})

    async def _submitted(self, sent: Submission, gatehouse: Gatehouse) -> Ack:
        pressed = await self._press(sent, gatehouse)
        if not pressed.accepted:
            # The form stays on the screen with what was written, and says why.
            return Ack({"response_action": "errors", "errors": {FIELD: pressed.text}})
        if sent.chat == HOME:
            await self.publish_home(sent.user, gatehouse, note=pressed.text)
        return Ack()

    async def _press(self, done: Press | Submission, gatehouse: Gatehouse) -> Pressed:
        name = await self._directory.name(done.user) or done.user_name
        press = ButtonPress(
            channel=CHANNEL,
            account=self._bot.team_id,
            chat_id=done.chat,
            sender=Sender(id=done.user, name=name, timezone=self._directory.zone(done.user)),
            open_call_id=done.call,
            choice=done.choice,
            press_id=done.press_id,
            received_at_ms=self._clock.now_ms(),
            text=done.text if isinstance(done, Submission) else "",
        )
        try:
            return await gatehouse.press(press)
        except StoreUnavailable as error:
            log.warning("slack.press_not_stored", reason=str(error))
            return Pressed(accepted=False, text=NOT_STORED)

    async def _open_form(self, press: Press) -> None:
        view = form(press.call, press.choice, press.chat)
        body: JsonObject = {"trigger_id": press.trigger, "view": view}
        async with best_effort(self._clock, log.warning, "slack.no_form"):
            await self._client.write("views.open", body)

    async def _tell(self, press: Press, text: str, gatehouse: Gatehouse) -> None:
        if press.chat == HOME:
            await self.publish_home(press.user, gatehouse, note=text)
            return
        rendered = render_slack(text)
        if not rendered:
            return
        body: JsonObject = {
            "channel": press.chat,
            "user": press.user,
            "text": rendered[0].text,
        }
        if press.thread is not None:
            body["thread_ts"] = press.thread
        async with best_effort(self._clock, log.info, "slack.press_unanswered"):
            await self._client.write("chat.postEphemeral", body)
