"""The board: models by rating, judges by consistency, judges that are models, and what a reader needs to doubt it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, get_args

import numpy as np

from venire.arena.battles import Ballots, Battles
from venire.arena.errors import InputError
from venire.arena.records import Origin, Status
from venire.arena.wording import interval_text
from venire.ratings.agreement.chance_corrected import FEWEST_DRAWN, Coefficient
from venire.ratings.agreement.people_agreement import JudgeAndPeople, people_agreement
from venire.ratings.agreement.reference import Agreement, agreement
from venire.ratings.data.judgments import Judgments, merge_orders
from venire.ratings.data.models import model_of_judge
from venire.ratings.data.result import Rated
from venire.ratings.data.statistics import FEWEST_FOR_CORRELATION
from venire.ratings.data.validation import finite_or_none
from venire.ratings.diagnostics.pair_coverage import pair_coverage
from venire.ratings.inference.one_sided import OneSided, one_sided
from venire.ratings.inference.options import Options
from venire.ratings.judges.consistency import Consistency, JudgeConsistency, consistency
from venire.ratings.judges.elo_from_consistency import Score, elo_from_consistency
from venire.ratings.judges.order_agreement import order_agreement
from venire.ratings.methods.methods import merge_selected, rate, select_verdicts
from venire.ratings.pairwise.components import largest_group, ranked_values, strong_components_of, unrated
from venire.ratings.pairwise.wins import win_counts
from venire.ratings.peers.peer_evaluation import PeerRow, peer_evaluation
from venire.ratings.voting.kemeny import kemeny_young
from venire.reports.chart_data import ChartSource
from venire.reports.charts import draw_kind
from venire.reports.edits import EditContrast
from venire.reports.grades import GradeBoard
from venire.reports.plots import board_charts
from venire.reports.tables import RowTable, html_table
from venire.reports.wording import alike_text, coins_text, elo_text, open_intervals_text, pairs_asked_text

_SECONDS = 1.0
"""Time limit for each of the board's two orders of all models; the board reports what is not proved by then."""


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One model: its rating, standard error and interval in Elo points, None where no estimate exists.

    A model that won or lost everything has no rating, and an interval with one end. `logit` is the rating in log odds,
    `rank_lo` to `rank_hi` the ranks it may have at the board's level (1 is best), `battles` the number of its
    judgments. Models of one `tier` are not separated from the tier's first; `best` is the probability that the model's
    true rating is the highest. `group` counts from 1 and is None where all models were rated together; `reference` is a
    rating known in advance; `figures` are specific to the method. `position` is the place in the order of a method that
    gives an order, equal models at their mean; otherwise None. `accuracy` is the share of attempted answers that were
    graded correct, with its interval, and `not_attempted` the share of graded answers that were not attempted.
    """

    model: str
    elo: float | None
    logit: float | None
    lo: float | None
    hi: float | None
    se: float | None
    rank_lo: int | None
    rank_hi: int | None
    battles: int
    tier: int | None = None
    best: float | None = None
    group: int | None = None
    reference: float | None = None
    position: float | None = None
    accuracy: float | None = None
    accuracy_lo: float | None = None
    accuracy_hi: float | None = None
    not_attempted: float | None = None
    figures: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Board(RowTable):
    """Models by descending Elo or by position, judges by name.

    `verdicts` is the origin of the verdicts, None where there are no verdicts. `judge_figures` are the method's
    figures of judges, by figure and by judge: None for a judge that it did not use. `ordered` is true for a method
    that gives an order and no ratings. `grades` is what judges of single completions said, None where there are none;
    `edits` are the contrasts of edited completions. `evidence` holds the verdicts behind it, for `plot`.
    """

    method: str
    gauge: str
    verdicts: str | None
    models: tuple[ModelRow, ...]
    judges: tuple[JudgeConsistency, ...]
    diagnostics: Mapping[str, Any]
    judge_figures: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    ordered: bool = False
    grades: GradeBoard | None = None
    edits: tuple[EditContrast, ...] = ()
    evidence: ChartSource | None = field(default=None, compare=False, repr=False)

    def to_json(self) -> dict[str, Any]:
        """The board as plain JSON values, floats rounded to six decimals, so that equal boards have equal bytes.

        A model has `group` only where there are several groups, `reference` only where a reference is known, `position`
        only under a method that gives an order, and `accuracy` only where it was graded; the board has `grades` only
        where there are grades.
        """
        board = {
            "method": self.method,
            "gauge": self.gauge,
            "verdicts": self.verdicts,
            "models": [_model_json(row, self.ordered) for row in self.models],
            "judges": [
                {**asdict(row), **{name: figure[row.judge] for name, figure in self.judge_figures.items()}}
                for row in self.judges
            ],
            "diagnostics": self.diagnostics,
        }
        if self.grades is not None:
            board["grades"] = self.grades.to_json()
        if self.edits:
            board["edits"] = [asdict(one) for one in self.edits]
        rounded: dict[str, Any] = _rounded(board)
        return rounded

    @property
    def unrated(self) -> tuple[str, ...]:
        """The models that took part in judgments and have no rating, though the method gives ratings."""
        return tuple(row.model for row in self.models if row.elo is None and row.battles and not self.ordered)

    def rows(self) -> list[dict[str, Any]]:
        """The models, best first: one flat dict each, with every figure of `ModelRow` and of the method, not rounded.

        The keys are the same for every model and board of one method; a figure that is not known is None.
        """
        plain = [asdict(row) for row in self.models]
        return [{**{name: row[name] for name in _COLUMNS}, **row["figures"]} for row in plain]

    def plot(self, kind: str) -> Any:
        """A chart as altair shows it in a notebook, of the `reports.charts.CHART_KINDS` that this board has data for.

        leaderboard, intervals (with ranks and known ratings), matrix (wins of pairs), judges, position, reliability
        (scores against labels of people), calibration (held-out judgments against ratings), learning (ratings as
        verdicts came in) and cost. Raises InputError for another kind, naming those that it draws, and where altair is
        not installed.

        >>> board.plot("leaderboard").save("leaderboard.html")  # doctest: +SKIP
        """
        level = self.diagnostics["level"]
        kinds = board_charts(self.rows(), self.judges, self.evidence, method=self.method, level=level)
        return draw_kind("this board", kind, kinds)

    def _table(self) -> tuple[list[dict[str, Any]], dict[str, type]]:
        figures = dict.fromkeys(self.models[0].figures if self.models else (), float)
        return self.rows(), {**_COLUMNS, **figures}

    def _repr_html_(self) -> str:
        """The models as an HTML table for notebooks, with all texts escaped."""
        heads = ["", "model", "position" if self.ordered else "Elo", f"{100 * self.diagnostics['level']:g} %"]
        heads += ["rank", "judgments"]
        lines = [
            [f"{place}", row.model, *_html_figures(row, self.ordered), f"{row.battles}"]
            for place, row in enumerate(self.models, start=1)
        ]
        more = {
            "accuracy": ["" if row.accuracy is None else f"{row.accuracy:.1%}" for row in self.models],
            "group": [f"{row.group or ''}" for row in self.models],
        }
        for name, column in more.items():
            if any(column):
                heads.append(name)
                lines = [[*line, cell] for line, cell in zip(lines, column, strict=True)]
        notes = [self.diagnostics["coins"]["says"]] if "coins" in self.diagnostics else []
        notes += (self.diagnostics.get("source") or {}).get("notes", ())
        notes += [f"{self.method}, {self.gauge}; verdicts: {self.verdicts or 'none'}"]
        notes += [self.diagnostics["reason"]] if self.diagnostics["reason"] else []
        notes += [said for said in (open_intervals_text(self.diagnostics), pairs_asked_text(self.diagnostics)) if said]
        notes += self.diagnostics.get("notes", ())
        notes += [f"no rating: {name}: {reason}" for name, reason in self.diagnostics["no_estimate"].items()]
        if self.unrated:
            notes.append("ridge=0.1 (bradley-terry), a weak prior, gives every model a rating")
        return html_table(heads, lines, notes)


_COLUMNS: dict[str, type] = {
    "model": str,
    **dict.fromkeys(("elo", "logit", "lo", "hi", "se"), float),
    **dict.fromkeys(("rank_lo", "rank_hi", "battles", "tier"), int),
    "best": float,
    "group": int,
    "reference": float,
    "position": float,
    **dict.fromkeys(("accuracy", "accuracy_lo", "accuracy_hi", "not_attempted"), float),
}
"""Columns of a board as a table, in order: those of `ModelRow`, but for the method's own figures, which follow."""


