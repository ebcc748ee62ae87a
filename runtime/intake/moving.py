"""A chat got another id: its sessions, and what waits to be sent there, go with it (TEL-6)."""

from runtime.domain.events import EventKind
from runtime.domain.messages import Move
from runtime.intake.unit import Unit
from runtime.ports.bus import OUTBOX
from runtime.store import Connection, audit, lanes, moves


class Moving(Unit):
    """The unit of work of one move. A second one finds nothing left to do."""

    def move(self, conn: Connection, move: Move) -> None:
        """Where the new chat has a session of its own already, the old one keeps its history
        under a key that says where it went."""
        self.signals = []
        if move.old_chat_id == move.new_chat_id:
            return
        moved = []
        for session_id, key in moves.sessions_of(conn, move):
            lane = lanes.lock(conn, session_id)
            wanted = moves.new_key(move, key)
            given = moves.retired_key(move, key) if moves.taken(conn, wanted) else wanted
            moves.session(conn, session_id, move, key=given)
            lane.record(EventKind.SESSION_CHANGED, None, {"key": given, "moved_to": wanted})
            lanes.save(conn, lane)
            moved.append(session_id)
        shared = moves.shared_session(conn, move)
        if shared is not None:
            # Its key names no chat, but what waits in it may be of this one.
            lane = lanes.lock(conn, shared)
            if moves.session(conn, shared, move):
                lane.record(EventKind.SESSION_CHANGED, None, {"moved_to": move.new_chat_id})
                lanes.save(conn, lane)
                moved.append(shared)
        waiting = moves.messages(conn, move)
        moves.people(conn, move)
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
        self.signals.append((OUTBOX, {"channel": move.channel, "account": move.account}))
