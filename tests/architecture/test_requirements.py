"""The manifest and the tests agree, and each rule that says so catches its violation."""

from __future__ import annotations

from collections import defaultdict
from textwrap import dedent

import pytest

from tests.architecture.manifest import (
    MANIFEST,
    Claim,
    Collection,
    Requirement,
    all_claims,
    claims,
    load,
)
from tests.architecture.manifest import problems as manifest_problems
from tests.architecture.manifest import table as manifest_table
from tests.architecture.source import Source, report

# How many behaviours each family has; an id that is dropped or added by accident changes it.
FAMILIES = {
    "MSG": 25, "MDL": 8, "CTX": 12, "MEM": 9, "TOOL": 14, "POL": 11, "APR": 11, "SUB": 25, "REN": 6,
    "SLK": 9, "TEL": 6, "ACC": 3, "WEB": 4, "TTY": 1, "API": 5, "RUN": 6, "TSK": 8, "SCH": 10,
    "AGT": 4, "MBX": 4, "ROOM": 8, "GRP": 4, "OPS": 15, "SCALE": 5, "SEC": 7, "UI": 9,
}  # fmt: skip


def test_the_manifest_holds_every_id_once() -> None:
    numbers: dict[str, list[int]] = defaultdict(list)
    for id_ in load(MANIFEST.read_text(encoding="utf-8")):
        family, _, number = id_.partition("-")
        numbers[family].append(int(number))
    assert numbers == {family: list(range(1, count + 1)) for family, count in FAMILIES.items()}
    assert sum(FAMILIES.values()) == 229


def test_every_text_is_one_whole_sentence() -> None:
    texts = {key: table.text for key, table in load(MANIFEST.read_text(encoding="utf-8")).items()}
    assert [key for key, text in texts.items() if len(text) < 20 or not text.endswith(".")] == []
    assert len(set(texts.values())) == len(texts)


def test_the_manifest_and_the_tests_agree() -> None:
    found = manifest_problems(load(MANIFEST.read_text(encoding="utf-8")), all_claims())
    assert not found, report(found)


def claims_in(text: str) -> list[Claim]:
    return claims(Source("tests/unit/test_seed.py", dedent(text)))


def test_marks_are_found_on_functions_classes_modules_and_parameters() -> None:
    found = claims_in(
        """
        import pytest
        pytestmark = [pytest.mark.requirement("MSG-1")]

        class TestLane:
            pytestmark = pytest.mark.requirement("MSG-2", "MSG-3")

            @pytest.mark.requirement("MSG-4")
            async def test_order(self):
                assert True

        @pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.requirement("MSG-5"))])
        def test_one(x):
            assert x
        """
    )
    assert [(claim.test, claim.ids) for claim in found] == [
        ("TestLane::test_order", ("MSG-1", "MSG-2", "MSG-3", "MSG-4")),
        ("test_one", ("MSG-1", "MSG-5")),
    ]


@pytest.mark.parametrize(
    ("body", "asserts"),
    [
        ("assert x", True),
        ("with pytest.raises(ValueError): pass", True),
        ("expect_reply(x)", True),
        ("self.assert_sent(x)", True),
        ("expect(page).to_have_title('x')", True),
        ("await helper(x)", True),
        ("x.run()", False),
        ("silent(x)", False),
    ],
)
def test_a_marked_test_must_be_able_to_fail(body: str, asserts: bool) -> None:
    found = claims_in(
        f"""
        async def helper(x): await deeper(x)
        async def deeper(x): assert x
        def silent(x): silent(x)
        @pytest.mark.requirement("MSG-1")
        async def test_it(x): {body}
        """
        if not body.startswith("with")
        else f"""
        @pytest.mark.requirement("MSG-1")
        def test_it(x):
            {body}
        """
    )
    assert [claim.asserts for claim in found] == [asserts]


@pytest.mark.parametrize(("helper", "asserts"), [("pins", True), ("read", False)])
def test_an_imported_helper_counts_when_it_asserts(helper: str, asserts: bool) -> None:
    found = claims_in(
        f"""
        from tests.architecture.test_distribution import {helper}
        @pytest.mark.requirement("MSG-1")
        def test_it(x): {helper}(x)
        """
    )
    assert [claim.asserts for claim in found] == [asserts]


