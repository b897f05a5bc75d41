"""Recorded judgments go the way of all others: planned, run, stopped, read again and rated, and nobody is asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.stores import rows_of
from venire.orchestrator.recording.ending import Ending

Settle = Callable[..., Ending]

TEXTS = {"a": "The Volga.", "b": "The Rhine.", "c": "The Volga, I think."}
CAMPAIGN = """
name = "on-record"
seed = 3
[data]
instructions = "instructions.csv"
completions = "completions.csv"
[plan]
policy = "{policy}"
{plan}
[[judge]]
model = "gpt"
provider = "replay"
recorded = "judgments.csv"
{judge}
{more}
"""
HEAD = "judge,instruction_id,first,second,repeat,verdict,raw_output"
ROWS = (
    "gpt,1,a,b,1,first,[[A]]",
    "gpt,1,b,a,1,second,[[B]]",
    "gpt,1,a,c,1,tie,both",
    "gpt,2,a,b,1,second,[[B]]",
    "gpt,2,b,a,1,,unclear",
    "gpt,2,a,b,2,first,[[A]]",
    "gpt,2,a,elsewhere,1,first,[[A]]",
    "gpt,9,a,b,1,first,[[A]]",
    "people,1,a,b,1,tie,",
)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes a campaign of three models, two instructions and a table of recorded judgments."""

    def make(
        *, policy: str = "recorded", plan: str = "", judge: str = "", more: str = "", rows: tuple[str, ...] = ROWS
    ) -> Path:
        lines = {
            "instructions": ["instruction_id,instruction", "1,Longest river?", "2,Second longest?"],
            "completions": ["model,instruction_id,completion"]
            + [f'{model},{n},"{text} ({n})"' for model, text in TEXTS.items() for n in (1, 2)],
            "judgments": [HEAD, *rows],
        }
        for name, content in lines.items():
            (tmp_path / f"{name}.csv").write_text("\n".join(content) + "\n", encoding="utf-8")
        path = tmp_path / "on-record.toml"
        path.write_text(CAMPAIGN.format(policy=policy, plan=plan, judge=judge, more=more), encoding="utf-8")
        return path

    return make


def rows(file: Path, query: str) -> list[list[Any]]:
    return [list(row) for row in rows_of(file.with_suffix(".duckdb"), query)]


def test_what_is_on_record_is_the_plan_and_what_is_left_out_is_counted(venire: Any, write: Any) -> None:
    file = write()
    told = venire("plan", file, "--json").json()
    assert told["recorded"] == [{"judge": "gpt", "rows": 8, "trials": 5, "missing": 0, "one_order": 1}]
    assert (told["trials"], len(told["matchups"]), told["models"]) == (5, 2, ["a", "b", "c"])
    seen = venire("plan", file).out
    assert "5 judgments on record" in seen
    assert "3 models = 5 trials" in seen
    assert "gpt: 3 of 8 judgments" in seen
    assert "left out" in seen
    assert "1 battle" in seen
    assert "one order only" in seen


def test_what_a_plan_wants_and_nobody_judged_is_left_out_and_told(venire: Any, write: Any) -> None:
    told = venire("plan", write(policy="all-pairs", plan="repeats = 2"), "--json").json()
    assert told["trials"] == 6
    assert told["recorded"] == [{"judge": "gpt", "rows": 8, "trials": 6, "missing": 18, "one_order": 2}]


def test_recorded_verdicts_are_verdicts_at_no_cost_and_a_missing_one_is_no_tie(
    venire: Any, settle: Settle, write: Any
) -> None:
    file = write()
    assert settle(file) is Ending.COMPLETE
    found = rows(
        file,
        "select instruction_id, model_a, model_b, swapped, status, winner, origin from battle order by all",
    )
    assert found == [
        ["1", "a", "b", False, "ok", "model_a", "recorded"],
        ["1", "a", "b", True, "ok", "model_a", "recorded"],
        ["1", "a", "c", False, "ok", "tie", "recorded"],
        ["2", "a", "b", False, "ok", "model_b", "recorded"],
        ["2", "a", "b", True, "unreadable", None, "recorded"],
    ]
    paid = rows(file, "select count(*), sum(cost), sum(input_tokens) from attempt")
    assert paid == [[5, 0, 0]]
    assert venire("rate", file.with_suffix(".duckdb"), "--json").json()["verdicts"] == "recorded"
    assert "0 flipped" in venire("rate", file.with_suffix(".duckdb")).out
    assert "2 seen in one order" in venire("rate", file.with_suffix(".duckdb")).out
    assert "nothing was asked" in venire("run", file, "--yes").err


