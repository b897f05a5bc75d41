"""The charts of a board and of an audit, by kind: from the figures that they hold, and the verdicts behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from venire.arena.errors import InputError
from venire.arena.wording import money
from venire.ratings.data.validation import finite_or_none
from venire.ratings.design.placement import Placement
from venire.ratings.judges.consistency import JudgeConsistency, consistency
from venire.reports.chart_data import (
    ChartSource,
    calibration_rows,
    cost_rows,
    learning_rows,
    matrix_rows,
    missing,
    position_rows,
    reliability_rows,
)
from venire.reports.charts import ChartKind, Panel, curves, diagram, frontier, grid, intervals, scatter
from venire.reports.wording import elo_text

Rows = Sequence[Mapping[str, Any]]

_FEW = 2


def board_charts(
    rows: Rows, judges: Sequence[JudgeConsistency], source: ChartSource | None, *, method: str, level: float
) -> dict[str, ChartKind]:
    """The charts of a board: `rows` are its models as `Board.rows` gives them, best first."""
    rated = [row for row in rows if row["elo"] is not None or row["lo"] is not None or row["hi"] is not None]
    unrated = None if rated else f"no model has a rating by {method}"
    placed = None if any(row["position"] is not None for row in rows) else unrated
    wide = f"{100 * level:g} %"
    kinds = {
        "leaderboard": ChartKind(lambda: placed, lambda: (_order if unrated else _leaderboard)(rows, method, wide)),
        "intervals": ChartKind(lambda: unrated, lambda: _intervals(rows, method, wide)),
        "judges": ChartKind(lambda: _no_judges(judges), lambda: _judges(judges, wide)),
        "cost": ChartKind(lambda: _no_costs(rows, source), lambda: _costs(rows, source)),
    }
    return verdict_charts(source, [row["model"] for row in rows], rated=bool(rated)) | kinds


def verdict_charts(
    source: ChartSource | None, models: Sequence[str] | None = None, *, rated: bool = True
) -> dict[str, ChartKind]:
    """The charts that verdicts themselves make, models in the order given, by default of their win rates.

    Those of ratings are drawn where the method of the source has `rated` the models.
    """

    def kind(name: str, draw: Any, *, ratings: bool = False) -> ChartKind:
        lacks = f"no model has a rating by {source.method}" if source is not None and ratings and not rated else None
        return ChartKind(lambda: missing(source, name) or lacks, lambda: draw(source))

    return {
        "matrix": kind("matrix", lambda found: _matrix(found, models)),
        "judges": kind("judges", lambda found: _judges_of(found)),
        "position": kind("position", _position),
        "reliability": kind("reliability", _reliability),
        "learning": kind("learning", _learning, ratings=True),
        "calibration": kind("calibration", _calibration, ratings=True),
    }


def placement_charts(placement: Placement, ratings: Rows, anchors: Rows) -> dict[str, ChartKind]:
    """The charts of a placement: `ratings` are the new model's by basis, `anchors` have ratings by judge and people."""
    no_anchors = None if len(anchors) >= _FEW else "fewer than two models of the board have a rating by people"
    return {
        "leaderboard": ChartKind(lambda: None, lambda: _placed(placement, ratings)),
        "intervals": ChartKind(lambda: None, lambda: _bases(placement, ratings)),
        "calibration": ChartKind(lambda: no_anchors, lambda: _anchors(placement, ratings, anchors)),
    }


def _placed(placement: Placement, ratings: Rows) -> Any:
    """The board with the new model in its place."""
    board = placement.ratings
    low, high = (column.tolist() for column in board.interval(placement.level))
    rows = [
        {"model": name, "elo": elo, "lo": finite_or_none(lo), "hi": finite_or_none(hi), "band": 0}
        for name, elo, lo, hi in zip(board.models, board.elo.tolist(), low, high, strict=True)
        if name != placement.model and finite_or_none(elo) is not None
    ]
    (own,) = (row for row in ratings if row["basis"] == "held with the board's error")
    rows.append({**{name: own[name] for name in ("model", "elo", "lo", "hi")}, "band": 1})
    rows.sort(key=lambda row: (-row["elo"], row["model"]))
    for row in rows:
        row["written"] = elo_text(row["elo"], row["lo"], row["hi"])
    panel = Panel("Elo", "elo", "lo", "hi", text="written", open_ends=True, width=420)
    notes = [f"{placement.model} is on the shaded ground, after {placement.judgments:,} judgments", *_marked(rows)]
    title = f"{placement.model} among the models of the board, {100 * placement.level:g} % intervals"
    return intervals(rows, "model", [panel], title, notes)


def _bases(placement: Placement, ratings: Rows) -> Any:
    rows = [{**row, "unbounded": row["lo"] is None and row["hi"] is None} for row in ratings]
    for row in rows:
        row["written"] = elo_text(row["elo"], row["lo"], row["hi"])
    panel = Panel("Elo", "elo", "lo", "hi", text="written", open_ends=True)
    title = f"Ratings of {placement.model}, {100 * placement.level:g} % intervals"
    others = [f"{row['basis']}: {100 * row['level']:g} %" for row in rows if row["level"] != placement.level]
    return intervals(rows, "basis", [panel], title, [*others, *_marked(rows)])


