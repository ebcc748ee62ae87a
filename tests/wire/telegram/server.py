"""The wire server: a real HTTP server on a loopback port that speaks the Telegram Bot API.

It fetches nothing, reads no clock and sends nothing but answers and, on command, webhook calls.
What a client does that the Bot API does not document is noted in `violations`.
"""

import asyncio
import itertools
from collections.abc import Callable
from types import TracebackType

from tests.wire.telegram.arguments import Arguments, Violation
from tests.wire.telegram.chats import Chat, Message, User, World
from tests.wire.telegram.endpoint import Call, Endpoint, Listener
from tests.wire.telegram.faults import Faults
from tests.wire.telegram.files import FileStore
from tests.wire.telegram.methods_account import HANDLERS as ACCOUNT
from tests.wire.telegram.methods_messages import HANDLERS as MESSAGES
from tests.wire.telegram.people import People
from tests.wire.telegram.signal import Signal
from tests.wire.telegram.state import State
from tests.wire.telegram.updates import UpdateQueue

TOKEN = "123456:TEST-TOKEN"
BOT_NAME = "gatehouse_bot"
_HANDLERS = {**ACCOUNT, **MESSAGES}


class TelegramServer(People, Faults):
    """The server, the people who talk to the bot, and what the bot did.

    Use it as an async context manager, or call `start` and `stop`. `now` gives the time in seconds
    for dates; by default every look is one second later than the last. `privacy` is the privacy
    mode of the bot in groups, `hears_bots` its Bot-to-Bot Communication Mode.
    """

    def __init__(
        self,
        *,
        token: str = TOKEN,
        username: str = BOT_NAME,
        now: Callable[[], float] | None = None,
        privacy: bool = True,
        hears_bots: bool = False,
    ) -> None:
        self.token = token
        self.bot = User(int(token.partition(":")[0]), "Gatehouse", username, is_bot=True)
        signal = Signal()
        state = State(
            bot=self.bot,
            now=now or itertools.count(1_700_000_000.0).__next__,
            privacy=privacy,
            hears_bots=hears_bots,
            signal=signal,
            world=World(self.bot),
            queue=UpdateQueue(signal),
            files=FileStore(),
        )
        People.__init__(self, state)
        Faults.__init__(self)
        self.queue = state.queue
        self.url = ""
        self._endpoint = Endpoint(token, state, self, self._perform)
        self.violations = self._endpoint.violations
        self.calls = self._endpoint.calls
        self._listener = Listener(self._endpoint.app())

    async def __aenter__(self) -> "TelegramServer":
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen on 127.0.0.1 and a free port; `url` is set after this."""
        self.url = await self._listener.start()

    async def stop(self) -> None:
        """Let every waiting call go and close the port."""
        await self.down()
        await self._listener.stop()

    async def down(self) -> None:
        """Cut every connection and refuse new ones until `up`; updates stay queued."""
        await self._listener.down()
        self.queue.close()
        self.release_all()

    async def up(self) -> None:
        """Listen again on the same port."""
        await self._listener.up()

    def messages(self, chat: Chat) -> list[Message]:
        """What is in `chat` now, oldest first, of everybody."""
        return self.world.history(chat)

    def from_bot(self, chat: Chat) -> list[Message]:
        """What the bot wrote into `chat` and did not delete, oldest first."""
        return [message for message in self.messages(chat) if message.sender == self.bot]

    def calls_to(self, method: str) -> list[Call]:
        """The calls of `method`, oldest first, refused ones included."""
        return [call for call in self.calls if call.method == method]

    async def wait_for_message(
        self, predicate: Callable[[Message], bool], *, timeout: float = 120.0
    ) -> Message:
        """The first message of the bot that meets `predicate`; an edited one is looked at again.

        Raises `TimeoutError` after `timeout` seconds, with what the bot wrote until then.
        """

        def found() -> Message | None:
            sent = (m for m in self.world.messages.values() if m.sender == self.bot)
            return next((m for m in sent if not m.deleted and predicate(m)), None)

        await self.wait_until(lambda: found() is not None, timeout=timeout)
        message = found()
        assert message is not None
        return message

    async def wait_until(self, condition: Callable[[], bool], *, timeout: float = 10.0) -> None:
        """Return once `condition()` is true; it is looked at after everything that happens."""
        try:
            async with asyncio.timeout(timeout):
                await self.state.signal.until(condition)
        except TimeoutError as error:
            written = [m.text for m in self.world.messages.values() if m.sender == self.bot]
            raise TimeoutError(f"not met; the bot wrote {written}") from error

    async def _perform(self, arguments: Arguments) -> object:
        if arguments.method != "getUpdates":
            return _HANDLERS[arguments.method](self.state, arguments)
        if unknown := self.queue.unknown_types(arguments.strings("allowed_updates")):
            raise Violation(f"getUpdates: no update is of the types {unknown}")
        return await self.queue.poll(arguments)
