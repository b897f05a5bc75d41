"""Figures of recorded judgments, as the data's own description states them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from venire.arena.battles import Battles
from venire.ratings.agreement.reference import agreement
from venire.ratings.data.judgments import Judgments, merge_orders, select_battles
from venire.ratings.judges.consistency import consistency
from venire.ratings.pairwise.bradley_terry import bradley_terry
from venire.storage.transfer.formats.battles import read_battles


def ratings(judgments: Judgments) -> dict[str, float]:
    found = bradley_terry(judgments.comparisons(), errors="none")
    return dict(zip(found.models, found.elo.tolist(), strict=True))


@pytest.fixture(scope="module")
def peers(shared_data: Path) -> Battles:
    return read_battles(shared_data / "vicuna80_peers" / "judgments.parquet", where={"repeat": "1"})


def of_judge(battles: Battles, judge: str) -> Battles:
    return select_battles(battles, battles.judge == battles.judges.index(judge))


def test_peers_rated_by_gpt_4(peers: Battles) -> None:
    assert ratings(merge_orders(of_judge(peers, "gpt-4"))) == pytest.approx(
        {"gpt-4": 1276.07, "claude-v1": 1146.46, "vicuna-13b": 886.24, "gpt-3.5-turbo": 881.77, "bard": 809.46},
        abs=0.05,
    )


def test_peers_rated_by_all(peers: Battles) -> None:
    assert ratings(merge_orders(peers)) == pytest.approx(
        {"gpt-4": 1159.93, "claude-v1": 1099.63, "vicuna-13b": 932.96, "gpt-3.5-turbo": 921.69, "bard": 885.79},
        abs=0.05,
    )


@pytest.mark.parametrize(
    ("judge", "same", "both_tie", "flip", "mixed", "first", "ties"),
    [
        ("bard", 0.35250, 0.01625, 0.59250, 0.03875, 0.81205, 0.0356),
        ("claude-v1", 0.53750, 0.01125, 0.31000, 0.14125, 0.36215, 0.0819),
        ("gpt-3.5-turbo", 0.61250, 0.07875, 0.08375, 0.22500, 0.48995, 0.1912),
        ("gpt-4", 0.62250, 0.06625, 0.14375, 0.16750, 0.62353, 0.1500),
        ("vicuna-13b", 0.36125, 0.01250, 0.59250, 0.03375, 0.40631, 0.0294),
    ],
)
def test_flips_and_ties_of_peers(
    peers: Battles, judge: str, same: float, both_tie: float, flip: float, mixed: float, first: float, ties: float
) -> None:
    judgments = merge_orders(of_judge(peers, judge))
    assert len(judgments) == 800
    assert np.mean((judgments.y == 0) | (judgments.y == 1)) == pytest.approx(same, abs=1e-4)
    assert judgments.ties / 800 == pytest.approx(both_tie, abs=1e-4)
    assert judgments.flips / 800 == pytest.approx(flip, abs=1e-4)
    assert np.mean((judgments.y == 0.25) | (judgments.y == 0.75)) == pytest.approx(mixed, abs=1e-4)
    row = next(row for row in consistency(peers).judges if row.judge == judge)
    assert row.flips == pytest.approx(flip, abs=1e-4)
    assert row.first == pytest.approx(first, abs=1e-4)
    assert row.ties == pytest.approx(ties, abs=1e-4)
    assert (row.verdicts, row.matchups) == (1600, 10)


def test_peers_rated_by_people(shared_data: Path) -> None:
    votes = merge_orders(read_battles(shared_data / "vicuna80_peers" / "human_votes.parquet"))
    assert (votes.merged, len(votes), votes.one_order, set(votes.repeat.tolist())) == (True, 7040, 7040, {1, 2, 3})
    found = ratings(votes)
    expected = {"gpt-4": 1133.53, "claude-v1": 1129.27, "guanaco-65b": 994.37, "bard": 909.39}
    assert len(found) == 9
    assert {model: found[model] for model in expected} == pytest.approx(expected, abs=0.05)


def test_crowd_ratings_and_their_agreement_with_judges(shared_data: Path) -> None:
    path, columns = (
        shared_data / "llmfao" / "comparisons.parquet",
        {"judge": "annotator", "instruction_id": "prompt_id"},
    )
    crowd = read_battles(path, columns, where={"annotator_kind": "human"})
    assert (len(crowd.label), len(crowd.judges), crowd.ordered) == (8931, 124, True)
    people = ratings(merge_orders(crowd))
    expected = {"GPT 4": 1172.13, "Platypus-2 Instruct (70B)": 1112.45, "command": 1110.17, "Dolly v2 (3B)": 845.66}
    assert {model: people[model] for model in expected} == pytest.approx(expected, abs=0.05)
    assert min(people, key=people.__getitem__) == "Dolly v2 (3B)"
    for judge, spearman in (("gpt-4", 0.7099), ("gpt-3.5-turbo-instruct", 0.7275)):
        machine = ratings(merge_orders(read_battles(path, columns, where={"judge": judge})))
        found = agreement(people, machine)
        assert (found.models, found.spearman) == (59, pytest.approx(spearman, abs=1e-3))


def test_small_systems_rated_by_the_first_annotator(shared_data: Path) -> None:
    path, columns = shared_data / "pandalm" / "judgments.parquet", {"judge": "annotator", "instruction_id": "pair_id"}
    judgments = merge_orders(read_battles(path, columns))
    assert judgments.unreadable == 25
    assert ratings(judgments.of_judge("annotator1")) == pytest.approx(
        {
            "llama-7b": 1130.45,
            "pythia-6.9b": 1010.17,
            "bloom-7b": 988.78,
            "opt-7b": 960.03,
            "cerebras-gpt-6.7B": 910.57,
        },
        abs=0.05,
    )


def test_repeats_of_both_orders(shared_data: Path) -> None:
    battles = read_battles(shared_data / "devbench_repeats" / "judgments.parquet")
    assert len(merge_orders(battles)) == 3888 // 2
    rows = {row.judge: row for row in consistency(battles).judges}
    assert rows["gpt-4-1106-preview"].flips == pytest.approx(0.1620, abs=1e-4)
    assert rows["gpt-4-1106-preview"].first == pytest.approx(0.4560, abs=1e-4)
    assert rows["claude-3-haiku-20240307"].flips == pytest.approx(0.8148, abs=1e-4)


def test_shares_of_the_first_place_are_published_win_rates(shared_data: Path) -> None:
    """A probability of the place shown first, turned into one of the system, is what the leaderboard averages."""
    path = shared_data / "alpaca_eval" / "judgments.parquet"
    judgments = merge_orders(read_battles(path, {"score": "prob_first"}))
    baseline = judgments.models.index("gpt4_1106_preview")
    for model, win_rate in (("alpaca-7b", 2.591451), ("FuseChat-Llama-3.1-8B-Instruct", 63.331583)):
        rows = judgments.select(judgments.between([model, "gpt4_1106_preview"]))
        share = np.where(rows.model_a == baseline, 1 - rows.y, rows.y)
        assert (len(rows), 100 * share.mean()) == (805, pytest.approx(win_rate, abs=1e-6))


def test_what_people_said_of_an_arena_sample(shared_data: Path) -> None:
    path = shared_data / "softelo_sample" / "battles.parquet"
    said = merge_orders(read_battles(path, {"winner": "human_winner"})).comparisons()
    found = bradley_terry(said, ridge=0.01, errors="none")
    assert found.elo[found.models.index("gpt-4o-2024-05-13")] == pytest.approx(1145.64, abs=0.05)
    judged = merge_orders(read_battles(path, {"winner": "judge_winner"}))
    assert judged.human is not None
    assert np.array_equal(np.sort(judged.human), np.sort(said.y))
    assert np.mean(judged.human == judged.y) == pytest.approx(0.506)
