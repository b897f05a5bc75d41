"""Agreement of peers with people: all together compared with the best judge alone, and the cost of short ballots.

Source: *LLMs Judge Themselves: A Game-Theoretic Framework for Human-Aligned Evaluation*, arXiv 2510.15746.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Ballots
from venire.arena.errors import InputError
from venire.ratings.agreement.chance_corrected import Coefficient, coefficient_of, resample
from venire.ratings.agreement.reference import Agreement, MicroMacro, agreement, medians, micro_macro
from venire.ratings.data.ballots import ballots_from_judgments, truncated
from venire.ratings.data.judgments import Judgments
from venire.ratings.data.votes import Order
from venire.ratings.peers.peer_evaluation import Aggregate, by_judge, order_by, orders_by_instruction
from venire.ratings.voting.kemeny import kemeny_young


@dataclass(frozen=True, slots=True, eq=False)
class PeerAgreement:
    """Agreement with people: of peers `together`, one order per instruction, and of the positions of each of `judges`.

    `order` is computed from all votes at once and `overall` is its agreement with the ratings. `best_judge` has the
    highest median of all, and `lead` is how far the median of all together is above it, with an interval over
    instructions. The best judge is chosen on the same data, so the lead is biased downwards. Both are None without a
    judge to choose. `rivals` are peers together by other rules.
    """

    together: MicroMacro
    judges: Mapping[str, MicroMacro]
    order: Order
    overall: Agreement
    best_judge: str | None
    lead: Coefficient | None
    rivals: Mapping[str, MicroMacro]


@dataclass(frozen=True, slots=True, eq=False)
class Truncation:
    """Ballots that rank only the `best` models: the agreement, and the share of it that is lost.

    `micro_loss` is 1 minus the ratio of the median Pearson correlations, with an interval over instructions,
    `macro_loss` that of the macro Pearson: 0 is no loss, below 0 a gain. None where full ballots do not agree with
    people at all.
    """

    best: int
    agreement: MicroMacro
    micro_loss: Coefficient
    macro_loss: float | None


def peer_agreement(
    given: Judgments | Ballots,
    reference: Mapping[str, float],
    aggregate: Aggregate = kemeny_young,
    *,
    rivals: Mapping[str, Aggregate] = {},
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
) -> PeerAgreement:
    """Compare the peers' positions with one rating per model: together by `aggregate`, and each judge alone.

    `rivals` are other rules by name, by which peers are put together as well. A judge of pairs has positions where it
    judged all pairs of an instruction. Raises `InputError` as `micro_macro`.

    >>> from venire.ratings import ballots, borda, peer_agreement
    >>> given = ballots(list("aaabbbccc") * 2, ["q"] * 9 + ["r"] * 9, list("abc") * 6, [1, 2, 3, 2, 1, 3, 1, 3, 2] * 2)
    >>> found = peer_agreement(given, {"a": 3.0, "b": 2.0, "c": 1.0}, borda, replicates=50)
    >>> found.order.order
    ('a', 'b', 'c')
    """

    def held(positions: NDArray[np.float64]) -> MicroMacro:
        return micro_macro(positions, given.models, reference, level=level, replicates=replicates, seed=seed)

    together, order = held(orders_by_instruction(aggregate, given)), order_by(aggregate, given)
    judges = {name: held(table) for name, table in by_judge(given).items()}
    medians_by = {name: one.micro_pearson.value for name, one in judges.items()}
    ranked = sorted((-value, name) for name, value in medians_by.items() if value is not None)
    best = ranked[0][1] if ranked else None
    found = {name: -place for name, place in zip(order.models, order.position.tolist(), strict=True) if place == place}
    return PeerAgreement(
        together=together,
        judges=judges,
        order=order,
        overall=_without_error(agreement(found, reference, level=level)),
        best_judge=best,
        rivals={name: held(orders_by_instruction(rule, given)) for name, rule in rivals.items()},
        lead=None if best is None else _lead(together, judges[best], level, replicates, seed),
    )


def _without_error(found: Agreement) -> Agreement:
    """The agreement without errors in Elo points: for positions only correlations are meaningful."""
    intervals = {name: interval for name, interval in found.intervals.items() if name != "mae"}
    return replace(found, mae=None, intervals=intervals)


def _lead(together: MicroMacro, alone: MicroMacro, level: float, replicates: int, seed: int) -> Coefficient:
    def lead(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        return medians(together.pearson, weights) - medians(alone.pearson, weights)

    size = len(together.pearson)
    (value,) = lead(np.ones((1, size)))
    found = resample(lead, size, level=level, replicates=replicates, seed=seed)
    return coefficient_of("lead of the median", float(value), size, found, level=level, undefined="no median to lead")


def truncation(
    given: Judgments | Ballots,
    reference: Mapping[str, float],
    best: Sequence[int] | int,
    aggregate: Aggregate = kemeny_young,
    *,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
) -> tuple[Truncation, ...]:
    """The agreement of ballots truncated to the `best` first models, relative to full ballots; the rest is tied below.

    Pairwise judgments are first converted to ballots. Raises `InputError` where there are none, for numbers below 1,
    and as `micro_macro` does.

    >>> from venire.ratings import ballots, borda, truncation
    >>> given = ballots(list("aaabbbccc") * 2, ["q"] * 9 + ["r"] * 9, list("abc") * 6, [1, 2, 3, 2, 1, 3, 1, 3, 2] * 2)
    >>> found = truncation(given, {"a": 3.0, "b": 2.0, "c": 1.0}, [1, 2], borda, replicates=50)
    >>> [one.best for one in found]
    [1, 2]
    """
    numbers = [best] if isinstance(best, int) else list(best)
    if wrong := [one for one in numbers if not isinstance(one, int | np.integer) or one < 1]:
        raise InputError(f"best has {wrong[0]!r}; give how many models each ranking keeps, such as [1, 3]")
    whole = ballots_from_judgments(given) if isinstance(given, Judgments) else given

    def held(ballots: Ballots) -> MicroMacro:
        positions = orders_by_instruction(aggregate, ballots)
        return micro_macro(positions, ballots.models, reference, level=level, replicates=replicates, seed=seed)

    full = held(whole)
    found = []
    for number in numbers:
        cut = held(truncated(whole, number))
        loss = _loss(full.pearson, cut.pearson, level, replicates, seed)
        macro = full.macro_pearson.value, cut.macro_pearson.value
        lost = None if macro[0] is None or macro[1] is None or macro[0] <= 0.0 else 1.0 - macro[1] / macro[0]
        found.append(Truncation(number, cut, loss, lost))
    return tuple(found)


def _loss(full: NDArray[np.float64], cut: NDArray[np.float64], level: float, replicates: int, seed: int) -> Coefficient:
    def lost(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        before, after = medians(full, weights), medians(cut, weights)
        return np.where(before > 0.0, 1.0 - after / np.where(before > 0.0, before, 1.0), np.nan)

    (value,) = lost(np.ones((1, len(full))))
    drawn = resample(lost, len(full), level=level, replicates=replicates, seed=seed)
    why = "whole ballots do not agree with the reference"
    return coefficient_of("loss of the median", float(value), len(full), drawn, level=level, undefined=why)
