"""The refusals of the Web API, and the record of calls and violations.

A `SlackError` is an answer that Slack itself gives. A `Violation` is a call that no correct
client makes: tests assert that none was recorded.
"""

from dataclasses import dataclass, field

from tests.wire.slack.state import JsonObject


class SlackError(Exception):
    """Slack answers `ok: false` with this error code."""

    def __init__(self, error: str, *details: str, **extra: object) -> None:
        super().__init__(error)
        self.error = error
        self.details = details
        self.extra = extra

    def body(self) -> JsonObject:
        answer: JsonObject = {"ok": False, "error": self.error, **self.extra}
        if self.details:
            answer["response_metadata"] = {"messages": [f"[ERROR] {d}" for d in self.details]}
        return answer


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that the client must not send: where, and what was wrong with it."""

    where: str
    detail: str


@dataclass(slots=True)
class Call:
    """One Web API call. `error` None means that it was answered `ok: true`."""

    method: str
    arguments: JsonObject
    token: str | None
    carried_as: str
    error: str | None = None
    answer: JsonObject = field(default_factory=dict)

    @property
    def channel(self) -> str | None:
        named = self.arguments.get("channel", self.arguments.get("channel_id"))
        return named if isinstance(named, str) else None
