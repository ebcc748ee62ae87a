"""The lane of a child whose card a message answers, locked before the lane of the message (APR-7).

A child's card stands in the chat of its root, so its answer comes through the root's lane. Lanes
are locked from the child to the parent, never the other way; whoever took the root's first and the
child's then would stand against a child that settles.
"""

from typing import Final

from runtime.commands import answers, parse
from runtime.domain.errors import Conflict, NotFound
from runtime.domain.messages import InboundMessage
from runtime.store import Connection, agents, lanes, open_calls, outbox, sessions
from runtime.store.open_calls import APPROVAL, QUESTION, OpenCall

ANSWERS: Final = {"approve": APPROVAL, "deny": APPROVAL, "answer": QUESTION}
"""Words that answer, and the kind of card that each is about."""


def lock(conn: Connection, message: InboundMessage, key: str) -> None:
    """Lock the lane of the child that the message of the session `key` may answer, if any."""
    call = _answered(conn, message, key)
    if call is not None and agents.find(conn, call.session_id) is not None:
        lanes.lock(conn, call.session_id)


def _answered(conn: Connection, message: InboundMessage, key: str) -> OpenCall | None:
    words = parse.parse(message.text, names=frozenset(ANSWERS), mentioned=message.mentions_bot)
    if words is None:
        return None if message.reply_to is None else _replied(conn, message, message.reply_to)
    kind, (code, *_) = ANSWERS[words.name], words.rest.split(maxsplit=1) or [""]
    if not code:
        session = sessions.by_key(conn, key)
        found = () if session is None else open_calls.of_tree(conn, session.id, kind=kind)
        return found[0] if len(found) == 1 else None
    try:
        return answers.find(conn, code, kind=kind)
    except (NotFound, Conflict):
        return None


def _replied(conn: Connection, message: InboundMessage, card: str) -> OpenCall | None:
    found = outbox.card_posted_as(
        conn,
        channel=message.channel,
        account=message.account,
        chat=message.chat_id,
        message_id=card,
    )
    return None if found is None else open_calls.get(conn, found)
