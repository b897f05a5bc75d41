"""`venire generate` as a person uses it: contestants write, judges judge what they wrote, and nothing is paid twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.stores import rows_of
from venire.orchestrator.recording.ending import CampaignSummary, Ending
from venire.pages.report_page import report_html, report_markdown
from venire.session import Session

Venire = Callable[..., Any]

FILE = """\
name = "peers"
seed = 1
[data]
instructions = "instructions.jsonl"
[plan]
policy = "all-pairs"
instructions = 2
{more}
"""
PEER = """\
[[contestant]]
name = "{0}"
model = "simulated/{0}@1"
elo = {1}
[[judge]]
name = "{0}"
model = "simulated/{0}@1"
protocol = "{2}"
"""


@pytest.fixture
def write(folder: Path) -> Callable[..., Path]:
    def peers(protocol: str = "listwise", more: str = "") -> Path:
        path = folder / "peers.toml"
        both = "".join(PEER.format(name, elo, protocol) for name, elo in (("gpt-4-0613", 1200), ("claude-v1", 1100)))
        path.write_text(FILE.format(more=more) + both, encoding="utf-8")
        return path

    return peers


def test_contestants_are_asked_first_and_then_judged(venire: Venire, write: Callable[..., Path]) -> None:
    path = write()
    early = venire("run", path, "--yes")
    assert early.code == 2
    assert "contestant 'gpt-4-0613' has no completions" in early.err
    assert "`venire generate peers.toml`" in early.err
    done = venire("generate", path, "--yes")
    assert done.code == 0, done.err
    assert "2 contestants = 4 trials" in done.err
    assert [line.split()[:3] for line in done.out.splitlines()[1:]] == [
        ["claude-v1", "2", "2"],
        ["gpt-4-0613", "2", "2"],
    ]
    judged = venire("run", path, "--yes")
    assert judged.code == 0, judged.err
    assert "lists of 2 models" in judged.err
    assert "2 judges = 4 trials" in judged.err
    store = path.with_suffix(".duckdb")
    assert rows_of(store, "select count(*) from ballot") == [(2 * 2 * 2,)]
    again = venire("generate", path)
    assert again.code == 0
    assert "nothing was asked" in again.err
    assert again.out == done.out


def test_a_board_is_that_of_the_campaign_that_judges_pairs(
    venire: Venire, write: Callable[..., Path], settle: Callable[..., Ending]
) -> None:
    path = write("two-stage")
    assert venire("generate", path, "--yes").code == 0
    assert settle(path) is Ending.COMPLETE
    board = venire("rate", path.with_suffix(".duckdb"), "--json").json()
    assert {one["model"] for one in board["models"]} == {"gpt-4-0613", "claude-v1"}


def test_what_contestants_wrote_is_graded_and_has_a_board(venire: Venire, write: Callable[..., Path]) -> None:
    path = write("direct")
    assert venire("generate", path, "--yes").code == 0
    done = venire("run", path, "--yes")
    assert done.code == 0, done.err
    assert "Accuracy   direct   verdicts: simulated" in done.out
    rated = venire("rate", path.with_suffix(".duckdb"), "--json").json()
    assert {one["model"] for one in rated["grades"]["accuracy"][0]["models"]} == {"gpt-4-0613", "claude-v1"}


def test_the_budget_of_the_generation_ends_it_with_3_and_what_was_written_counts(
    venire: Venire, write: Callable[..., Path]
) -> None:
    path = write(more="[budget.generation]\ncalls = 3")
    done = venire("generate", path, "--yes")
    assert done.code == 3
    assert "budget of 3 calls" in done.err
    assert "Raise [budget.generation]" in done.err
    assert "venire generate " in done.err
    assert rows_of(path.with_suffix(".duckdb"), "select count(*) from completion") == [(3,)]


def test_a_file_without_contestants_is_told_what_to_add(venire: Venire, write: Callable[..., Path]) -> None:
    path = write()
    text = path.read_text(encoding="utf-8")
    path.write_text(text[: text.index("[[contestant]]")] + '[[judge]]\nmodel = "simulated/bard@1"\n', encoding="utf-8")
    done = venire("generate", path, "--yes")
    assert done.code == 2
    assert "contestant: add a [[contestant]] table" in done.err


def test_a_plan_of_lists_alone_misses_no_matchups(venire: Venire, write: Callable[..., Path]) -> None:
    path = write()
    assert venire("generate", path, "--yes").code == 0
    path.write_text(path.read_text(encoding="utf-8").replace('"all-pairs"', '"random"\nmatchups = 5'), encoding="utf-8")
    planned = venire("plan", path)
    assert planned.code == 0, planned.err
    assert "matchups" not in planned.out


def test_contestants_that_were_stopped_are_gone_on_with_by_the_verb_that_asks_them(
    venire: Venire, write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The danger: `venire run` was named, which judges what is there and leaves the rest unwritten."""
    summaries = []

    class Stopped(Session):
        def run(self, **options: Any) -> CampaignSummary:
            summaries.append(super().run(**options))
            return replace(summaries[-1], ending=Ending.INTERRUPTED)

    monkeypatch.setattr("venire.session.Session", Stopped)
    done = venire("generate", write(), "--yes")
    assert done.code == 130
    assert summaries
    assert "Go on: venire generate " in done.err
    assert "settled so far: venire status" in done.err