def test_recorded_replies_are_read_in_the_dialect_and_again(venire: Any, settle: Settle, write: Any) -> None:
    file = write(judge='dialect = "mt-bench"')
    assert settle(file) is Ending.COMPLETE
    found = rows(file, "select text, status, rule from reply join settled using (trial) order by text")
    assert found == [
        ["[[A]]", 0, "mt-bench:brackets"],
        ["[[B]]", 0, "mt-bench:brackets"],
        ["[[B]]", 0, "mt-bench:brackets"],
        ["both", 1, ""],
        ["unclear", 1, ""],
    ]
    again = venire("reparse", file.with_suffix(".duckdb"), "--json")
    assert again.code == 0
    assert venire("store", "check", file.with_suffix(".duckdb")).code == 0


def test_a_replay_goes_on_where_a_budget_stopped_it(venire: Any, write: Any) -> None:
    file = write(more="[budget]\ncalls = 2")
    assert venire("run", file, "--yes").code == 3
    file.write_text(file.read_text().replace("calls = 2", "calls = 5"))
    assert venire("run", file, "--yes", "--amend").code == 0
    assert rows(file, "select count(*), count(distinct trial) from attempt") == [[5, 5]]


def test_another_table_is_another_judge_and_not_mixed_in(venire: Any, settle: Settle, write: Any) -> None:
    file = write()
    assert settle(file) is Ending.COMPLETE
    write(rows=("gpt,1,a,b,1,second,", "gpt,1,b,a,1,first,", "gpt,1,b,c,1,first,"))
    refused = venire("run", file, "--yes")
    assert refused.code == 2
    assert "a file that it names" in refused.err
    assert settle(file, amend=True) is Ending.COMPLETE
    found = rows(file, "select model_a, model_b, winner from battle order by all")
    assert found == [["a", "b", "model_b"], ["a", "b", "model_b"], ["b", "c", "model_a"]]


def test_protocols_of_one_step_read_recorded_replies_too(venire: Any, write: Any) -> None:
    file = write(policy="all-pairs", judge='protocol = "direct"\nmap = { model = "first" }')
    lines = ["judge,instruction_id,first,raw_output", "gpt,1,a,A", "gpt,1,b,B", "gpt,2,c,not sure"]
    file.with_name("judgments.csv").write_text("\n".join(lines), encoding="utf-8")
    ran = venire("run", file, "--yes")
    assert ran.code == 0, ran.err
    found = rows(file, "select model, status, grade from grade order by all")
    assert found == [["a", "ok", "yes"], ["b", "ok", "no"], ["c", "unreadable", None]]


def test_one_judge_read_in_two_dialects_is_two_judges_of_one_lane(settle: Settle, write: Any) -> None:
    again = 'name = "raw"\nmodel = "gpt"\nprovider = "replay"\nrecorded = "judgments.csv"\ndialect = "mt-bench"'
    file = write(more=f"[[judge]]\n{again}")
    assert settle(file) is Ending.COMPLETE
    found = rows(file, "select judge, count(*) filter (where status = 'ok') from battle group by all order by all")
    assert found == [["gpt", 4], ["raw", 3]]


def test_a_recorded_list_is_shown_in_its_own_order(settle: Settle, write: Any) -> None:
    file = write(policy="recorded", judge='protocol = "listwise"')
    row = {"judge": "gpt", "instruction_id": 1, "models": ["c", "a", "b"], "raw_output": "B > A > C"}
    file.with_name("judgments.jsonl").write_text(json.dumps(row), encoding="utf-8")
    file.write_text(file.read_text().replace("judgments.csv", "judgments.jsonl"))
    assert settle(file) is Ending.COMPLETE
    found = rows(file, "select model, shown_at, rank from ballot order by rank")
    assert found == [["a", 2, 1], ["c", 1, 2], ["b", 3, 3]]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"judge": 'protocol = "two-stage"'}, "protocol 'two-stage' takes 2 calls, and one reply is on record"),
        ({"judge": 'base_url = "http://127.0.0.1:1/v1"'}, 'provider "replay" asks nobody: leave it out'),
        ({"judge": 'dialect = "none"'}, "dialect: 'none' is not a dialect: word,"),
        ({"rows": (*ROWS, ROWS[0])}, "two judgments of instruction '1', a, b, repeat 1"),
        ({"rows": ("gpt,9,a,b,1,tie,",)}, "none of the 1 judgments on record"),
        ({"rows": ("gpt,1,a,x,1,tie,",)}, "none of the 1 judgments on record"),
        ({"plan": "matchups = 3"}, 'policy "recorded" takes every pair that is on record'),
        ({"more": '[[judge]]\nmodel = "simulated/gpt-4-0613@1"'}, "a judge of this file is asked"),
        ({"more": '[[judge]]\nmodel = "simulated/x@1"\nprotocol = "recorded"'}, "nobody can be asked by it"),
        ({"more": '[[judge]]\nmodel = "people"\nprovider = "replay"'}, "missing; accepted: the path of a table"),
        ({"more": '[[judge]]\nmodel = "x"\nprovider = "replay"\nrecorded = "n.csv"'}, "cannot read n.csv"),
    ],
)
def test_what_cannot_be_replayed_is_refused_in_a_sentence(
    change: dict[str, Any], told: str, venire: Any, write: Any
) -> None:
    refused = venire("plan", write(**change))
    assert refused.code == 2
    assert told in refused.err


