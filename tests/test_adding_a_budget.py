"""A unit of budgets is added to a copy of the product by its declaration alone, and holds wherever budgets do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from venire.configs.publishing import schema_text

ROOT = Path(__file__).resolve().parent.parent
UNIT = """\
    hours: int | None = _limit(
        BudgetUnit(
            since=6,
            shards=Shards.PART,
            template="# hours = 5            # of calls, one after the other",
            low=0,
            high=10**6,
            of="hours",
            scale=3600,
            noun="hours",
            number=lambda seconds: f"{seconds / 3600:,.1f}",
            precise=lambda seconds: f"{seconds / 3600:,.4f}",
        )
    )

"""
WALK = """
import json, sys
from fractions import Fraction
from pathlib import Path

import venire as vn
from venire.arena.budgets import Amount, BudgetSettings
from venire.arena.errors import InputError
from venire.configs.loading import load_campaign
from venire.configs.publishing import campaign_schema, resolved_text, template_text
from venire.orchestrator.costs.budget import BudgetAccount, BudgetView
from venire.orchestrator.planning.sharding import Shard, sharded
from venire.orchestrator.run.run_state import run_state
from venire.reports.numbers import of_budget

assert Path(vn.__file__).is_relative_to(Path.cwd()), vn.__file__
before, limited, wrong = (Path(name) for name in ("campaign.toml", "limited.toml", "wrong.toml"))


def refusal(path):
    try:
        vn.plan(path)
    except InputError as error:
        return str(error)


campaign = load_campaign(limited)
account = BudgetAccount("the budget", campaign.budget, Amount(1, 1, 1, 1800))
view = BudgetView([account])
view.reserve(Amount(1, 1, 1, 3600))
print(json.dumps({
    "schema": campaign_schema()["definitions"]["BudgetLimits"]["properties"]["hours"],
    "template": template_text(),
    "resolved": resolved_text(limited),
    "settings": load_campaign(before).settings,
    "changed": campaign.settings,
    "old store": refusal(before),
    "old store, limited": refusal(limited),
    "wrong": refusal(wrong),
    "shard": sharded(campaign, Shard(1, 4)).budget.hours,
    "texts": campaign.budget.texts(),
    "call": account.refusal(Amount(1, 1, 1, 3600 * 3)),
    "waits": view.may_fit_later(Amount(1, 1, 1, 3600 * 2)),
    "live": run_state([], [view], stopping=False)["budgets"],
    "page": of_budget(5400, "hours"),
    "left": campaign.budget.less(Amount(0, 0, 0, 3600)).hours,
    "stored": BudgetSettings.of_table(json.loads(campaign.settings)["budget"]).texts(),
}))
"""


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each road of a budget comes to in a copy of the product that has one of hours too."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "venire", folder / "venire")  # with what is compiled: only the changed module is anew
    for file in (ROOT / "examples" / "demo").glob("[cei]*.*"):
        shutil.copy(file, folder)
    budgets = folder / "venire" / "arena" / "budgets.py"
    text = budgets.read_text(encoding="utf-8")
    text = text.replace("    @staticmethod\n    def of_table", f"{UNIT}    @staticmethod\n    def of_table", 1)
    of_calls = '    """Of requests and replies together."""\n'
    budgets.write_text(text.replace(of_calls, f"{of_calls}    hours: int = 0\n", 1), encoding="utf-8")
    demo = 'store = "campaign.duckdb"\n' + (folder / "campaign.toml").read_text(encoding="utf-8")
    (folder / "limited.toml").write_text(demo.replace("[budget]", "[budget]\nhours = 2.50"), encoding="utf-8")
    (folder / "wrong.toml").write_text(demo.replace("[budget]", '[budget]\nhours = "2"'), encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run([sys.executable, "-c", WALK], capture_output=True, text=True, cwd=folder, env=env)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_schema_and_the_template_have_a_unit_that_is_declared(walked: dict[str, Any]) -> None:
    assert walked["schema"] == {
        "description": "a number of hours from 0 to 1000000, with at most 9 decimals",
        "type": "number",
    }
    assert "\n# hours = 5 " in walked["template"]
    assert "\nhours = 2.5\n" in walked["resolved"]
    assert "hours" not in json.loads(schema_text())["definitions"]["BudgetLimits"]["properties"]
    assert 'budget.hours: found "2"; accepted: a number of hours' in walked["wrong"]


def test_a_store_from_before_is_accepted_and_a_changed_limit_noticed(walked: dict[str, Any]) -> None:
    assert "hours" not in walked["settings"]
    assert json.loads(walked["changed"])["budget"]["hours"] == "2.5"
    assert walked["old store"] is None
    assert "has changed since" in walked["old store, limited"]


def test_a_shard_has_its_part_of_it(walked: dict[str, Any]) -> None:
    assert walked["shard"] == 2.5 * 3600 // 4


def test_calls_are_held_to_it(walked: dict[str, Any]) -> None:
    assert walked["call"] == (
        "the budget of 2.5000 hours does not cover the next call: 0.5000 used, 1.0000 reserved, up to 3.0000 needed"
    )
    assert walked["waits"]
    assert walked["left"] == 1.5 * 3600


def test_status_page_and_report_say_it(walked: dict[str, Any]) -> None:
    assert walked["texts"] == walked["stored"] == "5,000 calls and 2.5 hours"
    row = {"whose": "the budget", "unit": "hours", "limit": 9000, "used": 1800, "reserved": 3600, "left": 3600}
    assert row in walked["live"]
    assert walked["page"] == "1.5"
