"""Whole conversations: named, put aside, exported, deleted; the models for them (RUN-6, WEB-3)."""

import json
from typing import Final

from aiohttp import web

from gateway.http import large_answers
from gateway.http.large_answers import LargeAnswers
from gateway.http.operations import Listed, Operation, body, query
from gateway.http.query_models import ExportQuery, Paging
from gateway.http.request_bodies import RevisionRequest
from gateway.http.responses import answer, listing, part_of, session_of
from gateway.http.services import HttpServices
from runtime.domain.cursors import Page
from runtime.intake.sessions import Revision
from runtime.views.export import as_markdown
from runtime.views.models import MessageView, ModelView, SessionView

PAGE: Final = 200
_TYPES: Final = {"markdown": ("md", "text/markdown"), "json": ("json", "application/json")}


class KeepingRoutes:
    """Handlers of what is done with a session as a whole."""

    def __init__(self, services: HttpServices, large: LargeAnswers) -> None:
        self._large = large
        self._views = services.views
        self._control = services.control

    def operations(self) -> list[Operation]:
        one = "/v1/sessions/{session_id}"
        return [
            Operation(
                *("GET", "/v1/models", "List models", self._models),
                query=Paging,
                answer=Listed[ModelView],
            ),
            Operation(
                *("PATCH", one, "Name a session, or put it aside", self._revise),
                body=RevisionRequest,
                answer=SessionView,
            ),
            Operation(
                *("DELETE", one, "Delete a session", self._delete), status=204, errors=(409,)
            ),
            Operation(
                *("GET", f"{one}/export", "Take a conversation along", self._export),
                query=ExportQuery,
                media_types=[media_type for _, media_type in _TYPES.values()],
            ),
        ]

    async def _models(self, request: web.Request) -> web.Response:
        """The models that a session may choose from, the default first."""
        names = (await self._control.models()).names
        found = tuple(ModelView(name=name, default=name == names[0]) for name in names)
        return listing(part_of(Page(items=found), query(request, Paging)))

    async def _revise(self, request: web.Request) -> web.Response:
        asked = body(request, RevisionRequest)
        revision = Revision(title=asked.title, archived=asked.archived)
        return answer(await self._control.sessions.revise(session_of(request), revision))

    async def _delete(self, request: web.Request) -> web.Response:
        await self._control.sessions.delete(session_of(request))
        return web.Response(status=204)

    async def _export(self, request: web.Request) -> web.StreamResponse:
        """All of a conversation as a file."""
        name = query(request, ExportQuery).format
        session = await self._views.session(session_of(request))
        ending, media_type = _TYPES[name]
        response = web.StreamResponse(
            headers={"Content-Disposition": f'attachment; filename="{session.id}.{ending}"'}
        )
        response.content_type, response.charset = media_type, "utf-8"
        with self._large.place(request):
            text = (as_markdown if name == "markdown" else _as_json)(
                session, await self._all(session)
            )
            return await large_answers.write(request, response, large_answers.parts_of(text))

    async def _all(self, session: SessionView) -> list[MessageView]:
        """Everything in a session, in order: also what stands before a `/new`."""
        found: list[MessageView] = []
        for number in range(session.transcript, 0, -1):
            before = None
            while True:
                page = await self._views.transcript(
                    session.id, transcript=number, before=before, limit=PAGE
                )
                found[:0] = page.items
                before = page.next_cursor
                if before is None:
                    break
        return found


def _as_json(session: SessionView, items: list[MessageView]) -> str:
    value = {
        "session": session.model_dump(mode="json"),
        "messages": [item.model_dump(mode="json") for item in items],
    }
    return json.dumps(value, ensure_ascii=False, indent=1)
