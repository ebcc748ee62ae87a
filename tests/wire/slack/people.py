"""What people do in Slack, and the events that Slack sends about it.

The application hears of a channel only when it is a member. A mention in a channel causes both
``app_mention`` and `message`, with the same `ts`; in a direct conversation there is only `message`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.wire.slack import events
from tests.wire.slack.core import Core
from tests.wire.slack.deliveries import Delivery
from tests.wire.slack.present import message_json
from tests.wire.slack.state import Channel, Experience, JsonObject, Message, Upload


@dataclass(frozen=True, slots=True)
class Said:
    """A thing that a person did: where it happened and the deliveries it caused."""

    channel: str
    ts: str
    deliveries: tuple[Delivery, ...] = field(default=(), repr=False)


class People(Core):
    """Acts of people. Each returns when its events are on their way."""

    async def user_says(
        self,
        channel: str,
        user: str,
        text: str,
        thread_ts: str | None = None,
        *,
        mention: bool = False,
        mention_last: bool = False,
        files: Sequence[Upload] = (),
    ) -> Said:
        """A person writes. `mention` puts the application's mention before the text.

        `mention_last` sends the `message` event before its ``app_mention`` twin.
        """
        place = self._place(channel, user)
        if thread_ts is not None and place.root_of(thread_ts) is None:
            raise LookupError(f"{thread_ts} starts no thread in {channel}")
        body = f"<@{self.install.bot_user}> {text}" if mention else text
        stored = [self.workspace.add_file(upload, user) for upload in files]
        for each in stored:
            each.shared_in.append(channel)
        message = self.workspace.store(
            Message(
                channel=channel,
                ts=self.workspace.next_ts(),
                text=body,
                user=user,
                thread_ts=thread_ts,
                client_msg_id=self.workspace.new_id("client-"),
                subtype="file_share" if stored else None,
                files=stored,
                blocks=_typed_by_hand(body),
            )
        )
        told = [events.posted(self.workspace, message, self.base_url)]
        if f"<@{self.install.bot_user}>" in body and place.kind != "im":
            twin = events.mentioned(self.workspace, message, self.base_url)
            told = [*told, twin] if mention_last else [twin, *told]
        return await self._said(place, message.ts, told)

    async def other_bot_says(
        self,
        channel: str,
        text: str,
        *,
        thread_ts: str | None = None,
        name: str = "deploybot",
        in_name_of: str | None = None,
    ) -> Said:
        """A message of another application, as `bot_message` with a foreign `bot_id`; with the
        token of the person `in_name_of` it carries their `user` beside it, and no subtype."""
        place = self.workspace.channels[channel]
        message = self.workspace.store(
            Message(
                channel=channel,
                ts=self.workspace.next_ts(),
                text=text,
                user=in_name_of,
                bot_id="B0OTHER",
                subtype=None if in_name_of else "bot_message",
                username=None if in_name_of else name,
                thread_ts=thread_ts,
            )
        )
        event = events.posted(self.workspace, message, self.base_url)
        return await self._said(place, message.ts, [event])

    async def user_shares(
        self,
        channel: str,
        user: str,
        said: Said,
        comment: str = "",
        *,
        thread_ts: str | None = None,
    ) -> Said:
        """A person forwards a message of another channel, with words of their own or without."""
        place = self._place(channel, user)
        _, original, _ = self._existing(said.channel, said.ts)
        shared: JsonObject = {
            "ts": original.ts,
            "author_id": original.user,
            "channel_id": said.channel,
            "channel_team": self.install.team_id,
            "is_msg_unfurl": True,
            "is_share": True,
            "message_blocks": [
                {"team": self.install.team_id, "channel": said.channel, "ts": original.ts}
                | {"message": {"blocks": original.blocks}}
            ],
            "id": 1,
            "original_url": f"{self.base_url}/archives/{said.channel}/p{original.ts}",
            "fallback": original.text,
            "text": original.text,
            "mrkdwn_in": ["text"],
        }
        message = self.workspace.store(
            Message(
                channel=channel,
                ts=self.workspace.next_ts(),
                text=comment,
                user=user,
                thread_ts=thread_ts,
                client_msg_id=self.workspace.new_id("client-"),
                blocks=_typed_by_hand(comment),
                attachments=[shared],
            )
        )
        event = events.posted(self.workspace, message, self.base_url)
        return await self._said(place, message.ts, [event])

    async def user_edits(self, channel: str, ts: str, text: str) -> Said:
        """The author changes a message: ``message_changed``."""
        place, message, before = self._existing(channel, ts)
        message.revisions.append(message.text)
        message.text, message.blocks = text, _typed_by_hand(text)
        message.edited_by, message.edited_ts = message.user, self.workspace.next_ts()
        event = events.changed(self.workspace, message, before, self.base_url)
        return await self._said(place, ts, [event])

    async def user_deletes(self, channel: str, ts: str) -> Said:
        """The author deletes a message: ``message_deleted``."""
        place, message, before = self._existing(channel, ts)
        message.deleted = True
        return await self._said(place, ts, [events.deleted(self.workspace, message, before)])

    async def slack_unfurls(self, channel: str, ts: str) -> Said:
        """Slack adds a link preview: ``message_changed`` without an edit by a person."""
        place, message, before = self._existing(channel, ts)
        message.attachments = [{"from_url": "https://example.test/", "title": "Example"}]
        event = events.changed(self.workspace, message, before, self.base_url)
        return await self._said(place, ts, [event])

    async def user_joins(self, channel: str, user: str) -> Said:
        place = self.workspace.channels[channel]
        place.members.add(user)
        ts = self.workspace.next_ts()
        return await self._said(place, ts, events.joined(self.workspace, place, user, ts))

    async def user_reacts(
        self, channel: str, ts: str, user: str, name: str, *, remove: bool = False
    ) -> Said:
        place, message, _ = self._existing(channel, ts)
        people = message.reactions.setdefault(name, [])
        if remove:
            people.remove(user)
        else:
            people.append(user)
        if not people:
            del message.reactions[name]
        event = events.reaction(self.workspace, message, user=user, name=name, added=not remove)
        return await self._said(place, ts, [event])

    async def user_opens_assistant(self, user: str, context: str | None = None) -> Said:
        """A person starts an assistant thread; `context` is the channel they look at.

        `Said.ts` is the thread's `thread_ts`; what they then write goes into that thread.
        """
        self._must_have("assistant")
        place = self.workspace.channels[self.workspace.im(user)]
        root = self.workspace.store(
            Message(
                channel=place.id,
                ts=self.workspace.next_ts(),
                text="New Assistant Thread",
                user=self.install.bot_user,
                bot_id=self.install.bot_id,
                subtype="assistant_app_thread",
                assistant_title="New Assistant Thread",
            )
        )
        started = events.assistant_thread(
            self.workspace, "assistant_thread_started", root, user=user, context=context
        )
        return await self._said(place, root.ts, [started])

    async def user_changes_context(self, thread: Said, user: str, context: str) -> Said:
        """The person looks at another channel while the assistant thread is open."""
        place = self.workspace.channels[thread.channel]
        event = events.assistant_thread(
            self.workspace,
            "assistant_thread_context_changed",
            place.messages[thread.ts],
            user=user,
            context=context,
        )
        return await self._said(place, thread.ts, [event])

    async def user_looks_at(self, user: str, *channels: str, entities: object = None) -> Said:
        """The person looks at other channels, or at `entities`: agent view alone."""
        self._must_have("agent")
        team = self.install.team_id
        shown = [
            {"type": "slack#/types/channel_id", "value": channel, "team_id": team}
            for channel in channels
        ]
        self.workspace.looking[user] = entities if isinstance(entities, list) else shown
        event = events.context_changed(self.workspace, user)
        place = self.workspace.channels[str(event["channel"])]
        return await self._said(place, str(event["event_ts"]), [event])

    async def user_stops(self, channel: str, user: str, thread_ts: str) -> Said:
        """The person presses Slack's own stop: running streams of the thread end with it."""
        place = self._place(channel, user)
        for message in place.replies(thread_ts):
            if message.streaming == "in_progress":
                message.streaming = "stopped_by_user"
        event = events.session_stopped(self.workspace, place.messages[thread_ts], user)
        return await self._said(place, str(event["event_ts"]), [event])

    async def user_opens_home(self, user: str, tab: str = "home") -> Said:
        event = events.home_opened(self.workspace, user, tab)
        place = self.workspace.channels[str(event["channel"])]
        return await self._said(place, str(event["event_ts"]), [event])

    async def stream_ends(self, channel: str, ts: str, *, by_user: bool = False) -> None:
        """Slack closes a stream that is too old, or the person presses stop."""
        message = self.workspace.channels[channel].messages[ts]
        message.streaming = "stopped_by_user" if by_user else "completed"
        await self.changed()

    async def _said(self, place: Channel, ts: str, told: Sequence[JsonObject]) -> Said:
        deliveries: list[Delivery] = []
        if self.install.bot_user in place.members:
            for event in told:
                delivery = await self.tell(event)
                deliveries += [delivery] if delivery is not None else []
        await self.changed()
        return Said(place.id, ts, tuple(deliveries))

    def _must_have(self, experience: Experience) -> None:
        if self.install.experience != experience:
            raise LookupError(f"the application does not have Slack's {experience} view")

    def _place(self, channel: str, user: str) -> Channel:
        place = self.workspace.channels[channel]
        if user not in place.members:
            raise LookupError(f"{user} is not in {channel}: let them join first")
        return place

    def _existing(self, channel: str, ts: str) -> tuple[Channel, Message, JsonObject]:
        place = self.workspace.channels[channel]
        message = place.messages[ts]
        return place, message, message_json(self.workspace, message, self.base_url)


def _typed_by_hand(text: str) -> list[JsonObject]:
    """The rich text block that Slack adds to what people write."""
    section: JsonObject = {
        "type": "rich_text_section",
        "elements": [{"type": "text", "text": text}],
    }
    return [{"type": "rich_text", "elements": [section]}] if text else []
