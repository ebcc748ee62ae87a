"""A test that waits for ever fails, and its message says for what it waited."""

from __future__ import annotations

import asyncio
import re
import signal
from pathlib import Path

import pytest

from tests.support import hanging


async def never_comes() -> None:
    await asyncio.get_running_loop().create_future()


def test_waiting_for_ever_is_a_failure_that_says_where() -> None:
    with (
        hanging.limited(0.05),
        pytest.raises(pytest.fail.Exception, match=r"not finished after 0\.05 s[^$]*never_comes"),
    ):
        asyncio.run(never_comes())


def test_the_limit_of_the_test_itself_stays() -> None:
    with hanging.limited(50):
        pass

    left, _ = signal.getitimer(signal.ITIMER_REAL)

    assert 50 < left <= hanging.limit_s()


def test_no_test_asks_for_more_time_than_there_is() -> None:
    asked = [
        float(number)
        for path in Path(__file__).parents[1].rglob("*.py")
        for number in re.findall(r"fail_after\((\d+)", path.read_text(encoding="utf-8"))
    ]
    assert 0 < max(asked) < hanging.LIMIT_S