_OF_GRADES = ("accuracy", "accuracy_lo", "accuracy_hi", "not_attempted")


def with_grades(board: Board, grades: GradeBoard) -> Board:
    """A board with its part from grades; where no verdict rates models, its models are those graded, by accuracy."""
    table = grades.accuracy
    if table is None:
        return replace(board, grades=grades)
    rows = {row.model: row for row in table.models}
    models = board.models
    if not models and not sum(board.diagnostics["statuses"].values()):
        models = tuple(ModelRow(name, *(None,) * 7, 0) for name in rows)
    graded = [
        replace(
            model,
            accuracy=rows[model.model].accuracy,
            accuracy_lo=rows[model.model].lo,
            accuracy_hi=rows[model.model].hi,
            not_attempted=rows[model.model].not_attempted,
        )
        if model.model in rows
        else model
        for model in models
    ]
    return replace(board, models=tuple(graded), grades=grades)


def _html_figures(row: ModelRow, ordered: bool) -> list[str]:
    """The rating or place of a model, its interval and its ranks, empty where not known."""
    first = (
        elo_text(row.elo, row.lo, row.hi) if not ordered else "none" if row.position is None else f"{row.position:.4g}"
    )
    interval = "" if row.elo is None else interval_text(row.lo, row.hi)
    ranks = "" if row.rank_lo is None or row.rank_hi is None else f"{row.rank_lo} to {row.rank_hi}"
    return [first, interval, ranks if row.rank_lo != row.rank_hi else f"{row.rank_lo or ''}"]


