"""`/v1/sessions`: conversations, what was said in them, and what is said next (RUN-1)."""

from functools import lru_cache, partial
from typing import Final

from aiohttp import web

from gateway.http.request_bodies import (
    ModeRequest,
    PermissionModeRequest,
    QueueModeRequest,
    RoutePolicyRequest,
    RunRequest,
    SessionRequest,
    body,
    idempotency_key,
)
from gateway.http.responses import (
    answer,
    cursor_of,
    flag_of,
    limit_of,
    listing,
    number_of,
    session_of,
)
from gateway.http.services import HttpServices
from runtime.domain.cursors import Page
from runtime.domain.value import Value
from runtime.intake.control import NewConversation
from runtime.views.models import MessageView

MOST_SOUGHT = 200
"""Characters of a title that are looked for."""
RENDERED = 1_024
"""Messages whose HTML is remembered: a page reads the same ones again and again."""
_CHANGES: Final[dict[str, type[Value]]] = {
    "mode": ModeRequest,
    "queue-mode": QueueModeRequest,
    "permission-mode": PermissionModeRequest,
    "route-policy": RoutePolicyRequest,
}
"""Parts of a session that are set alone, by the end of their path. The key of each body is what
`Control.change_session` calls it."""


class SessionRoutes:
    """Handlers of `/v1/sessions`."""

    def __init__(self, services: HttpServices) -> None:
        self._views = services.views
        self._control = services.control
        self._render = lru_cache(maxsize=RENDERED)(lambda text: "\n".join(services.render(text)))

    def routes(self) -> list[web.RouteDef]:
        one = "/v1/sessions/{session_id}"
        return [
            web.get("/v1/sessions", self._list),
            web.post("/v1/sessions", self._create),
            web.get(one, self._get),
            web.get(f"{one}/messages", self._messages),
            web.post(f"{one}/runs", self._submit),
            web.post(f"{one}/interrupt", self._interrupt),
            web.post(f"{one}/end", self._end),
            *(
                web.put(f"{one}/{name}", partial(self._change, model=model))
                for name, model in _CHANGES.items()
            ),
            web.delete(f"{one}/permission-mode", partial(self._clear, name="permission_mode")),
            web.delete(f"{one}/route-policy", partial(self._clear, name="model")),
        ]

    async def _list(self, request: web.Request) -> web.Response:
        """``subagents=false`` leaves out the sessions of subagents, ``archived`` tells those that
        were put aside from the others, and ``q`` is a part of the title. ``key`` asks for the one
        session with this key, whatever the rest says."""
        page = await self._views.sessions(
            limit=limit_of(request),
            cursor=cursor_of(request),
            children=flag_of(request, "subagents") is not False,
            title=" ".join(request.query.get("q", "").split())[:MOST_SOUGHT],
            key=request.query.get("key", ""),
            archived=flag_of(request, "archived"),
        )
        return listing(page)

    async def _create(self, request: web.Request) -> web.Response:
        asked = await body(request, SessionRequest)
        new = NewConversation(
            channel=asked.channel,
            key=asked.key,
            title=asked.title,
            mode=asked.mode,
            permission_mode=asked.permission_mode,
        )
        session, made = await self._control.create_session(
            new, idempotency_key=idempotency_key(request)
        )
        headers = {"Location": f"/v1/sessions/{session.id}"}
        return answer(session, status=201 if made else 200, headers=headers)

    async def _get(self, request: web.Request) -> web.Response:
        return answer(await self._views.session(session_of(request)))

    async def _messages(self, request: web.Request) -> web.Response:
        """Oldest first; ``cursor`` leads to earlier ones. ``html=1`` adds sanitised HTML."""
        found = await self._views.transcript(
            session_of(request),
            transcript=number_of(request, "transcript"),
            before=cursor_of(request),
            limit=limit_of(request),
        )
        items = found.items
        if request.query.get("html") == "1":
            items = tuple(self._with_html(item) for item in items)
        page = Page(items=items, next_cursor=found.next_cursor)
        return listing(page, transcript=found.transcript, position=found.position)

    def _with_html(self, item: MessageView) -> MessageView:
        if not item.text or item.kind not in ("assistant", "notice", "agents", "file"):
            return item
        return item.model_copy(update={"html": self._render(item.text)})

    async def _submit(self, request: web.Request) -> web.Response:
        asked = await body(request, RunRequest)
        done = await self._control.submit(
            session_of(request), asked.items(), idempotency_key=idempotency_key(request)
        )
        headers = {"Location": f"/v1/runs/{done.run_id}"} if done.run_id else {}
        return answer(done, status=202, headers=headers)

    async def _interrupt(self, request: web.Request) -> web.Response:
        return answer(await self._control.interrupt(session_of(request)))

    async def _end(self, request: web.Request) -> web.Response:
        return answer(await self._control.end_session(session_of(request)))

    async def _change(self, request: web.Request, *, model: type[Value]) -> web.Response:
        changed = (await body(request, model)).model_dump(mode="json")
        return answer(await self._control.change_session(session_of(request), changed))

    async def _clear(self, request: web.Request, *, name: str) -> web.Response:
        return answer(await self._control.change_session(session_of(request), {name: None}))
