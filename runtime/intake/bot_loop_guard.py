"""The loop guard: an exchange between bots ends when no person speaks for some turns (MSG-16).

It is counted in the rows of the session, under its lane, so restarts and replicas change nothing.
A person's message begins a new count.
"""

from dataclasses import dataclass

from runtime.domain.messages import InboundMessage
from runtime.domain.people import Speaker, Trust
from runtime.sessions import inputs
from runtime.sessions.idempotency import first_time
from runtime.sessions.lanes import Lane
from runtime.store import Connection

MAX_BOT_TURNS = 6
"""Messages of bots that are answered one after another without a person."""
OVER = (
    f"I answered {MAX_BOT_TURNS} messages from bots in a row, so I stop here. "
    "I continue when a person writes to me."
)


@dataclass(frozen=True, slots=True)
class Over:
    """An exchange that has ended. `tell`: nobody was told yet; true once for each exchange."""

    reason: str
    tell: bool


def over(conn: Connection, lane: Lane, message: InboundMessage, speaker: Speaker) -> Over | None:
    """Whether a bot's new message comes after the end of its exchange."""
    if speaker.trust is not Trust.BOT:
        return None
    turns = inputs.since_person(conn, lane.session_id, most=MAX_BOT_TURNS)
    if turns < MAX_BOT_TURNS or inputs.known(conn, message.identity) is not None:
        return None
    # What comes after the end is not kept, so the number of inputs names the exchange.
    tell = first_time(conn, f"exchange:{lane.session_id}:{lane.input_seq}")
    return Over(f"{turns} turns between bots without a person", tell)
