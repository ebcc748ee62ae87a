"""What scenarios with people look at: cards in the chat, rows behind them, and calls of a model."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace

from runtime.domain.messages import ApprovalPart, OutboundMessage, QuestionPart
from runtime.domain.runs import RunState
from runtime.domain.tools import ToolResult
from runtime.ports.model import ModelRequest
from runtime.sessions import calls, runs
from runtime.sessions.bounds import PolicySettings, rule_lists
from runtime.sessions.calls import CallRow
from runtime.tools.base import AnyTool
from tests.fakes.model import Said
from tests.scenario.engine import Setup, World, writes
from tests.support import audit_log
from tests.support.audit_log import AuditEntry

MEMBER, GUEST = "U-member", "U-guest"


def call(text: str, tool: str = "note") -> tuple[str, str]:
    """A tool call of the model."""
    return tool, json.dumps({"text": text})


def asks(question: str, *options: str) -> tuple[str, str]:
    """A question of the model."""
    return "ask_user", json.dumps({"question": question, "options": list(options)})


def script(
    *responses: Said | str,
) -> Callable[[ModelRequest], Said | str]:
    """A script by how far a turn has come: for models that several sessions use."""

    def next_one(request: ModelRequest) -> Said | str:
        return responses[request.step - 1]

    return next_one


def offering(*tools: AnyTool) -> Callable[[Setup], Setup]:
    """A setup that offers these tools and no others."""
    return lambda setup: replace(setup, tools=tools)


def policy(settings: PolicySettings) -> Callable[[Setup], Setup]:
    """A change of the operator's policy."""
    return lambda setup: replace(setup, settings=replace(setup.settings, policy=settings))


def ruled(**lists: tuple[str, ...]) -> Callable[[Setup], Setup]:
    """A change of the operator's rules."""
    return policy(PolicySettings(rules=rule_lists(**lists)))


def both(*changes: Callable[[Setup], Setup]) -> Callable[[Setup], Setup]:
    """All of these changes, in order."""

    def change(setup: Setup) -> Setup:
        for one in changes:
            setup = one(setup)
        return setup

    return change


def cards(world: World) -> list[tuple[OutboundMessage, ApprovalPart | QuestionPart]]:
    """The cards that were posted, in order."""
    return [
        (sent.message, part)
        for sent in world.chat.sent
        for part in sent.message.parts
        if isinstance(part, ApprovalPart | QuestionPart)
    ]


async def card(world: World, number: int = 1) -> ApprovalPart | QuestionPart:
    """The n-th card, once it is there."""
    await world.chat.until(lambda: len(cards(world)) >= number)
    return cards(world)[number - 1][1]


async def outcome(world: World, number: int = 1) -> str:
    """What the n-th changed card says, once it is there."""
    await world.chat.until(lambda: len(world.chat.edits) >= number)
    part = world.chat.edits[number - 1].parts[0]
    assert isinstance(part, ApprovalPart | QuestionPart)
    return part.outcome


async def reaches(world: World, run_id: str | None, *states: RunState) -> None:
    """Return once a run is in one of `states`."""
    async with asyncio.timeout(120), writes(world.database) as news:
        while await state(world, run_id) not in states:
            await news.wait()
            news.clear()


async def state(world: World, run_id: str | None) -> RunState:
    """A run's state."""
    return (await world.database.read(lambda conn: runs.get(conn, run_id or ""))).state


async def rows(world: World, run_id: str | None) -> Sequence[CallRow]:
    """A run's calls."""
    return await world.database.read(lambda conn: calls.of_run(conn, run_id or ""))


async def audited(world: World, *prefixes: str) -> list[AuditEntry]:
    """The entries of the audit log whose action begins so."""
    found = await world.database.read(audit_log.entries)
    return [row for row in found if row.action.startswith(prefixes)]


def results(request: ModelRequest) -> Sequence[ToolResult]:
    """What the model is told of its last calls."""
    message = request.messages[-1]
    assert message.role == "tool"
    return message.results
