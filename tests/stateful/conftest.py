"""Profiles of the state machines: a short one for the suite, a long one to search with.

pytest tests/stateful --hypothesis-profile=long
"""

from hypothesis import HealthCheck, Phase, settings

LONG = "long"

settings.register_profile(
    LONG,
    max_examples=3_000,
    stateful_step_count=80,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
settings.register_profile(
    "suite",
    max_examples=100,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate, Phase.shrink),
)
