"""Every oddity of model servers through the real gateway: what people read, how often the model is
asked, and that hello is answered afterwards."""

from pathlib import Path

import pytest

from tests.conftest import FailAfter
from tests.scenario.gateway.model_results import ROWS, documented, played, table
from tests.wire.model_rows import FORBIDDEN, THOUGHT

MUCH = 50_000_000
"""Bytes of the body of one answer: half of what the largest would have."""


@pytest.mark.requirement("MDL-1", "MDL-2", "MDL-3", "MDL-4", "MDL-5", "MDL-6", "MSG-14", "MSG-18")
async def test_every_oddity_of_a_model_server_is_read_and_hello_is_answered_afterwards(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    assert len({row.key for row in ROWS}) == len(ROWS)
    async with fail_after(600), played(tmp_path) as outcome:
        wrong = {
            result.row.key: faults
            for result in outcome.results
            if not result.row.waits and (faults := result.faults())
        }
        assert wrong == {}
        held = [one.row.key for one in outcome.results if one.row.waits and not one.faults()]
        assert held == [], "they no longer wait: drop their `waits`, and run `make models`"
        for place, shown in outcome.shown.items():
            assert [text for text in shown if THOUGHT in text] == [], f"a thought on {place}"
        files = (outcome.town.place.workspace / "files").iterdir()
        assert [file.name for file in files if file.name.startswith(FORBIDDEN)] == []
        huge = [one for one in outcome.town.model.played if one.written > MUCH]
        assert huge == [], "no more is taken than what is bounded, and what lies in buffers"
        assert table(outcome.results) == documented(), "run `make models` and look at the change"
