"""Votes of people beside judgments: joined by models and instruction, weighed so that no judgment counts twice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from venire.arena.errors import InputError
from venire.ratings.data.battles import battles
from venire.ratings.data.judgments import merge_orders, select_battles
from venire.ratings.data.people import human_labels, split_people, with_people

JUDGED = battles(
    ["a", "a", "b", "a"], ["b", "c", "c", "b"], [1, 0.5, 0, 0], judge=["j", "j", "j", "k"], instruction=list("qqqq")
)
VOTES = battles(
    ["b", "a", "a"],
    ["a", "b", "c"],
    [0, 0, 0.5],
    judge=["ann", "bob", "ann"],
    instruction=["q", "q", "q"],
)


def test_every_vote_is_a_label_and_a_judgment_weighs_as_much_as_before() -> None:
    judgments = merge_orders(JUDGED)
    found = human_labels(judgments, VOTES)
    by_row = {
        (judgments.judges[judgments.judge[row]], judgments.models[judgments.model_a[row]],
         judgments.models[judgments.model_b[row]]): sorted(found.human[found.rows == row].tolist())
        for row in range(len(judgments))
    }  # fmt: skip
    assert by_row[("j", "a", "b")] == by_row[("k", "a", "b")] == [0.0, 1.0]
    assert by_row[("j", "a", "c")] == [0.5]
    assert np.isnan(by_row[("j", "b", "c")]).all()
    assert np.bincount(found.rows, found.share).tolist() == [1.0] * 4
    assert found.labelled == 3
    table = found.comparisons(judgments)
    assert table.weight is not None
    assert table.weight.sum() == pytest.approx(4.0)


def test_votes_on_other_instructions_are_no_labels() -> None:
    elsewhere = battles(["a"], ["b"], [1], judge=["ann"], instruction=["r"])
    assert human_labels(merge_orders(JUDGED), elsewhere).labelled == 0
    with pytest.raises(InputError, match="one of the two names none"):
        human_labels(merge_orders(JUDGED), battles(["a"], ["b"], [1], judge=["ann"]))


def test_people_are_one_more_judge_whose_repeats_are_their_votes() -> None:
    joined = with_people(merge_orders(JUDGED), VOTES, "crowd")
    assert joined.judges == ("crowd", "j", "k")
    own = joined.judge == 0
    assert own.sum() == 3
    assert sorted(joined.repeat[own].tolist()) == [1, 1, 2]
    with pytest.raises(InputError, match="import their votes under another name"):
        with_people(merge_orders(JUDGED), VOTES, "j")


def test_a_judge_of_a_table_can_be_people() -> None:
    judges, people = split_people(JUDGED, ["k"])
    assert (judges.judges, people.judges, len(people.label)) == (("j",), ("k",), 1)
    with pytest.raises(InputError, match="no judge is called 'z'"):
        split_people(JUDGED, ["z"])
    with pytest.raises(InputError, match="nobody else judged"):
        split_people(JUDGED, ["j", "k"])


def test_rows_of_one_battle_are_never_independent() -> None:
    """One vote beside two judges is one vote: without clusters, errors would take it for two."""
    independent = replace(merge_orders(JUDGED), clustering="none")
    assert independent.comparisons().cluster is None
    for votes in (VOTES, select_battles(VOTES, np.array([1]))):  # several votes on a battle, and one on each
        found = human_labels(independent, votes)
        data = found.comparisons(independent)
        assert data.cluster is not None
        pairs = zip(independent.model_a[found.rows], independent.model_b[found.rows], strict=True)
        battles_of = {(int(cluster), int(a), int(b)) for cluster, (a, b) in zip(data.cluster, pairs, strict=True)}
        assert len(battles_of) == len(set(data.cluster.tolist())) == 3
