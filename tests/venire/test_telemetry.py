"""OpenTelemetry and Prometheus: what a collector receives and what a scrape reads of the same events.

A collector that speaks OTLP over HTTP is played by the standard library's server, which decodes what comes.
"""

from __future__ import annotations

import gzip
import re
import socket
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from venire import telemetry
from venire.arena.clock import VirtualClock
from venire.orchestrator.recording.events import Events, Observer

Venire = Callable[..., Any]
Write = Callable[..., Path]

LANE = "openai https://api.example.com/v1 KEY gpt-x"
START = {"campaign": "c", "planned": 10, "settled": 3, "failed": 1, "missing": 6}
ROUTE = "openai https://api.example.com/v1 OTHER_KEY gpt-x"
LANES = [
    {"lane": LANE, "route": ROUTE, "provider": "openai", "model": "gpt-x", "endpoint": "https://api.example.com/v1"}
]
CALL = {"lane": LANE, "route": ROUTE, "judge": "j", "trial": 7, "key": "ab" * 16, "step": 1}
COUNTED = {"input_tokens": 1_000, "output_tokens": 20, "cached_tokens": 896, "cost_nano": 5_000_000}
NOT_COUNTED = dict.fromkeys(COUNTED)
SETTLED = {"trial": 7, "key": "ab" * 16, "judge": "j", "lane": LANE, "cost_nano": 5_000_000, "seconds": 4.0}
ENDED = {"campaign": "c", "ending": "complete", "calls": 2, "answered": 1, "retries": 1, "seconds": 9.0}


def tell(observer: Observer, clock: VirtualClock, trials: int = 1) -> None:
    """A run in which each trial takes two calls: one was refused for the rate, the other answered."""
    events = Events(clock, [observer])
    events.emit("run.started", **START, spent_nano=0, budget_nano=None, lanes=LANES)
    for number in range(trials):
        call = CALL | {"trial": number}
        events.emit("call.sent", **call, attempt=1, wait_s=0.0, reserved_nano=9)
        clock.advance(1)
        events.emit(
            "call.ended",
            **(call | NOT_COUNTED | {"attempt": 1, "fault": "rate_limited", "status": 429}),
            wait_s=0.0,
            latency_s=1.0,
        )
        events.emit("call.sent", **call, attempt=2, wait_s=0.5, reserved_nano=9)
        clock.advance(2)
        events.emit(
            "call.ended",
            **(call | COUNTED | {"attempt": 2, "fault": "none", "status": 200}),
            wait_s=0.5,
            latency_s=2.0,
        )
        events.emit("trial.settled", **(SETTLED | {"trial": number}), status="ok")
    events.emit("call.sent", **(CALL | {"trial": trials}), attempt=1, wait_s=0.0, reserved_nano=9)
    events.emit("run.ended", **ENDED, settled=4, failed=1, missing=5, cost_nano=5_000_000)


class Collector(ThreadingHTTPServer):
    """Keeps the bodies that were posted, by path."""

    daemon_threads = True

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.bodies: dict[str, list[bytes]] = defaultdict(list)
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def spans(self) -> list[Any]:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        found = [ExportTraceServiceRequest.FromString(body) for body in self.bodies["/v1/traces"]]
        return [span for one in found for of in one.resource_spans for scope in of.scope_spans for span in scope.spans]

    def metrics(self) -> dict[str, Any]:
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

        found = [ExportMetricsServiceRequest.FromString(body) for body in self.bodies["/v1/metrics"]]
        scopes = [scope for one in found for of in one.resource_metrics for scope in of.scope_metrics]
        return {metric.name: metric for scope in scopes for metric in scope.metrics}


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.server.bodies[self.path].append(body)
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *words: object) -> None:
        return


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra otel is not installed")
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.url)
        yield server
        server.shutdown()
        thread.join()


