"""`venire serve` beside other commands: it gives a store up for them, and follows a run through beginning and end."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest

from tests.venire.commands.test_serve import address
from venire.arena.errors import StoreHeldError
from venire.storage.store.opening import open_store, open_unchanged

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def serving(start: Start) -> Iterator[Callable[..., str]]:
    """Starts `venire serve` as a process and returns its address; it has to have said nothing else when it ends."""
    processes: list[subprocess.Popen[str]] = []

    def serve(*words: object) -> str:
        processes.append(start("-m", "venire", "serve", *words, "--at", "127.0.0.1:0"))
        return address(processes[-1]).rstrip("/")

    yield serve
    for process in processes:
        process.terminate()
        _, rest = process.communicate(timeout=60)
        assert all(line == "Ctrl-C ends this" or line.startswith("no store ") for line in rest.splitlines()), rest
        assert process.returncode == 0


def page(address: str) -> str:
    """A page, whatever its status."""
    try:
        with urlopen(address, timeout=60) as answer:
            text: str = answer.read().decode()
    except HTTPError as error:
        with error:
            text = error.read().decode()
    return text


def until(address: str, words: str) -> str:
    """The page when it has some words: it is asked for again as a browser does."""
    end = monotonic() + 60
    while words not in (text := page(address)):
        assert monotonic() < end, text
    return text


def runs(start: Start, path: Path) -> subprocess.Popen[str]:
    return start("-m", "venire", "run", path, "--yes")


RUNS, RESTS = 'id="running">running<', 'id="running">at rest<'


def test_a_store_that_is_looked_at_is_given_to_whoever_asks_for_it(
    judged: Callable[..., Path], serving: Callable[..., str]
) -> None:
    store = judged().with_suffix(".duckdb")
    base = serving(store)
    for _ in range(2):
        assert "<h1><bdi>small</bdi>" in page(base)
        owner = json.loads(store.with_name(store.name + ".lock").read_bytes())
        assert owner["yields"]
        with open_store(store, create=False) as opened:
            assert opened.read("counts")


def test_a_store_is_not_asked_for_by_the_process_that_shows_it(judged: Callable[..., Path]) -> None:
    store = judged().with_suffix(".duckdb")
    with open_unchanged(store) as shown:
        with pytest.raises(StoreHeldError, match="which does not give it up"):
            open_store(store)
        assert not shown.is_wanted()


def test_an_address_lives_before_during_and_after_runs_and_through_a_kill(
    write_campaign: Callable[..., Path], serving: Callable[..., str], start: Start
) -> None:
    path = write_campaign(judge="requests_per_minute = 60")
    base = serving(path.parent / path.name)
    assert "there is no store" in page(base)
    first = runs(start, path)
    overview = base + "/s/small/c/1/overview"
    text = until(overview, RUNS)
    assert 'data-events="/s/small/c/1/events"' in text
    assert RUNS in page(base + "/s/small/c/1/calls")
    assert "running" in page(base + "/")
    first.kill()
    first.wait()
    assert RESTS in until(overview, RESTS)

    second = runs(start, path)  # which is not refused, though the store is open to be looked at
    text = until(overview, RUNS)
    token = text.partition('name="token" value="')[2].partition('"')[0]
    stop = Request(base + "/s/small/c/1/stop", urlencode({"token": token}).encode(), {"Origin": base})
    with urlopen(stop, timeout=60) as answer:
        assert answer.status == 200
    assert second.wait(60) == 130, second.communicate()
    assert RESTS in page(overview)


def test_events_tell_of_a_run_that_begins_and_ends(
    write_campaign: Callable[..., Path], serving: Callable[..., str], start: Start
) -> None:
    path = write_campaign(instructions=1, judge="requests_per_minute = 1200")
    base = serving(path)
    with urlopen(base + "/s/small/c/1/events", timeout=60) as events:

        def event() -> tuple[str, dict[str, object]]:
            name = next(line for line in events if line.startswith(b"event: ")).decode().strip()
            return name, json.loads(events.readline().removeprefix(b"data: "))

        assert event() == ("event: ended", {"ending": None, "follows": True})
        run = runs(start, path)
        seen = event()
        assert seen[0] == "event: changed"
        while seen[0] == "event: changed":
            seen = event()
        assert seen == ("event: ended", {"ending": "complete", "follows": True})
        assert run.wait(60) == 0
        assert RESTS in page(base + "/s/small/c/1/overview")


@pytest.mark.slow
def test_a_run_that_does_not_answer_has_a_page_that_says_so(
    write_campaign: Callable[..., Path], serving: Callable[..., str], start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_campaign(judge="requests_per_minute = 60")
    base = serving(path.parent / path.name)
    run = runs(start, path)
    until(base + "/s/small/c/1/overview", RUNS)
    run.send_signal(signal.SIGSTOP)
    try:
        text = page(base + "/s/small/c/1/overview")
        assert "does not answer now" in text
        assert 'data-again="2"' in text
    finally:
        run.send_signal(signal.SIGCONT)
    until(base + "/s/small/c/1/overview", RUNS)


@pytest.mark.slow
def test_compacting_a_store_that_is_looked_at(
    judged: Callable[..., Path], serving: Callable[..., str], start: Start, tmp_path: Path
) -> None:
    store = judged().with_suffix(".duckdb")
    base = serving(store)
    assert RESTS in page(base + "/s/small/c/1/overview")
    for words in (("compact", store), ("backup", store, "-o", tmp_path / "copy.duckdb")):
        done = start("-m", "venire", "store", *words)
        assert done.wait(60) == 0, done.communicate()
        assert RESTS in until(base + "/s/small/c/1/overview", RESTS)


@pytest.mark.slow
def test_pages_of_a_run_answer_under_the_name_that_another_process_gave_its_store(
    judged: Callable[..., Path],
    write_campaign: Callable[..., Path],
    serving: Callable[..., str],
    start: Start,
    tmp_path: Path,
) -> None:
    path = write_campaign(judge="requests_per_minute = 60")
    other = tmp_path / "another" / "small.duckdb"
    other.parent.mkdir()
    shutil.copy(judged(name="other.toml").with_suffix(".duckdb"), other)
    run = runs(start, path)
    base = serving(other, path)
    text = until(base + "/s/small-2/c/1/overview", RUNS)
    assert 'href="/s/small-2/c/1/calls"' in text
    assert RESTS in page(base + "/s/small/c/1/overview")
    run.send_signal(signal.SIGINT)
    assert run.wait(60) == 130
