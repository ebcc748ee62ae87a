"""What a child is shown of its parent's conversation: with `inherit-readonly` its words (SUB-16),
and the tool calls that a program names (AGT-3).

A copy, made when it is spawned: nothing that the child does reaches the original, and what is said
there later does not reach the child. Everything is fenced as data. With the words no results of
tools come along.
"""

from collections.abc import Sequence
from typing import Final

from runtime.domain.fence import fence
from runtime.domain.results import cut, plain
from runtime.domain.tools import ToolCall, ToolResult
from runtime.domain.transcript import (
    AssistantMessage,
    ToolMessage,
    TranscriptMessage,
    UserMessage,
)
from runtime.features.subagents.notices import Told
from runtime.sessions import runs, transcripts
from runtime.sessions.lanes import Lane
from runtime.store import Connection

MESSAGES: Final = 60
"""The last messages of a parent that are looked at."""
MOST: Final = 8_000
"""Bytes of words that are shown, the newest."""
MOST_OF_CALLS: Final = 32_000
"""Bytes of all the calls that are shown together."""
CALLS: Final = "The agent that started you made these tool calls, and this is what they gave:"
LEAD: Final = "What was said where you were started, as background for your task:"


def snapshot(conn: Connection, parent: Lane) -> Told:
    """The parent's recent conversation for its child; no words where nothing was said."""
    lines = transcripts.page(
        conn,
        parent.session_id,
        transcript=parent.transcript,
        before=parent.message_seq + 1,
        limit=MESSAGES,
    )
    said, left = list[str](), MOST
    shown = set[str]()
    for line in reversed(lines):
        words = _words(line.message)
        if not words:
            continue
        words = cut(words, left)
        left -= len(words.encode())
        said.insert(0, words)
        if line.run_id:
            shown.add(line.run_id)
        if left <= 0:
            break
    if not said:
        return Told("")
    tainted = runs.any_tainted(conn, sorted(shown))
    return Told(f"{LEAD}\n{fence(chr(10).join(said), 'conversation of the parent')}", tainted)


def calls(conn: Connection, parent: Lane, ids: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Tool calls of the parent's conversation with their results, in the order in which they were
    made, and those `ids` that name no call with a result there."""
    if not ids:
        return "", ()
    said, made = list[str](), set[str]()
    lines = transcripts.since(
        conn, parent.session_id, transcript=parent.transcript, first=parent.transcript_from
    )
    asked: dict[str, ToolCall] = {}
    for line in lines:
        if isinstance(line.message, AssistantMessage):
            asked |= {one.id: one for one in line.message.tool_calls if one.id in ids}
        if not isinstance(line.message, ToolMessage):
            continue
        for one in line.message.results:
            if one.call_id in asked:
                made.add(one.call_id)
                said.append(_call(asked[one.call_id], one))
    missing = [one for one in dict.fromkeys(ids) if one not in made]
    if not said:
        return "", missing
    most = MOST_OF_CALLS // len(said)
    shown = "\n\n".join(cut(one, most) for one in said)
    return f"{CALLS}\n{fence(shown, 'tool calls of the parent')}", missing


def _call(call: ToolCall, result: ToolResult) -> str:
    return f"{call.name} {plain(call.arguments)}\n{result.status}: {plain(result.content)}"


def _words(message: TranscriptMessage) -> str:
    if isinstance(message, UserMessage):
        return f"{plain(message.name) or 'person'}: {plain(message.text)}"
    if isinstance(message, AssistantMessage) and message.text.strip():
        return f"agent: {plain(message.text)}"
    return ""
