"""The record of a board: models and judges, with what the method and its diagnostics say of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from venire.ratings.judges.consistency import JudgeConsistency
from venire.reports.board.diagnostics import Diagnostics
from venire.reports.board.model_rows import ModelRow
from venire.reports.chart_data import ChartSource
from venire.reports.edits import EditContrast
from venire.reports.grades import GradeBoard


@dataclass(frozen=True, slots=True, repr=False)
class BoardRecord:
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
    diagnostics: Diagnostics
    judge_figures: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    ordered: bool = False
    grades: GradeBoard | None = None
    edits: tuple[EditContrast, ...] = ()
    evidence: ChartSource | None = field(default=None, compare=False)

    @property
    def unrated(self) -> tuple[str, ...]:
        """The models that took part in judgments and have no rating, though the method gives ratings."""
        return tuple(row.model for row in self.models if row.elo is None and row.battles and not self.ordered)
