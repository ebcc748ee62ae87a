"""The real client library, pointed at the wire server."""

from telegram import Bot
from telegram.request import HTTPXRequest

from tests.wire.telegram.server import TelegramServer


def real_bot(server: TelegramServer) -> Bot:
    """A bot of python-telegram-bot; use it as an async context manager.

    The library warns where it will answer a timedelta one day; a test that meets such a field sets
    `PTB_TIMEDELTA=true`.
    """
    return Bot(
        server.token,
        base_url=f"{server.url}/bot",
        base_file_url=f"{server.url}/file/bot",
        request=HTTPXRequest(connection_pool_size=8, read_timeout=10),
        get_updates_request=HTTPXRequest(connection_pool_size=2, read_timeout=10),
    )
