"""Pages over HTTP: what they answer, to whom, and what they never do."""

from __future__ import annotations

import asyncio
import contextlib
import lzma
import os
import re
import shutil
import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import duckdb
import pytest
from jinja2 import ChoiceLoader, DictLoader

from tests.venire.live.serving import BASE, PATIENCE, KeptFits, guard, ready, served, visit
from venire.arena.errors import InputError, StoreHeldError
from venire.live.answers import Answers, Pulse
from venire.live.fits import Fit, Fits, FitSource, Work
from venire.live.guard import DoorAddress, Guard
from venire.live.library import Library
from venire.live.page_maker import Live
from venire.live.pages import Pages
from venire.live.server import serve
from venire.pages.context import PageContext
from venire.pages.registry import PAGES, PageEntry
from venire.pages.rendering import SECURITY_HEADERS, assets, environment
from venire.pages.report_page import report_markdown
from venire.storage.read.frames import CampaignRow
from venire.storage.store.opening import open_store, open_unchanged
from venire.storage.transfer.formats.source import open_table
from venire.storage.transfer.votes import add_votes, read_votes


@pytest.fixture
def store(judged: Callable[..., Path]) -> Path:
    return judged().with_suffix(".duckdb")


def test_every_page_is_there_with_the_strict_headers(store: Path, fits: Fits) -> None:
    paths = [
        *(f"{one.name}/1" if one.numbered else one.name for one in PAGES.values()),
        "search?q=answer",
        "battle/1?markdown=1",
        "calls?flipped=yes&order=cost&down=1&rows=25",
        "leaderboard?method=kemeny",
    ]

    async def act(session: aiohttp.ClientSession) -> None:
        for path in paths:
            status, text = await ready(session, f"{BASE}/{path}")
            assert status == 200, path
            assert text.startswith("<!doctype html>"), path
        for path in ("/", "/nowhere", f"{BASE}/battle/99999999", "/static/x", f"{BASE}/calls.csv", f"{BASE}/events"):
            async with session.get(path, allow_redirects=False) as response:
                assert SECURITY_HEADERS.items() <= response.headers.items(), path
                assert "Server" not in response.headers
        for name in assets():
            async with session.get(f"/static/{name}") as response:
                assert response.status == 200

    assert "unsafe" not in SECURITY_HEADERS["Content-Security-Policy"]
    visit(store, fits=fits, act=act)


ADDED = """{% extends "base.html" %}{% import "macros.html" as m %}
{% block main %}<h1>{{ word }}</h1>{{ m.picture("intervals", rows, "Ratings") }}{% endblock %}"""


def test_a_page_with_a_chart_is_one_entry_and_one_template(
    store: Path, fits: Fits, monkeypatch: pytest.MonkeyPatch
) -> None:
    def values(here: PageContext) -> dict[str, Any]:
        return {"word": f"<b>{here.query['word']}", "rows": [{"name": "a", "lo": 1, "hi": 3, "value": 2}]}

    loader = environment().loader
    monkeypatch.setattr(environment(), "loader", ChoiceLoader([DictLoader({"colours.html": ADDED}), loader]))  # type: ignore[list-item]
    monkeypatch.setitem(PAGES, "colours", PageEntry("colours", "Colours", values))

    async def act(session: aiohttp.ClientSession) -> None:
        status, text = await ready(session, f"{BASE}/colours?word=red")
        assert (status, "<h1>&lt;b&gt;red</h1>" in text) == (200, True)
        section = text.partition('aria-label="Ratings"')[2]
        assert '<bdi>a</bdi><svg class="bar" role="img" aria-label="2.00, 1.00 to 3.00"' in section

    visit(store, fits=fits, act=act)


def test_what_failed_stands_out_among_the_calls_and_on_its_battle_with_its_reason(store: Path, fits: Fits) -> None:
    with open_store(store) as opened:
        run = opened.connection.execute
        run("delete from verdict where trial = 1")
        run("delete from attempt where trial = 1 and step > 1")
        run("update attempt set fault = 3, text = null, message = 'no credit <b>left</b>' where trial = 1")
        run("insert into failure select 1, 1, 3, false, max(batch) from ledger")
    pages = []

    async def act(session: aiohttp.ClientSession) -> None:
        pages.extend([await ready(session, f"{BASE}/{path}") for path in ("calls", "battle/1")])

    visit(store, fits=fits, act=act)
    assert [status for status, _ in pages] == [200, 200]
    calls, battle = (text for _, text in pages)
    assert re.search(r'<a href="[^"]*calls\?status=failed">1 failed</a>', calls)
    (row,) = re.findall(r'<tr class="odd">.*?</tr>', calls, re.DOTALL)
    assert "quota: no credit &lt;b&gt;left&lt;/b&gt;" in row
    assert "Failed at step 1: quota: no credit &lt;b&gt;left&lt;/b&gt;" in battle.split('<details class="facts">')[0]


