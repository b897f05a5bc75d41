"""The kinds of chart, each declared once: what it is drawn of for `plot` and a report's figures, pages, and reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

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
from venire.reports.charts import (
    Panel,
    curves,
    diagram,
    frontier,
    grid,
    intervals,
    scatter,
)
from venire.reports.numbers import dollars, elo, number
from venire.reports.planes import Plane, PlaneAxis, plane, stair
from venire.reports.wording import elo_text

Rows = Sequence[Mapping[str, Any]]

_FEW = 2


@dataclass(frozen=True, slots=True)
class Plotted:
    """What boards, audits and placements have for their charts; those of `rows` and of `placement` are of these alone.

    `rows` are models as `Board.rows` gives them, best first, or ratings of a placed model by basis; `anchors` have
    ratings by judge and people.
    """

    source: ChartSource | None = None
    rows: Rows = ()
    judges: Sequence[JudgeConsistency] = ()
    method: str = ""
    level: float = 0.95
    placement: Placement | None = None
    anchors: Rows = ()

    @property
    def wide(self) -> str:
        """The level as words."""
        return f"{100 * self.level:g} %"

    @property
    def unrated(self) -> str | None:
        """Why nothing about ratings can be drawn; None where it can."""
        known = any(row[end] is not None for row in self.rows for end in ("elo", "lo", "hi"))
        return None if known else f"no model has a rating by {self.method}"


@dataclass(frozen=True, slots=True)
class Drawing:
    """How a chart is drawn of something, and why it has no data for it, in words (None: it has)."""

    draw: Callable[[Any], Any]
    missing: Callable[[Any], str | None] = lambda plotted: None


@dataclass(frozen=True, slots=True)
class ChartKind:
    """A kind of chart by its name, with where it is shown.

    `verdicts` is what `plot` draws of a board or an audit, `board` of a board in its place, `placement` of a placement;
    a report's figures are those of a board. `report` makes a plane of a report's document, None without data, for the
    sections that name it.
    """

    name: str
    verdicts: Drawing | None = None
    board: Drawing | None = None
    placement: Drawing | None = None
    report: Callable[[Mapping[str, Any]], Plane | None] | None = None

    def of(self, road: Road) -> Drawing | None:
        """What `plot` draws of this."""
        return self.placement if road == "placement" else (road == "board" and self.board) or self.verdicts


Road = Literal["board", "audit", "placement"]


def plot(road: Road, kind: str | None, plotted: Plotted) -> Any:
    """The altair chart of a kind; None: the first that there is data for, in the order of `CHARTS`.

    Raises InputError without data for it, naming the kinds that there is data for.
    """
    what, drawings = f"this {road}", {one.name: drawing for one in CHARTS.values() if (drawing := one.of(road))}
    if kind is None:
        kind = next((name for name, one in drawings.items() if one.missing(plotted) is None), next(iter(drawings)))
    reason = f"{what} has no {kind} chart" if kind in plotted_kinds() else f"there is no chart {kind!r}"
    if kind in drawings:
        try:
            if (why := drawings[kind].missing(plotted)) is None:
                return drawings[kind].draw(plotted)
        except InputError as error:
            why = str(error)
        reason += f": {why}"
    able = [name for name, one in drawings.items() if name != kind and one.missing(plotted) is None]
    raise InputError(f"{reason}; {what} draws {', '.join(able) or 'no other chart'}")


def report_planes(document: Mapping[str, Any]) -> dict[str, Plane]:
    """The planes of a report's document that there is data for, by kind."""
    made = ((one.name, one.report(document)) for one in CHARTS.values() if one.report is not None)
    return {name: found for name, found in made if found is not None}


def _of_verdicts(kind: str, draw: Callable[[ChartSource, Plotted], Any], *, ratings: bool = False) -> Drawing:
    """A chart that verdicts themselves make; one of `ratings` needs rated models."""

    def lacks(plotted: Plotted) -> str | None:
        return missing(plotted.source, kind) or (plotted.unrated if ratings and plotted.rows else None)

    return Drawing(lambda plotted: draw(plotted.source, plotted), lacks)


