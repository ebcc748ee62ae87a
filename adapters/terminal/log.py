"""What was said, as a list that scrolls: a widget for each entry, the running step's text last."""

from textual.containers import VerticalScroll
from textual.widgets import Static

from adapters.rendering.terminal import TerminalMarkdown
from adapters.terminal import entry_views
from adapters.terminal.conversation import Conversation, Entry


class ConversationLog(VerticalScroll):
    """Shows entries; only those that changed are rendered again."""

    DEFAULT_CSS = """
    ConversationLog { padding: 0 1; }
    ConversationLog Static { margin: 0 0 1 0; }
    """

    def __init__(self) -> None:
        self._live = Static("")
        self._shown: dict[str, tuple[Entry | None, Static]] = {}
        super().__init__(self._live, id="log")

    def on_mount(self) -> None:
        """Stay at the end, unless the person scrolled up."""
        self.anchor()

    async def paint(self, conversation: Conversation) -> None:
        """Show the conversation as it is now."""
        entries = conversation.entries
        keys = {one.key for one in entries}
        for key in [key for key in self._shown if key not in keys]:
            _, gone = self._shown.pop(key)
            await gone.remove()
        before: Static | None = None
        for one in entries:
            before = await self._paint_entry(one, after=before)
        self._live.update(TerminalMarkdown(conversation.live))
        self._live.display = bool(conversation.live)

    async def _paint_entry(self, one: Entry, *, after: Static | None) -> Static:
        known, widget = self._shown.get(one.key, (None, None))
        if widget is None:
            widget = Static("")
            if after is None:
                await self.mount(widget, before=0)
            else:
                await self.mount(widget, after=after)
        if known != one:
            widget.update(entry_views.entry(one))
            self._shown[one.key] = (one, widget)
        return widget