def test_names_that_differ_in_letter_case_are_noted_on_the_page_and_when_a_run_ends(
    folder: Path, write_campaign: Callable[..., Path], venire: Callable[..., Any], fits: Fits
) -> None:
    for table in ("completions.jsonl", "elo.csv"):
        text = (folder / table).read_text(encoding="utf-8")
        (folder / table).write_text(re.sub(r"\bsolid\b", "Strong", text), encoding="utf-8")
    campaign = write_campaign()
    assert "Strong and strong" in venire("run", campaign, "--yes").out
    pages = []

    async def act(session: aiohttp.ClientSession) -> None:
        pages.append(await ready(session, f"{BASE}/leaderboard"))

    visit(campaign.with_suffix(".duckdb"), fits=fits, act=act)
    assert [status for status, text in pages if "Strong and strong" in text] == [200]


def test_a_judge_that_is_a_coin_is_said_above_the_leaderboard(judged: Callable[..., Path], fits: Fits) -> None:
    judge = '[[judge]]\nname = "vicuna-13b"\nmodel = "simulated/vicuna-13b@1"'
    store = judged(instructions=8, judges=judge).with_suffix(".duckdb")

    async def act(session: aiohttp.ClientSession) -> None:
        status, text = await ready(session, f"{BASE}/leaderboard")
        assert status == 200
        assert "no better than a coin" in text.split("<table")[0]

    visit(store, fits=fits, act=act)


def test_what_intervals_are_about_stands_beside_them(store: Path, fits: Fits) -> None:
    pages = []

    async def act(session: aiohttp.ClientSession) -> None:
        pages.extend([await ready(session, f"{BASE}/{path}") for path in ("leaderboard", "contestant/1")])

    visit(store, fits=fits, act=act)
    assert [status for status, text in pages if "other instructions; these judges only" in text] == [200, 200]


@pytest.mark.parametrize("half_width", [None, 40.0])
def test_the_overview_says_what_the_last_look_found(
    judged: Callable[..., Path], fits: Fits, monkeypatch: pytest.MonkeyPatch, half_width: float | None
) -> None:
    look = {"round": 1, "battles": 240, "half_width": half_width, "open": None, "stop": None}
    monkeypatch.setattr("venire.live.library.rounds_document", lambda *_: {"looks": [look], "stops_when": []})
    judge = '[[judge]]\nname = "vicuna-13b"\nmodel = "simulated/vicuna-13b@1"'
    store = judged(judges=judge).with_suffix(".duckdb")
    _, text = visit(store, fits=fits, act=lambda session: ready(session, f"{BASE}/overview"))
    if half_width is None:
        assert "240 battles, no interval was looked at" in text
        assert "points to each side" not in text
    else:
        assert "40 points to each side (other instructions; this judge only)" in text


def test_a_budget_of_tokens_is_on_the_overview_and_in_the_report(
    judged: Callable[..., Path], venire: Callable[..., Any], fits: Fits
) -> None:
    store = judged(more="[budget]\ntokens = 90_000_000").with_suffix(".duckdb")
    seen = []

    async def act(session: aiohttp.ClientSession) -> None:
        seen.append(await ready(session, f"{BASE}/overview"))

    visit(store, fits=fits, act=act)
    assert "tokens left of 90,000,000" in seen[0][1]
    assert "no budget is set" not in seen[0][1]
    document = venire("report", store, "--format", "json").json()
    assert any("90,000,000 tokens" in one for one in document["how"])
    assert "90,000,000 tokens" in report_markdown(document)