_SAME_UNIT = 1.5
"""Ratings spread this many times as wide as the reference's, or as narrow, are in another unit than it."""

_RATES = ("win-rate", "win-rate-balanced")
"""Methods whose Elo is performance against the field: a bound of the strength behind wins is not on that scale."""


def build(
    battles: Battles,
    *,
    reference: Mapping[str, float] | None = None,
    origins: Collection[Origin],
    method: str = "bradley-terry",
    options: Options | None = None,
    families: Mapping[str, str] | None = None,
    judge_families: Mapping[str, str] | None = None,
    judge_elo: Mapping[str, float] | None = None,
) -> Board:
    """Rate the models and measure the judges of one table of verdicts.

    `reference` holds known Elo points by model, `origins` the origins of the verdicts, `families` and
    `judge_families` the family of each model and judge, `judge_elo` the known Elo of the judges themselves. Where
    no common estimate exists, each group of models is rated separately and the diagnostics name the groups; a model
    alone in its group has no Elo. Raises `InputError` for verdicts of several origins or of none, for an unknown
    method, an option that it does not take or a column that it lacks, and for a table that cannot be read.
    """
    chosen = options or Options()
    origin = _one_origin(battles, origins)
    judgments = merge_selected(battles, chosen)
    rated = rate(battles, method, chosen) if len(judgments) else _nothing(judgments)
    judges = consistency(
        battles,
        families=families,
        judge_families=judge_families,
        elo=reference,
        level=chosen.level,
    )
    met = _agreement(rated, reference, chosen.level)
    measured = judges.judges if len(battles.status) else ()
    return Board(
        method=method,
        gauge=rated.ratings.gauge,
        verdicts=origin,
        models=_model_rows(judgments, rated, reference or {}, outside_ratings(judgments, rated, chosen.level)),
        judges=measured,
        judge_figures=_judge_figures(rated, [row.judge for row in measured]),
        ordered=rated.position is not None,
        evidence=ChartSource(battles, method, chosen),
        diagnostics={
            "reason": None if len(judgments) else "there is no readable verdict to rate from",
            **_counts(battles, judgments, rated, chosen),
            **_errors(rated, chosen, judges, judgments),
            "groups": [list(group) for group in rated.groups],
            "pairs": _pairs(judgments),
            "fits": list(rated.fits),
            "no_estimate": dict(rated.reasons),
            **_with_notes(rated.diagnostics, alike_text(battles.models)),
            "agreement": _agreement_json(met, origin, rated),
            "agreement_reason": met.reason,
            **_judges_by_elo(judges, judge_elo or {}, origin),
            **_people_facts(judgments, battles.people, chosen),
            **_coin_facts(battles, chosen),
            **peer_facts(judgments, select_verdicts(battles, chosen).ballots, battles.peers, chosen.level),
        },
    )


