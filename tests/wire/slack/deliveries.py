"""What Slack has to tell the application: each delivery, its envelopes and its acknowledgement.

A delivery is one event, slash command or interaction. Each try has an envelope of its own with
the same payload, so that a retry or a duplicate keeps its `event_id`. Slack tries an event three
more times; it never repeats a slash command or an interaction.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from tests.wire.slack.state import JsonObject

DeliveryKind = Literal["events_api", "slash_commands", "interactive"]
MAX_RETRIES = 3


@dataclass(slots=True, kw_only=True, eq=False)
class Delivery:
    """One thing to tell. `response` is what the application sent with its acknowledgement."""

    kind: DeliveryKind
    payload: JsonObject
    accepts_response: bool = False
    envelopes: list[str] = field(default_factory=list)
    retries: int = 0
    retry_reason: str | None = None
    link: int | None = None
    acked: bool = False
    late: bool = False
    abandoned: bool = False
    response: JsonObject | None = None

    @property
    def event_id(self) -> str | None:
        found = self.payload.get("event_id")
        return found if isinstance(found, str) else None

    @property
    def event(self) -> JsonObject:
        found = self.payload.get("event")
        return found if isinstance(found, dict) else {}

    @property
    def waiting(self) -> bool:
        return not (self.acked or self.abandoned)

    def frame(self) -> JsonObject:
        """The Socket Mode envelope of the current try."""
        frame: JsonObject = {
            "envelope_id": self.envelopes[-1],
            "type": self.kind,
            "payload": self.payload,
            "accepts_response_payload": self.accepts_response,
        }
        if self.kind == "events_api":
            frame["retry_attempt"] = self.retries
            frame["retry_reason"] = self.retry_reason or ""
        return frame


class Deliveries:
    """All deliveries, in order, and the finding of one by its envelope."""

    def __init__(self, new_id: Callable[[str], str]) -> None:
        self.all: list[Delivery] = []
        self._by_envelope: dict[str, Delivery] = {}
        self._new_id = new_id

    def add(self, delivery: Delivery) -> Delivery:
        self.all.append(delivery)
        return delivery

    def open_envelope(self, delivery: Delivery) -> None:
        delivery.envelopes.append(self._new_id("envelope-"))
        self._by_envelope[delivery.envelopes[-1]] = delivery

    def prepare_retry(self, delivery: Delivery, reason: str) -> bool:
        """Count a retry. False when there is none left, or none for this kind."""
        if delivery.kind != "events_api" or delivery.retries >= MAX_RETRIES:
            delivery.abandoned = True
            return False
        delivery.retries += 1
        delivery.retry_reason = reason
        return True

    def by_envelope(self, envelope_id: str) -> Delivery | None:
        return self._by_envelope.get(envelope_id)

    def waiting(self) -> list[Delivery]:
        return [d for d in self.all if d.waiting]
