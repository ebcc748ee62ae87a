"""Why a session sees and may do what it does (CTX-2, POL-1); read by `gatehouse context`."""

from aiohttp import web
from pydantic import Field, JsonValue

from gateway.explain import ContextView, Explainer
from gateway.http.operations import Operation, body
from gateway.http.responses import answer, session_of
from runtime.domain.decisions import Decision
from runtime.domain.people import Trust
from runtime.domain.value import Value


class ExplainRequest(Value):
    """A call that nobody makes."""

    tool: str = Field(min_length=1, max_length=200)
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    trust: Trust = Trust.OWNER


class ExplainRoutes:
    """Handlers that run nothing."""

    def __init__(self, explainer: Explainer) -> None:
        self._explainer = explainer

    def operations(self) -> list[Operation]:
        one = "/v1/sessions/{session_id}"
        return [
            Operation(
                *("GET", f"{one}/context", "Show the prompt of the next turn", self._context),
                answer=ContextView,
            ),
            Operation(
                *("POST", f"{one}/policy/explain", "Ask what policy says", self._decision),
                body=ExplainRequest,
                answer=Decision,
            ),
        ]

    async def _context(self, request: web.Request) -> web.Response:
        return answer(await self._explainer.context(session_of(request)))

    async def _decision(self, request: web.Request) -> web.Response:
        asked = body(request, ExplainRequest)
        decision = await self._explainer.decision(
            session_of(request), tool=asked.tool, arguments=asked.arguments, trust=asked.trust
        )
        return answer(decision)
