"""The HTTP side of the server: routes, tokens, fields and files, answers, and the port itself."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from aiohttp import web
from aiohttp.web_request import FileField

from tests.wire.telegram.arguments import Arguments, JsonObject, Upload, Violation, parse
from tests.wire.telegram.errors import ApiError, bad_request
from tests.wire.telegram.faults import DOWNLOAD, Faults
from tests.wire.telegram.files import MAX_UPLOAD
from tests.wire.telegram.schema import CANONICAL
from tests.wire.telegram.state import State

Perform: TypeAlias = Callable[[Arguments], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Call:
    """One request that named a method: its arguments as checked, and when it came."""

    method: str
    arguments: Arguments
    at: float


@dataclass(slots=True)
class Endpoint:
    """Reads requests, hands the checked ones to `perform`, and writes the answers."""

    token: str
    state: State
    faults: Faults
    perform: Perform
    violations: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    def app(self) -> web.Application:
        app = web.Application(client_max_size=MAX_UPLOAD + 1024 * 1024)
        app.router.add_route("*", "/bot{token}/{method}", self._call)
        app.router.add_get("/file/bot{token}/{path:.+}", self._download)
        return app

    async def _call(self, request: web.Request) -> web.StreamResponse:
        cut = False
        try:
            method = self._method(request)
            arguments = await self._arguments(method, request)
            self.calls.append(Call(method, arguments, self.state.now()))
            self.state.signal.pulse()
            hold = self.faults.take_hold(method)
            error, cut = self.faults.take(method)
            if hold is not None:
                await hold.pass_through()
            if error is not None:
                raise error
            self.faults.floods.check(arguments)
            result = await self.perform(arguments)
            answer = web.json_response({"ok": True, "result": result})
        except Violation as violation:
            self.violations.append(str(violation))
            answer = _refusal(bad_request(str(violation)))
        except ApiError as refused:
            answer = _refusal(refused)
        if cut and request.transport is not None:
            request.transport.abort()
        return answer

    def _method(self, request: web.Request) -> str:
        token, name = request.match_info["token"], request.match_info["method"]
        if ":" not in token:
            raise ApiError(404, "Not Found")
        if token != self.token:
            raise ApiError(401, "Unauthorized")
        method = CANONICAL.get(name.lower())
        if method is None:
            self.violations.append(f"unknown method {name!r}")
            raise ApiError(404, "Not Found: method not found")
        if method != name:
            # Telegram passes over the case of a method's name; other servers need not.
            self.violations.append(f"no method is spelled {name!r}")
        return method

    async def _arguments(self, method: str, request: web.Request) -> Arguments:
        fields = dict(request.query)
        uploads: dict[str, Upload] = {}
        try:
            form = await request.post()
        except web.HTTPRequestEntityTooLarge as error:
            raise ApiError(413, "Request Entity Too Large") from error
        for name, value in form.items():
            if isinstance(value, FileField):
                content = value.file.read()
                value.file.close()
                uploads[name] = Upload(value.filename, content, value.content_type)
            elif isinstance(value, str):
                fields[name] = value
        return parse(method, fields, uploads)

    async def _download(self, request: web.Request) -> web.StreamResponse:
        error, cut = self.faults.take(DOWNLOAD)
        stored = self.state.files.at(request.match_info["path"])
        if request.match_info["token"] != self.token:
            error = ApiError(401, "Unauthorized")
        if stored is None:
            error = error or ApiError(404, "Not Found")
        if error is not None or stored is None:
            return _refusal(error or ApiError(404, "Not Found"))
        content = stored.attachment.content
        answer = web.StreamResponse(headers={"Content-Length": str(len(content))})
        await answer.prepare(request)
        if cut and request.transport is not None:
            # In the middle of the file, where a client cannot ask again without knowing it.
            await answer.write(content[: len(content) // 2])
            request.transport.abort()
            return answer
        await answer.write(content)
        return answer


def _refusal(error: ApiError) -> web.Response:
    body: JsonObject = {
        "ok": False,
        "error_code": error.code,
        "description": error.description,
    }
    if error.parameters:
        body["parameters"] = dict(error.parameters)
    return web.json_response(body, status=error.code)


class Listener:
    """The port: it can be closed and opened again under the same number."""

    def __init__(self, app: web.Application) -> None:
        self._runner = web.AppRunner(app, shutdown_timeout=1.0, access_log=None)
        self._site: web.TCPSite | None = None
        self._port = 0

    async def start(self) -> str:
        await self._runner.setup()
        await self.up()
        return f"http://127.0.0.1:{self._port}"

    async def up(self) -> None:
        self._site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True)
        await self._site.start()
        host_and_port = self._runner.addresses[0]
        self._port = int(host_and_port[1])

    async def down(self) -> None:
        if self._site is not None:
            await self._site.stop()
            self._site = None
        server = self._runner.server
        for connection in list(server.connections) if server is not None else []:
            if connection.transport is not None:
                connection.transport.abort()

    async def stop(self) -> None:
        await self._runner.cleanup()
