"""A conversation as people read it: what was said, asked, done and decided, in order of time."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from runtime.domain import cursors
from runtime.domain.errors import NotFound
from runtime.domain.messages import OutboundMessage, TextPart, message_identity
from runtime.domain.transcript import AssistantMessage, NoticeMessage, UserMessage
from runtime.sessions import calls, events, inputs, listings, open_calls, sessions
from runtime.sessions.calls import CallRow
from runtime.sessions.inputs import Input
from runtime.sessions.listings import INPUT, MESSAGE, POST, Place, Span
from runtime.sessions.outbox import LIVE_CARD, OutboxRow
from runtime.sessions.transcripts import Line
from runtime.sessions.unit import Kinds
from runtime.store import Connection
from runtime.views.files import file_views
from runtime.views.models import CallView, MessageView, TranscriptView
from runtime.views.shapes import open_call_view

RESULT_PREVIEW = 4_000
"""Characters of a tool's result that are shown."""
_FENCE = re.compile(
    r"\A<(?P<tag>untrusted\S*)(?: [^>]*)?>\n?(?P<inside>.*?)\n?</(?P=tag)[^>]*>\Z", re.S
)
_Placed = tuple[Place, MessageView]


def read(
    conn: Connection,
    kinds: Kinds,
    session_id: str,
    *,
    transcript: int | None,
    before: str | None,
    limit: int,
) -> TranscriptView:
    """The newest page in front of the cursor `before`. Raises `NotFound`, `InvalidInput`."""
    session = sessions.get(conn, session_id)
    number = session.transcript if transcript is None else transcript
    if not 1 <= number <= session.transcript:
        raise NotFound("transcript", str(number))
    begun = listings.spans(conn, session_id)
    span = Span(begun.get(number, 0), begun.get(number + 1, 2**62))
    place = None if before is None else _place(before)
    found = _placed(conn, kinds, session_id, number, span=span, before=place, limit=limit + 1)
    found.sort(key=lambda one: (one[0].at_ms, one[0].rank, one[0].number))
    more = len(found) > limit
    found = found[-limit:]
    first = found[0][0] if found else None
    items = [view for _, view in found]
    if place is None and number == session.transcript:
        items += [
            _input_view(one, waiting=True) for one in listings.inputs_waiting(conn, session_id)
        ]
    items = _behind_their_messages(items)
    return TranscriptView(
        items=tuple(_as_undone(conn, _with_deliveries(conn, items))),
        next_cursor=cursors.encode(first.at_ms, first.rank, first.number)
        if more and first
        else None,
        transcript=number,
        position=events.last_position(conn),
    )


def _place(cursor: str) -> Place:
    at_ms, rank, number = cursors.decode(cursor, int, int, int)
    return Place(int(at_ms), int(rank), int(number))


def _placed(
    conn: Connection,
    kinds: Kinds,
    session_id: str,
    number: int,
    *,
    span: Span,
    before: Place | None,
    limit: int,
) -> list[_Placed]:
    lines = listings.lines_before(conn, session_id, transcript=number, before=before, limit=limit)
    posts = listings.posts_before(conn, session_id, span, before=before, limit=limit)
    said = listings.inputs_before(conn, session_id, span, before=before, limit=limit)
    results = listings.outcomes(conn, [post.open_call_id for post in posts if post.open_call_id])
    return [
        *((Place(one.created_ms, MESSAGE, one.seq), _line_view(conn, one)) for one in lines),
        *(
            (Place(one.created_ms, POST, one.position), _post_view(conn, kinds, one, results))
            for one in posts
        ),
        *((Place(one.message.received_at_ms, INPUT, one.seq), _input_view(one)) for one in said),
    ]


def _line_view(conn: Connection, line: Line) -> MessageView:
    message = line.message
    if isinstance(message, UserMessage):
        return MessageView(
            key=message.input_id or f"seq_{line.seq}",
            kind="user",
            at_ms=line.created_ms,
            run_id=line.run_id,
            seq=line.seq,
            name=message.name,
            trust=message.trust,
            text=message.text,
            attachments=message.attachments,
        )
    if isinstance(message, AssistantMessage):
        made = message.tool_calls and line.run_id is not None
        rows = calls.of_step(conn, line.run_id or "", line.step) if made else ()
        return MessageView(
            key=f"seq_{line.seq}",
            kind="assistant",
            at_ms=line.created_ms,
            run_id=line.run_id,
            step=line.step,
            seq=line.seq,
            text=message.text,
            calls=_call_views(conn, line.run_id or "", rows),
            model=message.model,
            partial=message.partial,
        )
    return MessageView(
        key=f"seq_{line.seq}",
        kind="system",
        at_ms=line.created_ms,
        run_id=line.run_id,
        seq=line.seq,
        text=_told(message) if isinstance(message, NoticeMessage) else "",
    )


