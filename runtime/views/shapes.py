"""Rows as views: one function for each shape. Pure."""

from collections.abc import Mapping, Sequence

from runtime.domain.capabilities import Capabilities, meet
from runtime.domain.capabilities import Scope as Axis
from runtime.domain.ids import code_of
from runtime.domain.messages import ApprovalPart
from runtime.domain.printable import printable
from runtime.domain.value import JsonObject
from runtime.sessions.approvals import card_part
from runtime.sessions.listings import SessionLine
from runtime.sessions.open_calls import APPROVAL, OpenCall
from runtime.sessions.outbox import OutboxRow
from runtime.sessions.people import Pairing
from runtime.sessions.runs import Run
from runtime.sessions.sessions import Scope, Session
from runtime.views.models import (
    CapabilityScopeView,
    DeliveryProblemView,
    EffectiveCapabilityScopeView,
    OpenCallView,
    PairingView,
    RunView,
    SessionView,
)


def session_view(
    session: Session, line: SessionLine, *, active: Run | None, queued: Sequence[Run]
) -> SessionView:
    """A session with what it does now."""
    state = "queued" if queued else "idle"
    return SessionView(
        id=session.id,
        key=session.key,
        title=session.title,
        archived=line.archived,
        status=session.status,
        state=active.state.value if active else state,
        address=session.address,
        mode=session.mode.value,
        permission_mode=session.permission_mode.value if session.permission_mode else None,
        queue_mode=session.queue_mode,
        model=session.model,
        generation=session.generation if session.generation.given else None,
        agent=session.agent,
        persona=session.persona,
        capability_scope=_own_scope(session.capability_scope),
        effective_capability_scope=_effective_scope(session.scope),
        grants=tuple(one.text for one in session.grants),
        transcript=session.transcript,
        active_run_id=line.active_run,
        queued_run_ids=tuple(run.id for run in queued),
        created_at_ms=session.created_ms,
        updated_at_ms=session.updated_ms,
        last_activity_at_ms=line.last_ms,
    )


def _own_scope(own: Capabilities | None) -> CapabilityScopeView | None:
    if own is None:
        return None
    return CapabilityScopeView(
        tools=_only_list(own.tools),
        denied_tools=own.denied_tools,
        paths=_only_list(own.paths),
        network=_only_list(own.network),
        depth=own.depth,
    )


def _only_list(axis: Axis | None) -> tuple[str, ...] | None:
    """The one list of what one bound said."""
    return None if axis is None else axis.lists[0]


def _lists(axis: Axis | None) -> tuple[tuple[str, ...], ...] | None:
    return None if axis is None else axis.lists


def _effective_scope(scope: Scope) -> EffectiveCapabilityScopeView:
    held = scope.capabilities or Capabilities()
    if scope.tools is not None:
        held = meet(held, Capabilities(tools=Axis.of(*scope.tools)))
    return EffectiveCapabilityScopeView(
        tools=_lists(held.tools),
        denied_tools=held.denied_tools,
        paths=_lists(held.paths),
        network=_lists(held.network),
        depth=held.depth,
        spend=held.spend,
    )


def run_view(run: Run, waiting_for: Sequence[str], passed_on_to: str | None) -> RunView:
    """A run; `waiting_for` are the ids of its open calls, `passed_on_to` is the run that answers
    what it never heard."""
    return RunView(
        id=run.id,
        session_id=run.session_id,
        kind=run.kind,
        state=run.state,
        summary=run.summary,
        step=run.step,
        attempt=run.attempt,
        model=run.model,
        usage=run.usage,
        speaker=run.speaker.name,
        trust=run.speaker.trust,
        error=run.error,
        stop_reason=run.cancel,
        passed_on_to=passed_on_to,
        undone=run.undone_ms is not None,
        waiting_for=tuple(waiting_for),
        created_at_ms=run.created_ms,
        started_at_ms=run.started_ms,
        ended_at_ms=run.ended_ms,
    )


def open_call_view(call: OpenCall, outcome: str = "") -> OpenCallView:
    """An approval or a question, with everything that its card shows (APR-1)."""
    payload = call.payload
    part = card_part(call) if call.kind == APPROVAL else None
    approval = part if isinstance(part, ApprovalPart) else None
    return OpenCallView(
        request_id=call.id,
        code=code_of(call.id),
        kind="approval" if call.kind == APPROVAL else "question",
        session_id=call.session_id,
        run_id=call.run_id,
        state=call.state,
        tool=printable(str(payload.get("tool", ""))),
        arguments=printable(str(payload.get("arguments", ""))),
        reason=str(payload.get("reason", "")),
        question=str(payload.get("question", "")),
        options=_texts(payload, "options"),
        choices=_texts(payload, "choices") if call.kind == APPROVAL else (),
        risk=approval.risk if approval else None,
        bright=approval.bright if approval else "",
        outcome=outcome,
        created_at_ms=call.created_ms,
        expires_at_ms=call.expires_ms,
        answered_at_ms=call.answered_ms,
    )


def pairing_view(found: Pairing) -> PairingView:
    """A request to be let in."""
    return PairingView(
        code=found.code,
        channel=found.channel,
        account=found.account,
        user_id=found.user_id,
        name=found.name,
        created_at_ms=found.created_ms,
        expires_at_ms=found.expires_ms,
    )


def problem_view(post: OutboxRow) -> DeliveryProblemView:
    """A message that was given up or is unknown."""
    target = post.message.target
    return DeliveryProblemView(
        outbox_id=post.message.outbox_id,
        session_id=post.message.session_id,
        run_id=post.message.run_id,
        channel=target.channel,
        account=target.account,
        chat_id=target.chat_id,
        state=post.state,
        reason=post.error or "",
        created_at_ms=post.created_ms,
        settled_at_ms=post.settled_ms,
    )


def unsent(counts: Mapping[str, int]) -> dict[str, int]:
    """Counts of the outbox by state, without the age that comes with them."""
    return {state: count for state, count in counts.items() if state != "oldest_ms"}


def _texts(payload: JsonObject, name: str) -> tuple[str, ...]:
    found = payload.get(name)
    return tuple(str(one) for one in found) if isinstance(found, list) else ()
