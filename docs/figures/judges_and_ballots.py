"""Figures of judges with abilities, of orders and ballots, of models that judge each other, and of removals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import altair as alt
import numpy as np
from measuring_judges import Rows
from numpy.typing import NDArray
from rating_models import Drawing, chart
from simulated import all_pairs, battles_of_judges, instructed, sigma

from venire.arena.scale import POINTS_PER_LOGIT
from venire.ratings import (
    Comparisons,
    Ratings,
    am_elo,
    ballots,
    borda,
    bradley_terry,
    comparisons,
    copeland,
    kemeny_young,
    m_elo,
    markov,
    merge_orders,
    minimax,
    online_elo,
    peer_evaluation,
    plackett_luce,
    ranked_pairs,
    robustness,
    schulze,
    smallest_removal,
    to_battles,
    votes,
)
from venire.ratings.am_elo.robustness import Perturbation
from venire.ratings.data.ballots import truncated

Vector = NDArray[np.float64]


def _judged(truth: Vector, ability: Vector, each: int, rng: np.random.Generator) -> Comparisons:
    """So many verdicts of every judge on pairs at random; judges are named by their codes."""
    first, second = all_pairs(len(truth))
    judge = np.repeat(np.arange(len(ability)), each)
    pair = rng.integers(0, len(first), len(judge))
    a, b = first[pair], second[pair]
    won = rng.random(len(judge)) < sigma(ability[judge] * (truth[a] - truth[b]))
    names = [f"{code:03d}" for code in judge]
    return comparisons(a, b, won.astype(float), judge=names)


def abilities() -> Drawing:
    """am-ELO: fitted ability with its interval against what was planted, two judges the wrong way round."""
    rng = np.random.default_rng(21)
    planted = np.concatenate([[-1.2, -0.6], np.linspace(0.0, 2.4, 16)])
    planted = planted / planted.mean()
    found = am_elo(_judged(np.linspace(-1.2, 1.2, 12), planted, 400, rng))
    rows: Rows = []
    for name, value, se in zip(found.judges, found.ability, found.ability_se, strict=True):
        what = "right way round" if planted[int(name)] > 0 else "wrong way round, or lots"
        rows.append(
            {
                "planted": planted[int(name)],
                "ability": value,
                "lo": value - 1.96 * se,
                "hi": value + 1.96 * se,
                "judge": what,
            }
        )
    x, y = alt.X("planted:Q", title="planted ability"), alt.Y("lo:Q", title="ability by am-ELO, 95 % interval")
    color = alt.Color("judge:N", title="judge", sort=["right way round"])
    ends: Rows = [{"planted": end, "lo": end} for end in (planted.min(), planted.max())]
    line = chart(ends).mark_line(color="#999", strokeDash=[4, 4]).encode(x, y)
    drawn = chart(rows)
    points = drawn.mark_point(filled=True).encode(x, alt.Y("ability:Q", title=""), color)
    return line + drawn.mark_rule().encode(x, y, color, y2="hi:Q") + points


def steady() -> Drawing:
    """Stable Arena: pairs of models that change places when a quarter of the judges are spoilt, by method."""
    rng = np.random.default_rng(22)
    methods: Mapping[str, Any] = {
        "Elo": lambda data: online_elo(data, shuffles=20).ratings,
        "m-ELO": m_elo,
        "am-ELO": lambda data: am_elo(data, errors="none"),
    }
    kinds: tuple[Perturbation, ...] = ("flip", "random", "equal", "mixed")
    total: dict[tuple[str, str], list[float]] = {(kind, name): [] for kind in kinds for name in methods}
    for _ in range(4):
        data = _judged(rng.normal(0.0, 0.6, 20), rng.normal(1.0, 0.5, 42), 103, rng)
        for kind in kinds:
            found = robustness(data, methods, share=0.25, kind=kind, seeds=range(3))
            for name, shares in zip(found.methods, found.inconsistency, strict=True):
                total[kind, name].append(float(np.nanmean(shares)))
    rows: Rows = [{"kind": kind, "method": name, "share": float(np.mean(s))} for (kind, name), s in total.items()]
    return (
        chart(rows)
        .mark_bar()
        .encode(
            alt.X(
                "kind:N",
                title="what became of the verdicts of a quarter of the judges",
                sort=None,
                axis=alt.Axis(labelAngle=0),
            ),
            alt.Y("share:Q", title="pairs of models that changed places", axis=alt.Axis(format="%")),
            alt.Color("method:N", title="method", sort=None),
            alt.XOffset("method:N", sort=None),
        )
    )


def places() -> Drawing:
    """Kemeny-Young: the mean place of each model over all orders that are as good, and how many these are."""
    rng = np.random.default_rng(23)
    truth = np.array([0.9, 0.8, 0.2, 0.1, 0.0, -0.1, -0.9, -1.0])
    a, b = all_pairs(8)
    rows: Rows = []
    for number in (2, 20):
        won = rng.binomial(number, sigma(truth[a] - truth[b])) / number
        found = kemeny_young(votes(comparisons(a, b, won, weight=np.full(len(a), float(number)))))
        title = f"{number} votes a pair: {found.optimal_orders} orders cost {found.cost:.0f}"
        once = {name: place for place, name in enumerate(found.order, 1)}
        rows += [
            {"model": "ABCDEFGH"[int(name)], "mean": mean, "one": once[name], "votes": title}
            for name, mean in zip(found.models, found.position, strict=True)
        ]
    x = alt.X(
        "mean:Q",
        title="place",
        scale=alt.Scale(domain=[0.5, 8.5], nice=False),
        axis=alt.Axis(values=list(range(1, 9)), format="d"),
    )
    y = alt.Y("model:N", title="model, strongest first")
    base = alt.Chart(width=250, height=180)
    layers = alt.layer(
        base.mark_rule(color="#999").encode(x, y, x2="one:Q"),
        base.mark_tick(thickness=2, height=12, color="black").encode(alt.X("one:Q"), y),
        base.mark_point(filled=True, size=50).encode(x, y),
    )
    column = alt.Column("votes:N", title=None, sort=None)
    return alt.FacetChart(spec=layers, facet=alt.FacetedEncoding(column=column), data=alt.InlineData(values=rows))


def positions() -> Drawing:
    """Voting methods: places of eight models by each, where models that are close met most often."""
    rng, truth = np.random.default_rng(24), np.linspace(-0.9, 0.9, 8)
    first, second = all_pairs(8)
    often = np.where(second - first == 1, 0.9 / 7, 0.1 / 21)
    pair = rng.choice(len(first), 600, p=often / often.sum())
    a, b = first[pair], second[pair]
    data = comparisons(a, b, (rng.random(len(a)) < sigma(truth[a] - truth[b])).astype(float))
    fitted, counts = bradley_terry(data, errors="none"), votes(data)
    methods = {
        "borda": borda,
        "copeland": copeland,
        "markov": markov,
        "minimax": minimax,
        "ranked-pairs": ranked_pairs,
        "schulze": schulze,
        "kemeny": kemeny_young,
    }
    placed: dict[str, Vector] = {
        "truth": 8.0 - np.arange(8),
        "bradley-terry": np.argsort(np.argsort(-fitted.elo)) + 1.0,
    }
    placed |= {name: method(counts).position for name, method in methods.items()}
    rows: Rows = [
        {"method": name, "model": "HGFEDCBA"[code], "place": place}
        for name, column in placed.items()
        for code, place in enumerate(column)
    ]
    x = alt.X("method:N", title=None, sort=None, axis=alt.Axis(labelAngle=-35))
    y = alt.Y(
        "place:Q",
        title="place",
        scale=alt.Scale(reverse=True, domain=[0.7, 8.3], nice=False),
        axis=alt.Axis(values=list(range(1, 9)), format="d"),
    )
    color = alt.Color("model:N", title="model", scale=alt.Scale(scheme="viridis"))
    return chart(rows).mark_line(point=alt.OverlayMarkDef(size=55)).encode(x, y, color)


def shortened() -> Drawing:
    """Plackett-Luce: error by how many of ten models a ballot ranks, beside Bradley-Terry on the pairs of the same."""
    rng, truth, runs = np.random.default_rng(25), np.linspace(-0.8, 0.8, 10), 40
    methods: Mapping[str, Callable[[Any], Ratings]] = {
        "Plackett-Luce": lambda given: plackett_luce(given, errors="none"),
        "Bradley-Terry on pairs": lambda given: bradley_terry(
            merge_orders(to_battles(given)).comparisons(), errors="none"
        ),
    }
    square = {(best, name): 0.0 for best in (1, 2, 3, 5, 7, 10) for name in methods}
    for _ in range(runs):
        order = np.argsort(-(truth + rng.gumbel(size=(300, 10))), axis=1)
        question, place = np.divmod(np.arange(3000), 10)
        full = ballots(None, question, [f"model {code}" for code in order.ravel()], place + 1.0)
        for best, name in square:
            found = methods[name](truncated(full, best))
            square[best, name] += float(np.mean((POINTS_PER_LOGIT * (found.logits - truth)) ** 2)) / runs
    rows: Rows = [{"best": best, "method": name, "error": total**0.5} for (best, name), total in square.items()]
    return (
        chart(rows)
        .mark_line(point=True)
        .encode(
            alt.X("best:O", title="models that a ballot ranks, of ten", axis=alt.Axis(labelAngle=0)),
            alt.Y("error:Q", title="root mean square error, Elo points"),
            alt.Color("method:N", title="method", sort=None),
        )
    )


def favour() -> Drawing:
    """Models that judge each other: what the best one says of itself, by positions and by own odds."""
    rng, strength, size = np.random.default_rng(26), np.linspace(1.2, -1.2, 5), 5
    plans = {
        "neither": (1.0, 0.0),
        "twice as sharp": (2.0, 0.0),
        "favours itself": (1.0, 0.8),
        "both": (2.0, 0.8),
    }
    rows: Rows = []
    for words, (sharp, own) in plans.items():
        slope = np.array([sharp, 1.0, 1.0, 1.0, 1.0])
        for _ in range(25):
            drawn = battles_of_judges(slope, np.zeros(size), np.zeros(size), POINTS_PER_LOGIT * strength, 40, rng)
            logit = slope[drawn.judge] * (strength[drawn.model_a] - strength[drawn.model_b])
            logit += own * (drawn.judge == 0) * ((drawn.model_a == 0) * 1.0 - (drawn.model_b == 0))
            won = rng.random(len(logit)) < sigma(logit)
            judgments = merge_orders(replace(drawn, label=np.where(won, 1, -1).astype(np.int8)))
            peers = dict(zip(drawn.judges, drawn.models, strict=True))
            best = peer_evaluation(judgments, borda, peers=peers, micro=False).models[0]
            rows.append({"gap": best.gap.value, "odds": best.odds.value, "best": words})
    x = alt.X("gap:Q", title="gap, positions: below 0, better by its own verdicts")
    y = alt.Y("odds:Q", title="own odds: above 0, favours itself")
    color = alt.Color("best:N", title="the best model", sort=None)
    zero = chart([{"at": 0.0}])
    across = zero.mark_rule(strokeDash=[4, 4], color="#777").encode(alt.Y("at:Q", title=""))
    upright = zero.mark_rule(strokeDash=[4, 4], color="#777").encode(alt.X("at:Q", title=""))
    return across + upright + chart(rows).mark_point(filled=True, size=35).encode(x, y, color)


def removals() -> Drawing:
    """Influence: the share of judgments that another winner needs, by the lead in standard errors."""
    rng = np.random.default_rng(27)
    rows: Rows = []
    for instructions in (10, 40, 160):
        for run in range(24):
            truth = np.append(np.linspace(-0.6, 0.0, 5), 0.02 * (run + 1))
            data = instructed(truth, instructions, rng)
            found = smallest_removal(data)
            if found.removed is None:
                continue
            rows.append(
                {"errors": found.lead / found.se, "share": found.removed / found.units, "n": f"{found.units:,}"}
            )
    return (
        chart(rows)
        .mark_point(filled=True, size=35)
        .encode(
            alt.X("errors:Q", title="lead, standard errors"),
            alt.Y("share:Q", title="judgments that suffice for another winner", axis=alt.Axis(format=".0%")),
            alt.Color("n:N", title="judgments", sort=None),
        )
    )


FIGURES: dict[str, Callable[[], Drawing]] = {
    "am-elo": abilities,
    "stable-arena": steady,
    "kemeny": places,
    "voting": positions,
    "plackett-luce": shortened,
    "peers": favour,
    "removal": removals,
}
