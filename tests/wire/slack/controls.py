"""The bad days that a test orders: faults of the Web API, deliveries again, the way in."""

from collections.abc import Callable
from dataclasses import replace

from tests.wire.slack.core import Core
from tests.wire.slack.deliveries import MAX_RETRIES, Delivery
from tests.wire.slack.faults import Fault, Gate, Limits
from tests.wire.slack.push import HttpPush
from tests.wire.slack.sockets import AckHook
from tests.wire.slack.state import Install


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

    def limit_share(
        self, share: float, *, seed: int, retry_after: int, now: Callable[[], float]
    ) -> Limits:
        """Refuse this share of all calls with 429, chosen by the seed; `now` is the clock by which
        `Retry-After` is held to: calling again before it is a violation."""
        self.faults.limits = Limits(share, seed, retry_after, now, self.complain)
        return self.faults.limits

    def fail(self, method: str, error: str, times: int = 1, *, channel: str | None = None) -> None:
        """Answer `ok: false` with this error code instead of running the method."""
        body: dict[str, object] = {"ok": False, "error": error}
        self.faults.armed.append(
            Fault(method=method, kind="error", left=times, channel=channel, body=body)
        )

    def refuse(self, method: str, error: str, *, holding: str, times: int = 1) -> None:
        """Answer `ok: false` with this code to calls that hold a form, such as "metadata"."""
        body: dict[str, object] = {"ok": False, "error": error}
        self.faults.armed.append(
            Fault(method=method, kind="error", left=times, holding=holding, body=body)
        )

    def break_http(self, method: str, status: int = 503, times: int = 1) -> None:
        """Answer an HTML page with this HTTP status, as an overloaded edge does.

        The method `upload` is the address to which a file's bytes go.
        """
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

    def reinstall(self, scopes: frozenset[str]) -> None:
        """The operator installs the application again, with these scopes and the same tokens."""
        self.install = self.workspace.install = replace(self.install, scopes=scopes)

    def switch(self, install: Install) -> None:
        """The operator pastes another manifest: scopes, events and experience are the new one's."""
        self.install = self.workspace.install = replace(
            self.install,
            scopes=install.scopes,
            events=install.events,
            experience=install.experience,
        )

    def redirect_files(self, address: str) -> None:
        """Answer every download with a redirect to this address; "" serves them again."""
        self.files_moved_to = address

    def clear_faults(self) -> None:
        self.faults.armed.clear()
        self.faults.limits = None

    def on_ack(self, hook: AckHook | None) -> None:
        """A coroutine that runs on each Socket Mode acknowledgement before it counts.

        A test looks into its database there: what was acknowledged must be stored by then.
        """
        self.hub.on_ack = hook

    async def redeliver_unacked(
        self, reason: str = "timeout", *, abandon: bool = True
    ) -> list[Delivery]:
        """Slack's patience (3 seconds) is over: send what was not acknowledged once more.

        An event keeps its payload and `event_id`, gets a new envelope and counts a retry; after
        three retries it is abandoned, or without `abandon` left as it is. Slash commands and
        interactions are never repeated. Returns what was sent again.
        """
        due = [d for d in self.deliveries.waiting() if d.envelopes]
        if not abandon:
            due = [d for d in due if d.kind == "events_api" and d.retries < MAX_RETRIES]
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

    def use_http(self, request_url: str, *, now: Callable[[], float] | None = None) -> HttpPush:
        """Deliver by signed HTTP requests to this address from now on, not over sockets.

        `now` is the clock that the requests are signed by, where it is not the workspace's.
        """
        clock = now or self.workspace.now
        self.push = HttpPush(request_url, self.install, self.deliveries, clock, self.changed)
        return self.push
