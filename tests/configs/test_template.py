"""The file that a newcomer starts from."""

from __future__ import annotations

import shutil
from importlib.resources import as_file, files
from pathlib import Path
from typing import get_args

import pytest

from venire.arena.budgets import BudgetSettings
from venire.arena.campaigns import CampaignSettings, Limits, StopSettings, TokenPrice
from venire.arena.choices import TableKind
from venire.arena.records import Completion, Instruction, Rating
from venire.configs.loading import load_campaign
from venire.configs.publishing import template_text
from venire.storage.transfer.formats.tables import read


def started(folder: Path) -> CampaignSettings:
    """The template with its example tables, copied as a newcomer gets them."""
    with as_file(files("venire.configs")) as configs:
        (folder / "campaign.toml").write_text(template_text(), encoding="utf-8")
        for table in (configs / "example").iterdir():
            shutil.copy(table, folder)
    return load_campaign(folder / "campaign.toml")


def test_the_template_is_a_campaign_of_two_priced_judges_within_a_budget(tmp_path: Path) -> None:
    campaign = started(tmp_path)
    assert [judge.model for judge in campaign.judges] == ["gpt-4o-mini", "gpt-4.1-mini"]
    assert [judge.price for judge in campaign.judges] == [
        TokenPrice(150_000_000, 600_000_000),
        TokenPrice(400_000_000, 1_600_000_000),
    ]
    assert {judge.lane.routes[0].key_variable for judge in campaign.judges} == {"OPENAI_API_KEY"}
    assert (campaign.budget.calls, campaign.budget.money) == (2000, 1_000_000_000)


def test_the_templates_example_tables_are_read(tmp_path: Path) -> None:
    data = started(tmp_path).data
    found = {}
    for kind in get_args(TableKind):
        path = getattr(data, kind)
        assert path is not None
        found[kind] = list(read(path, kind))
    instructions = {row.id for row in found["instructions"] if isinstance(row, Instruction)}
    models = {row.model for row in found["elo"] if isinstance(row, Rating)}
    answered = {(row.model, row.instruction) for row in found["completions"] if isinstance(row, Completion)}
    assert (len(instructions), len(models)) == (6, 3)
    assert answered == {(model, instruction) for model in models for instruction in instructions}


def test_the_template_asks_all_pairs_equally_often(tmp_path: Path) -> None:
    plan = started(tmp_path).plan
    assert (plan.phases[0].policy, plan.phases[0].battles, plan.stop) == ("balanced", 200, StopSettings())


@pytest.mark.parametrize(("place", "policy", "number"), [(0, "information", "battles"), (1, "widest-gap", "matchups")])
def test_the_templates_other_plans_can_take_the_place_of_the_first(
    tmp_path: Path, place: int, policy: str, number: str
) -> None:
    text = template_text()
    before, plan = text.split("\n[plan]\n", 1)
    others = "\n".join(line.removeprefix("#: ") for line in plan.splitlines() if line.startswith("#: "))
    other = others.split("[plan]\n")[1:][place]
    (tmp_path / "c.toml").write_text(
        f"{before}\n[plan]\n{other}\n[[judge]]{plan.split('[[judge]]', 2)[2]}", encoding="utf-8"
    )
    phase = load_campaign(tmp_path / "c.toml").plan.phases[0]
    assert phase.policy == policy
    assert getattr(phase, number)


def test_what_the_template_comments_out_can_be_switched_on(tmp_path: Path) -> None:
    text = template_text()
    lines = []
    for line in text.splitlines():
        bare = line.removeprefix("# ")
        is_setting = line.startswith("# ") and (" = " in bare or bare.startswith("["))
        lines.append(bare if is_setting else line)
    (tmp_path / "examples.jsonl").write_text('{"user": "2 + 2?", "assistant": "A"}\n', encoding="utf-8")
    (tmp_path / "my_reasons.txt").write_text("Why? $instruction $first $second", encoding="utf-8")
    (tmp_path / "my_edit.txt").write_text("Longer: $instruction $answer", encoding="utf-8")
    (tmp_path / "all.toml").write_text("\n".join(lines), encoding="utf-8")
    campaign = load_campaign(tmp_path / "all.toml")
    assert [judge.name for judge in campaign.judges] == ["gpt-4o-mini", "gpt-4.1-mini", "local", "llama"]
    limited, several = campaign.judges[0].lane, campaign.judges[3].lane
    assert limited.limits == Limits(500, 200_000, 150_000, 50_000, 10_000)
    assert (limited.share, limited.max_elapsed, limited.patience) == (0.5, 21_600, 900)
    assert [one.key_variable for one in several.routes] == ["FIRST_KEY", "SECOND_KEY", "OTHER_KEY"]
    assert [one.rank for one in several.routes] == [0, 0, 1]
    assert several.routes[2].price == TokenPrice(800_000_000, 900_000_000)
    assert campaign.plan.instructions == 20
    assert campaign.plan.stop == StopSettings(half_width=25.0, top=3, ranks=True)
    assert campaign.data.maps == {"elo": {"elo": "arena_elo"}}
    assert campaign.data.families == {"cedar-1": "cedar"}
    assert campaign.budget.tokens == 2_000_000
    assert campaign.judge_budgets == {"gpt-4o-mini": BudgetSettings(money=400_000_000)}
    assert campaign.model_budgets == {"gpt-4.1-mini": BudgetSettings(calls=300)}
    assert campaign.strict
    assert set(campaign.judges[0].options) >= {"system", "examples", "prompt.reasons", "logprobs", "best"}
    (contestant,) = campaign.contestants
    assert (contestant.name, contestant.model, contestant.repeats, contestant.elo) == ("birch", "my-model", 2, 1000.0)
    assert (contestant.options["temperature"], contestant.options["max_tokens"]) == ("0.7", "2048")
    (editor,) = campaign.editors
    assert (editor.name, editor.protocol, editor.options["prompt.edit"]) == (
        "echo",
        "edit",
        "Longer: $instruction $answer",
    )
    assert campaign.plan.variants == ("echo",)
    assert campaign.generation == BudgetSettings(money=200_000_000)
