"""A campaign that was planned goes on as planned, whatever has come into its store or its folder since."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.parameters import slow_after
from venire.simulation.faults import Faults
from venire.simulation.server import JudgeServer

Venire = Callable[..., Any]
Write = Callable[..., Path]
Serve = Callable[..., AbstractContextManager[JudgeServer]]

pytestmark = pytest.mark.usefixtures("direct_judges")

SOME = "[budget]\ncalls = 40"
COMMAND = re.compile(r"venire (store release-unanswered \S+)")


@pytest.mark.slow
def test_new_models_in_the_store_do_not_stop_a_campaign_that_is_under_way(
    venire: Venire, write_campaign: Write, folder: Path
) -> None:
    path = write_campaign(more=SOME)
    assert venire("run", path, "--yes").code == 3
    before = venire("plan", path, "--json").json()
    (folder / "new.csv").write_text("instruction_id,instruction\nnew,What is new?\n", encoding="utf-8")
    (folder / "more.csv").write_text("model,instruction_id,completion\nx,new,a\ny,new,b\n", encoding="utf-8")
    store = folder / "small.duckdb"
    assert venire("import", "table", folder / "new.csv", "--kind", "instructions", "--store", store).code == 0
    assert venire("import", "table", folder / "more.csv", "--kind", "completions", "--store", store).code == 0
    after = venire("plan", path, "--json")
    assert after.code == 0, after.err
    assert after.json() == before
    assert venire("run", path, "--yes").code == 3


def test_what_is_shown_is_what_was_planned_and_a_changed_rating_is_refused(
    venire: Venire, write_campaign: Write, folder: Path
) -> None:
    path = write_campaign(more=SOME)
    assert venire("run", path, "--yes").code == 3
    before = venire("plan", path, "--json").json()
    table = folder / "elo.csv"
    table.write_text(table.read_text(encoding="utf-8").replace("1240", "1900"), encoding="utf-8")
    refused = venire("run", path, "--yes")
    assert refused.code == 2
    assert "'strong'" in refused.err
    assert "1900" in refused.err
    assert "--amend" in refused.err
    amended = venire("plan", path, "--amend", "--json")
    assert amended.code == 0, amended.err
    assert amended.json()["matchups"] == before["matchups"], "the plan in force is shown, not one that might be made"


def test_another_version_of_a_prompt_is_not_mixed_into_a_campaign(venire: Venire, write_campaign: Write) -> None:
    path = write_campaign(more=SOME)
    assert venire("run", path, "--yes").code == 3
    with duckdb.connect(str(path.with_suffix(".duckdb"))) as connection:
        connection.execute("update respondent set respondent_key = md5(respondent_key::varchar)::blob")
    refused = venire("run", path, "--yes")
    assert refused.code == 2
    assert "other prompts" in refused.err


def test_the_demo_leaves_what_is_not_its_own(venire: Venire, write_campaign: Write, folder: Path) -> None:
    mine = write_campaign(name="campaign.toml")
    text = mine.read_text(encoding="utf-8")
    refused = venire("demo", "--folder", folder)
    assert refused.code == 2
    assert "--folder" in refused.err
    assert mine.read_text(encoding="utf-8") == text
    assert not (folder / "campaign.duckdb").exists()


def test_a_profile_that_does_not_exist_is_refused_before_anything_is_made(
    venire: Venire, write_campaign: Write
) -> None:
    path = write_campaign(judges='[[judge]]\nmodel = "simulated/gpt-9@1"\n')
    refused = venire("plan", path)
    assert refused.code == 2
    assert "gpt-9" in refused.err
    assert not path.with_suffix(".duckdb").exists()


def test_bad_data_leaves_no_empty_store_behind(venire: Venire, write_campaign: Write, folder: Path) -> None:
    (folder / "completions.jsonl").unlink()
    path = write_campaign()
    assert venire("plan", path).code == 2
    assert sorted(file.name for file in folder.iterdir() if "duckdb" in file.name) == []


def test_a_finished_campaign_needs_no_key(
    venire: Venire, write_campaign: Write, serve: Serve, monkeypatch: Any
) -> None:
    with serve(require_key="right-key-0123456789") as server:
        judge = f'[[judge]]\nname = "j"\nmodel = "simulated/bard@1"\nbase_url = "{server.base_url}"\n'
        path = write_campaign(judges=f'{judge}key_variable = "VENIRE_TEST_KEY"\n', instructions=1)
        monkeypatch.setenv("VENIRE_TEST_KEY", "right-key-0123456789")
        assert venire("run", path, "--yes").code == 0
    monkeypatch.delenv("VENIRE_TEST_KEY")
    assert venire("run", path).code == 0


def test_the_board_of_a_store_has_the_seed_and_the_families_of_its_campaign(
    venire: Venire, write_campaign: Write
) -> None:
    path = write_campaign(judge='family = "house"')
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("[plan]", '[data.families]\nstrong = "house"\n[plan]'), encoding="utf-8")
    assert venire("run", path, "--yes").code == 0
    board = venire("rate", path.with_suffix(".duckdb"), "--json").json()
    assert board["diagnostics"]["bootstrap"]["seed"] == 5
    assert all(judge["own_family"] == 5 * 2 * 2 for judge in board["judges"])
    assert all(judge["matchups"] == 10 for judge in board["judges"])


@pytest.mark.slow
def test_a_budget_counts_calls_of_unknown_cost_across_runs(venire: Venire, write_campaign: Write, serve: Serve) -> None:
    """The danger: a call that was cut may have been billed; forgetting it at a resumption spends its money twice."""
    with serve(faults=Faults(cut=0.5)) as server:
        judge = f'[[judge]]\nname = "j"\nmodel = "simulated/bard@1"\nbase_url = "{server.base_url}"\n'
        path = write_campaign(
            judges=f"{judge}price = {{ input = 1.0, output = 1.0 }}\n", instructions=2, more="[budget]\nmoney = 0.15"
        )
        assert venire("run", path, "--yes").code == 3
        accounts = venire("status", path.with_suffix(".duckdb"), "--json").json()["campaigns"][0]["accounts"]
        assert accounts["unknown"] > 0
        assert accounts["nano"] <= 150_000_000
        stopped = venire("run", path, "--yes")
        assert stopped.code == 3
        again = venire("status", path.with_suffix(".duckdb"), "--json").json()["campaigns"][0]["accounts"]
        assert again["nano"] <= 150_000_000
        before = shutil.copy(path.with_suffix(".duckdb"), path.with_name("before.duckdb"))
        (command,) = COMMAND.findall(venire("status", path.with_suffix(".duckdb")).out)
        assert COMMAND.findall(stopped.err) == [command], "the end of the run names the same"
        assert "no longer counts as spent" in venire(*command.split()).out
        assert "nothing was done" in venire(*command.split()).out
        assert venire("run", path, "--yes").code in (0, 3)
        now = venire("status", path.with_suffix(".duckdb"), "--json").json()["campaigns"][0]["accounts"]
        assert now["answered"] > again["answered"]
        assert now["nano"] <= 150_000_000
        assert venire("store", "check", path.with_suffix(".duckdb"), "--full").code == 0
        assert venire("store", "merge", path.with_suffix(".duckdb"), before, "-o", path.with_name("m.duckdb")).code == 0
        merged = venire("status", path.with_name("m.duckdb"), "--json").json()["campaigns"][0]["accounts"]
        assert merged["calls"] == now["calls"], "a released call is the same call as before"


@pytest.mark.parametrize("limited", slow_after(1, True, False))
def test_tokens_set_aside_of_a_free_judge_are_said_where_a_budget_counts_tokens(
    venire: Venire, write_campaign: Write, serve: Serve, *, limited: bool
) -> None:
    """The danger: they were worth $0, so a token budget was used up by what nobody was shown how to free."""
    with serve(faults=Faults(cut=0.5)) as server:
        judge = f'[[judge]]\nname = "j"\nmodel = "simulated/bard@1"\nbase_url = "{server.base_url}"\n'
        more = "[budget]\ntokens = 30000" if limited else ""
        path = write_campaign(judges=f"{judge}free = true\n", instructions=1, more=more)
        ended = venire("run", path, "--yes")
    status = venire("status", path.with_suffix(".duckdb"))
    commands = COMMAND.findall(status.out)
    assert COMMAND.findall(ended.err) == commands
    assert len(commands) == limited
    if limited:
        assert re.search(r"as spent at [\d,]+ tokens, set aside", status.out)
        assert re.search(r"[\d,]+ tokens set aside for .* no longer count", venire(*commands[0].split()).out)


def test_a_store_behind_a_link_is_the_same_store(venire: Venire, judged: Write, folder: Path) -> None:
    path = judged()
    os.symlink(path.with_suffix(".duckdb"), folder / "link.duckdb")
    assert json.loads(venire("rate", folder / "link.duckdb", "--json").out)["models"]
    assert not [file for file in folder.iterdir() if file.name.startswith("link.duckdb.")]


def test_a_store_compacted_into_small_blocks_goes_on_as_any_other(
    venire: Venire, write_campaign: Write, settle: Callable[..., Any]
) -> None:
    path = write_campaign(more=SOME)
    settle(path)
    assert venire("store", "compact", path).code == 0
    path.write_text(path.read_text(encoding="utf-8").replace(SOME, ""), encoding="utf-8")
    settle(path, amend=True)
    (state,) = venire("status", path, "--json").json()["campaigns"]
    assert (state["progress"]["settled"], state["progress"]["missing"]) == (120, 0)
    assert venire("store", "check", path, "--full").code == 0
