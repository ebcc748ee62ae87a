"""The policy of the scheduler's retries, as an operator sets and sees it (SCH-5, API-5)."""

import json
from dataclasses import replace

import pytest

from tests.conftest import FailAfter
from tests.scenario.process.program import Place, command, gateway, reaching

pytestmark = pytest.mark.requirement("SCH-5", "API-5")


async def test_flags_and_variables_hold_and_are_shown(place: Place, fail_after: FailAfter) -> None:
    varied = replace(
        place,
        variables={
            **place.variables,
            "GATEHOUSE_SCHEDULER__RETRY_BASE_DELAY_MS": "600",
            "GATEHOUSE_SCHEDULER__RETRY_JITTER_MS": "7",
            "GATEHOUSE_SCHEDULER__RETRY_MAX_ATTEMPTS": "9",
        },
    )
    flags = (
        "--scheduler-retry-max-delay-ms=700",
        "--scheduler-retry-jitter-ms=5",
        "--scheduler-retry-max-attempts=8",
    )
    async with fail_after(60), gateway(varied, "serve", *flags) as program:
        there = reaching(place, await program.url())
        shown = await command(there, "status")
        told = json.loads((await command(there, "status", "--json")).out)
    policy = {
        "retry_base_delay_ms": 600,
        "retry_max_delay_ms": 700,
        "retry_jitter_ms": 5,
        "retry_max_attempts": 8,
    }
    assert told["scheduler"] == policy
    for name, value in policy.items():
        assert f"{name}: {value}" in shown.out


async def test_a_flag_out_of_its_range_is_named(place: Place) -> None:
    ended = await command(place, "serve", "--scheduler-retry-base-delay-ms=0")
    assert ended.code == 2
    assert "--scheduler-retry-base-delay-ms: Input should be greater than or equal" in ended.err
