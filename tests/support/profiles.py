"""How many examples hypothesis plays: few for each commit, many where time is no matter.

    make test                                     # the profile `suite`
    make long                                     # the profile `long`, over every such test
    pytest tests/stateful --hypothesis-profile=long

The suite's examples are the same each time, so that a commit is judged by what the one before it
was judged by; the long profile looks for others each time.
"""

from typing import Final

from hypothesis import HealthCheck, Phase, settings

SUITE: Final = "suite"
LONG: Final = "long"
_FEW: Final = 30
_TIMES: Final = 20
MACHINE: Final = 10
"""How many orders of events a state machine plays in the suite; in the long profile thousands."""

settings.register_profile(
    SUITE,
    max_examples=_FEW,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
)
settings.register_profile(
    LONG,
    max_examples=_FEW * 100,
    stateful_step_count=80,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def is_long() -> bool:
    """Whether this run looks for what the suite's examples do not show."""
    return settings.get_current_profile_name() == LONG


def examples(number: int) -> settings:
    """So many for each commit, and twenty times as many where time is no matter."""
    return settings(max_examples=number * _TIMES if is_long() else number)
