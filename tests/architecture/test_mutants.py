"""The score of `make mutants` is read from what mutmut lists."""

from collections import Counter

from tests.mutants import Sample, Score, states_of

RESULTS = """
    runtime.policy.program_flags.x_names__mutmut_1: survived
    runtime.policy.program_flags.x_names__mutmut_2: killed
    runtime.policy.program_flags.x_names__mutmut_3: timeout
    runtime.policy.program_flags.x_names__mutmut_4: no tests
"""


def test_what_no_test_found_is_named_and_counted() -> None:
    score = Score.of("policy", states_of(RESULTS))
    assert [name[-1] for name in score.left] == ["1", "4"]
    assert str(score) == (
        "policy: 2 of 4 found, 50.0 % (1 killed, 1 no tests, 1 survived, 1 timeout)"
    )
    assert str(Score.of("none", {})) == "none: 0 of 0 found, 0.0 % ()"


def test_a_seed_draws_the_same_sample_in_any_order_and_another_seed_another() -> None:
    names = [f"runtime.policy.program_flags.x_names__mutmut_{number}" for number in range(100)]
    drawn = Sample(40).of(names)
    assert len(set(drawn)) == 40
    assert drawn == Sample(40).of(reversed(names))
    assert set(drawn) != set(Sample(40, seed=2).of(names))
    assert set(Sample(200).of(names)) == set(names)


def test_a_sample_stays_what_it_was_when_a_defect_is_gone() -> None:
    names = [f"runtime.policy.program_flags.x_names__mutmut_{number}" for number in range(100)]
    drawn = Sample(40).of(names)
    left = [name for name in names if name != drawn[0]]
    assert set(drawn[1:]) < set(Sample(40).of(left))


def test_every_defect_is_drawn_about_as_often_as_any_other() -> None:
    names = [f"runtime.policy.program_flags.x_names__mutmut_{number}" for number in range(20)]
    often = Counter(name for seed in range(400) for name in Sample(5, seed).of(names))
    assert len(often) == 20
    assert all(60 < times < 140 for times in often.values()), often
