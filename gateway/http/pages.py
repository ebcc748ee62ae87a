"""The chat page, the login and the static files (WEB-1, WEB-2)."""

from pathlib import PurePosixPath
from typing import Final

import jinja2
from aiohttp import web

from gateway.http.auth import COOKIE, PRINCIPAL, Guard
from gateway.http.problems import HttpProblem
from gateway.http.services import HttpServices
from gateway.ui import STATIC, TEMPLATES
from runtime.commands.table import COMMANDS
from runtime.intake.logins import LIFE_MS

_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class PageRoutes:
    """Handlers of pages. Templates escape everything; no page carries a script of its own."""

    def __init__(self, services: HttpServices, guard: Guard) -> None:
        self._services = services
        self._guard = guard
        self._templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(TEMPLATES),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
        )
        self._static = _load_static()

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/", self._chat, name="chat"),
            web.get("/login", self._login, name="login"),
            web.post("/login", self._log_in, name="login-form"),
            web.post("/logout", self._log_out, name="logout"),
            web.get("/static/{name}", self._file, name="static"),
        ]

    async def _chat(self, request: web.Request) -> web.Response:
        principal = request[PRINCIPAL]
        return self._page(
            "chat.html",
            csrf=principal.csrf or "",
            may_write=principal.role == "admin",
            may_log_out=principal.via == "cookie",
            commands=sorted(COMMANDS.values(), key=lambda one: one.name),
        )

    async def _login(self, request: web.Request) -> web.Response:
        try:
            known = await self._guard.principal(request)
        except HttpProblem:
            known = None
        if known is not None:
            raise web.HTTPSeeOther("/")
        return self._page("login.html", error="")

    async def _log_in(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        given = form.get("token", "")
        token = given.strip() if isinstance(given, str) else ""
        try:
            role = self._guard.check_token(request, token)
        except HttpProblem as error:
            page = self._page("login.html", error=error.detail, status=error.status)
            page.headers.update({key: error.headers[key] for key in error.headers})
            return page
        secret = await self._services.logins.create(role=role, token=token)
        response = web.Response(status=303, headers={"Location": "/"})
        response.set_cookie(
            COOKIE,
            secret,
            max_age=LIFE_MS // 1000,
            httponly=True,
            samesite="Strict",
            secure=self._services.settings.secure_cookies or request.secure,
            path="/",
        )
        return response

    async def _log_out(self, request: web.Request) -> web.Response:
        secret = request.cookies.get(COOKIE)
        if secret:
            await self._services.logins.end(secret)
        response = web.Response(status=303, headers={"Location": "/login"})
        response.del_cookie(COOKIE, path="/")
        return response

    async def _file(self, request: web.Request) -> web.Response:
        found = self._static.get(request.match_info["name"])
        if found is None:
            raise web.HTTPNotFound
        content, media_type = found
        return web.Response(body=content, content_type=media_type, charset="utf-8")

    def _page(self, name: str, *, status: int = 200, **values: object) -> web.Response:
        text = self._templates.get_template(name).render(**values)
        return web.Response(status=status, text=text, content_type="text/html")


def _load_static() -> dict[str, tuple[bytes, str]]:
    """The files that may be asked for, read once: a name is looked up and never opened."""
    return {
        path.name: (path.read_bytes(), _TYPES[PurePosixPath(path.name).suffix])
        for path in sorted(STATIC.iterdir())
        if path.suffix in _TYPES
    }
