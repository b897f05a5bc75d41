"""Backtest of placements: place a known model from stored verdicts, with a new model's policy and number of battles.

The store's rating of a model on its board is hidden, and the policy chooses among the stored battles: no call is made.
This shows how far placements of this kind are from people's ratings, before the placement of a new model is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.campaigns import PhaseSettings
from venire.arena.errors import VenireError
from venire.arena.planning import Choose, JudgeHabit, Pick, PlanState
from venire.arena.scale import ELO_MEAN, POINTS_PER_LOGIT
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.judgments import Judgments, select_battles
from venire.ratings.data.result import Ratings
from venire.ratings.design.placement import fit_board, place_among
from venire.ratings.pairwise.bradley_terry import bradley_terry

Codes = NDArray[np.int32]
Prices = Callable[[Sequence[str], Sequence[str]], tuple[NDArray[np.float64], NDArray[np.float64]]]
"""Of models and instructions, what `PlanState` has as prices of instructions and of completions (nano-dollars)."""


@dataclass(frozen=True, slots=True, eq=False)
class PlacedAnew:
    """A model's rating `elo` and error `se` in Elo points against a board without it, after `battles` battles.

    `rows` are the indices of these battles' judgments. `available` is the number of battles to choose from.
    """

    elo: float
    se: float
    battles: int
    available: int
    rows: NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Anchors:
    """Models that were placed again: `elo`, `se`, `battles` and `available` (models,) as in `PlacedAnew`.

    `skipped` names the models that could not be placed, with the reason.
    """

    models: tuple[str, ...]
    elo: NDArray[np.float64]
    se: NDArray[np.float64]
    battles: NDArray[np.int64]
    available: NDArray[np.int64]
    skipped: Mapping[str, str] = field(default_factory=dict)


def joined(one: Battles, other: Battles) -> Battles:
    """Join two tables of verdicts by their names; for a verdict in both tables the first is kept.

    The result has only the columns of every campaign's table: what was shown, the judge, and the label.
    """
    names = {
        kind: tuple(sorted({*getattr(one, kind), *getattr(other, kind)}))
        for kind in ("models", "judges", "instructions")
    }

    def codes(column: str, kind: str) -> Codes:
        place = {name: code for code, name in enumerate(names[kind])}
        parts = [
            np.array([place[name] for name in getattr(table, kind)], dtype=np.int32)[getattr(table, column)]
            for table in (one, other)
        ]
        return np.concatenate(parts)

    def both(column: str) -> NDArray[Any]:
        return np.concatenate([getattr(one, column), getattr(other, column)])

    found = Battles(
        models=names["models"],
        judges=names["judges"],
        instructions=names["instructions"],
        model_a=codes("model_a", "models"),
        model_b=codes("model_b", "models"),
        judge=codes("judge", "judges"),
        instruction=codes("instruction", "instructions"),
        repeat=both("repeat"),
        swapped=both("swapped"),
        status=both("status"),
        label=both("label"),
    )
    shown = np.column_stack([found.model_a, found.model_b, found.judge, found.instruction, found.repeat, found.swapped])
    first = np.unique(shown, axis=0, return_index=True)[1] if len(shown) else np.zeros(0, dtype=np.intp)
    return found if len(first) == len(shown) else select_battles(found, np.sort(first))


def place_anew(
    judgments: Judgments,
    model: str,
    choose: Choose,
    phase: PhaseSettings,
    number: int,
    *,
    seed: int,
    habits: Sequence[JudgeHabit] = (),
    prices: Prices | None = None,
    money: float | None = None,
    board: Ratings | None = None,
) -> PlacedAnew:
    """Place `model` by at most `number` of its battles in `judgments`, chosen by a policy in rounds of `phase.round`.

    All other models are fixed at the ratings from their own judgments (`board`: an existing fit). `habits` are the
    judges' habits. With `money` in nano-dollars, only battles that it covers at these `prices` are taken. Raises
    `InputError` for a model without a battle against a rated model, and `SeparatedError` where the others have no
    finite ratings.
    """
    data = judgments.comparisons()
    held = fit_board(data, model) if board is None else board
    code = data.models.index(model)
    mine = (data.a == code) | (data.b == code)
    state, of_row = _state(judgments, model, held, mine, habits)
    if prices is not None:
        fixed, each = prices(state.models, state.instructions)
        state = replace(state, instruction_price=fixed, completion_price=each)
    assert state.only is not None
    taken = np.zeros(len(state.only), dtype=np.bool_)
    logit, se = np.nan, np.nan
    round_number = 0
    while taken.sum() < number:
        rng = np.random.default_rng([seed, round_number])
        picks = choose(state, replace(phase, place=model), min(phase.round, number - int(taken.sum())), rng)
        picks = picks if money is None else picks[: _covered(state, picks, taken, money)]
        if not picks:
            break
        _take(taken, state, {(one.model_a, one.model_b, one.instruction) for one in picks})
        rows = ~mine | (of_row >= 0) & taken[of_row]
        logit, se = place_among(data.select(rows), model, held)
        state = replace(
            state,
            asked=state.only[taken],
            logits=_with(held.logits, code, logit),
            se=_with(np.zeros(len(held.logits)), code, se),
        )
        round_number += 1
    if not round_number:
        logit, se = place_among(data.select(~mine), model, held)  # raises because nothing places the model
    chosen = np.flatnonzero((of_row >= 0) & taken[of_row])
    return PlacedAnew(ELO_MEAN + POINTS_PER_LOGIT * logit, POINTS_PER_LOGIT * se, int(taken.sum()), len(taken), chosen)


def place_anchors(
    judgments: Judgments,
    anchors: Sequence[str],
    choose: Choose,
    phase: PhaseSettings,
    number: int,
    *,
    seed: int,
    habits: Sequence[JudgeHabit] = (),
    prices: Prices | None = None,
) -> Anchors:
    """Place each of `anchors` again with `place_anew`, all in the gauge of the board that contains every model.

    Raises the errors of a fit of the whole board; an anchor without which no board can be fitted is skipped.
    """
    whole = _whole(judgments.comparisons())
    found: dict[str, PlacedAnew] = {}
    skipped: dict[str, str] = {}
    for name in anchors:
        try:
            placed = place_anew(judgments, name, choose, phase, number, seed=seed, habits=habits, prices=prices)
        except VenireError as error:
            skipped[name] = str(error)
            continue
        others = np.isfinite(whole.logits) & (np.arange(len(whole.models)) != whole.models.index(name))
        found[name] = replace(placed, elo=placed.elo + float(whole.elo[others].mean()) - ELO_MEAN)
    placed_ones = list(found.values())
    return Anchors(
        tuple(found),
        np.array([one.elo for one in placed_ones]),
        np.array([one.se for one in placed_ones]),
        np.array([one.battles for one in placed_ones], dtype=np.int64),
        np.array([one.available for one in placed_ones], dtype=np.int64),
        skipped,
    )


def _whole(data: Comparisons) -> Ratings:
    """Ratings of all models that were compared, without errors."""
    return bradley_terry(data, errors="none")


def _state(
    judgments: Judgments, model: str, board: Ratings, mine: NDArray[np.bool_], habits: Sequence[JudgeHabit]
) -> tuple[PlanState, NDArray[np.intp]]:  # fmt: skip
    """The policy's state before the first battle, and each judgment's battle in `only` (-1: part of the board)."""
    rated = np.isfinite(board.logits)
    code = judgments.models.index(model)
    usable = mine & (rated[judgments.model_a] | rated[judgments.model_b])
    rows = np.column_stack([judgments.model_a, judgments.model_b, judgments.instruction])[usable]
    only, at = np.unique(rows, axis=0, return_inverse=True)
    of_row = np.full(len(judgments), -1, dtype=np.intp)
    of_row[usable] = at.ravel()
    held = frozenset(name for name, known in zip(judgments.models, rated.tolist(), strict=True) if known)
    state = PlanState(
        judgments.models, {}, judgments.instructions, _with(board.logits, code, np.nan),
        _with(np.zeros(len(rated)), code, np.nan), np.zeros((0, 3), dtype=np.int32), None, only.astype(np.int32),
        tuple(habits), held=held - {model},
    )  # fmt: skip
    return state, of_row


def _take(taken: NDArray[np.bool_], state: PlanState, chosen: set[tuple[str, str, str | None]]) -> None:
    assert state.only is not None
    for row in np.flatnonzero(~taken).tolist():
        a, b, place = state.only[row].tolist()
        taken[row] = (state.models[a], state.models[b], state.instructions[place]) in chosen


def _covered(state: PlanState, picks: Sequence[Pick], taken: NDArray[np.bool_], money: float) -> int:
    """How many of the first picks the money covers that remains after the battles taken."""
    models = {name: code for code, name in enumerate(state.models)}
    texts = {name: code for code, name in enumerate(state.instructions)}
    rows = np.array([(models[one.model_a], models[one.model_b], texts[str(one.instruction)]) for one in picks])
    assert state.only is not None
    spent = float(_costs(state, state.only[taken]).sum())
    return int(np.searchsorted(spent + np.cumsum(_costs(state, rows)), money + 1e-6, side="right"))


def _costs(state: PlanState, battles: NDArray[Any]) -> NDArray[np.float64]:
    assert state.instruction_price is not None
    assert state.completion_price is not None
    a, b, place = battles.T
    return np.asarray(
        state.instruction_price[place] + state.completion_price[a, place] + state.completion_price[b, place]
    )


def _with(values: NDArray[np.float64], code: int, value: float) -> NDArray[np.float64]:
    found = values.copy()
    found[code] = value
    return found
