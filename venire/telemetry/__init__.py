"""Telemetry of a run: JSON lines, OpenTelemetry, Prometheus and notifications, each only if requested."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from venire.arena.errors import InputError
from venire.configs.env_file import environment
from venire.orchestrator.lanes.routes import lane_name, route_name
from venire.orchestrator.recording.ending import CampaignSummary
from venire.orchestrator.recording.events import Events, Observer

if TYPE_CHECKING:
    from venire.session import Session
    from venire.telemetry.notify import NotifyTarget

__all__ = ["observe", "run_events"]


_ENDPOINTS = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
)


@contextmanager
def observe(
    warn: Callable[[str], None],
    *,
    lines: Path | None = None,
    otel: bool | None = None,
    metrics_port: int | None = None,
    notify: NotifyTarget | None = None,
    environ: Mapping[str, str] | None = None,
) -> Iterator[list[Observer]]:
    """The requested observers, which finish their work when the context ends.

    `otel` None: use OpenTelemetry if a standard variable names a collector. Raises InputError for an impossible
    request before any money is spent; `warn` is called with a sentence about each later failure.
    """
    observers: list[Observer] = []

    with ExitStack() as stack:
        if lines is not None:
            from venire.telemetry.lines import EventLog

            file = EventLog(lines, warn)
            stack.callback(file.close)
            observers.append(file)
        if metrics_port is not None:
            if not _installed("prometheus_client"):
                raise InputError(f"--metrics-port needs {_extra('prometheus')}")
            from venire.telemetry.prometheus import PrometheusExporter

            scraped = PrometheusExporter(metrics_port)
            stack.callback(scraped.close)
            observers.append(scraped)
            warn(f"metrics: {scraped.url}")
        if notify is not None:
            from venire.telemetry.notify import Notifier

            notifier = Notifier(notify, warn)
            stack.callback(notifier.close)
            observers.append(notifier)
        if _wants_otel(otel, environment(environ), warn):
            from venire.telemetry.otel import OpenTelemetryExporter

            sender = OpenTelemetryExporter(warn)
            stack.callback(sender.close)
            observers.append(sender)
        yield observers


def _wants_otel(asked: bool | None, environ: Mapping[str, str], warn: Callable[[str], None]) -> bool:
    """Whether to send traces and metrics; warns if the environment requests it and it is impossible."""
    named = next((name for name in _ENDPOINTS if environ.get(name)), None)
    if asked is False or environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if asked is None and named is None:
        return False
    why = None
    if not _installed("opentelemetry.sdk") or not _installed("opentelemetry.exporter.otlp.proto.http"):
        why = f"needs {_extra('otel')}"
    elif (protocol := environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")) != "http/protobuf":
        why = f"sends http/protobuf, and OTEL_EXPORTER_OTLP_PROTOCOL asks for {protocol}: unset it, or set --no-otel"
    if why is not None and asked:
        raise InputError(f"--otel {why}")
    if why is not None:
        warn(f"{named} is set, but nothing is sent there: OpenTelemetry {why} (--no-otel to say no)")
    return why is None


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of the package around it
        return False


def _extra(name: str) -> str:
    return f"the extra {name!r}, which is not installed: pip install 'venire[{name}]'"


@contextmanager
def run_events(session: Session, events: Events) -> Iterator[Callable[[CampaignSummary], None]]:
    """Emit `run.started`, and at the end `run.ended`, with the ending `error` if no summary was passed."""
    if not events.active:
        yield lambda summary: None
        return
    campaign, before = session.campaign, session.progress
    lanes = {judge.lane.identity: judge.lane for judge in campaign.judges}.values()
    events.emit(
        "run.started",
        campaign=campaign.name,
        planned=before.planned,
        settled=before.settled,
        failed=before.failed,
        missing=before.missing,
        spent_nano=session.spending.nano,
        budget_nano=campaign.budget.money,
        lanes=[
            {
                "lane": lane_name(one),
                "route": route_name(way),
                "provider": way.provider,
                "model": way.model,
                "endpoint": way.base_url,
            }
            for one in lanes
            for way in one.routes
        ],
    )
    summary: CampaignSummary | None = None

    def keep(found: CampaignSummary) -> None:
        nonlocal summary
        summary = found

    try:
        yield keep
    finally:
        now, progress = (summary.statistics, summary.progress) if summary else (None, None)
        events.emit(
            "run.ended",
            campaign=campaign.name,
            ending=summary.ending.value if summary else "error",
            calls=now and now.calls,
            answered=now and now.answered,
            retries=now and now.retries,
            settled=progress and progress.settled,
            failed=progress and progress.failed,
            missing=progress and progress.missing,
            cost_nano=now and now.spent,
            seconds=now and now.elapsed,
        )
