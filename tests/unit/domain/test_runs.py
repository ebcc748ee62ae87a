"""The states of a run: what may follow what, and what never (MSG-6)."""

import pytest

from runtime.domain.errors import IllegalTransition
from runtime.domain.runs import ACTIVE, TERMINAL, WAITING, RunState, check_transition

LEGAL = {
    (RunState.QUEUED, RunState.RUNNING),
    (RunState.QUEUED, RunState.CANCELLED),
    (RunState.QUEUED, RunState.INTERRUPTED),
    (RunState.QUEUED, RunState.FAILED),
    (RunState.RUNNING, RunState.QUEUED),
    *((RunState.RUNNING, state) for state in WAITING | TERMINAL),
    *((state, RunState.QUEUED) for state in WAITING),
    *((state, RunState.CANCELLED) for state in WAITING),
    *((state, RunState.INTERRUPTED) for state in WAITING),
    *((state, RunState.FAILED) for state in WAITING),
}


@pytest.mark.requirement("MSG-6")
@pytest.mark.parametrize("old", list(RunState))
@pytest.mark.parametrize("new", list(RunState))
def test_a_run_changes_as_the_table_says_and_not_otherwise(old: RunState, new: RunState) -> None:
    if (old, new) in LEGAL:
        check_transition("run_1", old, new)
    else:
        with pytest.raises(IllegalTransition) as caught:
            check_transition("run_1", old, new)
        assert caught.value.state == old.value
        assert "run_1" in str(caught.value)


@pytest.mark.requirement("MSG-6")
def test_what_has_ended_holds_no_lane() -> None:
    assert not TERMINAL & ACTIVE
    assert set(RunState) == TERMINAL | ACTIVE | {RunState.QUEUED}
