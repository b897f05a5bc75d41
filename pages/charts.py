"""Charts of the pages: Vega-Lite made through altair and drawn to SVG here, kept by the digest of their data.

A page only names a chart, and a browser asks for the picture. Drawing takes two seconds the first time and 80 MB, and
what draws ends its process where it fails: it is called in the process of a `drawer` alone.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal

from venire.arena.wording import plain

Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")

_KEPT = 256
_known: OrderedDict[str, ChartRequest] = OrderedDict()
_door = threading.Lock()


@dataclass(frozen=True, slots=True)
class ChartRequest:
    """A chart to be drawn: its kind, its data, and its size in pixels."""

    kind: str
    data: str
    """As JSON."""
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class ChartLink:
    """Where a chart is to be had in both themes, and its size in pixels."""

    light: str
    dark: str
    width: int
    height: int


def chart(kind: str, data: Sequence[Mapping[str, Any]], width: int = 640, height: int = 180) -> ChartLink:
    """The addresses of a chart, which is drawn when it is asked for."""
    if kind not in KINDS:
        raise ValueError(f"there is no chart {kind!r}")
    shown = [{key: plain(value) if isinstance(value, str) else value for key, value in row.items()} for row in data]
    request = ChartRequest(kind, json.dumps(shown, sort_keys=True, default=str), width, height)
    digest = sha256(repr(request).encode()).hexdigest()[:32]
    with _door:
        _known[digest] = request
        _known.move_to_end(digest)
        while len(_known) > _KEPT:
            _known.popitem(last=False)
    return ChartLink(f"/figures/{digest}.light.svg", f"/figures/{digest}.dark.svg", width, height)


def requested(digest: str) -> ChartRequest | None:
    """A chart that a page has named lately."""
    with _door:
        return _known.get(digest)


def drawer() -> ProcessPoolExecutor:
    """A process that draws: what aborts it is a BrokenProcessPool here."""
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=_begin_to_draw)


def _begin_to_draw() -> None:
    """Do not outlive the process that asks, which may be killed; a Ctrl-C is for it, as are sentences."""

    def watch() -> None:
        if (parent := multiprocessing.parent_process()) is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 2)  # a panic prints its stack there
    os.close(silent)


_COLOURS = {
    "light": {"ink": "#1d2733", "faint": "#5b6775", "grid": "#dde3ea", "mark": "#2a5db0", "other": "#b4552d"},
    "dark": {"ink": "#e6ebf2", "faint": "#a3afbd", "grid": "#333f4d", "mark": "#7fb0ff", "other": "#ffab7f"},
}
_FAULTS = {
    "answered": ("#2f7d5b", "#5cc397"),
    "transient": ("#c58b17", "#e6b84f"),
    "rate_limited": ("#b4552d", "#ff9a66"),
    "quota": ("#8b3a8f", "#d68bda"),
    "authentication": ("#a3264a", "#ff7d9d"),
    "bad_request": ("#6a4fb0", "#b49cff"),
    "filtered": ("#4a7c99", "#8cc4e6"),
    "too_long": ("#7a6a55", "#c9b79d"),
    "unanswered": ("#5b6775", "#a3afbd"),
}


def draw(request: ChartRequest, theme: Theme) -> str:
    """A chart as SVG. Raises ImportError without altair and vl-convert."""
    import altair as alt

    colours = _COLOURS[theme]
    made = KINDS[request.kind](alt, json.loads(request.data), theme)
    fit = alt.AutoSizeParams(type="fit", contains="padding")
    made = made.properties(width=request.width, height=request.height, autosize=fit, background="transparent")
    axis = {"labelColor": colours["faint"], "titleColor": colours["faint"], "gridColor": colours["grid"]}
    axis |= {"domainColor": colours["grid"], "tickColor": colours["grid"], "titleFontWeight": "normal"}
    made = made.configure(font="system-ui, sans-serif").configure_view(strokeWidth=0).configure_axis(**axis)
    made = made.configure_legend(labelColor=colours["ink"], titleColor=colours["faint"], orient="top", title=None)
    return picture(made.to_json(), "svg").decode()


def picture(specification: str, form: Literal["svg", "png"]) -> bytes:
    """A Vega-Lite specification as SVG, or as PNG at twice its size. Raises ImportError without vl-convert."""
    import vl_convert

    version = re.search(r"/v(\d+\.\d+)", json.loads(specification)["$schema"])
    assert version is not None  # altair writes it
    if form == "png":
        return bytes(vl_convert.vegalite_to_png(specification, vl_version=version[1], scale=2))
    return str(vl_convert.vegalite_to_svg(specification, vl_version=version[1])).encode()


_LABEL = 48
"""Room for the labels of an axis in pixels: a browser's letters may be wider than those that were measured here."""