def _with_notes(facts: Mapping[str, Any], *notes: str | None) -> dict[str, Any]:
    """A method's diagnostics with more notes before its own."""
    found = [note for note in notes if note]
    return {**facts, "notes": [*found, *facts.get("notes", ())]} if found else dict(facts)


def _pairs(judgments: Judgments) -> dict[str, float | int | None]:
    """How many pairs were asked of how many, and their coverage: 1 where all were asked equally often."""
    data = judgments.comparisons()
    possible = len(data.models) * (len(data.models) - 1) // 2
    if not len(data):
        return {"asked": 0, "possible": possible, "coverage": None}
    found = pair_coverage(data)
    return {"asked": found.seen, "possible": possible, "coverage": finite_or_none(found.balance)}


def _one_origin(battles: Battles, origins: Collection[Origin]) -> str | None:
    words = sorted({origin.value for origin in origins})
    if len(words) > 1:
        raise InputError(f"the verdicts are of several origins ({', '.join(words)}); rate one origin at a time")
    if not words and len(battles.status):
        raise InputError("the origin of the verdicts is not given; name it: real, simulated, recorded or people")
    return words[0] if words else None


def _nothing(judgments: Judgments) -> Rated:
    return unrated(judgments.comparisons(), dict.fromkeys(judgments.models, "took part in no readable judgment"))


def outside_ratings(judgments: Judgments, rated: Rated, level: float) -> Mapping[str, OneSided]:
    """The models wholly above or below the largest group of rated models, and the bounds of their ratings."""
    group = largest_group(rated)
    if group is None or rated.position is not None or _turned(rated):
        return {}
    elo = np.where(rated.group == group, rated.ratings.elo, math.nan)
    if np.isfinite(elo).all():
        return {}
    found = one_sided(judgments.comparisons(), elo, level=level)
    if rated.ratings.method in _RATES:
        return {name: replace(side, bound=None) for name, side in found.items()}
    return found


def _turned(rated: Rated) -> bool:
    """Whether a judge is taken to mean the opposite of its verdicts: wins then do not tell who is above whom."""
    return any((column < 0).any() for name, column in rated.judge_figures.items() if name == "ability")


def order_by_wins(judgments: Judgments, rated: Rated) -> Mapping[str, int]:
    """The number, by model, of its set of models joined by wins both ways; a set that only beats another is before it.

    It orders models that have no rating on one scale. Empty where all have one, where a method gives an order itself,
    and where wins do not tell.
    """
    if rated.position is not None or _turned(rated) or (len(rated.groups) < 2 and np.isfinite(rated.ratings.elo).all()):
        return {}
    groups = strong_components_of(win_counts(judgments.comparisons()))
    return {judgments.models[code]: number for number, codes in enumerate(groups, start=1) for code in codes.tolist()}


