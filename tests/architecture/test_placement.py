"""Where a library, the environment and a late import may stand.

Import contracts see packages; these rules are about a submodule of a library (`aiohttp.web`), about
the environment, which is no import, and about where in a file an import stands.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase

import pytest

from tests.architecture.source import PRODUCT, Source, python_files, report
from tests.support.kinds import COMMANDS

# Module -> the only places of the product that may import it (a folder ends in `/`).
OWNERS: dict[str, tuple[str, ...]] = {
    "aiohttp": ("adapters/", "gateway/http/", "gateway/cli/client.py"),
    "aiohttp.web": ("gateway/http/",),
    "anthropic": ("adapters/models/",),
    "apscheduler": ("adapters/system/",),
    "asyncpg": ("runtime/bus/", "runtime/store/"),
    "cronsim": ("runtime/features/schedules/",),
    "google.genai": ("adapters/models/",),
    "http.client": (),
    "http.server": (),
    "httpx": ("adapters/", "gateway/cli/client.py"),
    "httpx2": ("adapters/models/",),
    "math_core": ("adapters/rendering/mathml.py",),
    "mcp": ("adapters/mcp/",),
    "nats": ("runtime/bus/",),
    "openai": ("adapters/models/",),
    "pydantic_ai": ("adapters/models/",),
    "requests": (),
    "rich": ("adapters/rendering/terminal.py", "adapters/terminal/", "gateway/cli/"),
    "slack_bolt": ("adapters/slack/",),
    "slack_sdk": ("adapters/slack/",),
    "sqlite3": ("runtime/store/",),
    "telegram": ("adapters/telegram/",),
    "textual": ("adapters/terminal/", "gateway/cli/"),
    "tomllib": ("gateway/config.py",),
    "typer": ("gateway/cli/",),
    # Its reading of the proxies of the environment; it asks nobody.
    "urllib.request": ("adapters/platforms/proxies.py",),
    "uvloop": ("gateway/",),
}
# The canary is no part of the gateway's process: it tells what a command sees.
READS_THE_ENVIRONMENT = ("gateway/config.py", "adapters/sandbox/canary.py")
# Their texts go out by `Unit.say`, or in a part with `names_commands`.
SPELLS_COMMANDS = (
    "runtime/commands/",
    "runtime/intake/card_references.py",
    "runtime/intake/late_messages.py",
    "runtime/features/*/commands.py",
    "runtime/features/schedules/gates.py",
    "runtime/features/subagents/batch_card.py",
)
SLASH_WORD = re.compile(rf"`/(?:{'|'.join(sorted(COMMANDS.names))})\b")
TOPS = "|".join(sorted({module.partition(".")[0] for module in OWNERS}))
LIBRARIES = re.compile(rf"^\s*(?:from|import)\b.*\b(?:{TOPS})\b", re.MULTILINE)
VARIABLES = re.compile("environ|getenv|putenv")
LATE = re.compile(r"(?:^[ \t]+|:[ \t]*)(?:from|import)\b", re.MULTILINE)
TASKS = re.compile("create_task|ensure_future")
ENVIRONMENT = frozenset({"os.environ", "os.environb", "os.getenv", "os.getenvb", "os.putenv"})


def named(source: Source, words: re.Pattern[str]) -> set[tuple[int, str]]:
    """(line, dotted name) of what a file that has one of the words imports and uses."""
    nodes = list(source.nodes(words))
    return {*imported(nodes), *used(nodes)}


def imported(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of all that is imported; `from a import b` gives `a.b`."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def used(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of every attribute chain that starts at a plain name."""
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield node.lineno, f"{node.value.id}.{node.attr}"


def misplaced_libraries(source: Source) -> list[str]:
    found = []
    for line, name in sorted(named(source, LIBRARIES)):
        for module, places in OWNERS.items():
            if f"{name}.".startswith(f"{module}.") and not _within(source.path, places):
                found.append(f"{source.path}:{line} {module} belongs to {_list(places)}")
    return found


def _within(path: str, places: tuple[str, ...]) -> bool:
    return any(
        fnmatchcase(path, place) or (place[-1] == "/" and path.startswith(place))
        for place in places
    )


def _list(places: tuple[str, ...]) -> str:
    return ", ".join(places) or "no module: aiohttp is the HTTP client"


def environment_reads(source: Source) -> list[str]:
    if source.path in READS_THE_ENVIRONMENT:
        return []
    return [
        f"{source.path}:{line} {name}: only gateway/config.py reads the environment"
        for line, name in sorted(named(source, VARIABLES))
        if name in ENVIRONMENT
    ]