def _anchors(placement: Placement, ratings: Rows, anchors: Rows) -> Any:
    new = {row["basis"]: row for row in ratings}
    people = new["people's scale"]
    own = {"model": placement.model, "judge": new["held"]["elo"], "people": people["elo"]}
    ends = {"lo": people["lo"], "hi": people["hi"]}
    title = f"Calibration: ratings by people and by the judge, with {placement.model}"
    notes = ["Each model of the board was placed again like the new one"]
    open_end = people["lo"] is None or people["hi"] is None
    notes += ["The new model's interval on people's scale has no end: too few models are rated by both"] * open_end
    return scatter(anchors, {**own, **ends}, "judge", "people", title, "Elo by the judge", "Elo by people", notes)


def _leaderboard(rows: Rows, method: str, wide: str) -> Any:
    sets = [(row["group"], row["tier"]) for row in rows if row["tier"] is not None]
    band = {one: number for number, one in enumerate(dict.fromkeys(sets), start=1)}
    tied = len(band) < len(sets)
    shown = [
        {
            **{name: row[name] for name in ("model", "elo", "lo", "hi", "battles")},
            "rating": elo_text(row["elo"], row["lo"], row["hi"]),
            "rank": _ranks(row),
            "band": band.get((row["group"], row["tier"]), 0) if tied else 0,
        }
        for row in rows
    ]
    for row in shown:
        row["written"] = f"{row['rating']}, rank {row['rank']}" if row["rank"] else row["rating"]
    notes = ["Models on one shade do not differ significantly from the first of them"] if tied else []
    panel = Panel("Elo", "elo", "lo", "hi", text="written", open_ends=True, width=420)
    return intervals(shown, "model", [panel], f"Leaderboard: {method}, {wide} intervals", [*notes, *_marked(rows)])


def _order(rows: Rows, method: str, wide: str) -> Any:
    """The leaderboard of a method that gives an order and no ratings: places, with the ranks that each may have."""
    names = ("model", "position", "rank_lo", "rank_hi", "battles")
    shown = [{name: row[name] for name in names} | {"rank": _ranks(row)} for row in rows]
    for row in shown:
        row["written"] = "" if row["position"] is None else f"{row['position']:.4g}"
    panel = Panel("place", "position", "rank_lo", "rank_hi", whole=True, text="written", width=420)
    return intervals(shown, "model", [panel], f"Order: {method}, {wide} intervals of ranks")


def _ranks(row: Mapping[str, Any]) -> str:
    low, high = row["rank_lo"], row["rank_hi"]
    return "" if low is None or high is None else f"{low}" if low == high else f"{low}-{high}"


def _marked(rows: Rows) -> list[str]:
    """What a triangle at the edge of the scale means, where there is one."""
    is_open = any((row["lo"] is None) != (row["hi"] is None) or row.get("unbounded") for row in rows)
    return ["A triangle at the edge: the interval has no end on that side"] if is_open else []


def _intervals(rows: Rows, method: str, wide: str) -> Any:
    known = any(row["reference"] is not None for row in rows)
    shown = [{name: row[name] for name in _INTERVAL_COLUMNS} for row in rows]
    panels = [Panel("Elo", "elo", "lo", "hi", other="reference" if known else None, open_ends=True, width=320)]
    if any(row["rank_lo"] is not None for row in rows):
        panels.append(Panel("rank", "rank", "rank_lo", "rank_hi", whole=True, width=200))
        for row in shown:
            row["rank"] = row["rank_lo"] if row["rank_lo"] == row["rank_hi"] else None
    notes = ["Diamonds: ratings known before"] if known else []
    return intervals(shown, "model", panels, f"Ratings and ranks: {method}, {wide} intervals", [*notes, *_marked(rows)])


_INTERVAL_COLUMNS = ("model", "elo", "lo", "hi", "rank_lo", "rank_hi", "reference")


def _matrix(source: ChartSource, models: Sequence[str] | None) -> Any:
    rows = matrix_rows(source, models)
    if not rows:
        raise InputError("no two models met")
    order = list(dict.fromkeys(row["model"] for row in rows))
    return grid(rows, order, "Share of judgments won by the row against the column", ["Ties count as half a win"])


def _no_judges(judges: Sequence[JudgeConsistency]) -> str | None:
    known = any(one.corrected is not None for one in judges)
    return None if known else "no judge has a consistency"


def _judges_of(source: ChartSource) -> Any:
    found = consistency(source.battles, level=source.options.level)
    if (why := _no_judges(found.judges)) is not None:
        raise InputError(why)
    return _judges(found.judges, f"{100 * found.level:g} %")


