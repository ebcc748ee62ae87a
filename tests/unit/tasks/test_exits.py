"""How a command in the background ended, as its task shows it (TSK-2)."""

import pytest

from runtime.domain.value import JsonObject
from runtime.features.tasks.shell_tasks import exit_facts
from runtime.ports.sandbox import SandboxExit


@pytest.mark.requirement("TSK-2", "TOOL-6")
@pytest.mark.parametrize(
    ("end", "facts"),
    [
        (
            SandboxExit(3, None, timed_out=False, duration_s=1.25, limit=None),
            {"exit_code": 3, "duration_ms": 1_250, "terminal_reason": "exited"},
        ),
        (
            SandboxExit(137, 9, timed_out=False, duration_s=0.5, limit=None),
            {"exit_code": 137, "duration_ms": 500, "terminal_reason": "signal", "signal": 9},
        ),
        # A limit ends a command by a signal too, but the limit is what a person can change.
        (
            SandboxExit(137, 9, timed_out=True, duration_s=60, limit="time"),
            {"exit_code": 137, "duration_ms": 60_000, "terminal_reason": "time_limit"},
        ),
        (
            SandboxExit(137, 9, timed_out=False, duration_s=0.0004, limit="memory"),
            {"exit_code": 137, "duration_ms": 0, "terminal_reason": "memory_limit"},
        ),
    ],
)
def test_an_end_says_its_code_its_time_and_what_caused_it(
    end: SandboxExit, facts: JsonObject
) -> None:
    assert exit_facts(end) == facts
