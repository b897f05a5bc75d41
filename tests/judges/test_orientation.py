"""Swapping what is shown and mirroring what is read leaves the verdict where it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire.arena.records import Ballot, GeneratedText, Grade, Outcome, Preference, Reading, Status
from venire.judges.orientation import BOTH_ORDERS, arrange, orient

KEY = b"0123456789abcdef"

scores = st.floats(-100, 100)
preferences = st.builds(
    Preference,
    st.sampled_from([-1, 0, 1]),
    st.none() | scores,
    st.lists(st.tuples(scores, scores), max_size=6).map(tuple),
)


def read(preference: Reading) -> Outcome:
    return Outcome(Status.OK, preference, "bare")


def mirrored(preference: Preference) -> Preference:
    """What a judge without a position habit reads when the two answers change places."""
    return Preference(
        -preference.winner,
        None if preference.score is None else -preference.score,
        tuple((second, first) for first, second in preference.criteria),
    )


def test_both_orders_are_each_order_once() -> None:
    assert BOTH_ORDERS == (False, True)
    assert {arrange("a", "b", swapped) for swapped in BOTH_ORDERS} == {("a", "b"), ("b", "a")}


def test_a_is_shown_first_unless_swapped() -> None:
    assert arrange("a", "b", False) == ("a", "b")
    assert arrange("a", "b", True) == ("b", "a")


@given(preferences, st.booleans())
def test_a_verdict_does_not_depend_on_the_order_shown(preference: Preference, swapped: bool) -> None:
    assert orient(KEY, swapped, read(preference)) == orient(KEY, not swapped, read(mirrored(preference)))


@given(preferences)
def test_one_reading_in_the_other_order_negates(preference: Preference) -> None:
    straight, swapped = (orient(KEY, order, read(preference)) for order in BOTH_ORDERS)
    assert straight.label is not None
    assert swapped.label == -straight.label
    assert (swapped.score is None) == (straight.score is None)
    if straight.score is not None and swapped.score is not None:
        assert swapped.score == -straight.score


@pytest.mark.parametrize(("winner", "swapped", "label"), [(1, False, 1), (-1, False, -1), (1, True, -1), (-1, True, 1)])
def test_a_positive_label_and_score_favour_a(winner: int, swapped: bool, label: int) -> None:
    verdict = orient(KEY, swapped, read(Preference(winner, 2.5 * winner)))
    assert (verdict.label, verdict.score) == (label, 2.5 * label)


@pytest.mark.parametrize("swapped", BOTH_ORDERS)
def test_a_tie_is_a_tie_in_both_orders(swapped: bool) -> None:
    assert orient(KEY, swapped, read(Preference(0))).label == 0


def test_criteria_stand_a_before_b_in_the_order_of_the_criteria() -> None:
    first_a = Preference(1, 1.0, ((9.0, 5.0), (8.0, 4.0)))
    assert orient(KEY, False, read(first_a)).criteria == (9.0, 5.0, 8.0, 4.0)
    first_b = Preference(-1, -1.0, ((5.0, 9.0), (4.0, 8.0)))
    assert orient(KEY, True, read(first_b)).criteria == (9.0, 5.0, 8.0, 4.0)


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.OK])
@pytest.mark.parametrize("swapped", BOTH_ORDERS)
def test_a_status_passes_through_without_a_label(status: Status, swapped: bool) -> None:
    verdict = orient(KEY, swapped, Outcome(status, rule="r"))
    assert (verdict.trial, verdict.status, verdict.rule) == (KEY, status, "r")
    assert (verdict.label, verdict.score, verdict.criteria) == (None, None, ())


def test_trial_and_rule_are_kept() -> None:
    verdict = orient(KEY, True, read(Preference(1)))
    assert (verdict.trial, verdict.status, verdict.rule) == (KEY, Status.OK, "bare")


@pytest.mark.parametrize("reading", [Grade(1, "correct"), Ballot((1, 2)), GeneratedText("1")])
@pytest.mark.parametrize("swapped", BOTH_ORDERS)
def test_a_battle_ends_in_a_preference_alone(reading: Reading, swapped: bool) -> None:
    with pytest.raises(TypeError, match=f"a battle cannot end in a {type(reading).__name__}"):
        orient(KEY, swapped, Outcome(Status.OK, reading))


def test_what_is_no_battle_keeps_its_reading_as_it_was_shown() -> None:
    assert orient(KEY, None, read(Grade(2, "not attempted"))).label == 2
    assert orient(KEY, None, read(Ballot((3, 1, 0, 2)))).places == (3, 1, 0, 2)
    assert orient(KEY, None, read(GeneratedText("text"))).answered
    with pytest.raises(TypeError, match="no battle cannot end in a Preference"):
        orient(KEY, None, read(Preference(1)))


@pytest.mark.parametrize("status", [Status.OK, Status.REFUSED])
def test_a_flag_goes_with_any_verdict(status: Status) -> None:
    outcome = Outcome(status, Preference(1) if status is Status.OK else None)
    assert orient(KEY, True, outcome, flagged=True).flagged
    assert not orient(KEY, True, outcome).flagged
