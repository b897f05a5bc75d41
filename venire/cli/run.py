"""`venire run`: ask what is missing, and go on where the last run stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from venire.arena.errors import InputError
from venire.cli.options import FILE, EnvFile, Notify, NotifyCommand, RetryFailed, Serve, Yes, with_options

if TYPE_CHECKING:
    from venire.embedded import Embedded
    from venire.live.guard import Guard
    from venire.orchestrator.recording.events import Observer
    from venire.orchestrator.run.run_setup import Polling
    from venire.session import Session


@dataclass(frozen=True)
class AskOptions:
    """How a campaign is asked: by `venire run`, and by the verbs whose answers it judges."""

    yes: Yes = False
    env_file: EnvFile = None
    amend: Annotated[bool, typer.Option("--amend", help="Accept a file that changed since calls were made.")] = False
    retry_failed: RetryFailed = False
    speed: Annotated[
        float,
        typer.Option(
            "--speed", min=0.0, help="For embedded simulated judges: divide their latency by this; 0 is no waiting."
        ),
    ] = 0.0
    events: Annotated[
        Path | None, typer.Option("--events", help="Append what happens to this file, as JSON lines.")
    ] = None
    serve: Serve = None
    notify: Notify = None
    notify_command: NotifyCommand = None


@dataclass(frozen=True)
class BatchOptions:
    """How judges are asked by batches, for one start."""

    batch: Annotated[
        list[str],
        typer.Option(
            "--batch", metavar="JUDGE", help="Ask this judge by its provider's batch interface, for this start."
        ),
    ] = field(default_factory=list)
    detach: Annotated[bool, typer.Option("--detach", help="Submit batches and leave; a later start collects them.")] = (
        False
    )
    poll: Annotated[
        str, typer.Option("--poll", metavar="TIME", help="The longest pause between two looks at batches: 30s, 5m, 1h.")
    ] = "60s"


@dataclass(frozen=True)
class ClusterOptions:
    """Who sends the calls."""

    engine: Annotated[
        str,
        typer.Option(
            "--engine", metavar="local|ray[:ADDRESS]", help="Who sends the calls: this process, or a Ray cluster."
        ),
    ] = "local"
    actors: Annotated[
        int | None, typer.Option("--actors", min=1, help="With Ray: how many actors; default one a node.")
    ] = None
    lease: Annotated[
        str,
        typer.Option(
            "--lease", metavar="TIME", help="With Ray: after how long of silence others ask an actor's trials."
        ),
    ] = "10s"


@with_options(events="fault_rate", serve="lease", notify="serve", notify_command="notify")
def run(
    context: typer.Context,
    file: Path = FILE,
    *,
    start: AskOptions,
    fault_rate: float = typer.Option(
        0.0, "--faults", min=0.0, max=1.0, help="For embedded simulated judges: share of requests that fail at first."
    ),
    batches: BatchOptions,
    shard: str | None = typer.Option(
        None, "--shard", metavar="N/OF", help="Ask one part of the plan, such as 3/8, into a store of its own."
    ),
    take: list[str] = typer.Option(
        [], "--take", metavar="N/OF", help="With --shard: take over what another part has left, to ask and to spend."
    ),
    cluster: ClusterOptions,
    otel: bool | None = typer.Option(
        None, "--otel/--no-otel", help="Send traces and metrics by OpenTelemetry, to where OTEL_* variables say."
    ),
    metrics_port: int | None = typer.Option(
        None, "--metrics-port", min=0, max=65535, help="Serve Prometheus metrics on this port of 127.0.0.1."
    ),
) -> None:
    """Run a campaign, or go on where it stopped.

    Ctrl-C stops it safely; the same command goes on.

    Exit codes: 0 complete, 1 error, 2 input, 3 budget reached or batches under way, 4 done with failed
    steps, 5 quality gate missed, 130 interrupted or declined.

    Examples:
      venire run first/campaign.toml
      venire run first/campaign.toml --batch gpt-4.1 --detach # half the price, hours later
      venire run first/campaign.toml --shard 3/8   # one of eight processes: venire store merge
      venire run first/campaign.toml --engine ray:auto --actors 4 # by actors of a Ray cluster
    """
    from contextlib import ExitStack

    from venire.cli.options import again, environment, notify_target, page_guard, seconds_of
    from venire.configs.loading import in_batches, load_campaign
    from venire.embedded import Embedded, even_faults
    from venire.endpoints import open_crew
    from venire.orchestrator.planning.sharding import Shard
    from venire.orchestrator.run.run_setup import Polling
    from venire.render.screen import console, warning_printer
    from venire.session import Session
    from venire.telemetry import observe

    warn = warning_printer(console(stderr=True))
    environ, guard = environment(start.env_file), page_guard(start.serve)
    campaign = in_batches(load_campaign(file), batches.batch)
    target = notify_target(start.notify, start.notify_command, environ, file, campaign)
    polling = Polling(seconds_of(batches.poll, "--poll"), detach=batches.detach)
    if take and shard is None:
        raise InputError("--take is for one of several shards: give --shard too, such as --shard 3/8 --take 5/8")
    part = None if shard is None else Shard.read(shard, take)
    store = campaign.store if part is None else part.store(campaign.store)
    seconds = seconds_of(cluster.lease, "--lease")
    with ExitStack() as stack:
        crew, campaign = stack.enter_context(
            open_crew(cluster.engine, campaign, store, environ, actors=cluster.actors, lease_seconds=seconds, warn=warn)
        )
        observers = stack.enter_context(
            observe(warn, lines=start.events, otel=otel, metrics_port=metrics_port, notify=target)
        )
        session = stack.enter_context(
            Session(campaign, amend=start.amend, spends=True, shard=part, crew=crew, options=again(context))
        )
        embedded = Embedded(start.speed, even_faults(fault_rate))
        raise typer.Exit(
            ask_missing(session, start, embedded, observers, environ=environ, guard=guard, polling=polling)
        )


def ask_missing(
    session: Session,
    start: AskOptions,
    embedded: Embedded,
    observers: Sequence[Observer],
    *,
    environ: Mapping[str, str] | None,
    guard: Guard | None,
    polling: Polling | None = None,
) -> int:
    """Show the plan, ask whether to spend, and ask what is missing; returns the exit code.

    Raises InputError where nobody is there to agree, typer.Exit(130) where somebody declines, and as `Session.run`.
    """
    from venire.cli.options import agree
    from venire.render.outcome import show_outcome
    from venire.render.plan import show_plan
    from venire.render.screen import console
    from venire.status import keep_forecast

    screen = console(stderr=True)
    if start.retry_failed and (cleared := session.retry_failed()):
        screen.print(f"{cleared} failed steps will be tried again")
    forecast = session.forecast()
    show_plan(screen, session, forecast)
    if session.crew is not None:
        screen.print(session.crew.description)
    agree(session, yes=start.yes)
    if not session.campaign.writes:
        keep_forecast(session.store, session.planned.id, forecast)
    return show_outcome(session, screen, embedded, observers, environ=environ, guard=guard, polling=polling)
