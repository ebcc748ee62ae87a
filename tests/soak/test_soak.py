"""A short soak with a seed: people, faults and restarts, and the books must be clean."""

import sys
from pathlib import Path

import pytest

from tests.conftest import FailAfter
from tests.soak.driver import Order, soak
from tests.soak.ledger import Ledger, Struck, Unknown
from tests.soak.report import Report, Sample

SHORT = Order(
    seconds=60.0, seed=7, people=2, fault_every_s=2.0, lethal_every_s=6.0, lethal_share=0.5
)
"""A minute, in whose second half no gateway is ended: what was left open must come to its end."""

COUNTED = Order(
    messages=45, restart_every=15, seed=11, people=3, pages=0, fault_every_s=1.0, lease_s=10.0
)
"""Its lease is longer than a busy machine lets a gateway stand still, which no fault explains."""


@pytest.mark.requirement("MSG-1", "MSG-2", "MSG-9", "MSG-10", "MSG-11")
async def test_nothing_is_lost_doubled_or_out_of_order_under_faults_and_restarts(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    async with fail_after(240):
        report = await soak(tmp_path, SHORT)
    sys.stdout.write("\n".join(report.lines()))
    assert report.faults() == []
    assert report.restarts >= 2
    assert len(report.ledger.faults) >= 12
    assert len([wish for wish in report.ledger.wishes.values() if wish.posts]) >= 50


@pytest.mark.requirement("MSG-1", "MSG-2", "MSG-9", "SLK-1", "TEL-1")
async def test_with_a_restart_every_so_many_messages_each_is_answered_once(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    async with fail_after(300):
        report = await soak(tmp_path, COUNTED)
    sys.stdout.write("\n".join(report.lines()))
    assert report.faults() == []
    assert len(report.ledger.wishes) >= COUNTED.messages
    struck = [one.name for one in report.ledger.faults]
    assert report.restarts == struck.count("Kill") + struck.count("Terminate") == 3
    assert {"slack", "telegram"} == {place.split()[0] for place in report.ledger.order}


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
    report.samples = [Sample(float(at), 7, 100.0 + at / 10) for at in range(0, 400, 2)]
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


def test_a_fault_that_lies_in_wait_explains_what_meets_it_later() -> None:
    waits = ["armed"]
    ledger = Ledger(faults=[Struck("SlackStumbles", 1.0, 1.0, lambda: bool(waits))])
    ledger.linger(30.0)
    waits.clear()
    ledger.linger(32.0)
    ledger.linger(60.0)
    assert ledger.explain(31.5, 40.0, ("SlackStumbles",)) == "SlackStumbles at 1.0 s"
    assert ledger.explain(32.5, 40.0, ("SlackStumbles",)) == ""


def test_an_answer_that_grows_is_read_and_one_of_two_forms_is_enough() -> None:
    """A reply may be seen as it grows, and of a message and its edit one is answered."""
    ledger = Ledger()
    grown, first, second = (ledger.wish("desk", "talk", 0.0) for _ in range(3))
    first.twin, second.twin = second, first
    ledger.saw("desk", "Answer ", 1.0)
    assert grown.is_open
    full = f"Answer {grown.token}."
    ledger.grew("desk", "Answer ", full, 2.0)
    ledger.grew("desk", full, f"{full} That is all.", 3.0)
    assert (grown.posts, ledger.doubled) == (1, [])
    ledger.excuse(second, "unknown")
    assert (first.excuse, second.excuse) == ("edited", "unknown")


def test_a_notice_of_a_stop_counts_however_late_and_where_a_text_grew_into_it() -> None:
    ledger = Ledger()
    late, grown, other = (ledger.wish("desk", "stop", 0.0) for _ in range(3))
    late.stopping = True
    ledger.saw("door", "Stopped.", 1.0)
    assert late.is_open
    ledger.saw("desk", "Stopped.", 90.0)
    grown.stopping = True
    ledger.grew("desk", "Thinking", "Thinking. Stopped.", 91.0)
    assert (late.excuse, grown.excuse, other.excuse) == ("stopped", "stopped", "")


def test_the_word_of_a_stop_may_be_of_unknown_fate() -> None:
    """Then its turn is excused: one for each such message, on its channel, and nothing else."""
    ledger = Ledger()
    said = [ledger.wish("telegram group", "stop", float(number)) for number in range(3)]
    other, asked = ledger.wish("slack U1", "stop", 0.0), ledger.wish("telegram group", "talk", 0.0)
    for wish in (*said, other):
        wish.stopping = True
    ledger.stop_unseen("telegram", 1.5)
    assert [one.excuse for one in (*said, other, asked)] == ["unknown", "", "", "", ""]
    ledger.stop_unseen("telegram", 1.5)
    ledger.stop_unseen("telegram", 1.5)
    assert [one.excuse for one in (*said, other, asked)] == ["unknown", "unknown", "", "", ""]
