"""`venire judge`: from a table of answers to a leaderboard."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from venire.arena.errors import InputError
from venire.cli.options import EnvFile, Notify, NotifyCommand, Yes, with_options
from venire.cli.signals import INTERRUPTED

if TYPE_CHECKING:
    from venire.judging import JudgingFolder

ANSWERS = typer.Argument(
    ...,
    metavar="ANSWERS...",
    help="Tables of answers: prompt, model, response in each row, or a prompt and a column for each model; CSV, TSV, "
    "JSON Lines or Parquet; several files, a pattern in quotes, or - for standard input.",
)


@dataclass(frozen=True)
class JudgingOptions:
    """What a campaign of one table of answers is made of: by `venire judge`, and by `venire init --from`."""

    judges: Annotated[
        list[str],
        typer.Option(
            "--judge",
            metavar="MODEL",
            help="Who judges, with its vendor, such as openai:gpt-4.1-mini; several times for several. simulated: a "
            "rehearsal.",
        ),
    ] = field(default_factory=list)
    budget: Annotated[
        str | None, typer.Option("--budget", metavar="DOLLARS", help="What may be spent in all; default 1.")
    ] = None
    protocol: Annotated[
        str | None,
        typer.Option("--protocol", help="What judges are asked; default two-stage: reasons, then a verdict."),
    ] = None
    mapping: Annotated[
        list[str], typer.Option("--map", help="OURS=THEIRS: a column that is called otherwise in the table.")
    ] = field(default_factory=list)


@with_options(mapping="out")
def judge(
    answers: list[str] = ANSWERS,
    *,
    wanted: JudgingOptions,
    out: Path | None = typer.Option(
        None, "--out", "-o", metavar="FOLDER", help="Where tables, campaign file and store are; default: NAME.venire."
    ),
    yes: Yes = False,
    env_file: EnvFile = None,
    notify: Notify = None,
    notify_command: NotifyCommand = None,
) -> None:
    """Judge a table of answers: who leads, how sure, at what cost.

    The plan and its price are shown first. The same command again goes on: nothing is asked or paid twice. With
    --judge simulated nothing is asked or paid at all: a rehearsal, in a store of its own.

    Examples:
      venire judge answers.csv --judge simulated
      venire judge answers.csv --judge openai:gpt-4.1-mini --judge anthropic:claude-haiku-4-5 --budget 2
      venire judge "answers/*.jsonl" --judge openai:gpt-4.1-mini --map response=text
      curl -fsSL https://example.org/answers.csv | venire judge - --judge simulated --yes
    """
    from venire.arena.wording import plain
    from venire.cli.options import agree, environment, notify_target
    from venire.configs.loading import load_campaign
    from venire.embedded import Embedded
    from venire.endpoints import read_secrets
    from venire.forecasts.intervals import plan_intervals
    from venire.render.judged import JudgedPart, show_judged, show_short_plan
    from venire.render.outcome import run_shown, show_trouble
    from venire.render.screen import console, warning_printer
    from venire.session import Session
    from venire.telemetry import observe

    screen = console(stderr=True)
    environ = environment(env_file)
    made = made_of(answers, wanted, out)
    for sentence in made.changes:
        screen.print(plain(sentence))
    campaign = load_campaign(made.campaign)
    target = notify_target(notify, notify_command, environ, made.campaign, campaign)
    watching = observe(warning_printer(screen), notify=target)
    new, unasked = not campaign.store.exists(), False
    try:
        with watching as observers, Session(campaign, amend="tables", spends=True) as session:
            unasked = new
            forecast = session.forecast()
            if session.asks_more:
                show_short_plan(screen, session, forecast, plan_intervals(session, forecast))
                read_secrets(session.campaign, session.campaign.judges, environ)  # before anybody agrees to the price
            agree(session, yes=yes)
            unasked = False
            summary = run_shown(session, screen, Embedded(), observers, environ)
            code, part = show_trouble(session, screen, summary), JudgedPart.of(session)
    finally:
        if unasked:  # an empty store would stand before that of a rehearsal
            campaign.store.unlink(missing_ok=True)
    if code != INTERRUPTED:  # whoever stops a run wants to leave
        show_judged(screen, campaign, part, _again(answers, wanted, out))
    raise typer.Exit(code)


def _again(answers: list[str], wanted: JudgingOptions, out: Path | None) -> list[str]:
    """The command that goes on with these tables."""
    options = [] if out is None else ["-o", str(out)]
    return ["venire", "judge", *answers, *options, *(word for pair in wanted.mapping for word in ("--map", pair))]


def made_of(answers: list[str], wanted: JudgingOptions, out: Path | None, *, runs: bool = True) -> JudgingFolder:
    """The folder of a campaign of these tables, made or brought up to date. Raises InputError as `prepare` does."""
    from venire.cli.verdict_options import column_map
    from venire.judging import JudgingWishes, folder_of, prepare
    from venire.storage.transfer.answers import read_answers
    from venire.storage.transfer.formats.files import files_of

    paths = files_of(map(Path, answers))
    read = read_answers(paths, column_map(wanted.mapping))
    wishes = JudgingWishes(tuple(wanted.judges), _dollars(wanted.budget), wanted.protocol)
    return prepare(out or folder_of(paths), read, " ".join(answers), wishes, runs=runs)


def _dollars(text: str | None) -> Decimal | None:
    if text is None:
        return None
    try:
        amount = Decimal(text.removeprefix("$"))
    except InvalidOperation:
        amount = Decimal(-1)
    if not (amount.is_finite() and 0 < amount <= 1_000_000):
        raise InputError(f"--budget is {text!r}: give US dollars, such as 2 or 0.50")
    return amount
