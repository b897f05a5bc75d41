"""Worlds whose truth is known, each with a generator of its own: verdicts, scores, labels, and what they estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, ndtri

from venire.arena.battles import Battles
from venire.ratings.am_elo.am_elo import am_elo
from venire.ratings.data.battles import battles
from venire.ratings.data.comparisons import Comparisons, comparisons
from venire.ratings.data.judgments import Judgments, merge_orders
from venire.ratings.pairwise.bradley_terry import bradley_terry_wins
from venire.ratings.soft_elo.soft_elo import soft_elo

_LONG = 200_000
"""Instructions of a long run, by which a truth is computed."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Judging:
    """Judges of `matchups` wide matchups on shared instructions, in both orders, with ties and a push to the first.

    A judge's taste in a matchup is slope * (gap + unlike * e), e a normal effect of the instruction that all judges
    share; each order adds logistic noise and the push, and a taste within `tie` of 0 is a tie. On the share `puzzling`
    of instructions no judge follows any gap, only the effects.
    """

    matchups: int = 15
    widest: float = 6.0
    unlike: float = 0.6
    tie: float = 0.25
    push: float = 0.1
    puzzling: float = 0.0

    @property
    def gaps(self) -> Floats:
        """From two fifths of the widest gap up."""
        return np.linspace(0.4 * self.widest, self.widest, self.matchups)

    def shared(self, instructions: int, rng: np.random.Generator) -> Floats:
        """Effects of instructions (instructions, matchups), and last a draw that says whether they puzzle judges."""
        return rng.normal(size=(instructions, self.matchups + 1))

    def outcomes(self, slope: float, effects: Floats, rng: np.random.Generator) -> Floats:
        """What a judge says (instructions, matchups, 2 orders): 1, 0.5 or 0 for the better model."""
        # The same instructions puzzle all judges, so that which ones do is drawn with the effects that they share.
        followed = effects[:, -1:] < ndtri(1.0 - self.puzzling)
        taste = slope * (self.gaps * followed + self.unlike * effects[:, :-1])[..., None]
        taste = taste + np.array([self.push, -self.push])
        taste = taste + rng.logistic(size=taste.shape)
        return np.where(np.abs(taste) < self.tie, 0.5, (taste > 0.0).astype(float))

    def table(self, slopes: Sequence[float], instructions: int, rng: np.random.Generator) -> Battles:
        """The verdicts of judges with these slopes as a table."""
        effects = self.shared(instructions, rng)
        said = np.stack([self.outcomes(slope, effects, rng) for slope in slopes])
        judge, item, matchup, order = np.unravel_index(np.arange(said.size), said.shape)
        swapped = order == 1
        return battles(2 * matchup, 2 * matchup + 1, said.ravel(), judge=judge, instruction=item, swapped=swapped)

    def truth(self, slope: float, *, decisive: bool) -> float:
        """Consistency on ever more instructions."""
        return _long_run(self, round(slope, 6), decisive)


