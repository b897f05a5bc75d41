"""A report as one HTML file: no script, nothing fetched, its style within, its pictures drawn here."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from math import log10
from typing import Any

from markupsafe import Markup

from venire.pages.bars import POINTS, axis, bar, expected, rank_range, scale, tied, win_matrix
from venire.pages.rendering import render
from venire.pages.texts import name

__all__ = ["MAX_MATRIX", "cost_points", "report_html"]

MAX_MATRIX = 60
"""Models of the win matrix, the best of them: more are in the JSON alone."""

_POLICY = "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'"
"""What the page may load and do: nothing but its one style sheet, which is added by its digest."""

_WIDTH, _HEIGHT = 640.0, 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, 12.0, 12.0, 34.0
_LETTER, _LINE = 6.4, 13.0
"""Width and height of a label's letters, as wide as the widest usual font draws them."""
_MAX_LABEL = 24


def report_html(document: Mapping[str, Any]) -> str:
    """The page of a report's document (docs/report.md): self-contained, and safe whatever the texts in it are."""
    style = files("venire.pages").joinpath("templates/report/report.css").read_text(encoding="utf-8")
    digest = b64encode(sha256(style.encode()).digest()).decode()
    board = document["board"]
    rows = board["models"]
    ends = scale(rows)
    categories = document["categories"] or []
    values = {
        "d": document,
        "board": board,
        "style": Markup(style),
        "policy": f"{_POLICY}; style-src 'sha256-{digest}'",
        "rows": [{"facts": one, "bar": bar(one, ends), "rank": rank_range(one)} for one in rows],
        "ordered": bool(rows) and all(one.get("elo") is None for one in rows),
        "has_reference": any(one.get("reference") is not None for one in rows),
        "axis": None if ends is None else axis(*ends),
        "points": [(gap, expected(float(gap))) for gap in POINTS],
        "tied": tied(rows),
        "matrix": win_matrix(rows[:MAX_MATRIX], board["seen"]) if board["seen"] else [],
        "costs": None if document["contestants"] is None else cost_points(document["contestants"]),
        "has_elo": any(one.get("reference_elo") is not None for one in document["judges"]),
        "has_family": any(one.get("own_family") for one in document["judges"]),
        "names": [one["model"] for one in rows],
        "categories": categories,
        "words": _by_word((document["audit"] or {}).get("findings", ())),
        "changes": document.get("changes"),
    }
    return render("report/report.html", values)


def _by_word(findings: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {"worry": [], "unsure": [], "fine": [], "not made": []}
    for one in findings:
        found.setdefault(one["word"], []).append(one)
    return found


def cost_points(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The picture of quality against cost: places of models on a scale of costs in powers of ten, and their labels.

    A label that has no room beside its point is left out; those on the frontier come first.
    """
    costs, ratings = [log10(one["nano"]) for one in rows], [one["elo"] for one in rows]
    low, high = min(costs), max(costs)
    room = max(0.1, 0.06 * (high - low))
    low, high = low - room, high + room
    bottom, top = min(ratings) - 20.0, max(ratings) + 20.0
    points = []
    for one, cost in zip(rows, costs, strict=True):
        x = _LEFT + (_WIDTH - _LEFT - _RIGHT) * (cost - low) / (high - low)
        y = _TOP + (_HEIGHT - _TOP - _BOTTOM) * (top - one["elo"]) / (top - bottom)
        points.append({**one, "x": round(x, 1), "y": round(y, 1), "label": None})
    _label(points)
    ticks = [
        {"x": round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * (place - low) / (high - low), 1), "nano": 10.0**place}
        for place in _decades(low, high)
    ]
    step = next((one for one in (25, 50, 100, 200, 500, 1000) if (top - bottom) / one <= 6), 2000)
    levels = [
        {"y": round(_TOP + (_HEIGHT - _TOP - _BOTTOM) * (top - value) / (top - bottom), 1), "elo": value}
        for value in range(int(bottom // step + 1) * step, int(top) + 1, step)
    ]
    frontier = [one for one in points if one["frontier"]]
    path = "M" + " L".join(f"{one['x']} {one['y']}" for one in frontier)
    return {"points": points, "ticks": ticks, "levels": levels, "path": path, "width": _WIDTH, "height": _HEIGHT}


def _decades(low: float, high: float) -> list[float]:
    whole = [float(place) for place in range(int(low // 1) + 1, int(high // 1) + 1)]
    return whole if len(whole) > 1 else [low + 0.1 * (high - low), high - 0.1 * (high - low)]


def _label(points: Sequence[dict[str, Any]]) -> None:
    """Give each point a label beside, above or below it that meets no other label and no point."""
    taken = [(one["x"] - 5, one["y"] - 5, one["x"] + 5, one["y"] + 5) for one in points]
    for one in sorted(points, key=lambda point: (not point["frontier"], -point["elo"])):
        text = name(one["model"], _MAX_LABEL)
        wide = _LETTER * len(text)
        x, y = one["x"], one["y"]
        for left, base in ((x + 7, y + 4), (x - 7 - wide, y + 4), (x - wide / 2, y - 8), (x - wide / 2, y + 17)):
            box = (left, base - _LINE + 3, left + wide, base + 3)
            inside = box[0] >= _LEFT and box[2] <= _WIDTH - 2 and box[1] >= 0 and box[3] <= _HEIGHT - _BOTTOM
            if inside and not any(_meet(box, other) for other in taken):
                one["label"] = {"x": round(left, 1), "y": round(base, 1), "text": text}
                taken.append(box)
                break


def _meet(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
