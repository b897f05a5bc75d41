"""`venire simulate`: what each choice of a campaign would buy, by simulated judges of known habits."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from venire.arena.errors import InputError
from venire.arena.registry import POLICIES, PROTOCOLS
from venire.cli.help import names_of
from venire.cli.options import with_options

if TYPE_CHECKING:
    from venire.api import VariedKeywords


@dataclass(frozen=True)
class VariedOptions:
    """The settings that are compared: fields of `api.VariedSettings`."""

    policies: Annotated[
        list[str],
        typer.Option(
            "--policy",
            metavar="POLICY",
            autocompletion=names_of(POLICIES),
            help="Policy to compare; may be repeated, as all such options.",
        ),
    ] = field(default_factory=list)
    protocols: Annotated[
        list[str],
        typer.Option("--protocol", metavar="PROTOCOL", autocompletion=names_of(PROTOCOLS), help="Protocol to compare."),
    ] = field(default_factory=list)
    judges: Annotated[
        list[int], typer.Option("--judges", min=1, metavar="N", help="Number of judges to compare: the file's first.")
    ] = field(default_factory=list)
    orders: Annotated[
        list[str],
        typer.Option("--orders", metavar="both|random", help="Orders to compare: both or random (one, drawn)."),
    ] = field(default_factory=list)
    budgets: Annotated[
        list[str],
        typer.Option("--budget", metavar="DOLLARS", help="Dollars to compare; plans are as large as they allow."),
    ] = field(default_factory=list)
    calls: Annotated[
        list[int], typer.Option("--calls", min=1, metavar="N", help="Numbers of calls to compare, in the same way.")
    ] = field(default_factory=list)

    def keywords(self) -> VariedKeywords:
        """The same as keywords of `api.simulate`. Raises InputError for orders and dollars that are none."""
        known: dict[str, Literal["both", "random"]] = {"both": "both", "random": "random"}
        if strange := [order for order in self.orders if order not in known]:
            raise InputError(f"--orders {strange[0]}: take both, or random for one order of each battle")
        return {
            "policies": self.policies,
            "protocols": self.protocols,
            "judges": self.judges,
            "orders": [known[order] for order in self.orders],
            "budgets": [_dollars(text) for text in self.budgets],
            "calls": self.calls,
        }


@with_options()
def simulate(
    file: Path = typer.Argument(..., help="The campaign file; its store is never touched."),
    *,
    varied: VariedOptions,
    battles: int | None = typer.Option(None, "--battles", min=1, help="Battles of each run, in place of the file's."),
    seeds: int = typer.Option(20, "--seeds", min=1, max=10_000, help="Runs of each variation."),
    stand_ins: list[str] = typer.Option(
        [], "--as", metavar="[JUDGE=]PROFILE", help="Profile that stands for a real judge; profiles for all, in turn."
    ),
    models: int | None = typer.Option(None, "--models", min=2, help="A made-up field of so many models."),
    instructions: int | None = typer.Option(None, "--instructions", min=1, help="A made-up field on so many."),
    workers: int | None = typer.Option(None, "--workers", min=1, help="Runs at once; default: one a processor."),
    engine: str = typer.Option(
        "local", "--engine", metavar="local|ray[:ADDRESS]", help="Where runs are: processes here, or a Ray cluster."
    ),
    table: Path | None = typer.Option(None, "--csv", help="Write a line for each run to this file."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document."),
) -> None:
    """Try variations of a campaign with simulated judges.

    Each many times over, and what comes out is compared. The planner, the engine and the estimators of `venire run` on
    a virtual clock, nothing real being asked. With no variation: the file's own plan, and a balanced one beside it.
    Ctrl-C shows what has finished.

    Examples:
      venire simulate first/campaign.toml
      venire simulate first/campaign.toml --policy balanced --policy all-pairs --seeds 50
      venire simulate first/campaign.toml --judges 1 --judges 2 --budget 1.00 --csv runs.csv
    """
    import os

    from venire.api import simulate as simulate_campaign
    from venire.cli.options import write_json
    from venire.cli.signals import INTERRUPTED
    from venire.experiments.experiment import StoppedSimulationError
    from venire.experiments.results import write_csv
    from venire.orchestrator.engines.ray_cluster import EngineChoice
    from venire.render.screen import console, counting
    from venire.render.simulation import show_simulation

    settings = varied.keywords()
    if table is not None:
        table.open("a", encoding="utf-8").close()  # or minutes later, when there is something to lose
    stopped: StoppedSimulationError | None = None
    try:
        with counting(console(stderr=True), "runs") as progress:
            found = simulate_campaign(
                file,
                battles=battles,
                seeds=seeds,
                stand_ins=stand_ins,
                models=models,
                instructions=instructions,
                workers=workers or (None if EngineChoice.read(engine).is_ray else os.cpu_count()),
                engine=engine,
                progress=progress,
                **settings,
            )
    except StoppedSimulationError as error:
        stopped, found = error, error.result
    if table is not None:
        write_csv(table, found.simulation, found.variations)
    if as_json:
        write_json(found.to_json())
    else:
        show_simulation(console(), found.simulation, found.variations, found.field, found.judges)
    if stopped is not None:
        shown = f"{len(found.simulation.runs):,} of {stopped.planned:,} runs"
        console(stderr=True).print(f"stopped: this is of {shown}, those of seeds that every variation had")
        raise typer.Exit(INTERRUPTED)


def _dollars(text: str) -> Decimal:
    try:
        dollars = Decimal(text.removeprefix("$"))
    except InvalidOperation:
        dollars = Decimal(0)
    if not dollars.is_finite() or not Decimal("1e-9") <= dollars <= Decimal(10**9):
        raise InputError(f"--budget {text}: take an amount of US dollars above 0, such as 1.00")
    return dollars
