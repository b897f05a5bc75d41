"""The models of a board's document: ranks and ties in words, what differences of ratings mean, and wins seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from venire.reports.numbers import count, number, share
from venire.reports.sections import Matrix, MatrixCell
from venire.reports.texts import name

POINTS = (50, 100, 200, 400)
"""Differences of ratings whose chances a page names."""


def expected(gap: float) -> float:
    """The chance that the model rated `gap` Elo points higher wins a battle, ties as halves.

    >>> round(expected(100.0), 2)
    0.64
    """
    return float(1.0 / (1.0 + 10.0 ** (-gap / 400.0)))


def rank_range(row: Mapping[str, Any]) -> str:
    """The places that a model may have.

    >>> rank_range({"rank_lo": 1, "rank_hi": 3}), rank_range({"rank_lo": 2, "rank_hi": 2}), rank_range({})
    ('1–3', '2', '–')
    """
    low, high = row.get("rank_lo"), row.get("rank_hi")
    return "–" if low is None else f"{low}" if low == high else f"{low}–{high}"


def tied(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Models that do not differ significantly from the first of their tier, where there are several.

    Groups of models that were rated apart have tiers of their own.
    """
    tiers: dict[tuple[int | None, int], list[str]] = {}
    for one in rows:
        if one.get("tier") is not None:
            tiers.setdefault((one.get("group"), one["tier"]), []).append(one["model"])
    return [names for names in tiers.values() if len(names) > 1]


def win_matrix(
    rows: Sequence[Mapping[str, Any]],
    pairs: Sequence[tuple[str, str, float, int]],
    *,
    address: Callable[[str, str], str] | None = None,
    numbered: bool = False,
) -> Matrix:
    """Of each model, best first, its share of wins against each other one in percent, and what the ratings expect.

    `pairs` are A, B, wins of A with ties as halves, and verdicts; `address` leads to those of two models.
    """
    seen: dict[tuple[str, str], tuple[float, int]] = {}
    for a, b, wins, verdicts in pairs:  # each order of two models has a line of its own where both were A
        before, known = seen.get((a, b), (0.0, 0))
        seen[a, b] = before + wins, known + verdicts
        seen[b, a] = known - before + verdicts - wins, known + verdicts

    def cell(one: Mapping[str, Any], other: Mapping[str, Any]) -> MatrixCell | None:
        model, opponent = one["model"], other["model"]
        if model == opponent:
            return None
        wins, verdicts = seen.get((model, opponent), (0.0, 0))
        rated = one.get("elo") is not None and other.get("elo") is not None
        likely = expected(one["elo"] - other["elo"]) if rated else None
        below = "" if likely is None else number(100 * likely, 0)
        if not verdicts:
            return MatrixCell("·", below)
        words = f"{name(model, 40)} against {name(opponent, 40)}: {share(wins / verdicts, 0)} of {count(verdicts)}"
        words += "" if likely is None else f", expected {share(likely, 0)}"
        link = "" if address is None else address(model, opponent)
        return MatrixCell(number(100 * wins / verdicts, 0), below, round(10 * wins / verdicts), link, words)

    heads, names = (40, 22) if numbered else (14, 24)
    return Matrix(
        "Win matrix",
        [name(one["model"], heads) for one in rows],
        [name(one["model"], names) for one in rows],
        [[cell(one, other) for other in rows] for one in rows],
        numbered,
    )
