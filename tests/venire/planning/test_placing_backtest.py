"""A model of the board is placed anew from verdicts on record, as a new one would be; nothing it hides is used."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from venire.arena.battles import Battles
from venire.arena.campaigns import PhaseSettings, StopSettings
from venire.arena.errors import InputError
from venire.arena.planning import Pick, PlanState
from venire.orchestrator.policies import POLICIES
from venire.placement.backtest import joined, place_anchors, place_anew
from venire.placement.board import PlacementBoard
from venire.placement.run import PlacementFeedback
from venire.ratings.data.judgments import Judgments, merge_orders, select_battles
from venire.ratings.design.placement import place_model

MODELS = tuple(f"m{n}" for n in range(8))
TEXTS = tuple(f"i{n:02}" for n in range(30))
PLACE = PhaseSettings(policy="information", purpose="place", round=10)


def verdicts(seed: int = 0, spread: float = 1.5) -> Battles:
    """Every pair of eight models on every instruction, in both orders, by one judge that is sure of little."""
    rng = np.random.default_rng(seed)
    logits = np.linspace(-spread, spread, len(MODELS))
    rows = [(a, b, i) for a in range(8) for b in range(a + 1, 8) for i in range(len(TEXTS))]
    both = np.repeat(np.array(rows, dtype=np.int32), 2, axis=0)
    chance = 1.0 / (1.0 + np.exp(logits[both[:, 1]] - logits[both[:, 0]]))
    label = np.where(rng.random(len(both)) < chance, 1, -1).astype(np.int8)
    zeros = np.zeros(len(both), dtype=np.int32)
    return Battles(
        models=MODELS,
        judges=("j",),
        instructions=TEXTS,
        model_a=both[:, 0],
        model_b=both[:, 1],
        judge=zeros,
        instruction=both[:, 2],
        repeat=zeros + 1,
        swapped=np.tile([False, True], len(rows)),
        status=zeros.astype(np.int8),
        label=label,
    )


@pytest.fixture(scope="module")
def board() -> Judgments:
    return merge_orders(verdicts())


def test_a_model_is_placed_by_its_chosen_battles_on_a_board_without_it(board: Judgments) -> None:
    found = place_anew(board, "m6", POLICIES["information"].choose, PLACE, 40, seed=1)
    assert (found.battles, found.available, len(found.rows)) == (40, 210, 40)
    mine = (board.model_a == 6) | (board.model_b == 6)
    assert mine[found.rows].all()
    kept = ~mine
    kept[found.rows] = True
    whole = place_model(board.select(kept).comparisons(), "m6")
    assert (found.elo, found.se) == pytest.approx((whole.held.elo, whole.held.se))


def test_information_meets_those_of_its_own_level_and_balanced_everybody(board: Judgments) -> None:
    met = {}
    for policy in ("information", "balanced"):
        found = place_anew(board, "m7", POLICIES[policy].choose, replace(PLACE, policy=policy), 100, seed=1)
        other = board.model_a[found.rows]
        met[policy] = np.bincount(other, minlength=8)
    assert met["balanced"][:7].min() >= 13
    assert met["information"][4:7].sum() > 1.5 * met["balanced"][4:7].sum()


def test_what_is_left_of_the_board_does_not_see_the_hidden_model(board: Judgments) -> None:
    seen: list[PlanState] = []

    def choose(state: PlanState, phase: PhaseSettings, number: int, rng: np.random.Generator) -> list[Pick]:
        seen.append(state)
        return POLICIES["information"].choose(state, phase, number, rng)

    place_anew(board, "m3", choose, PLACE, 30, seed=1)
    first, second, third = seen
    assert first.logits is not None
    assert second.logits is not None
    assert np.isnan(first.logits[3])
    assert np.isfinite(second.logits[3])
    assert first.held == frozenset(MODELS) - {"m3"}
    assert not first.elo
    others = np.arange(8) != 3
    assert (first.logits[others] == second.logits[others]).all()
    assert [0 if one.asked is None else len(one.asked) for one in (first, second, third)] == [0, 10, 20]


def test_the_same_seed_chooses_the_same_and_another_another(board: Judgments) -> None:
    choose = POLICIES["information"].choose
    one, again, other = (place_anew(board, "m3", choose, PLACE, 30, seed=seed).rows.tolist() for seed in (1, 1, 2))
    assert one == again != other


def test_money_covers_no_more_than_it_can(board: Judgments) -> None:
    def prices(models: object, names: object) -> tuple[np.ndarray, np.ndarray]:
        return np.full(len(TEXTS), 2.0), np.full((8, len(TEXTS)), 4.0)

    found = place_anew(
        board,
        "m3",
        POLICIES["balanced"].choose,
        replace(PLACE, policy="balanced"),
        99,
        seed=1,
        prices=prices,
        money=255,
    )
    assert found.battles == 25


def test_anchors_stand_in_the_gauge_of_the_whole_board_and_near_their_ratings(board: Judgments) -> None:
    found = place_anchors(board, MODELS, POLICIES["balanced"].choose, replace(PLACE, policy="balanced"), 999, seed=1)
    assert found.models == MODELS
    assert found.battles.tolist() == [210] * 8
    whole = place_model(board.comparisons(), "m0").ratings.elo
    assert found.elo - found.elo.mean() == pytest.approx(whole - whole.mean(), abs=12.0)


def test_an_anchor_that_holds_the_board_together_is_skipped_with_the_reason() -> None:
    table = verdicts()
    apart = ((table.model_a < 4) & (table.model_b < 4)) | (table.model_a >= 4) | (table.model_a == 3)
    bridge = (table.model_a < 3) & (table.model_b >= 4)
    found = place_anchors(
        merge_orders(select_battles(table, apart & ~bridge)),
        ("m2", "m3"),
        POLICIES["balanced"].choose,
        PLACE,
        20,
        seed=1,
    )
    assert found.models == ("m2",)
    assert "groups" in found.skipped["m3"]


def test_two_tables_are_joined_by_name_and_nothing_counts_twice() -> None:
    table = verdicts()
    half = select_battles(table, table.instruction < 20)
    rest = select_battles(table, table.instruction >= 10)
    order = np.array([3, 1, 0, 2, 7, 6, 5, 4])
    place = np.argsort(order).astype(np.int32)
    renamed = replace(
        rest, models=tuple(MODELS[n] for n in order), model_a=place[rest.model_a], model_b=place[rest.model_b]
    )
    both = merge_orders(joined(half, renamed))
    assert len(both) == len(merge_orders(table))
    assert place_model(both.comparisons(), "m2").held.elo == pytest.approx(
        place_model(merge_orders(table).comparisons(), "m2").held.elo
    )


def steerer(stop: StopSettings) -> tuple[PlacementFeedback, Battles]:
    table = verdicts()
    mine = (table.model_a == 5) | (table.model_b == 5)
    return PlacementFeedback(PlacementBoard("b", select_battles(table, ~mine), {}, {}, ()), "m5", stop), select_battles(
        table, mine
    )


def test_a_look_rates_the_new_model_alone_and_holds_the_others() -> None:
    one, mine = steerer(StopSettings())
    nothing = one.estimate(select_battles(mine, np.zeros(len(mine.label), dtype=np.bool_)))
    some = one.estimate(select_battles(mine, mine.instruction < 25))
    code = some.models.index("m5")
    assert np.isnan(nothing.logits[nothing.models.index("m5")])
    assert some.se[code] > 0.0
    assert (np.delete(some.se, code) == 0.0).all()
    assert np.delete(some.logits, code) == pytest.approx(np.delete(nothing.logits, nothing.models.index("m5")))
    assert set(some.judges) == {"j"}


def test_a_placement_stops_when_its_interval_is_narrow_or_its_battles_are_judged() -> None:
    one, mine = steerer(StopSettings(half_width=60.0))
    few, many = select_battles(mine, mine.instruction < 15), mine
    analysis = one.analyse(few, 7)
    assert (analysis.half_width, analysis.stop, analysis.nano) == (
        None,
        None,
        7,
    )  # 15 instructions are too few to stop by
    analysis = one.analyse(many, 0)
    assert analysis.half_width is not None
    assert analysis.half_width < 60.0
    assert analysis.stop is not None
    assert "within" in analysis.stop
    assert (analysis.battles, analysis.verdicts, analysis.instructions) == (210, 420, 30)
    counted = PlacementFeedback(one.board, "m5", StopSettings(battles=105)).analyse(few, 0)
    assert counted.stop is not None
    assert "105 battles" in counted.stop


def test_a_model_without_battles_is_refused(board: Judgments) -> None:
    alone = board.select((board.model_a != 3) & (board.model_b != 3))
    with pytest.raises(InputError, match="nothing places it"):
        place_anew(alone, "m3", POLICIES["balanced"].choose, PLACE, 10, seed=1)


def test_instructions_against_models_that_nobody_rated_are_none_to_stop_by() -> None:
    one, mine = steerer(StopSettings(half_width=1e6))
    strange = (mine.instruction >= 15) & (mine.model_a == 0)
    rest = mine.instruction < 15
    table = replace(mine, models=(*MODELS, "m9"), model_a=np.where(strange, 8, mine.model_a).astype(np.int32))
    analysis = one.analyse(select_battles(table, rest | strange), 0)
    assert analysis.battles == 15 * 7 + 15
    assert (analysis.instructions, analysis.half_width, analysis.stop) == (15, None, None)
