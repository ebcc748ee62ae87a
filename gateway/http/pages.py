"""The chat page, the login, the page of a refusal, and the static files (WEB-1, WEB-2)."""

import json
import secrets
from pathlib import PurePosixPath
from typing import Final

import jinja2
from aiohttp import web

from gateway.features import COMMANDS
from gateway.http.auth import COOKIE, CSRF_FIELD, PRINCIPAL, Guard, csrf_of, same_csrf
from gateway.http.problems import CONTENT_TYPE, Handler, HttpProblem
from gateway.http.services import HttpServices
from gateway.ui import STATIC, TEMPLATES
from runtime.intake.logins import LIFE_MS

FORM_COOKIE: Final = "gatehouse_form"
"""Binds the login form to the browser that asked for it: another site's page cannot log it in."""
STALE_LINK: Final = "This link was used already, or is too old. Run gatehouse open for another."
STALE_FORM: Final = "The form was too old, or the browser does not keep cookies. Try again."
_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class PageRoutes:
    """Handlers of pages. Templates escape everything; no page carries a script of its own."""

    def __init__(self, services: HttpServices, guard: Guard) -> None:
        self._logins = services.logins
        self._settings = services.settings
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

    @web.middleware
    async def refusals(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Show a refusal to a person as a page; programs get the problem document."""
        response = await handler(request)
        if not isinstance(response, web.Response) or response.content_type != CONTENT_TYPE:
            return response
        if "text/html" not in request.headers.get("Accept", ""):
            return response
        problem = json.loads(response.text or "{}")
        page = self._page("refused.html", status=response.status, problem=problem)
        kept = ("Retry-After", "WWW-Authenticate", "Connection", "Allow")
        page.headers.update({key: response.headers[key] for key in kept if key in response.headers})
        return page

    async def _chat(self, request: web.Request) -> web.Response:
        principal = request[PRINCIPAL]
        return self._page(
            "chat.html",
            csrf=principal.csrf or "",
            may_write=principal.role == "admin",
            may_log_out=principal.via == "cookie",
            commands=sorted(COMMANDS.listed, key=lambda one: one.name),
        )

    async def _login(self, request: web.Request) -> web.Response:
        try:
            known = await self._guard.principal(request)
        except HttpProblem:
            known = None
        if known is not None:
            # The empty fragment takes the place of a link's code, which would stay in the address.
            raise web.HTTPSeeOther("/#")
        return self._login_page(request)

    async def _log_in(self, request: web.Request) -> web.StreamResponse:
        urlencoded = request.content_type == "application/x-www-form-urlencoded"
        form = await request.post() if urlencoded else {}
        token, code, csrf = (_text(form.get(name)) for name in ("token", "code", CSRF_FIELD))
        known = request.cookies.get(FORM_COOKIE, "")
        try:
            if not known or not same_csrf(csrf, csrf_of(known)):
                raise HttpProblem(403, "csrf", STALE_FORM)
            secret = await self._secret(request, token, code)
        except HttpProblem as error:
            page = self._login_page(request, error=error.detail, status=error.status)
            page.headers.update({key: error.headers[key] for key in error.headers})
            return page
        response = web.Response(status=303, headers={"Location": "/"})
        response.set_cookie(
            COOKIE,
            secret,
            max_age=LIFE_MS // 1000,
            httponly=True,
            samesite="Strict",
            secure=self._secure(request),
            path="/",
        )
        response.del_cookie(FORM_COOKIE, path="/login")
        return response

    async def _secret(self, request: web.Request, token: str, code: str) -> str:
        """The secret of a new login. Raises `HttpProblem`."""
        if not code:
            return await self._logins.create(await self._guard.credentials.of_token(request, token))
        secret = await self._logins.spend(code)
        if secret is None:
            raise self._guard.credentials.refused(request, STALE_LINK)
        return secret

    def _login_page(
        self, request: web.Request, *, error: str = "", status: int = 200
    ) -> web.Response:
        form = request.cookies.get(FORM_COOKIE) or secrets.token_urlsafe(16)
        page = self._page("login.html", status=status, error=error, csrf=csrf_of(form))
        page.set_cookie(
            FORM_COOKIE,
            form,
            httponly=True,
            samesite="Strict",
            secure=self._secure(request),
            path="/login",
        )
        return page

    def _secure(self, request: web.Request) -> bool:
        """Whether the browser reaches us over TLS, which a proxy may end."""
        return self._settings.public_url.startswith("https:") or request.secure

    async def _log_out(self, request: web.Request) -> web.Response:
        secret = request.cookies.get(COOKIE)
        if secret:
            await self._logins.end(secret)
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


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _load_static() -> dict[str, tuple[bytes, str]]:
    """The files that may be asked for, read once: a name is looked up and never opened."""
    return {
        path.name: (path.read_bytes(), _TYPES[PurePosixPath(path.name).suffix])
        for path in sorted(STATIC.iterdir())
        if path.suffix in _TYPES
    }