def _time_axis(alt: Any, start: str, end: str, name: str) -> Any:
    """Times in UTC, as precise as the span from one to the other asks for."""
    span = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    form = "%H:%M:%S" if span < 1_800 else "%H:%M" if span < 86_400 else "%b %d %H:%M"
    axis = alt.Axis(format=form, tickCount=5, labelOverlap="greedy")
    return alt.X(name, title=None, scale=alt.Scale(type="utc"), axis=axis)


def _calls(alt: Any, rows: list[dict[str, Any]], theme: Theme) -> Any:
    there = [name for name in _FAULTS if any(one["outcome"] == name for one in rows)]
    words = [name.replace("_", " ") for name in there]
    scale = alt.Scale(domain=words, range=[_FAULTS[name][theme == "dark"] for name in there])
    rows = [{**one, "outcome": one["outcome"].replace("_", " ")} for one in rows]
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_rect()
        .encode(
            x=_time_axis(alt, rows[0]["start"], rows[-1]["end"], "start:T"),
            x2="end:T",
            y=alt.Y("low:Q", title=None, axis=alt.Axis(tickCount=4, minExtent=_LABEL)),
            y2="high:Q",
            color=alt.Color("outcome:N", scale=scale),
        )
    )


def _money(alt: Any, rows: list[dict[str, Any]], theme: Theme) -> Any:
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_line(interpolate="step-after", color=_COLOURS[theme]["mark"], strokeWidth=2)
        .encode(
            x=_time_axis(alt, rows[0]["time"], rows[-1]["time"], "time:T"),
            y=alt.Y("dollars:Q", title=None, axis=alt.Axis(tickCount=4, format="$~g", minExtent=_LABEL)),
        )
    )


def _intervals(alt: Any, rows: list[dict[str, Any]], theme: Theme) -> Any:
    colours = _COLOURS[theme]
    order = [one["name"] for one in rows]
    room = min(200, 12 + 7 * max((len(name) for name in order), default=0))
    names = alt.Axis(labelLimit=200, minExtent=room, domain=False, ticks=False)
    base = alt.Chart(alt.Data(values=rows)).encode(y=alt.Y("name:N", sort=order, title=None, axis=names))
    scale = alt.Scale(zero=False, nice=True)
    layers = [
        base.mark_rule(strokeWidth=2, color=colours["mark"]).encode(
            x=alt.X("lo:Q", scale=scale, title=None), x2="hi:Q"
        ),
        base.mark_point(filled=True, size=60, color=colours["mark"], opacity=1).encode(
            x=alt.X("value:Q", scale=scale, title=None)
        ),
    ]
    if any(one.get("other") is not None for one in rows):
        mark = base.mark_point(shape="diamond", size=60, color=colours["other"], opacity=1)
        layers.append(mark.encode(x=alt.X("other:Q", scale=scale, title=None)))
    return alt.layer(*layers)


KINDS = {"calls": _calls, "money": _money, "intervals": _intervals}
"""What can be drawn, by name; each function takes altair, rows and the theme."""
