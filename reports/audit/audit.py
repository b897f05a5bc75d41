"""When not to believe a board: every check of the data, in a fixed order, each with its deciding threshold.

A check is a function from a `Case` to a `Finding`. It raises where it cannot be made; the finding then reports the
reason. To add a check, write it in the module of its family in this package and add a line to `CHECKS`; docs/audit.md
gives the basis of each threshold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

from venire.arena.errors import InputError, VenireError
from venire.arena.records import Origin
from venire.reports.audit import bias, coverage, fit, influence, panel
from venire.reports.audit.finding import Case, Finding
from venire.reports.chart_data import ChartSource
from venire.reports.charts import draw_kind
from venire.reports.plots import verdict_charts
from venire.reports.tables import RowTable, html_table


@dataclass(frozen=True, slots=True)
class Check:
    """One check: its function, the harmless side of its threshold, the question it asks, and what else is harmless.

    `unless` is in words the condition under which a figure on the other side of the threshold is no worry, None where
    there is none.
    """

    run: Callable[[Case], Finding]
    harmless: Literal["at most", "at least"]
    asks: str
    unless: str | None = None


Word = Literal["worry", "unsure", "fine", "not made"]
"""What a finding comes to; `unsure` is a figure beyond its threshold that is no worry, such as one within chance."""


def word(finding: Finding) -> Word:
    """What a finding comes to, in one word."""
    if finding.worry is None:
        return "not made"
    if finding.worry:
        return "worry"
    check = CHECKS.get(finding.check)
    if check is None or finding.figure is None or finding.threshold is None or not math.isfinite(finding.figure):
        return "fine"
    beyond = finding.figure - finding.threshold
    return "unsure" if (beyond > 0.0 if check.harmless == "at most" else beyond < 0.0) else "fine"


@dataclass(frozen=True, slots=True)
class Audit(RowTable):
    """The findings of all checks, in the order of `CHECKS`; `verdicts` is the origin of the verdicts.

    `evidence` holds the verdicts, for `plot`.
    """

    findings: tuple[Finding, ...]
    verdicts: str
    rows: int
    models: int
    judges: int
    instructions: int
    level: float
    seed: int
    source: Mapping[str, Any] = field(default_factory=dict)
    note: str | None = None
    evidence: ChartSource | None = field(default=None, compare=False, repr=False)

    def _table(self) -> tuple[list[dict[str, Any]], dict[str, type]]:
        """The findings, one a row: what `to_json` has of them but for the details, not rounded."""
        rows: list[dict[str, Any]] = [
            {
                "check": one.check,
                "asks": CHECKS[one.check].asks if one.check in CHECKS else None,
                "word": word(one),
                "worry": one.worry,
                "figure": one.figure,
                "threshold": one.threshold,
                "harmless": CHECKS[one.check].harmless if one.check in CHECKS else None,
                "says": one.says,
            }
            for one in self.findings
        ]
        return rows, _COLUMNS

    def _repr_html_(self) -> str:
        """The findings as an HTML table for notebooks, worries first, with all texts escaped."""
        rows = sorted(self._table()[0], key=lambda row: _WORDS.index(row["word"]))
        lines = [
            [row["word"], row["check"], *(_number(row[name]) for name in ("figure", "threshold")), row["says"]]
            for row in rows
        ]
        read = f"{self.rows:,} verdicts on {self.models} models by {self.judges} judges"
        notes = [
            f"{read}; verdicts: {self.verdicts}",
            *self.source.get("notes", ()),
            *([self.note] if self.note else []),
        ]
        return html_table(["", "check", "figure", "threshold", "what it says"], lines, notes)

    def plot(self, kind: str) -> Any:
        """A chart of the verdicts as altair shows it in a notebook, of the kinds that there is data for.

        matrix, judges, position, reliability, calibration and learning, as of a board by Bradley-Terry
        (`Board.plot`). Raises InputError for another kind, naming those that it draws, and where altair is not
        installed.
        """
        return draw_kind("this audit", kind, verdict_charts(self.evidence))

    @property
    def worries(self) -> tuple[Finding, ...]:
        """The findings to worry about."""
        return tuple(one for one in self.findings if one.worry)

    def to_json(self) -> dict[str, Any]:
        """The audit as plain JSON values, floats rounded to six decimals; values that are not finite become null."""
        findings = [
            {
                "check": one.check,
                "worry": one.worry,
                "word": word(one),
                "figure": one.figure,
                "threshold": one.threshold,
                "harmless": CHECKS[one.check].harmless if one.check in CHECKS else None,
                "unless": CHECKS[one.check].unless if one.check in CHECKS else None,
                "says": one.says,
                "details": one.details,
            }
            for one in self.findings
        ]
        shown: dict[str, Any] = _plain(
            {
                "verdicts": self.verdicts,
                "rows": self.rows,
                "models": self.models,
                "judges": self.judges,
                "instructions": self.instructions,
                "level": self.level,
                "seed": self.seed,
                "source": self.source or None,
                "note": self.note,
                "worries": [one.check for one in self.worries],
                "findings": findings,
            }
        )
        return shown


_WORDS = get_args(Word)

_COLUMNS: dict[str, type] = {
    **dict.fromkeys(("check", "asks", "word"), str),
    "worry": bool,
    **dict.fromkeys(("figure", "threshold"), float),
    **dict.fromkeys(("harmless", "says"), str),
}
"""Columns of an audit as a table."""


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def audit(
    case: Case,
    *,
    origins: Collection[Origin] = (),
    checks: Collection[str] = (),
    source: Mapping[str, Any] | None = None,
    note: str | None = None,
    evidence: ChartSource | None = None,
) -> Audit:
    """Run the named checks, or all, on a case; `source` and `note` describe how its rows were read.

    `evidence` are its verdicts for charts.

    Raises `InputError` for an unknown check.
    """
    if strange := [name for name in checks if name not in CHECKS]:
        raise InputError(f"there is no check {strange[0]!r}; there are: {', '.join(CHECKS)}")
    chosen = {name: one for name, one in CHECKS.items() if not checks or name in checks}
    battles = case.battles
    return Audit(
        findings=tuple(_made(name, one, case) for name, one in chosen.items()),
        verdicts=", ".join(sorted(one.value for one in origins)) or "unknown",
        rows=len(battles.label),
        models=len(battles.models),
        judges=len(battles.judges),
        instructions=len(battles.instructions),
        level=case.options.level,
        seed=case.options.seed,
        source=source or {},
        note=note,
        evidence=evidence,
    )


def _made(name: str, check: Check, case: Case) -> Finding:
    try:
        return replace(check.run(case), check=name)
    except VenireError as error:
        return Finding(name, None, None, None, str(error))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return value


CHECKS: dict[str, Check] = {
    "connectivity": Check(coverage.check_connectivity, "at most", "Does one scale join all models?"),
    "coverage": Check(coverage.check_coverage, "at most", "Are battles spread evenly enough?", "certain enough"),
    "instructions": Check(coverage.check_instructions, "at least", "Are there enough for the errors?"),
    "complete": Check(coverage.check_complete, "at least", "Was what was planned judged?"),
    "unread": Check(coverage.check_unparsed, "at most", "Were the replies read?", "chance"),
    "unread-by-model": Check(coverage.check_unparsed_by_model, "at most", "Does a model lose more of them?", "chance"),
    "first-place": Check(coverage.check_first_place, "at least", "Would other instructions name the same winner?"),
    "separation": Check(coverage.check_separation, "at least", "Are the models told apart?"),
    "tie-rule": Check(coverage.check_ties, "at most", "Does the order hang on what a tie counts?"),
    "transitivity": Check(fit.check_transitivity, "at most", "Are there circles that chance does not make?", "chance"),
    "circle": Check(fit.check_circle, "at most", "Do three models beat one another in a circle?", "chance"),
    "fit": Check(fit.check_fit, "at most", "Does one number a model explain the wins?", "chance"),
    "single-pairs": Check(fit.check_single_pairs, "at most", "Do pairs meet as their ratings say?", "chance"),
    "smallest-removal": Check(
        influence.check_removal, "at least", "Do few judgments decide who wins?", "no winner yet"
    ),
    "single-instructions": Check(influence.check_instructions, "at most", "Does one weigh too much?", "usual"),
    "single-judges": Check(influence.check_judges, "at most", "Does the winner hang on one judge?", "chance"),
    "single-models": Check(influence.check_models, "at most", "Does it hang on who else takes part?", "chance"),
    "order-effects": Check(bias.check_order, "at most", "Do judges follow the place shown?", "chance"),
    "length": Check(bias.check_length, "at most", "Do longer answers win?", "chance"),
    "own-family": Check(bias.check_own_family, "at most", "Do judges favour their own?", "chance"),
    "drift": Check(panel.check_drift, "at most", "Do judges change while they judge?", "chance"),
    "better-than-coin": Check(panel.check_coins, "at least", "Does a judge decide better than a coin?"),
    "judge-agreement": Check(panel.check_agreement, "at least", "Does a judge go its own way?", "chance"),
    "alike-judges": Check(panel.check_alike, "at most", "Are two judges hardly more than one?", "chance"),
    "people-agreement": Check(panel.check_people, "at least", "Does a judge side with people?", "chance"),
}
