"""The bad days that a test orders: faults of the Web API and of the sockets."""

from tests.wire.slack.core import Core
from tests.wire.slack.deliveries import Delivery
from tests.wire.slack.faults import Fault, Gate
from tests.wire.slack.push import HttpPush
from tests.wire.slack.sockets import AckHook, DisconnectReason


class Controls(Core):
    """Fault injection. Methods are named as in the Web API; "*" means every method."""

    def rate_limit(
        self, method: str, times: int = 1, retry_after: int = 1, *, channel: str | None = None
    ) -> None:
        """Answer 429 with `Retry-After` (seconds), for one channel if it is named."""
        self.faults.armed.append(
            Fault(
                method=method,
                kind="error",
                left=times,
                channel=channel,
                status=429,
                retry_after=retry_after,
                body={"ok": False, "error": "ratelimited"},
            )
        )

    def fail(self, method: str, error: str, times: int = 1, *, channel: str | None = None) -> None:
        """Answer `ok: false` with this error code instead of running the method."""
        body: dict[str, object] = {"ok": False, "error": error}
        self.faults.armed.append(
            Fault(method=method, kind="error", left=times, channel=channel, body=body)
        )

    def break_http(self, method: str, status: int = 503, times: int = 1) -> None:
        """Answer an HTML page with this HTTP status, as an overloaded edge does."""
        page = "<html><title>Server Error</title></html>"
        self.faults.armed.append(
            Fault(method=method, kind="http", left=times, status=status, body=page)
        )

    def hang(self, method: str, times: int = 1, *, cut: bool = False) -> None:
        """Run the method, then never answer, or cut the connection: an ambiguous send."""
        self.faults.armed.append(Fault(method=method, kind="cut" if cut else "hang", left=times))

    def hold(self, method: str, *, channel: str | None = None) -> Gate:
        """Run the method once and hold its answer until `Gate.release`.

        `await gate.entered.wait()` returns when the method has run.
        """
        gate = Gate()
        self.faults.gates.append(gate)
        self.faults.armed.append(
            Fault(method=method, kind="gate", left=1, channel=channel, gate=gate)
        )
        return gate

    def clear_faults(self) -> None:
        self.faults.armed.clear()

    def on_ack(self, hook: AckHook | None) -> None:
        """A coroutine that runs on each Socket Mode acknowledgement before it counts.

        A test looks into its database there: what was acknowledged must be stored by then.
        """
        self.hub.on_ack = hook

    async def redeliver_unacked(self, reason: str = "timeout") -> list[Delivery]:
        """Slack's patience (3 seconds) is over: send what was not acknowledged once more.

        An event keeps its payload and `event_id`, gets a new envelope and counts a retry; after
        three retries it is abandoned. Slash commands and interactions are never repeated.
        Returns what was sent again.
        """
        due = [d for d in self.deliveries.waiting() if d.envelopes]
        again = [d for d in due if self.deliveries.prepare_retry(d, reason)]
        for delivery in again:
            await self.send(delivery)
        await self.changed()
        return again

    async def duplicate(self, delivery: Delivery) -> Delivery:
        """The same payload and `event_id` once more, as an independent delivery."""
        return await self.dispatch(
            delivery.kind, delivery.payload, accepts_response=delivery.accepts_response
        )

    async def drop_sockets(self) -> None:
        """Cut every socket abruptly, and wait until the server has noticed."""
        cut = list(self.hub.links)
        self.hub.drop()
        await self.until(lambda: not any(link in self.hub.links for link in cut))

    def go_silent(self, count: int | None = None) -> None:
        """Open sockets (all, or the first `count`) stay open but say and hear nothing more."""
        speaking = [link for link in self.hub.open_links() if not link.silent]
        for link in speaking[:count]:
            link.silent = True

    async def disconnect(self, reason: DisconnectReason = "warning") -> None:
        """Send `disconnect` frames; all reasons but `warning` also close the sockets."""
        await self.hub.disconnect(reason)
        await self.changed()

    async def ping_sockets(self) -> None:
        """Ping every socket; `Link.pongs` counts the answers."""
        await self.hub.ping()

    def use_http(self, request_url: str) -> HttpPush:
        """Deliver by signed HTTP requests to this address from now on, not over sockets."""
        self.push = HttpPush(
            request_url, self.install, self.deliveries, self.workspace.now, self.changed
        )
        return self.push
