"""A campaign in shards: each asks its part into a store of its own, and the merged store is that of one run."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.stores import rows_of
from venire.arena.errors import InputError
from venire.configs.loading import load_campaign
from venire.orchestrator.planning.sharding import Shard, sharded
from venire.session import Session
from venire.storage.store.opening import open_store

Venire = Callable[..., Any]
Write = Callable[..., Path]

pytestmark = pytest.mark.usefixtures("direct_judges")

BUDGET = "[budget]\ncalls = 1000\nmoney = 3.00"


def shard_store(path: Path, number: int, of: int) -> Path:
    return path.with_name(f"{path.stem}.shard-{number}-of-{of}.duckdb")


def asked(store: Path) -> set[bytes]:
    """Keys of the trials that a store has attempts of."""
    rows = rows_of(store, "select distinct trial_key from trial t join attempt a on a.trial = t.id")
    return {key for (key,) in rows}


def test_merged_shards_rate_as_one_run_does_to_the_byte(venire: Venire, write_campaign: Write, tmp_path: Path) -> None:
    path = write_campaign(instructions=1, more=BUDGET)
    assert venire("run", path, "--yes").code == 0
    one = path.with_suffix(".duckdb").rename(tmp_path / "one.duckdb")
    stores = [shard_store(path, number, 2) for number in (1, 2)]
    for number in (1, 2):
        done = venire("run", path, "--yes", "--shard", f"{number}/2")
        assert done.code == 0, done.err
        assert f"shard {number} of 2" in done.err
        assert "venire store merge" in done.err
    parts = [asked(store) for store in stores]
    assert not parts[0] & parts[1]
    assert all(parts)
    assert parts[0] | parts[1] == asked(one)
    whole = tmp_path / "whole.duckdb"
    assert venire("store", "merge", *stores, "-o", whole).code == 0
    assert venire("store", "check", whole).code == 0
    rated = []
    for store in (one, whole):
        shutil.copy(store, same := tmp_path / "same.duckdb")
        rated.append(venire("rate", same, "--json").out)
    assert rated[0] == rated[1]


def test_the_orders_of_a_battle_stay_together(write_campaign: Write) -> None:
    campaign = load_campaign(write_campaign())
    of_battle: dict[tuple[Any, ...], set[int]] = {}
    for number in (1, 2, 3, 4):
        with Session(campaign, shard=Shard(number, 4)) as session:
            only = session.planned.only
            assert only is not None
            for trial, *battle in session.store.connection.execute(
                "select id, respondent, instruction, model_a, model_b, repeat from trial"
            ).fetchall():
                if trial in only:
                    of_battle.setdefault(tuple(battle), set()).add(number)
    assert Counter(len(numbers) for numbers in of_battle.values()) == {1: len(of_battle)}


def test_a_shard_that_is_through_takes_what_another_has_left(venire: Venire, write_campaign: Write) -> None:
    path = write_campaign(more="[budget]\ncalls = 60")
    assert venire("run", path, "--yes", "--shard", "2/2").code == 3, "half of 60 calls"
    path = write_campaign()
    before = asked(shard_store(path, 2, 2))
    with open_store(shard_store(path, 2, 2), create=False) as store:
        settled = {key for (key,) in store.read("settled_keys")}
    assert settled < before or settled == before
    done = venire("run", path, "--yes", "--shard", "1/2", "--take", "2/2", "--amend")
    assert done.code == 0, done.err
    assert "what shard 2 has left" in done.err
    taken = asked(shard_store(path, 1, 2))
    assert not taken & settled, "nothing that is settled there is paid for again"
    with Session(load_campaign(path)) as session:
        planned = {key for (key,) in session.store.connection.execute("select trial_key from trial").fetchall()}
    assert taken | settled == planned


def test_a_shard_whose_store_is_in_use_cannot_be_taken_over(venire: Venire, write_campaign: Write) -> None:
    path = write_campaign()
    with Session(load_campaign(path), shard=Shard(2, 2)):
        refused = venire("run", path, "--yes", "--shard", "1/2", "--take", "2/2")
    assert refused.code == 2
    assert "shard-2-of-2" in refused.err


def test_budgets_and_limits_are_divided(write_campaign: Write) -> None:
    campaign = load_campaign(write_campaign(more=BUDGET))
    part = sharded(campaign, Shard(3, 8))
    assert (part.budget.calls, part.budget.money) == (125, 375_000_000)
    assert [judge.lane.share for judge in part.judges] == [judge.lane.share / 8 for judge in campaign.judges]
    more = sharded(campaign, Shard(3, 8), parts=2)
    assert (more.budget.calls, more.budget.money) == (250, 750_000_000)
    assert sum(sharded(campaign, Shard(n, 7)).budget.calls or 0 for n in range(1, 8)) <= 1000


@pytest.mark.parametrize("text", ["3", "0/8", "9/8", "a/b", "1/0", "", "-1/8"])
def test_a_shard_that_there_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="such as 3/8"):
        Shard.read(text)


@pytest.mark.parametrize("taken", [["3/8"], ["5/8", "5/8"]])
def test_a_shard_is_taken_once_and_not_by_itself(taken: list[str]) -> None:
    with pytest.raises(InputError, match="taken once"):
        Shard.read("3/8", taken)
    with pytest.raises(InputError, match="in 8 shards"):
        Shard.read("3/8", ["5/9"])


def test_a_campaign_in_rounds_is_not_divided(venire: Venire, write_campaign: Write) -> None:
    path = write_campaign()
    path.write_text(path.read_text().replace('"all-pairs"', '"information"\nbattles = 20'))
    refused = venire("run", path, "--yes", "--shard", "1/2")
    assert refused.code == 2
    assert "run it whole" in refused.err
    assert venire("run", path, "--yes", "--take", "1/2").code == 2
