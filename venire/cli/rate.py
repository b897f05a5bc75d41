"""`venire rate`: ratings and consistencies from a store or from a table of battles."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import typer

__all__ = ["rate"]


class TableOrigin(StrEnum):
    """Where the verdicts of a table come from; a store knows by itself."""

    REAL = "real"
    RECORDED = "recorded"
    SIMULATED = "simulated"


class BothBad(StrEnum):
    """What a verdict that both answers are bad counts as."""

    TIE = "tie"
    DROP = "drop"


class Unranked(StrEnum):
    """What a model without a row on a ballot is, where others on the instruction have it."""

    BELOW = "below"
    ABSENT = "absent"


class Own(StrEnum):
    """Whether a judge that is one of the models is heard on itself."""

    INCLUDE = "include"
    EXCLUDE = "exclude"


class Habit(StrEnum):
    """What a judge may be given to, whatever it is shown."""

    POSITION = "position"
    TIES = "ties"


class Merge(StrEnum):
    """How a tie in one order and a winner in the other make one judgment."""

    MEAN = "mean"
    STRICT = "strict"


class Ties(StrEnum):
    """What a tie counts as in the Bradley-Terry family."""

    HALF = "half"
    DROP = "drop"
    RAO_KUPPER = "rao-kupper"
    DAVIDSON = "davidson"


class Flips(StrEnum):
    """What becomes of two orders with opposite winners."""

    TIE = "tie"
    DROP = "drop"


class Errors(StrEnum):
    """How standard errors are found."""

    CLUSTER = "cluster"
    SANDWICH = "sandwich"
    HESSIAN = "hessian"


def rate(
    paths: list[Path] = typer.Argument(
        ...,
        metavar="PATH...",
        help="A store; a table of battles (model_a, model_b, winner) or of ballots (model, rank), each with judge and "
        "instruction_id if there are any; or files of another format.",
    ),
    method: list[str] = typer.Option(
        [],
        "--method",
        help="Default bradley-terry, and even-pairs of a campaign whose pairs were chosen by what was known; "
        "--compare shows all that apply; several with it.",
    ),
    compare: bool = typer.Option(False, "--compare", help="Methods side by side: those named, or all that apply."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON on standard output and nothing else."),
    campaign: str | None = typer.Option(None, "--campaign", help="Which campaign of a store that has several."),
    mapping: list[str] = typer.Option([], "--map", help="OURS=THEIRS: a column that is called otherwise in the table."),
    where: list[str] = typer.Option([], "--where", help="COLUMN=VALUE: keep these rows of a table."),
    origin: TableOrigin | None = typer.Option(
        None, "--origin", help="Where a table's verdicts come from; default: recorded."
    ),
    form: str | None = typer.Option(
        None,
        "--format",
        help="What the files are; default: told by their columns. docs/formats.md lists formats.",
    ),
    both_bad: BothBad | None = typer.Option(
        None, "--both-bad", help="What a verdict that both are bad counts as; default: tie."
    ),
    baseline: str | None = typer.Option(None, "--baseline", help="Whom all models met, where the files do not say."),
    unranked: Unranked = typer.Option(
        Unranked.BELOW,
        "--unranked",
        help="A model without a row on a ballot that others on the instruction have: below those ranked, or absent.",
    ),
    reference: Path | None = typer.Option(
        None,
        "--reference",
        help="Ratings to compare with: a table of model and elo, or a board in JSON.",
    ),
    own: Own = typer.Option(Own.INCLUDE, "--own", help="What judges that are models say of themselves."),
    judge_weight: list[str] = typer.Option(
        [], "--judge-weight", help="JUDGE=WEIGHT: what a judge's verdicts count; others 1."
    ),
    ridge: float | None = typer.Option(
        None, "--ridge", help="Pulls ratings together: lambda of lambda/2 |R|^2; default: the method's."
    ),
    anchor: list[str] = typer.Option([], "--anchor", help="MODEL=ELO: hold this model at this rating."),
    merge: Merge = typer.Option(Merge.MEAN, "--merge", help="A tie and a win of both orders: half a win, or a tie."),
    flips: Flips = typer.Option(Flips.TIE, "--flips", help="Orders with opposite winners."),
    ties: Ties = typer.Option(Ties.HALF, "--ties", help="What a tie counts as."),
    bootstrap: int = typer.Option(0, "--bootstrap", min=0, help="Replicates for intervals; 0: by formula."),
    cluster: str | None = typer.Option(
        None,
        "--cluster",
        help="Column whose rows share their noise; default instruction_id, or none.",
    ),
    errors: Errors | None = typer.Option(
        None, "--errors", help="Standard errors; default: cluster, where there are any."
    ),
    level: float = typer.Option(0.95, "--level", help="Of the intervals."),
    seed: int | None = typer.Option(None, "--seed", help="Of all random draws; default: the campaign's own, or 0."),
    covariate: list[str] = typer.Option(
        [],
        "--covariate",
        help="covariates: a column, or position; of a store also length, headers, bold, lists, same-family.",
    ),
    restarts: int = typer.Option(0, "--restarts", min=0, help="am-elo: this many more starts, from the seed."),
    habit: list[Habit] = typer.Option([], "--habit", help="am-elo: habits of each judge to fit beside its ability."),
    ability_ridge: float = typer.Option(0.0, "--ability-ridge", help="am-elo: lambda of lambda/2 (ability - 1)^2."),
    least_verdicts: int = typer.Option(50, "--least-verdicts", help="stable-arena: judges with fewer are left out."),
    least_ability: float = typer.Option(
        0.0, "--least-ability", help="stable-arena: judges at or below it are left out."
    ),
    until_stable: bool = typer.Option(
        False, "--until-stable", help="stable-arena: fit again until nobody is left out."
    ),
    seconds: float = typer.Option(60.0, "--seconds", help="kemeny: time to prove the order in."),
) -> None:
    """Rate the models and measure the judges.

    Nothing is asked and nothing is paid."""
    from venire.arena.errors import InputError
    from venire.arena.records import Origin
    from venire.boards.rate import Source, read
    from venire.cli.options import anchors, column_map, judge_weights, write_json
    from venire.cli.options import where as conditions
    from venire.ratings.inference.options import Options
    from venire.render.board import show_board, show_comparison
    from venire.render.screen import console

    source = Source(
        tuple(paths),
        campaign=campaign,
        mapping=column_map(mapping),
        where=conditions(where),
        cluster=cluster,
        origin=None if origin is None else Origin(origin.value),
        form=form,
        both_bad=None if both_bad is None else both_bad.value,
        baseline=baseline,
        reference=reference,
        unranked=unranked.value,
    )
    verdicts = read(source, covariate)
    options = Options(
        merge=merge.value,
        flips=flips.value,
        ties=ties.value,
        ridge=ridge,
        anchors=anchors(anchor),
        errors=None if errors is None else errors.value,
        replicates=bootstrap,
        seed=verdicts.seed if seed is None else seed,
        level=level,
        covariates=tuple(covariate),
        own_votes=own.value,
        judge_weights=judge_weights(judge_weight),
        restarts=restarts,
        habits=tuple(dict.fromkeys(one.value for one in habit)),
        ability_ridge=ability_ridge,
        least_verdicts=least_verdicts,
        least_ability=least_ability,
        until_stable=until_stable,
        seconds=seconds,
    )
    if compare and reference is not None:
        raise InputError("--reference is held against one board: leave out --compare, or --reference")
    if compare:
        comparison = verdicts.compare(method, options)
        if as_json:
            write_json(comparison.to_json())
        else:
            show_comparison(console(), comparison)
        return
    if len(method) > 1:
        raise InputError("--method was given more than once: add --compare to see methods side by side")
    board = verdicts.board(method[0] if method else None, options)
    if as_json:
        write_json(board.to_json())
    else:
        show_board(console(), board)
