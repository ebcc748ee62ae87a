"""A chat that got another id on its platform: every row that names it follows (TEL-6)."""

from collections.abc import Sequence

from sqlalchemy import Connection, Table, or_, select, update

from runtime.domain.messages import (
    MOVED,
    ChatAddress,
    InboundMessage,
    Move,
    OutboundMessage,
    escape_component,
)
from runtime.domain.runs import TERMINAL
from runtime.sessions.outbox import UNSETTLED
from runtime.sessions.tables import accounts, inputs, open_calls, outbox, pairings, runs, sessions
from runtime.store.payloads import kept

_ENDED = tuple(state.value for state in TERMINAL)


def sessions_of(conn: Connection, move: Move) -> Sequence[tuple[str, str]]:
    """(session, key) of everything that lives in the old chat; what was retired is left out."""
    prefix = _prefix(move, move.old_chat_id)
    rows = conn.execute(
        select(sessions.c.id, sessions.c.key)
        .where(
            or_(
                sessions.c.key == prefix,
                sessions.c.key.startswith(f"{prefix}:", autoescape=True),
            ),
            ~sessions.c.key.contains(f":{MOVED}:", autoescape=True),
        )
        .order_by(sessions.c.id)
    )
    return [(row.id, row.key) for row in rows]


def new_key(move: Move, key: str) -> str:
    """The key of a session of the old chat in the new one."""
    return _prefix(move, move.new_chat_id) + key.removeprefix(_prefix(move, move.old_chat_id))


def retired_key(move: Move, key: str) -> str:
    """The key of a session whose place in the new chat was taken already; it says where it went."""
    return f"{key}:{MOVED}:{escape_component(move.new_chat_id)}"


def taken(conn: Connection, key: str) -> bool:
    """Whether a session has this key."""
    return conn.execute(select(sessions.c.id).where(sessions.c.key == key)).first() is not None


def shared_session(conn: Connection, move: Move) -> str | None:
    """The session of all chats of the account (the scope ``account``), if it has one."""
    key = ":".join(escape_component(one) for one in (move.channel, move.account))
    return conn.execute(select(sessions.c.id).where(sessions.c.key == key)).scalar()


def session(conn: Connection, session_id: str, move: Move, *, key: str | None = None) -> int:
    """Let a session's place go along, and its open runs and waiting inputs of the old chat; how
    many of these. A session of this chat alone gets its new key too."""
    row = conn.execute(select(sessions.c.address).where(sessions.c.id == session_id)).one()
    changed = {"address": _moved(kept(ChatAddress, row.address), move).model_dump_json()}
    if key is not None:
        changed["key"] = key
    conn.execute(update(sessions).where(sessions.c.id == session_id).values(changed))
    followed = 0
    open_runs = conn.execute(
        select(runs.c.id, runs.c.target).where(
            runs.c.session_id == session_id, runs.c.state.not_in(_ENDED)
        )
    ).all()
    for one in open_runs:
        target = kept(ChatAddress, one.target)
        if target.chat_id == move.old_chat_id:
            _set(conn, runs, one.id, {"target": _moved(target, move).model_dump_json()})
            followed += 1
    waiting = conn.execute(
        select(inputs.c.id, inputs.c.message).where(
            inputs.c.session_id == session_id, inputs.c.state == "pending"
        )
    ).all()
    for one in waiting:
        message = kept(InboundMessage, one.message)
        if message.chat_id == move.old_chat_id:
            moved = message.model_copy(update={"chat_id": move.new_chat_id})
            _set(conn, inputs, one.id, {"message": moved.model_dump_json(exclude_defaults=True)})
            followed += 1
    return followed


def messages(conn: Connection, move: Move) -> int:
    """Let what waits to be sent, and the cards that are open, go to the new chat; how many."""
    asked = select(open_calls.c.id).where(open_calls.c.state == "open")
    rows = conn.execute(
        select(outbox.c.id, outbox.c.message).where(
            outbox.c.channel == move.channel,
            outbox.c.account == move.account,
            outbox.c.chat == move.old_chat_id,
            or_(outbox.c.state.in_(UNSETTLED), outbox.c.open_call_id.in_(asked)),
        )
    ).all()
    for row in rows:
        message = kept(OutboundMessage, row.message)
        moved = message.model_copy(update={"target": _moved(message.target, move)})
        values: dict[str, object] = {
            "chat": move.new_chat_id,
            "message": moved.model_dump_json(),
        }
        _set(conn, outbox, row.id, values)
    return len(rows)


def people(conn: Connection, move: Move) -> None:
    """Where people are reached, and where strangers wait for their answer."""
    for column, which in (
        (accounts.c.direct_chat, accounts.c.direct_chat.is_not(None)),
        (pairings.c.address, pairings.c.state == "pending"),
    ):
        table = column.table
        there = which & (table.c.channel == move.channel) & (table.c.account == move.account)
        for address in conn.execute(select(column).where(there).distinct()).scalars().all():
            chat = kept(ChatAddress, address)
            if chat.chat_id == move.old_chat_id:
                moved = {column.name: _moved(chat, move).model_dump_json()}
                conn.execute(update(table).where(there, column == address).values(moved))


def _moved(address: ChatAddress, move: Move) -> ChatAddress:
    if address.chat_id != move.old_chat_id:
        return address
    return address.model_copy(update={"chat_id": move.new_chat_id})


def _prefix(move: Move, chat_id: str) -> str:
    return ":".join(escape_component(one) for one in (move.channel, move.account, chat_id))


def _set(conn: Connection, table: Table, row_id: str, values: dict[str, object]) -> None:
    conn.execute(update(table).where(table.c.id == row_id).values(values))
