"""Pages of a campaign that runs, in a real browser: they follow it, say how it ended, and stop it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.serving import NUMBERED, PAGES, PATIENCE_SECONDS, Command, ask, command, demo, eventually, there

SETTLED = "select count(*) from battle where status is not null"
LONG = PATIENCE_SECONDS * 1000


@contextmanager
def running(folder: Path, *, instructions: int, requests_per_minute: int) -> Iterator[Command]:
    """The demo's campaign on some of its instructions, as fast as its limits allow, with its pages."""
    file = small_demo(folder, instructions=instructions, requests_per_minute=requests_per_minute)
    with command("run", file, "--yes", "--speed", 200, "--faults", 0.03, "--serve", "127.0.0.1:0") as run:
        yield run


def small_demo(folder: Path, *, instructions: int, requests_per_minute: int) -> Path:
    """The file of the demo's campaign on some of its instructions."""

    def change(text: str) -> str:
        text = text.replace('policy = "all-pairs"', f'policy = "all-pairs"\ninstructions = {instructions}')
        return re.sub("requests_per_minute = .*", f"requests_per_minute = {requests_per_minute}", text)

    return demo(folder / "demo", change)


def count(page: Page) -> int:
    """The settled trials that the overview shows."""
    return int(page.locator("#settled").get_attribute("data-count") or 0)


def post(url: str, origin: str, **form: str) -> int:
    """The status of the answer to a form."""
    request = Request(url, urlencode(form).encode(), {"Origin": origin}, method="POST")
    try:
        with urlopen(request, timeout=PATIENCE_SECONDS) as answer:
            return int(answer.status)
    except HTTPError as error:
        with error:
            return error.code


def test_the_overview_follows_a_run_to_its_end_and_keeps_the_last_state(visit: Visit, tmp_path: Path) -> None:
    with running(tmp_path, instructions=8, requests_per_minute=3600) as run:
        page = visit.open(f"{run.url}/s/demo/c/1/overview")
        expect(page.locator("header .run .badge")).to_have_text("running")
        seen: list[int] = []

        answers: set[str] = set()

        def ended() -> bool:
            if not seen or count(page) != seen[-1]:
                seen.append(count(page))
                answers.add(page.locator("#answer .lead").inner_text())
            return page.locator("#lost").is_visible()

        assert eventually(page, ended)
        expect(page.locator("#lost")).to_contain_text("The run has ended (complete)")
        expect(page.locator("#running")).to_have_text("ended")
        expect(page.locator("#settled")).to_have_attribute("data-count", "480")
        assert any(" so far " in one for one in answers), answers
        expect(page.locator("#answer .lead")).to_contain_text(" leads ")
        assert seen == sorted(seen)
        assert len({*seen, count(page)}) >= 4, "it has gone up three times at least"
        assert run.wait() == 0, "".join(run.said)
        assert count(page) == ask(tmp_path / "demo" / "campaign.duckdb", SETTLED) == 480
        expect(page.locator("#judges")).to_contain_text("240 of 240")
        visit.assert_quiet()


@pytest.mark.timeout(180)
def test_a_page_that_was_open_before_a_run_follows_it_its_end_and_the_next(visit: Visit, tmp_path: Path) -> None:
    file = small_demo(tmp_path, instructions=3, requests_per_minute=1200)
    with command("serve", file, "--at", "127.0.0.1:0") as serve:
        page = visit.open(f"{serve.url}/s/demo/c/1/overview", status=404)
        with command("run", file, "--yes", "--speed", 200) as run:
            expect(page.locator("#running")).to_have_text("running", timeout=LONG)  # it came by itself
            before = count(page)
            assert eventually(page, lambda: count(page) > before)
            run.process.kill()
            run.process.wait()
            expect(page.locator("#lost")).to_contain_text("and follows the next run", timeout=LONG)
            expect(page.locator("#running")).to_have_text("ended")
            assert count(page) > 0
        with command("run", file, "--yes", "--speed", 200) as run:
            expect(page.locator("#running")).to_have_text("running", timeout=LONG)
            expect(page.locator("#lost")).to_be_hidden()
            assert run.wait() == 0
            expect(page.locator("#lost")).to_contain_text("The run has ended (complete)", timeout=LONG)
            expect(page.locator("#settled")).to_have_attribute("data-count", "180")
        assert visit.page_errors == visit.foreign_requests == []
        # a run that takes long to begin holds the store before it can be asked: the page says so, and asks again
        assert all(one.endswith("/c/1/overview: 409") for one in visit.failed_requests), visit.failed_requests