def _told(notice: NoticeMessage) -> str:
    """A file in one line: the rest of what the model is told would be the file once more."""
    return notice.text if notice.file is None or not notice.file.line else notice.file.line


_WAITED_FOR: Final[Mapping[str, Literal["person", "agents", "parent"]]] = {
    open_calls.APPROVAL: "person",
    open_calls.QUESTION: "person",
    open_calls.CHILDREN: "agents",
    open_calls.AGENTS: "agents",
    open_calls.CLARIFICATION: "parent",
}


def _call_views(conn: Connection, run_id: str, rows: Sequence[CallRow]) -> tuple[CallView, ...]:
    waiting: dict[tuple[int, int], str] = {}
    if any(row.state == "waiting" for row in rows):
        opened = open_calls.of_run(conn, run_id, state="open")
        waiting = {(call.step, call.place): call.kind for call in opened}
    return tuple(_call_view(row, waiting.get((row.step, row.place), "")) for row in rows)


def _call_view(row: CallRow, waits_for: str) -> CallView:
    content = _unfenced(row.result.content) if row.result else ""
    return CallView(
        id=row.call.id,
        name=row.call.name,
        arguments=row.call.arguments,
        state=row.state,
        status=row.result.status if row.result else None,
        verdict=row.decision.verdict if row.decision else None,
        rule=row.decision.rule if row.decision else "",
        waits_for=_WAITED_FOR.get(waits_for),
        result=content[:RESULT_PREVIEW],
        result_characters=len(content),
    )


def _unfenced(content: str) -> str:
    """A result without the frame that tells the model that it is data (TOOL-11)."""
    found = _FENCE.match(content)
    return found["inside"] if found else content


def _post_view(
    conn: Connection, kinds: Kinds, post: OutboxRow, results: Mapping[str, str]
) -> MessageView:
    if post.kind == LIVE_CARD:
        return MessageView(
            key=post.message.outbox_id,
            kind="agents",
            at_ms=post.created_ms,
            run_id=post.message.run_id,
            text=kinds.delegations.card_text(conn, post.open_call_id or ""),
            delivery=post.state,
        )
    call = None if post.open_call_id is None else open_calls.get(conn, post.open_call_id)
    said = results.get(post.open_call_id or "", "")
    files = file_views(post.message)
    texts = [part for part in post.message.parts if isinstance(part, TextPart)]
    return MessageView(
        key=post.message.outbox_id,
        kind="card" if call is not None else "file" if files else "notice",
        at_ms=post.created_ms,
        run_id=post.message.run_id,
        text="\n\n".join(part.markdown for part in texts),
        files=files,
        buttons=tuple(button for part in texts for button in part.buttons if button.command),
        card=None if call is None else open_call_view(call, said),
        delivery=post.state,
        answers=_answered(conn, post.message),
    )


def _answered(conn: Connection, message: OutboundMessage) -> str | None:
    """The input that the gateway's own words answer, where they answer one."""
    if message.reply_to is None or message.run_id is not None:
        return None
    known = inputs.known(conn, message_identity(message.target, message.reply_to))
    return known.id if known else None


def _behind_their_messages(items: Sequence[MessageView]) -> list[MessageView]:
    """What the gateway said of a message stands behind it, also where the message stands later
    than it came: at the end while it waits, then where its run took it up."""
    places = {item.key: place for place, item in enumerate(items)}
    ordered = []
    for place, item in enumerate(items):
        behind = max(place, places.get(item.answers or "", place))
        ordered.append((behind, behind != place, place))
    return [items[place] for _, _, place in sorted(ordered)]


def _input_view(one: Input, *, waiting: bool = False) -> MessageView:
    return MessageView(
        key=one.id,
        kind="user",
        at_ms=one.message.received_at_ms,
        run_id=one.run_id,
        name=one.speaker.name,
        trust=one.speaker.trust,
        text=one.message.text,
        attachments=one.message.attachments,
        waiting=waiting,
    )


def _with_deliveries(conn: Connection, items: Sequence[MessageView]) -> list[MessageView]:
    """The last word of each run with what became of it on its way."""
    last = {
        item.run_id: item.key
        for item in items
        if item.kind == "assistant" and item.run_id is not None and not item.calls
    }
    states = listings.final_states(conn, list(last))
    return [
        item.model_copy(update={"delivery": states.get(item.run_id)})
        if item.run_id is not None and last.get(item.run_id) == item.key
        else item
        for item in items
    ]


def _as_undone(conn: Connection, items: Sequence[MessageView]) -> list[MessageView]:
    """The items with a mark on those whose turn was taken back."""
    undone = listings.undone(conn, {item.run_id for item in items if item.run_id is not None})
    return [
        item.model_copy(update={"undone": True}) if item.run_id in undone else item
        for item in items
    ]
