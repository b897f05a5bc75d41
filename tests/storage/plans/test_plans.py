"""A plan is written as a stream, whole or not at all, and what is left of it is asked once, in order."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from venire.arena.errors import Fault
from venire.arena.keys import completion_key, fence
from venire.arena.records import Battle, Completion, Instruction, PlannedTrial, Reply
from venire.storage.plans import plans, trial_states
from venire.storage.plans.trial_states import PendingTrial
from venire.storage.store.opening import open_store
from venire.storage.transfer import importing

PAIRS = [("a", "b"), ("a", "z"), ("b", "z")]
QUESTIONS = ("q1", "q2", "q3")


def synthetic(count: int, first: int = 0) -> Iterator[PlannedTrial]:
    """Trials of nothing in particular, each with a key of its own."""
    for n in range(first, first + count):
        yield PlannedTrial(blake2b(b"%d" % n, digest_size=16).digest(), 1, 1, 1, (1, 2), 1, Battle(1, 2, n % 2 == 1))


def left(house: Any, name: str = "c") -> dict[int, list[int]]:
    found = trial_states.pending_trials(house.store, house.number(name))
    return {judge: found.of(judge).trials.tolist() for judge in sorted(set(found.respondents.tolist()))}


def load(house: Any, trials: Sequence[int]) -> list[PendingTrial]:
    return trial_states.load(house.store, np.array(trials, dtype=np.int64))


@pytest.fixture
def planned(filled: Any) -> tuple[Any, list[int]]:
    """A store with a plan of one judge, and the numbers of its 18 trials in plan order."""
    judge = filled.register()["j"]
    return filled, filled.plan(filled.trials([judge], PAIRS, QUESTIONS))


def test_a_campaign_is_found_by_its_name_with_what_was_accepted(house: Any) -> None:
    assert plans.find_campaign(house.store, "c") is None
    house.register(settings='{"a": 1}')
    house.register(name="other")
    known = plans.find_campaign(house.store, "c")
    assert known == plans.StoredCampaign(1, '# {"a": 1}', '{"a": 1}', False, 0)
    assert house.number("other") == 2


def test_a_respondent_keeps_its_number_whatever_a_campaign_calls_it_and_a_judge_is_added(house: Any) -> None:
    first = house.register(("j", "k"))
    assert house.register(("k", "l", "j"), name="other") == {"j": first["j"], "k": first["k"], "l": 3}
    assert house.column("select name from campaign_judge where campaign = 2 order by name") == ["j", "k", "l"]
    assert house.one("select count(*) from prompt") == (1,)


def test_judges_that_left_a_campaign_are_judges_of_it_no_more(house: Any) -> None:
    house.register(("j", "k"))
    house.register(("k",))
    assert house.column("select name from campaign_judge") == ["k"]
    assert house.one("select count(*) from respondent") == (2,)


def test_settings_that_changed_put_the_plan_out_of_force_and_equal_ones_do_not(planned: tuple[Any, list[int]]) -> None:
    house, trials = planned
    house.register()
    assert left(house) == {1: trials}
    house.register(settings='{"repeats": 2}')
    known = plans.find_campaign(house.store, "c")
    assert known is not None
    assert (known.planned, known.settings, known.text) == (False, '{"repeats": 2}', '# {"repeats": 2}')
    assert left(house) == {}
    assert plans.rounds(house.store, known.id) == ()


def test_a_plan_is_kept_in_the_order_given_with_its_gaps(filled: Any) -> None:
    judge = filled.register()["j"]
    trials = filled.trials([judge], PAIRS, QUESTIONS)[::-1]
    numbers = filled.plan(trials, equal_texts=4)
    keys = dict(filled.all("select id, trial_key from trial"))
    assert [keys[number] for number in numbers] == [trial.key for trial in trials]
    assert left(filled) == {judge: numbers}
    assert filled.all("select distinct round, gap from plan") == [(1, 120.5)]
    assert filled.column("select ordinal from plan order by ordinal") == list(range(18))
    assert [(one.trials, one.equal_texts) for one in plans.rounds(filled.store, 1)] == [(18, 4)]
    assert filled.one("select policy, seed, trials from round") == ("p", 7, 18)


def test_a_trial_is_stored_with_everything_that_was_planned(filled: Any) -> None:
    judge = filled.register()["j"]
    trials = filled.trials([judge], PAIRS, QUESTIONS)
    filled.plan(trials)
    columns = "trial_key, protocol, respondent, instruction, model_a, model_b, swapped, shown, repeat"
    assert filled.all(f"select {columns} from trial order by id") == [
        (
            *(one.key, one.protocol, one.respondent, one.instruction),
            *(one.battle.model_a, one.battle.model_b, one.battle.swapped, list(one.shown), one.repeat),
        )
        for one in trials
        if one.battle is not None
    ]


def test_a_second_campaign_that_plans_the_same_trials_uses_their_numbers(planned: tuple[Any, list[int]]) -> None:
    house, trials = planned
    judges = house.register(("j", "k"), name="second")
    more = house.trials([judges["j"], judges["k"]], PAIRS, QUESTIONS)
    numbers = house.plan(more, name="second")
    shared = [number for number, trial in zip(numbers, more, strict=True) if trial.respondent == judges["j"]]
    assert shared == trials
    assert house.one("select count(*), count(distinct id), count(distinct trial_key), max(id) from trial") == (36,) * 4
    house.write("verdict", house.verdict(trials[0]))
    assert left(house) == {judges["j"]: trials[1:]}
    assert left(house, "second")[judges["j"]] == trials[1:]  # paid for once
    assert len(left(house, "second")[judges["k"]]) == 18


def test_numbers_go_on_over_chunks_and_rounds_and_reopenings(house: Any, path: Path) -> None:
    house.register()
    plans.append_round(house.store, 1, synthetic(10_050), policy="p", seed=1, equal_texts=[0])
    house.store.close()
    with open_store(path) as store:
        plans.append_round(store, 1, synthetic(30, first=10_040), policy="p", seed=1, equal_texts=[0])
        found = store.connection.execute("select count(*), count(distinct id), min(id), max(id) from trial").fetchall()
        assert found == [(10_070, 10_070, 1, 10_070)]
        assert trial_states.pending_trials(store, 1).of(1).trials.tolist() == list(range(10_041, 10_071))


def test_an_interrupted_round_is_dropped_and_planned_anew(house: Any) -> None:
    def interrupted() -> Iterator[PlannedTrial]:
        yield from synthetic(12_000)
        raise KeyboardInterrupt

    house.register()
    with pytest.raises(KeyboardInterrupt):
        plans.append_round(house.store, 1, interrupted(), policy="p", seed=1, equal_texts=[0])
    known = plans.find_campaign(house.store, "c")
    assert known is not None
    assert not known.planned
    assert left(house) == {}
    assert house.one("select count(*) from plan") == (10_000,)
    assert plans.append_round(house.store, 1, synthetic(12_500), policy="p", seed=1, equal_texts=[0]) == 12_500
    assert house.one("select count(*), count(distinct ordinal), min(round), max(round) from plan") == (
        *(12_500, 12_500),
        *(1, 1),
    )
    assert house.one("select count(*), count(distinct trial_key) from trial") == (12_500, 12_500)
    assert left(house) == {1: list(range(1, 12_501))}


def test_dropping_an_interrupted_round_leaves_other_campaigns_and_rounds_alone(planned: tuple[Any, list[int]]) -> None:
    house, trials = planned

    def interrupted() -> Iterator[PlannedTrial]:
        yield from synthetic(10_000)
        raise RuntimeError

    house.register(name="other")
    with pytest.raises(RuntimeError):
        plans.append_round(house.store, 2, interrupted(), policy="p", seed=1, equal_texts=[0])
    plans.append_round(house.store, 2, synthetic(5), policy="p", seed=1, equal_texts=[0])
    assert left(house) == {1: trials}
    assert house.all("select campaign, round, count(*) from plan group by all order by all") == [(1, 1, 18), (2, 1, 5)]


def test_the_second_round_is_the_one_in_force(planned: tuple[Any, list[int]]) -> None:
    house, trials = planned
    house.write("verdict", house.verdict(trials[0]), house.verdict(trials[17]))
    again = house.plan(house.trials([1], PAIRS[:1], QUESTIONS), equal_texts=3)
    assert again == [trials[n] for n in (0, 1, 6, 7, 12, 13)]
    assert left(house) == {1: again[1:]}
    assert [(one.trials, one.equal_texts) for one in plans.rounds(house.store, 1)] == [(6, 3)]
    assert house.all("select round, count(*) from plan group by all order by all") == [(1, 18), (2, 6)]


def test_settled_and_failed_trials_are_not_pending_and_cleared_failures_come_back(
    planned: tuple[Any, list[int]],
) -> None:
    house, trials = planned
    house.write("verdict", house.verdict(trials[3]), house.verdict(trials[4], None, status=1))
    house.write("failure", (trials[0], 1, 3, False), (trials[9], 2, 7, False))
    rest = [number for number in trials if number not in (trials[0], trials[3], trials[4], trials[9])]
    assert left(house) == {1: rest}
    assert plans.clear_failures(house.store, 1) == 2
    assert left(house) == {1: [number for number in trials if number not in (trials[3], trials[4])]}
    assert plans.clear_failures(house.store, 1) == 0
    house.write("failure", (trials[9], 2, 7, False))  # tried again, and failed again
    assert trials[9] not in left(house)[1]
    assert trials[0] in left(house)[1]


def test_the_view_failed_names_judge_instruction_models_fault_and_the_last_message(
    planned: tuple[Any, list[int]],
) -> None:
    house, trials = planned
    faults = [fault for fault in Fault if fault is not Fault.NONE]
    for trial, fault in zip(trials, faults, strict=False):
        house.write("attempt", house.attempt(trial, 2, 1, text=None, fault=1, message="too early to tell"))
        house.write("attempt", house.attempt(trial, 2, 2, text=None, fault=int(fault), message=f"said of {fault}"))
        house.write("failure", (trial, 2, int(fault), False))
    columns = "campaign, trial, judge, step, fault, attempts, message"
    assert house.all(f"select {columns} from failed order by trial") == [
        ("c", trial, "j", 2, fault.name.lower(), 2, f"said of {fault}")
        for trial, fault in zip(trials, faults, strict=False)
    ]
    one = load(house, trials[:1])[0]
    assert house.one("select instruction_id, models from failed where trial = ?", trials[0]) == (
        one.instruction.id,
        [side.model for side in one.shown],
    )


def test_released_calls_count_nothing_in_accounts_verdicts_and_token_budgets_and_stay_on_record(
    planned: tuple[Any, list[int]],
) -> None:
    house, trials = planned
    house.write(
        "attempt",
        house.attempt(trials[0], 1, 1, text=None, cost=None, fault=int(Fault.UNANSWERED)),
        house.attempt(trials[0], 1, 2, cost=40),
        house.attempt(trials[1], 1, 1, cost=None),
        house.attempt(trials[2], 1, 1, text=None, cost=0),
    )
    house.write("verdict", (*house.verdict(trials[0])[:-1], 140), (*house.verdict(trials[1])[:-1], 100))
    assert house.one("select nano, unknown, unanswered, calls from spend") == (240, 200, 100, 4)
    assert plans.release_unanswered(house.store, 1) == (1, 100)
    assert house.one("select nano, unknown, unanswered, calls from spend") == (140, 100, 0, 4)
    assert house.column("select cost from verdict order by trial") == [40, 100]
    assert house.one("select cost, reserved, reserved_tokens from attempt where fault = 8") == (None, 0, 0)
    assert house.column("select detail from event where kind = 'released'") == ['{"calls": 1, "nano": 100}']
    batch = house.store.batch
    assert plans.release_unanswered(house.store, 1) == (0, 0)
    assert house.store.batch == batch, "nothing to release writes nothing"


def test_failures_of_another_campaign_are_not_cleared(planned: tuple[Any, list[int]]) -> None:
    house, trials = planned
    house.register(("k",), name="other")
    house.plan(house.trials([2], PAIRS, QUESTIONS), name="other")
    house.write("failure", (trials[0], 1, 3, False))
    assert plans.clear_failures(house.store, house.number("other")) == 0
    assert trials[0] not in left(house)[1]


def test_what_is_left_is_told_by_respondent_in_plan_order(filled: Any) -> None:
    judges = filled.register(("j", "k"))
    trials = filled.trials(list(judges.values()), PAIRS, QUESTIONS)
    shuffled = [trials[n] for n in np.random.default_rng(3).permutation(len(trials))]
    numbers = filled.plan(shuffled)
    assert left(filled) == {
        judge: [number for number, trial in zip(numbers, shuffled, strict=True) if trial.respondent == judge]
        for judge in judges.values()
    }


def test_material_comes_in_the_order_asked_for_with_canonical_sides(filled: Any) -> None:
    judge = filled.register()["j"]
    trials = filled.trials([judge], PAIRS, QUESTIONS)
    numbers = filled.plan(trials)
    order = np.random.default_rng(5).permutation(len(numbers)).tolist()
    loaded = load(filled, [numbers[n] for n in order])
    for one, wanted, number in zip(loaded, [trials[n] for n in order], [numbers[n] for n in order], strict=True):
        name = f"q{wanted.instruction}"
        assert (one.id, one.key, one.respondent) == (number, wanted.key, judge)
        assert wanted.battle is not None
        assert (one.swapped, one.repeat, one.instruction_number) == (wanted.battle.swapped, 1, wanted.instruction)
        assert one.instruction == Instruction(name, (f"What of {name}?",))
        models = tuple(side.model for side in one.shown)
        assert (models[::-1] if one.swapped else models) in PAIRS
        assert one.shown == tuple(Completion(model, name, f"{model} says this of {name}") for model in models)
        instruction_key = dict(filled.all("select id, instruction_key from instruction"))[wanted.instruction]
        assert one.shown_keys == tuple(
            completion_key(s.model, instruction_key, s.sample, s.variant, s.text) for s in one.shown
        )
        assert (one.replies, one.attempts, one.cost) == ((), {}, 0)


def test_instructions_come_with_all_their_turns_reference_and_category(house: Any) -> None:
    prompt = Instruction("q", ('First "turn"', "zweiter Zug: ä"), "the answer", "maths")
    importing.add(house.store, [prompt])
    importing.add(house.store, [Completion("a", "q", "one"), Completion("b", "q", "two")])
    house.register()
    (one, _) = load(house, house.plan(house.trials([1], [("a", "b")], ["q"])))
    assert one.instruction == prompt
    assert one.fences[0] == fence("\n\n".join(prompt.turns), house.store.constant)


def test_fences_are_those_of_the_texts_for_all_orders_campaigns_and_openings(
    planned: tuple[Any, list[int]], path: Path
) -> None:
    house, trials = planned
    house.register(("k",), name="other")
    others = house.plan(house.trials([2], PAIRS, QUESTIONS), name="other")
    of_text: dict[str, set[str]] = {}
    for one in load(house, [*trials, *others]):
        shown = ("\n\n".join(one.instruction.turns), one.shown[0].text, one.shown[1].text)
        for text, found in zip(shown, one.fences, strict=True):
            of_text.setdefault(text, set()).add(found)
            assert re.fullmatch("[0-9a-f]{16}", found)
    assert len(of_text) == 12
    assert {len(found) for found in of_text.values()} == {1}
    assert len(set().union(*of_text.values())) == 12
    before = [one.fences for one in load(house, trials)]
    house.store.close()
    with open_store(path) as store:
        assert [one.fences for one in trial_states.load(store, np.array(trials))] == before


def test_equal_texts_of_two_models_have_one_fence(house: Any) -> None:
    importing.add(house.store, [Instruction("q", ("What?",))])
    importing.add(house.store, [Completion("a", "q", "the same"), Completion("b", "q", "the same")])
    house.register()
    one, other = load(house, house.plan(house.trials([1], [("a", "b")], ["q"])))
    assert one.fences[1] == one.fences[2]
    assert one.shown_keys[0] != one.shown_keys[1]
    assert one.fences == other.fences
    assert one.shown == other.shown[::-1]


def test_replies_on_record_come_in_step_order_with_all_that_a_judge_said(planned: tuple[Any, list[int]]) -> None:
    house, trials = planned
    house.write(
        "attempt",
        house.attempt(trials[0], 2, text="second", tokens=(30, 3), seconds=1),
        house.attempt(trials[0], 3, text="third", tokens=(40, 4), seconds=2),
        house.attempt(trials[0], 1, text="first", tokens=(20, 2), seconds=3),
        house.attempt(trials[1], 1, text="of another trial"),
    )
    one, other, third = load(house, trials[:3])
    assert one.replies == (
        Reply("first", "stop", "", 20, 2),
        Reply("second", "stop", "", 30, 3),
        Reply("third", "stop", "", 40, 4),
    )
    assert [reply.text for reply in other.replies] == ["of another trial"]
    assert third.replies == ()


def test_of_two_answered_attempts_the_first_sent_is_the_reply(planned: tuple[Any, list[int]]) -> None:
    house, trials = planned
    house.write(
        "attempt",
        house.attempt(trials[0], 1, 3, text="sent last", seconds=9),
        house.attempt(trials[0], 1, 1, text=None, seconds=0),
        house.attempt(trials[0], 1, 2, text="sent first", seconds=5),
        house.attempt(trials[1], 1, 1, text="sent first, by a clock that was put back then", seconds=7),
        house.attempt(trials[1], 1, 2, text="sent second", seconds=4),
        house.attempt(trials[2], 1, 2, text="second of one moment", seconds=1),
        house.attempt(trials[2], 1, 1, text="first of one moment", seconds=1),
    )
    texts = [[reply.text for reply in one.replies] for one in load(house, trials[:3])]
    assert texts == [["sent first"], ["sent first, by a clock that was put back then"], ["first of one moment"]]
    assert house.column("select text from reply order by trial") == [text for (text,) in texts]


def test_a_reply_after_a_step_without_one_is_not_used(planned: tuple[Any, list[int]]) -> None:
    house, trials = planned
    house.write(
        "attempt",
        house.attempt(trials[0], 1, text="one"),
        house.attempt(trials[0], 3, text="three"),
        house.attempt(trials[1], 1, text=None),
        house.attempt(trials[1], 2, text="two"),
    )
    assert [[reply.text for reply in one.replies] for one in load(house, trials[:2])] == [["one"], []]


def test_attempts_are_counted_by_step_and_unknown_costs_at_their_reservation(planned: tuple[Any, list[int]]) -> None:
    house, trials = planned
    house.write(
        "attempt",
        house.attempt(trials[0], 1, 1, text=None, reserved=1_000, cost=None),
        house.attempt(trials[0], 1, 2, reserved=1_000, cost=700),
        house.attempt(trials[0], 2, 4, reserved=1_000, cost=0),
        house.attempt(trials[2], 1, 1, reserved=1_000, cost=3),
    )
    first, second, third = load(house, trials[:3])
    assert (first.attempts, first.cost) == ({1: 2, 2: 4}, 1_700)
    assert (second.attempts, second.cost) == ({}, 0)
    assert (third.attempts, third.cost) == ({1: 1}, 3)
    known = plans.find_campaign(house.store, "c")
    assert known is not None
    assert known.calls == 4


def test_a_forecast_counts_what_is_left_and_the_characters_that_it_shows(filled: Any) -> None:
    judges = filled.register(("j", "k"))
    numbers = filled.plan(filled.trials(list(judges.values()), PAIRS, QUESTIONS))
    pending = load(filled, numbers)
    filled.write("verdict", filled.verdict(pending[0].id), filled.verdict(pending[1].id))
    filled.write("failure", (pending[2].id, 1, 3, False))

    def shown(one: PendingTrial) -> int:
        return len(json.dumps(one.instruction.turns)) + sum(len(side.text) for side in one.shown)

    expected = []
    for judge in judges.values():
        rest = [one for one in pending[3:] if one.respondent == judge]
        expected.append(trial_states.PendingTexts(judge, len(rest), sum(map(shown, rest)), min(map(shown, rest))))
    assert trial_states.pending_texts(filled.store, 1) == tuple(expected)


def test_the_catalogue_has_first_answers_of_the_named_models_and_equal_texts_hash_alike(filled: Any) -> None:
    importing.add(
        filled.store,
        [
            Completion("a", "q1", "again", sample=2),
            Completion("a", "q1", "edited", variant="padded"),
            Completion("twin", "q1", "a says this of q1"),
            Completion("twin", "q2", "again", sample=2),
            Completion("twin", "q3", "edited", variant="padded"),
        ],
    )
    found = plans.catalogue(filled.store, ["a", "b", "twin", "unknown"])
    assert set(found.models) == {"a", "b", "twin"}
    assert set(found.completions) == {(m, q) for m in "ab" for q in QUESTIONS} | {("twin", "q1")}
    number, key = found.instructions["q1"]
    texts = dict(filled.all("select id, text from completion"))
    completion, digest, text_hash = found.completions["a", "q1"]
    assert texts[completion] == "a says this of q1"
    assert digest == completion_key("a", key, 1, "", "a says this of q1")
    assert number == 1
    assert found.completions["twin", "q1"][2] == text_hash
    assert found.completions["b", "q1"][2] != text_hash


def test_planning_consumes_the_stream_at_most_ten_thousand_ahead_of_the_store(house: Any) -> None:
    house.register()
    ahead: list[int] = []

    def watched() -> Iterator[PlannedTrial]:
        with house.store.cursor() as cursor:
            for n, trial in enumerate(synthetic(25_000), start=1):
                if n % 2_500 == 0:
                    ((written,),) = cursor.execute("select count(*) from plan").fetchall()
                    ahead.append(n - written)
                yield trial

    assert plans.append_round(house.store, 1, watched(), policy="p", seed=1, equal_texts=[0]) == 25_000
    assert max(ahead) == 10_000
    assert house.one("select count(*), count(distinct ordinal), count(distinct trial) from plan") == (25_000,) * 3


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.integers(1, 3),  # trial
            st.integers(1, 3),  # step
            st.integers(1, 4),  # number
            st.integers(0, 3),  # seconds
            st.booleans(),  # answered
        ),
        max_size=25,
        unique_by=lambda row: row[:3],
    )
)
def test_the_reply_of_a_step_is_the_lowest_number_of_its_answered_attempts(
    house: Any, drawn: list[tuple[int, int, int, int, bool]]
) -> None:
    house.store.connection.execute("delete from attempt")
    if drawn:
        house.write(
            "attempt",
            *(
                house.attempt(trial, step, number, seconds=seconds, text=f"{trial}.{step}.{number}" if said else None)
                for trial, step, number, seconds, said in drawn
            ),
        )
    expected: dict[tuple[int, int], int] = {}
    for trial, step, number, _, said in drawn:
        if said:
            expected[trial, step] = min(expected.get((trial, step), number), number)
    texts = [(trial, step, f"{trial}.{step}.{number}") for (trial, step), number in sorted(expected.items())]
    assert house.all("select trial, step, text from reply order by trial, step") == texts
    loaded = house.store.read("replies", low=1, high=3, ids=[1, 3])
    assert [row[:3] for row in loaded] == [row for row in texts if row[0] != 2]
