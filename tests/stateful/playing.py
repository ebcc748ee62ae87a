"""Plays a state machine with as many examples as the profile wants (`tests.support.profiles`)."""

from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from tests.support.profiles import MACHINE, SUITE, is_long


def assert_holds(machine: type[RuleBasedStateMachine], *, examples: int = MACHINE) -> None:
    """The first order of events that breaks something is made short and shown.

    The suite plays `examples`, which a test names only where it wants fewer than the others. The
    long profile plays its own number.
    """
    short = settings(settings.get_profile(SUITE), max_examples=examples)
    run_state_machine_as_test(machine, settings=settings() if is_long() else short)
