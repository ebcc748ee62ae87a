"""Threads of the agent view and of the assistant view: prompts to press, and the thread's title.

The status line of a working run is shown in every thread, this kind included. All of it is best
effort: a thread without prompts or a title works as well.
"""

import structlog
from pydantic import JsonValue

from adapters.platforms.recent_values import Recent
from adapters.slack.ack_deadline import best_effort
from adapters.slack.client import SlackClient
from adapters.slack.directory import Directory
from adapters.slack.ingress import COMMAND_PREFIX, Heard, ThreadOpened
from runtime.domain.value import JsonObject
from runtime.ports.clock import Clock

log = structlog.get_logger(__name__)

LONGEST_TITLE = 80
PROMPTS: tuple[dict[str, JsonValue], ...] = (
    {"title": "What can you do?", "message": "What can you do for me here?"},
    {"title": "What is going on?", "message": f"{COMMAND_PREFIX}status"},
)
"""What an empty conversation suggests to ask; a manifest says the same."""


class Assistant:
    """The agent's threads of one workspace; which of them have no title yet is kept."""

    def __init__(self, client: SlackClient, directory: Directory, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._directory = directory
        self._untitled: Recent[tuple[str, str], bool] = Recent()

    async def opened(self, thread: ThreadOpened) -> None:
        """Suggest what to ask; also about the channel that the person looks at.

        The agent learns of that channel only when the person presses the prompt that names it.
        """
        if self._untitled.get((thread.chat, thread.thread)) is None:
            self._untitled.put((thread.chat, thread.thread), True)
        prompts: list[JsonValue] = [*PROMPTS]
        name = await self._directory.name(thread.context) if thread.context else ""
        if name:
            asked = f"I am looking at #{name}. What should I know about it?"
            prompts.append({"title": f"About #{name}"[:LONGEST_TITLE], "message": asked})
        await self._try(
            "assistant.threads.setSuggestedPrompts",
            {"channel_id": thread.chat, "thread_ts": thread.thread, "prompts": prompts},
        )

    async def messages_opened(self, chat: str) -> None:
        """Suggest what to ask in the agent view, at the top of the chat: Slack shows nothing there
        if the call names a thread."""
        prompts: list[JsonValue] = [*PROMPTS]
        body: JsonObject = {"channel_id": chat, "prompts": prompts}
        await self._try("assistant.threads.setSuggestedPrompts", body)

    async def stopped(self, heard: Heard) -> None:
        """Slack leaves its own sign of work at a thread that a person stopped."""
        body: JsonObject = {"channel_id": heard.chat, "thread_ts": heard.thread, "status": "active"}
        await self._try("agents.sessions.setStatus", body)

    async def said(self, heard: Heard, text: str) -> None:
        """The first words of a thread are its title; in the agent view, they begin the thread."""
        thread = heard.answer_thread
        if heard.kind != "direct" or thread is None or heard.joins_chat or not text:
            return
        key = (heard.chat, thread)
        begins = thread == heard.message_id and self._untitled.get(key) is None
        if not (begins or self._untitled.get(key)):
            return
        self._untitled.put(key, False)
        title = " ".join(text.split())[:LONGEST_TITLE]
        await self._try(
            "assistant.threads.setTitle",
            {"channel_id": heard.chat, "thread_ts": thread, "title": title},
        )

    async def _try(self, method: str, body: JsonObject) -> None:
        async with best_effort(self._clock, log.info, "slack.assistant", method=method):
            await self._client.write(method, body)
