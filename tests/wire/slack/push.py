"""The Events API over HTTP: signed requests to the application's own address.

`signed_headers` is pure, for tests that build one request by hand. `HttpPush` posts deliveries
as Slack does: events as JSON, slash commands and interactions as forms, retries with the
`X-Slack-Retry-Num` and `X-Slack-Retry-Reason` headers. A 200 acknowledges.
"""

import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import urlencode

import aiohttp

from tests.wire.slack.deliveries import Deliveries, Delivery
from tests.wire.slack.state import Install, JsonObject

_FORM = "application/x-www-form-urlencoded"


def signed_headers(
    body: bytes,
    *,
    secret: str,
    timestamp: int,
    content_type: str = "application/json",
    retry: int = 0,
    reason: str | None = None,
) -> dict[str, str]:
    """The headers of a request that Slack signs (version 0 of its scheme)."""
    base = b"v0:%d:%s" % (timestamp, body)
    digest = hmac.new(secret.encode(), base, hashlib.sha256).hexdigest()
    headers = {
        "Content-Type": content_type,
        "X-Slack-Request-Timestamp": str(timestamp),
        "X-Slack-Signature": f"v0={digest}",
        "User-Agent": "Slackbot 1.0 (+https://api.slack.com/robots)",
    }
    if retry:
        headers["X-Slack-Retry-Num"] = str(retry)
        headers["X-Slack-Retry-Reason"] = reason or "http_timeout"
    return headers


def http_body(delivery: Delivery) -> tuple[bytes, str]:
    """The body of a delivery and its content type."""
    if delivery.kind == "events_api":
        return json.dumps(delivery.payload).encode(), "application/json"
    if delivery.kind == "interactive":
        return urlencode({"payload": json.dumps(delivery.payload)}).encode(), _FORM
    return urlencode({k: str(v) for k, v in delivery.payload.items()}).encode(), _FORM


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What the application answered: `status` 0 means that it could not be reached."""

    status: int
    text: str


class HttpPush:
    """Posts deliveries to one request URL. Close it when done."""

    def __init__(
        self,
        url: str,
        install: Install,
        deliveries: Deliveries,
        now: Callable[[], float],
        changed: Callable[[], Awaitable[None]],
    ) -> None:
        self.url = url
        self.answers: list[HttpAnswer] = []
        self._install = install
        self._deliveries = deliveries
        self._now = now
        self._changed = changed
        self._session = aiohttp.ClientSession()

    async def deliver(self, delivery: Delivery) -> None:
        """One try. The delivery is acknowledged when the answer is a 200."""
        self._deliveries.open_envelope(delivery)
        body, content_type = http_body(delivery)
        headers = signed_headers(
            body,
            secret=self._install.signing_secret,
            timestamp=int(self._now()),
            content_type=content_type,
            retry=delivery.retries,
            reason=delivery.retry_reason,
        )
        answer = await self._post(body, headers)
        if answer.status == 200:
            delivery.acked = True
            delivery.response = _object(answer.text)
        await self._changed()

    async def verify_url(self) -> HttpAnswer:
        """The `url_verification` handshake; the answer must hold the challenge."""
        payload = {"token": "verification-token", "challenge": "3eZbrw", "type": "url_verification"}
        body = json.dumps(payload).encode()
        secret, at = self._install.signing_secret, int(self._now())
        return await self._post(body, signed_headers(body, secret=secret, timestamp=at))

    async def close(self) -> None:
        await self._session.close()

    async def _post(self, body: bytes, headers: dict[str, str]) -> HttpAnswer:
        try:
            async with self._session.post(self.url, data=body, headers=headers) as answer:
                found = HttpAnswer(answer.status, await answer.text())
        except aiohttp.ClientError as error:
            found = HttpAnswer(0, str(error))
        self.answers.append(found)
        return found


def _object(text: str) -> JsonObject | None:
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return {"text": text} if text else None
    return value if isinstance(value, dict) else None
