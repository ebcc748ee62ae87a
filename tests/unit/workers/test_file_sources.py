"""Which adapter a turn fetches files with, in a process of any roles (MSG-19)."""

from dataclasses import dataclass, field

import pytest

from runtime.delivery.file_sources import FileSources
from runtime.domain.errors import Forbidden, Unavailable
from tests.fakes.chat import FakeChat

pytestmark = pytest.mark.requirement("MSG-19")


class Somewhere:
    """Stands for `Files`; only its identity counts here."""


@dataclass
class Listening:
    """An account as `FileSources` sees it: connected once it has a deliverer."""

    adapter: FakeChat
    deliverer: object | None = field(default_factory=object)


class Late(FakeChat):
    """Learns its account when it connects."""

    def __init__(self) -> None:
        super().__init__("slack", "")
        self.files = Somewhere()
        self.connected = 0

    async def connect(self) -> None:
        self.connected += 1
        self.account = "T1"


def chat(channel: str, account: str) -> FakeChat:
    made = FakeChat(channel, account)
    made.files = Somewhere()
    return made


async def test_an_account_that_listens_here_is_asked() -> None:
    one, other = chat("slack", "T1"), chat("slack", "T2")
    sources = FileSources([Listening(one), Listening(other)], [])
    assert await sources.find("slack", "T2") is other.files


async def test_one_that_is_not_connected_yet_may_be_asked_again_later() -> None:
    account = Listening(chat("slack", "T1"), deliverer=None)
    sources = FileSources([account], [])
    with pytest.raises(Unavailable, match="slack is not connected here yet"):
        await sources.find("slack", "T1")
    account.deliverer = object()
    assert await sources.find("slack", "T1") is account.adapter.files


async def test_a_process_that_only_works_connects_with_the_first_file() -> None:
    fetcher = Late()
    sources = FileSources([], [fetcher])
    assert fetcher.connected == 0
    for _ in range(2):
        assert await sources.find("slack", "T1") is fetcher.files
    assert fetcher.connected == 1


async def test_a_process_without_credentials_says_which_it_needs() -> None:
    with pytest.raises(Forbidden, match="no credentials for telegram"):
        await FileSources([], [Late()]).find("telegram", "5")


async def test_a_platform_without_files_says_so() -> None:
    bare = FakeChat("terminal", "local")
    with pytest.raises(Forbidden, match="cannot be fetched from terminal"):
        await FileSources([Listening(bare)], []).find("terminal", "local")
