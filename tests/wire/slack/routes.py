"""The HTTP side: the Web API, uploads, downloads, response URLs and the socket address."""

import json

from aiohttp import web

from tests.wire.slack.answers import Call, SlackError
from tests.wire.slack.api import Api
from tests.wire.slack.api_chat import checked_blocks
from tests.wire.slack.arguments import METHODS, Arguments, read_arguments
from tests.wire.slack.core import Core
from tests.wire.slack.faults import Fault
from tests.wire.slack.methods import HANDLERS, authorise
from tests.wire.slack.requests import RawCall, read_call
from tests.wire.slack.state import JsonObject, Message

#: Refusals that no correct client provokes.
VIOLATING = frozenset(
    {"unknown_method", "invalid_arguments", "invalid_json", "json_not_object", "invalid_post_type"}
)
_URL_FIELDS = {"text", "blocks", "response_type", "replace_original", "delete_original"}
_URL_USES = 5


class Routes:
    """Request handlers over a `Core`."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._url_uses: dict[str, int] = {}

    def application(self) -> web.Application:
        app = web.Application(client_max_size=64 * 1024**2)
        app.add_routes(
            [
                web.route("*", "/api/{method}", self.call),
                web.get("/link/", self.link),
                web.post("/upload/v1/{file}", self.upload),
                web.get("/files-pri/{place}/{tail:.*}", self.download),
                web.get("/login", self.login),
                web.post("/actions/{place}/{ts}/{user}", self.respond),
            ]
        )
        return app

    async def call(self, request: web.Request) -> web.StreamResponse:
        """One Web API call: faults, the method itself, its events, then the answer."""
        name = request.match_info["method"]
        try:
            raw = await read_call(request)
        except SlackError as error:
            self._core.complain(name, error.error)
            return web.json_response(error.body())
        call = Call(name, raw.values, raw.token, raw.carrier)
        self._core.calls.append(call)
        fault = self._core.faults.take(call, before=True)
        if fault is not None:
            await self._core.changed()
            return self._refusal(call, fault)
        await self._run(call, raw)
        await self._core.changed()
        fault = self._core.faults.take(call, before=False)
        if fault is not None:
            await self._misbehave(request, fault)
        return web.json_response(call.answer, headers=self._scopes())

    def _scopes(self) -> dict[str, str]:
        held = self._core.install.scopes
        return {} if held is None else {"X-OAuth-Scopes": ",".join(sorted(held))}

    async def link(self, request: web.Request) -> web.StreamResponse:
        return await self._core.hub.serve(request)

    async def upload(self, request: web.Request) -> web.StreamResponse:
        stored = self._core.workspace.files.get(request.match_info["file"])
        if stored is None or stored.content is not None:
            return web.Response(status=404, text="no such upload")
        fault = self._core.faults.take(Call("upload", {}, None, "upload"), before=True)
        if fault is not None:
            return web.Response(status=fault.status, text="not taken")
        content = await _uploaded_bytes(request)
        if len(content) != stored.expected:
            detail = f"{len(content)} bytes instead of the announced {stored.expected}"
            self._core.complain("upload", detail)
            return web.Response(status=500, text="length mismatch")
        stored.content = content
        return web.Response(text=f"OK - {len(content)}")

    async def download(self, request: web.Request) -> web.StreamResponse:
        """The bytes of a file; without the bot token Slack sends people to its login page."""
        known = request.headers.get("Authorization") == f"Bearer {self._core.install.bot_token}"
        if not known or not self._core.workspace.may("files:read"):
            raise web.HTTPFound("/login")
        if self._core.files_moved_to:
            raise web.HTTPFound(self._core.files_moved_to)
        file_id = request.match_info["place"].partition("-")[2]
        stored = self._core.workspace.files.get(file_id)
        if stored is None or stored.content is None:
            raise web.HTTPNotFound
        return web.Response(body=stored.content, content_type=stored.mimetype)

    async def login(self, _request: web.Request) -> web.StreamResponse:
        return web.Response(text="<!DOCTYPE html><title>Sign in</title>", content_type="text/html")

    async def respond(self, request: web.Request) -> web.StreamResponse:
        """A response URL: replaces, deletes or adds a message, five times at most."""
        where = request.path
        self._url_uses[where] = self._url_uses.get(where, 0) + 1
        if self._url_uses[where] > _URL_USES:
            return web.Response(status=404, text="used_url")
        body = await request.json()
        if not isinstance(body, dict) or not set(body) <= _URL_FIELDS:
            self._core.complain("response_url", f"unexpected body: {body!r}")
            return web.Response(status=400, text="invalid_payload")
        await self._apply_response(request, body)
        return web.Response(text="ok")

    async def _apply_response(self, request: web.Request, body: JsonObject) -> None:
        core, place = self._core, request.match_info["place"]
        blocks = checked_blocks(Arguments(body))
        target = core.workspace.channels[place].messages.get(request.match_info["ts"])
        if target is not None and body.get("delete_original") is True:
            target.deleted = True
        elif target is not None and body.get("replace_original") is True:
            target.revisions.append(target.visible_text)
            target.text, target.blocks = str(body.get("text", "")), blocks
        else:
            private = body.get("response_type") != "in_channel"
            core.workspace.store(
                Message(
                    channel=place,
                    ts=core.workspace.next_ts(),
                    text=str(body.get("text", "")),
                    user=core.install.bot_user,
                    bot_id=core.install.bot_id,
                    blocks=blocks,
                    ephemeral_to=request.match_info["user"] if private else None,
                )
            )
        await core.changed()

    async def _run(self, call: Call, raw: RawCall) -> None:
        core, name = self._core, call.method

        def ticket() -> str:
            address = core.base_url.replace("http", "ws", 1)
            return f"{address}/link/?ticket={core.hub.new_ticket()}&app_id={core.install.app_id}"

        def complain(detail: str) -> None:
            core.complain(name, detail)

        api = Api(core.workspace, core.base_url, complain, ticket)
        try:
            if name not in METHODS:
                raise SlackError("unknown_method", req_method=name)
            authorise(core.install, name, call.token)
            arguments = read_arguments(name, raw.values, raw.carrier)
            scope = METHODS[name].scope
            if scope is not None and METHODS[name].token == "bot":
                api.need(scope)
            call.answer = {"ok": True, **HANDLERS[name](api, arguments)}
        except SlackError as error:
            call.error, call.answer = error.error, error.body()
            if error.error in VIOLATING:
                complain("; ".join([error.error, *error.details]))
            return
        for event in api.events:
            await core.tell(event)

    def _refusal(self, call: Call, fault: Fault) -> web.Response:
        headers = {}
        if fault.retry_after is not None:
            headers["Retry-After"] = str(fault.retry_after)
        if isinstance(fault.body, str):
            call.error = f"http {fault.status}"
            return web.Response(status=fault.status, text=fault.body, content_type="text/html")
        call.answer, call.error = fault.body, str(fault.body.get("error"))
        return web.Response(
            status=fault.status,
            text=json.dumps(fault.body),
            content_type="application/json",
            headers=headers,
        )

    async def _misbehave(self, request: web.Request, fault: Fault) -> None:
        if fault.kind == "hang":
            await self._core.closing.wait()
        elif fault.kind == "cut" and request.transport is not None:
            request.transport.abort()
        elif fault.gate is not None:
            fault.gate.entered.set()
            await fault.gate.opened.wait()


async def _uploaded_bytes(request: web.Request) -> bytes:
    if request.content_type != "multipart/form-data":
        return await request.read()
    part = (await request.post()).get("filename")
    return part.file.read() if isinstance(part, web.FileField) else b""
