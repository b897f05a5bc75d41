"""The part of a board that comes from grades of single completions: accuracy, what was not attempted, echoes.

Source: Remeli and Hardt 2026, *Correct Looks Better: Pairwise Comparisons Reveal Accuracy Rankings*, arXiv 2606.09409.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import GOLD, Grades
from venire.arena.errors import InputError
from venire.arena.records import AnswerGrade, Status
from venire.ratings.data.clustered import FEWEST_RESPONDENTS, clustered_mean
from venire.ratings.diagnostics.accuracy import direct_accuracy
from venire.ratings.diagnostics.corrected_accuracy import GraderErrors, corrected_accuracy
from venire.reports.graded_pairs import DIRECT, ECHO, REFERENCE, of_protocol
from venire.reports.wording import estimand_text

_FIRST = (GOLD, REFERENCE, DIRECT)
"""Protocols whose grades are nearest to the truth, in this order; others follow by name."""


@dataclass(frozen=True, slots=True)
class ShareRow:
    """A share of `rows` with its standard error and interval; None where there are too few rows for a figure."""

    share: float | None
    se: float | None
    lo: float | None
    hi: float | None
    rows: int


@dataclass(frozen=True, slots=True)
class CorrectedShare:
    """A share corrected for a judge's errors, with its interval; None where it is not known."""

    share: float | None
    lo: float | None
    hi: float | None


@dataclass(frozen=True, slots=True)
class GoldLabels:
    """What answers of known truth say of judges: their `errors`, or the `reason` why these are not known."""

    labels: int
    errors: GraderErrors | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class AccuracyRow:
    """One model's grades: `accuracy` is the share correct among attempted answers, with its interval `lo` to `hi`.

    `correct`, `attempted` and `graded` count grades that were read, over all judges and repeats, `unparsed` those that
    were not; `not_attempted` is the share of graded answers. `categories` holds the accuracy in each category,
    `corrected` what it is if the judges' errors on answers of known truth are taken into account.
    """

    model: str
    accuracy: float | None
    se: float | None
    lo: float | None
    hi: float | None
    correct: int
    attempted: int
    graded: int
    not_attempted: float | None
    unparsed: int
    categories: Mapping[str, ShareRow] = field(default_factory=dict)
    corrected: CorrectedShare | None = None

    @property
    def parse_rate(self) -> float:
        """Share of the replies about this model's answers that were read."""
        asked = self.graded + self.unparsed
        return self.graded / asked if asked else 0.0


@dataclass(frozen=True, slots=True)
class AccuracyTable:
    """Accuracy by one protocol, the most accurate model first; `instructions` counts those with a grade.

    `categories` are those of the instructions, empty where there are fewer than two. `gold` is what answers of known
    truth say of the judges; None without any. `crossed` says whether errors are two-way, by instruction and by judge.
    """

    protocol: str
    judges: tuple[str, ...]
    instructions: int
    models: tuple[AccuracyRow, ...]
    categories: tuple[str, ...] = ()
    gold: GoldLabels | None = None
    crossed: bool = False

    @property
    def accuracy(self) -> dict[str, float]:
        """Accuracy by model, of those that attempted any answer."""
        return {row.model: row.accuracy for row in self.models if row.accuracy is not None}


@dataclass(frozen=True, slots=True)
class GraderRow:
    """One judge of single completions: its grades over all models, each None where it gave none.

    `yes` is the share of attempted answers that it took for correct, or of answers that it found to echo.
    """

    judge: str
    protocol: str
    yes: float | None
    not_attempted: float | None
    graded: int
    unparsed: int
    accuracy: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class RankAgreementRow:
    """How far some ratings and accuracy agree over the models that have both; a figure is None where undefined.

    `ratings` names them; `judgments` counts those that they come from, `share` of all, both None of ratings that do not
    come from pairs. `distance` is (1 - tau) / 2; `intervals` are about other models of the same kind. `reason` says why
    there is no figure.
    """

    ratings: str
    judgments: int | None
    share: float | None
    models: int
    kendall: float | None = None
    spearman: float | None = None
    pearson: float | None = None
    distance: float | None = None
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    reason: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AccuracyFilter:
    """Models fit for a ranking by accuracy, those dropped with the reason, and the agreement among those kept.

    `agreement` is None where none was dropped, since it is that of all pairs then.
    """

    baseline: float
    kept: tuple[str, ...]
    dropped: Mapping[str, str]
    agreement: RankAgreementRow | None = None

    @property
    def name(self) -> str:
        """What its ratings are called beside those of other filters."""
        return f"accuracy above {100 * self.baseline:g}%"


