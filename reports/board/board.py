"""The board: models by rating and judges by consistency, as a record, a table and a document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from venire.reports.board.model_rows import ModelRow
from venire.reports.board.record import BoardRecord
from venire.reports.board.sections import board_sections
from venire.reports.grades import GradeBoard
from venire.reports.json_values import json_values
from venire.reports.plots import Plotted, plot
from venire.reports.sections import Block
from venire.reports.tables import RowTable


class Board(BoardRecord, RowTable):
    """A board as a table, as a document, as charts, and as it is printed or shown in a notebook."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        """The board as plain JSON values, floats rounded to six decimals, so that equal boards have equal bytes.

        A model has `group` only where there are several groups, `reference` only where a reference is known, `position`
        only under a method that gives an order, and `accuracy` only where it was graded; the board has `grades` only
        where there are grades.
        """
        board: dict[str, Any] = {
            "method": self.method,
            "gauge": self.gauge,
            "verdicts": self.verdicts,
            "models": [_model_json(row, self.ordered) for row in self.models],
            "judges": [
                {**asdict(row), **{name: figure[row.judge] for name, figure in self.judge_figures.items()}}
                for row in self.judges
            ],
            "diagnostics": self.diagnostics.to_json(self.verdicts),
        }
        if self.grades is not None:
            board["grades"] = self.grades.to_json()
        if self.edits:
            board["edits"] = self.edits
        document: dict[str, Any] = json_values(board)
        return document

    def rows(self) -> list[dict[str, Any]]:
        """The models, best first: one flat dict each, with every figure of `ModelRow` and of the method, not rounded.

        The keys are the same for every model and board of one method; a figure that is not known is None.
        """
        plain = [asdict(row) for row in self.models]
        return [{**{name: row[name] for name in _COLUMNS}, **row["figures"]} for row in plain]

    def plot(self, kind: str | None = None) -> Any:
        """A chart as altair shows it in a notebook, of the kinds (`reports.plots.CHARTS`) that this board has data for.

        Without a kind it is the first of them that there is data for.

        leaderboard, intervals (with ranks and known ratings), matrix (wins of pairs), judges, position, reliability
        (scores against labels of people), calibration (held-out judgments against ratings), learning (ratings as
        verdicts came in) and cost. Raises InputError for another kind, naming those that it draws, and where altair is
        not installed.

        >>> board.plot().save("leaderboard.html")  # doctest: +SKIP
        """
        level = self.diagnostics.level
        return plot("board", kind, Plotted(self.evidence, self.rows(), self.judges, self.method, level))

    def _columns(self) -> dict[str, type]:
        return {**_COLUMNS, **dict.fromkeys(self.models[0].figures if self.models else (), float)}

    def sections(self) -> Iterator[Block]:
        """Models by rating and judges by consistency, with what a reader needs to doubt them."""
        return board_sections(self)


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
    if not models and not board.diagnostics.counts.verdicts:
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


def _model_json(row: ModelRow, ordered: bool) -> dict[str, Any]:
    plain = asdict(row)
    figures = plain.pop("figures")
    left_out = {name for name in ("group", "reference") if plain[name] is None} | (set() if ordered else {"position"})
    left_out |= {name for name in _OF_GRADES if plain[name] is None}
    return {**{key: value for key, value in plain.items() if key not in left_out}, **figures}
