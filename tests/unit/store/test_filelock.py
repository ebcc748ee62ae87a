"""One gateway for a file."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from runtime.store import StoreUnavailable
from runtime.store.dialect import sqlite_path
from runtime.store.filelock import gateway_lock, holder_of, lock_file
from tests.conftest import FailAfter

_HOLD = (
    "import sys; from runtime.store.filelock import gateway_lock\n"
    "with gateway_lock(sys.argv[1]): print('held', flush=True); sys.stdin.read()"
)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'gatehouse.db'}"


def holder(url: str) -> int | None:
    path = sqlite_path(url)
    assert path is not None
    return holder_of(lock_file(path))


async def test_a_second_gateway_is_told_which_process_is_the_first(
    url: str, fail_after: FailAfter
) -> None:
    async with fail_after():
        first = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            _HOLD,
            url,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert first.stdout is not None
        await first.stdout.readline()
        assert holder(url) == first.pid
        with (
            pytest.raises(StoreUnavailable, match=f"another gateway .process {first.pid}"),
            gateway_lock(url),
        ):
            pass
        # A crash, not a goodbye.
        first.kill()
        await first.wait()
        # A pipe of a killed process is closed by its transport, which the loop must run for.
        first._transport.close()  # type: ignore[attr-defined]  # no public way in 3.11
    assert holder(url) is None
    with gateway_lock(url):
        assert holder(url) == os.getpid()


def test_the_lock_ends_with_its_block(url: str) -> None:
    assert holder(url) is None
    with gateway_lock(url):
        with pytest.raises(StoreUnavailable), gateway_lock(url):
            pass
        assert holder(url) == os.getpid()
    assert holder(url) is None
    with gateway_lock(url):
        assert holder(url) == os.getpid()


def test_postgresql_is_shared() -> None:
    url = "postgresql://me@127.0.0.1/gatehouse"
    with gateway_lock(url), gateway_lock(url):
        pass


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'missing' / 'gatehouse.db'}"
    with pytest.raises(StoreUnavailable, match="missing"), gateway_lock(url):
        pass
