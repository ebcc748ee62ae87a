"""Size budgets: a file, a class, a function stay small enough to be read in one go, and no module
is so small that it only makes a reader open one file more.

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

FLOOR = 60
_EQUALS = "one of a row of equals, a module each"
_PURE = "pure, and tested or judged without its importer"
_SEARCHED = "a word of the field that people search the tree for"
# Path of a module under the floor -> why it stands alone though one sibling imports it.
SMALL: dict[str, str] = {
    "adapters/models/clients/http.py": "the transport beneath a library's client",
    "adapters/sandbox/environment.py": "what keeps secrets from commands is judged alone",
    "adapters/sandbox/seccomp_requests.py": "the shape of the kernel's questions",
    "adapters/sandbox/unconfined.py": _EQUALS,
    "adapters/slack/bot_identity.py": _SEARCHED,
    "adapters/telegram/group_limit.py": _SEARCHED,
    "adapters/terminal/log.py": "a widget of the terminal, which is laid out elsewhere",
    "adapters/web/egress.py": "every adapter has one, pure by its contract",
    "gateway/cli/configuration.py": _EQUALS,
    "gateway/cli/event_loop.py": "tests and benchmarks run on the same loop",
    "gateway/cli/pairing.py": _EQUALS,
    "gateway/http/capability_scopes.py": _EQUALS,
    "gateway/http/explain.py": _EQUALS,
    "gateway/http/personas.py": _EQUALS,
    "gateway/http/route_policies.py": _EQUALS,
    "gateway/owner.py": "whoever a home belongs to is no matter of wiring",
    "gateway/tracing.py": "nothing of OpenTelemetry is imported without it",
    "runtime/features/mailboxes/tables.py": _EQUALS,
    "runtime/intake/bot_loop_guard.py": _SEARCHED,
    "runtime/intake/full_lane.py": _SEARCHED,
    "runtime/intake/late_messages.py": _SEARCHED,
    "runtime/tools/builtin/ask.py": _EQUALS,
    "runtime/tools/builtin/line_range.py": _PURE,
}


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


def importers(sources: list[Source]) -> dict[str, set[str]]:
    """Path of a module -> paths of those that import it."""
    paths = {source.path.removesuffix(".py").replace("/", "."): source.path for source in sources}
    found: dict[str, set[str]] = {path: set() for path in paths.values()}
    for source in sources:
        for node in source.nodes(re.compile(r"\bimport\b")):
            names = list[str]()
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{name.name}" for name in node.names)]
            elif isinstance(node, ast.Import):
                names = [name.name for name in node.names]
            for name in names:
                if (path := paths.get(name)) is not None:
                    found[path].add(source.path)
    return found


def under_floor(sources: list[Source]) -> set[str]:
    """Modules under the floor whose only importer is a sibling."""
    found = set()
    by_path = {source.path: source for source in sources}
    for path, importing in importers(sources).items():
        if len(importing) != 1 or path.endswith("/__init__.py"):
            continue
        (importer,) = importing
        sibling = importer.rpartition("/")[0] == path.rpartition("/")[0]
        if sibling and by_path[path].text.count("\n") < FLOOR:
            found.add(path)
    return found


def test_no_module_is_too_small_to_stand_alone() -> None:
    found = under_floor(list(python_files(*PRODUCT)))
    assert found <= SMALL.keys(), report([f"merge: {one}" for one in sorted(found - SMALL.keys())])
    stale = sorted(SMALL.keys() - found)
    assert not stale, report([f"no longer under the floor, drop it: {place}" for place in stale])


def test_a_small_module_with_one_sibling_as_its_importer_is_found() -> None:
    sources = [
        Source("runtime/a/one.py", "def one() -> None: ...\n"),
        Source("runtime/a/two.py", "from runtime.a.one import one\n"),
        Source("runtime/a/three.py", "from runtime.a import two\n"),
        Source("runtime/b/four.py", "from runtime.a import three\n"),
        Source("runtime/a/long.py", "x = 1\n" * FLOOR),
        Source("runtime/a/five.py", "import runtime.a.long\n"),
    ]
    assert under_floor(sources) == {"runtime/a/one.py", "runtime/a/two.py"}
