"""The workspace behind the wire server: people, channels, messages, files and their ids.

It holds what a Slack workspace remembers and hands out ids and `ts` values. It refuses to know
HTTP, sockets, arguments or events; those modules change it and tell the world about it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

JsonObject: TypeAlias = dict[str, object]
ChannelKind = Literal["channel", "group", "im", "mpim"]
Experience = Literal["agent", "assistant"]
"""What a person sees of an application: one of Slack's two experiences for agents."""

ANNA = "U0ANNA"
BEN = "U0BEN"
GENERAL = "C0GENERAL"

#: Every event that an installed application may subscribe to and that this server can send.
ALL_EVENTS = frozenset(
    {
        "agent_session_stopped",
        "app_context_changed",
        "app_home_opened",
        "app_mention",
        "assistant_thread_context_changed",
        "assistant_thread_started",
        "member_joined_channel",
        "message.channels",
        "message.groups",
        "message.im",
        "message.mpim",
        "reaction_added",
        "reaction_removed",
    }
)


class Ticks:
    """A counter that stands for the clock: each call is one second later."""

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._at = start

    def __call__(self) -> float:
        self._at += 1.0
        return self._at


@dataclass(frozen=True, slots=True, kw_only=True)
class Install:
    """One installed application: its ids, its credentials, what it may do and hears.

    `scopes` None means every scope; a set answers ``missing_scope`` for the rest.
    """

    team_id: str = "T0TEAM"
    team_name: str = "Test Team"
    app_id: str = "A0APP"
    bot_id: str = "B0BOT"
    bot_user: str = "U0BOT"
    bot_name: str = "gatehouse"
    bot_token: str = "xoxb-test-token"
    app_token: str = "xapp-test-token"
    signing_secret: str = "test-signing-secret"
    scopes: frozenset[str] | None = None
    events: frozenset[str] = ALL_EVENTS
    experience: Experience | None = "assistant"


@dataclass(slots=True, kw_only=True)
class User:
    id: str
    name: str
    real_name: str
    email: str
    is_bot: bool = False
    deleted: bool = False
    timezone: str = "Europe/Berlin"


@dataclass(slots=True, kw_only=True)
class StoredFile:
    id: str
    name: str
    title: str
    mimetype: str
    user: str
    created: int
    content: bytes | None = None
    expected: int | None = None
    shared_in: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that a person attaches to a message."""

    name: str
    content: bytes
    mimetype: str = "text/plain"


@dataclass(slots=True, kw_only=True)
class Message:
    """A message as the workspace holds it. `ts` is its identity inside its channel."""

    channel: str
    ts: str
    text: str = ""
    user: str | None = None
    bot_id: str | None = None
    thread_ts: str | None = None
    subtype: str | None = None
    username: str | None = None
    client_msg_id: str | None = None
    blocks: list[JsonObject] = field(default_factory=list)
    attachments: list[JsonObject] = field(default_factory=list)
    metadata: JsonObject | None = None
    files: list[StoredFile] = field(default_factory=list)
    reactions: dict[str, list[str]] = field(default_factory=dict)
    edited_by: str | None = None
    edited_ts: str | None = None
    ephemeral_to: str | None = None
    streaming: Literal["in_progress", "completed", "stopped_by_user"] | None = None
    deleted: bool = False
    assistant_title: str | None = None
    revisions: list[str] = field(default_factory=list)

    @property
    def visible_text(self) -> str:
        """What a person reads: the texts of the blocks, else the text."""
        return "\n".join(texts_in(self.blocks)) if self.blocks else self.text


def texts_in(value: object) -> Iterator[str]:
    """Every `text` string inside blocks, in order."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key == "text" and isinstance(inner, str):
                yield inner
            else:
                yield from texts_in(inner)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for inner in value:
            yield from texts_in(inner)


@dataclass(slots=True, kw_only=True)
class Channel:
    id: str
    name: str
    kind: ChannelKind = "channel"
    members: set[str] = field(default_factory=set)
    archived: bool = False
    messages: dict[str, Message] = field(default_factory=dict)

    def root_of(self, thread_ts: str) -> Message | None:
        message = self.messages.get(thread_ts)
        return message if message is not None and message.thread_ts is None else None

    def replies(self, thread_ts: str) -> list[Message]:
        return [m for m in self.live() if m.thread_ts == thread_ts]

    def live(self) -> list[Message]:
        """What everybody can see, oldest first."""
        return [m for m in self.messages.values() if not m.deleted and m.ephemeral_to is None]


