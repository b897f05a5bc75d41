"""Figures of methods that rate models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
from simulated import all_pairs, instructed, sigma

from venire.arena.scale import POINTS_PER_LOGIT
from venire.ratings import (
    Ratings,
    any_time_radius,
    bradley_terry,
    comparisons,
    covariates,
    davidson,
    online_elo,
    ranking,
    rao_kupper,
    trueskill,
    win_rate,
    win_rate_balanced,
)

Drawing = Any
"""A chart: the methods that make one in altair do not say what they return."""

RUNS = 400
SEQUENCES = 20


def chart(rows: Sequence[Mapping[str, object]]) -> alt.Chart:
    """A chart of plain rows."""
    return alt.Chart(alt.InlineData(values=[dict(row) for row in rows]))


def recovery() -> Drawing:
    """Bradley-Terry: fitted Elo with its interval against what was planted."""
    truth = np.linspace(-1.5, 1.5, 15)
    fitted = bradley_terry(instructed(truth, 20, np.random.default_rng(1)))
    lo, hi = fitted.interval()
    planted = 1000 + POINTS_PER_LOGIT * truth
    rows = [
        {"planted": x, "fitted": y, "lo": low, "hi": high}
        for x, y, low, high in zip(planted, fitted.elo, lo, hi, strict=True)
    ]
    x = alt.X("planted:Q", title="planted Elo", scale=alt.Scale(zero=False))
    drawn = chart(rows)
    y = alt.Y("lo:Q", title="fitted Elo, 95 % interval", scale=alt.Scale(zero=False))
    line = chart([{"planted": end, "lo": end} for end in (planted[0], planted[-1])]).mark_line(
        color="#999", strokeDash=[4, 4]
    )
    return (
        line.encode(x, y)
        + drawn.mark_rule().encode(x, y, y2="hi:Q")
        + drawn.mark_point(filled=True).encode(x, alt.Y("fitted:Q"))
    )


def coverage() -> Drawing:
    """Standard errors: share of intervals that hold the truth, by unit and number of instructions."""
    truth, rng = np.linspace(-1.0, 1.0, 5), np.random.default_rng(2)
    rows: list[dict[str, object]] = []
    for instructions in (10, 20, 40, 80, 160):
        held = {"by instruction": 0.0, "by judgment": 0.0}
        for _ in range(RUNS):
            data = instructed(truth, instructions, rng, sway=0.7)
            fits = {
                "by instruction": bradley_terry(data, errors="cluster"),
                "by judgment": bradley_terry(data, errors="sandwich"),
            }
            for name, fitted in fits.items():
                lo, hi = fitted.interval()
                # A sway that is not in the model flattens gaps alike: the centred limit is estimated, not planted.
                held[name] += float(np.mean((lo <= LIMIT) & (hi >= LIMIT))) / RUNS
        rows += [{"n": instructions, "errors": name, "held": share} for name, share in held.items()]
    line = chart(rows).encode(
        alt.X("n:O", title="instructions", axis=alt.Axis(labelAngle=0)),
        alt.Y("held:Q", title="95 % intervals that hold the truth", scale=alt.Scale(domain=[0.8, 1.0])),
        alt.Color("errors:N", title="errors"),
    )
    return _rule_y(0.95) + line.mark_line(point=True)


def _limit() -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """What a fit without end tends to under `coverage`'s sway: the fit of its own expected outcomes, in Elo."""
    truth = np.linspace(-1.0, 1.0, 5)
    a, b = all_pairs(5)
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    expected = sigma((truth[a] - truth[b])[:, None] + 0.7 * np.sqrt(2.0) * nodes) @ weights / weights.sum()
    elo: np.ndarray[tuple[int], np.dtype[np.float64]] = bradley_terry(comparisons(a, b, expected), errors="none").elo
    return elo


LIMIT = _limit()


def ranks() -> Drawing:
    """Ranks: the ranks that each model may have, all models at once."""
    truth = np.array([1.6, 1.0, 0.95, 0.9, 0.3, 0.2, 0.1, -0.6, -0.7, -1.4])
    fitted = bradley_terry(instructed(truth, 15, np.random.default_rng(3)))
    found = ranking(fitted)
    rows = [
        {"model": f"{name} ({elo:.0f})", "rank": int(rank), "lo": int(lo), "hi": int(hi), "tier": f"{tier}"}
        for name, elo, rank, lo, hi, tier in zip(
            "ABCDEFGHIJ", fitted.elo, found.rank, found.lo, found.hi, found.tier, strict=True
        )
    ]
    y = alt.Y("model:N", title="model (Elo)", sort=alt.EncodingSortField("rank"))
    scale = alt.Scale(domain=[0.5, 10.5], nice=False)
    axis = alt.Axis(values=list(range(1, 11)), format="d")
    x = alt.X("lo:Q", title="rank", scale=scale, axis=axis)
    color = alt.Color("tier:N", title="tier")
    bar = chart(rows).mark_rule(strokeWidth=7, opacity=0.5, strokeCap="round").encode(x, y, color, x2="hi:Q")
    return bar + chart(rows).mark_point(filled=True, color="black").encode(
        alt.X("rank:Q", title="", scale=scale, axis=axis), y
    )


