"""`chat`: talk to the agent from a terminal, in full screen, by a pipe or with one message (TTY-1).

It talks to a running gateway, or starts one in this process for as long as the chat lasts.
Exit codes of one message: 0 answered, 1 the run failed, 3 no gateway, 4 it waits for a person, 130
stopped by Ctrl+C.
"""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gateway.cli.answers import Refused, Unreachable
from gateway.cli.common import (
    FAILED,
    UNREACHABLE,
    Options,
    examples,
    fail,
    note,
    place_of,
    plain,
    read_config,
    say,
)

if TYPE_CHECKING:
    from adapters.terminal.conversation import Entry
    from gateway.cli.client import GatewayClient
    from gateway.cli.conversation import Conversation
    from gateway.config import Client, Config

WAITS: Final = 4
STOPPED: Final = 130
IN_LINE: Final = "waiting_in_line"
GOES_ON: Final = (
    "gatehouse: the run continues without you: `gatehouse runs list` shows it, "
    "`gatehouse runs cancel RUN` ends it"
)
GOES_ON_LATER: Final = "gatehouse: the run continues when a gateway of this home starts again"
EXAMPLES: Final = examples(
    "gatehouse chat",
    "gatehouse chat -m 'list files'",
    "gatehouse chat --session notes -m 'read AGENTS.md'",
)
SHOWN: Final = 160
"""Characters of a failed step's arguments that are shown."""


def chat(
    context: typer.Context,
    message: Annotated[
        str | None,
        typer.Option("--message", "-m", help="Send this message, print the reply and exit."),
    ] = None,
    session: Annotated[str, typer.Option(help="The name of the conversation.")] = "main",
) -> None:
    """Talk to the agent.

    Ctrl+C stops the run, and leaves when it is pressed again or nothing runs. With --message the
    status is 0 for a reply, 4 where a person must answer something first, 3 where no gateway can be
    reached, 130 where Ctrl+C stopped it, and 1 for everything else that went wrong.
    """
    config = read_config(context)
    options = context.find_object(Options) or Options()
    if message is None and not (sys.stdin.isatty() and sys.stdout.isatty()):
        message = sys.stdin.read()
    if message is not None and not message.strip():
        fail("there is nothing to say: the message is empty", 2)
    try:
        code = asyncio.run(_talk(config, options, session, message))
    except Unreachable as error:
        fail(str(error), UNREACHABLE)
    except Refused as error:
        fail(str(error))
    except (KeyboardInterrupt, asyncio.CancelledError):
        code = STOPPED
    raise typer.Exit(code)


async def _talk(config: "Config", options: Options, session: str, message: str | None) -> int:
    # Lazy: the HTTP client is loaded by the commands that use it.
    from gateway.cli.conversation import Conversation

    async with _gateway(config, options) as (client, own):
        conversation = await Conversation.open(client, session)
        if message is None:
            await _screen(conversation)
            if await _is_at_work(client, conversation.session_id):
                note(GOES_ON_LATER if own else GOES_ON)
            return 0
        pressed = asyncio.Event()
        # From before it is sent: a run that was begun is stopped, however early the key came.
        with _on_interrupt(pressed):
            code = await _once(conversation, message, pressed)
        if own and code == WAITS:
            note(
                "the gateway that this command started ends with it: run `gatehouse serve`, "
                "then answer"
            )
        return code


@asynccontextmanager
async def _gateway(
    config: "Config", options: Options
) -> "AsyncIterator[tuple[GatewayClient, bool]]":
    """A client of the running gateway, or of one (True) that lives as long as the block."""
    # Lazy, as above.
    from gateway.cli.client import GatewayClient
    from gateway.home_socket import live

    place = place_of(config)
    async with AsyncExitStack() as stack:
        own = not place.url and not live(config.home)
        if own:
            _refuse_strange(config, place)
            note(f"No gateway of {config.home} is running: this chat starts one until it ends.")
            # Lazy: the service loads the engine, the store and the HTTP server.
            from gateway.cli.local_gateway import own_gateway

            await stack.enter_async_context(own_gateway(config, options))
            place = place_of(config)
        yield await stack.enter_async_context(GatewayClient.of(place)), own


def _refuse_strange(config: "Config", place: "Client") -> None:
    """End where a gateway of this home would refuse the token, before one is started for it."""
    # Lazy, as above.
    from gateway.config import tokens_of

    token = place.token.get_secret_value() if place.token else ""
    if token and token not in tokens_of(config).admin:
        fail(
            "the token in GATEHOUSE_TOKEN is refused: it does not belong to this home, and no "
            f"gateway of {config.home} is running. Unset it to use this home's own gateway, or "
            "put the "
            "address of the token's gateway into GATEHOUSE_URL"
        )


