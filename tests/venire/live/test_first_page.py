"""The first page of a campaign answers first: who leads, how surely, what to doubt, or what to do without an answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from tests.venire.live.serving import PATIENCE, KeptFits, visit
from venire.configs.loading import load_campaign
from venire.live.fits import Fit, Fits, FitSource, Work
from venire.orchestrator.recording.ending import Ending
from venire.reports.board.source import VerdictSource
from venire.reports.documents.report import report_document
from venire.session import Session

GRADER = '[[judge]]\nname = "gpt-4-0613"\nmodel = "simulated/gpt-4-0613@1"\nprotocol = "direct"\n'
WRITER = '[[contestant]]\nname = "claude-v1"\nmodel = "simulated/claude-v1@1"\nelo = 1100\n'


@pytest.fixture
def first_page(fits: Fits) -> Callable[..., str]:
    """The words of a store's first page above its progress, once nothing of them is being computed."""

    def words(store: Path, *, waits: bool = True) -> str:
        found = []

        async def act(session: aiohttp.ClientSession) -> None:
            until = monotonic() + PATIENCE
            while monotonic() < until:
                async with session.get(f"/s/{store.stem}") as answer:
                    assert answer.status == 200
                    text = await answer.text()
                section = text.partition('<section id="answer"')[2].partition("</section>")[0]
                if not (waits and "data-again" in section):
                    break
            found.append(" ".join(unescape(re.sub("<[^>]*>", " ", section.partition(">")[2])).split()))

        visit(store, fits=fits, act=act)
        return found[0]

    return words


def test_it_begins_with_the_answer_of_the_report_the_top_of_the_board_and_what_to_doubt(
    judged: Callable[..., Path], first_page: Callable[..., str]
) -> None:
    store = judged().with_suffix(".duckdb")
    document = report_document(VerdictSource((store,)))
    words = first_page(store)
    who, _, rest = document["answer"]["sentence"].partition(", by ")
    assert words.startswith(f"{who}. By {rest} ")
    assert "so far" not in words
    board, _, doubts = words.partition("What to doubt")
    places = [board.index(f" {one['model']} ", len(who)) for one in document["board"]["models"]]
    assert places == sorted(places)
    worries = [one for one in document["audit"]["findings"] if one["word"] == "worry"]
    assert f"{len(worries)} of " in doubts
    assert worries[0]["asks"] in doubts
    assert worries[0]["says"] in doubts


def test_while_trials_are_left_it_says_so_far(
    write_campaign: Callable[..., Path], settle: Callable[..., Ending], first_page: Callable[..., str]
) -> None:
    path = write_campaign(more="[budget]\ncalls = 100")
    assert settle(path) is not Ending.COMPLETE
    words = first_page(path.with_suffix(".duckdb"))
    assert " so far " in words.partition("Leaderboard")[0]
    assert "Leaderboard so far" in words


def test_a_campaign_with_nothing_judged_says_what_to_do(
    write_campaign: Callable[..., Path], first_page: Callable[..., str]
) -> None:
    path = write_campaign()
    with Session(load_campaign(path)):
        pass
    words = first_page(path.with_suffix(".duckdb"))
    assert words.startswith("Nothing is judged yet.")
    assert "venire run FILE" in words


def test_models_whose_answers_were_graded_are_shown_by_accuracy(
    judged: Callable[..., Path], first_page: Callable[..., str]
) -> None:
    words = first_page(judged(judges=GRADER).with_suffix(".duckdb"))
    assert re.match(r"\w+ is right most often: \d+% of its answers", words)
    assert "By 1 judge (gpt-4-0613) on 2 instructions, 12 verdicts" in words
    assert "accuracy with its 95% interval" in words


def test_a_campaign_that_writes_completions_shows_how_many_there_are(
    write_campaign: Callable[..., Path], venire: Callable[..., Any], first_page: Callable[..., str]
) -> None:
    path = write_campaign(more=WRITER)
    path.write_text(path.read_text(encoding="utf-8").replace('completions = "completions.jsonl"\n', ""), "utf-8")
    assert venire("generate", path, "--yes").code == 0
    assert first_page(path.with_suffix(".duckdb")).startswith("2 of 2 completions are written.")


def test_it_is_there_while_the_board_is_computed(
    judged: Callable[..., Path], first_page: Callable[..., str], fits: Fits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("venire.live.pages._PATIENCE_SECONDS", 0.05)
    store = judged().with_suffix(".duckdb")
    with fits._turn, fits._turn:  # no board is computed meanwhile
        monkeypatch.setattr(KeptFits, "close", lambda self: [fit.cancel() for _, fit in self._known.values()])
        assert first_page(store, waits=False).startswith("The board is being computed.")


@pytest.mark.parametrize(
    ("before", "age", "remade"), [(None, 0.0, True), ({"made": 0}, 0.0, False), ({"made": 0}, 100.0, True)]
)
def test_a_board_at_rest_is_made_again_when_it_is_asked_for_after_a_vote(
    fits: Fits, before: dict[str, int] | None, age: float, remade: bool
) -> None:
    """The danger: who votes does not see the vote on the board, or no board at all while others vote."""
    kept, key, now = KeptFits(fits), ("store", 1, "board"), monotonic()
    done = Fit(started=now - age - 50.0, before=before, document={"made": 1}, ended=now - age)
    done.done.set()
    kept._known[key] = (1,), done
    source: Any = FitSource(SimpleNamespace(batch=2), None, None)  # type: ignore[arg-type]
    with fits._turn, fits._turn:
        fit = kept.get(key, source, Work("board", dict, dict), patience=50.0)  # type: ignore[arg-type]
        assert (fit is not done) is remade
        fit.cancel()
    assert fit.done.wait(PATIENCE)


def test_the_document_before_is_at_hand_while_the_next_is_made(fits: Fits) -> None:
    kept, key = KeptFits(fits), ("store", 1, "board")
    done = Fit(started=(ago := monotonic() - 1.0), document={"made": 1}, ended=ago)
    done.done.set()
    kept._known[key] = 1, done
    source: Any = FitSource(SimpleNamespace(batch=2), None, None)  # type: ignore[arg-type]
    with fits._turn, fits._turn:
        for _ in range(2):
            fit = kept.get(key, source, Work("board", dict, dict), patience=0.0, times=0.0)  # type: ignore[arg-type]
            assert not fit.done.is_set()
            assert kept.is_under_way(key)
            assert kept.known(key) == {"made": 1}
        fit.cancel()
    assert fit.done.wait(PATIENCE)
    assert not kept.is_under_way(key)
