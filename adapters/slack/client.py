"""Slack's Web API: one call, and what became of it. It refuses to repeat anything.

The SDK's retry handlers are off: a connection that breaks after the request has left may have
posted already, and a blind repeat would double the message (MSG-11). What failed is raised as a
`SlackFailure`, which says whether the call can have had an effect.
"""

from collections.abc import Mapping
from typing import BinaryIO

import aiohttp
import structlog
from pydantic import JsonValue, SecretStr
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from adapters.platforms.proxies import proxy_for
from adapters.slack.failures import (
    DEAD_TOKEN,
    MISSING_SCOPE,
    NotServed,
    RateLimited,
    Refused,
    SlackFailure,
    Unanswered,
    Unreachable,
    wrong_token,
)
from adapters.slack.rate_refusals import Limits
from adapters.slack.settings import SlackSettings
from runtime.domain.value import JsonObject
from runtime.ports.clock import Clock

CONNECT_TIMEOUT_S = 10.0
# Shorter than Slack's own idle limit, so that a call rarely leaves on a connection that just died.
KEEPALIVE_S = 15.0
SOCKET_CLOSE_TIMEOUT_S = 1.0
SCOPES_HEADER = "x-oauth-scopes"
# Of the answers that something before Slack gives, those after which another try may go well.
_FOR_NOW = frozenset({401, 407, 408, 425, 429})

log = structlog.get_logger(__name__)


class SlackClient:
    """One HTTP session for one installed application. Close it."""

    def __init__(self, settings: SlackSettings, clock: Clock) -> None:
        self._settings = settings
        self._limits = Limits(clock)
        self._session: aiohttp.ClientSession | None = None
        self.granted: frozenset[str] = frozenset()
        """The scopes of the bot token, as Slack's last answer named them."""
        self.trouble = ""
        """Why the bot token is refused now; empty while it is taken."""
        self.lacking: dict[str, str] = {}
        """Methods that Slack refuses for want of a scope, and which scope that is."""

    async def write(self, method: str, body: JsonObject) -> JsonObject:
        """Call a method that changes something. Raises `SlackFailure`."""
        return await self._call(method, body, body=body)

    async def read(self, method: str, arguments: Mapping[str, str | int | bool]) -> JsonObject:
        """Call a method that only reads. Raises `SlackFailure`."""
        return await self._call(method, arguments, arguments=arguments)

    async def socket_address(self) -> str:
        """A fresh address for one Socket Mode connection. Raises `SlackFailure`."""
        if self._settings.app_token is None:
            raise Refused("not_authed", "an app token")
        web = self._web(self._settings.app_token)
        address = (await _answer(web, "apps.connections.open", body={}))[0].get("url")
        if not isinstance(address, str):
            raise Unanswered("apps.connections.open gave no address")
        return address

    async def open_socket(self, address: str) -> aiohttp.ClientWebSocketResponse:
        """Connect to an address that works once. Raises `Unreachable`."""
        try:
            return await self._http().ws_connect(
                address,
                autoping=False,
                timeout=aiohttp.ClientWSTimeout(ws_close=SOCKET_CLOSE_TIMEOUT_S),
                proxy=proxy_for(address),
            )
        except (aiohttp.ClientError, OSError) as error:
            raise Unreachable(f"the socket cannot be opened: {_named(error)}") from error

    async def fetch(self, url: str) -> aiohttp.ClientResponse:
        """Ask for a file with the bot token; the caller has checked whose address it is, and
        releases the response. A redirect is not followed. Raises `Unreachable` or `Unanswered`."""
        token = self._settings.bot_token.get_secret_value()
        return await self._raw("GET", url, headers={"Authorization": f"Bearer {token}"})

    async def put(self, url: str, content: BinaryIO) -> None:
        """Send a file's bytes to the address that Slack named. Raises `SlackFailure`."""
        response = await self._raw("POST", url, content=content)
        try:
            if _is_refusal(response.status):
                raise NotServed(f"the upload: HTTP {response.status}")
            if response.status != 200:
                raise Unanswered(f"the upload: HTTP {response.status}")
        finally:
            response.release()

    async def _raw(
        self,
        verb: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: BinaryIO | None = None,
    ) -> aiohttp.ClientResponse:
        try:
            return await self._http().request(
                verb,
                url,
                headers=headers,
                data=content,
                allow_redirects=False,
                # A large file may take long, as long as its bytes keep coming.
                timeout=aiohttp.ClientTimeout(
                    total=None,
                    sock_connect=CONNECT_TIMEOUT_S,
                    sock_read=self._settings.request_timeout_s,
                ),
                proxy=proxy_for(url),
            )
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise Unreachable(_named(error)) from error
        except (aiohttp.ClientError, OSError) as error:
            raise Unanswered(_named(error)) from error

    async def _call(
        self,
        method: str,
        given: Mapping[str, object],
        *,
        body: JsonObject | None = None,
        arguments: Mapping[str, str | int | bool] | None = None,
    ) -> JsonObject:
        channel = given.get("channel", given.get("channel_id", ""))
        self._limits.check(method, str(channel))
        web = self._web(self._settings.bot_token)
        try:
            answer, headers = await _answer(web, method, body=body, arguments=arguments)
        except RateLimited as limit:
            self._limits.note(method, str(channel), limit.after_s)
            raise
        except Refused as refusal:
            if refusal.error in DEAD_TOKEN:
                self.trouble = str(wrong_token("bot", str(refusal)))
            elif refusal.error == MISSING_SCOPE:
                self._lacks(method, refusal.needed)
            raise
        self.trouble = ""
        self.lacking.pop(method, None)
        scopes = headers.get(SCOPES_HEADER)
        if scopes:
            self.granted = frozenset(scope.strip() for scope in scopes.split(","))
        return answer

    def _lacks(self, method: str, scope: str) -> None:
        if method not in self.lacking:
            log.error("slack.missing_scope", method=method, scope=scope)
        self.lacking[method] = scope

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _http(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(keepalive_timeout=KEEPALIVE_S),
                timeout=aiohttp.ClientTimeout(
                    total=self._settings.request_timeout_s, sock_connect=CONNECT_TIMEOUT_S
                ),
            )
        return self._session

    def _web(self, token: SecretStr) -> AsyncWebClient:
        web = AsyncWebClient(
            token=token.get_secret_value(),
            base_url=self._settings.api_url,
            session=self._http(),
            retry_handlers=[],
        )
        # Its own reading of the environment knows no exceptions.
        web.proxy = proxy_for(self._settings.api_url)
        return web


