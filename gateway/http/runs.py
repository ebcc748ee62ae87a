"""`/v1/runs`, and the approvals and questions that runs wait for (RUN-2, RUN-3)."""

from aiohttp import web

from gateway.http.request_bodies import ApprovalsRequest, QuestionsRequest, body
from gateway.http.responses import (
    answer,
    choice_of,
    cursor_of,
    limit_of,
    listing,
    path_id,
    query_id,
)
from gateway.http.services import HttpServices
from runtime.domain.runs import RunState
from runtime.intake.api_decisions import Reply, Resolution


class RunRoutes:
    """Handlers of `/v1/runs`, `/v1/approvals` and `/v1/questions`."""

    def __init__(self, services: HttpServices) -> None:
        self._views = services.views
        self._control = services.control

    def routes(self) -> list[web.RouteDef]:
        one = "/v1/runs/{run_id}"
        return [
            web.get("/v1/runs", self._list),
            web.get(one, self._get),
            web.get(f"{one}/events", self._events),
            web.post(f"{one}/cancel", self._cancel),
            web.post(f"{one}/approvals", self._resolve),
            web.post(f"{one}/questions", self._reply),
            web.get("/v1/approvals", self._approvals),
            web.get("/v1/questions", self._questions),
        ]

    async def _list(self, request: web.Request) -> web.Response:
        page = await self._views.runs(
            session_id=query_id(request, "session_id"),
            status=choice_of(request, "status", RunState),
            limit=limit_of(request),
            cursor=cursor_of(request),
        )
        return listing(page)

    async def _get(self, request: web.Request) -> web.Response:
        return answer(await self._views.run(_run(request)))

    async def _events(self, request: web.Request) -> web.Response:
        page = await self._views.run_events(
            _run(request), limit=limit_of(request), cursor=cursor_of(request)
        )
        return listing(page)

    async def _cancel(self, request: web.Request) -> web.Response:
        return answer(await self._control.cancel(_run(request)))

    async def _resolve(self, request: web.Request) -> web.Response:
        asked = await body(request, ApprovalsRequest)
        batch = [
            Resolution(one.request_id, one.behavior, one.scope, one.reason)
            for one in asked.resolutions
        ]
        return answer(await self._control.resolve_approvals(_run(request), batch))

    async def _reply(self, request: web.Request) -> web.Response:
        asked = await body(request, QuestionsRequest)
        batch = [Reply(one.request_id, one.text) for one in asked.answers]
        return answer(await self._control.answer_questions(_run(request), batch))

    async def _approvals(self, request: web.Request) -> web.Response:
        page = await self._views.approvals(
            session_id=query_id(request, "session_id"),
            limit=limit_of(request),
            cursor=cursor_of(request),
        )
        return listing(page)

    async def _questions(self, request: web.Request) -> web.Response:
        page = await self._views.questions(
            session_id=query_id(request, "session_id"),
            limit=limit_of(request),
            cursor=cursor_of(request),
        )
        return listing(page)


def _run(request: web.Request) -> str:
    return path_id(request, "run_id", "run")
