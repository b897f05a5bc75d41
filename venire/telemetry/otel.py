"""A run as OpenTelemetry traces and metrics, sent to a collector by OTLP over HTTP.

Attributes follow the semantic conventions for generative AI where these define a name: see docs/documents.md#events.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping
from importlib.metadata import version
from textwrap import shorten
from typing import Any
from urllib.parse import urlsplit

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import Histogram, Meter, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from venire.orchestrator.recording.events import Event

TRIALS_A_SECOND = 10
"""Maximum of traced settled trials a second, and of failed trials; OTEL_TRACES_SAMPLER, if set, replaces it."""

_MAX_OPEN_TRIALS = 100_000
_MAX_CLOSING_SECONDS = 10.0
_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_TOKENS = tuple(float(4**power) for power in range(14))
_VENDORS = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex_ai": "gcp.vertex_ai",
    "xai": "x_ai",
}

_CALLED = {
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "cached_tokens": "gen_ai.usage.cache_read.input_tokens",
    "status": "http.response.status_code",
}

_Attributes = dict[str, str | int | float]


class OpenTelemetryExporter:
    """An observer that makes spans of the run, of trials and of their calls, and counts calls, tokens, times and money.

    Endpoint, headers, sampling and resource come from the standard OTEL_* variables. `spans` and `metrics` replace the
    exporters, for tests. The first failure to send is reported through `warn`, from another thread.
    """

    def __init__(
        self,
        warn: Callable[[str], None],
        *,
        spans: SpanProcessor | None = None,
        metrics: MetricReader | None = None,
    ) -> None:
        self._log = _LibraryLog(warn)
        resource = Resource.create(
            {"service.version": version("venire")}
            | ({} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "venire"})
        )
        self._tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
        if os.environ.get("OTEL_TRACES_EXPORTER") != "none":
            self._tracers.add_span_processor(spans or BatchSpanProcessor(OTLPSpanExporter()))
        wanted = os.environ.get("OTEL_METRICS_EXPORTER") != "none"
        readers = [metrics or PeriodicExportingMetricReader(OTLPMetricExporter())] if wanted else []
        self._meters = MeterProvider(readers, resource=resource, shutdown_on_exit=False)
        self._routes: dict[Any, _Attributes] = {}
        tracer = self._tracers.get_tracer("venire")
        self._observers = (_Traces(tracer, self._routes), _Metrics(self._meters, self._routes))

    def __call__(self, event: Event) -> None:
        """Trace and count an event."""
        if event.name == "run.started":
            lanes: Any = event.fields["lanes"]
            self._routes.update({lane["route"]: _attributes(lane) for lane in lanes})
        for observer in self._observers:
            observer(event)

    def close(self) -> None:
        """Send the remaining data; a collector that does not answer is given up after 10 seconds."""
        closing = [threading.Thread(target=one.shutdown, daemon=True) for one in (self._tracers, self._meters)]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join(_MAX_CLOSING_SECONDS)
        self._log.close()


class _LibraryLog(logging.Handler):
    """Handles the library's log: the first complaint becomes a sentence, the others are dropped."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._warn = warn
        self._warned = False
        self._logger = logging.getLogger("opentelemetry")
        self._before = self._logger.propagate
        self._logger.addHandler(self)
        self._logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        if not self._warned:
            self._warned = True
            why = shorten(record.getMessage(), 160, placeholder=" ...")
            self._warn(f"warning: OpenTelemetry: {why}; the run goes on")

    def close(self) -> None:
        self._logger.removeHandler(self)
        self._logger.propagate = self._before
        super().close()


class _Traces:
    """Makes the spans of a trial from its kept events after it has ended, when it is known whether to trace it."""

    def __init__(self, tracer: trace.Tracer, routes: Mapping[Any, _Attributes]) -> None:
        self._tracer = tracer
        self._routes = routes
        self._all = bool(os.environ.get("OTEL_TRACES_SAMPLER"))
        self._calls: dict[Any, list[Event]] = {}
        self._second: dict[str, tuple[int, int]] = {}
        self._run: trace.Span | None = None

    def __call__(self, event: Event) -> None:
        match event.name:
            case "call.ended":
                self._calls.setdefault(event.fields["trial"], []).append(event)
                if len(self._calls) > _MAX_OPEN_TRIALS:  # of trials that never ended
                    del self._calls[next(iter(self._calls))]
            case "trial.settled" | "trial.failed":
                calls = self._calls.pop(event.fields["trial"], [])
                if self._wanted(event):
                    self._trial(event, calls)
            case "run.started":
                attributes = {"venire.campaign": str(event.fields["campaign"])}
                self._run = self._tracer.start_span("venire.run", start_time=_nano(event), attributes=attributes)
            case "run.ended" if self._run is not None:
                self._run.set_attributes(_own(event, "ending", "calls", "retries", "settled", "failed", "cost_nano"))
                self._run.end(_nano(event))
            case _:
                return

    def _wanted(self, event: Event) -> bool:
        now = int(event.at.timestamp())
        second, count = self._second.get(event.name, (now, 0))
        self._second[event.name] = (now, count + 1 if second == now else 1)
        return self._all or self._second[event.name][1] <= TRIALS_A_SECOND

    def _trial(self, event: Event, calls: list[Event]) -> None:
        """A separate trace, linked to the run: one trace with a million trials would be useless."""
        seconds: Any = event.fields["seconds"]
        span = self._tracer.start_span(
            "venire.trial",
            start_time=_nano(event, seconds),
            attributes=_own(event, "trial", "key", "judge", "lane", "status", "step", "fault", "cost_nano"),
            links=[trace.Link(self._run.get_span_context())] if self._run is not None else [],
        )
        inside = trace.set_span_in_context(span)
        for call in calls:
            self._call(call, inside)
        if event.name == "trial.failed":
            span.set_status(trace.StatusCode.ERROR, str(event.fields["fault"]))
        span.end(_nano(event))

    def _call(self, event: Event, inside: Any) -> None:
        fields: Mapping[str, Any] = event.fields
        attributes = self._routes.get(fields["route"], {}) | _own(
            event, "step", "attempt", "route", "wait_s", "cost_nano"
        )
        attributes |= {called: fields[name] for name, called in _CALLED.items() if fields[name] is not None}
        name = f"chat {attributes.get('gen_ai.request.model', '')}".strip()
        start = _nano(event, fields["latency_s"])
        span = self._tracer.start_span(name, inside, trace.SpanKind.CLIENT, attributes, start_time=start)
        if fields["fault"] != "none":
            span.set_attribute("error.type", fields["fault"])
            span.set_status(trace.StatusCode.ERROR)
        span.end(_nano(event))