@dataclass(slots=True, kw_only=True)
class View:
    """A modal on somebody's screen, or their App Home."""

    id: str
    user: str
    body: JsonObject
    version: str
    open: bool = True


class Workspace:
    """People, channels and messages of one team, with one installed application."""

    def __init__(self, install: Install, now: Callable[[], float]) -> None:
        self.install = install
        self.now = now
        self.users: dict[str, User] = {}
        self.channels: dict[str, Channel] = {}
        self.files: dict[str, StoredFile] = {}
        self.views: dict[str, View] = {}
        self.homes: dict[str, View] = {}
        #: What each person looks at beside the application, as entities of Slack.
        self.looking: dict[str, list[JsonObject]] = {}
        #: Suggested prompts that people see, by channel and thread ("" is the channel's top).
        self.prompts: dict[tuple[str, str], list[JsonObject]] = {}
        #: Trigger ids that were handed out, each with its person; used once, it is gone.
        self.triggers: dict[str, str] = {}
        #: Every scope that something asked for and that the installation holds.
        self.used_scopes: set[str] = set()
        self.last_ts = (0, 0)
        self._counters: dict[str, int] = {}
        bot = install.bot_user
        self.users[bot] = User(
            id=bot, name=install.bot_name, real_name=install.bot_name, email="", is_bot=True
        )
        self.add_user("anna", user_id=ANNA)
        self.add_user("ben", user_id=BEN)
        self.add_channel("general", channel_id=GENERAL, members=(ANNA, BEN))

    def may(self, scope: str) -> bool:
        """Whether the installation holds a scope, which counts as used then."""
        held = self.install.scopes
        if held is not None and scope not in held:
            return False
        self.used_scopes.add(scope)
        return True

    def new_id(self, prefix: str) -> str:
        """A unique id such as `F0000000003`."""
        number = self._counters.get(prefix, 0) + 1
        self._counters[prefix] = number
        return f"{prefix}{number:010d}"

    def next_ts(self) -> str:
        """A `ts` that is later than every one before it, whatever the clock says."""
        seconds, fraction = self.last_ts
        current = int(self.now())
        self.last_ts = (current, 100) if current > seconds else (seconds, fraction + 100)
        return f"{self.last_ts[0]}.{self.last_ts[1]:06d}"

    def add_user(self, name: str, *, user_id: str | None = None, is_bot: bool = False) -> str:
        key = user_id or self.new_id("U")
        self.users[key] = User(
            id=key,
            name=name,
            real_name=name.capitalize(),
            email=f"{name}@example.test",
            is_bot=is_bot,
        )
        return key

    def add_channel(
        self,
        name: str,
        *,
        channel_id: str | None = None,
        members: Sequence[str] = (ANNA, BEN),
        private: bool = False,
        with_bot: bool = True,
    ) -> str:
        key = channel_id or self.new_id("C")
        present = {*members, self.install.bot_user} if with_bot else set(members)
        kind: ChannelKind = "group" if private else "channel"
        self.channels[key] = Channel(id=key, name=name, kind=kind, members=present)
        return key

    def im(self, user: str) -> str:
        """The id of the direct conversation between a person and the application."""
        for channel in self.channels.values():
            if channel.kind == "im" and user in channel.members:
                return channel.id
        key = self.new_id("D")
        members = {user, self.install.bot_user}
        self.channels[key] = Channel(id=key, name="", kind="im", members=members)
        return key

    def context_of(self, user: str | None) -> JsonObject:
        """The entities that a person looks at; Slack sends an empty object for none."""
        entities = self.looking.get(user or "")
        return {"entities": entities} if entities else {}

    def new_trigger(self, user: str) -> str:
        """A trigger id for a modal, good for one use by the application."""
        trigger = self.new_id("trigger.")
        self.triggers[trigger] = user
        return trigger

    def store(self, message: Message) -> Message:
        """Keep a message; blocks get the `block_id` that Slack gives them."""
        for block in message.blocks:
            block.setdefault("block_id", self.new_id("blk"))
        self.channels[message.channel].messages[message.ts] = message
        return message

    def add_file(self, upload: Upload, user: str) -> StoredFile:
        stored = StoredFile(
            id=self.new_id("F"),
            name=upload.name,
            title=upload.name,
            mimetype=upload.mimetype,
            user=user,
            created=int(self.now()),
            content=upload.content,
        )
        self.files[stored.id] = stored
        return stored

    def all_messages(self) -> list[Message]:
        """Every message ever stored, deleted and ephemeral ones too, oldest first."""
        found = [m for c in self.channels.values() for m in c.messages.values()]
        return sorted(found, key=lambda m: m.ts)
