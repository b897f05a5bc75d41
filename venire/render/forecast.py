"""What is left of a plan will cost: for eyes and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console

from venire.judges import REASONS_TOKENS
from venire.orchestrator.costs.forecast import LEVEL, JudgeForecast
from venire.render.screen import tabulate
from venire.wording import duration, money, plain

__all__ = ["forecast_json", "show_forecast"]

_FAR_OFF = 0.1


def show_forecast(screen: Console, rows: Sequence[JudgeForecast], asked: str) -> None:
    """Calls, tokens, money and time by judge, and what these figures were learnt from; `asked` heads the names."""
    head = (asked, "trials", "calls", "tokens in", "tokens out", "low", "expected", "high", "at most", "time")
    cells = [_cells(row) for row in rows]
    if len(rows) > 1:
        cells.append(_in_all(rows))
    tabulate(screen, head, cells)
    for sentence in _notes(rows):
        screen.print(sentence, style="dim")


def _cells(row: JudgeForecast) -> tuple[str, ...]:
    return (plain(row.judge), *_figures(_counts(row), _prices(row)), _time(row))


def _in_all(rows: Sequence[JudgeForecast]) -> tuple[str, ...]:
    """Sums: of the lows and highs, as if all judges erred to one side."""
    counts, prices = (map(sum, zip(*map(of, rows), strict=True)) for of in (_counts, _prices))
    return ("in all", *_figures(tuple(counts), tuple(prices)), "")


def _counts(row: JudgeForecast) -> tuple[int, ...]:
    return (row.trials, row.calls, row.input_tokens, row.output_tokens)


def _prices(row: JudgeForecast) -> tuple[int, ...]:
    return (row.low, row.expected, row.high, row.most)


def _figures(counts: tuple[int, ...], prices: tuple[int, ...]) -> tuple[str, ...]:
    return (*(f"{count:,}" for count in counts), *map(money, prices))


def _time(row: JudgeForecast) -> str:
    """The longer of what limits allow and what answers take."""
    known = [one for one in (row.seconds, row.waiting) if one is not None]
    return duration(max(known)) if known else "no limit"


def _notes(rows: Sequence[JudgeForecast]) -> list[str]:
    learnt = [row for row in rows if row.learnt and row.trials]
    told = []
    if len(learnt) < len([row for row in rows if row.trials]):
        whose = "" if not learnt else " of the others"
        told.append(
            f"tokens{whose} are guessed (4 characters each, 3 to 5 for low and high; {REASONS_TOKENS} of reasons, "
            "70 to 411), hidden reasoning left out; "
            "`venire plan --pilot 40` asks 40 trials of each judge first and learns"
        )
    if learnt:
        trials = ", ".join(f"{row.learnt:,} of {plain(row.judge)}" for row in learnt[:4])
        more = f" and {len(learnt) - 4} more judges" if len(learnt) > 4 else ""
        told.append(f"learnt from settled trials on record: {trials}{more}; low to high holds {LEVEL:.0%} of the time")
    for row in learnt:
        if row.reasoning_tokens:
            told.append(f"{plain(row.judge)}: {row.reasoning_tokens:,} of its tokens out are hidden reasoning")
        if row.paid_over_price is not None and abs(row.paid_over_price - 1.0) > _FAR_OFF:
            told.append(
                f"{plain(row.judge)}: calls on record cost {row.paid_over_price:.2f} times what their tokens cost at "
                "the price in force, by which this is forecast"
            )
    return told


def forecast_json(rows: Sequence[JudgeForecast]) -> list[dict[str, Any]]:
    """The forecast as plain values, by judge."""
    return [asdict(row) for row in rows]
