"""The HTTP application: every route behind the guard, every error a problem document."""

from typing import Final

from aiohttp import web
from aiohttp.typedefs import Middleware

from gateway.http.agents import AgentRoutes
from gateway.http.auth import Guard
from gateway.http.events import EventRoutes
from gateway.http.explain import ExplainRoutes
from gateway.http.files import FileRoutes
from gateway.http.health import HealthRoutes
from gateway.http.hooks import HookRoutes
from gateway.http.logins import LoginRoutes
from gateway.http.metrics import Metrics
from gateway.http.pages import PageRoutes
from gateway.http.people import PeopleRoutes
from gateway.http.personas import PersonaRoutes
from gateway.http.problems import problems
from gateway.http.runs import RunRoutes
from gateway.http.services import HttpServices
from gateway.http.session_admin import KeepingRoutes
from gateway.http.sessions import SessionRoutes

_CSP: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS: Final = {
    "Content-Security-Policy": _CSP,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def build_app(services: HttpServices) -> web.Application:
    """The application; it starts nothing and owns nothing that must be closed but its streams."""
    guard, metrics = Guard(services), Metrics(services)
    events = EventRoutes(services, guard)
    pages = PageRoutes(services, guard)
    app = _guarded(services, metrics.middleware, pages.refusals, problems, guard.middleware)
    app.add_routes(
        [
            *pages.routes(),
            *LoginRoutes(services).routes(),
            *SessionRoutes(services).routes(),
            *KeepingRoutes(services).routes(),
            *PersonaRoutes(services).routes(),
            *RunRoutes(services).routes(),
            *AgentRoutes(services).routes(),
            *FileRoutes(services).routes(),
            *PeopleRoutes(services).routes(),
            *HealthRoutes(services, metrics).routes(),
            *events.routes(),
        ]
    )
    if services.explainer is not None:
        app.add_routes(ExplainRoutes(services.explainer).routes())
    if services.gatehouse is not None:
        app.add_routes(HookRoutes(services.hooks, services.gatehouse).routes())
    app.on_shutdown.append(events.close)
    return app


def build_probes(services: HttpServices) -> web.Application:
    """What a process without the role `http` answers: `/healthz`, `/readyz` and, to a token,
    `/metrics`."""
    guard, metrics = Guard(services), Metrics(services)
    app = _guarded(services, metrics.middleware, problems, guard.middleware)
    app.add_routes(HealthRoutes(services, metrics).probes())
    return app


def _guarded(services: HttpServices, *middlewares: Middleware) -> web.Application:
    app = web.Application(middlewares=middlewares, client_max_size=services.settings.max_body)
    app.on_response_prepare.append(_add_headers)
    return app


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    if request.path.startswith("/static/") and response.status == 200:
        response.headers["Cache-Control"] = "no-cache"
