"""Which event loop a long run gets."""

import asyncio
import sys

import pytest

from gateway.cli import event_loop


async def kind() -> str:
    return type(asyncio.get_running_loop()).__module__.partition(".")[0]


def test_a_long_run_has_uvloop_where_it_is_installed_and_asyncio_s_loop_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("uvloop", reason="uvloop is not installed: pip install 'gatehouse[speed]'")
    assert event_loop.run(kind()) == "uvloop"
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert event_loop.run(kind()) == "asyncio"
