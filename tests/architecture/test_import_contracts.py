"""The layering that `pyproject.toml` declares holds, and each contract of it can break.

A contract with a misspelt module is silent, so each one is also run over a tiny tree of the same
shape with one violation in it.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.architecture.source import ROOT

LAYERS = "The gateway stands on the adapters, the adapters on the runtime"
RUNTIME = "Every package of the runtime has one place in its layers"
ADAPTERS = "Adapters know the domain, the ports and the renderer only"
CONCRETE = "Only gateway.wiring names a concrete adapter"
RENDERER = "The renderer stands alone"
STORE = "Outside the runtime only gateway.wiring knows the store and the bus"
SQLALCHEMY = "SQLAlchemy lives in the store and where rows are"
PURE = "Pure modules reach no loop, no driver, no log"
FEATURES = "Features are strangers to each other"
CYCLES = "No cycles between siblings"

# Every import of this tree is allowed.
TREE = {
    "gateway/wiring.py": "import adapters.slack.adapter\nimport runtime.store.database\n",
    "gateway/service.py": "import gateway.wiring\n",
    "gateway/http/app.py": "import adapters.rendering.walker\nimport runtime.intake.accept\n",
    "gateway/cli/chat.py": "import adapters.terminal.adapter\n",
    "adapters/slack/adapter.py": "import asyncio, slack_sdk\nimport adapters.slack.egress\n",
    "adapters/slack/ingress.py": "import runtime.domain.messages\n",
    "adapters/slack/egress.py": "import runtime.ports.chat\nimport adapters.rendering.walker\n",
    "adapters/telegram/adapter.py": "import adapters.rendering.walker\n",
    "adapters/terminal/adapter.py": "import runtime.ports.chat\n",
    "adapters/rendering/walker.py": "import runtime.domain.messages\n",
    "runtime/engine/engine.py": "import asyncio\nimport runtime.agent.loop\n",
    "runtime/intake/accept.py": "import runtime.commands.stop\nimport runtime.store.database\n",
    "runtime/agent/loop.py": "import asyncio\nimport runtime.agent.context\n",
    "runtime/agent/context.py": "import runtime.domain.messages\n",
    "runtime/commands/stop.py": "import runtime.sessions.lanes\n",
    "runtime/views/runs.py": "import runtime.store.database\n",
    "runtime/policy/decide.py": "import runtime.domain.messages\n",
    "runtime/features/tasks/rows.py": "import runtime.store.database\n",
    "runtime/features/schedules/cadence.py": "import datetime\n",
    "runtime/features/schedules/times_in_words.py": "import runtime.features.schedules.cadence\n",
    "runtime/sessions/lanes.py": "import runtime.store.database\n",
    "runtime/store/database.py": "import sqlalchemy\nimport runtime.domain.messages\n",
    "runtime/bus/memory.py": "import asyncio\nimport runtime.ports.chat\n",
    "runtime/ports/chat.py": "import runtime.domain.messages\n",
    "runtime/domain/messages.py": "import pydantic\n",
}

# Contract, module, the line that breaks it.
VIOLATIONS = [
    (LAYERS, "runtime/agent/loop.py", "import adapters.rendering.walker"),
    (LAYERS, "adapters/slack/adapter.py", "import gateway.service"),
    (RUNTIME, "runtime/store/database.py", "import runtime.sessions.lanes"),
    (FEATURES, "runtime/features/tasks/rows.py", "import runtime.features.schedules.cadence"),
    (RUNTIME, "runtime/views/runs.py", "import runtime.commands.stop"),
    (RUNTIME, "runtime/sessions/lanes.py", "def late():\n    import runtime.engine.engine"),
    (RUNTIME, "runtime/unplaced/thing.py", ""),
    (ADAPTERS, "adapters/telegram/adapter.py", "import runtime.intake.accept"),
    (CONCRETE, "gateway/http/app.py", "import adapters.slack.adapter"),
    (CONCRETE, "gateway/cli/chat.py", "import adapters.slack.adapter"),
    (CONCRETE, "adapters/telegram/adapter.py", "import adapters.slack.egress"),
    (RENDERER, "adapters/rendering/walker.py", "import adapters.telegram.adapter"),
    (STORE, "gateway/http/app.py", "import runtime.store.database"),
    (STORE, "gateway/cli/status.py", "from runtime.store import database"),
    (STORE, "adapters/slack/adapter.py", "import runtime.bus.memory"),
    (SQLALCHEMY, "runtime/agent/loop.py", "from sqlalchemy import select"),
    (SQLALCHEMY, "gateway/wiring.py", "import alembic.command"),
    (PURE, "runtime/domain/messages.py", "import logging"),
    (PURE, "runtime/ports/chat.py", "import asyncio"),
    (PURE, "runtime/policy/decide.py", "import structlog"),
    (PURE, "runtime/agent/context.py", "import runtime.store.database"),
    (PURE, "runtime/features/schedules/cadence.py", "import asyncio"),
    (PURE, "runtime/features/schedules/times_in_words.py", "import structlog"),
    (PURE, "adapters/slack/ingress.py", "import slack_sdk"),
    (PURE, "adapters/slack/egress.py", "import aiohttp"),
    (PURE, "adapters/rendering/walker.py", "import asyncio"),
    (CYCLES, "adapters/slack/egress.py", "import adapters.slack.adapter"),
    (CYCLES, "gateway/wiring.py", "import gateway.service"),
]


def lint_imports(folder: Path) -> tuple[int, str]:
    """Exit code and output of the linter over the tree in `folder`, its line breaks removed."""
    run = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=folder,
        capture_output=True,
        check=False,
        text=True,
    )
    return run.returncode, " ".join((run.stdout + run.stderr).split())


def write(folder: Path, tree: dict[str, str]) -> None:
    for name, text in tree.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        for package in path.relative_to(folder).parents:
            if package != Path():
                (folder / package / "__init__.py").touch()
        path.write_text(text, encoding="utf-8")


@pytest.fixture
def tiny_tree(tmp_path: Path) -> Path:
    write(tmp_path, TREE)
    config = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(config, encoding="utf-8")
    return tmp_path


def test_the_tree_keeps_every_contract() -> None:
    code, output = lint_imports(ROOT)
    assert code == 0, output


def test_a_tree_without_a_violation_passes(tiny_tree: Path) -> None:
    code, output = lint_imports(tiny_tree)
    assert code == 0, output
    assert output.count("KEPT") == len({contract for contract, _, _ in VIOLATIONS})


@pytest.mark.parametrize(
    ("contract", "module", "line"), VIOLATIONS, ids=[f"{m}: {x}" for _, m, x in VIOLATIONS]
)
def test_each_contract_catches_its_violation(
    tiny_tree: Path, contract: str, module: str, line: str
) -> None:
    write(tiny_tree, {module: TREE.get(module, "") + line + "\n"})
    code, output = lint_imports(tiny_tree)
    assert code == 1, output
    assert f"{contract} BROKEN" in output


def test_every_contract_has_a_violation_here() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    declared = {contract["name"] for contract in config["tool"]["importlinter"]["contracts"]}
    assert declared == {contract for contract, _, _ in VIOLATIONS}
