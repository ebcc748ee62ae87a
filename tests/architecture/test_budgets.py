"""Size budgets: a file, a class, a function stay small enough to be read in one go.

Statements, complexity and arguments are counted by ruff (PLR0915, C901, PLR0913); what is counted
here is what ruff does not count, and that nobody switches a budget off without a reason.
"""

from __future__ import annotations

import ast
import re

from tests.architecture.source import PRODUCT, Source, python_files, report

MAX_LINES = 600
MAX_METHODS = 15
CLASS = re.compile(r"\bclass\b")
WAIVER = re.compile(r"#\s*(?:ruff:\s*)?noqa(?:(?!:)|:.*(?:PLR0913|PLR0915|C901))")

# Path, or path::Class, or path::waiver -> why this case deserves more than the budget.
EXCEPTIONS: dict[str, str] = {}


def over_budget(source: Source) -> dict[str, str]:
    """Place -> what is too big there."""
    found = {}
    lines = source.text.count("\n")
    if lines > MAX_LINES:
        found[source.path] = f"{lines} lines, at most {MAX_LINES}"
    crowded = source.text.count("def ") > MAX_METHODS
    for node in source.nodes(CLASS) if crowded else ():
        if isinstance(node, ast.ClassDef) and (count := _methods(node)) > MAX_METHODS:
            found[f"{source.path}::{node.name}"] = f"{count} public methods, at most {MAX_METHODS}"
    for line, comment in source.comments(WAIVER).items():
        if WAIVER.match(comment):
            found[f"{source.path}::waiver"] = f"a budget is switched off on line {line}"
    return found


def _methods(node: ast.ClassDef) -> int:
    """Public methods by name, so that overloads and a property's setter count once."""
    return len(
        {
            item.name
            for item in node.body
            if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)
            and not item.name.startswith("_")
        }
    )


def test_the_tree_keeps_its_budgets() -> None:
    found: dict[str, str] = {}
    for source in python_files(*PRODUCT, "tests"):
        found |= over_budget(source)
    unexplained = [f"{place}: {what}" for place, what in found.items() if place not in EXCEPTIONS]
    assert not unexplained, report(unexplained)
    stale = sorted(set(EXCEPTIONS) - set(found))
    assert not stale, report([f"no longer over its budget, drop it: {place}" for place in stale])
    assert all(len(reason.split()) >= 4 for reason in EXCEPTIONS.values())


def test_each_budget_catches_its_violation() -> None:
    methods = "\n".join(f"    def m{number}(self): ..." for number in range(MAX_METHODS + 1))
    assert list(over_budget(Source("a.py", "x = 1\n" * (MAX_LINES + 1)))) == ["a.py"]
    assert list(over_budget(Source("a.py", f"class Big:\n{methods}\n"))) == ["a.py::Big"]
    for comment in (
        "# noqa",
        "# noqa: C901",
        "# noqa: E501, PLR0915 - long",
        "# ruff: noqa: PLR0913",
    ):
        assert list(over_budget(Source("a.py", f"x = 1  {comment}\n"))) == ["a.py::waiver"]


def test_what_keeps_the_budgets_passes() -> None:
    methods = "\n".join(f"    def m{number}(self): ..." for number in range(MAX_METHODS))
    text = f"class Fine:\n{methods}\n    def _more(self): ...\n"
    assert over_budget(Source("a.py", text + "x = 1\n" * (MAX_LINES - MAX_METHODS - 2))) == {}
    assert over_budget(Source("a.py", "x = 1  # noqa: BLE001 - worker root\n")) == {}
