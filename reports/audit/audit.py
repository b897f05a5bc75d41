"""When not to believe a board: every check of the data, in a fixed order, each with its deciding threshold.

To add a check, declare it with `finding.check` in the module of its family in this package and name it in `CHECKS`;
docs/audit.md gives the basis of each threshold.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from venire.arena.errors import InputError
from venire.arena.records import Origin
from venire.arena.wording import suggest
from venire.reports.audit import bias, coverage, fit, influence, panel
from venire.reports.audit.finding import Case, Check, Finding
from venire.reports.board.source_sections import source_sections
from venire.reports.chart_data import ChartSource
from venire.reports.json_values import json_values
from venire.reports.plots import Plotted, plot
from venire.reports.sections import Block, Column, Gap, Paragraph, Severity, TextTable
from venire.reports.tables import RowTable
from venire.reports.wording import counted
from venire.storage.transfer.formats.source import ImportReading, TableReading

Word = Literal["worry", "unsure", "fine", "not made"]
"""What a finding comes to; `unsure` is a figure beyond its threshold that is no worry, such as one within chance."""


def word(finding: Finding) -> Word:
    """What a finding comes to, in one word."""
    if finding.worry is None:
        return "not made"
    if finding.worry:
        return "worry"
    if finding.figure is None or finding.threshold is None or not math.isfinite(finding.figure):
        return "fine"
    beyond = finding.figure - finding.threshold
    return "unsure" if (beyond > 0.0 if CHECKS[finding.check].harmless == "at most" else beyond < 0.0) else "fine"


@dataclass(frozen=True, slots=True, repr=False)
class Audit(RowTable):
    """The findings of all checks, in the order of `CHECKS`; `verdicts` is the origin of the verdicts.

    `read` is how many there are, and `evidence` holds them, for `plot`.
    """

    findings: tuple[Finding, ...]
    verdicts: str
    read: int
    models: int
    judges: int
    instructions: int
    level: float
    seed: int
    source: TableReading | ImportReading | None = None
    note: str | None = None
    evidence: ChartSource | None = field(default=None, compare=False)

    def rows(self) -> list[dict[str, Any]]:
        """The findings, one a row: what `to_json` has of them but for the details, not rounded."""
        return [
            {
                "check": one.check,
                "asks": CHECKS[one.check].asks,
                "word": word(one),
                "worry": one.worry,
                "figure": one.figure,
                "threshold": one.threshold,
                "harmless": CHECKS[one.check].harmless,
                "says": one.says,
            }
            for one in self.findings
        ]

    def _columns(self) -> dict[str, type]:
        return _COLUMNS

    def sections(self) -> Iterator[Block]:
        """The verdict in a sentence, what was read, and the findings, worries first."""
        counts = {"verdict": self.read, "model": self.models, "judge": self.judges, "instruction": self.instructions}
        read = ", ".join(counted(count, name) for name, count in counts.items())
        yield Paragraph(f"Audit   {read}   verdicts: {self.verdicts}")
        made, worries = sum(one.worry is not None for one in self.findings), len(self.worries)
        if worries:
            names = ", ".join(one.check for one in self.worries)
            yield Paragraph(f"{worries} of {made} checks {'worries' if worries == 1 else 'worry'}: {names}")
        else:
            yield Paragraph(f"none of {made} checks worries" if made else "no check could be made")
        if self.source is not None:
            yield from source_sections(self.source)
        if self.note:
            yield Paragraph(f"note: {self.note}")
        yield Gap()
        findings = sorted(self.findings, key=lambda one: WORDS.index(word(one)))
        columns = [
            Column("", [_MARKS[word(one)] for one in findings]),
            Column("check", [one.check for one in findings]),
            Column("figure", ["" if one.figure is None else _number(one.figure) for one in findings]),
            Column("harmless", [_bound(one) for one in findings]),
            Column("what was found", [one.says for one in findings], text=True),
        ]
        severities: list[Severity] = [
            "worry" if one.worry else "faint" if one.worry is None else "plain" for one in findings
        ]
        yield TextTable(columns, name=1, severities=severities, label="Checks")

    def plot(self, kind: str | None = None) -> Any:
        """A chart of the verdicts as altair shows it in a notebook; by default the first that there is data for.

        matrix, judges, position, reliability, calibration and learning, as of a board by Bradley-Terry
        (`Board.plot`). Raises InputError for another kind, naming those that it draws, and where altair is not
        installed.
        """
        return plot("audit", kind, Plotted(self.evidence))

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
                "harmless": CHECKS[one.check].harmless,
                "unless": CHECKS[one.check].unless,
                "says": one.says,
                "details": one.details,
            }
            for one in self.findings
        ]
        shown: dict[str, Any] = json_values(
            {
                "verdicts": self.verdicts,
                "rows": self.read,
                "models": self.models,
                "judges": self.judges,
                "instructions": self.instructions,
                "level": self.level,
                "seed": self.seed,
                "source": self.source,
                "note": self.note,
                "worries": [one.check for one in self.worries],
                "findings": findings,
            }
        )
        return shown


WORDS: tuple[Word, ...] = get_args(Word)
"""What findings come to, in the order in which readers see them: worries first."""

_COLUMNS: dict[str, type] = {
    **dict.fromkeys(("check", "asks", "word"), str),
    "worry": bool,
    **dict.fromkeys(("figure", "threshold"), float),
    **dict.fromkeys(("harmless", "says"), str),
}
"""Columns of an audit as a table."""


_MARKS: Mapping[Word, str] = {"worry": "WORRY", "unsure": "unsure", "fine": "fine", "not made": "-"}


def _bound(one: Finding) -> str:
    """On which side of which figure a check does not worry; nothing where there is no figure."""
    if one.threshold is None or one.figure is None:
        return ""
    check = CHECKS[one.check]
    sign = "<=" if check.harmless == "at most" else ">="
    return f"{sign} {_number(one.threshold)}" + (f" or {check.unless}" if check.unless else "")


def _number(value: float) -> str:
    return f"{value:,.0f}" if (float(value).is_integer() and abs(value) >= 1.0) or value == 0 else f"{value:.3g}"


def audit(
    case: Case,
    *,
    origins: Collection[Origin] = (),
    checks: Collection[str] = (),
    source: TableReading | ImportReading | None = None,
    note: str | None = None,
    evidence: ChartSource | None = None,
) -> Audit:
    """Run the named checks, or all, on a case; `source` and `note` describe how its rows were read.

    `evidence` are its verdicts for charts.

    Raises `InputError` for an unknown check.
    """
    battles = case.battles
    return Audit(
        findings=tuple(one(case) for one in chosen_checks(checks)),
        verdicts=", ".join(sorted(one.value for one in origins)) or "unknown",
        read=len(battles.label),
        models=len(battles.models),
        judges=len(battles.judges),
        instructions=len(battles.instructions),
        level=case.options.level,
        seed=case.options.seed,
        source=source,
        note=note,
        evidence=evidence,
    )


def chosen_checks(names: Collection[str]) -> list[Check]:
    """The named checks in the order of `CHECKS`, or all; raises `InputError` for an unknown one."""
    if unknown := [name for name in names if name not in CHECKS]:
        raise InputError(f"there is no check {unknown[0]!r}; {suggest(unknown[0], CHECKS)}")
    return [one for name, one in CHECKS.items() if not names or name in names]


CHECKS: dict[str, Check] = {
    one.name: one
    for one in (
        coverage.check_connectivity,
        coverage.check_coverage,
        coverage.check_instructions,
        coverage.check_complete,
        coverage.check_unparsed,
        coverage.check_unparsed_by_model,
        coverage.check_first_place,
        coverage.check_separation,
        coverage.check_ties,
        fit.check_transitivity,
        fit.check_circle,
        fit.check_fit,
        fit.check_single_pairs,
        influence.check_removal,
        influence.check_instructions,
        influence.check_judges,
        influence.check_models,
        bias.check_order,
        bias.check_length,
        bias.check_own_family,
        panel.check_drift,
        panel.check_coins,
        panel.check_agreement,
        panel.check_alike,
        panel.check_people,
    )
}
"""Every check by its name, in the order in which an audit makes them."""
