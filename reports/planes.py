"""Points on a plane with intervals of both values, as a report draws them: scales, ticks, labels that do not meet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10
from typing import Any, TypeAlias

from venire.reports.texts import name

Plane: TypeAlias = dict[str, Any]
"""Points, ticks and labels with their places, as a template draws them; `title` and `words` say what it shows."""

_WIDTH, _HEIGHT = 640.0, 320.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 48.0, 14.0, 12.0, 44.0
_LETTER, _LINE = 6.4, 13.0
"""Width and height of a label's letters, as wide as the widest usual font draws them."""
_MAX_LABEL = 24
_POINT = 5.0
_BAR = 2.0
_TICKS = 8
_TICK_LETTERS = 7.0


@dataclass(frozen=True, slots=True)
class PlaneAxis:
    """One axis: the keys of a row's value and of the ends of its interval, and how a number of it is written.

    `room` is the least that the scale is wider than its values. A row with one end alone has an interval that goes to
    the edge of the plane, where an arrow says that it has no end.
    """

    title: str
    value: str
    lo: str
    hi: str
    text: Callable[[float], str]
    room: float = 0.0
    logarithmic: bool = False

    def ends(self, rows: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
        """The ends of the scale, as powers of ten where it is logarithmic."""
        found = [self.at(row[key]) for row in rows for key in (self.value, self.lo, self.hi) if _known(row.get(key))]
        low, high = min(found), max(found)
        room = max(self.room, 0.06 * (high - low))
        return low - room, high + room

    def at(self, value: float) -> float:
        """The place of a value on the scale."""
        return log10(value) if self.logarithmic else float(value)

    def ticks(self, low: float, high: float) -> list[float]:
        """Round numbers between two places of the scale, from the smaller to the larger."""
        if self.logarithmic and high - low >= 1.0:
            digits = (1.0, 2.0, 5.0) if high - low < 2.5 else (1.0,)
            found = [digit * 10.0**power for power in range(floor(low), floor(high) + 1) for digit in digits]
            return [one for one in found if low <= log10(one) <= high]
        if self.logarithmic:  # less than a power of ten: round numbers at equal distances
            low, high = 10.0**low, 10.0**high
        return round_ticks(low, high, _TICKS)


def round_ticks(low: float, high: float, most: float, digits: Sequence[float] = (1.0, 2.0, 5.0)) -> list[float]:
    """Round numbers at equal distances between two, so many about; distances are one of `digits` by a power of ten.

    >>> round_ticks(0.0, 1.0, 4)
    [0.0, 0.5, 1.0]
    """
    step = _step((high - low) / most, digits)
    return [step * number for number in range(ceil(low / step), floor(high / step) + 1)]


def _step(least: float, digits: Sequence[float]) -> float:
    """The smallest of `digits` times a power of ten that is not below `least`."""
    power = 10.0 ** floor(log10(least)) if least > 0.0 else 1.0
    return next((digit * power for digit in digits if digit * power >= least), 10.0 * power)


def _known(value: Any) -> bool:
    return value is not None and isfinite(value)


def plane(
    rows: Sequence[Mapping[str, Any]], label: str, across: PlaneAxis, up: PlaneAxis, *, first: str | None = None
) -> Plane:
    """The places of rows on a plane, with bars of their intervals, ticks, and labels of the key `label`.

    A label that has no room beside its point is left out; those of rows whose key `first` is true come first, then the
    highest. Raises ValueError without rows.
    """
    (left, right), (bottom, top) = across.ends(rows), up.ends(rows)

    def x(value: float) -> float:
        return round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * (across.at(value) - left) / (right - left), 1)

    def y(value: float) -> float:
        return round(_TOP + (_HEIGHT - _TOP - _BOTTOM) * (top - up.at(value)) / (top - bottom), 1)

    points: list[dict[str, Any]] = []
    for row in rows:
        wide, tall = _bar(row, across, x, _LEFT, _WIDTH - _RIGHT), _bar(row, up, y, _HEIGHT - _BOTTOM, _TOP)
        place = {"x": x(row[across.value]), "y": y(row[up.value]), "wide": wide, "tall": tall}
        points.append({**row, **place, "text": name(str(row[label]), _MAX_LABEL), "label": None})
    _label(points, first)
    return {
        "points": points,
        "width": _WIDTH,
        "height": _HEIGHT,
        "left": _LEFT,
        "right": _WIDTH - _RIGHT,
        "top": _TOP,
        "bottom": _HEIGHT - _BOTTOM,
        "across": _thinned([{"at": x(one), "text": across.text(one)} for one in across.ticks(left, right)]),
        "up": [{"at": y(one), "text": up.text(one)} for one in up.ticks(bottom, top)],
        "path": "",
        "titles": (across.title, up.title),
    }


