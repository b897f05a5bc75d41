"""Charts of pages, written into the page itself: there when the page is, as wide as there is room, without a script.

Across, a chart is measured in percent of its width, up in pixels; letters keep their size. To add a kind, write a
function of rows and name it in `CHARTS`; templates draw it with `m.picture`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil
from typing import Any, TypeAlias

from venire.pages.bars import drawn_intervals, drawn_shares
from venire.reports.numbers import count
from venire.reports.planes import round_ticks

Rows: TypeAlias = Sequence[Mapping[str, Any]]

_HEIGHT, _TOP, _BOTTOM = 170, 18, 24
"""Pixels of a chart, of its room for the topmost label, and of that for the labels across."""

_UP, _ACROSS = 4, 6
"""How many labels an axis has about."""

_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800)
"""Seconds between two labels of time."""


@dataclass(frozen=True, slots=True)
class PageChart:
    """What a template draws: areas and a line over time, or rows with intervals (`bars`), with the labels of its axes.

    `up` and `across` are the names of the axes, `areas` have a kind that the style sheet has a colour for, and `kinds`
    are these in the order of the legend. `line` is a path on a plane that is 100 wide.
    """

    up: str = ""
    across: str = ""
    height: int = _HEIGHT
    up_ticks: Sequence[Mapping[str, Any]] = ()
    across_ticks: Sequence[Mapping[str, Any]] = ()
    areas: Sequence[Mapping[str, Any]] = ()
    kinds: Sequence[str] = ()
    line: str = ""
    bars: Mapping[str, Any] | None = None


def chart(kind: str, rows: Rows) -> PageChart:
    """The chart of a kind. Raises ValueError for one that there is not."""
    if kind not in CHARTS:
        raise ValueError(f"there is no chart {kind!r} of pages")
    return CHARTS[kind](rows)


def _calls(rows: Rows) -> PageChart:
    """Calls a minute over time by outcome: each row has a `start`, an `end`, and its `low` and `high` end."""
    time, up = _Time(rows[0]["start"], rows[-1]["end"]), _Up(max(row["high"] for row in rows))
    areas = [
        {
            "kind": row["outcome"],
            "x": time.at(row["start"]),
            "width": round(time.at(row["end"]) - time.at(row["start"]), 3),
            "y": up.at(row["high"]),
            "height": round(up.at(row["low"]) - up.at(row["high"]), 2),
        }
        for row in rows
    ]
    kinds = list(dict.fromkeys(row["outcome"] for row in rows))
    return PageChart("calls a minute", "UTC", _HEIGHT, up.ticks(count), time.ticks(), areas, kinds)


def _money(rows: Rows) -> PageChart:
    """`dollars` over `time`, which stay until the next row."""
    time, up = _Time(rows[0]["time"], rows[-1]["time"]), _Up(max(row["dollars"] for row in rows))
    steps = "".join(f" H{time.at(row['time']):g} V{up.at(row['dollars']):g}" for row in rows[1:])
    line = f"M{time.at(rows[0]['time']):g} {up.at(rows[0]['dollars']):g}{steps}"
    return PageChart("dollars", "UTC", _HEIGHT, up.ticks(lambda value: f"${value:g}"), time.ticks(), line=line)


def _intervals(rows: Rows) -> PageChart:
    """A `value` of each `name` with its interval from `lo` to `hi`, and an `other` value as a diamond where known."""
    return PageChart(bars=drawn_intervals(rows))


def _wins(rows: Rows) -> PageChart:
    """A share of wins (`value`) of each `name` with the figure `written`, and the share expected (`other`)."""
    return PageChart(across="share of wins, ties as halves", bars=drawn_shares(rows))


CHARTS: dict[str, Callable[[Rows], PageChart]] = {
    "calls": _calls,
    "money": _money,
    "intervals": _intervals,
    "wins": _wins,
}
"""Every kind of chart that a page can name."""


@dataclass(frozen=True, slots=True)
class _Up:
    """A scale from zero to what is drawn at the top."""

    high: float

    def at(self, value: float) -> float:
        """Pixels from the top."""
        whole = _HEIGHT - _TOP - _BOTTOM
        return round(_HEIGHT - _BOTTOM - whole * value / (self.high or 1.0), 2)

    def ticks(self, text: Callable[[float], str]) -> list[dict[str, Any]]:
        """Round numbers with where they are."""
        return [{"at": self.at(value), "text": text(value)} for value in round_ticks(0.0, self.high or 1.0, _UP)]


@dataclass(frozen=True, slots=True)
class _Time:
    """A scale of time from one moment to another."""

    start: datetime
    end: datetime

    @property
    def _seconds(self) -> float:
        return (self.end - self.start).total_seconds() or 1.0

    def at(self, moment: datetime) -> float:
        """Percent of the width."""
        return round(100.0 * (moment - self.start).total_seconds() / self._seconds, 3)

    def ticks(self) -> list[dict[str, Any]]:
        """Round times with where they are, as precise as their distance asks for; the outermost end in the chart."""
        most = _STEPS[-1] * ceil(self._seconds / _STEPS[-1] / _ACROSS)
        step = next((one for one in _STEPS if self._seconds / one <= _ACROSS), most)
        form = "%H:%M:%S" if step < 60 else "%H:%M" if step < 43200 else "%b %d"
        found = []
        first = ceil(self.start.timestamp() / step) * step
        for second in range(first, int(self.end.timestamp()) + 1, step):
            moment = datetime.fromtimestamp(second, UTC)
            x = self.at(moment)
            anchor = "start" if x < 5.0 else "end" if x > 95.0 else "middle"
            found.append({"x": x, "text": moment.strftime(form), "anchor": anchor})
        return found