def any_time() -> Drawing:
    """Looking while it runs: runs that an interval has missed at some look so far."""
    rng = np.random.default_rng(4)
    looks, runs = 150, 4000
    mean = np.cumsum(rng.normal(0.0, 2.0, (runs, looks)), axis=1) / np.arange(1, looks + 1)
    se = 2.0 / np.sqrt(np.arange(1, looks + 1))
    rows: list[dict[str, object]] = []
    radii = {"1.96 errors": 1.96 * se, "normal mixture": any_time_radius(se, tau=0.5 * 2.0**0.5) * se}
    for name, radius in radii.items():
        missed = np.mean(np.maximum.accumulate(np.abs(mean) > radius, axis=1), axis=0)
        rows += [{"look": look + 1, "interval": name, "missed": share} for look, share in enumerate(missed)]
    line = chart(rows).encode(
        alt.X("look:Q", title="looks"),
        alt.Y("missed:Q", title="runs that missed at some look"),
        alt.Color("interval:N", title="interval"),
    )
    return _rule_y(0.05) + line.mark_line()


def ties() -> Drawing:
    """Ties: their probability by gap, fitted to one table by both models, beside the shares that were drawn."""
    truth, rng = np.linspace(-2.0, 2.0, 9), np.random.default_rng(5)
    a, b = (np.tile(side, 100) for side in all_pairs(9))
    gap = truth[a] - truth[b]
    tie = rng.random(len(a)) < 1.4 / (1.4 + 2.0 * np.cosh(gap / 2.0))
    won = rng.random(len(a)) < sigma(gap)
    data = comparisons(a, b, np.where(tie, 0.5, won))
    kappa, nu = rao_kupper(data).tie, davidson(data).tie
    at = np.linspace(0.0, 4.0, 41)
    p, q = sigma(at - np.log(kappa)), sigma(-at - np.log(kappa))
    curves = {"Rao-Kupper": 1.0 - p - q, "Davidson": nu / (nu + 2.0 * np.cosh(at / 2.0))}
    lines = [
        {"gap": POINTS_PER_LOGIT * x, "p": y, "model": name}
        for name, curve in curves.items()
        for x, y in zip(at, curve, strict=True)
    ]
    step = np.abs(gap).round(6)
    seen = [{"gap": POINTS_PER_LOGIT * one, "p": float(tie[step == one].mean())} for one in np.unique(step)]
    x = alt.X("gap:Q", title="gap, Elo points")
    y = alt.Y("p:Q", title="share of ties")
    line = chart(lines).mark_line().encode(x, y, alt.Color("model:N", title="model"))
    return line + chart(seen).mark_point(filled=True, color="black").encode(x, y)


