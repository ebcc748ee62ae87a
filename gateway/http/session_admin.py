"""Whole conversations: named, put aside, exported, deleted; the models for them (RUN-6, WEB-3)."""

import json
from typing import Final

from aiohttp import web

from gateway.http.request_bodies import RevisionRequest, body
from gateway.http.responses import answer, listing, session_of
from gateway.http.services import HttpServices
from runtime.domain.cursors import Page
from runtime.domain.errors import InvalidInput
from runtime.intake.sessions import Revision
from runtime.views.export import as_markdown
from runtime.views.models import MessageView, ModelView, SessionView

PAGE: Final = 200
_TYPES: Final = {"markdown": ("md", "text/markdown"), "json": ("json", "application/json")}


class KeepingRoutes:
    """Handlers of what is done with a session as a whole."""

    def __init__(self, services: HttpServices) -> None:
        self._views = services.views
        self._control = services.control

    def routes(self) -> list[web.RouteDef]:
        one = "/v1/sessions/{session_id}"
        return [
            web.get("/v1/models", self._models),
            web.patch(one, self._revise),
            web.delete(one, self._delete),
            web.get(f"{one}/export", self._export),
        ]

    async def _models(self, _request: web.Request) -> web.Response:
        """The models that a session may choose from, the default first."""
        names = (await self._control.models()).names
        found = tuple(ModelView(name=name, default=name == names[0]) for name in names)
        return listing(Page(items=found, total_count=len(found)))

    async def _revise(self, request: web.Request) -> web.Response:
        asked = await body(request, RevisionRequest)
        revision = Revision(title=asked.title, archived=asked.archived)
        return answer(await self._control.sessions.revise(session_of(request), revision))

    async def _delete(self, request: web.Request) -> web.Response:
        await self._control.sessions.delete(session_of(request))
        return web.Response(status=204)

    async def _export(self, request: web.Request) -> web.Response:
        """All of a conversation as a file, ``format`` is ``markdown`` or ``json``."""
        name = request.query.get("format", "markdown")
        if name not in _TYPES:
            raise InvalidInput("format", f"must be one of {', '.join(_TYPES)}")
        session = await self._views.session(session_of(request))
        items = await self._all(session)
        ending, media_type = _TYPES[name]
        text = as_markdown(session, items) if name == "markdown" else _as_json(session, items)
        return web.Response(
            text=text,
            content_type=media_type,
            charset="utf-8",
            headers={"Content-Disposition": f'attachment; filename="{session.id}.{ending}"'},
        )

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