def _judges(judges: Sequence[JudgeConsistency], wide: str) -> Any:
    rows = [asdict(one) for one in judges if one.corrected is not None]
    rows = sorted(rows, key=lambda row: (-row["corrected"], row["judge"]))
    both = {name: (f"{name}_lo", f"{name}_hi") for name in ("consistency", "decisive", "flips", "ties")}
    among = (*both["consistency"], *both["decisive"])
    panels = [
        Panel("consistency", "corrected", *both["consistency"], format=".2f", width=210, among=among),
        Panel("decisive consistency", "decisive_corrected", *both["decisive"], format=".2f", width=210, among=among),
    ]
    if any(row["flips"] is not None for row in rows):
        panels.append(Panel("flips with the order", "flips", *both["flips"], format=".0%", width=130, from_zero=True))
    panels.append(Panel("ties", "ties", *both["ties"], format=".0%", width=130, from_zero=True))
    named = ("judge", "corrected", "consistency_lo", "consistency_hi", "decisive_corrected", "decisive_lo")
    shown = [{name: row[name] for name in (*named, "decisive_hi", "flips", "ties", "verdicts")} for row in rows]
    return intervals(shown, "judge", panels, f"Judges, the most consistent first, {wide} intervals")


def _position(source: ChartSource) -> Any:
    rows = sorted(position_rows(source), key=lambda row: (-abs(row["first"] - 0.5), row["judge"]))
    for row in rows:
        row["flipped"] = "" if row["flips"] is None else f"{row['flips']:.1%} flips"
    what = "share of decided verdicts for the answer shown first"
    panel = Panel(what, "first", "lo", "hi", rule=0.5, format=".0%", text="flipped", bounds=(0.0, 1.0))
    wide = f"{100 * source.options.level:g} %"
    note = "At the dashed line a judge does not follow the place; flips: the two orders named opposite winners"
    return intervals(rows, "judge", [panel], f"Position: which place judges choose, {wide} intervals", [note])


def _reliability(source: ChartSource) -> Any:
    rows = reliability_rows(source)
    errors = {row["judge"]: row["ece"] for row in rows}
    shown = [
        {"x": row["predicted"], "y": row["observed"], "rows": row["battles"], "judge": row["judge"]} for row in rows
    ]
    notes = [f"Expected calibration error: {', '.join(f'{name} {ece:.3f}' for name, ece in list(errors.items())[:4])}"]
    across, up = "predicted agreement of people with the judge", "observed agreement"
    title = "Reliability: do people agree as often as scores say?"
    return diagram(shown, title, across, up, low=0.5, group="judge", notes=notes)


def _calibration(source: ChartSource) -> Any:
    rows, whole = calibration_rows(source)
    shown = [{"x": row["stated"], "y": row["seen"], "rows": row["judgments"]} for row in rows]
    error = f"Expected calibration error {whole['error']:.3f}; {whole['by_chance']:.3f} by chance alone"
    notes = [f"{whole['judgments']:,} judgments, each predicted from ratings without it", error]
    across, up = "expected wins of the higher rated model", "wins seen"
    return diagram(shown, "Calibration: do ratings predict judgments?", across, up, low=0.5, notes=notes)


def _learning(source: ChartSource) -> Any:
    rows = learning_rows(source)
    notes = [
        f"{source.method} from the first verdicts alone",
        "Until all models have ratings, the others keep their last mean",
    ]
    return curves(rows, "verdicts", "elo", "Ratings as verdicts came in", source.sequence, "Elo", notes)


def _no_costs(rows: Rows, source: ChartSource | None) -> str | None:
    if source is None or source.costs is None:
        return "only a store knows what its calls cost"
    costs = source.costs()
    if len(cost_rows(rows, costs.models, source.options.level)) >= _FEW or any(one.nano > 0 for one in costs.judges):
        return None
    return "no call cost anything, or no price is known"


def _costs(rows: Rows, source: ChartSource | None) -> Any:
    """Ratings against the price of completions where the store had them written, else what verdicts of judges cost."""
    assert source is not None
    assert source.costs is not None
    costs = source.costs()
    shown = cost_rows(rows, costs.models, source.options.level)
    if len(shown) >= _FEW:
        notes = ["Dashed: the best rating that so much buys", f"{100 * source.options.level:g} % intervals of both"]
        return frontier(shown, "Rating against cost", "dollars for a completion", [*notes, *_marked(shown)])
    paid = sorted((one for one in costs.judges if one.nano > 0), key=lambda one: (-one.nano, one.name))
    bars = [
        {
            "judge": one.name,
            "each": one.dollars,
            "none": None,
            "said": f"{money(one.nano)} for {one.count:,} verdicts",
        }
        for one in paid
    ]
    panel = Panel("dollars for a verdict", "each", "none", "none", format="$~g", text="said", from_zero=True)
    whole = money(sum(one.nano for one in paid))
    return intervals(bars, "judge", [panel], f"Cost of judges: {whole} in all")