@cache
def _long_run(world: Judging, slope: float, decisive: bool) -> float:
    rng = np.random.default_rng(2026)
    said = world.outcomes(slope, world.shared(_LONG // world.matchups, rng), rng)
    counted = said != 0.5 if decisive else np.ones_like(said, dtype=bool)
    number = counted.sum(axis=2)
    share = (said * counted).sum(axis=2) / np.maximum(number, 1)
    p = (share * (number > 0)).sum(axis=0) / (number > 0).sum(axis=0)
    return float(1.0 - 4.0 * np.mean(p * (1.0 - p)))


@cache
def judge_of(world: Judging, consistency: float, decisive: bool) -> float:
    """The slope of a judge whose true consistency in a world is this."""
    return float(brentq(lambda slope: _long_run(world, round(slope, 3), decisive) - consistency, 0.02, 12.0, xtol=2e-3))


@dataclass(frozen=True)
class Labelling:
    """Judges who label battles as win, tie or loss, each right with a probability that the instruction has.

    That probability is of a beta distribution with mean `right`; which labels are frequent also differs by instruction.
    A judge who is wrong takes any of the three labels.
    """

    battles: int = 6
    judges: int = 3
    right: float = 0.6

    def draw(self, instructions: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Labels (items, judges) and the instruction of each item (items,)."""
        shape = (instructions, self.battles, self.judges)
        often = rng.dirichlet([2.0, 0.6, 2.0], size=instructions).cumsum(axis=1)
        true = (rng.random(shape[:2])[..., None] > often[:, None, :2]).sum(axis=2)
        knows = rng.random(shape) < rng.beta(6.0 * self.right, 6.0 * (1.0 - self.right), instructions)[:, None, None]
        said = np.where(knows, true[..., None], rng.integers(0, 3, shape))
        return said.reshape(-1, self.judges), np.repeat(np.arange(instructions), self.battles)


@dataclass(frozen=True)
class Scored:
    """Battles with a judge's scores, which scatter about the gap, and labels of people, who follow the scores.

    `labelled` is the share of battles that people saw; `instructions` 0 makes every battle a unit of its own.
    """

    models: int = 8
    labelled: float = 1.0
    instructions: int = 0
    follow: float = 0.8

    def draw(self, rows: int, rng: np.random.Generator) -> tuple[Comparisons, Floats, Floats]:
        """Comparisons by the judge's verdicts, its scores, and labels of people (rows,), NaN where none was asked."""
        strength = np.linspace(-1.5, 1.5, self.models)
        a = rng.integers(0, self.models, rows)
        b = (a + rng.integers(1, self.models, rows)) % self.models
        score = np.round(4.0 * (strength[a] - strength[b] + rng.normal(size=rows))) / 4.0
        human = (rng.random(rows) < expit(self.follow * score)).astype(float)
        seen = rng.random(rows) < self.labelled
        cluster = rng.integers(0, self.instructions, rows) if self.instructions else None
        verdict = 0.5 + 0.5 * np.sign(score)
        return comparisons(a, b, verdict, cluster=cluster), score, np.where(seen, human, np.nan)

    def truth(self) -> Floats:
        """Soft-Elo of ever more battles (models,), in Elo points."""
        return _long_soft_elo(self.models, self.follow)


@dataclass(frozen=True)
class Panel:
    """Models that judge each other, the first of which writes the longest answers and likes long ones the most.

    The log odds of a verdict are slope * gap, a taste for length, and `favour` of the first judge for itself.
    """

    models: int = 5
    liking: float = 1.2
    favour: float = 0.0

    def draw(self, instructions: int, rng: np.random.Generator) -> Battles:
        """Verdicts of all on all pairs in both orders, with the difference of lengths as a feature."""
        strength = np.linspace(1.2, -1.2, self.models)
        written = np.linspace(1.0, -0.8, self.models) + 0.6 * rng.normal(size=(instructions, self.models))
        shape = (instructions, self.models, self.models, self.models, 2)
        item, a, b, judge, order = (column.ravel() for column in np.indices(shape))
        kept = a < b
        item, a, b, judge, order = (column[kept] for column in (item, a, b, judge, order))
        length = written[item, a] - written[item, b]
        first = judge == 0
        odds = strength[a] - strength[b] + np.where(first, self.liking * length + self.favour * (a == 0), 0.0)
        y = (rng.random(len(odds)) < expit(odds)).astype(float)
        names = [f"m{code}" for code in range(self.models)]
        made = battles(
            [names[code] for code in a],
            [names[code] for code in b],
            y,
            judge=[names[code] for code in judge],
            instruction=item,
            swapped=order == 1,
        )
        return replace(made, features={"length": length})


@dataclass(frozen=True)
class Screened:
    """Models of given `shares` of right answers, by a judge that errs; `labels` answers drawn by chance are known.

    Questions are harder for all models alike: normal effects of sd 1 in log odds.
    """

    sensitivity: float
    specificity: float
    questions: int
    labels: int
    shares: tuple[float, ...] = (0.3, 0.5, 0.7, 0.85)

    def draw(self, rng: np.random.Generator) -> tuple[NDArray[np.str_], NDArray[np.float64], NDArray[np.float64]]:
        """Model, verdict and truth (NaN: not known) of all answers, question by question."""
        effect = rng.normal(size=self.questions)
        odds = np.array([_odds_of(share) for share in self.shares])[:, None] + effect
        right = rng.random(odds.shape) < 1.0 / (1.0 + np.exp(-odds))
        luck = rng.random(odds.shape)
        said = np.where(right, luck < self.sensitivity, luck >= self.specificity).astype(float).ravel()
        truth = np.full(said.size, np.nan)
        known = rng.permutation(said.size)[: self.labels]
        truth[known] = right.ravel()[known]
        return np.repeat([f"m{code}" for code in range(len(self.shares))], self.questions), said, truth


@cache
def _odds_of(share: float) -> float:
    """The log odds that give a mean share over normal effects of sd 1, by Gauss-Hermite quadrature."""
    node, weight = np.polynomial.hermite_e.hermegauss(40)

    def excess(odds: float) -> float:
        return float(weight @ (1.0 / (1.0 + np.exp(-(odds + node)))) / weight.sum()) - share

    return float(brentq(excess, -20.0, 20.0))


@dataclass(frozen=True)
class Graded:
    """Answers right or wrong, in several wordings of each question, which share its difficulty."""

    share: float = 0.9
    wordings: int = 4
    unlike: float = 1.5

    def draw(self, questions: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], Floats]:
        """The question of each answer (answers,) and whether it is right (answers,)."""
        question = np.repeat(np.arange(questions), self.wordings)
        easy = self.level() + self.unlike * rng.normal(size=questions)
        return question, (rng.random(len(question)) < expit(easy)[question]).astype(float)

    def level(self) -> float:
        """The log odds of a usual question at which the share of all questions is `share`."""
        return _easy(self.share, self.unlike)


@dataclass(frozen=True)
class Graders:
    """Answers of one model that several judges grade, each more or less lenient (sd `lenient` in log odds)."""

    judges: int
    questions: int
    share: float = 0.75
    unlike: float = 1.5
    lenient: float = 0.5

    def draw(self, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Question, judge and grade of each row, every judge on every question."""
        level = _easy(self.share, float(np.hypot(self.unlike, self.lenient)))
        easy = level + self.unlike * rng.normal(size=(self.questions, 1))
        odds = easy + self.lenient * rng.normal(size=self.judges)
        question, judge = (column.ravel() for column in np.indices(odds.shape))
        return question, judge, (rng.random(len(judge)) < expit(odds.ravel())).astype(np.int64)


@cache
def _easy(share: float, unlike: float) -> float:
    nodes, weight = np.polynomial.hermite_e.hermegauss(41)
    weight = weight / weight.sum()
    return float(brentq(lambda level: float(weight @ expit(level + unlike * nodes)) - share, -20.0, 20.0))


@cache
def _long_soft_elo(models: int, follow: float) -> Floats:
    data, score, human = Scored(models=models, follow=follow).draw(2_000_000, np.random.default_rng(2026))
    return np.asarray(soft_elo(data, score, human, errors="none").ratings.elo)


@dataclass(frozen=True)
class Anchored:
    """Models rated by a judge and by people: the judge's scale is bent, and it has a taste that people do not share.

    Quality is skewed: a few models are far ahead.
    """

    anchors: int = 12
    taste: float = 50.0
    bent: float = 0.0

    def draw(self, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
        """Ratings by the judge, their errors and those by people, of the anchors and last of a new model."""
        quality = rng.gamma(3.0, 70.0, self.anchors + 1)
        error = rng.uniform(10.0, 30.0, self.anchors + 1)
        liked = quality * (1.0 + self.bent * quality / 400.0) + self.taste * rng.laplace(size=len(quality)) / np.sqrt(
            2.0
        )
        return (
            800.0 + liked + error * rng.normal(size=len(error)),
            error,
            900.0 + quality + 15.0 * rng.normal(size=len(error)),
        )


@dataclass(frozen=True)
class Planned:
    """Campaigns of unlike sizes: of models, pairs, instructions, and judges who are sharp or dull and may call ties.

    Completions have merits of their own; where people's ratings are `known`, judges' gaps are a multiple of theirs.
    """

    known: bool = False

    def draw(self, rng: np.random.Generator) -> tuple[Judgments, NDArray[np.int32], Floats]:
        """Judgments with both orders merged, the battles asked (battles, 3), and people's ratings in logits."""
        models, instructions, judges = rng.integers(4, 11), rng.integers(15, 61), int(rng.integers(1, 4))
        people = rng.uniform(0.3, 1.0) * rng.normal(size=models)
        pairs = np.array(list(combinations(range(models), 2)))
        cells = rng.permutation(len(pairs) * instructions)
        if rng.random() < 0.5:
            cells = cells[: max(12 * models, len(cells) // 3)]
        asked = np.column_stack([pairs[cells % len(pairs)], cells // len(pairs)]).astype(np.int32)
        merit = rng.uniform(0.1, 0.6) * rng.normal(size=(models, instructions))
        a, b, item = asked.T
        gap, battle = people[a] - people[b], rng.uniform(0.2, 1.0) * rng.normal(size=len(asked))
        slope = np.exp(rng.normal(np.log(1.6), 0.5, judges))[:, None]
        odds = slope * (gap + merit[a, item] - merit[b, item] + battle)
        taste = (
            odds + rng.logistic(size=(2, *odds.shape)) + rng.uniform(0.0, 0.6) * np.array([1.0, -1.0])[:, None, None]
        )
        y = np.where(np.abs(taste) < rng.uniform(0.0, 0.8, judges)[:, None], 0.5, (taste > 0.0).astype(float))
        order, judge, number = np.indices(y.shape).reshape(3, -1)
        names = np.array([f"{code:02}" for code in range(models)])
        table = battles(
            names[a[number]],
            names[b[number]],
            y.ravel(),
            judge=judge,
            instruction=[f"{code:02}" for code in item[number]],
            swapped=order == 1,
        )
        return merge_orders(table), asked, people

    def pilot(self, data: Judgments, share: float, rng: np.random.Generator) -> Judgments:
        """The judgments of a share of the battles: one of each instruction by chance, then a second, and so on."""
        there, which = np.unique(
            np.column_stack([data.instruction, data.model_a, data.model_b]), axis=0, return_inverse=True
        )
        asked = there[:, 0]
        drawn = rng.permutation(len(asked))
        turn = np.empty(len(asked), dtype=np.int64)
        for code in np.unique(asked):
            own = drawn[asked[drawn] == code]
            turn[own] = np.arange(len(own))
        first = drawn[np.argsort(turn[drawn], kind="stable")][: round(share * len(asked))]
        return data.select(np.isin(which.ravel(), first))


@dataclass(frozen=True)
class Sharp:
    """Judges of unlike sharpness on shared instructions, each of which moves models by normal effects.

    A judge sees `asked` of the 15 battles of six models on each instruction, in both orders.
    """

    judges: int = 6
    asked: int = 15
    unlike: float = 0.4

    def draw(self, instructions: int, rng: np.random.Generator) -> Comparisons:
        """Judgments, both orders merged."""
        a, b = np.triu_indices(6, 1)
        order = rng.random((instructions, self.judges, len(a))).argsort(axis=2)[..., : self.asked]
        item, judge, _ = np.indices(order.shape)
        better = np.linspace(1.5, -1.5, 6)[:, None] + self.unlike * rng.normal(size=(6, instructions))
        first, second = a[order], b[order]
        odds = np.linspace(0.5, 1.5, self.judges)[judge] * (better[first, item] - better[second, item])
        y = (rng.random((2, *odds.shape)) < expit(1.5 * odds)).mean(axis=0)
        return comparisons(first.ravel(), second.ravel(), y.ravel(), judge=judge.ravel(), cluster=item.ravel())

    def truth(self) -> Floats:
        """Abilities in the long run (judges,)."""
        return _long_abilities(self)


@cache
def _long_abilities(world: Sharp) -> Floats:
    found = am_elo(world.draw(20_000, np.random.default_rng(2026)), errors="none")
    return np.asarray(found.ability)[np.argsort([int(name) for name in found.judges])]


@dataclass(frozen=True)
class Field:
    """Models at even distances whose pairs have effects of their own, asked on shared instructions in both orders.

    The log odds of a battle are slope * gap, an effect of the pair (standard deviation `effects`), and how far the
    instruction helps one model more than the other (`unlike` each). A judge errs with probability `lapse` however clear
    the battle. What a campaign is about are the ratings of all pairs, asked equally often for ever.
    """

    models: int = 12
    slope: float = 2.0
    effects: float = 0.4
    lapse: float = 0.0
    unlike: float = 0.4

    @property
    def strength(self) -> Floats:
        """Of each model (models,)."""
        return np.linspace(-1.2, 1.2, self.models)

    def odds(self, rng: np.random.Generator) -> Floats:
        """Log odds of each pair (models, models) with effects drawn anew."""
        drawn = np.triu(self.effects * rng.normal(size=(self.models, self.models)), 1)
        return self.slope * (self.strength[:, None] - self.strength) + drawn - drawn.T

    def pairs(self, design: str, asked: int, rng: np.random.Generator) -> list[tuple[int, int]]:
        """Which pairs are asked: `all`, or `random` or `widest` ones with a tree of them that ties all models."""
        every = list(combinations(range(self.models), 2))
        if design == "all":
            return every
        by_gap = sorted(every, key=lambda pair: pair[0] - pair[1])
        order = [every[at] for at in rng.permutation(len(every))] if design == "random" else by_gap
        group, tree = list(range(self.models)), []
        for a, b in order:
            if group[a] != group[b]:
                tree.append((a, b))
                group = [group[a] if one == group[b] else one for one in group]
        return (tree + [pair for pair in order if pair not in tree])[:asked]

    def draw(
        self, odds: Floats, pairs: list[tuple[int, int]], instructions: int, rng: np.random.Generator
    ) -> Comparisons:
        """Judgments of these pairs on so many instructions, both orders merged."""
        helped = self.unlike * rng.normal(size=(self.models, instructions))
        a, b = np.repeat(np.array(pairs), instructions, axis=0).T
        item = np.tile(np.arange(instructions), len(pairs))
        p = self.lapse + (1.0 - 2.0 * self.lapse) * expit(odds[a, b] + helped[a, item] - helped[b, item])
        y = (rng.random((2, len(p))) < p).mean(axis=0)
        return comparisons(a, b, y, models=[str(code) for code in range(self.models)], cluster=item)

    def truth(self, odds: Floats) -> Floats:
        """Ratings of all pairs in the long run (models,), in Elo points."""
        return np.asarray(bradley_terry_wins(self.wins(odds), [str(code) for code in range(self.models)]).elo)

    def wins(self, odds: Floats) -> Floats:
        """The share that each model wins against each other in the long run (models, models), 0 against itself."""
        nodes, weight = np.polynomial.hermite_e.hermegauss(21)
        spread = np.sqrt(2.0) * self.unlike * nodes
        p = np.sum(weight / weight.sum() * expit(odds[..., None] + spread), axis=-1)
        wins = self.lapse + (1.0 - 2.0 * self.lapse) * p
        np.fill_diagonal(wins, 0.0)
        return np.asarray(wins)


@dataclass(frozen=True)
class Rejudged:
    """Completions judged twice, by judges who notice more or less, like the first place and call what is close a tie.

    The quality of a completion is its model's strength and what it made of the instruction; each order of each judge
    adds logistic noise. The second time `better` is added to the completions of the model in the middle, and the
    instructions are the same or `other` ones.
    """

    models: int = 6
    other: bool = False
    better: float = 0.0
    judges: int = 2
    unlike: float = 0.7

    @property
    def moved(self) -> int:
        """The model that is better the second time, where any is."""
        return self.models // 2

    def draw(self, instructions: int, rng: np.random.Generator) -> tuple[Comparisons, Comparisons]:
        """The judgments of the first time and of the second."""
        written = self._written(instructions, rng)
        again = self._written(instructions, rng) if self.other else written.copy()
        again[self.moved] += self.better
        return self._judged(written, 0, rng), self._judged(again, instructions if self.other else 0, rng)

    def _written(self, instructions: int, rng: np.random.Generator) -> Floats:
        strength = np.sort(np.linspace(0.0, 1.8, self.models) ** 1.5)
        return strength[:, None] + self.unlike * rng.normal(size=(self.models, instructions))

    def _judged(self, written: Floats, first: int, rng: np.random.Generator) -> Comparisons:
        pair, item, judge, order = np.indices(
            (self.models * (self.models - 1) // 2, written.shape[1], self.judges, 2)
        ).reshape(4, -1)
        a, b = (side[pair] for side in np.triu_indices(self.models, 1))
        taste = (0.8 + 0.5 * judge) * (written[a, item] - written[b, item]) + 0.3 * (0.5 - order)
        taste = taste + rng.logistic(size=taste.shape)
        y = np.where(np.abs(taste) < 0.3, 0.5, (taste > 0.0).astype(float))
        names = [f"m{code:02}" for code in range(self.models)]
        return merge_orders(
            battles(
                [names[code] for code in a],
                [names[code] for code in b],
                y,
                judge=judge,
                instruction=[f"i{code + first:04}" for code in item],
                swapped=order == 1,
            )
        ).comparisons()


@dataclass(frozen=True)
class Crowd:
    """Respondents with tastes of their own, who judge pairs of models on shared instructions.

    The log odds of a vote are slope * gap, how far the respondent likes one model more than the other (`taste` each),
    and how far the instruction helps it more (`unlike` each). People vote `votes` times each, on battles by chance,
    with `uneven` some much more often than others; judges (`votes` 0) judge every pair on every instruction, in both
    orders. `sharp` is the standard deviation of the logarithm of a respondent's slope.
    """

    respondents: int
    votes: int = 0
    instructions: int = 40
    models: int = 6
    taste: float = 0.5
    unlike: float = 0.5
    uneven: float = 0.0
    sharp: float = 0.0

    @property
    def strength(self) -> Floats:
        """Of each model (models,)."""
        return np.linspace(-1.0, 1.0, self.models)

    def tastes(self, rng: np.random.Generator) -> Floats:
        """How each respondent likes each model (respondents, models)."""
        return self.taste * rng.normal(size=(self.respondents, self.models))

    def draw(self, tastes: Floats, rng: np.random.Generator) -> Comparisons:
        """Votes of respondents with these tastes, crossed with instructions."""
        helped = self.unlike * rng.normal(size=(self.instructions, self.models))
        who, item, a, b = self._battles(rng)
        slope = np.exp(self.sharp * rng.normal(size=self.respondents)) if self.sharp else np.ones(self.respondents)
        seen, vote = slope[who, None] * (self.strength + tastes[who] + helped[item]), np.arange(len(who))
        p = expit(seen[vote, a] - seen[vote, b])
        y = (rng.random(len(p)) < p).astype(float) if self.votes else (rng.random((2, len(p))) < p).mean(axis=0)
        names = [str(code) for code in range(self.models)]
        return comparisons(a, b, y, models=names, cluster=item, judge=who, crossed=True)

    def truth(self, tastes: Floats | None = None) -> Floats:
        """Ratings in the long run (models,), in Elo points: by all such respondents, or by those with these tastes."""
        nodes, weight = np.polynomial.hermite_e.hermegauss(31)
        spread = np.sqrt(2.0 * (self.unlike**2 + (self.taste**2 if tastes is None else 0.0))) * nodes
        likes = np.zeros((1, self.models)) if tastes is None else tastes
        each = self.strength + likes
        gap = each[:, :, None] - each[:, None, :]
        wins = np.sum(weight / weight.sum() * expit(gap[..., None] + spread), axis=-1).mean(axis=0)
        np.fill_diagonal(wins, 0.0)
        return np.asarray(bradley_terry_wins(wins, [str(code) for code in range(self.models)]).elo)

    def am_elo_truth(self) -> Floats:
        """am-ELO by ever more such respondents (models,), in Elo points."""
        return _long_am_elo(replace(self, respondents=400))

    def _battles(self, rng: np.random.Generator) -> tuple[NDArray[np.int64], ...]:
        """Respondent, instruction and both models of each vote (votes,)."""
        if not self.votes:
            first, second = np.triu_indices(self.models, 1)
            shape = (self.respondents, self.instructions, len(first))
            who, item, pair = (column.ravel() for column in np.indices(shape))
            return who, item, first[pair], second[pair]
        share = np.exp(self.uneven * rng.normal(size=self.respondents))
        who = rng.choice(self.respondents, self.respondents * self.votes, p=share / share.sum())
        item = rng.integers(0, self.instructions, len(who))
        a = rng.integers(0, self.models, len(who))
        return who, item, a, (a + rng.integers(1, self.models, len(who))) % self.models


@cache
def _long_am_elo(world: Crowd) -> Floats:
    rng = np.random.default_rng(2026)
    drawn = (world.draw(world.tastes(rng), rng) for _ in range(10))
    return np.mean([am_elo(data, errors="none").ratings.elo for data in drawn], axis=0)
