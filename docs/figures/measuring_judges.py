"""Figures of methods that measure judges, or need more of them than who won."""

from __future__ import annotations

from collections.abc import Callable

import altair as alt
import numpy as np
from rating_models import Drawing, chart
from simulated import all_pairs, battles_of_judges, sigma

from venire.arena.scale import POINTS_PER_LOGIT
from venire.ratings import (
    cohen_kappa,
    comparisons,
    consistency,
    elo_from_consistency,
    hard_elo,
    human_elo,
    position_audit,
    rate_by_kind,
    soft_elo,
    split_conformal,
)

Rows = list[dict[str, object]]


def scores() -> Drawing:
    """Soft-Elo: ratings by a judge that is surer than people, against those of people."""
    truth, rng = np.linspace(-0.7, 0.7, 14), np.random.default_rng(11)
    a, b = (np.tile(side, 60) for side in all_pairs(14))
    quality = truth[a] - truth[b] + rng.normal(0.0, 0.5, len(a))
    human = (rng.random(len(a)) < sigma(quality)).astype(float)
    score = 2.0 * quality + rng.normal(0.0, 0.7, len(a))
    data = comparisons(a, b, (score > 0).astype(float))
    people = human_elo(data, human)
    found = {"verdicts": hard_elo(data), "scores (Soft-Elo)": soft_elo(data, score, human).ratings}
    rows: Rows = [
        {"people": x, "judge": y, "from": name}
        for name, ratings in found.items()
        for x, y in zip(people.elo, ratings.elo, strict=True)
    ]
    ends: Rows = [{"people": end, "judge": end} for end in (people.elo.min(), people.elo.max())]
    zoom = alt.Scale(zero=False)
    x = alt.X("people:Q", title="Elo by people", scale=zoom)
    y = alt.Y("judge:Q", title="Elo by judge", scale=zoom)
    points = chart(rows).mark_point(filled=True, size=45).encode(x, y, alt.Color("from:N", title="judge's"))
    return chart(ends).mark_line(color="#999", strokeDash=[4, 4]).encode(x, y) + points


def conformal() -> Drawing:
    """Conformal intervals: coverage of a new model whose error is smaller than those of the calibration models."""
    rng, runs, tau = np.random.default_rng(12), 2000, 20.0
    rows: Rows = []
    for words, share in (("as the others", 1.0), ("half", 0.5), ("a quarter", 0.25)):
        held = {"total": 0, "se": 0, "none": 0}
        for _ in range(runs):
            se = rng.uniform(10.0, 30.0, 20)
            new = share * rng.uniform(10.0, 30.0)
            residual, missed = rng.normal(0.0, np.hypot(se, tau)), rng.normal(0.0, np.hypot(new, tau))
            held["total"] += abs(missed) <= split_conformal(residual, se, [0.0], [new]).high[0]
            held["se"] += abs(missed) <= split_conformal(residual, se, [0.0], [new], scale="se").high[0]
            held["none"] += abs(missed) <= split_conformal(residual, se, [0.0], [new], scale="none").high[0]
        rows += [{"new": words, "scale": name, "held": count / runs} for name, count in held.items()]
    line = (
        chart(rows)
        .mark_line(point=True)
        .encode(
            alt.X("new:N", title="standard error of the new model", sort=None, axis=alt.Axis(labelAngle=0)),
            alt.Y("held:Q", title="coverage", scale=alt.Scale(domain=[0.4, 1.0])),
            alt.Color("scale:N", title="scale"),
        )
    )
    rule = chart([{"at": 19 / 21}]).mark_rule(strokeDash=[4, 4], color="#777")
    return rule.encode(alt.Y("at:Q", title="", scale=alt.Scale(domain=[0.4, 1.0]))) + line


def ceiling() -> Drawing:
    """Consistency: what judges of every slope come to, by the gap of the matchups."""
    slope = np.linspace(0.0, 4.0, 81)
    rows: Rows = []
    for gap in (50, 100, 200, 350, 700):
        p = sigma(slope * gap / POINTS_PER_LOGIT)
        rows += [{"slope": x, "gap": f"{gap}", "c": y} for x, y in zip(slope, 1.0 - 4.0 * p * (1.0 - p), strict=True)]
    return (
        chart(rows)
        .mark_line()
        .encode(
            alt.X("slope:Q", title="slope of the judge (1: as people)"),
            alt.Y("c:Q", title="consistency, no ties"),
            alt.Color("gap:N", title="gap, Elo", sort=["50", "100", "200", "350", "700"]),
        )
    )


def _many_judges() -> tuple[Rows, Rows]:
    rng = np.random.default_rng(13)
    slope, pull = np.linspace(0.3, 3.0, 24), np.where(np.arange(24) % 2 == 0, 0.0, 1.5)
    elo = np.linspace(850.0, 1150.0, 8)
    names = {f"model {code:03d}": float(one) for code, one in enumerate(elo)}
    battles = battles_of_judges(slope, pull, np.full(24, 0.1), elo, 60, rng)
    found = consistency(battles, elo=names)
    own = {f"judge {code:03d}": 900.0 + 150.0 * float(one) for code, one in enumerate(slope)}
    figures: Rows = []
    for one in found.judges:
        code = int(one.judge[-3:])
        facts: dict[str, object] = {"slope": slope[code], "pull": "to the first place" if pull[code] else "none"}
        for name, value in (("decisive consistency", one.decisive), ("discrimination", one.discrimination_ml)):
            figures.append({**facts, "figure": name, "value": value})
    lines: Rows = []
    for score in ("decisive", "discrimination"):
        line = elo_from_consistency(found, own, score=score).all
        for one in found.judges:
            value = one.decisive if score == "decisive" else one.discrimination_ml
            if value is not None and line.slope is not None and line.intercept is not None:
                lines.append({"own": own[one.judge], "predicted": line.slope * value + line.intercept, "from": score})
    return figures, lines


