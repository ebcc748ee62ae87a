"""The manifest of required behaviours and the tests that claim them.

`tests/requirements.toml` says what is required and what is done; tests say what they prove with
`@pytest.mark.requirement("MSG-1")`. Both are read as text: no test is imported or run for it. A
mark counts where pytest collects the test by default: what only a special command runs, or nothing
at all, proves nothing here.
Run as a module, it prints the table: `python -m tests.architecture.manifest`.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import cache, cached_property
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict

from tests.architecture.source import ROOT, Source, python_files

MANIFEST = ROOT / "tests" / "requirements.toml"
ASSERTING_CALLS = frozenset({"raises", "warns", "fail", "expect"})
ASSERTING_PREFIXES = ("assert_", "expect_")

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Requirement(BaseModel):
    """One table of the manifest."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str
    state: Literal["planned", "done"]
    later: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """A test that says it proves `ids`; whether anything in it can fail, and whether pytest
    collects it by default."""

    path: str
    line: int
    test: str
    ids: tuple[str, ...]
    asserts: bool
    collected: bool = True

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.test}"


@dataclass(frozen=True, slots=True)
class Collection:
    """Where pytest looks for tests that nobody names: `folders`, without those on the way that are
    called like one of `passed_over`, in files called like one of `files`."""

    folders: tuple[str, ...]
    passed_over: tuple[str, ...]
    files: tuple[str, ...] = ("test_*.py", "*_test.py")

    @classmethod
    def of(cls, pyproject: str) -> Self:
        """What the configuration says; what it does not say is pytest's default."""
        options = tomllib.loads(pyproject)["tool"]["pytest"]["ini_options"]
        own = {"files": tuple(options["python_files"])} if "python_files" in options else {}
        return cls(tuple(options["testpaths"]), tuple(options["norecursedirs"]), **own)

    def holds(self, path: str) -> bool:
        """Whether the tests of a file are collected."""
        *folders, name = path.split("/")
        above = {"/".join(folders[: end + 1]) for end in range(len(folders))}
        return (
            not above.isdisjoint(self.folders)
            and not any(fnmatch(one, over) for one in folders for over in self.passed_over)
            and any(fnmatch(name, pattern) for pattern in self.files)
        )