def test_what_cannot_be_shown_is_a_page_with_a_sentence(store: Path, fits: Fits) -> None:
    cases = {
        "/nowhere": "GET /nowhere",
        "/s/other": "there is no such store here",
        "/s/small/c/7/overview": "has no campaign number 7",
        f"{BASE}/battle/99999999": "has no trial 99999999",
        f"{BASE}/instruction/99999": "no instruction 99999",
        f"{BASE}/contestant/999": "no model 999",
        f"{BASE}/calls?status=odd": "there is no status",
        f"{BASE}/leaderboard?method=odd": "there is no method",
        f"{BASE}/leaderboard?judge=nobody": "no verdict is of these judges and this category",
        f"{BASE}/instructions?order=odd": "instructions are not sorted by",
        f"{BASE}/search?in=odd&amp;q=x": "in: replies, instructions or completions",
        f"{BASE}/text/1/reply/9-9": "trial 1 has no reply 9-9",
    }

    async def act(session: aiohttp.ClientSession) -> None:
        for path, sentence in cases.items():
            status, text = await ready(session, path.replace("&amp;", "&"))
            assert status == 404, path
            assert sentence in text, path
            assert "Traceback" not in text

    visit(store, fits=fits, act=act)


def test_the_page_of_a_battle_has_what_people_said_of_it_as_data(store: Path, fits: Fits, tmp_path: Path) -> None:
    with open_store(store) as opened:
        query = "select trial, instruction_id, model_a, model_b from battle order by trial"
        (trial, asked, a, b), *others = opened.connection.execute(query).fetchall()
        other = next(one for one, *battle in others if battle != [asked, a, b])
        table = tmp_path / "votes.csv"
        table.write_text(
            "annotator,instruction_id,first,second,verdict,note\n"
            f"bob,{asked},{a},{b},tie,\n<i>ann</i>,{asked},{b},{a},first,<script>x</script>both weak\n",
            encoding="utf-8",
        )
        add_votes(opened, "crowd", read_votes(table))

    async def act(session: aiohttp.ClientSession) -> None:
        _, text = await ready(session, f"{BASE}/battle/{trial}")
        section = text.partition('aria-label="People"')[2].partition("</section>")[0]
        rows = re.findall(r"<tr>(.*?)</tr>", section, re.S)[1:]
        assert "&lt;i&gt;ann&lt;/i&gt;" in rows[0]  # votes with notes come first
        assert f"<td><bdi>{b}</bdi></td><td><bdi>{b}</bdi></td>" in rows[0]
        assert "&lt;script&gt;x&lt;/script&gt;both weak" in rows[0]
        assert f"<td><bdi>tie</bdi></td><td><bdi>{a}</bdi></td>" in rows[1]
        assert len(rows) == 2
        assert 'aria-label="People"' not in (await ready(session, f"{BASE}/battle/{other}"))[1]

    visit(store, fits=fits, act=act)


def test_nobody_is_answered_under_another_name_or_from_another_site(store: Path, fits: Fits) -> None:
    async def act(session: aiohttp.ClientSession) -> None:
        for headers, status in (
            ({"Host": "evil.example"}, 421),
            ({"Origin": "http://evil.example"}, 403),
            ({"Sec-Fetch-Site": "cross-site"}, 403),
        ):
            async with session.get(f"{BASE}/overview", headers=headers) as response:
                assert response.status == status
                assert "trials" not in await response.text()

    visit(store, fits=fits, act=act)


def test_a_token_opens_the_pages_by_header_or_by_a_link_that_works_once(store: Path, fits: Fits) -> None:
    async def go() -> None:
        door = Guard(DoorAddress(port=0, given=True), token="t" * 20, _entry="k" * 20)
        async with served(store, fits=fits, door=door) as session:
            async with session.get(f"{BASE}/calls") as response:
                assert response.status == 401
            async with session.get(f"{BASE}/calls", headers={"Authorization": f"Bearer {'t' * 20}"}) as response:
                assert response.status == 200
            async with session.get(f"/enter?key={'k' * 20}") as response:
                assert response.status == 200
                cookie = response.cookies[door.cookie]
                assert cookie["httponly"]
                assert cookie["samesite"] == "Strict"
            async with session.get(f"{BASE}/calls", cookies={door.cookie: cookie.value}) as response:
                assert response.status == 200
            async with session.get(f"/enter?key={'k' * 20}") as response:
                assert response.status == 403

    asyncio.run(go())


def test_a_store_that_cannot_be_opened_says_why_and_the_others_go_on(store: Path, fits: Fits, tmp_path: Path) -> None:
    odd = tmp_path / "odd.duckdb"
    odd.write_bytes(b"no store")
    gone = tmp_path / "gone.duckdb"

    async def act(session: aiohttp.ClientSession) -> None:
        _, text = await ready(session, "/")
        assert "not a valid DuckDB database" in text
        assert "there is no store" in text
        assert (await ready(session, "/s/odd"))[0] == 404
        assert (await ready(session, f"{BASE}/calls"))[0] == 200

    visit(store, odd, gone, fits=fits, act=act)


