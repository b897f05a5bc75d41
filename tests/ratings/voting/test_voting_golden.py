"""Orders of recorded judgments: five models that judged one another on eighty questions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from venire.ratings.data.ballots import ballot_votes, ballots_from_judgments, truncated
from venire.ratings.data.judgments import Judgments, merge_orders
from venire.ratings.data.votes import Order, Votes, votes
from venire.ratings.pairwise.plackett_luce import plackett_luce
from venire.ratings.voting.rules import borda, copeland, markov, median_rank, minimax, ranked_pairs, schulze
from venire.storage.transfer.formats.battles import read_battles

AGREED = ("gpt-4", "claude-v1", "vicuna-13b", "gpt-3.5-turbo", "bard")


@pytest.fixture(scope="module")
def peers(shared_data: Path) -> Judgments:
    return merge_orders(read_battles(shared_data / "vicuna80_peers" / "judgments.parquet", where={"repeat": "1"}))


@pytest.mark.parametrize(
    ("method", "scores"),
    [
        (borda, [0.7498, 0.6617, 0.3934, 0.3755, 0.3195]),
        (copeland, [1.0, 0.75, 0.5, 0.25, 0.0]),
        (ranked_pairs, [4, 2, 0, -2, -4]),
        (schulze, [4, 2, 0, -2, -4]),
        (markov, [0.4111, 0.2892, 0.1085, 0.1050, 0.0863]),
    ],
)
def test_peers_agree_on_an_order_that_contradicts_the_least(
    peers: Judgments, method: Callable[[Votes], Order], scores: list[float]
) -> None:
    found = method(votes(peers.comparisons()))
    assert found.order == AGREED
    assert found.score is not None
    assert [found.score[found.models.index(name)] for name in AGREED] == pytest.approx(scores, abs=1e-4)
    assert (found.cost, found.lower_bound, found.proved) == (1240.75, 1240.75, True)
    assert method(ballot_votes(ballots_from_judgments(peers))).order == AGREED


def test_minimax_looks_at_the_worst_defeat_alone(peers: Judgments) -> None:
    found = minimax(votes(peers.comparisons()))
    assert found.order == ("gpt-4", "claude-v1", "gpt-3.5-turbo", "vicuna-13b", "bard")
    assert found.score is not None
    assert sorted(found.score.tolist()) == [-249.5, -244.5, -233.0, -72.5, 72.5]
    assert (found.cost, found.proved) == (1260.75, False)


def test_ballots_of_peers(peers: Judgments) -> None:
    ballots = ballots_from_judgments(peers)
    assert len(ballots) == 400
    middle = median_rank(ballots)
    assert middle.score is not None
    assert [middle.score[middle.models.index(name)] for name in AGREED] == [1.5, 2.0, 3.5, 4.0, 4.0]
    assert middle.position[[middle.models.index("bard"), middle.models.index("gpt-3.5-turbo")]].tolist() == [4.5, 4.5]
    for given, elo in (
        (ballots, [1194.6, 1123.4, 927.4, 893.8, 860.8]),
        (truncated(ballots, 2), [1206.0, 1134.9, 886.2, 905.1, 867.8]),
    ):
        found = plackett_luce(given)
        assert [found.elo[found.models.index(name)] for name in AGREED] == pytest.approx(elo, abs=0.05)
    se = 400 / np.log(10) * plackett_luce(ballots).se
    assert [se[middle.models.index(name)] for name in AGREED] == pytest.approx([17.0, 14.3, 10.8, 16.4, 14.3], abs=0.05)


def test_a_sparse_crowd_has_one_order_a_method(shared_data: Path) -> None:
    """59 systems of which few met: who won by luck against few leads Copeland and Schulze, not Borda and the walk."""
    named = {"judge": "annotator", "instruction_id": "prompt_id"}
    path = shared_data / "llmfao" / "comparisons.parquet"
    crowd = votes(merge_orders(read_battles(path, named, where={"annotator_kind": "human"})).comparisons())
    cost = {method.__name__: method(crowd).cost for method in (borda, copeland, minimax, ranked_pairs, schulze, markov)}
    expected = {"borda": 3313.5, "copeland": 3299.5, "minimax": 3461.5}
    assert cost == expected | {"ranked_pairs": 3253.5, "schulze": 3318.5, "markov": 3349.5}
    assert borda(crowd).order[0] == markov(crowd).order[0] == "GPT 4"
