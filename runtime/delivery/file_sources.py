"""Where a turn finds the files of a platform account: an adapter of its own process.

With the role `adapters` these are the ones that listen. Without it a process has adapters that only
fetch; each is connected when the first file is wanted.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from runtime.delivery.platform_accounts import Account
from runtime.domain.errors import Forbidden, Unavailable
from runtime.ports.chat import ChatAdapter, Files


@dataclass(frozen=True, slots=True)
class FileSources:
    """The accounts of one process, and the adapters that it only fetches from."""

    accounts: Sequence[Account]
    fetchers: Sequence[ChatAdapter]
    _connecting: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def find(self, channel: str, account: str) -> Files:
        """The files of an account. Raises `Unavailable` while it may still appear here, else
        `Forbidden`."""
        # An account has a deliverer only once it is connected and so knows its own name.
        ready = [one.adapter for one in self.accounts if one.deliverer is not None]
        ready += await self._connected(channel)
        for adapter in ready:
            if (adapter.channel, adapter.account) == (channel, account):
                if adapter.files is None:
                    raise Forbidden(f"files cannot be fetched from {channel}")
                return adapter.files
        if any(one.adapter.channel == channel for one in self.accounts):
            raise Unavailable(f"{channel} is not connected here yet")
        raise Forbidden(
            f"the process that does the work has no credentials for {channel}; "
            "it needs the same as the process that listens"
        )

    async def _connected(self, channel: str) -> list[ChatAdapter]:
        wanted = [one for one in self.fetchers if one.channel == channel]
        async with self._connecting:
            for adapter in wanted:
                if not adapter.account:
                    await adapter.connect()
        return wanted
