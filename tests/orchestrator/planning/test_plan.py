"""From a campaign to its plan: who judges whom on what, and that the same file makes the same plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from inspect import isfunction
from itertools import combinations, groupby, islice
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.stores import open_with
from venire.arena.budgets import BudgetSettings
from venire.arena.campaigns import (
    CampaignSettings,
    DataSettings,
    JudgeSettings,
    LaneSettings,
    Limits,
    PhaseSettings,
    PlanSettings,
    RouteSettings,
)
from venire.arena.errors import InputError
from venire.arena.keys import completion_key, respondent_key, trial_key
from venire.arena.records import Battle, Completion, Instruction, Matchup, Origin, PlannedTrial, Rating, Respondent
from venire.judges import PROTOCOLS
from venire.orchestrator.costs.budget import BudgetView
from venire.orchestrator.costs.coverage import Funds
from venire.orchestrator.designs import ExcludedModel, PlannedCampaign, RoundDesign
from venire.orchestrator.planning import design_space
from venire.orchestrator.planning import first_round as first_round_module
from venire.orchestrator.planning import oversized as oversized_module
from venire.orchestrator.planning.expand import NumberedRespondent, expand
from venire.orchestrator.planning.first_round import first_round
from venire.orchestrator.planning.inputs import PlanInputs, SelectedModels, select_models
from venire.orchestrator.planning.oversized import TextLengths
from venire.orchestrator.planning.plan import plan_campaign
from venire.orchestrator.planning.respondents import respondents
from venire.storage.plans import trial_states
from venire.storage.plans.plans import Catalogue, Catalogued
from venire.storage.read import frames
from venire.storage.store.opening import open_store
from venire.storage.store.store import Store
from venire.storage.transfer import importing
from venire.storage.transfer.importing import StoredModel

LANE = LaneSettings((RouteSettings("openai", "http://127.0.0.1:9/v1", None, "m"),))
OPTIONS = {"max_tokens": "50", "temperature": "0"}
THERE = (
    StoredModel("ash", 1000.0, 4),
    StoredModel("birch", 1100.0, 4),
    StoredModel("cedar", None, 4),
    StoredModel("elm", 1300.0, 4),
)


def judge(name: str, model: str | None = None, **fields: Any) -> JudgeSettings:
    return JudgeSettings(name, model or f"model of {name}", "two-stage", OPTIONS, replace(LANE, **fields))


def _plan(**plan: Any) -> PlanSettings:
    """What a test says of the plan and of its one phase."""
    own = {key: plan.pop(key) for key in ("policy", "matchups", "coverage") if key in plan}
    return PlanSettings((PhaseSettings(**{"policy": "all-pairs", "matchups": None, **own}),), **plan)


def campaign(
    *judges: JudgeSettings, models: tuple[str, ...] | None = None, seed: int = 7, **plan: Any
) -> CampaignSettings:
    return CampaignSettings(
        "c",
        seed,
        Path("c.toml"),
        Path("c.duckdb"),
        DataSettings(models=models),
        _plan(**plan),
        judges or (judge("j"),),
        BudgetSettings(),
        "",
        repr((judges, models, seed, plan)),
    )


def catalogue(models: Sequence[str], instructions: Sequence[str]) -> Catalogue:
    """Answers of their own of every model to every instruction."""
    pairs = [(model, name) for name in instructions for model in models]
    return Catalogue(
        {model: 10 + n for n, model in enumerate(models)},
        {name: (100 + n, name.encode().rjust(16, b"i")) for n, name in enumerate(instructions)},
        {pair: Catalogued(1000 + n, "-".join(pair).encode().rjust(16, b"c"), n) for n, pair in enumerate(pairs)},
    )


def numbered(*judges: JudgeSettings, repeats: int = 1) -> list[NumberedRespondent]:
    asked = respondents(campaign(*judges))
    return [NumberedRespondent.of(sum(one.name.encode()), who, repeats) for one, who in asked]


def expanded(chosen: RoundDesign, answers: Catalogue, judges: Sequence[NumberedRespondent]) -> list[PlannedTrial]:
    return list(expand(chosen, answers, judges, [0]))


def designed(asked: CampaignSettings, answers: Catalogue, models: SelectedModels | None = None) -> RoundDesign:
    """The first round of what was read, without a store."""
    nothing = np.zeros(0)
    lengths = TextLengths(nothing, nothing, nothing)
    budgets = {judge.name: BudgetView([]) for judge in asked.judges}
    models = models or SelectedModels(tuple(answers.models), {})
    inputs = PlanInputs(asked, respondents(asked), models, answers, lengths, {}, (), {})
    return first_round(inputs, Funds(budgets, {}))


MODELS = ("ash", "birch", "cedar")
NAMES = ("q1", "q2", "q3")
ANSWERS = catalogue(MODELS, NAMES)
CHOSEN = RoundDesign(tuple(Matchup(a, b, 50.0) for a, b in combinations(MODELS, 2)), NAMES, MODELS, ())


# Who judges


def test_a_judge_is_its_model_protocol_options_and_prompts_and_its_origin_follows_from_its_model() -> None:
    (real, first), (simulated, second) = respondents(campaign(judge("j"), judge("s", "simulated/careful@3")))
    assert (real.name, simulated.name) == ("j", "s")
    assert first == Respondent(
        "model of j",
        "two-stage",
        Origin.REAL,
        (("max_tokens", "50"), ("temperature", "0")),
        PROTOCOLS["two-stage"].digests(),
    )
    assert second.origin is Origin.SIMULATED


def test_two_judges_that_differ_in_their_names_or_lanes_alone_are_refused_by_name() -> None:
    twins = judge("one", "same"), judge("other", "third"), judge("two", "same", limits=Limits(9))
    with pytest.raises(InputError, match=r"c\.toml: 'one' and 'two' are the same.*repeats"):
        respondents(campaign(*twins))


@pytest.mark.parametrize(
    "other", [{"model": "another"}, {"options": {**OPTIONS, "temperature": "1"}}, {"options": {"max_tokens": "50"}}]
)
def test_judges_that_differ_in_a_setting_that_shapes_answers_are_two(other: dict[str, Any]) -> None:
    first = judge("one", "same")
    found = respondents(campaign(first, replace(first, name="two", **other)))
    assert len({respondent_key(one) for _, one in found}) == 2


def test_an_unknown_protocol_is_refused_with_the_judge_and_what_there_is() -> None:
    with pytest.raises(InputError, match=r"c\.toml: judge 'j': no protocol 'three-stage'; did you mean 'two-stage'"):
        respondents(campaign(replace(judge("j"), protocol="three-stage")))


# Who is judged


def test_without_names_every_model_with_elo_is_taken_and_the_others_are_listed() -> None:
    models = select_models(campaign(policy="widest-gap"), THERE)
    assert models.names == ("ash", "birch", "elm")
    assert models.elo == {"ash": 1000.0, "birch": 1100.0, "elm": 1300.0}
    assert models.left_out == (ExcludedModel("cedar", "no Elo"),)


@pytest.mark.parametrize("policy", ["random", "all-pairs"])
def test_a_policy_that_needs_no_elo_takes_models_without_it(policy: str) -> None:
    models = select_models(campaign(policy=policy), THERE)
    assert models.names == ("ash", "birch", "cedar", "elm")
    assert models.elo == {"ash": 1000.0, "birch": 1100.0, "elm": 1300.0}
    assert models.left_out == ()


def test_named_models_alone_are_taken_in_one_order_and_nobody_counts_as_left_out() -> None:
    models = select_models(campaign(policy="widest-gap", models=("elm", "ash")), THERE)
    assert models == SelectedModels(("ash", "elm"), {"ash": 1000.0, "elm": 1300.0})


def test_a_named_model_that_is_unknown_is_refused_with_those_that_are_there() -> None:
    with pytest.raises(InputError, match=r"c\.toml: \[data\] models names 'oak'.*ash, birch, cedar, elm"):
        select_models(campaign(models=("ash", "oak")), THERE)


def test_a_named_model_without_elo_is_refused_where_the_policy_needs_it() -> None:
    asked = campaign(policy="widest-gap", models=("ash", "birch", "cedar"))
    with pytest.raises(InputError, match=r"names 'cedar', which has no Elo, and policy 'widest-gap' needs one"):
        select_models(asked, THERE)
    assert select_models(campaign(policy="random", models=("ash", "cedar")), THERE).names == ("ash", "cedar")


@pytest.mark.parametrize(
    ("policy", "there", "found"), [("random", THERE[:1], 1), ("random", (), 0), ("widest-gap", THERE[1:3], 1)]
)
def test_fewer_than_two_models_are_refused(policy: str, there: tuple[StoredModel, ...], found: int) -> None:
    with pytest.raises(InputError, match=rf"needs two models.*there are {found}") as refused:
        select_models(campaign(policy=policy), there)
    assert ("Elo" in str(refused.value)) == (policy == "widest-gap")


# On what


def test_without_a_number_all_common_instructions_are_taken_in_order() -> None:
    answers = catalogue(MODELS, ("q3", "q1", "q2"))
    del answers.completions["birch", "q1"]  # type: ignore[attr-defined]  # a plain dict here
    chosen = designed(campaign(), answers, SelectedModels(MODELS, {}, (ExcludedModel("oak", "no Elo"),)))
    assert chosen.instructions == ("q2", "q3")
    assert [(one.model_a, one.model_b) for one in chosen.matchups] == list(combinations(MODELS, 2))
    assert (chosen.models, chosen.left_out) == (MODELS, (ExcludedModel("oak", "no Elo"),))


def test_instructions_are_drawn_with_the_seed_whatever_their_order() -> None:
    names = [f"q{n:02}" for n in range(30)]
    answers, reversed_ = catalogue(MODELS, names), catalogue(MODELS, names[::-1])

    def drawn(seed: int, among: Catalogue = answers) -> tuple[str, ...]:
        return designed(campaign(seed=seed, instructions=6), among).instructions

    assert drawn(1) == drawn(1) == drawn(1, reversed_)
    assert len(set(drawn(1))) == 6
    assert set(drawn(1)) <= set(names)
    assert len({drawn(seed) for seed in range(10)}) == 10


@pytest.mark.parametrize("module", [first_round_module, design_space, oversized_module])
def test_a_round_is_designed_by_what_was_read_alone(module: ModuleType) -> None:
    """What stands in the store is in `PlanInputs` and `Funds`: nothing is read a second time half way."""
    assert not {"plans", "frames", "importing", "Clock", "read_recordings"} & set(vars(module))
    functions = [value for value in vars(module).values() if isfunction(value)]
    assert not [one.__name__ for one in functions if "store" in one.__annotations__]


def test_random_matchups_follow_the_seed_of_the_campaign() -> None:
    models = [f"m{n}" for n in range(12)]
    answers = catalogue(models, NAMES)

    def chosen(seed: int) -> tuple[Matchup, ...]:
        return designed(campaign(seed=seed, policy="random", matchups=15), answers).matchups

    assert chosen(3) == chosen(3)
    assert chosen(3) != chosen(4)


def test_as_many_instructions_as_there_are_may_be_wanted_and_not_one_more() -> None:
    assert set(designed(campaign(instructions=3), ANSWERS).instructions) == set(NAMES)
    with pytest.raises(InputError, match=r"instructions = 4, and those answered by all 3 models are only 3"):
        designed(campaign(instructions=4), ANSWERS)


def test_models_without_an_instruction_in_common_are_refused() -> None:
    answers = Catalogue(
        ANSWERS.models,
        ANSWERS.instructions,
        {(model, name): ANSWERS.completions[model, name] for model, name in zip(MODELS, NAMES, strict=True)},
    )
    with pytest.raises(InputError, match=r"3 models have no instruction in common"):
        designed(campaign(), answers)


# In which trials


def test_every_battle_is_planned_in_both_orders_for_every_judge_and_repeat() -> None:
    judges = numbered(judge("j"), judge("k"), repeats=3)
    trials = expanded(CHOSEN, ANSWERS, judges)
    found = {(one.instruction, one.battle, one.respondent, one.repeat) for one in trials}
    assert found == {
        (ANSWERS.instructions[name][0], Battle(ANSWERS.models[a], ANSWERS.models[b], swapped, 50.0), one.number, repeat)
        for name in NAMES
        for a, b in combinations(MODELS, 2)
        for one in judges
        for swapped in (False, True)
        for repeat in (1, 2, 3)
    }
    assert len(trials) == len(found) == len({one.key for one in trials})


def test_the_trials_of_an_instruction_stand_together_and_all_its_battles_come_before_any_comes_again() -> None:
    trials = expanded(CHOSEN, ANSWERS, numbered(judge("j"), judge("k"), repeats=3))
    laps = [(one.instruction, one.repeat) for one in trials]
    assert list(dict.fromkeys(laps)) == [(ANSWERS.instructions[name][0], lap) for name in NAMES for lap in (1, 2, 3)]
    assert len(list(groupby(laps))) == len(NAMES) * 3


def test_a_trial_is_canonical_and_only_its_key_knows_the_order_shown() -> None:
    (who,) = numbered(judge("j"), repeats=2)
    trials = expanded(CHOSEN, ANSWERS, [who])
    names = {number: name for name, number in ANSWERS.models.items()}
    texts = {number: (pair, key) for pair, (number, key, _) in ANSWERS.completions.items()}
    instructions = dict(ANSWERS.instructions.values())
    for one in trials:
        assert one.battle is not None
        a, b = names[one.battle.model_a], names[one.battle.model_b]
        assert a < b
        (first, first_key), (second, second_key) = (texts[number] for number in one.shown)
        assert (first[0], second[0]) == ((b, a) if one.battle.swapped else (a, b))
        assert ANSWERS.instructions[first[1]][0] == ANSWERS.instructions[second[1]][0] == one.instruction
        shown = (first_key, second_key)
        assert one.key == trial_key(who.key, instructions[one.instruction], shown, one.repeat)
        assert (one.protocol, one.battle.gap) == (PROTOCOLS["two-stage"].number, 50.0)


def test_battles_with_equal_texts_are_left_out_and_counted_once_each() -> None:
    same = dict(ANSWERS.completions)
    for model in ("ash", "cedar"):
        number, key, _ = same[model, "q2"]
        same[model, "q2"] = Catalogued(number, key, -1)
    answers = replace(ANSWERS, completions=same)
    left_out = [0]
    trials = list(expand(CHOSEN, answers, numbered(judge("j"), judge("k"), repeats=2), left_out))
    assert left_out == [1]
    assert len(trials) == (9 - 1) * 2 * 2 * 2
    pair = (ANSWERS.models["ash"], ANSWERS.models["cedar"])
    q2 = ANSWERS.instructions["q2"][0]
    assert not any(one.instruction == q2 and (one.battle.model_a, one.battle.model_b) == pair for one in trials)


def test_the_plan_is_a_stream_that_looks_at_an_instruction_only_when_it_comes_to_it() -> None:
    first = {pair: row for pair, row in ANSWERS.completions.items() if pair[1] == "q1"}
    stream = expand(CHOSEN, replace(ANSWERS, completions=first), numbered(judge("j")), [0])
    assert iter(stream) is stream
    assert len(list(islice(stream, 6))) == 6
    with pytest.raises(KeyError):
        next(stream)


def test_the_same_design_makes_the_same_trials_in_the_same_order() -> None:
    judges = numbered(judge("j"), judge("k"), repeats=2)
    assert expanded(CHOSEN, ANSWERS, judges) == expanded(CHOSEN, ANSWERS, judges)


@pytest.mark.parametrize("policy", ["all-pairs", "random"])
def test_neither_the_order_of_judges_nor_that_of_models_changes_the_set_of_trials(policy: str) -> None:
    models = [f"m{n}" for n in range(8)]
    names = [f"q{n}" for n in range(9)]

    def keys(judges: Sequence[JudgeSettings], order: Sequence[str]) -> set[bytes]:
        asked = campaign(*judges, policy=policy, matchups=12, instructions=4, models=tuple(order))
        there = [StoredModel(model, None, 9) for model in order]
        full = catalogue(models, names)
        answers = replace(full, completions={(m, i): full.completions[m, i] for i in names for m in order})
        design = designed(asked, answers, select_models(asked, there))
        return {one.key for one in expanded(design, answers, numbered(*judges))}

    judges = [judge("j"), judge("k"), judge("l")]
    assert keys(judges, models) == keys(judges[::-1], models[::-1])


# With a store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    questions = [Instruction(name, (f"What of {name}?",)) for name in NAMES]
    answers = [Completion(m, i, f"{m} says this of {i}") for m in MODELS for i in NAMES]
    ratings = [Rating(model, 1000.0 + 100 * n) for n, model in enumerate(MODELS)]
    with open_with(tmp_path / "c.duckdb", questions, answers, ratings) as opened:
        yield opened


def in_plan(store: Store, planned: PlannedCampaign) -> list[bytes]:
    """Trial keys of the plan in force, in its order."""
    rows = store.connection.execute(
        "select t.trial_key from missing m join trial t on t.id = m.trial where m.campaign = ? "
        "order by m.round, m.ordinal",
        [planned.id],
    ).fetchall()
    return [bytes(key) for (key,) in rows]


def count(store: Store, table: str) -> int:
    return int(store.connection.execute(f"select count(*) from {table}").fetchall()[0][0])


def test_a_campaign_is_planned_into_its_store(store: Store) -> None:
    asked = campaign(judge("j"), judge("k"), repeats=2)
    planned = plan_campaign(store, asked)
    assert {one.name for one in planned.judges.values()} == {"j", "k"}
    assert (planned.trials, planned.equal_texts) == (3 * 3 * 2 * 2 * 2, 0)
    assert len(set(in_plan(store, planned))) == planned.trials
    left = trial_states.pending_trials(store, planned.id)
    assert {one: len(left.of(one).trials) for one in planned.judges} == dict.fromkeys(
        planned.judges, planned.trials // 2
    )


def test_what_a_plan_shows_is_what_its_keys_were_made_of(store: Store) -> None:
    planned = plan_campaign(store, campaign(models=("ash", "birch")))
    trials = trial_states.pending_trials(store, planned.id).trials
    for one in trial_states.load(store, trials):
        a, b = sorted(one.shown, key=lambda side: side.model)
        assert (a.model, b.model) == ("ash", "birch")
        assert a.text == f"ash says this of {one.instruction.id}"
        keys = store.connection.execute(
            "select instruction_key from instruction where id = ?", [one.instruction_number]
        ).fetchall()
        sides = [completion_key(side.model, bytes(keys[0][0]), 1, "", side.text) for side in (a, b)]
        (_, who) = respondents(campaign())[0]
        shown = sides[::-1] if one.swapped else sides
        assert one.key == trial_key(respondent_key(who), bytes(keys[0][0]), shown, one.repeat)


def test_planning_twice_adds_nothing(store: Store) -> None:
    asked = campaign(judge("j"), judge("k"))
    first = plan_campaign(store, asked)
    before = {table: count(store, table) for table in ("trial", "plan", "round", "campaign", "respondent", "prompt")}
    keys = in_plan(store, first)
    again = plan_campaign(store, asked)
    assert (again.id, again.trials, again.judges) == (first.id, first.trials, first.judges)
    assert {table: count(store, table) for table in before} == before
    assert in_plan(store, again) == keys


def test_a_changed_plan_puts_a_new_round_in_force_and_keeps_the_trials_that_it_shares(store: Store) -> None:
    first = plan_campaign(store, campaign(judge("j")))
    keys = in_plan(store, first)
    changed = plan_campaign(store, campaign(judge("j"), judge("k"), models=("ash", "cedar")))
    assert changed.id == first.id
    assert changed.trials == frames.progress(store, first.id).planned == 3 * 2 * 2
    assert len(set(in_plan(store, changed)) & set(keys)) == 3 * 2
    assert (count(store, "round"), count(store, "trial")) == (2, len(keys) + 3 * 2)
    back = plan_campaign(store, campaign(judge("j")))
    assert in_plan(store, back) == keys
    assert (count(store, "round"), count(store, "trial")) == (3, len(keys) + 3 * 2)


def test_one_file_makes_one_plan_in_any_store(store: Store, tmp_path: Path) -> None:
    asked = campaign(judge("k"), judge("j"), policy="random", matchups=2, instructions=2, repeats=2)
    with open_store(tmp_path / "other.duckdb") as other:
        importing.add(other, [Instruction(name, (f"What of {name}?",)) for name in NAMES[::-1]])
        importing.add(other, [Completion(m, i, f"{m} says this of {i}") for i in NAMES for m in MODELS[::-1]])
        assert in_plan(other, plan_campaign(other, asked)) == in_plan(store, plan_campaign(store, asked))


def test_equal_texts_are_told_of_a_plan_made_earlier_too(store: Store) -> None:
    importing.add(store, [Instruction("q4", ("What of q4?",))])
    importing.add(store, [Completion(model, "q4", "No idea.") for model in MODELS])
    assert [plan_campaign(store, campaign()).equal_texts for _ in range(2)] == [3, 3]


def test_a_plan_that_is_refused_leaves_nothing_behind(store: Store) -> None:
    with pytest.raises(InputError):
        plan_campaign(store, campaign(instructions=4))
    assert {count(store, table) for table in ("campaign", "respondent", "trial", "plan", "round")} == {0}
