"""Every queue has a bound (SCALE-5): one that only grows ends as somebody's lost memory.

A queue without a maximum is allowed where something else bounds it; what that is stands here.
"""

from __future__ import annotations

import ast
import re

import pytest

from tests.architecture.source import PRODUCT, Source, python_files, report

QUEUES = frozenset({"Queue", "LifoQueue", "PriorityQueue", "deque", "SimpleQueue"})
WORDS = re.compile("|".join(sorted(QUEUES)))
LIMITS = {"deque": (1, "maxlen")}
"""Where the bound stands: the argument's place and name; for all others the first, ``maxsize``."""

# Place of the product -> why the queue there needs no bound of its own.
ALLOWED: dict[str, str] = {
    "gateway/http/catch_up.py": "one for each open event stream, which `http.streams` limits",
    "runtime/bus/signal_queue.py": "drops by number and by characters, which no maximum can count",
    "runtime/store/postgres.py": "one for each unit at work; `write` refuses beyond WAITING_LIMIT",
    "runtime/store/writer.py": "`Queue.put` refuses beyond WAITING_LIMIT; a group is split once",
    "runtime/tools/paths.py": "holds one path's names, which the system limits to 4,096 bytes",
    "runtime/delivery/deliverer.py": "one for each turn that ends, and no offer beyond MOST chats",
}


def unbounded_queues(source: Source) -> list[str]:
    """Calls that make a queue without a maximum, and factories that would."""
    if source.path in ALLOWED:
        return []
    return [
        f"{source.path}:{line} {name} has no bound: give it one, and say what full looks like"
        for line, name in sorted(set(_unbounded(source)))
    ]


def _unbounded(source: Source) -> list[tuple[int, str]]:
    found = []
    nodes = list(source.nodes(WORDS))
    ours = {node.name for node in nodes if isinstance(node, ast.ClassDef)}
    queues = QUEUES - ours
    for node in nodes:
        if isinstance(node, ast.Call):
            name = _name(node.func)
            if name in queues and not _is_bounded(node, *LIMITS.get(name, (0, "maxsize"))):
                found.append((node.lineno, name))
            found += [
                (node.lineno, _name(keyword.value))
                for keyword in node.keywords
                if keyword.arg == "default_factory" and _name(keyword.value) in queues
            ]
            if name in {"setdefault", "defaultdict"}:
                found += [(node.lineno, _name(one)) for one in node.args if _name(one) in queues]
    return found


def _is_bounded(call: ast.Call, place: int, name: str) -> bool:
    given = [one.value for one in call.keywords if one.arg == name] + call.args[place : place + 1]
    return bool(given) and not (isinstance(given[0], ast.Constant) and not given[0].value)


def _name(node: ast.expr) -> str:
    """The last name of ``asyncio.Queue``, ``Queue`` or ``deque[int]``; "" for anything else."""
    if isinstance(node, ast.Subscript):
        return _name(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


@pytest.mark.requirement("SCALE-5")
def test_every_queue_has_a_bound() -> None:
    found = [problem for source in python_files(*PRODUCT) for problem in unbounded_queues(source)]
    assert not found, report(found)


@pytest.mark.requirement("SCALE-5")
def test_every_exception_still_has_its_queue() -> None:
    bare = {path for path in ALLOWED if not _unbounded(_file(path))}
    assert not bare, f"{sorted(bare)} have no such queue any more"


def _file(path: str) -> Source:
    return next(source for source in python_files(*PRODUCT) if source.path == path)


@pytest.mark.parametrize(
    "text",
    [
        "import asyncio\nasyncio.Queue()",
        "asyncio.Queue(0)",
        "asyncio.Queue(maxsize=0)",
        "queue.SimpleQueue()",
        "PriorityQueue[int]()",
        "deque()",
        "deque([1, 2])",
        "deque([], None)",
        "deque(maxlen=None)",
        "x: deque[int] = field(default_factory=deque)",
        "x = defaultdict(deque)",
    ],
)
def test_a_queue_without_a_bound_is_found(text: str) -> None:
    assert len(unbounded_queues(Source("runtime/agent/loop.py", text + "\n"))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "asyncio.Queue(10)",
        "asyncio.Queue(maxsize=LIMIT)",
        "deque(maxlen=MOST)",
        "deque([], 5)",
        "x = field(default_factory=partial(deque[int], maxlen=WAITING))",
        "x: deque[int]",
    ],
)
def test_a_queue_with_a_bound_passes(text: str) -> None:
    assert not unbounded_queues(Source("runtime/agent/loop.py", text + "\n"))
