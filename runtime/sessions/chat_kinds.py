"""What kind of chat a place is, as the conversations show that are known there.

It decides what is read and said in a place, so it is never taken from whoever names the place where
a platform has told it.
"""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, select

from runtime.domain.errors import InvalidInput
from runtime.domain.messages import ChatAddress, ChatKind
from runtime.sessions.lanes import CONVERSATION
from runtime.sessions.tables import lanes, sessions
from runtime.store.payloads import kept

LOOKED_AT: Final = 1_000
"""Conversations of a chat."""


def address_of(
    conn: Connection, named: ChatAddress, kind: ChatKind | None, *, local: bool
) -> ChatAddress:
    """A place by its chat and thread, with its kind. `kind` is what whoever names it says, None
    where they leave it out; `local` chats are their person's. Raises `InvalidInput`."""
    kinds: Sequence[ChatKind] = ("direct",) if local else _kinds(conn, named)
    if not kinds and kind is None:
        rule = "must be given for a chat from which nobody has written yet"
        raise InvalidInput("place.chat_kind", rule)
    if kinds and kind not in (None, *kinds):
        raise InvalidInput("place.chat_kind", f"must be {kinds[0]}, which this chat is")
    return named.model_copy(update={"chat_kind": kind or kinds[0]})


def _kinds(conn: Connection, named: ChatAddress) -> Sequence[ChatKind]:
    """Those of the conversations in a chat; that of the same thread comes first."""
    # The address is JSON that we wrote ourselves: these fields come first, and have one spelling.
    chat = named.model_dump_json(include={"channel", "account", "chat_id"}).removesuffix("}")
    there = sessions.c.address.startswith(f"{chat},", autoescape=True)
    # The other kinds of lanes were made for a place that somebody named, and prove nothing.
    said = lanes.c.kind == CONVERSATION
    query = select(sessions.c.address).join(lanes, lanes.c.session_id == sessions.c.id)
    found = conn.execute(query.where(there, said).distinct().limit(LOOKED_AT)).scalars()
    known = [kept(ChatAddress, one) for one in found]
    known.sort(key=lambda one: one.thread_id != named.thread_id)
    return [one.chat_kind for one in known]
