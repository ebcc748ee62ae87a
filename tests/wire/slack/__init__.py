"""A strict Slack over real sockets, for the real client libraries. See `server`."""

from tests.wire.slack.answers import Call, Violation
from tests.wire.slack.deliveries import Delivery
from tests.wire.slack.faults import Gate
from tests.wire.slack.interactions import buttons_of
from tests.wire.slack.people import Said
from tests.wire.slack.push import signed_headers
from tests.wire.slack.server import SlackServer
from tests.wire.slack.state import (
    ALL_EVENTS,
    ANNA,
    BEN,
    GENERAL,
    Install,
    JsonObject,
    Message,
    Upload,
    View,
)

__all__ = [
    "ALL_EVENTS",
    "ANNA",
    "BEN",
    "GENERAL",
    "Call",
    "Delivery",
    "Gate",
    "Install",
    "JsonObject",
    "Message",
    "Said",
    "SlackServer",
    "Upload",
    "View",
    "Violation",
    "buttons_of",
    "signed_headers",
]