@pytest.mark.slow
def test_every_page_can_be_read_during_a_run_and_one_that_is_killed_is_lost(visit: Visit, tmp_path: Path) -> None:
    with running(tmp_path, instructions=16, requests_per_minute=1200) as run:
        base = f"{run.url}/s/demo/c/1"
        page = visit.open(f"{base}/overview")
        assert eventually(page, lambda: count(page) > 20)
        other = visit.open(f"{base}/calls?status=ok")
        before = other.locator("#count").inner_text()
        expect(other.locator("#count")).not_to_have_text(before)
        for one in (*PAGES, *(f"{name}/1" for name in NUMBERED)):
            other.goto(f"{base}/{one}")
            there(other)
            expect(other.locator("header .run .badge")).to_have_text("running")
        other.goto(f"{base}/search?q=answer&judge=gpt-4-0613")
        expect(other.locator(".hits > li").first).to_be_visible()
        visit.assert_quiet()

        run.process.kill()
        run.process.wait()
        assert run.is_alone(), "what draws and computes for the pages has ended with the run"
        expect(page.locator("#lost")).to_contain_text("No answer since")
        expect(page.locator("#settled")).to_be_visible()
        assert count(page) > 20
        assert visit.console_errors == visit.page_errors == visit.foreign_requests == []
        assert all("/events" in one for one in visit.failed_requests), visit.failed_requests


def test_a_run_is_stopped_from_its_page_and_by_nobody_else(visit: Visit, tmp_path: Path) -> None:
    with running(tmp_path, instructions=16, requests_per_minute=1200) as run:
        page = visit.open(f"{run.url}/s/demo/c/1/overview")
        stop = f"{run.url}/s/demo/c/1/stop"
        token = page.locator("form.stop [name=token]").get_attribute("value") or ""
        assert token
        for origin, form in (
            (run.url, {}),
            (run.url, {"token": token[:-1]}),
            (run.url, {"token": "é"}),
            ("http://stranger.invalid", {"token": token}),
        ):
            assert post(stop, origin, **form) == 403
        before = count(page)
        assert eventually(page, lambda: count(page) > before)
        assert run.process.poll() is None

        page.get_by_role("button", name="Stop gently").click()
        expect(page.locator("#lost")).to_contain_text("The run has ended", timeout=LONG)
        expect(page.locator("#lost")).to_contain_text("interrupted")
        expect(page.get_by_role("button", name="Stop gently")).to_have_count(0)
        assert run.wait() == 130, "".join(run.said)
        settled = ask(tmp_path / "demo" / "campaign.duckdb", SETTLED)
        assert 0 < settled < 960
        assert count(page) == settled
        visit.assert_quiet()


@pytest.mark.slow
def test_without_the_script_a_run_can_be_read_and_stopped(visit: Visit, tmp_path: Path) -> None:
    with running(tmp_path, instructions=16, requests_per_minute=1200) as run:
        page = visit.open(f"{run.url}/", java_script_enabled=False)
        before = count(page)

        def risen() -> bool:
            page.reload()
            return count(page) > before

        assert eventually(page, risen)
        page.get_by_role("button", name="Stop gently").click()
        assert run.wait() == 130, "".join(run.said)
        visit.assert_quiet()
