"""`/v1/schedules`: what happens at a time that somebody named (SCH-1)."""

from collections.abc import Awaitable, Callable
from functools import partial

from aiohttp import web

from gateway.http.operations import Listed, Operation, body, query
from gateway.http.query_models import SchedulesQuery
from gateway.http.request_bodies import Nothing, idempotency_key
from gateway.http.responses import answer, listing, path_id
from gateway.http.services import HttpServices
from runtime.features.schedules.control import ScheduleControl
from runtime.features.schedules.model import (
    CancelRequest,
    GateDecision,
    ScheduleAnswer,
    ScheduleChange,
    ScheduleCreateRequest,
    ScheduleView,
)

Move = Callable[[str], Awaitable[ScheduleView]]


class ScheduleRoutes:
    """Handlers of `/v1/schedules`."""

    def __init__(self, services: HttpServices) -> None:
        control = services.control
        self._schedules = ScheduleControl(control.units, control.actor.id)

    def operations(self) -> list[Operation]:
        path = "/v1/schedules"
        one = f"{path}/{{schedule_id}}"
        moves: dict[str, tuple[str, Move]] = {
            "pause": ("Pause a schedule", self._schedules.pause),
            "resume": ("Let a paused schedule go on", self._schedules.resume),
        }
        return [
            Operation(
                *("GET", path, "List schedules", self._list),
                query=SchedulesQuery,
                answer=Listed[ScheduleView],
            ),
            Operation(
                *("POST", path, "Make a schedule", self._create),
                body=ScheduleCreateRequest,
                answer=ScheduleAnswer,
                status=201,
                also=(200,),
                errors=(404,),
                creates=True,
            ),
            Operation("GET", one, "Show a schedule", self._get, answer=ScheduleAnswer),
            Operation(
                *("PATCH", one, "Change a schedule", self._revise),
                body=ScheduleChange,
                answer=ScheduleAnswer,
                errors=(409,),
            ),
            Operation(
                *("POST", f"{one}/cancel", "End a schedule for good", self._cancel),
                body=CancelRequest,
                answer=ScheduleAnswer,
                errors=(409,),
            ),
            Operation(
                *("POST", f"{one}/gate", "Approve or deny the gate of a schedule", self._gate),
                body=GateDecision,
                answer=ScheduleAnswer,
                errors=(409,),
            ),
            Operation(
                *("POST", f"{one}/trigger", "Fire a schedule now", self._trigger),
                body=Nothing,
                answer=ScheduleAnswer,
                creates=True,
            ),
            *(
                Operation(
                    *("POST", f"{one}/{name}", summary, partial(self._move, move=move)),
                    body=Nothing,
                    answer=ScheduleAnswer,
                    errors=(409,),
                )
                for name, (summary, move) in moves.items()
            ),
        ]

    async def _list(self, request: web.Request) -> web.Response:
        """Newest first."""
        asked = query(request, SchedulesQuery)
        page = await self._schedules.listing(
            session_id=asked.session_id,
            status=asked.status,
            gate_status=asked.gate_status,
            limit=asked.limit,
            cursor=asked.after,
        )
        return listing(page)

    async def _create(self, request: web.Request) -> web.Response:
        """At each of its times it says `deliver_text`, makes a run of `request`, or makes one where
        `observation_materialization` finds something new."""
        asked = body(request, ScheduleCreateRequest)
        view, made = await self._schedules.create(asked, idempotency_key=idempotency_key(request))
        headers = {"Location": f"/v1/schedules/{view.schedule_id}"}
        return answer(ScheduleAnswer(schedule=view), status=201 if made else 200, headers=headers)

    async def _get(self, request: web.Request) -> web.Response:
        return _shown(await self._schedules.get(_schedule(request)))

    async def _revise(self, request: web.Request) -> web.Response:
        asked = body(request, ScheduleChange)
        return _shown(await self._schedules.revise(_schedule(request), asked))

    async def _gate(self, request: web.Request) -> web.Response:
        """The answer is given to the digest that the schedule shows."""
        given = body(request, GateDecision)
        return _shown(await self._schedules.decide_gate(_schedule(request), given))

    async def _cancel(self, request: web.Request) -> web.Response:
        asked = body(request, CancelRequest)
        return _shown(await self._schedules.cancel(_schedule(request), asked))

    async def _trigger(self, request: web.Request) -> web.Response:
        key = idempotency_key(request)
        return _shown(await self._schedules.trigger(_schedule(request), idempotency_key=key))

    async def _move(self, request: web.Request, *, move: Move) -> web.Response:
        return _shown(await move(_schedule(request)))


def _shown(view: ScheduleView) -> web.Response:
    return answer(ScheduleAnswer(schedule=view))


def _schedule(request: web.Request) -> str:
    return path_id(request, "schedule_id", "schedule")
