"""`venire run`: ask what is missing, and go on where the last run stopped."""

from __future__ import annotations

from pathlib import Path

import typer

from venire.arena.errors import InputError
from venire.cli.options import ENV_FILE, FILE, SERVE, YES


def run(
    context: typer.Context,
    file: Path = FILE,
    yes: bool = YES,
    env_file: Path | None = ENV_FILE,
    amend: bool = typer.Option(False, "--amend", help="Accept a file that changed since calls were made."),
    retry_failed: bool = typer.Option(False, "--retry-failed", help="Try steps that used up their attempts again."),
    speed: float = typer.Option(
        0.0, "--speed", min=0.0, help="For embedded simulated judges: divide their latency by this; 0 is no waiting."
    ),
    fault_rate: float = typer.Option(
        0.0, "--faults", min=0.0, max=1.0, help="For embedded simulated judges: share of requests that fail at first."
    ),
    events: Path | None = typer.Option(None, "--events", help="Append what happens to this file, as JSON lines."),
    batch: list[str] = typer.Option(
        [], "--batch", metavar="JUDGE", help="Ask this judge by its provider's batch interface, for this start."
    ),
    detach: bool = typer.Option(False, "--detach", help="Submit batches and leave; a later start collects them."),
    poll: str = typer.Option(
        "60s", "--poll", metavar="TIME", help="The longest pause between two looks at batches: 30s, 5m, 1h."
    ),
    shard: str | None = typer.Option(
        None, "--shard", metavar="N/OF", help="Ask one part of the plan, such as 3/8, into a store of its own."
    ),
    take: list[str] = typer.Option(
        [], "--take", metavar="N/OF", help="With --shard: take over what another part has left, to ask and to spend."
    ),
    engine: str = typer.Option(
        "local", "--engine", metavar="local|ray[:ADDRESS]", help="Who sends the calls: this process, or a Ray cluster."
    ),
    actors: int | None = typer.Option(None, "--actors", min=1, help="With Ray: how many actors; default one a node."),
    lease: str = typer.Option(
        "10s", "--lease", metavar="TIME", help="With Ray: after how long of silence others ask an actor's trials."
    ),
    serve: str | None = SERVE,
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

    from venire.cli.options import again, agree, environment, page_guard, seconds_of
    from venire.configs.loading import in_batches, load_campaign
    from venire.endpoints import open_crew
    from venire.orchestrator.planning.sharding import Shard
    from venire.orchestrator.run.wave_lane import Polling
    from venire.render.outcome import show_outcome
    from venire.render.plan import show_plan
    from venire.render.screen import console, warning_printer
    from venire.session import Embedded, Session, even_faults
    from venire.status import keep_forecast
    from venire.telemetry import observe

    screen = console(stderr=True)
    environ = environment(env_file)
    guard = page_guard(serve)
    campaign = in_batches(load_campaign(file), batch)
    polling = Polling(seconds_of(poll, "--poll"), detach=detach)
    if take and shard is None:
        raise InputError("--take is for one of several shards: give --shard too, such as --shard 3/8 --take 5/8")
    part = None if shard is None else Shard.read(shard, take)
    store = campaign.store if part is None else part.store(campaign.store)
    seconds = seconds_of(lease, "--lease")
    with ExitStack() as stack:
        warn = warning_printer(screen)
        crew, campaign = stack.enter_context(
            open_crew(engine, campaign, store, environ, actors=actors, lease_seconds=seconds, warn=warn)
        )
        observers = stack.enter_context(observe(warn, lines=events, otel=otel, metrics_port=metrics_port))
        session = stack.enter_context(
            Session(
                campaign,
                amend=amend,
                spends=True,
                shard=part,
                crew=crew,
                options=again(context),
            )
        )
        if retry_failed and (cleared := session.retry_failed()):
            screen.print(f"{cleared} failed steps will be tried again")
        show_plan(screen, session)
        if crew is not None:
            screen.print(crew.description)
        agree(session, yes=yes)
        keep_forecast(session.store, session.planned.id, session.forecast)
        code = show_outcome(
            session,
            screen,
            Embedded(speed, even_faults(fault_rate)),
            observers,
            environ=environ,
            guard=guard,
            polling=polling,
        )
        raise typer.Exit(code)
