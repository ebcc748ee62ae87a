"""The check itself: bad migrations are found, and named with what they break."""

import shutil
from pathlib import Path

import pytest

from runtime.store.migrate import MIGRATIONS
from runtime.store.revisions import Revisions
from tests.upgrade.check import Broken, check, up_to
from tests.upgrade.corpus import Corpus, Dialect

BEFORE = Revisions(MIGRATIONS).head
_BAD = """
import sqlalchemy as sa
from alembic import op

revision = "{revision}"
down_revision = "{parent}"
compatible_from = "{parent}"


def upgrade() -> None:
    {line}
"""
_BATCH = 'with op.batch_alter_table("{}") as batch: batch.{}'
HARMLESS = 'op.add_column("runs", sa.Column("note", sa.Text(), nullable=True))'


def scripts(folder: Path, *lines: str) -> Path:
    """The migrations of today, and a further one for each of `lines`."""
    made = folder / "migrations"
    with up_to(MIGRATIONS, BEFORE) as kept:
        shutil.copytree(kept, made)
    parent = BEFORE
    for number, line in enumerate(lines, 1):
        revision = f"900{number}"
        text = _BAD.format(revision=revision, parent=parent, line=line)
        (made / "versions" / f"{revision}_next.py").write_text(text)
        parent = revision
    assert len(Revisions(made).after(BEFORE)) == len(lines)
    return made


async def found(url: str, folder: Path, corpus: Corpus, *lines: str) -> list[Broken]:
    return await check(url, corpus, scripts=scripts(folder, *lines))


@pytest.mark.requirement("SCALE-4")
@pytest.mark.parametrize(
    ("line", "reason", "statement"),
    [
        (
            _BATCH.format("runs", 'drop_column("model")'),
            "runs.model is gone",
            "UPDATE runs SET",
        ),
        (
            _BATCH.format("outbox", 'alter_column("chat", new_column_name="place")'),
            "outbox.chat is gone",
            "INSERT INTO outbox",
        ),
        (
            'op.rename_table("leases", "holds")',
            "the table leases is gone",
            "UPDATE leases",
        ),
        (
            _BATCH.format("inputs", 'add_column(sa.Column("size", sa.Text(), nullable=False))'),
            "inputs.size is new and has neither NULL nor a default",
            "INSERT INTO inputs",
        ),
        (
            _BATCH.format("messages", 'create_unique_constraint("uq_bad", ["session_id"])'),
            "messages has a new rule: unique ['session_id']",
            "INSERT INTO messages",
        ),
    ],
)
async def test_what_takes_something_away_is_named_with_the_statement(
    line: str,
    reason: str,
    statement: str,
    dialect: Dialect,
    database_url: str,
    tmp_path: Path,
    at_work: Corpus,
) -> None:
    broken = await found(database_url, tmp_path, at_work, HARMLESS, line)
    assert {(one.revision, one.migration) for one in broken} == {(BEFORE, "9002")}
    assert reason in [one.reason for one in broken if one.what == "the tables"]
    assert any(statement in one.what for one in broken), [str(one) for one in broken]


@pytest.mark.requirement("SCALE-4")
async def test_a_type_that_changes_is_named(
    dialect: Dialect,
    database_url: str,
    tmp_path: Path,
    at_work: Corpus,
) -> None:
    line = _BATCH.format("lanes", 'alter_column("session_id", type_=sa.LargeBinary())')
    if dialect == "postgresql":
        line = 'op.execute("ALTER TABLE audit ALTER actor TYPE bytea USING actor::bytea")'
    broken = await found(database_url, tmp_path, at_work, line)
    assert any("was TEXT and is" in one.reason for one in broken)
    if dialect == "postgresql":
        assert any(one.what.startswith("INSERT INTO audit") for one in broken)


@pytest.mark.requirement("SCALE-4")
async def test_what_only_adds_breaks_nothing(
    dialect: Dialect,
    database_url: str,
    tmp_path: Path,
    at_work: Corpus,
) -> None:
    lines = (
        HARMLESS,
        'op.create_table("notes", sa.Column("id", sa.Text(), primary_key=True))',
        'op.create_index("ix_notes", "runs", ["note"])',
        _BATCH.format(
            "runs", 'add_column(sa.Column("size", sa.Text(), nullable=False, server_default=""))'
        ),
    )
    assert await found(database_url, tmp_path, at_work, *lines) == []
