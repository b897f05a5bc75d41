"""Counters of a run for Prometheus, served on this machine alone while the run lasts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from venire.arena.errors import InputError
from venire.orchestrator.recording.events import Event

_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 60.0, 120.0, 300.0)


class PrometheusExporter:
    """An observer that counts, and answers `/metrics` on 127.0.0.1 at a port (0: a free port, stored in `port`).

    Raises InputError for a port that cannot be opened.
    """

    def __init__(self, port: int) -> None:
        registry = CollectorRegistry()
        self._calls = Counter("venire_calls", "Calls sent, by what came of them.", ("lane", "class"), registry=registry)
        self._latency = _seconds("venire_call_seconds", "From a call's sending to its answer.", registry)
        self._waits = _seconds("venire_wait_seconds", "What a call waited at its lane's gate.", registry)
        self._tokens = Counter("venire_tokens", "Tokens; cached are among input.", ("lane", "kind"), registry=registry)
        self._cost = Counter(
            "venire_cost_dollars", "What calls of a known cost did cost.", ("lane",), registry=registry
        )
        self._in_flight = Gauge("venire_in_flight", "Calls sent and not yet ended.", ("lane",), registry=registry)
        self._trials = Gauge("venire_trials", "Trials of the campaign.", ("state",), registry=registry)
        self._lanes: dict[Any, _LaneMetrics] = {}
        try:
            self._server, self._thread = start_http_server(port, addr="127.0.0.1", registry=registry)
        except OSError as error:
            raise InputError(f"--metrics-port {port} cannot be had: {error.strerror}; name another, or 0") from error
        self.port: int = self._server.server_port
        self.url = f"http://{self._server.server_address[0]!s}:{self.port}/metrics"

    def __call__(self, event: Event) -> None:
        """Count an event."""
        fields: Mapping[str, Any] = event.fields
        match event.name:
            case "call.sent":
                self._lane(fields["lane"]).in_flight.inc()
            case "call.ended":
                self._ended(fields)
            case "trial.settled" | "trial.failed":
                self._trials.labels(event.name.removeprefix("trial.")).inc()
                self._trials.labels("missing").dec()
            case "run.started":
                for state in ("settled", "failed", "missing"):
                    self._trials.labels(state).set(fields[state])
            case _:
                return

    def _ended(self, fields: Mapping[str, Any]) -> None:
        lane = self._lane(fields["lane"])
        lane.in_flight.dec()
        self._calls.labels(fields["lane"], fields["fault"]).inc()
        lane.latency.observe(fields["latency_s"])
        lane.waits.observe(fields["wait_s"])
        for kind, counter in lane.tokens.items():
            if count := fields[kind]:
                counter.inc(count)
        if fields["cost_nano"]:
            lane.cost.inc(fields["cost_nano"] / 1e9)

    def _lane(self, name: Any) -> _LaneMetrics:
        """The counters of one lane, cached because a lookup of labels costs more than counting."""
        if name not in self._lanes:
            self._lanes[name] = _LaneMetrics(self, name)
        return self._lanes[name]

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _LaneMetrics:
    def __init__(self, of: PrometheusExporter, name: str) -> None:
        self.in_flight = of._in_flight.labels(name)
        self.latency = of._latency.labels(name)
        self.waits = of._waits.labels(name)
        self.cost = of._cost.labels(name)
        self.tokens = {f"{kind}_tokens": of._tokens.labels(name, kind) for kind in ("input", "output", "cached")}


def _seconds(name: str, fields: str, registry: CollectorRegistry) -> Histogram:
    return Histogram(name, fields, ("lane",), buckets=_SECONDS, registry=registry)