def _placed_or_unrated(plotted: Plotted) -> str | None:
    return None if any(row["position"] is not None for row in plotted.rows) else plotted.unrated


def _placed(plotted: Plotted) -> Any:
    """The board with the new model in its place."""
    placement, ratings = _of_placement(plotted), plotted.rows
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


def _of_placement(plotted: Plotted) -> Placement:
    assert plotted.placement is not None  # what is plotted is one
    return plotted.placement


def _bases(plotted: Plotted) -> Any:
    placement, ratings = _of_placement(plotted), plotted.rows
    rows = [{**row, "unbounded": row["lo"] is None and row["hi"] is None} for row in ratings]
    for row in rows:
        row["written"] = elo_text(row["elo"], row["lo"], row["hi"])
    panel = Panel("Elo", "elo", "lo", "hi", text="written", open_ends=True)
    title = f"Ratings of {placement.model}, {100 * placement.level:g} % intervals"
    others = [f"{row['basis']}: {100 * row['level']:g} %" for row in rows if row["level"] != placement.level]
    return intervals(rows, "basis", [panel], title, [*others, *_marked(rows)])


def _few_anchors(plotted: Plotted) -> str | None:
    return None if len(plotted.anchors) >= _FEW else "fewer than two models of the board have a rating by people"


def _anchors(plotted: Plotted) -> Any:
    placement, ratings = _of_placement(plotted), plotted.rows
    new = {row["basis"]: row for row in ratings}
    people = new["people's scale"]
    own = {"model": placement.model, "judge": new["held"]["elo"], "people": people["elo"]}
    ends = {"lo": people["lo"], "hi": people["hi"]}
    title = f"Calibration: ratings by people and by the judge, with {placement.model}"
    notes = ["Each model of the board was placed again like the new one"]
    open_end = people["lo"] is None or people["hi"] is None
    notes += ["The new model's interval on people's scale has no end: too few models are rated by both"] * open_end
    return scatter(
        plotted.anchors, {**own, **ends}, "judge", "people", title, "Elo by the judge", "Elo by people", notes
    )


def _leaderboard(plotted: Plotted) -> Any:
    if plotted.unrated:
        return _order(plotted)
    rows = plotted.rows
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
    return intervals(
        shown, "model", [panel], f"Leaderboard: {plotted.method}, {plotted.wide} intervals", [*notes, *_marked(rows)]
    )


def _order(plotted: Plotted) -> Any:
    """The leaderboard of a method that gives an order and no ratings: places, with the ranks that each may have."""
    names = ("model", "position", "rank_lo", "rank_hi", "battles")
    shown = [{name: row[name] for name in names} | {"rank": _ranks(row)} for row in plotted.rows]
    for row in shown:
        row["written"] = "" if row["position"] is None else f"{row['position']:.4g}"
    panel = Panel("place", "position", "rank_lo", "rank_hi", whole=True, text="written", width=420)
    return intervals(shown, "model", [panel], f"Order: {plotted.method}, {plotted.wide} intervals of ranks")


def _ranks(row: Mapping[str, Any]) -> str:
    low, high = row["rank_lo"], row["rank_hi"]
    return "" if low is None or high is None else f"{low}" if low == high else f"{low}-{high}"


def _marked(rows: Rows) -> list[str]:
    """What a triangle at the edge of the scale means, where there is one."""
    is_open = any((row["lo"] is None) != (row["hi"] is None) or row.get("unbounded") for row in rows)
    return ["A triangle at the edge: the interval has no end on that side"] if is_open else []


