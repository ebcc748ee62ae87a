"""The full-screen chat. It shows a conversation and sends what is typed; it decides nothing."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Key
from textual.suggester import SuggestFromList
from textual.widgets import Input, Static
from typing_extensions import override

from adapters.rendering import strip_controls
from adapters.terminal.conversation import Card, Conversation, Decision
from adapters.terminal.log import ConversationLog

LEAVE = ("/quit", "/exit")


class Prompt(Input):
    """An input that offers commands behind a slash."""

    def __init__(self, commands: Sequence[str]) -> None:
        super().__init__(
            placeholder="Write a message, or / for commands",
            id="prompt",
            suggester=SuggestFromList(commands, case_sensitive=False),
        )
        self._commands = tuple(commands)
        self._found: tuple[str, ...] = ()

    @property
    def matching(self) -> tuple[str, ...]:
        """The commands that begin as what was typed, until their name is whole."""
        if not self.value.startswith("/") or " " in self.value:
            return ()
        return tuple(one for one in self._commands if one.startswith(self.value))

    @override
    async def _on_key(self, event: Key) -> None:
        # Here, because keys come here in their order: what was typed before the tab has arrived.
        if event.key == "tab":
            event.stop()
            event.prevent_default()
            self._complete()
        else:
            await super()._on_key(event)

    def _complete(self) -> None:
        """Take over the first command that begins so; the next time, the one after it."""
        if self._found and self.value == f"{self._found[-1]} ":
            found = self._found
        else:
            found = self.matching
        if found:
            # What stands there now goes to the end of the line.
            self._found = (*found[1:], found[0])
            self.value = f"{found[0]} "
            self.cursor_position = len(self.value)


class ChatApp(App[None]):
    """Shows one conversation until the person leaves."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #status { height: auto; min-height: 1; padding: 0 1; color: $text-muted; }
    #prompt { border: round $accent; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "stop", "Stop, then leave", priority=True),
        Binding("ctrl+d", "quit", "Leave", priority=True),
        Binding("ctrl+y", "decide('once')", "Allow", priority=True),
        Binding("ctrl+t", "decide('session')", "Allow for this session", priority=True),
        Binding("ctrl+n", "decide('deny')", "Deny", priority=True),
        Binding("pageup", "page(-1)", "Up", priority=True),
        Binding("pagedown", "page(1)", "Down", priority=True),
    ]

    def __init__(self, conversation: Conversation, commands: Sequence[str]) -> None:
        super().__init__()
        self._conversation = conversation
        self._commands = sorted({f"/{name}" for name in commands} | {LEAVE[0]})
        self._notice = ""
        self._hint = ""
        self._painting = False
        self._stopped = False

    @override
    def compose(self) -> ComposeResult:
        yield ConversationLog()
        # What tools print is shown as it is: brackets would be read as styles, and dropped.
        yield Static("", id="status", markup=False)
        yield Prompt(self._commands)

    def on_mount(self) -> None:
        """Begin to follow the conversation; the task belongs to the application."""
        self.title = self._conversation.title
        self.query_one(Prompt).focus()
        self.run_worker(self._conversation.follow(self._changed), name="conversation")

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        """Send what was typed, or take it as the answer to what is asked."""
        text = event.value.strip()
        event.input.clear()
        if not text:
            return
        if text.lower() in LEAVE:
            self.exit()
            return
        self._stopped = False
        self.run_worker(self._send(text), name="send")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show which commands begin so."""
        self._hint = "  ".join(self.query_one(Prompt).matching)
        if event.value:
            self._notice = ""
        self._changed()

    def action_stop(self) -> None:
        """Stop what runs; a second time, or where nothing runs, leave."""
        if self._stopped:
            self.exit()
            return
        self._stopped = True
        self.run_worker(self._stop(), name="stop")

    def action_page(self, direction: int) -> None:
        """Scroll through what was said."""
        log = self.query_one(ConversationLog)
        if direction < 0:
            log.scroll_page_up(animate=False)
        else:
            log.scroll_page_down(animate=False)

    def action_decide(self, decision: Decision) -> None:
        """Answer the open approval. Where several are open a key could mean any of them."""
        cards = _open_cards(self._conversation, "approval")
        if not cards:
            self._tell("Nothing waits for a decision.")
            return
        card = cards[0]
        if len(cards) > 1:
            named = ", ".join(f"/approve {card.code}" for card in cards)
            self._tell(f"Several calls wait. Name one: {named}.")
        elif decision not in card.choices:
            self._tell(f"This card offers {', '.join(card.choices)}.")
        else:
            self.run_worker(self._decide(card, decision), name="decide")

    async def _send(self, text: str) -> None:
        """Say it. Plain words answer the one open question, and never an approval (APR-10)."""
        questions = _open_cards(self._conversation, "question")
        if len(questions) != 1 or text.startswith("/"):
            self._tell(await self._conversation.say(text))
            return
        (question,) = questions
        self._tell(await self._conversation.answer(question, _option(question, text)))

    async def _stop(self) -> None:
        if await self._conversation.stop():
            self._tell("Stopped. Ctrl+C again leaves.")
        else:
            self.exit()

    async def _decide(self, card: Card, decision: Decision) -> None:
        self._tell(await self._conversation.decide(card, decision))

    def _tell(self, notice: str) -> None:
        self._notice = notice
        self._changed()

    def _changed(self) -> None:
        """Paint once after a burst of changes."""
        if not self._painting and self.is_running:
            self._painting = True
            self.call_later(self._paint)

    async def _paint(self) -> None:
        self._painting = False
        await self.query_one(ConversationLog).paint(self._conversation)
        self.query_one("#status", Static).update(self._status())

    def _status(self) -> str:
        talk = self._conversation
        told = (self._hint, self._notice, talk.trouble, talk.activity, talk.title, " ")
        return " ".join(strip_controls(next(text for text in told if text)).splitlines())


def _open_cards(conversation: Conversation, kind: str) -> list[Card]:
    cards = [entry.card for entry in conversation.entries]
    return [card for card in cards if card and card.open and card.kind == kind]


def _option(card: Card, text: str) -> str:
    numbered = {str(number): option for number, option in enumerate(card.options, 1)}
    return numbered.get(text, text)


async def run(conversation: Conversation, commands: Sequence[str]) -> None:
    """Show the conversation until the person leaves."""
    await ChatApp(conversation, commands).run_async()
