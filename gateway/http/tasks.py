"""`/v1/sessions/{id}/tasks`: what a session has to do, and its commands (TSK-1, TSK-2, TSK-3)."""

import asyncio
from collections.abc import Coroutine
from contextlib import closing
from typing import Final

from aiohttp import web
from pydantic import Field

from gateway.http import large_answers
from gateway.http.auth import PRINCIPAL
from gateway.http.large_answers import LargeAnswers
from gateway.http.operations import JSON, Listed, Operation, body, query
from gateway.http.places import Places
from gateway.http.query_models import OutputQuery, TasksQuery
from gateway.http.request_bodies import idempotency_key
from gateway.http.responses import answer, listing, path_id, session_of
from gateway.http.services import HttpServices
from runtime.domain.value import Value
from runtime.features.tasks.board import TaskBoard
from runtime.features.tasks.model import (
    OutputRequest,
    TaskCreate,
    TaskOutputView,
    TaskRecord,
    TaskUpdate,
)


class StopRequest(Value):
    """Why a task is stopped."""

    reason: str | None = Field(default=None, max_length=500)


class InputRequest(Value):
    """What is typed into a command; ``close`` ends its input behind it."""

    text: str = Field(default="", max_length=64 * 1024)
    close: bool = False


MOST_WAITS_OF_ONE: Final = 16
MOST_WAITS: Final = 64
"""Requests that wait for a task, each of which holds a connection and looks at each change: from
one credential, and in all."""

GONE_S: Final = 1.0
"""How often a wait looks whether its client is there still."""


class TaskRoutes:
    """Handlers of a session's tasks."""

    def __init__(self, services: HttpServices, large: LargeAnswers) -> None:
        control = services.control
        self._large = large
        self._board = TaskBoard(control.units, services.clock)
        self._workspace = control.workspace
        self._actor = control.actor.id
        self._waits = Places("waits", of_one=MOST_WAITS_OF_ONE, in_all=MOST_WAITS, retry_after_s=10)

    def operations(self) -> list[Operation]:
        path = "/v1/sessions/{session_id}/tasks"
        one = f"{path}/{{task_id}}"
        return [
            Operation(
                *("GET", path, "List a session's tasks", self._list),
                query=TasksQuery,
                answer=Listed[TaskRecord],
            ),
            Operation(
                *("POST", path, "Make a task", self._create),
                body=TaskCreate,
                answer=TaskRecord,
                status=201,
                creates=True,
            ),
            Operation("GET", one, "Show a task", self._get, answer=TaskRecord),
            Operation(
                *("PATCH", one, "Change a task", self._update),
                body=TaskUpdate,
                answer=TaskRecord,
                errors=(409,),
            ),
            Operation(
                *("GET", f"{one}/output", "Read what a task printed", self._output),
                query=OutputQuery,
                answer=TaskOutputView,
            ),
            Operation(
                *("POST", f"{one}/stop", "Stop a task", self._stop),
                body=StopRequest,
                answer=TaskRecord,
            ),
            Operation(
                *("POST", f"{one}/input", "Type into a command", self._write),
                body=InputRequest,
                answer=TaskRecord,
                status=202,
                errors=(409,),
            ),
        ]

    async def _list(self, request: web.Request) -> web.Response:
        asked = query(request, TasksQuery)
        page = await self._board.listing(
            session_of(request), status=asked.status, limit=asked.limit, cursor=asked.after
        )
        return listing(page)

    async def _create(self, request: web.Request) -> web.Response:
        session_id = session_of(request)
        asked = body(request, TaskCreate)
        task = await self._board.create(session_id, asked, idempotency_key=idempotency_key(request))
        headers = {"Location": f"/v1/sessions/{session_id}/tasks/{task.id}"}
        return answer(task, status=201, headers=headers)

    async def _get(self, request: web.Request) -> web.Response:
        return answer(await self._board.get(session_of(request), _task(request)))

    async def _update(self, request: web.Request) -> web.Response:
        asked = body(request, TaskUpdate)
        return answer(await self._board.update(session_of(request), _task(request), asked))

    async def _output(self, request: web.Request) -> web.StreamResponse:
        """``wait`` holds the answer until there is more output or the task changes, for at most
        ``timeout_ms``; ``tail_bytes`` is the length of the excerpt, ``full`` adds all of it."""
        asked = OutputRequest(**query(request, OutputQuery).model_dump())
        if not asked.full:
            return answer(await self._read(request, asked))
        waited = None
        if asked.wait:
            # A wait reads the excerpt alone: it may last, and many wait at once.
            waited = await self._read(request, asked.model_copy(update={"full": False}))
        with self._large.place(request):
            view = await self._read(request, asked.model_copy(update={"wait": False}))
            if waited is not None:
                how = {"retrieval_status": waited.retrieval_status}
                view = view.model_copy(update=how)
            response = web.StreamResponse()
            response.content_type, response.charset = JSON, "utf-8"
            pieces = large_answers.json_parts(view, "output_text")
            return await large_answers.write(request, response, pieces)

    async def _read(self, request: web.Request, asked: OutputRequest) -> TaskOutputView:
        look = self._board.output(self._workspace(), session_of(request), _task(request), asked)
        if not asked.wait:
            return await look
        with closing(look), self._waits.take(request[PRINCIPAL].credential.token):
            return await _while_there(request, look)

    async def _stop(self, request: web.Request) -> web.Response:
        asked = body(request, StopRequest)
        task = await self._board.stop(
            session_of(request), _task(request), reason=asked.reason, by=self._actor
        )
        return answer(task)

    async def _write(self, request: web.Request) -> web.Response:
        asked = body(request, InputRequest)
        task = await self._board.write(
            session_of(request), _task(request), asked.text, closes=asked.close
        )
        return answer(task, status=202)


async def _while_there(
    request: web.Request, work: Coroutine[object, object, TaskOutputView]
) -> TaskOutputView:
    """The result of a wait, which ends early where its client has gone away: then nobody else's
    place is taken by it. Raises `ConnectionResetError` there."""
    waiting = asyncio.create_task(work, name="task wait")
    try:
        while not waiting.done():
            await asyncio.wait({waiting}, timeout=GONE_S)
            if request.transport is None:
                raise ConnectionResetError("whoever waited has gone away")
        return waiting.result()
    finally:
        waiting.cancel()
        await asyncio.wait({waiting})


def _task(request: web.Request) -> str:
    return path_id(request, "task_id", "task")
