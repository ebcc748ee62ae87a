"""What goes wrong on command: refusals, floods, cut connections, calls that are held back."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from tests.wire.telegram.errors import ApiError
from tests.wire.telegram.floods import Floods
from tests.wire.telegram.schema import METHODS

# Not a method of the Bot API: the name under which downloads of files are disturbed.
DOWNLOAD = "download"


class Hold:
    """One call that waits: `arrived` is set when it came, `release` lets it go on."""

    def __init__(self) -> None:
        self.arrived = asyncio.Event()
        self._released = asyncio.Event()

    def release(self) -> None:
        self._released.set()

    async def pass_through(self) -> None:
        self.arrived.set()
        await self._released.wait()


@dataclass(slots=True)
class _Planned:
    method: str
    left: int
    error: ApiError | None


class Faults:
    """The plan of what the next calls of each method meet."""

    def __init__(self) -> None:
        self.floods = Floods()
        self._planned: list[_Planned] = []
        self._holds: list[tuple[str, Hold]] = []
        self._waiting: list[Hold] = []

    def rate_limit(self, method: str, times: int = 1, retry_after: int = 3) -> None:
        """The next `times` calls of `method` get 429 with `retry_after` seconds."""
        self.fail(
            method,
            429,
            f"Too Many Requests: retry after {retry_after}",
            times,
            parameters={"retry_after": retry_after},
        )

    def fail(
        self,
        method: str,
        code: int,
        description: str,
        times: int = 1,
        *,
        parameters: Mapping[str, int] | None = None,
    ) -> None:
        """The next `times` calls of `method` get this error and do nothing."""
        _known(method)
        self._planned.append(_Planned(method, times, ApiError(code, description, parameters)))

    def hang(self, method: str, times: int = 1) -> None:
        """The next `times` calls of `method` do their work, then the connection is cut."""
        _known(method)
        self._planned.append(_Planned(method, times, None))

    def hold(self, method: str) -> Hold:
        """The next call of `method` waits, before it does anything, until it is released."""
        _known(method)
        hold = Hold()
        self._holds.append((method, hold))
        return hold

    def take_hold(self, method: str) -> Hold | None:
        """The hold of this call, which is used up."""
        for position, (held, hold) in enumerate(self._holds):
            if held == method:
                del self._holds[position]
                self._waiting.append(hold)
                return hold
        return None

    def take(self, method: str) -> tuple[ApiError | None, bool]:
        """The error that this call gets, and whether its connection is cut after its work."""
        for planned in self._planned:
            if planned.method == method and planned.left:
                planned.left -= 1
                return planned.error, planned.error is None
        return None, False

    def release_all(self) -> None:
        """Let every held call go, because its connection is gone."""
        for hold in self._waiting:
            hold.release()


def _known(method: str) -> None:
    assert method in METHODS or method == DOWNLOAD, f"{method!r} is not a method of this server"