def test_what_a_browser_would_not_send_is_refused_and_a_defect_is_a_page(
    store: Path, fits: Fits, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> dict[str, Any]:
        raise KeyError("a defect")

    monkeypatch.setitem(PAGES, "instruction", replace(PAGES["instruction"], values=broken))

    async def act(session: aiohttp.ClientSession) -> None:
        for headers, status in (
            ({"Host": f"127.0.0.1:{'9' * 5000}"}, 421),
            ({"Authorization": "Bearer \udcff\udcfe"}, 200),
            ({"Cookie": "venire-1=\udcff"}, 200),
        ):
            async with session.get(f"{BASE}/calls", headers=headers) as response:
                assert response.status == status
        for query in ("since=0001-01-01T00:00%2b23:59", "until=9999-12-31T23:59-23:59"):
            assert (await ready(session, f"{BASE}/calls?{query}"))[0] == 404
        for path in ("calls.csv", "events"):
            async with session.head(f"{BASE}/{path}") as response:
                assert response.status == 405
        status, text = await ready(session, f"{BASE}/instruction/1")
        assert status == 500
        assert "defect of Venire" in text
        assert "KeyError" not in text

    visit(store, fits=fits, act=act)


def test_a_store_in_use_says_so_and_one_that_is_looked_at_can_be_run_on_later(store: Path, fits: Fits) -> None:
    pages = Library.of_paths([store])
    with open_store(store), pytest.raises(InputError), pages.find("small").store():
        pass
    with pages.find("small").store() as opened:
        assert opened.read("counts")
    with pytest.raises(InputError, match="is looked at by `venire serve`, process"):
        open_store(store)
    pages.find("small").close_if_idle(seconds=0.0)
    open_store(store).close()


def test_a_store_that_was_replaced_is_shown_as_it_is_now(store: Path, fits: Fits, tmp_path: Path) -> None:
    """The danger: a board that was made, or is being made, of the store that was there is shown of the new one."""
    other = Path(shutil.copy(store, tmp_path / "other.duckdb"))
    with open_store(other) as opened:  # of the same number of commits
        opened.connection.execute("update store set store_id = uuid()")
        opened.connection.execute("update model set name = 'elsewhere' where id = 1")

    async def act(session: aiohttp.ClientSession) -> None:
        assert "elsewhere" not in (await ready(session, f"{BASE}/leaderboard"))[1]
        await session.get(f"{BASE}/overview")  # begins what reads the store
        os.replace(other, store)
        status, text = await ready(session, f"{BASE}/leaderboard")
        assert status == 200
        assert "elsewhere" in text
        os.remove(store)
        status, text = await ready(session, f"{BASE}/calls")
        assert status == 404
        assert "there is no store" in text

    visit(store, fits=fits, act=act)


def test_looking_changes_nothing(store: Path, fits: Fits) -> None:
    before = store.read_bytes()
    visit(store, fits=fits, act=lambda session: ready(session, f"{BASE}/overview"))
    assert store.read_bytes() == before
    assert [one.name for one in store.parent.glob("small.duckdb*")] == ["small.duckdb"]


def test_a_store_of_an_older_format_is_not_changed_by_looking(tmp_path: Path) -> None:
    fixture = sorted(Path(__file__).parents[2].glob("storage/fixtures/*.duckdb.xz"))[0]
    path = tmp_path / "old.duckdb"
    path.write_bytes(lzma.decompress(fixture.read_bytes()))
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"has format \d+: `venire status .*` mends that"), open_unchanged(path):
        pass
    assert path.read_bytes() == before