def plain(attributes: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


def test_a_collector_receives_run_trials_and_calls_in_the_words_of_the_conventions(collector: Collector) -> None:
    from venire.telemetry.otel import OpenTelemetryExporter

    told: list[str] = []
    otel = OpenTelemetryExporter(told.append)
    tell(otel, VirtualClock())
    otel.close()
    assert told == []
    by_name = defaultdict(list)
    for span in collector.spans():
        by_name[span.name].append(span)
    ((run,), (trial,), (refused, answered)) = (by_name[name] for name in ("venire.run", "venire.trial", "chat gpt-x"))
    assert trial.links[0].trace_id == run.trace_id != trial.trace_id
    assert refused.parent_span_id == answered.parent_span_id == trial.span_id
    assert answered.kind == 3, "a client's span"
    began = datetime(2026, 1, 1, tzinfo=UTC)
    for span, first, last in ((run, 0, 3), (refused, 0, 1), (answered, 1, 3)):
        assert span.start_time_unix_nano == (began + timedelta(seconds=first)).timestamp() * 1e9
        assert span.end_time_unix_nano == (began + timedelta(seconds=last)).timestamp() * 1e9
    assert plain(answered.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-x",
        "gen_ai.usage.input_tokens": 1_000,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.cache_read.input_tokens": 896,
        "http.response.status_code": 200,
        "server.address": "api.example.com",
        "server.port": 443,
        "venire.step": 1,
        "venire.attempt": 2,
        "venire.route": ROUTE,
        "venire.wait_s": 0.5,
        "venire.cost_nano": 5_000_000,
    }
    assert plain(refused.attributes)["error.type"] == "rate_limited"
    assert refused.status.code == 2
    assert plain(trial.attributes)["venire.status"] == "ok"


def test_a_collector_receives_counts_times_tokens_and_money(collector: Collector) -> None:
    from venire.telemetry.otel import OpenTelemetryExporter

    otel = OpenTelemetryExporter(pytest.fail)
    tell(otel, VirtualClock())
    otel.close()
    metrics = collector.metrics()
    calls = {plain(one.attributes)["venire.class"]: one.as_int for one in metrics["venire.calls"].sum.data_points}
    assert calls == {"none": 1, "rate_limited": 1}
    assert [one.as_int for one in metrics["venire.calls.in_flight"].sum.data_points] == [1]
    latency = {
        plain(one.attributes).get("error.type"): (one.count, one.sum)
        for one in metrics["gen_ai.client.operation.duration"].histogram.data_points
    }
    assert latency == {None: (1, 2.0), "rate_limited": (1, 1.0)}
    usage = {
        plain(one.attributes)["gen_ai.token.type"]: one.sum
        for one in metrics["gen_ai.client.token.usage"].histogram.data_points
    }
    assert usage == {"input": 1_000, "output": 20}
    assert metrics["venire.cost"].sum.data_points[0].as_double == 0.005
    assert metrics["venire.tokens.cached"].sum.data_points[0].as_int == 896
    assert metrics["venire.call.wait"].histogram.data_points[0].sum == 0.5


def test_of_many_trials_at_once_a_few_are_traced_unless_a_sampler_is_named(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    from venire.telemetry.otel import TRIALS_A_SECOND, OpenTelemetryExporter

    class Still(VirtualClock):
        def advance(self, seconds: float) -> None:
            return

    for sampler, traced in ((None, TRIALS_A_SECOND), ("always_on", 50)):
        collector.bodies.clear()
        if sampler is not None:
            monkeypatch.setenv("OTEL_TRACES_SAMPLER", sampler)
        otel = OpenTelemetryExporter(pytest.fail)
        tell(otel, Still(), trials=50)
        otel.close()
        assert sum(span.name == "venire.trial" for span in collector.spans()) == traced


def test_the_environment_alone_turns_it_on_and_the_run_is_named(
    collector: Collector, venire: Venire, write_campaign: Write
) -> None:
    assert venire("run", write_campaign(), "--yes", "--no-otel").code == 0
    assert not collector.bodies
    assert venire("run", write_campaign(), "--yes").code == 0
    (run,) = collector.spans()
    assert plain(run.attributes)["venire.campaign"] == "small"
    assert plain(run.attributes)["venire.ending"] == "complete"


def test_a_collector_that_refuses_is_told_of_once_and_the_run_goes_on(
    collector: Collector, venire: Venire, write_campaign: Write
) -> None:
    collector.status = 400
    done = venire("run", write_campaign(), "--yes", "--otel")
    assert done.code == 0
    assert done.err.count("warning: OpenTelemetry: ") == 1


@pytest.mark.parametrize(
    ("option", "extra", "module"),
    [("--otel", "otel", "opentelemetry.sdk"), ("--metrics-port=0", "prometheus", "prometheus_client")],
)
def test_without_the_extra_a_sentence_says_how_to_install_it(
    venire: Venire, write_campaign: Write, monkeypatch: pytest.MonkeyPatch, option: str, extra: str, module: str
) -> None:
    monkeypatch.setattr(telemetry, "_installed", lambda name: name != module)
    done = venire("run", write_campaign(), "--yes", option)
    assert done.code == 2
    assert f"pip install 'venire[{extra}]'" in done.err
    assert not write_campaign().with_suffix(".duckdb").exists()


def test_where_only_the_environment_asks_a_missing_extra_is_told_and_the_run_goes_on(
    venire: Venire, write_campaign: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry, "_installed", lambda name: False)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    done = venire("run", write_campaign(), "--yes")
    assert done.code == 0
    assert "OTEL_EXPORTER_OTLP_ENDPOINT is set, but nothing is sent there" in done.err
    assert "venire[otel]" in done.err


def scrape(url: str) -> dict[str, float]:
    with urlopen(url, timeout=10) as answer:
        text = answer.read().decode()
    return {name: float(value) for name, value in re.findall(r"^(venire.+) (\S+)$", text, re.MULTILINE)}


def test_a_scrape_reads_what_was_told_and_finds_nobody_after_the_run() -> None:
    pytest.importorskip("prometheus_client", reason="the extra prometheus is not installed")
    from venire.telemetry.prometheus import PrometheusExporter

    scraped = PrometheusExporter(0)
    tell(scraped, VirtualClock())
    assert scraped.url == f"http://127.0.0.1:{scraped.port}/metrics", "on this machine alone"
    found = scrape(scraped.url)
    for name, value in {
        f'venire_calls_total{{class="none",lane="{LANE}"}}': 1,
        f'venire_calls_total{{class="rate_limited",lane="{LANE}"}}': 1,
        f'venire_call_seconds_sum{{lane="{LANE}"}}': 3,
        f'venire_call_seconds_bucket{{lane="{LANE}",le="1.0"}}': 1,
        f'venire_wait_seconds_sum{{lane="{LANE}"}}': 0.5,
        f'venire_tokens_total{{kind="input",lane="{LANE}"}}': 1_000,
        f'venire_tokens_total{{kind="output",lane="{LANE}"}}': 20,
        f'venire_tokens_total{{kind="cached",lane="{LANE}"}}': 896,
        f'venire_cost_dollars_total{{lane="{LANE}"}}': 0.005,
        f'venire_in_flight{{lane="{LANE}"}}': 1,
        'venire_trials{state="settled"}': 4,
        'venire_trials{state="failed"}': 1,
        'venire_trials{state="missing"}': 5,
    }.items():
        assert found[name] == value, name
    scraped.close()
    with pytest.raises(OSError):
        urlopen(scraped.url, timeout=10)


def test_a_port_that_is_taken_is_refused_before_anything_is_spent(venire: Venire, write_campaign: Write) -> None:
    pytest.importorskip("prometheus_client", reason="the extra prometheus is not installed")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = venire("run", write_campaign(), "--yes", "--metrics-port", taken.getsockname()[1])
    assert done.code == 2
    assert "cannot be had: Address already in use" in done.err
    assert not write_campaign().with_suffix(".duckdb").exists()
