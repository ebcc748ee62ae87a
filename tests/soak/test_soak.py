"""A short soak with a seed: people, faults and restarts, and the books must be clean."""

import sys
from pathlib import Path

import pytest

from tests.conftest import FailAfter
from tests.soak.driver import Order, soak
from tests.soak.ledger import Ledger, Struck, Unknown
from tests.soak.report import Report, Sample

SHORT = Order(
    seconds=30.0, seed=7, people=2, fault_every_s=2.0, lethal_every_s=6.0, lethal_share=0.5
)


@pytest.mark.requirement("MSG-1", "MSG-2", "MSG-9", "MSG-10", "MSG-11")
async def test_nothing_is_lost_doubled_or_out_of_order_under_faults_and_restarts(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    async with fail_after(180):
        report = await soak(tmp_path, SHORT)
    sys.stdout.write("\n".join(report.lines()))
    assert report.faults() == []
    assert report.restarts >= 1
    assert len(report.ledger.faults) >= 5
    assert len([wish for wish in report.ledger.wishes.values() if wish.posts]) >= 20


def test_the_books_notice_each_thing_that_can_go_wrong() -> None:
    """The soak proves nothing if its own books cannot see a loss."""
    ledger = Ledger()
    wishes = [ledger.wish("desk", "talk", float(number)) for number in range(4)]
    for number in (2, 0, 0):
        ledger.saw("desk", f"Answer {wishes[number].token}.", 5.0)
    ledger.saw("door", f"Answer {wishes[3].token}.", 5.0)
    ledger.saw("desk", "Something went wrong inside.", 6.0)
    ledger.unknown.append(Unknown("out_1", "w000003", "nobody knows", ""))
    report = Report(60.0, 1, ledger, oddities=["it ended"], wrong_effects=["w000001 2 times"])
    report.samples = [Sample(float(at), 7, 100.0 + at / 10) for at in range(0, 300, 2)]
    named = [fault.partition(":")[0] for fault in report.faults()]
    assert named == [
        "lost",
        "doubled",
        "out of order",
        "astray",
        "failed",
        "unexplained",
        "effect",
        "odd",
        "memory",
    ]
    slope = report.slope()
    assert slope is not None
    assert slope.megabytes_a_minute == pytest.approx(6.0)
    assert "9 faults" in list(report.lines())[-1]


def test_a_fault_explains_only_what_happened_near_it() -> None:
    ledger = Ledger(faults=[Struck("Kill", 10.0, 12.0)])
    assert ledger.explain(11.0, 20.0, ("Kill",)) == "Kill at 10.0 s"
    assert ledger.explain(13.0, 20.0, ("Kill",)) == ""
    assert ledger.explain(11.0, 20.0, ("SlackIsAway",)) == ""
