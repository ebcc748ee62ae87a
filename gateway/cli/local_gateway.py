"""A gateway in the process of `chat`, for those who have started none. Its log goes to a file."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gateway import logs, workspaces
from gateway.cli.answers import Refused, Unreachable
from gateway.cli.common import Options, fail, note
from gateway.config import Config, load, secrets_of
from gateway.service import CannotStart, Start, load_model, running
from runtime.domain.errors import Unavailable


@asynccontextmanager
async def own_gateway(config: Config, options: Options) -> AsyncIterator[None]:
    """A gateway of this home that lives as long as the block; only this machine reaches it.

    The client's errors pass as they are.
    """
    own = config.with_address("127.0.0.1", _port(config.settings.http.port))
    try:
        workspaces.make_home(own)
        path = own.home / "chat.log"
        stream = await asyncio.to_thread(path.open, "a", encoding="utf-8")
    except Unavailable as error:
        fail(str(error))
    except OSError as error:
        fail(
            f"The log {error.filename} cannot be written: {error.strerror}. Make the home folder "
            "writable, free some space, or name another folder in GATEHOUSE_HOME."
        )
    with stream:
        redactor = logs.setup(
            level=own.settings.log.level, style="json", secrets=secrets_of(own), stream=stream
        )
        trouble = None
        start = Start(own, lambda: load(options.config), redactor)
        try:
            async with running(start) as started, asyncio.TaskGroup() as group:
                loading = group.create_task(load_model(started.assembly), name="model library")
                if started.owner_code is not None:
                    note(f"Owner code for the chat platforms, shown once: {started.owner_code}")
                try:
                    yield
                except (Refused, Unreachable) as error:
                    # The gateway's tasks are a group: what passes it would come out wrapped.
                    trouble = error
                loading.cancel()
        except CannotStart as error:
            fail(str(error))
    if trouble is not None:
        raise trouble


def _port(wanted: int) -> int:
    """The configured port if it is free, else any."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            return 0
    return wanted
