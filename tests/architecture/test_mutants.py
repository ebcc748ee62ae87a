"""The score of `make mutants` is read from what mutmut lists."""

from tests.mutants import Score

RESULTS = """
    runtime.policy.flags.x_names__mutmut_1: survived
    runtime.policy.flags.x_names__mutmut_2: killed
    runtime.policy.flags.x_names__mutmut_3: timeout
    runtime.policy.flags.x_names__mutmut_4: no tests
"""


def test_what_no_test_found_is_named_and_counted() -> None:
    score = Score.of("policy", RESULTS)
    assert [name[-1] for name in score.left] == ["1", "4"]
    assert str(score) == (
        "policy: 2 of 4 found, 50.0 % (1 killed, 1 no tests, 1 survived, 1 timeout)"
    )
    assert str(Score.of("none", "")) == "none: 0 of 0 found, 0.0 % ()"


def test_a_sample_counts_those_alone_whose_number_ends_in_its_digits() -> None:
    score = Score.of("policy", RESULTS, "13")
    assert score.left == ["runtime.policy.flags.x_names__mutmut_1"]
    assert str(score) == "policy: 1 of 2 found, 50.0 % (1 survived, 1 timeout)"
