"""What a child with `inherit-readonly` is shown of its parent's conversation (SUB-16).

A copy, made when it is spawned: nothing that the child does reaches the original, and what is said
there later does not reach the child. Results of tools are left out; words are fenced as data.
"""

from typing import Final

from runtime.domain.fence import fence
from runtime.domain.results import cut, plain
from runtime.domain.transcript import AssistantMessage, TranscriptMessage, UserMessage
from runtime.features.subagents.notices import Told
from runtime.sessions import runs, transcripts
from runtime.sessions.lanes import Lane
from runtime.store import Connection

MESSAGES: Final = 60
"""The last messages of a parent that are looked at."""
MOST: Final = 8_000
"""Bytes of words that are shown, the newest."""
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


def _words(message: TranscriptMessage) -> str:
    if isinstance(message, UserMessage):
        return f"{plain(message.name) or 'person'}: {plain(message.text)}"
    if isinstance(message, AssistantMessage) and message.text.strip():
        return f"agent: {plain(message.text)}"
    return ""
