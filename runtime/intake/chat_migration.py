"""A chat got another id: its sessions, and what waits to be sent there, go with it (TEL-6)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runtime.domain.events import EventKind
from runtime.domain.messages import Move
from runtime.domain.value import JsonObject
from runtime.intake.reception import BeginAnew, Reception
from runtime.ports.bus import OUTBOX
from runtime.sessions import audit, chat_moves
from runtime.sessions.unit import Unit
from runtime.store import Connection


class Moving(Reception):
    """The unit of work of one move. A second one finds nothing left to do."""

    def move(self, unit: Unit, move: Move) -> None:
        """Where the new chat has a session of its own already, the old one keeps its history
        under a key that says where it went. Raises `BeginAnew`."""
        if move.old_chat_id == move.new_chat_id:
            return
        conn = unit.conn
        found = _found(conn, move)
        held = {lane.session_id: lane for lane in self.lanes(unit, [*found.own, *found.shared])}
        if _found(conn, move) != found:
            raise BeginAnew("sessions of the chat came or went")
        moved = []
        for session_id, key in found.own.items():
            wanted = chat_moves.new_key(move, key)
            given = chat_moves.retired_key(move, key) if chat_moves.taken(conn, wanted) else wanted
            chat_moves.session(conn, session_id, move, key=given)
            data: JsonObject = {"key": given, "moved_to": wanted}
            held[session_id].record(EventKind.SESSION_CHANGED, None, data)
            moved.append(session_id)
        for session_id in found.shared:
            # Its key names no chat, but what waits in it may be of this one.
            if chat_moves.session(conn, session_id, move):
                data = {"moved_to": move.new_chat_id}
                held[session_id].record(EventKind.SESSION_CHANGED, None, data)
                moved.append(session_id)
        waiting = chat_moves.messages(conn, move)
        chat_moves.people(conn, move)
        if moved or waiting:
            audit.append(
                conn,
                actor="system",
                action="chat.moved",
                data={
                    "channel": move.channel,
                    "from": move.old_chat_id,
                    "to": move.new_chat_id,
                    "sessions": list(moved),
                    "messages": waiting,
                },
            )
        unit.say(OUTBOX, {"channel": move.channel, "account": move.account})


@dataclass(frozen=True, slots=True)
class _Found:
    """What lives in a chat: sessions of its own with their keys, and that of all chats."""

    own: Mapping[str, str]
    shared: Sequence[str]


def _found(conn: Connection, move: Move) -> _Found:
    shared = chat_moves.shared_session(conn, move)
    return _Found(dict(chat_moves.sessions_of(conn, move)), () if shared is None else (shared,))