def _intervals(plotted: Plotted) -> Any:
    rows = plotted.rows
    known = any(row["reference"] is not None for row in rows)
    shown = [{name: row[name] for name in _INTERVAL_COLUMNS} for row in rows]
    panels = [Panel("Elo", "elo", "lo", "hi", other="reference" if known else None, open_ends=True, width=320)]
    if any(row["rank_lo"] is not None for row in rows):
        panels.append(Panel("rank", "rank", "rank_lo", "rank_hi", whole=True, width=200))
        for row in shown:
            row["rank"] = row["rank_lo"] if row["rank_lo"] == row["rank_hi"] else None
    notes = ["Diamonds: ratings known before"] if known else []
    title = f"Ratings and ranks: {plotted.method}, {plotted.wide} intervals"
    return intervals(shown, "model", panels, title, [*notes, *_marked(rows)])


_INTERVAL_COLUMNS = ("model", "elo", "lo", "hi", "rank_lo", "rank_hi", "reference")


def _matrix(source: ChartSource, plotted: Plotted) -> Any:
    rows = matrix_rows(source, [row["model"] for row in plotted.rows] or None)
    if not rows:
        raise InputError("no two models met")
    order = list(dict.fromkeys(row["model"] for row in rows))
    return grid(rows, order, "Share of judgments won by the row against the column", ["Ties count as half a win"])


def _no_judges(judges: Sequence[JudgeConsistency]) -> str | None:
    known = any(one.corrected is not None for one in judges)
    return None if known else "no judge has a consistency"


def _judges_of(source: ChartSource, plotted: Plotted) -> Any:
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


def _position(source: ChartSource, plotted: Plotted) -> Any:
    rows = sorted(position_rows(source), key=lambda row: (-abs(row["first"] - 0.5), row["judge"]))
    for row in rows:
        row["flipped"] = "" if row["flips"] is None else f"{row['flips']:.1%} flips"
    what = "share of decided verdicts for the answer shown first"
    panel = Panel(what, "first", "lo", "hi", rule=0.5, format=".0%", text="flipped", bounds=(0.0, 1.0))
    wide = f"{100 * source.options.level:g} %"
    note = "At the dashed line a judge does not follow the place; flips: the two orders named opposite winners"
    return intervals(rows, "judge", [panel], f"Position: which place judges choose, {wide} intervals", [note])


def _reliability(source: ChartSource, plotted: Plotted) -> Any:
    rows = reliability_rows(source)
    errors = {row["judge"]: row["ece"] for row in rows}
    shown = [
        {"x": row["predicted"], "y": row["observed"], "rows": row["battles"], "judge": row["judge"]} for row in rows
    ]
    notes = [f"Expected calibration error: {', '.join(f'{name} {ece:.3f}' for name, ece in list(errors.items())[:4])}"]
    across, up = "predicted agreement of people with the judge", "observed agreement"
    title = "Reliability: do people agree as often as scores say?"
    return diagram(shown, title, across, up, low=0.5, group="judge", notes=notes)


def _calibration(source: ChartSource, plotted: Plotted) -> Any:
    rows, whole = calibration_rows(source)
    shown = [{"x": row["stated"], "y": row["seen"], "rows": row["judgments"]} for row in rows]
    error = f"Expected calibration error {whole['error']:.3f}; {whole['by_chance']:.3f} by chance alone"
    notes = [f"{whole['judgments']:,} judgments, each predicted from ratings without it", error]
    across, up = "expected wins of the higher rated model", "wins seen"
    return diagram(shown, "Calibration: do ratings predict judgments?", across, up, low=0.5, notes=notes)


def _learning(source: ChartSource, plotted: Plotted) -> Any:
    rows = learning_rows(source)
    notes = [
        f"{source.method} from the first verdicts alone",
        "Until all models have ratings, the others keep their last mean",
    ]
    return curves(rows, "verdicts", "elo", "Ratings as verdicts came in", source.sequence, "Elo", notes)


