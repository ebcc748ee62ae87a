"""Migrations only expand, and say which older code they carry (docs/decisions/0018).

What is read here is the text of each migration; what it does to tables and statements is held by
`tests/upgrade`. A migration that takes something away is named below with its reason.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

import pytest

from tests.architecture.source import Source, python_files, report

FOLDER: Final = "runtime/store/migrations/versions/"
NAMED: Final = "f"
"""`op.f` only marks a name as final."""
EXPANDING: Final = frozenset(
    {"create_table", "create_index", "add_column", "batch_alter_table", "f"}
)
CONTRACTIONS: Final[dict[str, str]] = {}
"""Revision -> why nothing that still runs needs what it takes away."""


def migrations() -> list[Source]:
    """In order of their names, which is the order of the revisions."""
    return [one for one in python_files("runtime") if one.path.startswith(FOLDER)]


def stated(source: Source) -> dict[str, str | None]:
    """The module's assignments of plain texts."""
    return {
        node.targets[0].id: node.value.value
        for node in source.tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }


def problems(source: Source, parent: Source | None) -> Iterator[str]:
    """What is wrong with a migration that follows `parent`."""
    said = stated(source)
    revision = str(said.get("revision"))
    if not re.fullmatch(rf"{re.escape(FOLDER)}{revision}_\w+\.py", source.path):
        yield f"{source.path}: its name begins with another revision than {revision}"
    if parent is None:
        return
    before = stated(parent)
    if said.get("down_revision") != before.get("revision"):
        yield f"{source.path}: follows {said.get('down_revision')}, not {before.get('revision')}"
    carried = before.get("compatible_from", before.get("revision"))
    contracts = revision in CONTRACTIONS
    if "compatible_from" not in said:
        yield f"{source.path}: does not say compatible_from; what only expands repeats {carried}"
    elif contracts == (said["compatible_from"] == carried):
        yield (
            f"{source.path}: carries {said['compatible_from']}, its parent {carried}: only one "
            "that takes something away carries less, and is listed with its reason"
        )
    if not contracts:
        yield from takes(source)


def takes(source: Source) -> Iterator[str]:
    """Operations that are not on the list of those that only add."""
    tree = source.tree
    batches = {
        item.optional_vars.id
        for node in ast.walk(tree)
        if isinstance(node, ast.With)
        for item in node.items
        if isinstance(item.optional_vars, ast.Name)
    }
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        owner = node.func.value
        if not (isinstance(owner, ast.Name) and owner.id in batches | {"op"}):
            continue
        name = node.func.attr
        if name not in EXPANDING and name != NAMED:
            yield f"{source.path}:{node.lineno}: {name} does not only add"
        elif name == "create_index" and _says(node, "unique"):
            yield f"{source.path}:{node.lineno}: a unique index is a new rule for older code"
    yield from _columns(source, tree)


def _columns(source: Source, tree: ast.Module) -> Iterator[str]:
    made = {
        part
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _name(node) == "create_table"
        for part in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in made or not (isinstance(node, ast.Call) and _name(node) == "Column"):
            continue
        place, given = f"{source.path}:{node.lineno}", {one.arg for one in node.keywords}
        if not _says(node, "nullable") and "server_default" not in given:
            yield f"{place}: a column that is neither nullable nor defaulted"
        rules = [_name(one) for one in node.args]
        if given & {"unique", "primary_key"} or "ForeignKey" in rules:
            yield f"{place}: a new rule on a table that older code writes"


def _says(call: ast.Call, keyword: str) -> bool:
    return any(one.arg == keyword and _true(one.value) for one in call.keywords)


def _true(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is True


def _name(node: ast.AST) -> str:
    function = node.func if isinstance(node, ast.Call) else node
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


@pytest.mark.requirement("SCALE-4")
def test_each_migration_only_expands_and_says_whom_it_carries() -> None:
    every = migrations()
    assert stated(every[0])["revision"] == "0100"
    found = [
        line
        for source, parent in zip(every, [None, *every], strict=False)
        for line in problems(source, parent)
    ]
    assert found == [], report(found)
    assert set(CONTRACTIONS) <= {str(stated(one)["revision"]) for one in every}


FIRST = Source(f"{FOLDER}0001_first.py", 'revision = "0001"\ndown_revision = None\n')


def after_the_first(line: str, carried: str = 'compatible_from = "0001"') -> list[str]:
    """What is found in a second migration."""
    text = f'revision = "0002"\ndown_revision = "0001"\n{carried}\ndef upgrade():\n    {line}\n'
    return list(problems(Source(f"{FOLDER}0002_second.py", text), FIRST))


@pytest.mark.requirement("SCALE-4")
@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('op.drop_table("runs")', "drop_table does not only add"),
        ('op.drop_column("runs", "model")', "drop_column does not only add"),
        ('op.execute("DELETE FROM runs")', "execute does not only add"),
        ('op.alter_column("runs", "model", nullable=False)', "alter_column does not only add"),
        ('op.add_column("runs", sa.Column("a", sa.Text(), nullable=False))', "neither nullable"),
        ('op.add_column("runs", sa.Column("a", sa.Text()))', "neither nullable"),
        (
            'op.add_column("runs", sa.Column("a", sa.Text(), sa.ForeignKey("b.c"), nullable=True))',
            "a new rule",
        ),
        ('op.create_index("i", "runs", ["model"], unique=True)', "a unique index"),
        (
            'with op.batch_alter_table("runs") as batch: batch.drop_column("model")',
            "drop_column does not only add",
        ),
    ],
)
def test_what_takes_something_away_is_found(line: str, why: str) -> None:
    (found,) = after_the_first(line)
    assert why in found


@pytest.mark.requirement("SCALE-4")
def test_what_is_said_about_older_code_is_checked() -> None:
    harmless = 'op.create_table("notes", sa.Column("id", sa.Text(), nullable=False))'
    assert after_the_first(harmless) == []
    (missing,) = after_the_first(harmless, carried="")
    assert "does not say compatible_from; what only expands repeats 0001" in missing
    (less,) = after_the_first(harmless, carried='compatible_from = "0002"')
    assert "carries 0002, its parent 0001" in less
