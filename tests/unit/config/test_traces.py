"""Whether there are traces is what the configuration says, and what is missing is named (OPS-8)."""

import sys

import pytest

from gateway.telemetry import Telemetry
from gateway.tracing import open_tracer
from runtime.domain.errors import InvalidInput
from runtime.ports.tracing import NO_TRACER
from tests.unit.config.support import Read

COLLECTOR = "http://127.0.0.1:9"
"""Nobody listens there, and nobody is asked: no span is ever opened."""


def no_count(_sent: bool, _spans: int) -> None:
    """Nothing is counted here."""


@pytest.mark.requirement("OPS-8")
def test_without_a_collector_there_are_none(read: Read) -> None:
    tracer, end = open_tracer(read(), no_count)
    assert tracer is NO_TRACER
    end()


@pytest.mark.requirement("OPS-8")
@pytest.mark.parametrize(
    "by", ["file", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"]
)
def test_a_collector_is_named_by_the_file_or_a_standard_variable(read: Read, by: str) -> None:
    if by == "file":
        config = read(f'[observability]\notlp_endpoint = "{COLLECTOR}"\n')
    else:
        config = read('[observability]\notlp_endpoint = "http://elsewhere"\n', {by: COLLECTOR})
    assert config.settings.observability.otlp_endpoint == COLLECTOR
    assert config.settings.observability.traces_content is False
    tracer, end = open_tracer(config, no_count)
    assert isinstance(tracer, Telemetry)
    end()


@pytest.mark.requirement("OPS-8")
def test_the_missing_extra_is_named(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gateway.telemetry", None)
    config = read(f'[observability]\notlp_endpoint = "{COLLECTOR}"\n')
    with pytest.raises(InvalidInput, match=r"gatehouse\[otel\]"):
        open_tracer(config, no_count)