def unexplained_late_imports(source: Source) -> list[str]:
    """Imports inside functions without a comment in their lines or above their block."""
    late = sorted(_late_imports(source), key=lambda node: node.lineno)
    explained = set(source.comments() if late else ())
    found = []
    for node in late:
        lines = set(range(node.lineno - 1, (node.end_lineno or node.lineno) + 1))
        if lines & explained:
            explained |= lines
        else:
            found.append(f"{source.path}:{node.lineno} an import in a function needs its reason")
    return found


def _late_imports(source: Source) -> set[ast.Import | ast.ImportFrom]:
    return {
        node
        for function in source.nodes(LATE)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }


def unnamed_tasks(source: Source) -> list[str]:
    return [
        f"{source.path}:{node.lineno} a task needs a name"
        for node in source.nodes(TASKS)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"create_task", "ensure_future"}
        and "name" not in {keyword.arg for keyword in node.keywords}
    ]


def unspelled_commands(source: Source) -> list[str]:
    """Texts that name a command as people type it where it is a slash word, in another place than
    those whose texts are spelled for their channel on the way out."""
    if not source.path.startswith(("runtime/", "adapters/slack/")):
        return []
    if _within(source.path, SPELLS_COMMANDS):
        return []
    nodes = list(source.nodes(SLASH_WORD))
    prose = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    return [
        f"{source.path}:{node.lineno} a text for people names a command: see TextPart"
        for node in nodes
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in prose
        and SLASH_WORD.search(node.value)
    ]


Rule = Callable[[Source], list[str]]
RULES: tuple[Rule, ...] = (
    misplaced_libraries,
    environment_reads,
    unexplained_late_imports,
    unnamed_tasks,
    unspelled_commands,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_tree_keeps_the_rule(rule: Rule) -> None:
    found = [problem for source in python_files(*PRODUCT) for problem in rule(source)]
    assert not found, report(found)


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        (misplaced_libraries, "runtime/agent/loop.py", "import aiohttp"),
        (misplaced_libraries, "adapters/slack/adapter.py", "from aiohttp import web"),
        (misplaced_libraries, "adapters/slack/adapter.py", "import aiohttp\naiohttp.web.run_app()"),
        (misplaced_libraries, "adapters/slack/adapter.py", "def f():\n from aiohttp.web import X"),
        (misplaced_libraries, "adapters/telegram/client.py", "import slack_sdk.errors"),
        (misplaced_libraries, "gateway/cli/status.py", "from urllib.request import urlopen"),
        (misplaced_libraries, "runtime/tasks/rows.py", "import sqlite3"),
        (environment_reads, "gateway/service.py", "import os\nos.environ['HOME']"),
        (environment_reads, "adapters/slack/client.py", "from os import getenv"),
        (unexplained_late_imports, "runtime/agent/loop.py", "def f():\n    import json"),
        (unnamed_tasks, "runtime/agent/turn_worker.py", "group.create_task(run())"),
        (unspelled_commands, "runtime/agent/turn_budget.py", "said = f'Send `/stop {x}`.'"),
        (unspelled_commands, "adapters/slack/event_intake.py", "said = 'Send `/help`.'"),
    ],
)
def test_each_rule_catches_its_violation(rule: Rule, path: str, text: str) -> None:
    assert len(rule(Source(path, text + "\n"))) == 1


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("gateway/http/app.py", "from aiohttp import web\nimport aiohttp"),
        ("adapters/slack/client.py", "import aiohttp\nfrom slack_sdk.errors import SlackApiError"),
        ("gateway/config.py", "import os, tomllib\nos.environ"),
        (
            "runtime/bus/nats.py",
            "def f():\n    # Heavy, for this bus only.\n    import nats\n    import nats.js",
        ),
        ("runtime/agent/turn_worker.py", "group.create_task(run(), name='turn')"),
        ("runtime/agent/turn_budget.py", "def f():\n    'Said by `/usage`.'\n    return '/usage'"),
        ("runtime/commands/table.py", "said = 'Send `/help`.'"),
        ("adapters/slack/event_intake.py", "said = 'Send `/gatehouse help`.'"),
        ("runtime/memory/files.py", "from urllib.parse import quote\nimport os\nos.replace"),
    ],
)
def test_what_stands_in_its_place_passes(path: str, text: str) -> None:
    assert [problem for rule in RULES for problem in rule(Source(path, text + "\n"))] == []
