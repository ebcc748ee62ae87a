"""What comes in from a chat and what goes out to it.

Shapes only: adapters translate platform JSON to and from these, the engine decides about them.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal
from urllib.parse import quote

from pydantic import Field

from runtime.domain.decisions import Risk
from runtime.domain.people import Sender
from runtime.domain.value import Value

ChatKind = Literal["direct", "group", "channel", "topic"]
Authorship = Literal["own", "forwarded", "inline_bot"]
"""Whose words a message carries: its sender's own, those of somebody whom they pass on, or those
that a bot wrote in their name."""
MOVED = "moved"
"""Stands in the key of a session whose chat went on as another."""
RESERVED_COMPONENTS = frozenset({"dm", "user", MOVED})


def escape_component(component: str) -> str:
    """A part of a key, with ``:`` and ``%`` escaped and reserved words made distinct (MSG-3).

    Two different sequences of components can never join to the same key.
    """
    if component in RESERVED_COMPONENTS:
        return f"%{ord(component[0]):02X}{component[1:]}"
    if component == "":
        return "%"
    return quote(component.encode("utf-8", "surrogatepass"), safe="@.-_~+=/,!#$&'()*;")


class ChatAddress(Value):
    """Where a conversation lives. ``account`` is the bot's own identity on the platform.

    ``joins_chat`` says that the thread has no session of its own: replies go to it, and what is
    said in it belongs to the chat's conversation (SLK-9).
    """

    channel: str
    account: str
    chat_id: str
    chat_kind: ChatKind = "direct"
    thread_id: str | None = None
    joins_chat: bool = False

    @property
    def of_session(self) -> "ChatAddress":
        """The place of the session that is talked to here."""
        if not self.joins_chat:
            return self
        return self.model_copy(update={"thread_id": None, "joins_chat": False})


def message_identity(address: ChatAddress, message_id: str) -> str:
    """What names one message of a chat, whatever thread it is in (MSG-2)."""
    parts = (address.channel, address.account, address.chat_id, message_id)
    return ":".join(escape_component(part) for part in parts)


class Attachment(Value):
    """A file that came with a message; ``reference`` is what the platform needs to fetch it.

    ``duration_s`` is the length of a recording, ``kind`` its name where that says more than the
    type does: ``voice message``, ``video note``, ``sticker``. ``own`` is False where the message
    only points at the file or passes it on: nobody is trusted for another's words (TOOL-11).
    """

    name: str
    media_type: str = "application/octet-stream"
    size_bytes: int | None = None
    duration_s: int | None = None
    kind: str = ""
    reference: str = ""
    path: str | None = None
    own: bool = True


class InboundMessage(Value):
    """One message as a platform delivered it. Times are milliseconds since the epoch.

    ``album`` names the messages that were sent as one: the platform delivers each by itself.

    ``authorship`` is what the platform says about the words, and ``said`` what is left of ``text``
    without the words that its sender quotes in it; None where they quote nothing.
    ``command_prefix`` is what a command begins with where the message was said. ``by_model`` marks
    words that a model wrote, which a schedule asks in the name of a person.

    ``joins_chat`` is as in `ChatAddress`. ``viewing`` says what the sender looks at beside the
    chat, a thing a line: words from outside, which the model is given between fences.

    ``sent_at_ms`` is the platform's own time. ``late`` is the engine's mark, not the platform's:
    the message was old when it arrived (MSG-17).
    """

    channel: str
    account: str
    chat_id: str
    chat_kind: ChatKind = "direct"
    thread_id: str | None = None
    message_id: str
    edited_at: str | None = None
    sender: Sender
    text: str = ""
    mentions_bot: bool = False
    reply_to: str | None = None
    replies_to_bot: bool = False
    attachments: tuple[Attachment, ...] = ()
    album: str | None = None
    received_at_ms: int
    sent_at_ms: int | None = None
    late: bool = False
    authorship: Authorship = "own"
    said: str | None = None
    command_prefix: str = "/"
    by_model: bool = False
    joins_chat: bool = False
    viewing: str = ""

    @property
    def speaks_for_sender(self) -> bool:
        """Whether the message may be a command, a code or an answer (APR-10).

        Only what a person wrote just so may: nothing that they pass on or changed afterwards, and
        nothing that a program wrote.
        """
        return self.authorship == "own" and self.edited_at is None and not self.sender.is_bot

    @property
    def own_words(self) -> str:
        """What the sender wrote themselves, without what they quote."""
        return self.text if self.said is None else self.said

    @property
    def address(self) -> ChatAddress:
        """The place the message was said in, which is where its reply goes."""
        return ChatAddress(
            channel=self.channel,
            account=self.account,
            chat_id=self.chat_id,
            chat_kind=self.chat_kind,
            thread_id=self.thread_id,
            joins_chat=self.joins_chat,
        )

    @property
    def identity(self) -> str:
        """The same for every delivery of the same message, whatever event carried it (MSG-2)."""
        whole = message_identity(self.address, self.message_id)
        return whole if self.edited_at is None else f"{whole}:{escape_component(self.edited_at)}"


class Deletion(Value):
    """Somebody deleted a message; ``sender`` is who wrote it, where the platform tells."""

    channel: str
    account: str
    chat_id: str
    message_id: str
    sender: Sender | None = None
    received_at_ms: int


class Move(Value):
    """A platform gave a chat a new id: Telegram, when a group becomes a supergroup (TEL-6)."""

    channel: str
    account: str
    old_chat_id: str
    new_chat_id: str


class ButtonPress(Value):
    """A person pressed a button of a card; ``choice`` is one of the choices that it offered.

    ``text`` is what they wrote into its form: a question's free answer, a denial's reason.
    ``option`` is the number of the chosen option of a question, from 1, where the platform's
    buttons are too small for its text; ``choice`` is empty then. Below a text, ``open_call_id`` is
    the id of its message and ``option`` the number of the button.
    """

    channel: str
    account: str
    chat_id: str
    sender: Sender
    open_call_id: str
    choice: str
    press_id: str
    received_at_ms: int
    text: str = ""
    option: int | None = None


class Button(Value):
    """A button below a text of the gateway's own. It carries no right: what it asks for is done by
    the right of whoever presses it.

    Whoever presses it says ``command`` at that place. One that also stands where nobody speaks, as
    on a home page, names what it is ``about`` and a ``choice``. These come back as
    `ButtonPress.open_call_id` and `ButtonPress.choice`, and only the presser is shown the answer;
    the web page, where they cannot come back, says the command.
    """

    label: str
    command: str = ""
    about: str = ""
    choice: str = ""

    def pressed_as(self, message_id: str, number: int) -> tuple[str, str]:
        """The id and the choice that come back from the button with this number of a message."""
        return (self.about, self.choice) if self.about else (message_id, str(number))


class TextPart(Value):
    """Markdown as the agent wrote it; each adapter renders it for its platform.

    ``buttons`` stand below a text of the gateway's own, those about the same thing in one row. What
    they do can be written as a command where a client shows none.

    With ``names_commands`` it is the gateway's own text, in which a command stands as ```/word```
    between backticks: it goes out as people type it in that channel.
    """

    kind: Literal["text"] = "text"
    markdown: str
    names_commands: bool = False
    buttons: tuple[Button, ...] = ()


class FilePart(Value):
    """A file on its way out: where it is on the gateway's machine, and what it holds.

    ``path`` is one of the workspace where the message is kept, so that the workspace may be moved,
    and absolute where it is handed to an adapter.
    ``digest`` is the SHA-256 of what is to be sent, in hexadecimal digits: a file that has another
    one is not sent. Where it is empty nothing is compared.
    """

    kind: Literal["file"] = "file"
    name: str
    path: str
    media_type: str = "application/octet-stream"
    size_bytes: int = 0
    digest: str = ""


class ApprovalPart(Value):
    """A card that asks whether one exact tool call may run (APR-1).

    A card whose choices are ``approve`` and ``deny`` asks for more than a call: a stranger is let
    in for good, or not; no reason is asked. ``risk`` is None where nobody judged it. ``outcome`` is
    empty while the card is open, afterwards one sentence that says who decided.
    """

    kind: Literal["approval"] = "approval"
    open_call_id: str
    code: str
    tool: str
    arguments: str
    reason: str
    choices: tuple[str, ...] = ("once", "session", "deny")
    risk: Risk | None = None
    outcome: str = ""

    @property
    def bright(self) -> str:
        """The choice whose button may stand out: never one that is dangerous (UI-8)."""
        if self.risk is None or self.risk.level == "medium":
            return ""
        return "once" if self.risk.level == "low" else "deny"


class QuestionPart(Value):
    """A card that asks the person something (APR-6)."""

    kind: Literal["question"] = "question"
    open_call_id: str
    code: str
    question: str
    options: tuple[str, ...] = ()
    outcome: str = ""


OutboundPart = Annotated[
    TextPart | FilePart | ApprovalPart | QuestionPart, Field(discriminator="kind")
]


def rows_of(buttons: Iterable[Button]) -> Sequence[Sequence[tuple[int, Button]]]:
    """Buttons with their numbers, from 1, in their rows."""
    rows: dict[str, list[tuple[int, Button]]] = {}
    for number, one in enumerate(buttons, start=1):
        rows.setdefault(one.about, []).append((number, one))
    return list(rows.values())


class Dispatch(Value):
    """What a tool sends, as one message: to the chat that its run answers, or to that of another
    session."""

    parts: tuple[OutboundPart, ...]
    target: ChatAddress | None = None
    session_id: str | None = None


class OutboundMessage(Value):
    """One row of the outbox, ready for an adapter."""

    outbox_id: str
    target: ChatAddress
    reply_to: str | None = None
    parts: tuple[OutboundPart, ...]
    run_id: str | None = None
    session_id: str | None = None
    final: bool = False


def undecided(message: OutboundMessage) -> OutboundMessage | None:
    """A decided card as it stood before; None where the message is none. What both look the same in
    needs no edit."""
    parts = tuple(
        part.model_copy(update={"outcome": ""})
        if isinstance(part, ApprovalPart | QuestionPart)
        else part
        for part in message.parts
    )
    return None if parts == message.parts else message.model_copy(update={"parts": parts})


class Receipt(Value):
    """The platform's ids of what was posted, in order; one message may need several posts."""

    message_ids: tuple[str, ...]
