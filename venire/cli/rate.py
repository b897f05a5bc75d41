"""`venire rate`: ratings and consistencies from a store or from a table of battles."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path

import typer

from venire.arena.choices import (
    BattleOrder,
    BothBad,
    Flips,
    OrdersMerge,
    OwnVotes,
    PairErrors,
    Ties,
    Unranked,
    VerdictOrigin,
)
from venire.arena.registry import METHODS
from venire.cli.help import FIGURES, INTERVALS, JUDGMENTS, METHOD, OF_ONE_METHOD, READ, names_of
from venire.cli.options import (
    BASELINE,
    BOTH_BAD,
    CAMPAIGN,
    CLUSTER,
    FLIPS,
    FORMAT,
    HUMAN,
    JSON,
    MAPPING,
    MERGE,
    ORIGIN,
    SEED,
    VALUE,
    WHERE,
    named_stores,
)
from venire.cli.report import write_report


class HabitChoice(StrEnum):
    """`arena.choices.Habit` as an enumeration, since typer takes no list of a Literal."""

    POSITION = "position"
    TIES = "ties"


def rate(
    paths: list[Path] = typer.Argument(
        ...,
        metavar="PATH...",
        callback=named_stores,
        help="A store, its campaign file or the folder of that file; a table of battles (model_a, model_b, winner) or "
        "of ballots (model, rank), each with judge and instruction_id if there are any; or files of another format.",
    ),
    method: list[str] = typer.Option(
        [],
        "--method",
        autocompletion=names_of(METHODS),
        rich_help_panel=METHOD,
        help="Default bradley-terry, and even-pairs of a campaign whose pairs were chosen by what was known; "
        "--compare shows all that apply; several with it. `venire methods` describes them.",
    ),
    compare: bool = typer.Option(
        False, "--compare", rich_help_panel=METHOD, help="Methods side by side: those named, or all that apply."
    ),
    as_json: bool = JSON,
    campaign: str | None = CAMPAIGN,
    mapping: list[str] = MAPPING,
    values: list[str] = VALUE,
    where: list[str] = WHERE,
    origin: VerdictOrigin | None = ORIGIN,
    form: str | None = FORMAT,
    both_bad: BothBad | None = BOTH_BAD,
    baseline: str | None = BASELINE,
    unranked: Unranked = typer.Option(
        "below",
        "--unranked",
        rich_help_panel=READ,
        help="A model without a row on a ballot that others on the instruction have: below those ranked, or absent.",
    ),
    reference: Path | None = typer.Option(
        None,
        "--reference",
        rich_help_panel=READ,
        help="Ratings to compare with: a table of model and elo, a board in JSON, or a group of people by name.",
    ),
    accuracy_baseline: float = typer.Option(
        0.0,
        "--accuracy-baseline",
        rich_help_panel=READ,
        help="Where answers were graded: the share that guessing gets right; models not above it are filtered.",
    ),
    human: str | None = HUMAN,
    own: OwnVotes = typer.Option(
        "include", "--own", rich_help_panel=JUDGMENTS, help="What judges that are models say of themselves."
    ),
    judge_weight: list[str] = typer.Option(
        [], "--judge-weight", rich_help_panel=JUDGMENTS, help="JUDGE=WEIGHT: what a judge's verdicts count; others 1."
    ),
    ridge: float | None = typer.Option(
        None,
        "--ridge",
        rich_help_panel=METHOD,
        help="Pulls ratings together: lambda of lambda/2 |R|^2; default: the method's.",
    ),
    anchor: list[str] = typer.Option(
        [], "--anchor", rich_help_panel=METHOD, help="MODEL=ELO: hold this model at this rating."
    ),
    merge: OrdersMerge = MERGE,
    flips: Flips = FLIPS,
    ties: Ties = typer.Option("half", "--ties", rich_help_panel=JUDGMENTS, help="What a tie counts as."),
    bootstrap: int = typer.Option(
        0, "--bootstrap", rich_help_panel=INTERVALS, min=0, help="Replicates for intervals; 0: by formula."
    ),
    cluster: str | None = CLUSTER,
    errors: PairErrors | None = typer.Option(
        None, "--errors", rich_help_panel=INTERVALS, help="Standard errors; default: cluster, where there are any."
    ),
    level: float = typer.Option(0.95, "--level", rich_help_panel=INTERVALS, help="Of the intervals."),
    seed: int | None = SEED,
    covariate: list[str] = typer.Option(
        [],
        "--covariate",
        rich_help_panel=METHOD,
        help="covariates: a column, or position; of a store also length, headers, bold, lists, same-family.",
    ),
    restarts: int = typer.Option(
        0, "--restarts", rich_help_panel=OF_ONE_METHOD, min=0, help="am-elo: this many more starts, from the seed."
    ),
    habit: list[HabitChoice] = typer.Option(
        [], "--habit", rich_help_panel=OF_ONE_METHOD, help="am-elo: habits of each judge to fit beside its ability."
    ),
    ability_ridge: float = typer.Option(
        0.0, "--ability-ridge", rich_help_panel=OF_ONE_METHOD, help="am-elo: lambda of lambda/2 (ability - 1)^2."
    ),
    least_verdicts: int = typer.Option(
        50, "--least-verdicts", rich_help_panel=OF_ONE_METHOD, help="stable-arena: judges with fewer are left out."
    ),
    least_ability: float = typer.Option(
        0.0, "--least-ability", rich_help_panel=OF_ONE_METHOD, help="stable-arena: judges at or below it are left out."
    ),
    until_stable: bool = typer.Option(
        False, "--until-stable", rich_help_panel=OF_ONE_METHOD, help="stable-arena: fit again until nobody is left out."
    ),
    seconds: float = typer.Option(
        60.0, "--seconds", rich_help_panel=OF_ONE_METHOD, help="kemeny: time to prove the order in."
    ),
    order: BattleOrder = typer.Option(
        "shuffled",
        "--order",
        rich_help_panel=OF_ONE_METHOD,
        help="elo: battles in many drawn orders, or in the given one (rows of a file, times of a store).",
    ),
    folds: int = typer.Option(
        0, "--folds", rich_help_panel=FIGURES, help="Predict each of so many parts from the others: MSE, AUC, log loss."
    ),
    steady: float = typer.Option(
        0.0, "--steady", rich_help_panel=FIGURES, help="Perturb the verdicts of this share of judges in four ways."
    ),
    contrast: tuple[str, str] = typer.Option(
        ("", ""),
        "--contrast",
        show_default=False,
        metavar="A B",
        rich_help_panel=FIGURES,
        help="Two models: their difference and what it needs.",
    ),
    half_width: float | None = typer.Option(
        None, "--half-width", rich_help_panel=FIGURES, help="Of the contrast, in Elo points: battles until then."
    ),
    positions: bool = typer.Option(
        False, "--positions", rich_help_panel=FIGURES, help="Audit battles shown several times in each order."
    ),
    report: Path | None = typer.Option(
        None, "--report", metavar="FILE", help="Also write a report: .html, .md or .json (venire report)."
    ),
    people: bool = typer.Option(
        False, "--people", rich_help_panel=FIGURES, help="Rankings of single instructions against the reference."
    ),
) -> None:
    """Rate the models and measure the judges.

    Nothing is asked and nothing is paid.

    Examples:
      venire rate first
      venire rate first --anchor gpt-4=1250 --bootstrap 1000
      venire rate votes.parquet --map model_a=left --map model_b=right --map winner=preferred
      venire rate first --compare --reference people.csv
    """
    from venire.arena.errors import InputError
    from venire.cli.options import anchors, judge_weights, verdict_source, write_json
    from venire.ratings.inference.options import Options
    from venire.render.board import show_board, show_comparison
    from venire.render.figures import show_figures
    from venire.render.screen import console, show_pages_hint
    from venire.reports.board.rate import read
    from venire.reports.board.source import is_store
    from venire.reports.figures import Figures

    source = verdict_source(paths, campaign, mapping, values, where, cluster, origin, form, both_bad, baseline)
    source = replace(source, reference=reference, unranked=unranked, human=human)
    verdicts = read(source, covariate, in_order=order == "given")
    options = Options(
        merge=merge,
        flips=flips,
        ties=ties,
        ridge=ridge,
        anchors=anchors(anchor),
        errors=errors,
        replicates=bootstrap,
        seed=verdicts.seed if seed is None else seed,
        level=level,
        covariates=tuple(covariate),
        own_votes=own,
        judge_weights=judge_weights(judge_weight),
        restarts=restarts,
        habits=tuple(dict.fromkeys(one.value for one in habit)),
        ability_ridge=ability_ridge,
        least_verdicts=least_verdicts,
        least_ability=least_ability,
        until_stable=until_stable,
        seconds=seconds,
        order=order,
    )
    if report is not None:
        _refuse_for_report(method, compare)
    figures = Figures(folds, steady, contrast if any(contrast) else None, half_width, positions, people)
    if compare:
        if figures != Figures():
            raise InputError("--compare shows ratings alone: leave --folds, --steady, --contrast and the like out")
        comparison = verdicts.compare(method, options)
        if as_json:
            write_json(comparison.to_json())
        else:
            show_comparison(console(), comparison)
        return
    if len(method) > 1:
        raise InputError("--method was given more than once: add --compare to see methods side by side")
    board = verdicts.board(method[0] if method else None, options, accuracy_baseline=accuracy_baseline, figures=figures)
    if as_json:
        write_json(board.to_json())
    else:
        screen = console()
        show_board(screen, board)
        show_figures(screen, board.diagnostics)
        if is_store(source.paths[0]):
            show_pages_hint(console(stderr=True), source.paths[0])
    if report is not None:
        write_report(source, report, None, options=options, made=(verdicts, board))


def _refuse_for_report(methods: list[str], compare: bool) -> None:
    """Raises InputError where a report would be of another board than the one that is shown."""
    from venire.arena.errors import InputError

    if compare or len(methods) > 1:
        raise InputError("--report is of one method and compares others by itself: leave --compare out")