async def _answer(
    web: AsyncWebClient,
    method: str,
    *,
    body: JsonObject | None = None,
    arguments: Mapping[str, str | int | bool] | None = None,
) -> tuple[JsonObject, Mapping[str, str]]:
    try:
        if arguments is None:
            response = await web.api_call(method, json=body)
        else:
            # A form, not a query: addresses end up in the logs of whatever stands in between.
            response = await web.api_call(method, data=_form(arguments))
    except SlackApiError as error:
        raise _failure(method, error) from error
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        raise Unreachable(f"{method}: {_named(error)}") from error
    except (aiohttp.ClientError, OSError) as error:
        raise Unanswered(f"{method}: {_named(error)}") from error
    headers = {name.lower(): value for name, value in response.headers.items()}
    return (response.data if isinstance(response.data, dict) else {}), headers


def _form(arguments: Mapping[str, str | int | bool]) -> dict[str, str]:
    return {
        name: str(given).lower() if isinstance(given, bool) else str(given)
        for name, given in arguments.items()
    }


def _failure(method: str, error: SlackApiError) -> SlackFailure:
    response = error.response
    if not isinstance(response, AsyncSlackResponse):
        return Unanswered(f"{method}: an answer that is no JSON")
    data: Mapping[str, JsonValue] = response.data if isinstance(response.data, dict) else {}
    code = data.get("error")
    if response.status_code == 429 or code in ("ratelimited", "rate_limited"):
        return RateLimited(_seconds(response.headers.get("Retry-After")))
    if _is_refusal(response.status_code) and not code:
        return NotServed(f"{method}: HTTP {response.status_code} from something before Slack")
    if response.status_code >= 500:
        # The page of an edge server says nothing about what happened behind it.
        return Unanswered(f"{method}: HTTP {response.status_code}")
    if isinstance(code, str) and code:
        needed = data.get("needed")
        return Refused(code, needed if isinstance(needed, str) else "", method)
    if response.status_code >= 400:
        return Unreachable(f"{method}: HTTP {response.status_code} from something before Slack")
    return Unanswered(f"{method}: an answer without `ok`")


def _is_refusal(status: int) -> bool:
    """Whether an HTTP status says what will be so the next time as well."""
    return status == 501 or (400 <= status < 500 and status not in _FOR_NOW)


def _seconds(header: str | None) -> float | None:
    try:
        return None if header is None else max(0.0, float(header))
    except ValueError:
        return None


def _named(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"the name {error.host} did not resolve"
    return f"{type(error).__name__}: {error}".rstrip(": ")