@dataclass(frozen=True, slots=True)
class JudgeRankAgreement:
    """A judge of pairs: how far ratings from its verdicts alone, and its own grades of answers, agree with accuracy.

    `direct` is None where the same model did not grade answers without the truth.
    """

    judge: str
    pairs: RankAgreementRow
    direct: RankAgreementRow | None


@dataclass(frozen=True, slots=True)
class RankAgreement:
    """Ratings by `method` held against the accuracy of `protocol`: from all pairs, from each kind, and of graders.

    `ungraded` is the share of verdicts on pairs of which an answer has no grade, and so no kind.
    """

    protocol: str
    method: str
    rows: tuple[RankAgreementRow, ...]
    ungraded: float
    filters: tuple[AccuracyFilter, ...] = ()
    judges: tuple[JudgeRankAgreement, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The rows as plain values, with the first of the `filters`, and all where there are several."""
        plain = asdict(self)
        filters = plain.pop("filters")
        return plain | {"filter": filters[0] if filters else None} | ({"filters": filters} if len(filters) > 1 else {})


@dataclass(frozen=True, slots=True)
class EchoRow:
    """One model's answers that go on after their end: `share` of those graded, over all judges and repeats."""

    model: str
    share: float | None
    se: float | None
    lo: float | None
    hi: float | None
    graded: int
    unparsed: int


@dataclass(frozen=True, slots=True)
class EchoPairs:
    """Judgments on pairs of a kind by whether an answer echoes: `one_echoes` is the share of pairs where one does.

    Of those, `clean` is how often the answer that does not echo was preferred (a tie counts one half).
    """

    pairs: str
    judgments: int
    one_echoes: float | None
    clean: ShareRow


@dataclass(frozen=True, slots=True)
class EchoTable:
    """Answers that go on after their end, by model, the most frequent first, and what judges of pairs make of them."""

    judges: tuple[str, ...]
    models: tuple[EchoRow, ...]
    pairs: tuple[EchoPairs, ...] = ()


@dataclass(frozen=True, slots=True)
class GradeBoard:
    """What grades say of the models of a board.

    `verdicts` is their origin, `campaigns` names the campaigns they were given in, `cluster` what intervals are
    clustered by. `tables` has one table for each protocol that grades answers, that nearest to the truth first.
    `agreement` is None where no verdicts on pairs or lists rate models.
    """

    verdicts: str | None
    campaigns: tuple[str, ...]
    level: float
    cluster: str
    tables: tuple[AccuracyTable, ...]
    graders: tuple[GraderRow, ...]
    notes: tuple[str, ...] = ()
    agreement: RankAgreement | None = None
    echo: EchoTable | None = None

    @property
    def accuracy(self) -> AccuracyTable | None:
        """The table that ratings are held against: by reference answers where there are grades of that kind."""
        return self.tables[0] if self.tables else None

    def estimand(self, table: AccuracyTable) -> str:
        """What the intervals of a table are about."""
        unit = "answers" if self.cluster == "none" else self.cluster
        respondents = "people" if table.protocol == GOLD else "judges"
        return estimand_text(unit, respondents, len(table.judges), crossed=table.crossed)

    def rows(self) -> list[dict[str, Any]]:
        """The grades as flat dicts, one for each protocol and model: `AccuracyRow` with its protocol, not rounded."""
        return [
            {"protocol": table.protocol, **{name: value for name, value in asdict(row).items() if name != "categories"}}
            for table in self.tables
            for row in table.models
        ]

    def to_json(self) -> dict[str, Any]:
        """The grades as plain values."""
        return {
            "verdicts": self.verdicts,
            "campaigns": list(self.campaigns),
            "level": self.level,
            "cluster": self.cluster,
            "accuracy": [_table_json(table) | {"estimand": self.estimand(table)} for table in self.tables],
            "judges": [asdict(row) for row in self.graders],
            "rank_agreement": None if self.agreement is None else self.agreement.to_json(),
            "echo": None if self.echo is None else asdict(self.echo),
            "notes": list(self.notes),
        }


def _table_json(table: AccuracyTable) -> dict[str, Any]:
    """A table; its models have `categories` only where there are several, `corrected` where there are gold labels.

    Its estimand says whether it is crossed.
    """
    plain = asdict(table)
    del plain["crossed"]
    left_out = {*(() if table.categories else ("categories",)), *(() if table.gold else ("corrected",))}
    plain["models"] = [{name: value for name, value in row.items() if name not in left_out} for row in plain["models"]]
    if table.gold is None:
        del plain["gold"]
    return plain


def grade_board(
    grades: Grades,
    *,
    verdicts: str | None,
    campaigns: Sequence[str] = (),
    level: float = 0.95,
    notes: Iterable[str] = (),
) -> GradeBoard:
    """Accuracy of each model by each protocol, from the grades of single completions.

    Errors are clustered by instruction, since a hard one is hard for all, and by judge where five or more graded every
    model. Raises `InputError` for a level outside (0, 1).
    """
    asked = sorted(set(grades.protocols) - {ECHO}, key=lambda name: (*(name != one for one in _FIRST), name))
    return GradeBoard(
        verdicts=verdicts,
        campaigns=tuple(campaigns),
        level=level,
        cluster="none" if grades.clustering == "none" else "instructions",
        tables=tuple(_accuracy_table(grades, name, level) for name in asked),
        graders=tuple(_grader(grades, code) for code, one in enumerate(grades.protocols) if one != GOLD),
        notes=tuple(notes),
        echo=_echo_table(grades, level) if ECHO in grades.protocols else None,
    )


def _echo_table(grades: Grades, level: float) -> EchoTable:
    asked = of_protocol(grades, ECHO)
    read = asked & (grades.status == Status.OK)
    found = _by_model(grades, read, level)
    rows = []
    for code in np.unique(grades.model[asked]).tolist():
        name = grades.models[code]
        share = _share_row(found.get(name))
        lost = int(np.count_nonzero(asked & ~read & (grades.model == code)))
        rows.append(EchoRow(name, share.share, share.se, share.lo, share.hi, share.rows, lost))
    rows.sort(key=lambda row: (1.0 if row.share is None else -round(row.share, 6), row.model))
    judges = (name for name, one in zip(grades.judges, grades.protocols, strict=True) if one == ECHO)
    return EchoTable(tuple(judges), tuple(rows))


def _accuracy_table(grades: Grades, protocol: str, level: float) -> AccuracyTable:
    asked = of_protocol(grades, protocol)
    read = asked & (grades.status == Status.OK)
    categories = _categories(grades, read)
    of_category = np.array([categories.index(name) if categories else 0 for name in _named(grades, categories)])
    by_category = {
        name: _by_model(grades, read & (of_category[grades.instruction] == code), level)
        for code, name in enumerate(categories)
    }
    unparsed = np.bincount(grades.model[asked & ~read], minlength=len(grades.models))
    gold, corrected = _corrected(grades, read & (grades.label != AnswerGrade.NOT_ATTEMPTED), level)
    rows = [
        AccuracyRow(
            **found,
            unparsed=int(unparsed[grades.models.index(model)]),
            corrected=corrected.get(model),
            categories={name: _share_row(those.get(model)) for name, those in by_category.items()},
        )
        for model, found in _by_model(grades, read, level).items()
    ]
    rows += [
        AccuracyRow(grades.models[code], None, None, None, None, 0, 0, 0, None, int(unparsed[code]))
        for code in np.flatnonzero(unparsed).tolist()
        if grades.models[code] not in {row.model for row in rows}
    ]
    return AccuracyTable(
        protocol=protocol,
        judges=tuple(name for name, one in zip(grades.judges, grades.protocols, strict=True) if one == protocol),
        instructions=len(np.unique(grades.instruction[read])),
        models=tuple(sorted(rows, key=_place)),
        categories=categories,
        gold=gold,
        crossed=_crossed(grades, read),
    )


def _corrected(
    grades: Grades, rows: NDArray[np.bool_], level: float
) -> tuple[GoldLabels | None, dict[str, CorrectedShare]]:
    """The judges' errors on answers of known truth, and each model's accuracy corrected for them, from some rows."""
    truth = np.full(len(grades), -1, dtype=np.int8) if grades.truth is None else grades.truth
    labels = int(np.count_nonzero(rows & (truth >= 0)))
    if not labels:
        return None, {}
    names = np.array(grades.models, dtype=np.str_)[grades.model[rows]]
    known = np.where(truth >= 0, truth, np.nan).astype(np.float64)[rows]
    clusters = None if grades.clustering == "none" else grades.instruction[rows]
    try:
        found = corrected_accuracy(names, grades.label[rows] == AnswerGrade.CORRECT, known, clusters, level=level)
    except InputError as error:
        return GoldLabels(labels, None, str(error)), {}
    figures = zip(found.models, found.accuracy.tolist(), found.lo.tolist(), found.hi.tolist(), strict=True)
    shares = {name: CorrectedShare(*map(_known, values)) for name, *values in figures}
    return GoldLabels(labels, found.errors, None), shares


def _named(grades: Grades, categories: Sequence[str]) -> list[str]:
    """The category of each instruction; of one without a grade any, since none of its rows is used."""
    return [name if name in categories else (categories[0] if categories else "") for name in grades.categories]


def _place(row: AccuracyRow) -> tuple[float, str]:
    """Sort key: accuracy, highest first; shares that print alike stand by name."""
    return (float("inf") if row.accuracy is None else -round(row.accuracy, 6), row.model)


def _categories(grades: Grades, rows: NDArray[np.bool_]) -> tuple[str, ...]:
    """The categories of graded instructions in order, empty where there are fewer than two."""
    found = sorted({grades.categories[code] for code in np.unique(grades.instruction[rows]).tolist()})
    return tuple(found) if len(found) > 1 else ()


def _crossed(grades: Grades, rows: NDArray[np.bool_]) -> bool:
    """Whether enough judges graded every model's attempted answers to show how others differ."""
    tried = rows & (grades.label != AnswerGrade.NOT_ATTEMPTED)
    model, _ = np.unique([grades.model[tried], grades.judge[tried]], axis=1)
    judges = np.bincount(model)
    return grades.clustering == "crossed" and bool(judges[judges > 0].min(initial=len(tried)) >= FEWEST_RESPONDENTS)


def _by_model(grades: Grades, rows: NDArray[np.bool_], level: float) -> dict[str, dict[str, Any]]:
    """The figures of `AccuracyRow` by model, from some rows."""
    names = np.array(grades.models, dtype=np.str_)[grades.model[rows]]
    labels = grades.label[rows]
    cluster = None if grades.clustering == "none" else grades.instruction[rows]
    judge = grades.judge[rows] if _crossed(grades, rows) else None
    found = direct_accuracy(names, labels, cluster, judge, level=level)
    right = {name: int(np.count_nonzero(labels[names == name] == AnswerGrade.CORRECT)) for name in found.models}
    columns = [[_known(value) for value in getattr(found, name).tolist()] for name in ("accuracy", "se", "lo", "hi")]
    return {
        model: {
            "model": model,
            **dict(zip(("accuracy", "se", "lo", "hi"), figures, strict=True)),
            "correct": right[model],
            "attempted": attempted,
            "graded": graded,
            "not_attempted": (graded - attempted) / graded,
        }
        for model, attempted, graded, *figures in zip(
            found.models, found.attempted.tolist(), found.graded.tolist(), *columns, strict=True
        )
    }


def _share_row(found: Mapping[str, Any] | None) -> ShareRow:
    if found is None:
        return ShareRow(None, None, None, None, 0)
    return ShareRow(found["accuracy"], found["se"], found["lo"], found["hi"], found["attempted"])


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value


def _grader(grades: Grades, judge: int) -> GraderRow:
    own = grades.judge == judge
    read = own & (grades.status == Status.OK)
    tried = read & (grades.label != AnswerGrade.NOT_ATTEMPTED)
    graded = int(read.sum())

    def yes(rows: NDArray[np.bool_]) -> float | None:
        return clustered_mean(grades.label[rows] == AnswerGrade.CORRECT).value

    return GraderRow(
        judge=grades.judges[judge],
        protocol=grades.protocols[judge],
        yes=yes(tried),
        not_attempted=(graded - int(tried.sum())) / graded if graded else None,
        graded=graded,
        unparsed=int(own.sum()) - graded,
        accuracy={
            grades.models[code]: yes(tried & (grades.model == code)) for code in np.unique(grades.model[own]).tolist()
        },
    )
