"""The dashboard, the alerts and the table of metrics name what there is, and all of it (OPS-8)."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.deploy.support import (
    DEPLOY,
    METRIC,
    dashboard,
    every_metric,
    labels_of,
    queries,
    read_yaml,
    unknown_names,
)
from tests.unit.http.metrics_support import Scrape

GROUPING = re.compile(r"\bby \(([^)]*)\)")


@pytest.fixture
async def metrics(tmp_path: Path) -> AsyncIterator[Scrape]:
    async with every_metric(tmp_path) as found:
        yield found


@pytest.mark.requirement("OPS-8")
def test_each_query_is_of_metrics_and_labels_that_exist(metrics: Scrape) -> None:
    labels = labels_of(metrics)
    every = {*set().union(*labels.values()), "job", "instance"}
    asked = [*queries(dashboard()), *queries(read_yaml("alerts.yaml"))]
    assert len(asked) > 50
    for query in asked:
        assert METRIC.search(query), query
        assert unknown_names(query, labels) == [], query
        for grouped in GROUPING.findall(query):
            assert {one.strip() for one in grouped.split(",")} <= every, query


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ("sum(gatehouse_nothing_total)", ["gatehouse_nothing_total"]),
        ('gatehouse_runs{colour="red"}', ["gatehouse_runs.colour"]),
        ('gatehouse_runs{state="queued",job=~"$job"} > 0', []),
    ],
)
def test_a_name_that_is_not_there_is_found(metrics: Scrape, query: str, wrong: list[str]) -> None:
    assert unknown_names(query, labels_of(metrics)) == wrong


@pytest.mark.requirement("OPS-8")
def test_every_metric_is_on_the_dashboard_and_in_the_table(metrics: Scrape) -> None:
    kinds = {name for name in metrics.types if name.startswith("gatehouse_")}
    assert len(kinds) > 25
    shown = " ".join(queries(dashboard()))
    table = (DEPLOY / "README.md").read_text(encoding="utf-8")
    for name in kinds:
        suffix = "_total" if metrics.types[name] == "counter" else ""
        assert f"`{name}{suffix}`" in table, name
        assert re.search(rf"\b{name}(_total|_bucket)?\b", shown), name
    told = set(re.findall(r"`(gatehouse_[a-z_]+)`", table))
    assert told == {f"{name}_total" if metrics.types[name] == "counter" else name for name in kinds}


def test_the_panels_have_places_of_their_own() -> None:
    panels = dashboard()["panels"]
    assert len({one["id"] for one in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for one in panels:
        at = one["gridPos"]
        assert at["x"] + at["w"] <= 24, one["title"]
        cells = {
            (at["x"] + column, at["y"] + line)
            for column in range(at["w"])
            for line in range(at["h"])
        }
        assert not cells & taken, one["title"]
        taken |= cells


def test_each_alert_says_what_happened() -> None:
    (document,) = read_yaml("alerts.yaml")
    rules = [rule for group in document["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules) > 10
    for rule in rules:
        assert rule["labels"]["severity"] in ("warning", "critical")
        summary = rule["annotations"]["summary"]
        assert summary.endswith((".", "}}."))
        grouped = GROUPING.findall(rule["expr"])
        for label in re.findall(r"\$labels\.(\w+)", summary):
            assert not grouped or any(label in one for one in grouped), rule["alert"]