def test_downloads_hold_the_filtered_rows_under_a_fixed_name(store: Path, fits: Fits, tmp_path: Path) -> None:
    with duckdb.connect(str(store)) as connection:
        connection.execute("update model set name = '=terse' where name = 'terse'")

    async def act(session: aiohttp.ClientSession) -> None:
        for form in ("csv", "jsonl", "parquet"):
            async with session.get(f"{BASE}/calls.{form}?judge=gpt-4-0613") as response:
                body = await response.read()
                assert response.headers["Content-Disposition"] == f'attachment; filename="trials.{form}"'
            if form == "csv":
                (tmp_path / "trials.csv").write_bytes(body)
                assert b"'=terse" in body
                assert b",=terse" not in body
                with contextlib.closing((table := open_table(tmp_path / "trials.csv")).connection):
                    models = table.execute(f"select distinct {table.text('model_a')} from {{table}}").fetchall()
                assert ("=terse",) in models
            if form != "parquet":
                assert body.count(b"\n") == 60 + (form == "csv")
                assert b"claude-3-opus" not in body
            else:
                assert body[:4] == body[-4:] == b"PAR1"

    visit(store, fits=fits, act=act)


def test_over_tcp_there_is_no_sql_and_no_holding_of_the_store(store: Path, fits: Fits) -> None:
    async def go() -> None:
        with open_store(store) as opened:
            pulse, stopped = Pulse("small", opened.clock.wall()), threading.Event()
            live = Live(pulse.whole_document, stopped.set)
            pages = Pages(Library.of_run(opened), guard(), live, _fits=KeptFits(fits))
            answers = Answers(pulse, dict, lambda *_: pytest.fail("SQL was asked"))
            async with serve(store, answers, None, pages):
                base = f"http://127.0.0.1:{pages.guard.port}"
                async with aiohttp.ClientSession(base, timeout=aiohttp.ClientTimeout(total=PATIENCE)) as session:
                    for method, path in (("GET", "/status"), ("GET", "/live"), ("POST", "/sql"), ("POST", "/hold")):
                        async with session.request(method, path, headers={"Origin": base}) as response:
                            assert response.status == 404
                    await stop_button(session, base, pages.guard.page_token, stopped)

    asyncio.run(go())


async def stop_button(session: aiohttp.ClientSession, base: str, token: str, stopped: threading.Event) -> None:
    """Only a form of a page stops the run."""
    for headers, data in (
        ({}, {"token": token}),
        ({"Origin": "http://evil.example"}, {"token": token}),
        ({"Origin": base}, {"token": "wrong"}),
        ({"Origin": base}, {}),
    ):
        async with session.post(f"{BASE}/stop", headers=headers, data=data) as response:
            assert response.status == 403
        assert not stopped.is_set()
    _, text = await ready(session, f"{BASE}/overview")
    assert token in text
    async with session.post(
        f"{BASE}/stop", headers={"Origin": base}, data={"token": token}, allow_redirects=False
    ) as response:
        assert response.status == 303
    assert stopped.is_set()


def test_a_store_that_is_looked_at_is_read_beside_it_and_leaves_nothing(store: Path) -> None:
    with open_unchanged(store) as looked_at:
        assert looked_at.scratch is not None
        folder = Path(looked_at.scratch.name)
        with pytest.raises(StoreHeldError, match="is looked at by `venire serve`"), open_unchanged(store):
            pass
        with open_unchanged(store, scratch=folder) as read:
            assert read.constant == looked_at.constant
            assert read.scratch is not None
            assert Path(read.scratch.name).parent == folder
        assert not list(folder.iterdir())


def test_a_fit_is_made_once_kept_and_can_be_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    fits, begun, go_on = Fits(), threading.Event(), threading.Event()
    store: Any = SimpleNamespace(batch=1, is_only_read=False)
    source = FitSource(store, CampaignRow(1, "c", 0, "", planned=True), nullcontext)

    def slow(store: Any, campaign: Any) -> Any:
        begun.set()
        go_on.wait(PATIENCE)
        raise InputError("no verdicts")

    work = Work("slow", slow, dict)
    try:
        first = fits.get(("k",), source, work)
        assert begun.wait(PATIENCE)
        assert fits.get(("k",), source, work) is first
        assert not first.done.is_set()
        go_on.set()
        assert first.done.wait(PATIENCE)
        assert (first.document, first.error) == (None, "no verdicts")
        assert fits.get(("k",), source, work) is first  # it says so for a while
        monkeypatch.setattr("venire.live.fits._AGAIN_SECONDS", -1.0)
        second = fits.get(("k",), source, work)
        assert isinstance(second, Fit)
        assert second is not first
        assert second.done.wait(PATIENCE)
        go_on.clear()
        begun.clear()
        third = fits.get(("other",), source, work)
        assert begun.wait(PATIENCE)
        fits.cancel(("other",))
        go_on.set()
        assert third.done.wait(PATIENCE)
        assert third.document is None
    finally:
        go_on.set()
        fits.close()
