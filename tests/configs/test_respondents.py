"""Judges with texts of their own, and contestants: what a campaign file may say of them, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from venire.arena.budgets import BudgetSettings
from venire.arena.campaigns import CampaignSettings
from venire.arena.records import GENERATE

JUDGE = """
[[judge]]
name = "j"
model = "simulated/gpt-4-0613@1"
"""
CONTESTANT = """
[[contestant]]
name = "ash"
model = "simulated/claude-v1@1"
"""


def test_options_of_protocols_reach_the_judge(load: Callable[[str], CampaignSettings]) -> None:
    (judge,) = load(JUDGE + 'protocol = "binary"\nlogprobs = true\nsystem = "Be strict."').judges
    assert (judge.protocol, judge.options["logprobs"], judge.options["system"]) == ("binary", "1", "Be strict.")
    (judge,) = load(JUDGE + 'protocol = "listwise"\nbest = 2').judges
    assert judge.options["best"] == "2"


def test_a_table_of_options_reaches_the_judge_and_holds_none_of_its_own_keys(
    load: Callable[[str], CampaignSettings], refusal: Callable[[str], str]
) -> None:
    head = '[[judge]]\nmodel = "simulated/bard@1"\n'
    assert load(head + 'options = { points = "5" }\n').judges[0].options["points"] == "5"
    assert load(head).settings == load(head + "options = {}\n").settings
    for name, says in (("system", "give system beside"), ('"prompt.reasons"', "no protocol can have")):
        assert says in refusal(f'{head}options = {{ {name} = "5" }}\n')


def test_a_file_that_names_none_of_them_has_the_settings_that_it_had_before(
    load: Callable[[str], CampaignSettings],
) -> None:
    plain = load(JUDGE)
    assert plain.judges[0].options == {"max_tokens": "800", "repair": "1", "temperature": "0"}
    (settings,) = json.loads(plain.settings)["judge"]
    assert not {"system", "examples", "prompts", "logprobs", "best"} & settings.keys()
    assert "generation" not in json.loads(plain.settings)["budget"]


def test_texts_of_ones_own_are_read_with_the_file_and_a_change_in_them_is_a_change_of_settings(
    load: Callable[[str], CampaignSettings], tmp_path: Path
) -> None:
    own, examples = tmp_path / "own.txt", tmp_path / "shots.jsonl"
    own.write_text("Which? $instruction $first $second", encoding="utf-8")
    examples.write_text(
        '{"user": "one", "assistant": "1"}\n\n{"user": "two\u2028", "assistant": "2"}\n', encoding="utf-8"
    )
    text = JUDGE + 'prompts = { reasons = "own.txt" }\nexamples = "shots.jsonl"'
    before = load(text)
    assert before.judges[0].options["prompt.reasons"] == own.read_text(encoding="utf-8")
    assert [one["user"] for one in json.loads(before.judges[0].options["examples"])] == ["one", "two\u2028"]
    own.rename(tmp_path / "moved.txt")
    assert load(text.replace("own.txt", "moved.txt")).settings == before.settings
    (tmp_path / "moved.txt").write_text("What? $instruction $first $second", encoding="utf-8")
    assert load(text.replace("own.txt", "moved.txt")).settings != before.settings


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("", "shots.jsonl"),
        ("not json", "line 1 is no JSON"),
        ('{"user": "one"}', "line 1 is not an object of two texts, user and assistant"),
        ('{"user": "one", "assistant": ""}', "line 1 is not an object of two texts"),
        ('{"user": "one", "assistant": 1}', "line 1 is not an object of two texts"),
    ],
)
def test_examples_that_are_none_are_named_by_their_line(
    refusal: Callable[[str], str], tmp_path: Path, line: str, wrong: str
) -> None:
    if line:
        (tmp_path / "shots.jsonl").write_text(line, encoding="utf-8")
    said = refusal(JUDGE + 'examples = "shots.jsonl"')
    assert "judge[1].examples" in said
    assert wrong in said


def test_a_prompt_file_that_is_not_there_is_named_with_its_key(refusal: Callable[[str], str]) -> None:
    said = refusal(JUDGE + 'prompts = { reasons = "none.txt" }')
    assert "judge[1].prompts.reasons: cannot read none.txt: No such file" in said


def test_contestants_are_asked_by_their_own_protocol_as_often_as_samples_say(
    load: Callable[[str], CampaignSettings],
) -> None:
    found = load(CONTESTANT + "samples = 3\nelo = 1100\n[budget.generation]\ncalls = 9")
    (one,) = found.contestants
    assert (one.name, one.protocol, one.repeats, one.elo) == ("ash", GENERATE, 3, 1100.0)
    assert one.options == {"max_tokens": "2048"}, "the temperature is left to the model"
    assert (found.judges, found.generation) == ((), BudgetSettings(calls=9))


def test_contestants_and_judges_change_nothing_for_each_other(load: Callable[[str], CampaignSettings]) -> None:
    both, other = load(JUDGE + CONTESTANT), load(JUDGE + CONTESTANT + "samples = 2")
    assert both.settings == load(JUDGE).settings == other.settings
    assert both.generation_settings != other.generation_settings
    assert load(JUDGE + "repair = false" + CONTESTANT).generation_settings == both.generation_settings


def test_a_judge_and_a_contestant_of_one_name_are_a_peer(load: Callable[[str], CampaignSettings]) -> None:
    found = load(JUDGE + CONTESTANT.replace('"ash"', '"j"'))
    assert found.judges[0].name == found.contestants[0].name


def test_what_is_wrong_with_a_contestant_is_told_at_its_place(refusal: Callable[[str], str]) -> None:
    said = refusal(CONTESTANT + "samples = 0\n" + CONTESTANT + 'protocol = "direct"')
    assert 'contestant[1].samples (contestant "ash"): found 0' in said
    assert 'contestant[2].name (contestant "ash"): the name "ash" is taken by contestant[1]' in said
    assert 'contestant[2].protocol (contestant "ash"): unknown key' in said
