"""How a signal looks between replicas: numbered payloads, so that a reader sees what it missed.

A payload is ``<publisher> <number> <piece>/<pieces> <json>``. A publisher's numbers go up by one
with each payload, and with each signal that it had to drop, so a jump means a loss, whoever lost
it. A signal that is too long for one payload goes as several, one after the other; the receiver
puts them together and passes nothing on by halves. Pure; it sends nothing.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final
from uuid import uuid4

from pydantic import ValidationError

from runtime.ports.bus import Signal

MAX_SIGNAL_BYTES: Final = 1_048_576
"""A longer signal is not sent; a bus is no way to move files."""
_HEAD_BYTES: Final = 64
"""Room for what stands before the JSON: 12 + 20 + 2 x 10 digits and what parts them."""
_MOST_PEERS: Final = 256
"""Publishers that are remembered; a replica that starts again is a new one."""


class Encoder:
    """Writes one publisher's payloads."""

    def __init__(self) -> None:
        self.publisher = uuid4().hex[-12:]
        self._number = 0

    def skip(self) -> None:
        """A signal was dropped: the next payload shows it."""
        self._number += 1

    def encode(self, body: str, max_bytes: int) -> list[str]:
        """The payloads of a signal's JSON, each of at most `max_bytes` bytes of UTF-8."""
        pieces = list(_cut(body, max_bytes - _HEAD_BYTES))
        payloads = []
        for place, piece in enumerate(pieces, start=1):
            self._number += 1
            payloads.append(f"{self.publisher} {self._number} {place}/{len(pieces)} {piece}")
        return payloads


def to_json(signal: Signal) -> str:
    """What a signal is between replicas; ``gap`` is each reader's own."""
    return signal.model_dump_json(exclude={"gap"})


def _cut(body: str, room: int) -> Iterator[str]:
    """Pieces of at most `room` bytes, none of which ends inside a character."""
    raw = body.encode()
    start = 0
    while len(raw) - start > room:
        end = start + room
        while raw[end] & 0xC0 == 0x80:
            end -= 1
        yield raw[start:end].decode()
        start = end
    yield raw[start:].decode()


@dataclass(frozen=True, slots=True)
class Received:
    """What a payload brought: perhaps a whole signal, perhaps word that others were lost."""

    signal: Signal | None = None
    gap: bool = False


@dataclass(slots=True)
class _Peer:
    """One other publisher: its last number, and a signal of which pieces are still to come."""

    number: int
    pieces: list[str] = field(default_factory=list)
    size: int = 0


class Decoder:
    """Reads what other publishers sent, over one connection."""

    def __init__(self, own: str) -> None:
        self._own = own
        self._peers: OrderedDict[str, _Peer] = OrderedDict()

    def feed(self, payload: str) -> Received:
        """Take the next payload. Raises `ValueError` on what no replica of this version wrote."""
        publisher, number_text, place_text, piece = payload.split(" ", 3)
        if publisher == self._own:
            return Received()
        number = int(number_text)
        place, pieces = (int(one) for one in place_text.split("/"))
        peer = self._peers.get(publisher)
        gap = peer is not None and number != peer.number + 1
        if peer is None:
            peer = self._peers[publisher] = _Peer(number)
            if len(self._peers) > _MOST_PEERS:
                self._peers.popitem(last=False)
        self._peers.move_to_end(publisher)
        peer.number = number
        if gap or place == 1:
            peer.pieces, peer.size = [], 0
        if place != len(peer.pieces) + 1:
            # The first pieces were lost, or sent before this replica listened.
            return Received(gap=gap)
        return Received(_complete(peer, piece, last=place == pieces), gap)


def _complete(peer: _Peer, piece: str, *, last: bool) -> Signal | None:
    peer.size += len(piece)
    if peer.size > MAX_SIGNAL_BYTES:
        peer.pieces = []
        raise ValueError("a signal is longer than any replica sends")
    peer.pieces.append(piece)
    if not last:
        return None
    body, peer.pieces = "".join(peer.pieces), []
    try:
        return Signal.model_validate_json(body)
    except ValidationError as error:
        raise ValueError("a payload is no signal") from error
