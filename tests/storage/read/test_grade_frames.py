"""What boards are handed of judges of single completions: grades in model terms, each once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from venire.arena.keys import respondent_key, trial_key
from venire.arena.records import AnswerGrade, Completion, Origin, PlannedTrial, Respondent, Status
from venire.storage.plans import plans
from venire.storage.read import frames
from venire.storage.transfer.importing import add


def graded(house: Any, judge: int, instruction: str, model: str, repeat: int = 1) -> PlannedTrial:
    """A trial that shows one model's answer."""
    answers = plans.catalogue(house.store, [model])
    number, key = answers.instructions[instruction]
    shown = answers.completions[model, instruction]
    digest = respondent_key(Respondent(str(judge), "direct", Origin.REAL))
    return PlannedTrial(trial_key(digest, key, (shown[1],), repeat), 4, judge, number, (shown[0],), repeat)


def test_grades_are_those_of_models_with_the_code_of_their_reading(filled: Any) -> None:
    judges = filled.register(("k", "j"))
    trials = [
        graded(filled, judges["k"], "q2", "z"),
        graded(filled, judges["k"], "q1", "b"),
        graded(filled, judges["j"], "q1", "b", repeat=2),
        graded(filled, judges["j"], "q1", "a"),
        graded(filled, judges["j"], "q3", "a"),
    ]
    numbers = filled.plan(trials)
    said = [(2, Status.OK), (1, Status.OK), (0, Status.OK), (None, Status.REFUSED)]
    filled.write(
        "verdict",
        *(filled.verdict(number, label, status=status) for number, (label, status) in zip(numbers, said, strict=False)),
    )
    campaign = filled.number()
    found = frames.grades(filled.store, [campaign], frames.judges(filled.store, campaign))
    assert (found.models, found.judges, found.instructions) == (("a", "b", "z"), ("j", "k"), ("q1", "q2"))
    assert len(found.protocols) == 2
    assert (found.judge.tolist(), found.model.tolist()) == ([0, 0, 1, 1], [0, 1, 1, 2])
    assert (found.instruction.tolist(), found.repeat.tolist()) == ([0, 0, 0, 1], [1, 2, 1, 1])
    assert found.status.tolist() == [Status.REFUSED, 0, 0, 0]
    assert found.label[1:].tolist() == [AnswerGrade.INCORRECT, AnswerGrade.CORRECT, AnswerGrade.NOT_ATTEMPTED]
    assert found.categories == tuple(
        row[0] for row in filled.all("select category from instruction where external_id < 'q3' order by external_id")
    )
    of_k = [one for one in frames.judges(filled.store, campaign) if one.name == "k"]
    assert frames.grades(filled.store, [campaign], of_k).judges == ("k",)
    assert len(frames.grades(filled.store, [], of_k)) == 0


def test_a_grade_of_an_edited_completion_is_not_one_of_the_models_own(filled: Any) -> None:
    judges = filled.register(("j",))
    add(filled.store, [Completion("a", "q1", "edited", variant="padded")])
    edited = filled.one("select id from completion where variant = 'padded'")[0]
    own = graded(filled, judges["j"], "q1", "a")
    numbers = filled.plan([own, replace(own, key=b"k" * 16, shown=(edited,))])
    filled.write("verdict", *(filled.verdict(number, label) for number, label in zip(numbers, (1, 0), strict=True)))
    campaign = filled.number()
    found = frames.grades(filled.store, [campaign], frames.judges(filled.store, campaign))
    assert found.label.tolist() == [AnswerGrade.CORRECT]
