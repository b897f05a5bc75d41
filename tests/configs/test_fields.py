"""Each key of a campaign file is declared once: since when there is it, who compares it, and what shards have of it."""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import fields
from fractions import Fraction
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from venire.arena import campaigns
from venire.arena.budgets import Shards
from venire.configs import schema
from venire.configs.fields import Compared, LaneKey, Shapes, Table, compared_keys, key, whole
from venire.configs.loading import campaign_of
from venire.configs.schema import BudgetLimits, Campaign, Judge
from venire.orchestrator.planning.sharding import Shard, sharded

FILE = """
[plan]
policy = "all-pairs"
[[judge]]
model = "simulated/gpt-4-0613@1"
[[contestant]]
model = "simulated/writer@1"
[[editor]]
name = "echo"
model = "simulated/writer@1"
[budget]
calls = 10
money = 0.5
tokens = 100
"""

DIGESTS = ["f140c36b4a0abde2", "21d25789c977dd7b", "7c050cc7d66d6c46"]
"""Of the settings of `FILE`, as stores have them."""


class Limits(BudgetLimits):
    """Those of a budget, and one that the next edition brings."""

    hours: int | None = whole(1, 100, since=6, default=None, shards=Shards.PART)


TABLES = [one for one in vars(schema).values() if isinstance(one, type) and issubclass(one, Table) and one is not Table]


@pytest.mark.parametrize(("known", "what"), [(Field(default=None), "undeclared"), (key(None, since=6), "undivided")])
def test_a_key_without_its_edition_or_a_rule_for_shards_is_refused_when_it_is_declared(known: Any, what: str) -> None:
    with pytest.raises(TypeError, match=rf"{what}\.hours: .*since when.*shards"):
        type(what, (BudgetLimits,), {"__annotations__": {"hours": int | None}, "hours": known, "__module__": __name__})


@pytest.mark.parametrize("table", TABLES)
def test_the_signature_of_a_table_is_what_a_user_writes(table: type[Table]) -> None:
    shown = inspect.signature(table)
    first = sorted(table.declared.values(), key=lambda about: not about.is_first)
    assert list(shown.parameters) == [about.python for about in first]
    assert not re.search("Annotated|Said|FieldInfo|Decimal|<", str(shown))


def test_the_signature_of_a_judge_reads_plainly() -> None:
    shown = str(inspect.signature(Judge))
    for words in ("model: str,", "concurrency: int = 16", "timeout: float = 120", "base_url: str | None = None"):
        assert words in shown


def test_the_keys_of_a_lane_and_those_that_shape_rounds_are_found_by_their_declarations() -> None:
    limits = Judge.keys_of(LaneKey.LIMIT)
    assert {one.name for one in fields(campaigns.Limits)} <= set(limits)
    assert Judge.keys_of(LaneKey.RETRY, LaneKey.LIMIT) == (*Judge.keys_of(LaneKey.RETRY), *limits)
    shaping = {name: about.shapes for name, about in schema.PhaseTable.declared.items()}
    assert {name for name in shaping if shaping[name] is not Shapes.PHASE} == {"battles", "round"}
    assert Judge.declared["recorded"].shapes is Shapes.ALL
    assert Judge.declared["concurrency"].shapes is Shapes.NONE


def test_settings_that_stores_have_are_written_to_the_byte_as_they_were() -> None:
    """They differ where a key is given the edition of a neighbour: every stored campaign would then look changed."""
    campaign = campaign_of(Path("c.toml"), FILE)
    found = [campaign.settings, campaign.generation_settings, campaign.editing_settings]
    assert [blake2b(text.encode(), digest_size=8).hexdigest() for text in found] == DIGESTS


@pytest.mark.parametrize("edition", [0, 1, 5])
def test_a_younger_key_is_absent_until_it_says_something_and_compared_then(edition: int) -> None:
    before = compared_keys(BudgetLimits(calls=3, tokens=5), Compared.JUDGING, edition)
    assert compared_keys(Limits(calls=3, tokens=5), Compared.JUDGING, edition) == before
    assert compared_keys(Limits(calls=3, tokens=5, hours=2), Compared.JUDGING, edition) == before | {"hours": 2}
    assert compared_keys(Limits(calls=3, tokens=5), Compared.JUDGING, 6) == before | {"hours": None}


def test_what_came_with_a_younger_table_is_written_with_it() -> None:
    written = json.loads(
        campaign_of(
            Path("c.toml"),
            FILE.replace("[budget]", "[plan.stop]\nbattles = 3\n[budget]").replace("all-pairs", "balanced"),
        ).settings
    )
    assert written["plan"]["stop"].keys() == {"battles", "half_width", "top", "ranks", "indifference", "level"}


def test_how_calls_travel_is_part_of_no_settings() -> None:
    by_batch = FILE.replace("@1", '@1"\ntransport = "batch"\nwave_size = 5\nbase_url = "http://127.0.0.1:1').replace(
        "127.0.0.1:1", "127.0.0.1:1/v1"
    )
    live = FILE.replace("@1", '@1"\nbase_url = "http://127.0.0.1:1/v1')
    one, other = (campaign_of(Path("c.toml"), text) for text in (by_batch, live))
    assert (one.settings, one.generation_settings, one.editing_settings) == (
        other.settings,
        other.generation_settings,
        other.editing_settings,
    )


def test_shards_have_their_part_of_every_key_that_says_so() -> None:
    campaign = campaign_of(Path("c.toml"), FILE)
    shard = sharded(campaign, Shard(1, 3))
    whole, part = campaign.judges[0].lane, shard.judges[0].lane
    divided = {name for table in TABLES for name, one in table.declared.items() if one.shards is Shards.PART}
    seen = {one.name for one in fields(campaign.budget) if one.name in divided} | {"share"}
    assert seen == divided, "a key that is divided is of a table that `sharded` divides"
    for name in seen - {"share"}:
        assert getattr(shard.budget, name) == int(getattr(campaign.budget, name) * Fraction(1, 3))
    assert part.share == whole.share / 3
    assert part.limits == whole.limits
    assert {one.shards for one in Judge.declared.values()} == {Shards.PART, Shards.WHOLE}
    assert Campaign.declared["seed"].shards is Shards.WHOLE
