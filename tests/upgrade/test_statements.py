"""Each version's code goes on working on the schemas that say so (SCALE-4)."""

import re

import pytest

from runtime.store.migrate import MIGRATIONS
from runtime.store.revisions import Revisions
from runtime.store.tables_agents import metadata
from tests.upgrade.check import check
from tests.upgrade.corpus import DIALECTS, Dialect, read, recorded

KNOWN = Revisions(MIGRATIONS)
CARRIED = (KNOWN.compatible_from, *KNOWN.after(KNOWN.compatible_from))
"""The revisions whose code the newest schema must carry; those between two releases ran nowhere."""


@pytest.mark.requirement("SCALE-4")
@pytest.mark.parametrize(
    ("dialect", "revision"),
    [(dialect, one) for dialect in DIALECTS for one in recorded(dialect) if one in CARRIED],
)
async def test_what_a_version_says_is_understood_by_every_later_schema_that_carries_it(
    dialect: Dialect, revision: str, database_url: str
) -> None:
    broken = await check(database_url, read(revision, dialect))
    assert [str(one) for one in broken] == []


@pytest.mark.requirement("SCALE-4")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_this_version_and_the_ones_before_it_are_recorded(dialect: Dialect) -> None:
    """For a new revision run `python -m tests.upgrade.record`."""
    names = recorded(dialect)
    assert names[:2] == ["0001", "0002"]
    assert names[-1] == KNOWN.head
    assert set(names) <= {one.name for one in KNOWN.ordered}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_newest_corpus_speaks_of_every_table(dialect: Dialect) -> None:
    """A table that it leaves out is one that nothing protects."""
    said = "\n".join(read(KNOWN.head, dialect).statements)
    for verb in ("INSERT INTO", "FROM"):
        missing = {name for name in metadata.tables if not re.search(rf"{verb} {name}\b", said)}
        assert missing <= ({"audit"} if verb == "FROM" else set()), verb
