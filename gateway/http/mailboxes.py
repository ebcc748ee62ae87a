"""`/v1/mailboxes` and the mailbox of an agent: what agents write to each other (MBX-1, MBX-2)."""

from aiohttp import web

from gateway.http.operations import Listed, Operation, body, query
from gateway.http.query_models import Paging
from gateway.http.request_bodies import idempotency_key
from gateway.http.responses import answer, listing, path_id
from gateway.http.services import HttpServices
from runtime.features.mailboxes.control import MailboxControl
from runtime.features.mailboxes.model import DeadLetterView, Mail, MailReceipt, MailView


class MailboxRoutes:
    """Handlers of `/v1/mailboxes` and of `/v1/agents/{agent_id}/mailbox`."""

    def __init__(self, services: HttpServices) -> None:
        self._mailboxes = MailboxControl(
            services.control.units, services.control.assets, services.mailboxes
        )

    def operations(self) -> list[Operation]:
        path = "/v1/agents/{agent_id}/mailbox"
        return [
            Operation(
                *("POST", "/v1/mailboxes", "Send a message to an agent", self._post),
                body=Mail,
                answer=MailReceipt,
                status=202,
                errors=(404,),
                creates=True,
            ),
            Operation(
                *("GET", path, "List what waits in an agent's mailbox", self._queued),
                query=Paging,
                answer=Listed[MailView],
            ),
            Operation(
                *("GET", f"{path}/dead-letter", "List what an agent never read", self._dead),
                query=Paging,
                answer=Listed[DeadLetterView],
            ),
        ]

    async def _post(self, request: web.Request) -> web.Response:
        """It is kept before the answer, and read once, by a run of the agent that `to` names."""
        asked = body(request, Mail)
        receipt = await self._mailboxes.post(asked, idempotency_key=idempotency_key(request))
        return answer(receipt, status=202)

    async def _queued(self, request: web.Request) -> web.Response:
        """The oldest first. Looking takes nothing out."""
        asked, agent_id = query(request, Paging), _agent(request)
        page = await self._mailboxes.queued(agent_id, limit=asked.limit, cursor=asked.after)
        return listing(page)

    async def _dead(self, request: web.Request) -> web.Response:
        """Messages that expired or whose reader ended, the oldest first, each with the reason."""
        asked, agent_id = query(request, Paging), _agent(request)
        page = await self._mailboxes.dead(agent_id, limit=asked.limit, cursor=asked.after)
        return listing(page)


def _agent(request: web.Request) -> str:
    return path_id(request, "agent_id", "agent")
