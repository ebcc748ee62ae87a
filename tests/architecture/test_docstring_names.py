"""A docstring names only what exists.

A lower-case name in single backquotes is one of ours, and so is a path of modules. Words of others,
such as an error code of a platform or a program, stand in double ones and are not looked at.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import PurePosixPath

import pytest

from tests.architecture.source import PRODUCT, Source, project_files, python_files, report

NAME = re.compile(r"(?<![`\w])`([a-z_][a-z0-9_]*)(?:\(\))?`(?!`)")
DOTTED = re.compile(r"(?<!`)`([a-z_]\w*(?:\.\w+)+)(?:\(\))?`(?!`)")
PATH = re.compile(r"(?<!`)`([a-z_]\w*(?:/\w+)+(?:\.\w+)?)`(?!`)")
WORD = re.compile(r"\w+")
ALWAYS = frozenset({*dir(builtins), *keyword.kwlist, *PRODUCT})
FIELDS = ("id", "attr", "name", "arg", "module", "asname", "value")


class Module:
    """What one file says and defines; parsed once."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.parts = PurePosixPath(source.path).with_suffix("").parts
        self.docstrings: list[ast.Constant] = []
        self.imported: list[str] = []
        self.defined: set[str] = set()
        """Its functions, classes, constants and fields."""
        nodes = tuple(ast.walk(source.tree))
        for node in nodes:
            self._note(node)
        texts = {id(text) for text in self.docstrings}
        values = [getattr(n, field, 0) for n in nodes if id(n) not in texts for field in FIELDS]
        self.words = {w for text in values if isinstance(text, str) for w in WORD.findall(text)}
        """Every word of its code and its texts, but of no docstring and no comment."""

    def _note(self, node: ast.AST) -> None:
        match node:
            case ast.Expr(value=ast.Constant(value=str()) as text):
                self.docstrings.append(text)
            case ast.ImportFrom(module=str(module), names=names):
                paths = [module, *(f"{module}.{alias.name}" for alias in names)]
                self.imported += [path.replace(".", "/") for path in paths]
            case ast.Attribute(attr=name, ctx=ast.Store()):
                self.defined.add(name)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.defined.add(node.name)
        if isinstance(node, ast.ClassDef | ast.Module):
            self.defined.add(getattr(node, "name", ""))
            targets = [t for n in node.body if isinstance(n, ast.Assign) for t in n.targets]
            targets += [n.target for n in node.body if isinstance(n, ast.AnnAssign)]
            self.defined |= {target.id for target in targets if isinstance(target, ast.Name)}


parsed = cache(Module)


class Tree:
    """The files of a project, in which the names of docstrings are looked up."""

    def __init__(self, sources: Sequence[Source], others: Sequence[str] = ()) -> None:
        self._sources = {source.path: source for source in sources}
        self._folders: dict[str, list[Source]] = defaultdict(list)
        for source in sources:
            self._folders[source.path.rpartition("/")[0]].append(source)
        self._paths = "\n" + "".join(f"/{path}\n" for path in (*self._sources, *others))

    def problems(self, source: Source) -> Iterator[str]:
        """What the docstrings of a file name that is not there."""
        module = parsed(source)
        for text in module.docstrings:
            said = str(text.value)
            missing = [name for name in NAME.findall(said) if not self._is_name(module, name)]
            missing += [name for name in DOTTED.findall(said) if not self._is_dotted(module, name)]
            missing += [name for name in PATH.findall(said) if not self._is_path(name)]
            for name in missing:
                yield f"{source.path}:{text.lineno} `{name}` does not exist: name what does"

    def _is_name(self, module: Module, name: str) -> bool:
        """A word of the file itself, a module of the product, or defined near by."""
        return (
            name in ALWAYS
            or name in module.words
            or any(re.search(rf"\n/{top}/(.*/)?{name}[/.]", self._paths) for top in PRODUCT)
            or any(name in (*near.parts, *near.defined) for near in self._near(module))
        )

    def _is_dotted(self, module: Module, name: str) -> bool:
        """False for what is missing at its place, counted from the top or from a module near by."""
        first, *rest = name.split(".")
        if first in {*PRODUCT, "tests"}:
            return self._resolves(first, rest)
        near = [one for one in self._near(module) if one.parts[-1] == first]
        return not near or any(rest[0] in one.words for one in near)

    def _resolves(self, top: str, rest: list[str]) -> bool:
        for cut in range(len(rest), -1, -1):
            path = "/".join((top, *rest[:cut]))
            if source := self._module(path):
                return parsed(source).defined.issuperset(rest[cut:])
        return self._is_path("/".join((top, *rest)))

    def _module(self, path: str) -> Source | None:
        return self._sources.get(f"{path}.py") or self._sources.get(f"{path}/__init__.py")

    def _is_path(self, name: str) -> bool:
        return re.search(rf"/{re.escape(name)}(\.\w+)?[/\n]", self._paths) is not None

    def _near(self, module: Module) -> Iterator[Module]:
        """The modules that a file imports, and those beside it."""
        imported = (self._module(path) for path in module.imported)
        beside = self._folders[module.source.path.rpartition("/")[0]]
        yield from (parsed(source) for source in (*imported, *beside) if source)


def test_docstrings_name_only_what_exists() -> None:
    sources = [one for one in python_files(*PRODUCT, "tests") if "/test_" not in one.path]
    tree = Tree(sources, project_files())
    found = [problem for source in sources for problem in tree.problems(source)]
    assert not found, report(found)


SEED = """
'''Reads what `fetch` brings. TEXT'''

from runtime.store import rows

def load(key): ...
"""
ROWS = "class Row:\n    size: int = 0\n    def fetch(self): passing = 1"


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("See `load`, `load()`, `key`, `rows`, `size`, `store` and `None`.", []),
        ("See `runtime.store.rows`, `runtime.store.rows.Row.fetch` and `rows.Row`.", []),
        ("See `store/rows`, `runtime/store/rows.py` and `docs/events.md`.", []),
        ("Slack says ``receiving``, and `chat.postMessage` is no module of ours.", []),
        ("Stored by `receiving`, once.", ["receiving"]),
        ("Stored by `passing()`.", ["passing"]),
        ("See `runtime.store.lines`.", ["runtime.store.lines"]),
        ("See `runtime.store.rows.Line` or `rows.line`.", ["runtime.store.rows.Line", "rows.line"]),
        (
            "See `store/lines`, `store/rows/x.py` and `docs/rows.md`.",
            ["store/lines", "store/rows/x.py", "docs/rows.md"],
        ),
    ],
)
def test_a_name_of_nothing_is_found(text: str, missing: list[str]) -> None:
    source = Source("runtime/seed.py", SEED.replace("TEXT", text))
    tree = Tree([source, Source("runtime/store/rows.py", ROWS)], ["docs/events.md"])
    assert [problem.split("`")[1] for problem in tree.problems(source)] == missing
