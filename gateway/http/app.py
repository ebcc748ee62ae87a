"""The HTTP application: every route behind the guard, every error a problem document."""

from typing import Final, Protocol

from aiohttp import web
from aiohttp.typedefs import Middleware

from gateway.http.agents import AgentRoutes
from gateway.http.assets import AssetRoutes
from gateway.http.auth import Guard
from gateway.http.capability_scopes import CapabilityScopeRoutes
from gateway.http.document import DocumentRoutes
from gateway.http.events import EventRoutes
from gateway.http.explain import ExplainRoutes
from gateway.http.files import FileRoutes
from gateway.http.health import HealthRoutes
from gateway.http.hooks import HookRoutes
from gateway.http.large_answers import LargeAnswers
from gateway.http.logins import LoginRoutes
from gateway.http.mailboxes import MailboxRoutes
from gateway.http.metrics import Metrics
from gateway.http.operations import Operation
from gateway.http.pages import PageRoutes
from gateway.http.people import PeopleRoutes
from gateway.http.personas import PersonaRoutes
from gateway.http.problems import problems
from gateway.http.route_policies import RoutePolicyRoutes
from gateway.http.runs import RunRoutes
from gateway.http.schedules import ScheduleRoutes
from gateway.http.services import HttpServices
from gateway.http.session_admin import KeepingRoutes
from gateway.http.sessions import SessionRoutes
from gateway.http.tasks import TaskRoutes

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


DOCUMENT: Final = web.AppKey[DocumentRoutes]("document")
"""Where an application has its OpenAPI document."""


def build_app(services: HttpServices) -> web.Application:
    """The application; it starts nothing and owns nothing that must be closed but its streams."""
    guard, metrics = Guard(services), Metrics(services)
    events = EventRoutes(services, guard)
    pages = PageRoutes(services, guard)
    app = _guarded(services, metrics.middleware, pages.refusals, problems, guard.middleware)
    operations = [
        *(one for routes in _api(services) for one in routes.operations()),
        *events.operations(),
    ]
    described = DocumentRoutes(operations, services.version)
    health = HealthRoutes(services)
    app.add_routes([*pages.routes(), *health.probes(), metrics.route()])
    app.add_routes([one.route() for one in (*operations, *described.operations())])
    app[DOCUMENT] = described
    if services.gatehouse is not None:
        app.add_routes(HookRoutes(services.hooks, services.gatehouse).routes())
    app.on_shutdown.append(events.close)
    return app


class _Api(Protocol):
    """The routes of one resource."""

    def operations(self) -> list[Operation]: ...


def _api(services: HttpServices) -> list[_Api]:
    """Every resource of `/v1`, in the order of the document."""
    large = LargeAnswers()
    found: list[_Api] = [
        SessionRoutes(services),
        KeepingRoutes(services, large),
        PersonaRoutes(services),
        TaskRoutes(services, large),
        RunRoutes(services),
        AgentRoutes(services),
        RoutePolicyRoutes(services),
        MailboxRoutes(services),
        ScheduleRoutes(services),
        FileRoutes(services),
        AssetRoutes(services),
        PeopleRoutes(services),
        HealthRoutes(services),
        LoginRoutes(services),
    ]
    explainer = services.explainer
    if explainer is None:
        return found
    return [*found, CapabilityScopeRoutes(services, explainer), ExplainRoutes(explainer)]


def build_probes(services: HttpServices) -> web.Application:
    """What a process without the role `http` answers: `/healthz`, `/readyz` and, to a token,
    `/metrics`."""
    guard, metrics = Guard(services), Metrics(services)
    app = _guarded(services, metrics.middleware, problems, guard.middleware)
    app.add_routes([*HealthRoutes(services).probes(), metrics.route()])
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