def _bar(
    row: Mapping[str, Any], axis: PlaneAxis, at: Callable[[float], float], low: float, high: float
) -> dict[str, Any] | None:
    """Where the interval of a row begins and ends; an end that is not there is at the edge and marked as open."""
    lo, hi = (row.get(key) if _known(row.get(key)) else None for key in (axis.lo, axis.hi))
    if lo is None and hi is None:
        return None
    return {
        "lo": low if lo is None else at(lo),
        "hi": high if hi is None else at(hi),
        "open_lo": lo is None,
        "open_hi": hi is None,
    }


def stair(points: Sequence[Mapping[str, Any]], right: float) -> str:
    """The path of a step line over points from left to right, which goes on to `right` at the height of the last.

    >>> stair([{"x": 1, "y": 9}, {"x": 5, "y": 2}], 8)
    'M1 9 H5 V2 H8'
    """
    if not points:
        return ""
    rest = "".join(f" H{one['x']:g} V{one['y']:g}" for one in points[1:])
    return f"M{points[0]['x']:g} {points[0]['y']:g}{rest} H{right:g}"


def _thinned(ticks: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Ticks whose numbers do not meet; of two that would, the first stays."""
    found: list[dict[str, Any]] = []
    taken = 0.0
    for one in ticks:
        half = _TICK_LETTERS * len(one["text"]) / 2
        again = bool(found) and found[-1]["text"] == one["text"]
        if one["at"] - half >= taken and one["at"] + half <= _WIDTH and not again:
            found.append(one)
            taken = one["at"] + half + 6.0
    return found


def _label(points: Sequence[dict[str, Any]], first: str | None) -> None:
    """Give each point a label near it that meets no other label, no point and no bar."""
    taken = [box for one in points for box in _boxes(one)]
    for one in sorted(points, key=lambda point: (not (first and point[first]), point["y"], point["text"])):
        wide = _LETTER * len(one["text"])
        for x, y in _near(one, wide):
            box = (x, y - _LINE + 3.0, x + wide, y + 3.0)
            inside = box[0] >= _LEFT and box[2] <= _WIDTH - 2.0 and box[1] >= 0.0 and box[3] <= _HEIGHT - _BOTTOM
            if inside and not any(_meet(box, other) for other in taken):
                one["label"] = {"x": round(x, 1), "y": round(y, 1), "text": one["text"]}
                taken.append(box)
                break


def _near(point: Mapping[str, Any], wide: float) -> list[tuple[float, float]]:
    """Where a label may begin: at the sides, above and below, and at the four corners; then beyond a bar's ends."""
    x, y = point["x"], point["y"]
    sides = [(x + 8, y + 4), (x - 8 - wide, y + 4), (x - wide / 2, y - 9), (x - wide / 2, y + 18)]
    corners = [(x + 5, y - 5), (x + 5, y + 14), (x - 5 - wide, y - 5), (x - 5 - wide, y + 14)]
    beyond = [(point["wide"]["hi"] + 6, y + 4), (point["wide"]["lo"] - 6 - wide, y + 4)] if point["wide"] else []
    if tall := point["tall"]:
        beyond += [(x - wide / 2, tall["hi"] - 5), (x - wide / 2, tall["lo"] + 13)]
    return [*sides, *corners, *beyond]


def _boxes(point: Mapping[str, Any]) -> list[tuple[float, float, float, float]]:
    x, y, wide, tall = point["x"], point["y"], point["wide"], point["tall"]
    found = [(x - _POINT, y - _POINT, x + _POINT, y + _POINT)]
    if wide:
        found.append((wide["lo"], y - _BAR, wide["hi"], y + _BAR))
    if tall:
        found.append((x - _BAR, tall["hi"], x + _BAR, tall["lo"]))
    return found


def _meet(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
