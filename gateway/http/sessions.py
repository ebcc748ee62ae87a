"""`/v1/sessions`: conversations, what was said in them, and what is said next (RUN-1)."""

from functools import lru_cache, partial
from typing import Final

from aiohttp import web

from gateway.http.operations import Listed, Operation, body, query
from gateway.http.query_models import MessagesQuery, SessionsQuery
from gateway.http.request_bodies import (
    ModeRequest,
    Nothing,
    PermissionModeRequest,
    QueueModeRequest,
    RunRequest,
    SessionRequest,
    idempotency_key,
)
from gateway.http.responses import answer, listing, session_of
from gateway.http.services import HttpServices
from runtime.domain.cursors import Page
from runtime.domain.value import Value
from runtime.intake.control import NewConversation, StoppedView
from runtime.intake.submissions import Submitted
from runtime.views.models import MessageView, SessionView

MOST_SOUGHT = 200
"""Characters of a title that are looked for."""
RENDERED = 1_024
"""Messages whose HTML is remembered: a page reads the same ones again and again."""
_CHANGES: Final[dict[str, type[Value]]] = {
    "mode": ModeRequest,
    "queue-mode": QueueModeRequest,
    "permission-mode": PermissionModeRequest,
}
"""Parts of a session that are set alone, by the end of their path. The key of each body is what
`Control.change_session` calls it."""
_CLEARED: Final = {"permission-mode": "permission_mode"}
"""Those that have a default to go back to, by what `Control.change_session` calls them."""


class Messages(Listed[MessageView]):
    """A page of a conversation. ``position`` is where its events go on."""

    transcript: int
    position: int


class SessionRoutes:
    """Handlers of `/v1/sessions`."""

    def __init__(self, services: HttpServices) -> None:
        self._views = services.views
        self._control = services.control
        self._render = lru_cache(maxsize=RENDERED)(lambda text: "\n".join(services.render(text)))

    def operations(self) -> list[Operation]:
        one = "/v1/sessions/{session_id}"
        return [
            Operation(
                *("GET", "/v1/sessions", "List sessions", self._list),
                query=SessionsQuery,
                answer=Listed[SessionView],
            ),
            Operation(
                *("POST", "/v1/sessions", "Make a session", self._create),
                body=SessionRequest,
                answer=SessionView,
                status=201,
                also=(200,),
                creates=True,
            ),
            Operation("GET", one, "Show a session", self._get, answer=SessionView),
            Operation(
                *("GET", f"{one}/messages", "Read what was said", self._messages),
                query=MessagesQuery,
                answer=Messages,
            ),
            Operation(
                *("POST", f"{one}/runs", "Say something", self._submit),
                body=RunRequest,
                answer=Submitted,
                status=202,
                creates=True,
            ),
            Operation(
                *("POST", f"{one}/interrupt", "Stop what a session does", self._interrupt),
                body=Nothing,
                answer=StoppedView,
            ),
            Operation(
                *("POST", f"{one}/end", "Close a session for good", self._end),
                body=Nothing,
                answer=SessionView,
                errors=(409,),
            ),
            *(self._setting(one, name, model) for name, model in _CHANGES.items()),
            *(self._clearing(one, name, key) for name, key in _CLEARED.items()),
        ]

    def _setting(self, one: str, name: str, model: type[Value]) -> Operation:
        return Operation(
            "PUT",
            f"{one}/{name}",
            f"Set the {name} of a session",
            partial(self._change, model=model),
            body=model,
            answer=SessionView,
        )

    def _clearing(self, one: str, name: str, key: str) -> Operation:
        return Operation(
            "DELETE",
            f"{one}/{name}",
            f"Go back to the default {name}",
            partial(self._clear, name=key),
            answer=SessionView,
        )

    async def _list(self, request: web.Request) -> web.Response:
        """Newest first. `key` asks for the one session with this key, whatever the rest says."""
        asked = query(request, SessionsQuery)
        page = await self._views.sessions(
            limit=asked.limit,
            cursor=asked.after,
            children=asked.subagents,
            title=" ".join(asked.q.split())[:MOST_SOUGHT],
            key=asked.key,
            archived=asked.archived,
        )
        return listing(page)

    async def _create(self, request: web.Request) -> web.Response:
        asked = body(request, SessionRequest)
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
        """Oldest first; `cursor` leads to earlier ones."""
        asked = query(request, MessagesQuery)
        found = await self._views.transcript(
            session_of(request),
            transcript=asked.transcript,
            before=asked.after,
            limit=asked.limit,
        )
        items = found.items
        if asked.html:
            items = tuple(self._with_html(item) for item in items)
        page = Page(items=items, next_cursor=found.next_cursor)
        return listing(page, transcript=found.transcript, position=found.position)

    def _with_html(self, item: MessageView) -> MessageView:
        if not item.text or item.kind not in ("assistant", "notice", "agents", "file"):
            return item
        return item.model_copy(update={"html": self._render(item.text)})

    async def _submit(self, request: web.Request) -> web.Response:
        asked = body(request, RunRequest)
        done = await self._control.submit(
            session_of(request),
            asked.items(),
            idempotency_key=idempotency_key(request),
            timezone=asked.timezone or "",
        )
        headers = {"Location": f"/v1/runs/{done.run_id}"} if done.run_id else {}
        return answer(done, status=202, headers=headers)

    async def _interrupt(self, request: web.Request) -> web.Response:
        return answer(await self._control.interrupt(session_of(request)))

    async def _end(self, request: web.Request) -> web.Response:
        return answer(await self._control.end_session(session_of(request)))

    async def _change(self, request: web.Request, *, model: type[Value]) -> web.Response:
        changed = (body(request, model)).model_dump(mode="json")
        return answer(await self._control.change_session(session_of(request), changed))

    async def _clear(self, request: web.Request, *, name: str) -> web.Response:
        return answer(await self._control.change_session(session_of(request), {name: None}))
