"""A key is pinned for good, changes with whatever could change the answer, and with nothing else.

A key that moves makes users pay again for what they have; a key that stays when it should move hands them the
answer to another question.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

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
    TokenPrice,
)
from venire.arena.errors import InputError
from venire.arena.keys import (
    completion_key,
    fence,
    instruction_key,
    prompt_digest,
    respondent_key,
    text_digest,
    trial_key,
)
from venire.arena.records import Completion, Instruction, Origin, Rating, Respondent
from venire.judges import PROTOCOLS
from venire.orchestrator.planning.plan import plan_campaign
from venire.orchestrator.planning.respondents import respondents
from venire.storage.plans import trial_states
from venire.storage.store.opening import open_store
from venire.storage.transfer import importing

TURNS = ("Name three rivers of Europe.", "Which is the longest? — bitte kurz")
OPTIONS = {"temperature": "0.0", "max_tokens": "512", "repair": "1"}
JUDGE = Respondent(
    "simulated/gpt@7",
    "two-stage",
    Origin.SIMULATED,
    (("max_tokens", "512"), ("temperature", "0.0")),
    (prompt_digest("Compare $first and $second."),),
)
INSTRUCTION = instruction_key(TURNS)
FIRST = completion_key("model-a", INSTRUCTION, 1, "", "The Volga.")
SECOND = completion_key("model-b", INSTRUCTION, 2, "echo", "Rhine, Danube, $5")
LANE = LaneSettings((RouteSettings("openai", "https://one.example/v1", "ONE_KEY", "gpt"),))

PINNED = {
    "instruction": (INSTRUCTION, "231990629d0e376da29c20bff02c08c1"),
    "completion": (FIRST, "7665326ddd93776c123b7c24cb06eec4"),
    "edited completion": (SECOND, "4dbd44a7beedc8e92fc8a6f4c49433dd"),
    "prompt": (JUDGE.prompts[0], "c7ac5b93f22a42d68cfa8163a5747571"),
    "respondent": (respondent_key(JUDGE), "a698980b541dac680e025daadf4463ab"),
    "plain respondent": (respondent_key(Respondent("m", "two-stage", Origin.REAL)), "ab5c2add3a30ee9d65b2f5d4d7c1e8c7"),
    "trial": (
        trial_key(respondent_key(JUDGE), INSTRUCTION, (FIRST, SECOND), 1),
        "82d97737f179dfdb104bd53b30015d3f",
    ),
    "swapped trial": (
        trial_key(respondent_key(JUDGE), INSTRUCTION, (SECOND, FIRST), 1),
        "a536484becff8601537d48664d77e8ca",
    ),
    "text": (text_digest("naïve 'text'"), "61bc2ebc7416797c4e9871b07c970fe7"),
}
"""The digests were computed apart from `venire.arena.keys`, with hashlib alone."""

words = st.text(max_size=8)
digests = st.binary(min_size=16, max_size=16)


def campaign(*judges: JudgeSettings, root: Path = Path()) -> CampaignSettings:
    return CampaignSettings(
        "c",
        1,
        root / "c.toml",
        root / "c.duckdb",
        DataSettings(),
        PlanSettings((PhaseSettings("random", matchups=1),)),
        judges,
        BudgetSettings(),
        "",
        "{}",
    )


def judge(name: str, model: str = "gpt", options: Mapping[str, str] = OPTIONS) -> JudgeSettings:
    return JudgeSettings(name, model, "two-stage", options, LANE)


def keys_of(settings: JudgeSettings) -> bytes:
    ((_, found),) = respondents(campaign(settings))
    return respondent_key(found)


@pytest.mark.parametrize("name", PINNED)
def test_keys_are_pinned(name: str) -> None:
    key, pinned = PINNED[name]
    assert key.hex() == pinned
    assert len(key) == 16


def test_the_fence_is_pinned() -> None:
    assert fence("The Volga.", b"0123456789abcdef") == "3eff6f6cd883b6cd"


def test_the_prompts_of_two_stage_are_pinned() -> None:
    entry = PROTOCOLS["two-stage"]
    assert dict(zip(entry.prompts, (digest.hex() for digest in entry.digests()), strict=True)) == {
        "reasons": "c6e54fc2da45181f66f867f793868346",
        "verdict": "60f28a3976f9925c42ba67b058aa43f3",
        "repair": "0a1ac7f3017009442fbbd00135f89947",
    }


def test_every_part_of_a_completion_is_part_of_its_key() -> None:
    other = instruction_key(("Another",))
    found = {
        completion_key("m", INSTRUCTION, 1, "", "text"),
        completion_key("n", INSTRUCTION, 1, "", "text"),
        completion_key("m", other, 1, "", "text"),
        completion_key("m", INSTRUCTION, 2, "", "text"),
        completion_key("m", INSTRUCTION, 1, "echo", "text"),
        completion_key("m", INSTRUCTION, 1, "", "text "),
    }
    assert len(found) == 6


def test_every_part_of_a_respondent_is_part_of_its_key() -> None:
    changed = (
        replace(JUDGE, model="simulated/gpt@8"),
        replace(JUDGE, protocol="criteria"),
        replace(JUDGE, origin=Origin.RECORDED),
        replace(JUDGE, options=(("max_tokens", "512"),)),
        replace(JUDGE, options=(("max_tokens", "513"), ("temperature", "0.0"))),
        replace(JUDGE, options=(("max_token", "512"), ("temperature", "0.0"))),
        replace(JUDGE, prompts=()),
        replace(JUDGE, prompts=(prompt_digest("Compare $second and $first."),)),
        replace(JUDGE, prompts=JUDGE.prompts * 2),
    )
    assert len({respondent_key(one) for one in (JUDGE, *changed)}) == len(changed) + 1


def test_every_part_of_a_trial_is_part_of_its_key() -> None:
    mine = respondent_key(JUDGE)
    theirs = respondent_key(replace(JUDGE, model="other"))
    found = {
        trial_key(mine, INSTRUCTION, (FIRST, SECOND), 1),
        trial_key(theirs, INSTRUCTION, (FIRST, SECOND), 1),
        trial_key(mine, instruction_key(("Another",)), (FIRST, SECOND), 1),
        trial_key(mine, INSTRUCTION, (SECOND, FIRST), 1),
        trial_key(mine, INSTRUCTION, (FIRST,), 1),
        trial_key(mine, INSTRUCTION, (FIRST, SECOND, FIRST), 1),
        trial_key(mine, INSTRUCTION, (FIRST, SECOND), 2),
    }
    assert len(found) == 7


@pytest.mark.parametrize(
    ("model", "origin"),
    [
        ("simulated/gpt@7", Origin.SIMULATED),
        ("simulated", Origin.REAL),
        ("simulated-gpt", Origin.REAL),
        ("vendor/simulated/gpt@7", Origin.REAL),
        ("gpt", Origin.REAL),
    ],
)
def test_the_origin_comes_from_the_model_name_and_is_part_of_the_key(model: str, origin: Origin) -> None:
    assert Origin.of_model(model) is origin
    ((_, found),) = respondents(campaign(judge("j", model)))
    assert found.origin is origin
    assert len({respondent_key(replace(found, origin=other)) for other in Origin}) == len(Origin)


@given(st.lists(words, max_size=4), st.lists(words, max_size=4))
def test_other_turns_have_another_key(one: list[str], other: list[str]) -> None:
    assert (instruction_key(one) == instruction_key(other)) == (one == other)


def test_turns_cannot_be_split_again() -> None:
    splits = (("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), ("", "abc"), ("a", "b", "c"), ())
    assert len({instruction_key(turns) for turns in splits}) == len(splits)


@given(st.text(alphabet="ab1", min_size=3, max_size=6), st.data())
def test_the_parts_of_a_completion_cannot_be_split_again(joined: str, data: st.DataObject) -> None:
    def split() -> tuple[str, str, str]:
        i, j = sorted(data.draw(st.tuples(st.integers(0, len(joined)), st.integers(0, len(joined)))))
        return joined[:i], joined[i:j], joined[j:]

    one, other = split(), split()
    assume(one != other)
    first, second = (completion_key(model, INSTRUCTION, 1, variant, text) for model, variant, text in (one, other))
    assert first != second


@given(st.text(alphabet="ab2", min_size=4, max_size=6), st.data())
def test_the_parts_of_a_respondent_cannot_be_split_again(joined: str, data: st.DataObject) -> None:
    def split() -> Respondent:
        i, j, k = sorted(data.draw(st.tuples(*[st.integers(0, len(joined))] * 3)))
        return Respondent(joined[:i], joined[i:j], Origin.REAL, ((joined[j:k], joined[k:]),))

    one, other = split(), split()
    assume(one != other)
    assert respondent_key(one) != respondent_key(other)


def test_options_and_prompts_cannot_stand_for_each_other() -> None:
    shapes = (
        Respondent("m", "p", Origin.REAL, (("a", "b"), ("c", "d"))),
        Respondent("m", "p", Origin.REAL, (("a", "b"),), (b"c", b"d")),
        Respondent("m", "p", Origin.REAL, (), (b"a", b"b", b"c", b"d")),
    )
    assert len({respondent_key(one) for one in shapes}) == len(shapes)


@given(digests, digests, digests, digests, st.integers(1, 99))
def test_the_order_shown_is_part_of_the_key(judge: bytes, asked: bytes, a: bytes, b: bytes, repeat: int) -> None:
    assume(a != b)
    assert trial_key(judge, asked, (a, b), repeat) != trial_key(judge, asked, (b, a), repeat)


@given(words)
def test_kinds_never_meet(text: str) -> None:
    assert len({instruction_key((text,)), prompt_digest(text), text_digest(text)}) == 3


def test_kinds_with_the_same_parts_never_meet() -> None:
    parts = [b"m", INSTRUCTION, b"1", b"v", b"text"]
    as_completion = completion_key("m", INSTRUCTION, 1, "v", "text")
    as_trial = trial_key(parts[0], parts[1], parts[3:], 1)
    as_instruction = instruction_key(("m", "1", "two-stage", "0"))
    as_respondent = respondent_key(Respondent("m", "two-stage", Origin.REAL))
    assert as_completion != as_trial
    assert as_instruction != as_respondent


def test_thousands_of_trials_have_as_many_keys() -> None:
    judges = [
        respondent_key(Respondent(model, "two-stage", Origin.of_model(model), (("max_tokens", tokens),)))
        for model, tokens in product(("gpt", "simulated/gpt@1", "simulated/gpt@11"), ("1", "11"))
    ]
    asked = [instruction_key((f"{n}",)) for n in range(10)]
    found = [
        trial_key(judge, one, (completion_key(a, one, 1, "", "x"), completion_key(b, one, 1, "", "x")), repeat)
        for judge, one, (a, b), repeat in product(judges, asked, product("abcdefg", "abcdefg"), (1, 2))
    ]
    assert len(set(found)) == len(found) == 5_880


@given(words, words)
def test_a_fence_is_sixteen_hexadecimal_digits_of_text_and_constant(one: str, other: str) -> None:
    mine = fence(one, b"store one")
    assert len(mine) == 16
    assert set(mine) <= set(string.hexdigits.lower())
    assert (mine == fence(other, b"store one")) == (one == other)
    assert mine != fence(one, b"store two")


routes = st.builds(
    RouteSettings,
    provider=st.sampled_from(["openai", "anthropic"]),
    base_url=st.none() | st.just("https://two.example"),
    key_variable=st.none() | st.sampled_from(["A_KEY", "B_KEY"]),
    model=words,
    rank=st.integers(0, 2),
)
lanes = st.builds(
    LaneSettings,
    st.lists(routes, min_size=1, max_size=3).map(tuple),
    st.builds(Limits, requests_per_minute=st.none() | st.integers(1, 99)),
    concurrency=st.integers(1, 99),
    timeout=st.floats(1, 99),
    max_attempts=st.integers(1, 9),
)


@given(
    words, lanes, st.none() | st.just(TokenPrice(1, 2)), st.booleans(), st.none() | st.just(1200.0), st.none() | words
)
def test_what_a_judge_is_called_costs_and_runs_on_is_not_part_of_its_key(
    name: str, lane: LaneSettings, price: TokenPrice | None, free: bool, elo: float | None, family: str | None
) -> None:
    plain = judge("j")
    dressed = JudgeSettings(name, plain.model, plain.protocol, plain.options, lane, price, free, elo, family)
    assert keys_of(dressed) == keys_of(plain)


@given(st.permutations(list(OPTIONS)))
def test_options_in_another_order_have_the_same_key(order: list[str]) -> None:
    assert keys_of(judge("j", options={name: OPTIONS[name] for name in order})) == keys_of(judge("j"))


@pytest.mark.parametrize("name", OPTIONS)
def test_each_option_of_a_judge_is_part_of_its_key(name: str) -> None:
    without = {option: value for option, value in OPTIONS.items() if option != name}
    other = {**OPTIONS, name: "7"}
    assert len({keys_of(judge("j", options=options)) for options in (OPTIONS, without, other)}) == 3


def test_a_judge_carries_the_digests_of_its_prompts() -> None:
    ((_, found),) = respondents(campaign(judge("j")))
    assert found.prompts == PROTOCOLS["two-stage"].digests()


def test_two_judges_with_one_key_are_refused_by_name() -> None:
    same = replace(judge("second"), options=dict(reversed(OPTIONS.items())), price=TokenPrice(1, 1))
    with pytest.raises(InputError, match="'first' and 'second' are the same"):
        respondents(campaign(judge("first"), same))


def planned(folder: Path, records: Iterable[Instruction], one: JudgeSettings) -> Mapping[bytes, tuple[str, ...]]:
    """The fences of each trial of a small campaign in a new store, by the trial's key."""
    folder.mkdir()
    asked = list(records)
    with open_store(folder / "c.duckdb") as store:
        importing.add(store, asked)
        importing.add(
            store,
            [Completion(model, known.id, f"{model}: {known.turns}") for model in ("a", "b") for known in asked],
        )
        importing.add(store, [Rating("a", 1000.0), Rating("b", 1100.0)])
        made = plan_campaign(store, campaign(one, root=folder))
        left = trial_states.pending_trials(store, made.id)
        return {trial.key: trial.fences for trial in trial_states.load(store, left.trials)}


@given(
    ids=st.lists(st.text(alphabet="xyz1", min_size=1, max_size=5), min_size=2, max_size=2, unique=True),
    category=words,
    reference=st.none() | words,
)
@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_labels_of_instructions_and_the_constant_of_a_store_are_not_part_of_a_trial(
    tmp_path_factory: pytest.TempPathFactory, ids: list[str], category: str, reference: str | None
) -> None:
    folder = tmp_path_factory.mktemp("stores")
    texts = (TURNS, ("Say hello.",))
    plain = [Instruction(f"{n}", turns) for n, turns in enumerate(texts)]
    labelled = [Instruction(name, turns, reference, category) for name, turns in zip(ids, texts, strict=True)]
    one = planned(folder / "one", plain, judge("j"))
    other = planned(folder / "other", labelled, judge("another name"))
    assert one.keys() == other.keys()
    assert len(one) == 4
    assert not {mark for marks in one.values() for mark in marks} & {m for marks in other.values() for m in marks}