async def _is_at_work(client: "GatewayClient", session_id: str) -> bool:
    """Whether a run is not over; False where nobody can be asked."""
    try:
        return (await client.get(f"/v1/sessions/{session_id}")).get("state") != "idle"
    except (Refused, Unreachable):
        return False


async def _screen(conversation: "Conversation") -> None:
    # Lazy: the full-screen library takes half a second and is for terminals only.
    from adapters.terminal.app import run
    from gateway.features import COMMANDS

    await run(conversation, sorted(one.name for one in COMMANDS.listed))


async def _once(conversation: "Conversation", message: str, pressed: asyncio.Event) -> int:
    """Say one thing, wait for what becomes of it, print the reply; see `_finished`."""
    seen = {entry.key for entry in conversation.entries}
    submitted = await conversation.submit(message)
    if submitted.disposition != "queued":
        await conversation.refresh()
        _print([one for one in conversation.entries if one.key not in seen and one.kind != "user"])
        return 0
    try:
        state = await _finished(conversation, submitted.run_id, pressed)
    except (Refused, Unreachable):
        note(
            "gatehouse: your message was accepted, and its run continues in the gateway. Read "
            f"the answer with `gatehouse sessions show {conversation.session_id}`"
        )
        raise
    if state.startswith("waiting"):
        _tell_waiting(conversation)
        if state == IN_LINE:
            note("gatehouse: your message is kept. The agent reads it after that is answered")
        return WAITS
    said = [
        one
        for one in conversation.entries
        if one.run_id == submitted.run_id and one.kind in ("assistant", "notice") and one.text
    ]
    sent = [one for one in conversation.entries if one.run_id == submitted.run_id]
    for call in (call for one in sent for call in one.calls if call.state == "error"):
        note(f"gatehouse: a step failed: {call.name} {call.arguments[:SHOWN]}")
    _print([*(one for one in sent if one.kind == "file"), *said[-1:]])
    if state != "completed":
        note(f"gatehouse: the run {submitted.run_id} ended: {state}")
        return STOPPED if pressed.is_set() else FAILED
    return 0


@contextmanager
def _on_interrupt(pressed: asyncio.Event) -> Iterator[None]:
    """The first Ctrl+C sets `pressed`, the second cancels the task that is in the block."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def interrupt() -> None:
        if pressed.is_set() and task is not None:
            task.cancel()
        pressed.set()

    loop.add_signal_handler(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


async def _stop_once(conversation: "Conversation", pressed: asyncio.Event) -> None:
    await pressed.wait()
    note("gatehouse: stopping the run; Ctrl+C again leaves without waiting for its end")
    await conversation.stop()


async def _finished(conversation: "Conversation", run_id: str, pressed: asyncio.Event) -> str:
    """The state of a run once it is over or waits for a person; stops it once Ctrl+C is `pressed`.
    Raises as the client."""
    changed = asyncio.Event()
    state, trouble = "", None
    async with asyncio.TaskGroup() as group:
        following = group.create_task(conversation.follow(changed.set), name="conversation")
        stopping = group.create_task(_stop_once(conversation, pressed), name="stop")
        try:
            state = await _settled(conversation, run_id, changed)
        except (Refused, Unreachable) as error:
            # Raised in here, it would leave the group wrapped, and nobody would know it.
            trouble = error
        following.cancel()
        stopping.cancel()
    if trouble is not None:
        raise trouble
    await conversation.refresh()
    return state


async def _settled(conversation: "Conversation", run_id: str, changed: asyncio.Event) -> str:
    # Lazy, as above.
    from gateway.cli.conversation import TERMINAL
    from runtime.domain.runs import RunState

    while True:
        changed.clear()
        state = str((await conversation.run(run_id)).get("state"))
        if state == "queued" and conversation.cards():
            # It stands behind a run that waits for a person, for as long as that takes.
            state = IN_LINE
        # Its children need nobody, unless one of them asks here.
        needs_nobody = state == RunState.WAITING_FOR_CHILDREN and not conversation.cards()
        if state in TERMINAL or (state.startswith("waiting") and not needs_nobody):
            return state
        await changed.wait()


def _tell_waiting(conversation: "Conversation") -> None:
    # Lazy: the rendering library is for the chat only.
    from adapters.terminal.entry_views import plain_card

    for card in conversation.cards():
        note(f"gatehouse: {plain_card(card)}")


def _print(entries: "list[Entry]") -> None:
    if sys.stdout.isatty():
        # Lazy: the rendering library is for terminals only.
        from rich.console import Console

        # The same, of ours.
        from adapters.rendering.terminal import TerminalMarkdown

        console = Console()
        for one in entries:
            console.print(TerminalMarkdown(one.text))
    else:
        for one in entries:
            say(plain(one.text))
