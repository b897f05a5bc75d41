"""Peers together and each alone against people, and ballots cut short."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from venire.arena.errors import InputError
from venire.ratings.agreement.reference import micro_macro
from venire.ratings.data.ballots import ballots_from_judgments
from venire.ratings.data.judgments import merge_orders
from venire.ratings.pairwise.bradley_terry import bradley_terry
from venire.ratings.peers.peer_agreement import peer_agreement, truncation
from venire.ratings.peers.peer_evaluation import by_judge, orders_by_instruction
from venire.storage.transfer.formats.battles import read_battles

Make = Callable[..., Any]
STRENGTH = (1.0, 0.5, 0.0, -0.5, -1.0)
RATING = {f"m{code}": 400.0 * strength for code, strength in enumerate(STRENGTH)}


@pytest.fixture(scope="module")
def judgments(peer_battles: Make) -> Any:
    """Four fair judges and one that turns everything round."""
    return merge_orders(peer_battles(STRENGTH, slope=(1.5, 1.0, 1.0, -1.0, 1.0), instructions=60, seed=1))


def test_together_and_alone_are_what_their_positions_say(judgments: Any, by_points: Any) -> None:
    found = peer_agreement(judgments, RATING, by_points, replicates=50)
    together = micro_macro(orders_by_instruction(by_points, judgments), judgments.models, RATING, replicates=50)
    assert found.together.micro_pearson == together.micro_pearson
    for name, table in by_judge(judgments).items():
        assert (
            found.judges[name].macro_pearson
            == micro_macro(table, judgments.models, RATING, replicates=50).macro_pearson
        )
    assert found.judges["m3"].micro_pearson.value < 0.0
    assert found.order.order == ("m0", "m1", "m2", "m3", "m4")
    assert (found.overall.kendall, found.overall.mae) == (pytest.approx(1.0), None)
    assert "mae" not in found.overall.intervals


def test_the_lead_over_the_best_judge_is_that_of_the_medians(judgments: Any, by_points: Any) -> None:
    found = peer_agreement(judgments, RATING, by_points, replicates=100)
    best = max(found.judges, key=lambda name: found.judges[name].micro_pearson.value)
    assert found.best_judge == best
    ahead = found.together.micro_pearson.value - found.judges[best].micro_pearson.value
    assert found.lead.value == pytest.approx(ahead)
    assert found.lead.lo <= ahead <= found.lead.hi


def test_where_no_judge_saw_all_pairs_there_is_no_best_one(judgments: Any, by_points: Any) -> None:
    some = judgments.select((judgments.model_b - judgments.model_a) == 1)
    found = peer_agreement(some, RATING, by_points, replicates=10)
    assert (found.judges, found.best_judge, found.lead) == ({}, None, None)
    assert found.together.instructions == 60


def test_whole_ballots_lose_nothing_and_short_ones_more(judgments: Any, by_points: Any) -> None:
    fair = judgments.select(judgments.judge != 3)
    one, two, whole = truncation(fair, RATING, (1, 2, 5), by_points, replicates=50)
    assert (whole.best, whole.micro_loss.value, whole.macro_loss) == (5, 0.0, 0.0)
    assert one.micro_loss.value == pytest.approx(
        1.0 - one.agreement.micro_pearson.value / whole.agreement.micro_pearson.value
    )
    means = [float(np.nanmean(cut.agreement.pearson)) for cut in (one, two, whole)]
    assert means[0] < means[2]
    again = truncation(ballots_from_judgments(fair), RATING, [1], by_points, replicates=50)
    assert again[0].micro_loss == one.micro_loss


def test_no_loss_can_be_told_where_there_is_no_agreement(judgments: Any, by_points: Any) -> None:
    turned = replace(judgments, y=1.0 - judgments.y).select(judgments.judge == 0)
    (found,) = truncation(turned, RATING, [2], by_points, replicates=10)
    assert (found.micro_loss.value, found.macro_loss) == (None, None)
    assert "do not agree" in found.micro_loss.reason


def test_what_cannot_be_cut_is_refused(judgments: Any, by_points: Any) -> None:
    with pytest.raises(InputError, match="best has 0"):
        truncation(judgments, RATING, [0], by_points)
    with pytest.raises(InputError, match="no ballot"):
        truncation(judgments.select(judgments.model_a == 0), RATING, [1], by_points)


@pytest.fixture(scope="module")
def recorded(shared_data: Path) -> tuple[Any, dict[str, float]]:
    """Five systems that judged each other on eighty questions, and people's ratings of nine."""
    folder = shared_data / "vicuna80_peers"
    people = bradley_terry(merge_orders(read_battles(folder / "human_votes.parquet")).comparisons(), errors="none")
    judgments = merge_orders(read_battles(folder / "judgments.parquet", where={"repeat": "1"}))
    return judgments, dict(zip(people.models, people.elo.tolist(), strict=True))


def test_recorded_peers_by_kemeny_and_the_best_of_them_agree_alike_with_people(
    recorded: tuple[Any, dict[str, float]],
) -> None:
    judgments, people = recorded
    found = peer_agreement(judgments, people, replicates=200)
    assert found.order.order == ("gpt-4", "claude-v1", "vicuna-13b", "gpt-3.5-turbo", "bard")
    assert (found.order.proved, found.overall.kendall) == (True, pytest.approx(1.0))
    together = found.together
    assert together.micro_pearson.value == pytest.approx(0.8, abs=1e-4)
    assert together.pearson_quartiles == pytest.approx((0.6, 0.9), abs=1e-4)
    assert together.macro_pearson.value == pytest.approx(0.9828, abs=1e-4)
    assert found.best_judge == "gpt-4"
    assert found.judges["gpt-4"].micro_pearson.value == pytest.approx(0.8208, abs=1e-4)
    assert found.judges["vicuna-13b"].tied == 16
    assert found.lead.lo < 0.0 < found.lead.hi  # no sign of the two being different


def test_recorded_ballots_of_the_best_one_lose_a_twentieth(recorded: tuple[Any, dict[str, float]]) -> None:
    one, three = truncation(*recorded, (1, 3), replicates=200)
    assert one.micro_loss.value == pytest.approx(0.0497, abs=1e-4)
    assert one.macro_loss == pytest.approx(0.0480, abs=1e-4)
    assert one.micro_loss.lo < 0.0 < one.micro_loss.hi
    assert abs(three.macro_loss) < 0.01


def test_rows_in_another_order_agree_alike(judgments: Any, by_points: Any) -> None:
    mixed = judgments.select(np.random.default_rng(2).permutation(len(judgments)))
    one, other = (peer_agreement(given, RATING, by_points, replicates=20) for given in (judgments, mixed))
    assert one.together.micro_pearson == other.together.micro_pearson
    assert one.best_judge == other.best_judge