@cache
def by_default() -> Collection:
    """How this project's tests are collected."""
    return Collection.of((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def load(text: str) -> dict[str, Requirement]:
    """The manifest by id. A malformed table raises `pydantic.ValidationError`."""
    return {key: Requirement.model_validate(table) for key, table in tomllib.loads(text).items()}


def claims(source: Source) -> list[Claim]:
    """The marked tests of one file: by decorator, by class, by `pytestmark`, by parameter.

    Raises `ValueError` where an id is not a plain string, as it could not be found by reading.
    """
    return list(_Claims(source).found())


@dataclass
class _Claims:
    source: Source

    @cached_property
    def _tree(self) -> ast.Module:
        return self.source.tree

    @cached_property
    def _helpers(self) -> dict[str, list[Function]]:
        """Functions by name that a test may assert through: its own file's, or imported ones."""
        found = _functions(self._tree)
        for node in ast.walk(self._tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests."):
                for name, functions in _functions_of(node.module or "").items():
                    found.setdefault(name, []).extend(functions)
        return found

    def found(self) -> Iterator[Claim]:
        module_ids = self._marks(_pytestmark(self._tree.body))
        yield from self._in(self._tree.body, "", module_ids)

    def _in(self, body: list[ast.stmt], prefix: str, ids: tuple[str, ...]) -> Iterator[Claim]:
        for node in body:
            if isinstance(node, ast.ClassDef):
                own = self._marks(node.decorator_list) + self._marks(_pytestmark(node.body))
                for claim in self._in(node.body, f"{prefix}{node.name}::", ids + own):
                    # Of other classes pytest collects nothing.
                    yield claim if node.name.startswith("Test") else replace(claim, collected=False)
            elif isinstance(node, Function) and node.name.startswith("test"):
                own = ids + self._marks(node.decorator_list)
                if own:
                    yield self._claim(node, prefix + node.name, own)
            elif machine := _state_machine(node):
                name, definition = machine
                classes = [c for c in ast.walk(self._tree) if isinstance(c, ast.ClassDef)]
                bodies: list[ast.AST] = [c for c in classes if c.name == definition]
                own = ids + self._later_marks(name)
                if own:
                    asserts = any(self._asserts(body) for body in bodies)
                    yield Claim(self.source.path, node.lineno, name, own, asserts, self._collected)

    def _claim(self, node: Function, name: str, ids: tuple[str, ...]) -> Claim:
        asserts = self._asserts(node)
        return Claim(self.source.path, node.lineno, name, ids, asserts, self._collected)

    @cached_property
    def _collected(self) -> bool:
        return by_default().holds(self.source.path)

    def _later_marks(self, name: str) -> tuple[str, ...]:
        """The marks of `TestMachine.pytestmark = ...`, for a class that is made by assignment."""
        values: list[ast.expr] = [
            node.value
            for node in self._tree.body
            if isinstance(node, ast.Assign)
            and isinstance(target := node.targets[0], ast.Attribute)
            and target.attr == "pytestmark"
            and isinstance(target.value, ast.Name)
            and target.value.id == name
        ]
        return self._marks(values)

    def _marks(self, expressions: Iterable[ast.expr]) -> tuple[str, ...]:
        ids: list[str] = []
        for expression in expressions:
            for node in ast.walk(expression):
                if isinstance(node, ast.Call) and _name(node.func) == "requirement":
                    ids += [self._literal(argument) for argument in node.args]
        return tuple(ids)

    def _literal(self, argument: ast.expr) -> str:
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            return argument.value
        raise ValueError(f"{self.source.path}:{argument.lineno} an id must be a plain string")

    def _asserts(self, root: ast.AST) -> bool:
        pending: list[ast.AST] = [root]
        entered: set[str] = set()
        while pending:
            for node in ast.walk(pending.pop()):
                if isinstance(node, ast.Assert):
                    return True
                if not isinstance(node, ast.Call) or (called := _name(node.func)) is None:
                    continue
                if called in ASSERTING_CALLS or called.startswith(ASSERTING_PREFIXES):
                    return True
                if called not in entered:
                    entered.add(called)
                    pending += self._helpers.get(called, [])
        return False


@cache
def _functions_of(module: str) -> dict[str, list[Function]]:
    path = ROOT.joinpath(*module.split(".")).with_suffix(".py")
    return _functions(ast.parse(path.read_text(encoding="utf-8"))) if path.is_file() else {}


def _functions(tree: ast.Module) -> dict[str, list[Function]]:
    found: dict[str, list[Function]] = {}
    for node in ast.walk(tree):
        if isinstance(node, Function):
            found.setdefault(node.name, []).append(node)
    return found


def _name(function: ast.expr) -> str | None:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else None


def _pytestmark(body: list[ast.stmt]) -> Iterator[ast.expr]:
    for node in body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "pytestmark" for target in node.targets
        ):
            yield node.value


def _state_machine(node: ast.stmt) -> tuple[str, str] | None:
    """`TestLane = LaneMachine.TestCase`, hypothesis' way to run a state machine."""
    if (
        isinstance(node, ast.Assign)
        and isinstance(target := node.targets[0], ast.Name)
        and isinstance(value := node.value, ast.Attribute)
        and value.attr == "TestCase"
        and isinstance(value.value, ast.Name)
    ):
        return target.id, value.value.id
    return None


def all_claims() -> list[Claim]:
    """The marked tests of the whole tree."""
    return [claim for source in python_files("tests") for claim in claims(source)]


def problems(requirements: Mapping[str, Requirement], made: Iterable[Claim]) -> list[str]:
    """What does not fit between the manifest and the tests, one sentence each."""
    made = list(made)
    proven = {id_ for claim in made if claim.collected for id_ in claim.ids}
    found = [
        f"{id_} is done and no test that is collected is marked with it"
        for id_, requirement in requirements.items()
        if requirement.state == "done" and id_ not in proven
    ]
    for claim in made:
        found += [f"{claim} names {id_}, unknown" for id_ in claim.ids if id_ not in requirements]
        if not claim.asserts:
            found.append(f"{claim} is marked and asserts nothing")
    for id_, requirement in requirements.items():
        for clause in requirement.later:
            found += _later_problems(id_, clause, requirements)
    return found


def _later_problems(
    id_: str, clause: str, requirements: Mapping[str, Requirement]
) -> Iterator[str]:
    awaited, colon, what = clause.partition(": ")
    if not colon or not what.strip():
        yield f'{id_} has a later clause that is not "ID: clause": {clause}'
    elif awaited not in requirements:
        yield f"{id_} waits for {awaited}, unknown: {what}"
    elif requirements[awaited].state == "done":
        yield f"{id_} waits for {awaited}, which is done; test the clause and drop it: {what}"


def table(requirements: Mapping[str, Requirement], made: Iterable[Claim]) -> str:
    """The table of `make requirements`: id, state, number of tests, waiting clauses."""
    tests = Counter(id_ for claim in made if claim.collected for id_ in set(claim.ids))
    states = Counter(requirement.state for requirement in requirements.values())
    lines = [f"{'id':<10}{'state':<10}{'tests':>5}  later"]
    for id_, requirement in requirements.items():
        later = ", ".join(clause.partition(":")[0] for clause in requirement.later)
        lines.append(f"{id_:<10}{requirement.state:<10}{tests[id_]:>5}  {later}".rstrip())
    lines.append(
        f"{len(requirements)} behaviours: {states['done']} done, {states['planned']} planned"
    )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(table(load(MANIFEST.read_text(encoding="utf-8")), all_claims()))
