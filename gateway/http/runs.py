"""`/v1/runs`, and the approvals and questions that runs wait for (RUN-2, RUN-3)."""

from functools import partial

from aiohttp import web

from gateway.http.operations import Listed, Operation, body, query
from gateway.http.query_models import OpenCallsQuery, Paging, RunsQuery
from gateway.http.request_bodies import ApprovalsRequest, Nothing, QuestionsRequest
from gateway.http.responses import answer, listing, path_id
from gateway.http.services import HttpServices
from runtime.domain.events import Event
from runtime.intake.api_decisions import Reply, Resolution
from runtime.views.models import OpenCallView, RunView


class RunRoutes:
    """Handlers of `/v1/runs`, `/v1/approvals` and `/v1/questions`."""

    def __init__(self, services: HttpServices) -> None:
        self._views = services.views
        self._control = services.control

    def operations(self) -> list[Operation]:
        one = "/v1/runs/{run_id}"
        return [
            Operation(
                *("GET", "/v1/runs", "List runs", self._list),
                query=RunsQuery,
                answer=Listed[RunView],
            ),
            Operation("GET", one, "Show a run", self._get, answer=RunView),
            Operation(
                *("GET", f"{one}/events", "Read what happened in a run", self._events),
                query=Paging,
                answer=Listed[Event],
            ),
            Operation(
                *("POST", f"{one}/cancel", "End a run", self._cancel),
                body=Nothing,
                answer=RunView,
            ),
            Operation(
                *("POST", f"{one}/approvals", "Decide approvals, all or none", self._resolve),
                body=ApprovalsRequest,
                answer=RunView,
                errors=(409,),
            ),
            Operation(
                *("POST", f"{one}/questions", "Answer questions, all or none", self._reply),
                body=QuestionsRequest,
                answer=RunView,
                errors=(409,),
            ),
            *(
                Operation(
                    "GET",
                    f"/v1/{kind}s",
                    f"List {kind}s that wait",
                    partial(self._waiting, kind=kind),
                    query=OpenCallsQuery,
                    answer=Listed[OpenCallView],
                )
                for kind in ("approval", "question")
            ),
        ]

    async def _list(self, request: web.Request) -> web.Response:
        """Newest first."""
        asked = query(request, RunsQuery)
        page = await self._views.runs(
            session_id=asked.session_id,
            status=asked.status,
            limit=asked.limit,
            cursor=asked.after,
        )
        return listing(page)

    async def _get(self, request: web.Request) -> web.Response:
        return answer(await self._views.run(_run(request)))

    async def _events(self, request: web.Request) -> web.Response:
        """In the order in which it happened."""
        asked = query(request, Paging)
        page = await self._views.run_events(_run(request), limit=asked.limit, cursor=asked.after)
        return listing(page)

    async def _cancel(self, request: web.Request) -> web.Response:
        return answer(await self._control.cancel(_run(request)))

    async def _resolve(self, request: web.Request) -> web.Response:
        asked = body(request, ApprovalsRequest)
        batch = [
            Resolution(one.request_id, one.behavior, one.scope, one.reason)
            for one in asked.resolutions
        ]
        return answer(await self._control.resolve_approvals(_run(request), batch))

    async def _reply(self, request: web.Request) -> web.Response:
        asked = body(request, QuestionsRequest)
        batch = [Reply(one.request_id, one.text) for one in asked.answers]
        return answer(await self._control.answer_questions(_run(request), batch))

    async def _waiting(self, request: web.Request, *, kind: str) -> web.Response:
        asked = query(request, OpenCallsQuery)
        page = await self._views.open_calls(
            kind, session_id=asked.session_id, limit=asked.limit, cursor=asked.after
        )
        return listing(page)


def _run(request: web.Request) -> str:
    return path_id(request, "run_id", "run")