def _no_costs(plotted: Plotted) -> str | None:
    source = plotted.source
    if source is None or source.costs is None:
        return "only a store knows what its calls cost"
    costs = source.costs()
    if len(cost_rows(plotted.rows, costs.models, source.options.level)) >= _FEW or any(
        one.nano > 0 for one in costs.judges
    ):
        return None
    return "no call cost anything, or no price is known"


def _costs(plotted: Plotted) -> Any:
    """Ratings against the price of completions where the store had them written, else what verdicts of judges cost."""
    source = plotted.source
    assert source is not None
    assert source.costs is not None
    costs = source.costs()
    shown = cost_rows(plotted.rows, costs.models, source.options.level)
    if len(shown) >= _FEW:
        notes = ["Dashed: the best rating that so much buys", f"{100 * source.options.level:g} % intervals of both"]
        return frontier(shown, "Rating against cost", "dollars for a completion", [*notes, *_marked(shown)])
    paid = sorted((one for one in costs.judges if one.nano > 0), key=lambda one: (-one.nano, one.name))
    prices = [
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
    return intervals(prices, "judge", [panel], f"Cost of judges: {whole} in all")


def _cost_plane(document: Mapping[str, Any]) -> Plane | None:
    """Quality against cost: models on a logarithmic scale of costs, and the frontier in steps."""
    rows = document["contestants"]
    if rows is None:
        return None
    across = PlaneAxis("cost of a completion", "nano", "nano_lo", "nano_hi", dollars, room=0.1, logarithmic=True)
    found = plane(rows, "model", across, PlaneAxis("Elo", "elo", "lo", "hi", elo, room=20.0), first="frontier")
    path = stair([one for one in found["points"] if one["frontier"]], found["right"])
    title = "Rating against the cost of a completion"
    return {**found, "path": path, "title": title, "words": f"{title}; the table below has the figures"}


def _judge_plane(document: Mapping[str, Any]) -> Plane | None:
    """How consistent each judge is, and how it is rated as a model."""
    found = document["judge_ratings"]
    if found is None:
        return None
    across = PlaneAxis(
        "consistency", "corrected", "consistency_lo", "consistency_hi", partial(number, digits=2), room=0.02
    )
    made = plane(
        found["judges"], "judge", across, PlaneAxis(f"Elo {found['ratings']}", "elo", "lo", "hi", elo, room=20.0)
    )
    words = f"Consistency of each judge against its Elo {found['ratings']}: {found['says']}"
    return {**made, "title": "Consistency of judges and their ratings", "words": words}


CHARTS: dict[str, ChartKind] = {
    one.name: one
    for one in (
        ChartKind("leaderboard", board=Drawing(_leaderboard, _placed_or_unrated), placement=Drawing(_placed)),
        ChartKind("matrix", verdicts=_of_verdicts("matrix", _matrix)),
        ChartKind(
            "intervals",
            board=Drawing(_intervals, lambda plotted: plotted.unrated),
            placement=Drawing(_bases),
        ),
        ChartKind(
            "judges",
            board=Drawing(
                lambda plotted: _judges(plotted.judges, plotted.wide), lambda plotted: _no_judges(plotted.judges)
            ),
            verdicts=_of_verdicts("judges", _judges_of),
            report=_judge_plane,
        ),
        ChartKind("reliability", verdicts=_of_verdicts("reliability", _reliability)),
        ChartKind("position", verdicts=_of_verdicts("position", _position)),
        ChartKind("cost", board=Drawing(_costs, _no_costs), report=_cost_plane),
        ChartKind("learning", verdicts=_of_verdicts("learning", _learning, ratings=True)),
        ChartKind(
            "calibration",
            placement=Drawing(_anchors, _few_anchors),
            verdicts=_of_verdicts("calibration", _calibration, ratings=True),
        ),
    )
}
"""Every kind of chart, in the order in which `plot` names those that there is data for."""


def plotted_kinds() -> tuple[str, ...]:
    """What `plot` takes of anything; each object draws those that it has data for."""
    return tuple(one.name for one in CHARTS.values() if one.verdicts or one.board or one.placement)