def test_a_run_of_judges_on_record_and_asked_ends_well_without_a_board(venire: Any, write: Any) -> None:
    simulated = '[[judge]]\nmodel = "simulated/gpt-4-0613@1"\nprotocol = "binary"'
    file = write(policy="all-pairs", more=simulated)
    file.with_name("elo.csv").write_text("model,elo\na,1000\nb,1100\nc,1050\n", encoding="utf-8")
    file.write_text(file.read_text().replace("[plan]", 'elo = "elo.csv"\n[plan]'))
    ran = venire("run", file, "--yes")
    assert ran.code == 0, ran.err
    assert "no board" in ran.out
    assert "(recorded, simulated)" in ran.out
    assert rows(file, "select origin, count(*) from battle group by all order by all") == [
        ["recorded", 5],
        ["simulated", 12],
    ]


VICUNA = {"gpt-4": 0.14375, "claude-v1": 0.31, "gpt-3.5-turbo": 0.08375, "bard": 0.5925, "vicuna-13b": 0.5925}
ALONE = {"gpt-4": 1276.07, "claude-v1": 1146.46, "vicuna-13b": 886.24, "gpt-3.5-turbo": 881.77, "bard": 809.46}
POOLED = {"gpt-4": 1159.93, "claude-v1": 1099.63, "vicuna-13b": 932.96, "gpt-3.5-turbo": 921.69, "bard": 885.79}


def replay(folder: Path, data: Path, table: str, judges: list[str], *, data_map: str = "", judge: str = "") -> Path:
    names = {"instructions": "prompts" if "llmfao" in str(data) else "instructions", "completions": "completions"}
    head = "\n".join(f"{kind} = {json.dumps(str(data / name))}.parquet".replace('".parquet', '.parquet"')
                     for kind, name in names.items())  # fmt: skip
    each = "\n".join(
        f'[[judge]]\nmodel = "{one}"\nprovider = "replay"\nrecorded = {json.dumps(str(data / table))}\n{judge}'
        for one in judges
    )
    path = folder / f"{len(judges)}.toml"
    path.write_text(f'[data]\n{head}\n{data_map}\n[plan]\npolicy = "recorded"\n{each}', encoding="utf-8")
    return path


def ratings(venire: Any, file: Path) -> dict[str, float]:
    board = venire("rate", file.with_suffix(".duckdb"), "--bootstrap", 0, "--json").json()
    return {one["model"]: one["elo"] for one in board["models"]}


@pytest.mark.slow
def test_the_peers_of_80_questions_have_their_published_flips_and_ratings(
    venire: Any, settle: Settle, tmp_path: Path, shared_data: Path
) -> None:
    data = shared_data / "vicuna80_peers"
    file = replay(tmp_path, data, "judgments.parquet", list(VICUNA))
    assert settle(file) is Ending.COMPLETE
    told = venire("status", file.with_suffix(".duckdb"), "--json").json()["campaigns"][0]
    assert {one["judge"]: one["flip_rate"] for one in told["judged"]} == pytest.approx(VICUNA, abs=1e-9)
    assert ratings(venire, file) == pytest.approx(POOLED, abs=0.05)
    alone = replay(tmp_path, data, "judgments.parquet", ["gpt-4"])
    assert venire("run", alone, "--yes").code == 0
    assert ratings(venire, alone) == pytest.approx(ALONE, abs=0.05)


@pytest.mark.slow
def test_a_crowd_is_124_judges_with_its_published_ratings(
    venire: Any, settle: Settle, tmp_path: Path, shared_data: Path
) -> None:
    data = shared_data / "llmfao"
    query = f"select distinct annotator from '{data / 'comparisons.parquet'}' where annotator_kind = 'human'"
    people = sorted(name for (name,) in duckdb.execute(query).fetchall())
    assert len(people) == 124
    data_map = (
        '[data.map]\ninstructions = { instruction_id = "id", instruction = "text" }\n'
        'completions = { instruction_id = "prompt_id" }'
    )
    judge = 'map = { judge = "annotator", instruction_id = "prompt_id" }'
    file = replay(tmp_path, data, "comparisons.parquet", people, data_map=data_map, judge=judge)
    assert settle(file) is Ending.COMPLETE
    found = ratings(venire, file)
    assert len(found) == 59
    asserted = {"GPT 4": 1172.13, "Platypus-2 Instruct (70B)": 1112.45, "command": 1110.17, "Dolly v2 (3B)": 845.66}
    assert {name: found[name] for name in asserted} == pytest.approx(asserted, abs=0.05)
