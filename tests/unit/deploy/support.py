"""The deployment's files as data, and the metrics that there are."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import aiohttp
import yaml

from gateway.http.app import build_app
from gateway.http.server import serve
from runtime.domain.runs import RunState, Usage
from tests.fakes.model import ScriptedModel
from tests.unit.http.metrics_support import TOKEN, Scrape, counted

ROOT: Final = Path(__file__).parents[3]
DEPLOY: Final = ROOT / "docs" / "deploy"
METRIC: Final = re.compile(r"\b(?:gatehouse|process)_[a-z_]+\b")
SELECTOR: Final = re.compile(r"\b((?:gatehouse|process)_[a-z_]+)\{([^}]*)\}")
LABEL: Final = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
SCRAPED: Final = frozenset({"job", "instance"})
"""Labels that Prometheus gives to everything that it reads."""


def read_yaml(name: str) -> list[dict[str, object]]:
    """The documents of a file."""
    return list(yaml.safe_load_all((DEPLOY / name).read_text(encoding="utf-8")))


def server_major() -> int:
    """The major of the PostgreSQL server that compose.yaml runs."""
    (compose,) = read_yaml("compose.yaml")
    name, _, major = compose["services"]["postgres"]["image"].partition(":")
    assert name == "postgres"
    return int(major)


def dashboard() -> dict[str, object]:
    """The dashboard."""
    return json.loads((DEPLOY / "grafana-dashboard.json").read_text(encoding="utf-8"))


def queries(node: object) -> Iterator[str]:
    """Every query of a document, wherever it stands."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("expr", "definition") and isinstance(value, str):
                yield value
            else:
                yield from queries(value)
    elif isinstance(node, list):
        for value in node:
            yield from queries(value)


@asynccontextmanager
async def every_metric(path: Path) -> AsyncIterator[Scrape]:
    """A scrape in which each metric has a sample."""
    async with counted(path, ScriptedModel([])) as world:
        metrics = world.services.metrics
        metrics.accepted("slack", "queued")
        metrics.started(1.0)
        metrics.stepped(1.0)
        metrics.ended(RunState.FAILED)
        metrics.traced(True, 1)
        metrics.asked("m", "answered", 1.0)
        metrics.used("m", Usage(cost_usd=0.1))
        metrics.used("m", Usage())
        metrics.decided("exec", "ask")
        metrics.called("exec", "ok", 1.0)
        metrics.delivered("slack", "sent")
        metrics.replied("slack", 1.0)
        metrics.wrote("accept", 0.1, kept=True)
        metrics.committed()
        app, settings = build_app(world.services), world.services.settings
        token = {"Authorization": f"Bearer {TOKEN}"}
        async with serve(app, settings) as port, aiohttp.ClientSession(headers=token) as client:
            for _ in range(2):  # the first request is what the second one counts
                async with client.get(f"http://127.0.0.1:{port}/metrics") as response:
                    text = await response.text()
    yield Scrape(text)


def labels_of(found: Scrape) -> dict[str, set[str]]:
    """The labels of each sample's name."""
    labels: dict[str, set[str]] = {}
    for name, pairs in found.values:
        labels.setdefault(name, set()).update(label for label, _ in pairs)
    return labels


def unknown_names(query: str, labels: dict[str, set[str]]) -> list[str]:
    """What a query asks for that is not there: metrics, and labels of their selectors."""
    wrong = [name for name in METRIC.findall(query) if name not in labels]
    for name, selector in SELECTOR.findall(query):
        known = labels.get(name, set()) | SCRAPED
        wrong += [f"{name}.{label}" for label in LABEL.findall(selector) if label not in known]
    return wrong