class _Metrics:
    """Keeps counts that the library reads when it sends: adding each call in the library costs ten times as much."""

    def __init__(self, provider: MeterProvider, routes: Mapping[Any, _Attributes]) -> None:
        meter: Meter = provider.get_meter("venire")
        self._routes = routes
        self._calls = _Count(meter.create_observable_counter, "venire.calls", "{call}", "Calls, by what came of them")
        self._in_flight = _Count(
            meter.create_observable_up_down_counter, "venire.calls.in_flight", "{call}", "Calls sent and not ended"
        )
        self._cached = _Count(
            meter.create_observable_counter, "venire.tokens.cached", "{token}", "Input tokens read from a cache"
        )
        self._cost = _Count(
            meter.create_observable_counter, "venire.cost", "{USD}", "What calls of a known cost did cost"
        )
        self._trials = _Count(
            meter.create_observable_counter, "venire.trials", "{trial}", "Trials that ended in this run"
        )
        self._latency = _histogram(meter, "gen_ai.client.operation.duration", "s", "From sending to answer", _SECONDS)
        self._wait = _histogram(meter, "venire.call.wait", "s", "Waiting at the lane's gate", _SECONDS)
        self._usage = _histogram(meter, "gen_ai.client.token.usage", "{token}", "Tokens of a call", _TOKENS)

    def __call__(self, event: Event) -> None:
        fields: Mapping[str, Any] = event.fields
        match event.name:
            case "call.sent":
                self._in_flight.add(1, lane=fields["lane"])
            case "call.ended":
                self._ended(fields)
            case "trial.settled" | "trial.failed":
                self._trials.add(1, state=event.name.removeprefix("trial."))
            case _:
                return

    def _ended(self, fields: Mapping[str, Any]) -> None:
        lane, fault = fields["lane"], fields["fault"]
        known = self._routes.get(fields["route"], {})
        self._in_flight.add(-1, lane=lane)
        self._calls.add(1, lane=lane, **{"class": fault})
        self._latency.record(fields["latency_s"], known if fault == "none" else known | {"error.type": fault})
        self._wait.record(fields["wait_s"], {"venire.lane": lane})
        for kind in ("input", "output"):
            if fields[f"{kind}_tokens"] is not None:
                self._usage.record(fields[f"{kind}_tokens"], known | {"gen_ai.token.type": kind})
        if fields["cached_tokens"]:
            self._cached.add(fields["cached_tokens"], lane=lane)
        if fields["cost_nano"]:
            self._cost.add(fields["cost_nano"] / 1e9, lane=lane)


class _Count:
    """A sum by attributes, under our names."""

    def __init__(self, create: Callable[..., Any], name: str, unit: str, fields: str) -> None:
        self._sums: dict[tuple[tuple[str, str], ...], float] = {}
        create(name, [self._observe], unit, fields)

    def add(self, value: float, **attributes: str) -> None:
        key = tuple(attributes.items())
        self._sums[key] = self._sums.get(key, 0) + value

    def _observe(self, _: object) -> list[Observation]:
        """Called by the library's thread: `list` copies the dictionary atomically."""
        return [
            Observation(value, {f"venire.{name}": one for name, one in key}) for key, value in list(self._sums.items())
        ]


def _histogram(meter: Meter, name: str, unit: str, fields: str, bounds: tuple[float, ...]) -> Histogram:
    return meter.create_histogram(name, unit, fields, explicit_bucket_boundaries_advisory=bounds)


def _attributes(lane: Mapping[str, Any]) -> _Attributes:
    """A lane as attributes of the semantic conventions for generative AI."""
    provider, model = str(lane["provider"]), str(lane["model"])
    if provider == "litellm" and "/" in model:
        provider, _, model = model.partition("/")
    found: _Attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": _VENDORS.get(provider, provider),
        "gen_ai.request.model": model,
    }
    if lane["endpoint"]:
        parts = urlsplit(str(lane["endpoint"]))
        found["server.address"] = parts.hostname or ""
        found["server.port"] = parts.port or (443 if parts.scheme == "https" else 80)
    return found


def _own(event: Event, *names: str) -> _Attributes:
    """Fields as our attributes; unknown values are left out."""
    found: Mapping[str, Any] = event.fields
    return {f"venire.{name}": found[name] for name in names if found.get(name) is not None}


def _nano(event: Event, before: float = 0.0) -> int:
    return int((event.at.timestamp() - before) * 1e9)
