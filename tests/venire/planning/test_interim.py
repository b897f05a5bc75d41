"""Looks are shown in whole figures at every width, and told as JSON without a loss."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import pytest
from rich.console import Console

from tests.ratings.simulated import campaign
from venire.arena.battles import Statistics
from venire.arena.campaigns import StopSettings
from venire.arena.planning import InterimAnalysis, InterimRating
from venire.configs.loading import load_campaign
from venire.feedback import RatingFeedback
from venire.live.client import Owner
from venire.ratings.data.judgments import select_battles
from venire.render.interim import format_interim, show_interim
from venire.render.status import show_run
from venire.session import Session
from venire.storage.plans.rounds import analysis_of, interim_documents, rounds_document, stop_rules

Write = Callable[..., Path]


def analyses(count: int) -> list[tuple[int, InterimAnalysis]]:
    """So many looks at growing parts of one campaign, and one model that is never judged."""
    table = campaign(1, instructions=60)
    steerer = RatingFeedback((*table.models, "never[b]\x1b"), StopSettings(top=2))
    parts = [select_battles(table, table.instruction < 60 * (number + 1) // count) for number in range(count)]
    return [(number, steerer.analyse(part, 2_500_000 * number)) for number, part in enumerate(parts, start=1)]


def shown(found: list[tuple[int, InterimAnalysis]], width: int = 100) -> str:
    screen = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False)
    show_interim(screen, found, judges=2, verdicts="simulated")
    text = screen.file.getvalue()
    assert isinstance(text, str)
    return text


def test_no_look_shows_nothing() -> None:
    assert shown([]) == ""
    assert interim_documents([]) == []


@pytest.mark.parametrize("width", [40, 80, 130])
def test_the_last_look_has_both_intervals_of_every_model_at_every_width(width: int) -> None:
    found = analyses(3)
    text = shown(found, width)
    assert "Known after round 3" in text
    for one in found[-1][1].models[:-1]:
        assert one.low is not None
        assert one.high is not None
        assert {f"{one.low:.0f}", f"{one.high:.0f}"} <= set(text.split())
    assert "\x1b" not in text
    assert "starved" in text
    assert all(len(line) <= width for line in text.splitlines())


def test_a_long_history_is_shown_in_ten_lines_with_first_and_last() -> None:
    text = shown(analyses(30))
    assert "Looks, 10 of 30" in text
    history = text[text.index("Looks") : text.index("Known")].splitlines()
    assert len(history[: history.index(next(one for one in history if one.startswith("half width:")))]) == 12
    assert history[2].split()[0] == "1"
    assert history[11].split()[0] == "30"


def test_json_holds_all_that_a_look_says() -> None:
    found = analyses(3)
    told = json.loads(json.dumps(interim_documents(found), allow_nan=False))
    assert [one["round"] for one in told] == [1, 2, 3]
    assert told[-1]["models"][0]["low_any"] == found[-1][1].models[0].low_any
    assert told[-1]["models"][-1]["elo"] is None
    assert analysis_of(told[-1]).models == found[-1][1].models
    assert told[-1]["warnings"] == list(found[-1][1].warnings)


def test_a_line_of_a_round_counts_in_words_and_says_why_no_width_is_known() -> None:
    one = InterimAnalysis(battles=1, verdicts=2, instructions=1, nano=400_000, open=1)
    assert format_interim(one, "plan", 1) == (
        "round 1 (plan): 1 battle judged, no interval to stop by (fewer than 20 instructions), 1 pair open, "
        "$0.0004 spent"
    )
    many = InterimAnalysis(battles=1200, verdicts=2400, instructions=200, nano=10**9, half_width=24.6, open=2)
    assert (
        format_interim(many) == "1,200 battles judged, intervals to stop by within 25 points, 2 pairs open, $1.00 spent"
    )


def test_a_history_says_what_its_columns_are() -> None:
    text = " ".join(shown(analyses(3)).split())
    assert "yet: fewer than 20 instructions" in text
    assert "pairs open: pairs of models" in text
    assert "starved: models with too few" in text


class Fake:
    """An owner in its third round of a plan that was made anew, so that its first round has the number 5."""

    def __init__(self) -> None:
        rounds = [{"round": 4 + n, "phase": "refine", "policy": "information"} for n in (1, 2, 3)]
        told = [one | {"round": 4 + one["round"]} for one in interim_documents(analyses(2))]
        plan = {"rounds": rounds, "looks": told, "stops_when": stop_rules(StopSettings(top=2, half_width=25.0))}
        self.document = {"campaigns": [{"campaign": "c", "judges": [], "plan": plan}]}

    def status(self) -> dict[str, Any]:
        return self.document

    def watch(self, every: float) -> Iterator[dict[str, Any]]:
        now = asdict(Statistics(planned=90, settled=70, round=3, phase="refine"))
        one = now | {"campaign": "c", "calls_per_second": 1.0, "seconds_left": 20.0}
        yield from (one | {"ended": False}, one | {"ended": False}, one | {"ended": "complete", "ending": "complete"})


@pytest.mark.parametrize("terminal", [True, False])
def test_who_watches_a_run_in_rounds_sees_its_last_look_and_when_it_will_stop(terminal: bool) -> None:
    screen = Console(file=io.StringIO(), width=80, force_terminal=terminal)
    show_run(screen, cast(Owner, Fake()), 0.1)
    text = " ".join(cast(io.StringIO, screen.file).getvalue().split())
    assert "round 3, refine: 0 calls" in text
    assert "after round 2 (refine): " in text
    assert "interval is within 25 points" in text
    assert "known up to 15 points" in text
    if not terminal:
        assert text.count("after round 2") == 1  # told again only once it is another


def test_the_rules_of_a_campaign_are_read_from_its_store(write_campaign: Write) -> None:
    path = write_campaign()
    text = path.read_text(encoding="utf-8").replace('"all-pairs"', "'balanced'\nround = 20")
    path.write_text(f"{text}[plan.stop]\nhalf_width = 30.5\ntop = 2\nindifference = 7.5\n", encoding="utf-8")
    with Session(load_campaign(path)) as session:
        found = rounds_document(session.store, session.planned.id)["stops_when"]
        assert found == stop_rules(session.campaign.plan.stop)
    assert len(found) == 2


def test_a_look_has_who_won_everything_first_and_who_lost_everything_last() -> None:
    def model(name: str, elo: float | None, low: float | None, high: float | None) -> InterimRating:
        return InterimRating(name, elo, None, low, high, None, None, 40)

    models = (
        model("ann", None, None, 700.2),
        model("bob", None, None, None),
        model("cat", 900.0, 850.0, 950.0),
        model("dan", 1100.0, 1050.0, 1150.0),
        model("zoe", None, 1490.4, None),
    )
    out = io.StringIO()
    show_interim(Console(file=out, width=120), [(1, InterimAnalysis(10, 10, 10, 0, models))], judges=2)
    lines = [line.split() for line in out.getvalue().splitlines()]
    rows = [line for line in lines if {*line} & {"ann", "bob", "cat", "dan", "zoe"}]
    assert [row[:4] for row in rows[:1]] == [["1", "zoe", "over", "1490"]]
    assert [row[1] for row in rows[:4]] == ["zoe", "dan", "cat", "ann"]
    assert rows[3][:4] == ["4", "ann", "under", "700"]
    assert rows[4][:2] == ["bob", "none"]
