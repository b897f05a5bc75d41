"""Charts of the pages, of kinds that `reports.plots` declares: drawn to SVG here, kept by the digest of their data.

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
from hashlib import sha256
from typing import Any, Literal

from venire.reports.charts import Theme
from venire.reports.plots import CHARTS, plot_rows

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
    if kind not in CHARTS or CHARTS[kind].page is None:
        raise ValueError(f"there is no chart {kind!r} of pages")
    request = ChartRequest(kind, json.dumps(list(data), sort_keys=True, default=str), width, height)
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


def draw(request: ChartRequest, theme: Theme) -> str:
    """A chart as SVG. Raises InputError without altair, and ImportError without vl-convert."""
    made = plot_rows(request.kind, json.loads(request.data), theme)
    fit = {"type": "fit", "contains": "padding"}
    made = made.properties(width=request.width, height=request.height, autosize=fit)
    return picture(made.to_json(), "svg").decode()


def picture(specification: str, form: Literal["svg", "png"]) -> bytes:
    """A Vega-Lite specification as SVG, or as PNG at twice its size. Raises ImportError without vl-convert."""
    import vl_convert

    version = re.search(r"/v(\d+\.\d+)", json.loads(specification)["$schema"])
    assert version is not None  # altair writes it
    if form == "png":
        return bytes(vl_convert.vegalite_to_png(specification, vl_version=version[1], scale=2))
    return str(vl_convert.vegalite_to_svg(specification, vl_version=version[1])).encode()