def _model_rows(
    judgments: Judgments, rated: Rated, reference: Mapping[str, float], outside: Mapping[str, OneSided]
) -> tuple[ModelRow, ...]:
    sides = np.concatenate([judgments.model_a, judgments.model_b])
    battles = np.bincount(sides, minlength=len(judgments.models)).tolist()
    count = dict(zip(judgments.models, battles, strict=True))
    found = rated.ratings
    rows = [
        ModelRow(
            model=name,
            elo=finite_or_none(found.elo[place]),
            logit=finite_or_none(found.logits[place]),
            lo=finite_or_none(rated.lo[place]),
            hi=finite_or_none(rated.hi[place]),
            se=finite_or_none(rated.se[place]),
            rank_lo=int(rated.rank_lo[place]) or None,
            rank_hi=int(rated.rank_hi[place]) or None,
            battles=count[name],
            tier=int(rated.tier[place]) or None,
            best=finite_or_none(rated.best[place]),
            group=int(rated.group[place]) if len(rated.groups) > 1 else None,
            reference=reference.get(name),
            position=None if rated.position is None else finite_or_none(rated.position[place]),
            figures={
                name: finite_or_none(column[place]) for name, column in rated.figures.items() if name != "position"
            },
        )
        for place, name in enumerate(found.models)
    ]
    rows = [_bounded(row, outside[row.model]) if row.model in outside and row.elo is None else row for row in rows]
    order = order_by_wins(judgments, rated)
    return tuple(sorted(rows, key=lambda row: _place(row, outside.get(row.model), order.get(row.model, 0))))


def _bounded(row: ModelRow, side: OneSided) -> ModelRow:
    """A model without a rating, with an interval that is open to the side on which it stands."""
    return replace(row, lo=side.bound) if side.above else replace(row, hi=side.bound)


def _place(row: ModelRow, side: OneSided | None, order: int) -> tuple[int, int, float, float, str]:
    """Sort key: side of the rated models, rating, then position.

    Values that print alike are tied, since the last bits must not decide. Groups wholly above or below the largest one
    are in the order of their wins: their ratings, each in a gauge of its own, cannot be compared.
    """
    tier = 0 if side is None else -1 if side.above else 1
    rating = math.inf if row.elo is None else -round(row.elo, 6)
    position = math.inf if row.position is None else round(row.position, 6)
    if side is None and row.elo is None and row.position is None:
        tier = 3 if row.battles == 0 else 2
    return tier, order if tier else 0, rating, position, row.model


def _model_json(row: ModelRow, ordered: bool) -> dict[str, Any]:
    plain = asdict(row)
    figures = plain.pop("figures")
    left_out = {name for name in ("group", "reference") if plain[name] is None} | (set() if ordered else {"position"})
    left_out |= {name for name in _OF_GRADES if plain[name] is None}
    return {**{key: value for key, value in plain.items() if key not in left_out}, **figures}


def _judge_figures(rated: Rated, judges: Sequence[str]) -> dict[str, dict[str, float | None]]:
    """The method's figures of judges, by figure and by judge; infinite values stay distinct from unknown values."""
    return {
        name: dict.fromkeys(judges)
        | {
            judge: None if math.isnan(value) else value
            for judge, value in zip(rated.judges, column.tolist(), strict=True)
            if judge in set(judges)
        }
        for name, column in rated.judge_figures.items()
    }


