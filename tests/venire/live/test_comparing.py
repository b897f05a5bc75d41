"""Two judges, or two campaigns, side by side: what is said of them is what reports and the judges' page say."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path

import aiohttp
import pytest

from tests.venire.live.serving import BASE, ready, visit
from venire.arena.errors import InputError
from venire.live.fits import Fits
from venire.ratings.inference.options import Options
from venire.reports.board.source import VerdictSource
from venire.reports.documents.changes import split_section
from venire.reports.documents.side_by_side import comparison_document, read_for_comparison
from venire.storage.read import frames
from venire.storage.read.activity import pairwise_agreement
from venire.storage.read.trial_table import TrialFilter, TrialTable
from venire.storage.store.opening import open_unchanged


@pytest.fixture
def store(judged: Callable[..., Path]) -> Path:
    return judged(instructions=8).with_suffix(".duckdb")


@pytest.fixture(scope="module")
def fits() -> Iterator[Fits]:
    """Shared by the tests: a process takes a second to start."""
    found = Fits()
    yield found
    found.close()


def test_two_judges_differ_as_a_split_of_a_report_says_and_agree_as_their_page_says(store: Path) -> None:
    with open_unchanged(store) as opened:
        (campaign,) = frames.campaigns(opened)
        one, other = (judge.name for judge in frames.judges(opened, campaign.id))
        found = comparison_document(*read_for_comparison(opened, campaign, opened, campaign, one, "small/1", other))
        table = TrialTable(opened, campaign.id)
        table.refresh()
        (agreed,) = pairwise_agreement(table)
        disputed = table.page(TrialFilter(disagree=True), limit=1_000).rows
        battles = [(row["instruction"], row["model_a"], row["model_b"]) for row in found["disputed"]]
        trials = table.first_trials(battles)
    assert found["names"] == [one, other]
    split = split_section(VerdictSource((store,)), f"judge={one}", "bradley-terry", Options(seed=campaign.seed))
    assert found["differences"]["models"] == split["models"]
    assert any(row["change"] for row in split["models"])
    (beside,) = found["agreement"]
    assert (beside["judge"], beside["decided"]) == (one, agreed.battles)
    assert beside["agreement"] == pytest.approx(agreed.same / agreed.battles, abs=1e-6)
    assert {trials[battle] for battle in battles[: found["opposite"]]} == {row.battle for row in disputed} != set()


def test_two_stores_that_are_served_are_held_side_by_side(store: Path, tmp_path: Path, fits: Fits) -> None:
    copied = tmp_path / "copied.duckdb"
    shutil.copy(store, copied)
    seen: dict[str, str] = {}

    async def act(session: aiohttp.ClientSession) -> None:
        for query in (
            "",
            "?judge=&with=copied/1&other=",
            "?judge=&with=small/1&other=",
            "?with=none/1",
            "?judge=nobody",
        ):
            status, text = await ready(session, f"{BASE}/compare{query}")
            assert status == 200
            seen[query] = re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", text.partition("<main")[2])))
            if query == "":
                trial = re.search(r'href="([^"]*/battle/\d+)#', text)
                assert trial is not None
                assert (await ready(session, trial[1]))[0] == 200

    visit(store, copied, fits=fits, act=act)
    assert "claude-3-opus beside gpt-4-0613" in seen[""]
    assert "Where they disagree most" in seen[""]
    both = seen["?judge=&with=copied/1&other="]
    assert "small beside small (copied/1)" in both
    assert "None is rated differently beyond chance." in both
    assert "they prefer different sides (0%)" in both
    assert "Choose two judges" in seen["?judge=&with=small/1&other="]
    assert "no such store" in seen["?with=none/1"]
    assert "no verdict is of these judges" in seen["?judge=nobody"]


def test_campaigns_without_a_model_in_common_are_not_compared(store: Path) -> None:
    with open_unchanged(store) as opened:
        (campaign,) = frames.campaigns(opened)
        verdicts, *_ = read_for_comparison(opened, campaign, opened, campaign, "", "small/1", "")
    battles = verdicts.battles
    others = replace(verdicts, battles=replace(battles, models=tuple(f"another {name}" for name in battles.models)))
    with pytest.raises(InputError, match="here and there have fewer than two models in common"):
        comparison_document(verdicts, others, "here", "there")