@pytest.mark.slow
def test_what_contestants_wrote_later_is_planned_while_no_judge_was_asked_or_with_amend(
    venire: Venire, write: Callable[..., Path]
) -> None:
    """The danger: planned while one of them had half its answers, the other half was never judged, without a word."""

    def generate(calls: int) -> Path:
        path = write(more=f"[budget.generation]\ncalls = {calls}")
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("instructions = 2", ""), encoding="utf-8")
        assert venire("generate", path, "--yes", "--amend").code in (0, 3)
        return path

    def planned(*options: str) -> int:
        return int(venire("plan", path, "--json", *options).json()["trials"]) // 2  # of both judges

    def answered_by_both() -> int:
        query = "select instruction from completion group by all having count(*) = 2"
        return len(venire("sql", path.with_suffix(".duckdb"), query, "--json").json())

    everything = len((write().parent / "instructions.jsonl").read_text(encoding="utf-8").splitlines())
    path = generate(everything + 2)
    few = answered_by_both()
    assert planned() == few > 0
    assert f"contestants have {everything - 2} of {2 * everything} answers to write" in venire("plan", path).out
    path = generate(2 * everything - 2)
    more = answered_by_both()
    assert planned() == more > few
    assert venire("run", path, "--yes").code == 0
    path = generate(2 * everything)
    assert planned() == more < everything
    assert planned("--amend") == everything
    assert "answers to write" not in venire("plan", path).out


def test_a_report_holds_quality_against_what_the_contestants_cost(
    venire: Venire, write: Callable[..., Path], settle: Callable[..., Ending]
) -> None:
    path = write("two-stage")
    text = path.read_text(encoding="utf-8")
    for name, price in (("gpt-4-0613", 30.0), ("claude-v1", 3.0)):
        text = text.replace(f'[[contestant]]\nname = "{name}"', f'{PRICED.format(price)}\nname = "{name}"')
    free = '[[contestant]]\nname = "vicuna-13b"\nmodel = "simulated/vicuna-13b@1"\nelo = 1000\n'
    path.write_text(text.replace("instructions = 2", "instructions = 4") + free, encoding="utf-8")
    assert venire("generate", path, "--yes").code == 0
    assert settle(path) is Ending.COMPLETE
    document = venire("report", path, "--format", "json").json()
    board = {one["model"]: one for one in document["board"]["models"]}
    spent = {name: (count, nano) for name, count, nano in rows_of(path.with_suffix(".duckdb"), SPENT)}
    rows = document["contestants"]
    assert {one["model"] for one in rows} == {"gpt-4-0613", "claude-v1"}
    assert [one["nano"] for one in rows] == sorted(one["nano"] for one in rows)
    for one in rows:
        count, paid = spent[one["model"]]
        assert one["completions"] == count == 4
        assert one["nano"] == pytest.approx(paid / count)
        assert 0 < one["nano_lo"] < one["nano"] < one["nano_hi"]
        assert [one[key] for key in ("elo", "lo", "hi")] == [board[one["model"]][key] for key in ("elo", "lo", "hi")]
    cheap, dear = rows
    assert cheap["frontier"]
    assert dear["frontier"] == (dear["elo"] > cheap["elo"])
    assert any(one["what"] == "Cost of vicuna-13b" for one in document["left_out"])
    page = report_html(document)
    assert "against the cost of a" in page
    assert page.count('<line class="range"') >= 4
    assert "| cost of a completion" in report_markdown(document)


PRICED = "[[contestant]]\nprice = {{ input = {0}, output = {0} }}"
SPENT = (
    "select w.name, count(distinct t.id) n, sum(a.cost) nano from attempt a join trial t on t.id = a.trial "
    "join respondent r on r.id = t.respondent join campaign_judge w on w.respondent = r.id and w.campaign = a.campaign "
    "where r.protocol = 'generate' group by all"
)