def _counts(battles: Battles, judgments: Judgments, rated: Rated, options: Options) -> dict[str, Any]:
    """Counts of the ratings' input: judgments, or verdicts where a method counts a flip as two; flips in both cases."""
    flips_as = rated.diagnostics.get("flips_as", options.flips)
    rows = merge_orders(select_verdicts(battles, options), "none") if flips_as == "two verdicts" else judgments
    return {
        "merge": rows.merge if rows.merged else "none",
        "flips_as": flips_as,
        "judgments": len(rows),
        "statuses": {status.name.lower(): int(np.count_nonzero(battles.status == status)) for status in Status},
        "ties": rows.ties,
        "flips": judgments.flips,
        "one_order": rows.one_order,
        "unreadable": rows.unreadable,
        **({} if battles.ballots is None else {"ballots": len(battles.ballots)}),
        **_voices(battles, options),
    }


def _voices(battles: Battles, options: Options) -> dict[str, Any]:
    """Number of excluded verdicts, and the weights of judges; empty where every verdict counts once."""
    found: dict[str, Any] = {}
    if options.own_votes == "exclude":
        kept = select_verdicts(battles, replace(options, judge_weights={}))
        found["own_left_out"] = len(battles.status) - len(kept.status)
    if options.judge_weights:
        found["judge_weights"] = dict(sorted(options.judge_weights.items()))
    return found


def _errors(rated: Rated, options: Options, judges: Consistency, judgments: Judgments) -> dict[str, Any]:
    """How intervals were computed: those of ratings, by bootstrap or not, and those of judges, by jackknife."""
    degrees, units = rated.ratings.degrees, "clusters" if judgments.clusters else "instructions"
    # Independent rows are resampled one by one, but a ballot is resampled as a whole.
    drawn = units if judgments.clustered else "ballots"
    return {
        "errors": rated.ratings.errors.replace("instructions", drawn),
        "cluster": units,
        "level": options.level,
        "degrees": finite_or_none(degrees),
        "bootstrap": {
            "replicates": options.replicates,
            "without_estimate": rated.without_estimate,
            "seed": options.seed,
        },
        "jackknife": {"unit": judges.left_out, "units": judges.units, "level": judges.level},
    }


def _agreement(rated: Rated, reference: Mapping[str, float] | None, level: float) -> Agreement:
    """Agreement with the reference within the largest rated group: differences between groups are unknown.

    For an order, negated places are compared with the reference, so that higher is better.
    """
    group = largest_group(rated)
    if not reference:
        return Agreement(None, None, None, 0, "no reference ratings are known")
    if group is None:
        return Agreement(None, None, None, 0, "no model could be rated")
    return agreement(ranked_values(rated), reference, level=level)


def _agreement_json(met: Agreement, origin: str | None, rated: Rated) -> dict[str, Any] | None:
    if met.spread is None:
        return None
    placed = rated.position is not None  # places are not ratings: only their order can agree
    same = not placed and 1.0 / _SAME_UNIT <= met.spread <= _SAME_UNIT
    known = {name: interval for name, interval in met.intervals.items() if name in ("pearson", "spearman", "kendall")}
    figures: dict[str, Any] = {
        "pearson": None if placed else met.pearson,
        "spearman": met.spearman,
        "kendall": met.kendall,
        "mae": met.mae if same else None,
        "mae_line": None if placed else met.mae_line,
        "spread": None if placed else met.spread,
        "models": met.models,
        "intervals": {name: list(one) for name, one in known.items() if name != "pearson" or not placed},
        "level": met.level,
    }
    group = largest_group(rated)
    if len(rated.groups) > 1 and group is not None:
        figures["group"] = group
    return {**figures, "verdicts": origin}


def _judges_by_elo(judges: Consistency, elo: Mapping[str, float], origin: str | None) -> dict[str, Any]:
    """How well each score of the judges predicts their own Elo; empty where too few judges have an Elo."""
    if sum(row.judge in elo for row in judges.judges) < FEWEST_FOR_CORRELATION:
        return {}
    found = [elo_from_consistency(judges, elo, score=score) for score in get_args(Score)]
    return {"elo_from_consistency": [{**asdict(one), "verdicts": origin} for one in found]}


