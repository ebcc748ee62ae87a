"""The guard against hanging fails a test that hangs, and hides no timeout of the code."""

from __future__ import annotations

import asyncio

import pytest

from tests.conftest import FailAfter


async def test_a_block_that_hangs_fails_the_test(fail_after: FailAfter) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"not finished after 0\.01 s"):
        async with fail_after(0.01):
            await asyncio.Event().wait()


async def test_a_timeout_of_the_code_stays_what_it_is(fail_after: FailAfter) -> None:
    with pytest.raises(TimeoutError, match="the platform"):
        async with fail_after():
            raise TimeoutError("the platform did not answer")
