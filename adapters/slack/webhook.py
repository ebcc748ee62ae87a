"""Slack's requests to us: who calls is checked first, then it is stored, then answered (SLK-1).

A request is Slack's when its signature fits its body and its timestamp is at most five minutes
away. A replayed one within that time is known by the message or the call it carries. Until it is
proven, nothing of a request is read; what fails is answered with nothing but 401.
"""

import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import parse_qsl

import structlog
from pydantic import SecretStr

from adapters.slack.event_intake import Receiver
from adapters.slack.failures import SlackFailure
from adapters.slack.socket_mode import Ack, Envelope
from runtime.domain.errors import Forbidden, Unavailable
from runtime.domain.json_fields import object_in
from runtime.domain.value import JsonObject
from runtime.ports.chat import WebhookRequest, WebhookResponse
from runtime.ports.clock import Clock
from runtime.ports.gatehouse import Gatehouse

log = structlog.get_logger(__name__)

WINDOW_S = 300
FIELDS = 100
_FORM = "application/x-www-form-urlencoded"


class SlackWebhook:
    """`Webhook` of one application."""

    def __init__(
        self,
        path: str,
        secret: SecretStr,
        clock: Clock,
        receiver: Callable[[], Awaitable[Receiver]],
    ) -> None:
        """`receiver` says who the bot is, asking Slack if need be; it raises as `connect` does."""
        self.path = path
        self._secret = secret.get_secret_value().encode()
        self._clock = clock
        self._receiver = receiver

    async def receive(self, request: WebhookRequest, gatehouse: Gatehouse) -> WebhookResponse:
        """Check, store, answer. Raises `Unavailable`: Slack shall deliver it again."""
        if not self._is_slack(request):
            log.warning("slack.unsigned_request", path=self.path)
            return WebhookResponse(401)
        read = _read(request)
        if read is None:
            return WebhookResponse(400)
        if isinstance(read, str):
            return WebhookResponse(200, read)
        repeated = request.headers.get("x-slack-retry-num")
        if repeated is not None:
            reason = request.headers.get("x-slack-retry-reason", "")
            log.info("slack.delivered_again", number=repeated, reason=reason)
        return await self._take(read, gatehouse)

    async def _take(self, envelope: Envelope, gatehouse: Gatehouse) -> WebhookResponse:
        try:
            receiver = await self._receiver()
            ack = await receiver.take(envelope, gatehouse)
        except (SlackFailure, Forbidden) as failure:
            raise Unavailable(str(failure)) from failure
        return _answer(ack)

    def _is_slack(self, request: WebhookRequest) -> bool:
        at = request.headers.get("x-slack-request-timestamp", "")
        given = request.headers.get("x-slack-signature", "")
        signed = b"v0:%s:%s" % (at.encode("utf-8", "surrogateescape"), request.body)
        right = f"v0={hmac.new(self._secret, signed, hashlib.sha256).hexdigest()}"
        same = hmac.compare_digest(right.encode(), given.encode("utf-8", "surrogateescape"))
        return same and self._is_recent(at)

    def _is_recent(self, at: str) -> bool:
        if not (at.isascii() and at.isdecimal() and len(at) <= 12):
            return False
        return abs(self._clock.now_ms() / 1000 - int(at)) <= WINDOW_S


def _answer(ack: Ack) -> WebhookResponse:
    if ack.payload is None:
        return WebhookResponse(200)
    return WebhookResponse(200, json.dumps(ack.payload), "application/json")


def _read(request: WebhookRequest) -> Envelope | str | None:
    """What was sent; a text where Slack only asks whether we are there; None for nonsense."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == _FORM:
        return _read_form(request.body)
    payload = object_in(request.body)
    if payload is None:
        return None
    if payload.get("type") == "url_verification":
        challenge = payload.get("challenge")
        return challenge if isinstance(challenge, str) else None
    event_id = payload.get("event_id")
    return Envelope(event_id if isinstance(event_id, str) else "", "events_api", payload)


def _read_form(body: bytes) -> Envelope | str | None:
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=FIELDS)
    except ValueError:
        return None
    fields: Mapping[str, str] = dict(pairs)
    if "ssl_check" in fields:
        return ""
    if "payload" in fields:
        payload = object_in(fields["payload"])
        return None if payload is None else Envelope("", "interactive", payload)
    command: JsonObject = {**fields}
    return Envelope(fields.get("trigger_id", ""), "slash_commands", command)