def bias_of_covariates() -> Drawing:
    """Covariates: coefficients with intervals beside what was planted, and how they tighten."""
    truth, planted = np.linspace(-1.0, 1.0, 6), {"length": 0.6, "headers": 0.2, "bold": 0.0, "position": 0.3}
    rng = np.random.default_rng(6)
    rows: list[dict[str, object]] = []
    for instructions in (20, 60, 200):
        a, b = (np.tile(side, 2 * instructions) for side in all_pairs(6))
        question = np.repeat(np.arange(instructions), len(a) // instructions)
        x = rng.normal(size=(len(a), 4))
        x[:, 3] = np.where(rng.random(len(a)) < 0.5, 1.0, -1.0)
        won = rng.random(len(a)) < sigma(truth[a] - truth[b] + x @ np.array(list(planted.values())))
        found = covariates(comparisons(a, b, won.astype(float), cluster=question), x, list(planted))
        lo, hi = found.interval()
        rows += [
            {"n": f"{instructions}", "name": name, "w": w, "lo": low, "hi": high, "planted": planted[name]}
            for name, w, low, high in zip(found.names, found.coefficients, lo, hi, strict=True)
        ]
    x_axis = alt.X("lo:Q", title="coefficient, log odds a unit")
    y = alt.Y("n:N", title=None, axis=None, sort=["20", "60", "200"])
    color = alt.Color("n:N", title="instructions", sort=["20", "60", "200"])
    base = alt.Chart(width=300, height=55)
    layers = alt.layer(
        base.mark_rule(strokeWidth=2).encode(x_axis, y, color, x2="hi:Q"),
        base.mark_point(filled=True).encode(alt.X("w:Q"), y, color),
        base.mark_tick(thickness=2, height=14, color="black").encode(alt.X("planted:Q"), y),
    )
    row = alt.Row("name:N", title=None, sort=list(planted), header=alt.Header(labelAngle=0, labelAlign="left"))
    return alt.FacetChart(spec=layers, facet=alt.FacetedEncoding(row=row), data=alt.InlineData(values=rows))


def orders() -> Drawing:
    """Online Elo: what one order owes to chance, by K, beside the error of the battles themselves."""
    truth = np.linspace(-0.8, 0.8, 8)
    data = instructed(truth, 40, np.random.default_rng(7))
    rows = [{"k": k, "sd": float(online_elo(data, k=k).sd.mean())} for k in (1, 2, 4, 8, 16, 32, 64)]
    error = POINTS_PER_LOGIT * float(bradley_terry(data).se.mean())
    line = chart(rows).encode(
        alt.X("k:Q", title="K, Elo points", scale=alt.Scale(type="log", base=2)),
        alt.Y("sd:Q", title="scatter of one order, Elo points"),
    )
    note = chart([{"y": error, "words": "standard error of Bradley-Terry"}])
    rule = note.mark_rule(strokeDash=[4, 4], color="#777").encode(alt.Y("y:Q"))
    text = note.mark_text(align="right", dy=9, color="#555").encode(alt.Y("y:Q"), alt.Text("words:N"), x=alt.value(336))
    return rule + text + line.mark_line(point=True)


def sequences() -> Drawing:
    """TrueSkill: error against battles, beside Bradley-Terry on the same ones."""
    truth, rng = np.linspace(-1.0, 1.0, 6), np.random.default_rng(8)
    methods: Mapping[str, Callable[..., Ratings]] = {
        "Bradley-Terry": lambda data, seed: bradley_terry(data, errors="none"),
        "TrueSkill, 10 orders": lambda data, seed: trueskill(data, shuffles=10, seed=seed).ratings,
        "TrueSkill, 1 order": lambda data, seed: trueskill(data, shuffles=1, seed=seed).ratings,
    }
    rows: list[dict[str, object]] = []
    for instructions in (5, 10, 20, 40, 80, 160, 320):
        square = dict.fromkeys(methods, 0.0)
        for run in range(SEQUENCES):
            data = instructed(truth, instructions, rng)
            for name, method in methods.items():
                square[name] += float(np.mean((POINTS_PER_LOGIT * (method(data, run).logits - truth)) ** 2)) / SEQUENCES
        rows += [{"n": 30 * instructions, "method": name, "error": total**0.5} for name, total in square.items()]
    return (
        chart(rows)
        .mark_line(point=True)
        .encode(
            alt.X("n:Q", title="battles of 6 models", scale=alt.Scale(type="log", nice=False)),
            alt.Y("error:Q", title="root mean square error, Elo points", scale=alt.Scale(type="log", nice=False)),
            alt.Color("method:N", title="method"),
        )
    )


def rates() -> Drawing:
    """Win rates: strength by three methods where the strong met the strong more often."""
    truth, rng = np.linspace(-1.2, 1.2, 9), np.random.default_rng(9)
    a, b = all_pairs(9)
    often = np.where(np.abs(a - b) <= 2, 400, 20)
    a, b = np.repeat(a, often), np.repeat(b, often)
    data = comparisons(a, b, (rng.random(len(a)) < sigma(truth[a] - truth[b])).astype(float))
    found = {
        "win rate": win_rate(data).ratings,
        "balanced win rate": win_rate_balanced(data).ratings,
        "Bradley-Terry": bradley_terry(data),
    }
    rows = [
        {"planted": 1000 + POINTS_PER_LOGIT * strength, "elo": elo, "method": name}
        for name, ratings in found.items()
        for strength, elo in zip(truth, ratings.elo, strict=True)
    ]
    x, y = alt.X("planted:Q", title="planted Elo"), alt.Y("elo:Q", title="Elo by method")
    ends = [
        {"planted": end, "elo": end}
        for end in (1000 + POINTS_PER_LOGIT * truth[0], 1000 + POINTS_PER_LOGIT * truth[-1])
    ]
    line = chart(ends).mark_line(color="#999", strokeDash=[4, 4])
    zoom = alt.Scale(zero=False)
    return line.encode(x.scale(zoom), y.scale(zoom)) + chart(rows).mark_line(point=True).encode(
        x.scale(zoom), y.scale(zoom), alt.Color("method:N", title="method")
    )


def _rule_y(value: float) -> Drawing:
    """A dashed line across; its scale is that of the layer above it."""
    return (
        chart([{"at": value}])
        .mark_rule(strokeDash=[4, 4], color="#777")
        .encode(alt.Y("at:Q", title="", scale=alt.Scale(zero=False)))
    )


FIGURES: dict[str, Callable[[], Drawing]] = {
    "bradley-terry": recovery,
    "ties": ties,
    "errors": coverage,
    "ranks": ranks,
    "any-time": any_time,
    "covariates": bias_of_covariates,
    "elo": orders,
    "trueskill": sequences,
    "win-rates": rates,
}