def slopes() -> Drawing:
    """Discrimination beside consistency, for judges with and without a habit of place."""
    figures, _ = _many_judges()
    facets = []
    for name, title in (("decisive consistency", "decisive consistency"), ("discrimination", "discrimination")):
        rows = [row for row in figures if row["figure"] == name]
        facets.append(
            chart(rows)
            .mark_point(filled=True, size=45)
            .encode(
                alt.X("slope:Q", title="planted slope"),
                alt.Y("value:Q", title=title),
                alt.Color("pull:N", title="pull"),
            )
            .properties(width=230)
        )
    return alt.hconcat(*facets)


def predicted() -> Drawing:
    """Elo from consistency: predicted against own, from two scores."""
    _, lines = _many_judges()
    zoom = alt.Scale(zero=False)
    ends: Rows = [{"own": end, "predicted": end} for end in (945.0, 1350.0)]
    x = alt.X("own:Q", title="judge's own Elo", scale=zoom)
    y = alt.Y("predicted:Q", title="Elo predicted", scale=zoom)
    points = chart(lines).mark_point(filled=True, size=45).encode(x, y, alt.Color("from:N", title="from"))
    return chart(ends).mark_line(color="#999", strokeDash=[4, 4]).encode(x, y) + points


def power() -> Drawing:
    """Position audit: how often Fisher's test sees a habit, by how often a battle was asked."""
    rng, runs = np.random.default_rng(14), 300
    rows: Rows = []
    for times in (5, 10, 20, 40):
        swapped = np.repeat([False, True], times)
        for shift in (0.2, 0.4, 0.6, 0.8):
            chance = np.where(swapped, 0.5 - shift / 2.0, 0.5 + shift / 2.0)
            seen = sum(
                (position_audit((rng.random(2 * times) < chance).astype(float), swapped).p_value or 0.0) < 0.05
                for _ in range(runs)
            )
            words = f"{0.5 + shift / 2:.1f} against {0.5 - shift / 2:.1f}"
            rows.append({"times": times, "shift": words, "seen": seen / runs})
    return (
        chart(rows)
        .mark_line(point=True)
        .encode(
            alt.X("times:O", title="verdicts in each order", axis=alt.Axis(labelAngle=0)),
            alt.Y("seen:Q", title="found at p < 0.05", scale=alt.Scale(domain=[0.0, 1.0])),
            alt.Color("shift:N", title="A wins, by order", sort=None),
        )
    )


def prevalence() -> Drawing:
    """Agreement: two judges that are each right in nine of ten, by the share of the larger category."""
    rng, items = np.random.default_rng(15), 20_000
    rows: Rows = []
    for share in (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99):
        truth = rng.random(items) < share
        first, second = (truth ^ (rng.random(items) < 0.1) for _ in range(2))
        found = cohen_kappa(first.astype(int), second.astype(int), errors="asymptotic")
        rows += [
            {"share": share, "figure": "share of items agreed on", "value": float(np.mean(first == second))},
            {"share": share, "figure": "Cohen's kappa", "value": found.value},
        ]
    return (
        chart(rows)
        .mark_line(point=True)
        .encode(
            alt.X(
                "share:Q", title="share of the larger category", scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=6)
            ),
            alt.Y("value:Q", title="agreement", scale=alt.Scale(domain=[0.0, 1.0])),
            alt.Color("figure:N", title="figure"),
        )
    )


def kinds() -> Drawing:
    """Accuracy rankings: Elo by kind of pair, for a judge who sees what is right and likes a style as well."""
    rng, questions = np.random.default_rng(16), 150
    accuracy = np.linspace(0.25, 0.85, 10)
    style = rng.permutation(np.linspace(-1.0, 1.0, 10))
    a, b = (np.tile(side, questions) for side in all_pairs(10))
    question = np.repeat(np.arange(questions), len(a) // questions)
    right = (rng.random((questions, 10)) < accuracy).astype(int)
    grade_a, grade_b = right[question, a], right[question, b]
    won = rng.random(len(a)) < sigma(2.0 * (grade_a - grade_b) + style[a] - style[b])
    data = comparisons(a, b, won.astype(float), cluster=question)
    rows: Rows = [
        {"accuracy": x, "elo": y, "kind": one.kind}
        for one in rate_by_kind(data, grade_a, grade_b)
        if one.ratings is not None
        for x, y in zip(accuracy, one.ratings.elo, strict=True)
    ]
    return (
        chart(rows)
        .mark_point(filled=True, size=45)
        .encode(
            alt.X("accuracy:Q", title="accuracy", scale=alt.Scale(domain=[0.2, 0.9]), axis=alt.Axis(format="%")),
            alt.Y("elo:Q", title="Elo", scale=alt.Scale(zero=False)),
            alt.Color("kind:N", title="pairs"),
        )
    )


FIGURES: dict[str, Callable[[], Drawing]] = {
    "soft-elo": scores,
    "conformal": conformal,
    "consistency": ceiling,
    "discrimination": slopes,
    "elo-from-consistency": predicted,
    "position-audit": power,
    "accuracy": kinds,
    "agreement": prevalence,
}