def test_a_state_machine_is_a_test_by_assignment() -> None:
    found = claims_in(
        """
        class LaneMachine(RuleBasedStateMachine):
            @invariant()
            def one_active_run(self): assert self.active <= 1

        TestLane = LaneMachine.TestCase
        TestLane.pytestmark = [pytest.mark.requirement("MSG-4")]
        """
    )
    assert [(claim.test, claim.ids, claim.asserts) for claim in found] == [
        ("TestLane", ("MSG-4",), True)
    ]


def test_an_id_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(ValueError, match="plain string"):
        claims_in(
            """
            @pytest.mark.requirement(NAME)
            def test_it(): assert True
            """
        )


def entry(state: str = "done", *later: str) -> Requirement:
    return Requirement.model_validate({"text": "A text.", "state": state, "later": later})


def claim(*ids: str, asserts: bool = True, collected: bool = True) -> Claim:
    return Claim("tests/test_seed.py", 1, "test_it", ids, asserts, collected)


@pytest.mark.parametrize(
    ("path", "collected"),
    [
        ("tests/unit/test_it.py", True),
        ("tests/unit/it_test.py", True),
        ("tests/unit/it.py", False),
        ("tests/long/test_it.py", False),
        ("tests/unit/long/deep/test_it.py", False),
        ("tests/.hidden/test_it.py", False),
        ("gateway/test_it.py", False),
        ("tests_of_others/test_it.py", False),
    ],
)
def test_a_mark_counts_where_pytest_collects_the_test(path: str, collected: bool) -> None:
    pyproject = """
        [tool.pytest.ini_options]
        testpaths = ["tests"]
        norecursedirs = [".*", "long"]
    """
    assert Collection.of(dedent(pyproject)).holds(path) is collected


def test_what_a_folder_that_is_passed_over_claims_proves_nothing() -> None:
    body = """
        @pytest.mark.requirement("MSG-1")
        def test_it(): assert True
    """
    for folder, collected in (("unit", True), ("benchmarks", False)):
        (made,) = claims(Source(f"tests/{folder}/test_seed.py", dedent(body)))
        assert made.collected is collected
        found = manifest_problems({"MSG-1": entry()}, [made])
        assert [one.partition(" and ")[0] for one in found] == (
            [] if collected else ["MSG-1 is done"]
        )
        assert f"MSG-1     done{int(collected):>11}" in manifest_table({"MSG-1": entry()}, [made])


def test_of_a_class_that_is_no_test_nothing_counts() -> None:
    body = """
        class Lane:
            @pytest.mark.requirement("MSG-1")
            def test_it(self): assert True
    """
    assert [one.collected for one in claims_in(body)] == [False]


@pytest.mark.parametrize(
    ("requirements", "made", "problem"),
    [
        ({"MSG-1": entry()}, [], "done and no test that is collected"),
        ({"MSG-1": entry()}, [claim("MSG-1", collected=False)], "no test that is collected"),
        ({}, [claim("MSG-99")], "MSG-99, unknown"),
        ({"MSG-1": entry()}, [claim("MSG-1", asserts=False)], "asserts nothing"),
        (
            {"MSG-1": entry("done", "SUB-7: drives explorers"), "SUB-7": entry()},
            [claim("MSG-1", "SUB-7")],
            "waits for SUB-7, which is done",
        ),
        ({"MSG-1": entry("planned", "SUB-99: x")}, [], "waits for SUB-99, unknown"),
        ({"MSG-1": entry("planned", "later")}, [], 'not "ID: clause"'),
    ],
)
def test_each_disagreement_is_named(
    requirements: dict[str, Requirement], made: list[Claim], problem: str
) -> None:
    found = manifest_problems(requirements, made)
    assert len(found) == 1
    assert problem in found[0]


def test_what_fits_is_not_reported() -> None:
    requirements = {
        "MSG-1": entry("done", "SUB-7: drives explorers"),
        "SUB-7": entry("planned"),
    }
    assert manifest_problems(requirements, [claim("MSG-1")]) == []
    assert "2 behaviours: 1 done, 1 planned" in manifest_table(requirements, [claim("MSG-1")])
