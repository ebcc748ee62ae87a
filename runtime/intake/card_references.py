"""Which card a message is about (APR-10).

A command names a card by its code or replies to it. Other words answer the card that they reply to;
in a direct chat where one question is open they answer that. An approval is never given by them:
`said_to` says what a reply may do.

A card may be another session's: that of a child, whose cards stand in the chat of its root (APR-7),
or of any other whose card somebody names by its code. So it is looked for before any lane is
locked; whoever held the lane of the chat first and took the other one then would stand against
somebody who answers the other way round.
"""

from collections.abc import Sequence
from typing import Final

from runtime.commands.parse import Words
from runtime.domain.messages import ChatAddress, InboundMessage
from runtime.intake.settings import MAX_FORM_TEXT
from runtime.sessions import answers, open_calls, outbox, sessions
from runtime.sessions.answers import NONE, Picked
from runtime.sessions.approvals import Choice
from runtime.sessions.open_calls import APPROVAL, QUESTION, OpenCall
from runtime.store import Connection

ANSWERS: Final = {"approve": APPROVAL, "deny": APPROVAL, "answer": QUESTION}
"""Words that answer, and the kind of card that each is about."""
_REFUSALS: Final = frozenset({"deny", "no"})


def meant_by(conn: Connection, message: InboundMessage, words: Words | None, key: str) -> Picked:
    """The card that a message of the session `key` is about, if any, and what is said to it;
    `words` are the command that it is, if it is one.

    Only one that is open now can still be answered when its lane is held.
    """
    if not message.speaks_for_sender:
        return NONE
    card = card_replied_to(conn, message)
    if words is None:
        return Picked(card if message.reply_to and card else _plainly(conn, message, key))
    if words.name in ANSWERS:
        return answers.pick(conn, words.rest, kind=ANSWERS[words.name], card=card)
    return NONE


def is_older(message: InboundMessage, call: OpenCall) -> bool:
    """Whether plain words were said before the card was there, and arrived late (MSG-17)."""
    sent = message.sent_at_ms
    late = message.late and sent is not None and call.created_ms > sent
    return late and _is_plain(message)


def card_replied_to(conn: Connection, message: InboundMessage) -> OpenCall | None:
    """The call whose card a message replies to."""
    if message.reply_to is None:
        return None
    found = outbox.card_posted_as(
        conn,
        channel=message.channel,
        account=message.account,
        chat=message.chat_id,
        message_id=message.reply_to,
    )
    return None if found is None else open_calls.get(conn, found)


def said_to(call: OpenCall, text: str) -> tuple[Choice | None, str] | None:
    """What a written reply to an open card means; None where it is a message like any other.

    An approval is only ever denied by it: what allows must name the call, by button or code.
    """
    if not text.strip():
        return None
    if call.kind == QUESTION:
        return None, text
    first, _, rest = text.strip().partition(" ")
    if first.lower().rstrip(".,:;!") not in _REFUSALS:
        return None
    return "deny", rest.strip()[:MAX_FORM_TEXT]


def waits_behind(call: OpenCall) -> str:
    code = answers.code(call)
    if call.kind == QUESTION:
        question = str(call.payload.get("question", ""))[:200]
        return (
            f"I will read this next. First I need your answer: {question}\n"
            f"Reply to that message, or send `/answer {code} your answer`."
        )
    tool = call.payload.get("tool")
    return (
        f"I will read this next. First somebody must decide about `{tool}`: "
        f"`/approve {code}` or `/deny {code} reason`."
    )


def _plainly(conn: Connection, message: InboundMessage, key: str) -> OpenCall | None:
    """The one open question of a direct chat, for words that reply to nothing else.

    A chat with threads holds several sessions. What is said in a thread is of that one; what is
    said outside of them, in a message that may begin a thread itself, is of the whole chat.
    """
    if message.chat_kind != "direct" or not _is_plain(message):
        return None
    if not open_calls.any_asked(conn, key, message.address):
        return None
    session = sessions.by_key(conn, key)
    found = () if session is None else open_calls.of_tree(conn, session.id, kind=QUESTION)
    if not found and message.thread_id in (None, message.message_id):
        found = _asked_in(conn, message.address)
    return found[0] if len(found) == 1 else None


def _asked_in(conn: Connection, chat: ChatAddress) -> Sequence[OpenCall]:
    """The open questions whose cards stand in a chat, whichever session of it they are of."""
    cards = outbox.open_cards_in(
        conn, channel=chat.channel, account=chat.account, chat=chat.chat_id
    )
    asked = (open_calls.get(conn, card) for card in sorted(cards))
    return [call for call in asked if call is not None and call.kind == QUESTION]


def _is_plain(message: InboundMessage) -> bool:
    """Whether a message replies to nothing; in a thread of Slack each replies to the thread."""
    return message.reply_to in (None, message.thread_id)
