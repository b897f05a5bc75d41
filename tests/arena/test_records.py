"""A record that contradicts itself cannot be made."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from venire.arena.records import (
    Ballot,
    GeneratedText,
    Grade,
    Matchup,
    Origin,
    Outcome,
    Preference,
    Reading,
    Respondent,
    Status,
    Verdict,
)

KEY = bytes(16)
FAILED = [status for status in Status if status is not Status.OK]
READINGS = (Preference(0), Grade(0, "incorrect"), Ballot((2, 1)), GeneratedText(""))


def test_a_matchup_is_in_canonical_order() -> None:
    assert Matchup("a", "b").model_a == "a"
    for model_a, model_b in (("b", "a"), ("a", "a"), ("a", "B"), ("", "")):
        with pytest.raises(ValueError, match="model_a must sort before model_b"):
            Matchup(model_a, model_b)


def test_a_matchup_is_its_two_models_whatever_the_gap() -> None:
    assert Matchup("a", "b", 10.0) == Matchup("a", "b")
    assert len({Matchup("a", "b", 10.0), Matchup("a", "b", 20.0)}) == 1
    assert sorted([Matchup("b", "c"), Matchup("a", "c", 1.0), Matchup("a", "b", 9.0)]) == [
        Matchup("a", "b"),
        Matchup("a", "c"),
        Matchup("b", "c"),
    ]


def test_options_of_a_respondent_are_sorted() -> None:
    options = (("max_tokens", "1"), ("repair", "1"))
    assert Respondent("m", "p", Origin.REAL, options).options == options
    with pytest.raises(ValueError, match="options must be sorted by name"):
        Respondent("m", "p", Origin.REAL, options[::-1])


@pytest.mark.parametrize("reading", READINGS)
def test_an_outcome_has_a_reading_when_it_is_ok(reading: Reading) -> None:
    assert Outcome(Status.OK, reading).reading is reading
    with pytest.raises(ValueError, match="a reading exactly when its status is OK"):
        Outcome(Status.OK)


@pytest.mark.parametrize("status", FAILED)
@pytest.mark.parametrize("reading", READINGS)
def test_an_outcome_has_no_reading_when_it_is_not_ok(status: Status, reading: Reading) -> None:
    assert Outcome(status).reading is None
    with pytest.raises(ValueError, match="a reading exactly when its status is OK"):
        Outcome(status, reading)


def test_a_verdict_that_is_ok_has_one_of_label_places_and_answered() -> None:
    for label in (-1, 0, 1):
        assert Verdict(KEY, Status.OK, label=label, score=0.5, criteria=(1.0, 2.0)).label == label
    assert Verdict(KEY, Status.OK, places=(2, 1)).places == (2, 1)
    assert Verdict(KEY, Status.OK, answered=True).answered


def test_a_verdict_that_is_ok_has_neither_none_nor_two_of_them() -> None:
    def make(label: int | None, places: tuple[int, ...], answered: bool) -> Verdict:
        return Verdict(KEY, Status.OK, label=label, places=places, answered=answered)

    for label, places, answered in (
        (None, (), False),
        (0, (1,), False),
        (0, (), True),
        (None, (1,), True),
        (0, (1,), True),
    ):
        with pytest.raises(ValueError, match="one of label, places and answered exactly when"):
            make(label, places, answered)


@pytest.mark.parametrize("status", FAILED)
def test_a_verdict_that_is_not_ok_says_nothing(status: Status) -> None:
    assert Verdict(KEY, status, rule="", flagged=True).label is None
    with pytest.raises(ValueError, match="exactly when its status is OK"):
        Verdict(KEY, status, label=0)
    with pytest.raises(ValueError, match="exactly when its status is OK"):
        Verdict(KEY, status, places=(1,))
    with pytest.raises(ValueError, match="exactly when its status is OK"):
        Verdict(KEY, status, answered=True)
    with pytest.raises(ValueError, match="a score only when"):
        Verdict(KEY, status, score=0.0)
    with pytest.raises(ValueError, match="a score only when"):
        Verdict(KEY, status, criteria=(0.0, 0.0))


def test_records_are_frozen() -> None:
    outcome = Outcome(Status.REFUSED)
    with pytest.raises(FrozenInstanceError):
        outcome.status = Status.OK  # type: ignore[misc]  # what the test is about


def test_the_numbers_of_statuses_are_pinned() -> None:
    """They are in every store."""
    assert {status.name: status.value for status in Status} == {
        "OK": 0,
        "UNREADABLE": 1,
        "REFUSED": 2,
        "TRUNCATED": 3,
        "FILTERED": 4,
        "TOO_LONG": 5,
    }


def test_the_words_of_origins_are_pinned() -> None:
    """They are in every store and in every respondent's key."""
    assert {origin.name: origin.value for origin in Origin} == {
        "REAL": "real",
        "SIMULATED": "simulated",
        "RECORDED": "recorded",
        "PEOPLE": "people",
    }
