"""Shards as processes of their own, some of them killed: the merged store is still that of one run."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.stores import rows_of
from venire.storage.store.journal import read_journal

SHARDS, KILLED = 8, (2, 5)
INSTRUCTIONS, MODELS = 500, 5
TRIALS = INSTRUCTIONS * (MODELS * (MODELS - 1)) * 2
"""All pairs in both orders, by two judges."""

ROWS = 1_000
"""A shard that has so many attempts and verdicts on disk is part-way: it will have some 6,000."""

CAMPAIGN = """\
name = "shards"
seed = 5

[data]
instructions = "instructions.jsonl"
completions = "completions.jsonl"
elo = "elo.csv"

[plan]
policy = "all-pairs"

[[judge]]
name = "gpt-4-0613"
model = "simulated/gpt-4-0613@1"
protocol = "binary"
concurrency = 32
price = { input = 2.0, output = 8.0 }

[[judge]]
name = "claude-3-opus"
model = "simulated/claude-3-opus@1"
protocol = "two-stage"
concurrency = 32
price = { input = 3.0, output = 15.0 }

[budget]
money = 1000.0
"""

ATTEMPTS = """
select t.trial_key, a.step, a.text, a.cost, a.input_tokens, a.output_tokens
  from attempt a join trial t on t.id = a.trial where a.fault = 0 order by all
"""
"""Every answered call with its reply and its price."""

VERDICTS = """
select t.trial_key, r.parser, v.status, v.rule, v.label, v.score, v.cost - coalesce(u.nano, 0)
  from verdict v join trial t on t.id = v.trial join reading r on r.id = v.reading
  left join (select trial, sum(coalesce(cost, reserved)) nano from attempt where fault <> 0 group by trial) u
    on u.trial = v.trial
  order by all
"""
"""Every verdict with what its answered calls cost."""


def write_campaign(folder: Path) -> Path:
    """A campaign of 20,000 trials of short texts."""
    models = [f"model-{n}" for n in range(MODELS)]
    elos = "".join(f"{model},{1000 + 60 * n}\n" for n, model in enumerate(models))
    (folder / "elo.csv").write_text(f"model,elo\n{elos}", encoding="utf-8")
    tables: dict[str, list[dict[str, str]]] = {"instructions": [], "completions": []}
    for question in (f"q{n:03}" for n in range(INSTRUCTIONS)):
        tables["instructions"].append({"instruction_id": question, "instruction": f"What of {question}?"})
        for n, model in enumerate(models):
            said = f"{model} says this of {question}. " * (n + 1)
            tables["completions"].append({"instruction_id": question, "model": model, "completion": said})
    for name, rows in tables.items():
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    path = folder / "campaign.toml"
    path.write_text(CAMPAIGN, encoding="utf-8")
    return path


def kill_part_way(shards: dict[int, subprocess.Popen[str]], stores: dict[int, Path]) -> dict[int, int]:
    """Kill each of these shards once its journal says that rows are on disk; returns the last commit that was then."""
    began: dict[int, int] = {}
    last: dict[int, int] = {}
    deadline = time.monotonic() + 120
    while len(last) < len(shards):
        assert time.monotonic() < deadline, "no shard got part-way"
        for number in sorted(shards.keys() - last.keys()):
            with suppress(subprocess.TimeoutExpired):
                raise AssertionError(f"shard {number} ended with {shards[number].wait(0.02)} before it was killed")
            left = read_journal(stores[number])
            if left is None or not left.running:
                continue
            if left.running - began.setdefault(number, left.running) >= ROWS:
                shards[number].send_signal(signal.SIGKILL)
                assert shards[number].wait(30) == -signal.SIGKILL
                found = read_journal(stores[number])
                assert found is not None
                last[number] = found.batch
    return last


def ended(process: subprocess.Popen[str]) -> str:
    """What a command said, which must have ended well."""
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err[-3000:]
    return err


def money(store: Path) -> tuple[int, int]:
    """What a store accounts for, and the part of calls without an answer on record (nano-dollars)."""
    lost = "(select coalesce(sum(coalesce(cost, reserved)), 0)::bigint from attempt where fault <> 0)"
    ((nano, unanswered),) = rows_of(store, f"select nano, {lost} from spend")
    return nano, unanswered


@pytest.mark.usefixtures("migrated_stores")  # whose tables are not the demo's
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_eight_shards_of_which_two_were_killed_are_one_run(
    venire: Callable[..., Any], start: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    path = write_campaign(tmp_path)
    command: Sequence[object] = ("-m", "venire", "run", path, "--yes")
    ended(start(*command))
    one = path.with_suffix(".duckdb").rename(tmp_path / "one.duckdb")
    numbers = range(1, SHARDS + 1)
    stores = {n: path.with_name(f"campaign.shard-{n}-of-{SHARDS}.duckdb") for n in numbers}
    shards = {n: start(*command, "--shard", f"{n}/{SHARDS}") for n in numbers}
    last = kill_part_way({n: shards[n] for n in KILLED}, stores)
    for n in KILLED:
        shards[n] = start(*command, "--shard", f"{n}/{SHARDS}")
    for n in numbers:
        ended(shards[n])
    for n in KILLED:
        ((before, after),) = rows_of(
            stores[n],
            f"select count(*) filter (where batch <= {last[n]}), count(*) filter (where batch > {last[n]}) "
            "from attempt where fault = 0",
        )
        assert min(before, after) > 100, "killed in the middle, and what was on disk then was kept"

    merged = tmp_path / "merged.duckdb"
    assert venire("store", "merge", *stores.values(), "-o", merged).code == 0
    checked = venire("store", "check", merged)
    assert checked.code == 0, checked.out
    rated = []
    for store in (one, merged):
        shutil.copy(store, same := tmp_path / "same.duckdb")
        rated.append(venire("rate", same, "--json").out)
    assert rated[0] == rated[1]

    assert len(rows_of(one, "select trial from verdict")) == TRIALS
    assert rows_of(one, ATTEMPTS) == rows_of(merged, ATTEMPTS)
    assert rows_of(one, VERDICTS) == rows_of(merged, VERDICTS)

    unanswered = {n: money(stores[n])[1] for n in numbers}
    assert {n for n, nano in unanswered.items() if nano} == set(KILLED)
    paid, aside = money(one)
    assert (paid > 0, aside) == (True, 0)
    assert money(merged) == (paid + sum(unanswered.values()), sum(unanswered.values()))
    assert money(merged)[0] == sum(money(store)[0] for store in stores.values())
