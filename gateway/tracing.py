"""Whether there are traces (OPS-8). Where no collector is named, nothing of them is imported."""

from collections.abc import Callable

from gateway.config import Config, gateway_version
from runtime.domain.errors import InvalidInput
from runtime.ports.tracing import NO_TRACER, Tracer

OTLP_VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def open_tracer(
    config: Config, count: Callable[[bool, int], None]
) -> tuple[Tracer, Callable[[], None]]:
    """What opens spans, and what sends the last ones; nothing where no collector is named.

    Raises `InvalidInput` where the extra is missing that traces need.
    """
    given = config.settings.observability
    if given.otlp_endpoint is None:
        return NO_TRACER, lambda: None
    try:
        # Heavy, and an extra: imported only where traces are asked for.
        from gateway.telemetry import Telemetry, TelemetrySettings
    except ImportError as error:
        hint = 'needs the extra: pip install "gatehouse[otel]"'
        raise InvalidInput("observability.otlp_endpoint", hint) from error
    # Set by a standard variable, it is the library's to read, with the others of its kind.
    own = config.origins.get(("observability", "otlp_endpoint"), "").endswith(OTLP_VARIABLES)
    settings = TelemetrySettings(
        None if own else given.otlp_endpoint, given.traces_content, gateway_version()
    )
    telemetry = Telemetry(settings, count)
    return telemetry, telemetry.close