def _coin_facts(battles: Battles, options: Options) -> dict[str, Any]:
    """The judges of the board that nothing shows to decide better than a coin; empty where there is none."""
    coins = [one for one in order_agreement(select_verdicts(battles, options), level=options.level) if one.is_coin]
    return {"coins": {"judges": [asdict(one) for one in coins], "says": coins_text(coins)}} if coins else {}


_UNBOUNDED = (
    f"no interval of a kappa or an alpha over fewer than {FEWEST_DRAWN} instructions, nor an end where drawn votes "
    "leave it undefined: two votes that agree would bound it by 1 and 1"
)


def _people_facts(judgments: Judgments, people: Battles | None, options: Options) -> dict[str, Any]:
    """Agreement of judges with people's votes, as plain JSON values; empty where there are none."""
    if people is None or not (len(people.label) and judgments.instructions):
        return {}
    found = people_agreement(judgments, people, seed=options.seed)
    each = [one.kappa for one in (*found.judges, *found.annotators, *([found.together] if found.together else ()))]
    unbounded = any(one.value is not None and None in (one.lo, one.hi) for one in (*each, found.alpha, found.among))
    return {
        "people": {
            "judges": [{"judge": one.judge, **_beside_people(one)} for one in found.judges],
            "each": [{"annotator": one.judge, **_beside_people(one)} for one in found.annotators],
            "together": None if found.together is None else _beside_people(found.together),
            "alpha": coefficient_json(found.alpha),
            "alpha_among_people": coefficient_json(found.among),
            **({"note": _UNBOUNDED} if unbounded else {}),
        }
    }


def _beside_people(one: JudgeAndPeople) -> dict[str, Any]:
    return {
        "battles": one.battles,
        "votes": one.votes,
        "decided": one.decided,
        "agreement": one.agreement,
        "agreement_lo": one.agreement_lo,
        "agreement_hi": one.agreement_hi,
        "kappa": coefficient_json(one.kappa),
    }


def coefficient_json(found: Coefficient) -> dict[str, Any]:
    """A coefficient of agreement with its interval, as plain JSON values."""
    return {"value": found.value, "lo": found.lo, "hi": found.hi, "items": found.items}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 6) + 0.0 if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _rounded(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(entry) for entry in value]
    return value


def peer_facts(judgments: Judgments, ballots: Ballots | None, peers: Mapping[str, str], level: float) -> dict[str, Any]:
    """`peers` as plain JSON values, where at least two judges are models and one of them judged itself; else empty."""
    own = model_of_judge(judgments.judges, judgments.models, peers)
    there = own[np.unique(judgments.judge)]
    judge = own[judgments.judge]
    itself = (judge == judgments.model_a) | (judge == judgments.model_b)
    if np.count_nonzero(there >= 0) < 2 or not itself.any():
        return {}
    given = judgments if ballots is None else ballots
    found = peer_evaluation(given, partial(kemeny_young, seconds=_SECONDS), peers=peers, micro=False, level=level)
    return {
        "peers": {
            "unit": found.unit,
            "level": found.level,
            "left_out": found.left_out,
            "held": list(found.held),
            "models": [_peer_row(one) for one in found.models],
            "warnings": list(found.warnings),
        }
    }


def _peer_row(one: PeerRow) -> dict[str, Any]:
    gap, odds = one.gap, one.odds
    return {
        "model": one.model,
        "judges": list(one.judges),
        "self_evaluation": one.self_evaluation,
        "peer_evaluation": one.peer_evaluation,
        "se_minus_pe": gap.value,
        "se_minus_pe_se": gap.se,
        "se_minus_pe_lo": gap.lo,
        "se_minus_pe_hi": gap.hi,
        "instructions": gap.instructions,
        "own_odds": odds.value,
        "own_odds_se": odds.se,
        "own_odds_lo": odds.lo,
        "own_odds_hi": odds.hi,
        "own_odds_reason": odds.reason,
        "slope": odds.slope,
        "sie": one.sie,
        "sfe": one.sfe,
        "sie_minus_sfe": one.moved,
    }
