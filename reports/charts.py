"""Charts for notebooks: figures of boards, audits and placements as altair charts (Vega-Lite).

Names of models and judges are values of a chart and never part of its specification, with what is not printable in
them made visible: what draws SVG ends its process at a control character. Intervals are drawn on a scale
that holds all of their ends; a missing end is infinite and marked by a triangle at the edge of the scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec

from venire.arena.errors import InputError
from venire.arena.wording import plain

Row = Mapping[str, Any]
_Given = ParamSpec("_Given")

_MARK, _OTHER, _FAINT, _INK, _BAND, _RULE = "#2a5db0", "#b4552d", "#5b6775", "#1d2733", "#eef2f8", "#9aa5b1"
_GRID = "#dde3ea"
_COLOURS = (_MARK, _OTHER, "#2f7d5b", "#8b3a8f", "#c58b17", "#4a7c99", "#a3264a", "#7a6a55", "#6a4fb0", "#5b6775")
_FONT = "Arial, Helvetica, Liberation Sans, sans-serif"
"""Fonts of one width: letters are measured where a chart is drawn, and a file of it is shown elsewhere."""
_ROW = 24
_NAME = 240
"""Pixels of a name before it is cut; a tooltip has all of it."""
_LETTERS = 13
"""Pixels between two labels that stand above one another."""


def _of_visible_texts(draw: Callable[_Given, Any]) -> Callable[_Given, Any]:
    """A function that draws, with every text that it is given made visible."""

    @wraps(draw)
    def drawn(*given: _Given.args, **named: _Given.kwargs) -> Any:
        return draw(*map(_visible, given), **{name: _visible(value) for name, value in named.items()})

    return drawn


def _visible(value: Any) -> Any:
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, Mapping):
        return {name: _visible(one) for name, one in value.items()}
    return [_visible(one) for one in value] if isinstance(value, list | tuple) else value


def _altair() -> Any:
    try:
        import altair
    except ImportError:
        raise InputError("plot needs altair, which is not installed: pip install altair") from None
    return altair


def _styled(made: Any) -> Any:
    room = {"left": 12, "right": 28, "top": 6, "bottom": 6}
    made = made.configure(font=_FONT, background="white", padding=room).configure_view(strokeWidth=0)
    lines = {"gridColor": _GRID, "domainColor": _GRID, "tickColor": _GRID}
    made = made.configure_axis(labelColor=_FAINT, titleColor=_FAINT, titleFontWeight="normal", **lines)
    made = made.configure_legend(title=None, orient="top", labelLimit=_NAME, columns=4)
    return made.configure_title(anchor="start", fontWeight="normal", subtitleColor=_FAINT, offset=8, limit=760)


@dataclass(frozen=True, slots=True)
class Panel:
    """One column of intervals: `point`, `lo` and `hi` name fields of its rows, and `other` one drawn as a diamond.

    `rule` is a value to compare with, `text` names a field that is written beside the row. The scale holds all of these
    and the fields `among`, within `bounds`; it begins at 0 if `from_zero` and has `whole` numbers alone, as ranks have.
    """

    title: str
    point: str | None
    lo: str
    hi: str
    other: str | None = None
    rule: float | None = None
    format: str = ".0f"
    text: str | None = None
    width: int = 360
    whole: bool = False
    bounds: tuple[float, float] | None = None
    among: tuple[str, ...] = ()
    from_zero: bool = False
    open_ends: bool = False
    """Whether a row with one end alone is an interval whose other end is infinite; one `unbounded` has neither."""


@_of_visible_texts
def intervals(rows: Sequence[Row], name: str, panels: Sequence[Panel], title: str, notes: Sequence[str] = ()) -> Any:
    """Rows with intervals, in the order given, one or more columns of them side by side.

    `rows` with a `band` of odd number stand on a shaded ground.
    """
    alt = _altair()
    charts = [_panel(alt, rows, name, one, first=not number) for number, one in enumerate(panels)]
    whole = alt.hconcat(*charts, spacing=36) if len(charts) > 1 else charts[0]
    return _styled(whole.properties(title=alt.TitleParams(title, subtitle=list(notes))))


def _scale(rows: Sequence[Row], panel: Panel) -> tuple[float, float]:
    names = [one for one in (panel.point, panel.lo, panel.hi, panel.other, *panel.among) if one is not None]
    values = [float(row[one]) for row in rows for one in names if row.get(one) is not None]
    values += [] if panel.rule is None else [panel.rule]
    values += [0.0] if panel.from_zero else []
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = 0.5 if panel.whole else 0.04 * (high - low) or max(0.01, 0.01 * abs(high))
    low, high = low if panel.from_zero else low - room, high + room if high > 0.0 or not panel.from_zero else 0.1
    if panel.bounds is not None:
        low, high = max(panel.bounds[0], low), min(panel.bounds[1], high)
    return low, high


def _panel(alt: Any, rows: Sequence[Row], name: str, panel: Panel, *, first: bool) -> Any:
    low, high = _scale(rows, panel)
    values = [_with_ends(row, panel, low, high) for row in rows]
    axis = alt.Axis(labelLimit=_NAME, labelOverlap=False, labelFontSize=12, labelPadding=8, domain=False, ticks=False)
    order = list(dict.fromkeys(str(row[name]) for row in rows))
    names = alt.Y(f"{name}:N", sort=order, title=None, axis=axis if first else None)
    whole = {"values": _whole_numbers(low, high)} if panel.whole else {}
    ticks = _ticks(alt, "d" if panel.whole else panel.format, panel.width, **whole)
    scale = alt.Scale(domain=[low, high], nice=False, zero=False)
    x = alt.X("_point:Q", title=panel.title, scale=scale, axis=ticks)
    columns = rows[0] if rows else {}
    shown = [alt.Tooltip(f"{one}:N") for one in columns if one not in ("band", "unbounded", "written")]
    base = alt.Chart(alt.Data(values=values)).encode(y=names, tooltip=shown)
    layers = []
    if any(row.get("band") for row in rows):
        band = base.transform_filter("datum.band % 2 == 1").mark_rect(color=_BAND)
        layers.append(band.encode(x=alt.value(0), x2=alt.value(panel.width)))
    if panel.rule is not None:
        ruled = alt.Chart(alt.Data(values=[{"_point": panel.rule}]))
        layers.append(ruled.mark_rule(color=_RULE, strokeDash=[4, 3]).encode(x=x))
    span = base.transform_filter("isValid(datum._lo)")
    layers.append(span.mark_rule(color=_MARK, strokeWidth=2).encode(x=alt.X("_lo:Q", scale=scale), x2="_hi:Q"))
    for field, shape, at in (("_below", "triangle-left", 0), ("_above", "triangle-right", panel.width)):
        if any(one[field] for one in values):
            ends = base.transform_filter(f"datum.{field}").mark_point(shape=shape, filled=True, size=70, opacity=1)
            layers.append(ends.encode(x=alt.value(at), color=alt.value(_MARK)))
    if panel.other is not None and any(row.get(panel.other) is not None for row in rows):
        mark = base.transform_filter("isValid(datum._other)").mark_point(shape="diamond", size=60, opacity=1)
        layers.append(mark.encode(x=alt.X("_other:Q", scale=scale), color=alt.value(_OTHER)))
    if panel.point is not None:
        mark = base.transform_filter("isValid(datum._point)").mark_point(filled=True, size=70, opacity=1)
        layers.append(mark.encode(x=x, color=alt.value(_MARK)))
    if panel.text is not None:
        written = base.mark_text(align="left", color=_INK, fontSize=12)
        layers.append(written.encode(x=alt.value(panel.width + 14), text=f"{panel.text}:N"))
    return alt.layer(*layers).properties(width=panel.width, height=alt.Step(_ROW))


def _whole_numbers(low: float, high: float) -> list[int]:
    """The first whole number of a scale, and round ones after it, at most a dozen or so."""
    step = next(one for one in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, math.ceil(high)) if (high - low) / one <= 12)
    first = math.ceil(low)
    return [first, *(one for one in range(step * (first // step + 1), math.floor(high) + 1, step) if one > first)]


def _ticks(alt: Any, form: str, width: int, **more: Any) -> Any:
    """An axis of values whose labels do not meet."""
    count = {} if "values" in more else {"tickCount": max(2, width // 60)}
    return alt.Axis(format=form, labelOverlap="greedy", labelSeparation=8, labelFlush=False, **count, **more)


def _with_ends(row: Row, panel: Panel, low: float, high: float) -> Row:
    """A row with the ends of its interval on the scale, and whether they are infinite."""
    lo, hi = row.get(panel.lo), row.get(panel.hi)
    half_open = (panel.open_ends and (lo is None) != (hi is None)) or bool(row.get("unbounded"))
    return {
        **row,
        "_point": None if panel.point is None else row.get(panel.point),
        "_other": None if panel.other is None else row.get(panel.other),
        "_lo": low if half_open and lo is None else lo if hi is not None or half_open else None,
        "_hi": high if half_open and hi is None else hi,
        "_below": half_open and lo is None,
        "_above": half_open and hi is None,
    }


@_of_visible_texts
def grid(rows: Sequence[Row], order: Sequence[str], title: str, notes: Sequence[str] = ()) -> Any:
    """A matrix of shares from 0 to 1, `model` by `other`, both in the order given; blue above a half, brown below."""
    alt = _altair()
    size = max(16, min(48, 720 // max(len(order), 1)))
    axis = alt.Axis(labelLimit=_NAME, labelOverlap=False, domain=False, ticks=False, labelPadding=6)
    across = alt.Axis(labelLimit=_NAME, labelOverlap=False, domain=False, ticks=False, orient="top", labelAngle=-45)
    colours = alt.Scale(domain=[0, 0.5, 1], range=["#eaa57c", "#f6f6f4", "#8fb3ea"], interpolate="rgb")
    base = alt.Chart(alt.Data(values=list(rows))).encode(
        x=alt.X("other:N", sort=list(order), title=None, axis=across, scale=alt.Scale(domain=list(order))),
        y=alt.Y("model:N", sort=list(order), title=None, axis=axis, scale=alt.Scale(domain=list(order))),
        tooltip=["model:N", "other:N", alt.Tooltip("share:Q", format=".1%"), alt.Tooltip("judgments:Q", format=",.0f")],
    )
    legend = alt.Legend(format=".0%", orient="bottom", title=None, gradientLength=200)
    made = base.mark_rect().encode(color=alt.Color("share:Q", scale=colours, legend=legend))
    if size >= 28:
        made += base.mark_text(fontSize=11, color=_INK).encode(text=alt.Text("share:Q", format=".0%"))
    made = made.properties(width=alt.Step(size), height=alt.Step(size))
    return _styled(made.properties(title=alt.TitleParams(title, subtitle=list(notes))))


@_of_visible_texts
def curves(rows: Sequence[Row], x: str, y: str, title: str, across: str, up: str, notes: Sequence[str] = ()) -> Any:
    """A line of `y` over `x` for each model, named at its end; names that would meet are moved apart."""
    alt = _altair()
    known = [row for row in rows if row[y] is not None]
    last = {str(row["model"]): float(row[y]) for row in known}
    order = sorted(last, key=lambda name: (-last[name], name))
    low, high = _around([float(row[y]) for row in known])
    width, height = 480, max(320, _LETTERS * len(order))
    colour = _colour(alt, order)
    plane = alt.Scale(domain=[low, high], nice=False, zero=False)
    lines = alt.Chart(alt.Data(values=list(rows))).mark_line(
        strokeWidth=2, strokeJoin="round", point=alt.OverlayMarkDef(size=14)
    )
    lines = lines.encode(
        x=alt.X(
            f"{x}:Q",
            title=across,
            axis=_ticks(alt, ",d", width, grid=False),
            scale=alt.Scale(domain=[0, max(row[x] for row in rows)]),
        ),
        y=alt.Y(f"{y}:Q", title=up, scale=plane, axis=alt.Axis(format=".0f")),
        color=colour,
        tooltip=["model:N", alt.Tooltip(f"{x}:Q", format=","), alt.Tooltip(f"{y}:Q", format=".0f")],
    )
    whole = lines + _names(alt, last, order, (low, high), (width, height), colour, up)
    made = whole.properties(width=width, height=height)
    return _styled(made.properties(title=alt.TitleParams(title, subtitle=list(notes))))


def spread_labels(places: Sequence[float], height: float) -> list[float]:
    """Places from the top in ascending order, moved as little as it takes for a label to fit between every two.

    >>> spread_labels([10.0, 12.0, 100.0], 120.0)
    [10.0, 23.0, 100.0]
    """
    found: list[float] = []
    for place in places:
        found.append(max(place, found[-1] + _LETTERS) if found else max(place, 0.0))
    below = height
    for number in reversed(range(len(found))):
        found[number] = min(found[number], below)
        below = found[number] - _LETTERS
    return found


@_of_visible_texts
def diagram(
    rows: Sequence[Row],
    title: str,
    across: str,
    up: str,
    *,
    low: float = 0.0,
    group: str | None = None,
    notes: Sequence[str] = (),
) -> Any:
    """Shares seen (`y`) against shares stated (`x`), beside the diagonal on which both are equal.

    The area of a point is its number of rows (`rows`); with `group`, each of its values is a line.
    """
    alt = _altair()
    start = min([low, *(float(row["x"]) for row in rows)])
    floor = min([start, *(float(row["y"]) for row in rows)])
    x = alt.X("x:Q", title=across, scale=alt.Scale(domain=[start, 1], nice=False), axis=_ticks(alt, ".0%", 360))
    y = alt.Y("y:Q", title=up, scale=alt.Scale(domain=[floor, 1], nice=False), axis=_ticks(alt, ".0%", 360))
    even = alt.Chart(alt.Data(values=[{"x": start, "y": start}, {"x": 1, "y": 1}]))
    layers = [even.mark_line(color=_RULE, strokeDash=[4, 3]).encode(x=x, y=y)]
    base = alt.Chart(alt.Data(values=list(rows))).encode(x=x, y=y)
    area = alt.Size("rows:Q", legend=None, scale=alt.Scale(domainMin=0, range=[0, 90]))
    tips = [alt.Tooltip("x:Q", format=".1%"), alt.Tooltip("y:Q", format=".1%"), alt.Tooltip("rows:Q", format=",")]
    names = sorted({str(row[group]) for row in rows}) if group is not None else []
    if group is not None and len(names) > 1:
        scale = alt.Scale(domain=names, range=[_COLOURS[place % len(_COLOURS)] for place in range(len(names))])
        base = base.encode(color=alt.Color(f"{group}:N", scale=scale))
        tips = [alt.Tooltip(f"{group}:N"), *tips]
        layers.append(base.mark_line(strokeWidth=1.5))
        layers.append(base.mark_point(filled=True, opacity=1).encode(size=area, tooltip=tips))
    else:
        layers.append(base.mark_line(strokeWidth=1.5, color=_MARK))
        layers.append(base.mark_point(filled=True, opacity=1, color=_MARK).encode(size=area, tooltip=tips))
    made = alt.layer(*layers).properties(width=360, height=360)
    return _styled(made.properties(title=alt.TitleParams(title, subtitle=list(notes))))


@_of_visible_texts
def frontier(rows: Sequence[Row], title: str, across: str, notes: Sequence[str] = ()) -> Any:
    """Ratings (`elo`) against dollars (`cost`), the cheapest first: those on the `frontier` are joined by steps.

    Intervals of both (`lo`, `hi`, `cost_lo`, `cost_hi`) are lines; a rating's that has no end on one side goes to the
    edge, with a triangle there. Labels stand at the right in the order of ratings, each in the colour of its point.
    """
    alt = _altair()
    line = [{"cost": row["cost"], "elo": row["elo"]} for row in rows if row["frontier"]]
    line.append({"cost": rows[-1]["cost"], "elo": line[-1]["elo"]})
    order = [row["model"] for row in sorted(rows, key=lambda one: (-one["elo"], one["model"]))]
    low, high = _around([row[key] for row in rows for key in ("elo", "lo", "hi") if row.get(key) is not None])
    width, height = 480, max(320, _LETTERS * len(rows))
    costs = [float(row[key]) for row in rows for key in ("cost", "cost_lo", "cost_hi") if row.get(key) is not None]
    wide = min(costs) > 0.0 and max(costs) / min(costs) > 20.0
    around = [0.8 * min(costs), 1.25 * max(costs)] if wide else [0, 1.05 * max(costs)]
    scale = alt.Scale(type="log" if wide else "linear", domain=around, nice=False)
    x = alt.X("cost:Q", title=across, scale=scale, axis=_ticks(alt, "$~g", width, grid=False))
    plane = alt.Scale(domain=[low, high], nice=False, zero=False)
    y = alt.Y("elo:Q", title="Elo", scale=plane, axis=alt.Axis(format=".0f"))
    colour = _colour(alt, order)
    values = [_with_ends(row, Panel("Elo", "elo", "lo", "hi", open_ends=True), low, high) for row in rows]
    base = alt.Chart(alt.Data(values=values)).encode(x=x, color=colour)
    tips = ["model:N", alt.Tooltip("elo:Q", format=".0f"), alt.Tooltip("cost:Q", format="$.4~g")]
    steps = alt.Chart(alt.Data(values=line)).mark_line(color=_RULE, interpolate="step-after", strokeDash=[4, 3])
    ratings = base.transform_filter("isValid(datum._lo)").mark_rule(strokeWidth=1.5)
    prices = base.transform_filter("isValid(datum.cost_lo)").mark_rule(strokeWidth=1.5)
    layers = [
        steps.encode(x=x, y=y),
        ratings.encode(y=alt.Y("_lo:Q", scale=plane, title="Elo"), y2="_hi:Q"),
        prices.encode(x=alt.X("cost_lo:Q", scale=scale, title=across), x2="cost_hi:Q", y=y),
        base.mark_point(filled=True, size=80, opacity=1).encode(y=y, tooltip=tips),
    ]
    for field, shape, at in (("_below", "triangle-down", height), ("_above", "triangle-up", 0)):
        if any(one[field] for one in values):
            ends = base.transform_filter(f"datum.{field}").mark_point(shape=shape, filled=True, size=70, opacity=1)
            layers.append(ends.encode(y=alt.value(at)))
    ratings_by = {row["model"]: row["elo"] for row in rows}
    layers.append(_names(alt, ratings_by, order, (low, high), (width, height), colour, "Elo"))
    made = alt.layer(*layers).properties(width=width, height=height)
    return _styled(made.properties(title=alt.TitleParams(title, subtitle=list(notes))))


@_of_visible_texts
def scatter(
    rows: Sequence[Row], own: Row, x: str, y: str, title: str, across: str, up: str, notes: Sequence[str] = ()
) -> Any:
    """Models by two ratings, and one of them (`own`) set off, with an interval of `y` where both ends are known.

    Names stand at the right in the order of `y`, each in the colour of its point, so that none covers another.
    """
    alt = _altair()
    both = [*rows, own]
    order = [row["model"] for row in sorted(both, key=lambda one: (-one[y], one["model"]))]
    ends = [own[key] for key in ("lo", "hi") if own["lo"] is not None and own["hi"] is not None]
    low, high = _around([*(row[y] for row in both), *ends])
    left, right = _around([row[x] for row in both])
    width, height = 420, max(320, _LETTERS * len(both))
    colour = _colour(alt, order)
    plane = alt.Scale(domain=[low, high], nice=False, zero=False)
    wide = alt.X(
        f"{x}:Q", title=across, axis=_ticks(alt, ".0f", width), scale=alt.Scale(domain=[left, right], nice=False)
    )
    tall = alt.Y(f"{y}:Q", title=up, scale=plane, axis=alt.Axis(format=".0f"))
    tips = ["model:N", alt.Tooltip(f"{x}:Q", format=".0f"), alt.Tooltip(f"{y}:Q", format=".0f")]
    layers = []
    mine = alt.Chart(alt.Data(values=[own])).encode(x=wide, color=colour)
    if ends:
        layers.append(mine.mark_rule(strokeWidth=2).encode(y=alt.Y("lo:Q", scale=plane, title=up), y2="hi:Q"))
    points = alt.Chart(alt.Data(values=list(rows))).mark_point(filled=True, size=80, opacity=1)
    layers.append(points.encode(x=wide, y=tall, color=colour, tooltip=tips))
    layers.append(mine.mark_point(shape="diamond", filled=True, size=160, opacity=1).encode(y=tall, tooltip=tips))
    layers.append(_names(alt, {row["model"]: row[y] for row in both}, order, (low, high), (width, height), colour, up))
    made = alt.layer(*layers).properties(width=width, height=height)
    return _styled(made.properties(title=alt.TitleParams(title, subtitle=list(notes))))


def _around(values: Sequence[float]) -> tuple[float, float]:
    """The ends of a scale with some room about the values."""
    room = 0.05 * (max(values) - min(values)) or 1.0
    return min(values) - room, max(values) + room


def _colour(alt: Any, order: Sequence[str]) -> Any:
    """A colour for each model, without a legend: names beside the chart have the colours."""
    scale = alt.Scale(domain=list(order), range=[_COLOURS[place % len(_COLOURS)] for place in range(len(order))])
    return alt.Color("model:N", scale=scale, legend=None)


def _names(
    alt: Any,
    values: Mapping[str, float],
    order: Sequence[str],
    ends: tuple[float, float],
    size: tuple[int, int],
    colour: Any,
    up: str,
) -> Any:
    """The names of models right of a chart, each at its value as far as names do not meet."""
    (low, high), (width, height) = ends, size
    places = spread_labels([(high - values[name]) / (high - low) * height for name in order], height)
    rows = [
        {"model": name, "at": high - place / height * (high - low)} for name, place in zip(order, places, strict=True)
    ]
    at = alt.Y("at:Q", scale=alt.Scale(domain=[low, high], nice=False, zero=False), title=up)
    named = alt.Chart(alt.Data(values=rows)).mark_text(align="left", fontSize=12, limit=_NAME)
    return named.encode(x=alt.value(width + 10), y=at, text="model:N", color=colour)
