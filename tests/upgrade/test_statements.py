"""What a released version says is understood by every later schema that carries it (SCALE-4)."""

import re

import pytest

from runtime.store.metadata import metadata
from runtime.store.migrate import MIGRATIONS
from runtime.store.revisions import Revisions
from tests.upgrade.check import check
from tests.upgrade.corpus import Corpus, Dialect, read, released

KNOWN = Revisions(MIGRATIONS)
CARRIED = (KNOWN.compatible_from, *KNOWN.after(KNOWN.compatible_from))
"""The revisions whose code the newest schema must carry; those between two releases ran nowhere."""
RELEASED = [one for one in released("sqlite") if one in CARRIED]


@pytest.mark.requirement("SCALE-4")
@pytest.mark.parametrize("revision", sorted({*RELEASED, KNOWN.head}))
async def test_every_statement_is_understood(
    dialect: Dialect, revision: str, database_url: str, at_work: Corpus
) -> None:
    corpus = read(revision, dialect) if revision in RELEASED else at_work
    assert corpus.revision == revision
    assert [str(one) for one in await check(database_url, corpus)] == []


@pytest.mark.requirement("SCALE-4")
def test_each_release_is_recorded_on_both_databases() -> None:
    assert released("sqlite") == released("postgresql")
    assert set(released("sqlite")) <= {one.name for one in KNOWN.ordered}


def test_the_story_speaks_of_every_table(at_work: Corpus) -> None:
    """A table that it leaves out is one that nothing protects."""
    said = "\n".join(at_work.statements)
    for verb in ("INSERT INTO", "FROM"):
        missing = {name for name in metadata.tables if not re.search(rf"{verb} {name}\b", said)}
        # A command's input needs one that runs, and the story runs none.
        known = {"task_inputs", *(("audit", "schedule_fires") if verb == "FROM" else ())}
        assert missing <= known, verb
