"""Pages of a store at rest, in a real browser: every call can be found, filtered, sorted, followed and taken along."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs, urljoin, urlsplit

import duckdb
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.serving import NUMBERED, PAGES, ask, demo, opened, rows, serving, settled, there
from venire.pages import registry


@dataclass(frozen=True)
class Served:
    """A store and the address of its campaign's pages."""

    base: str
    store: Path

    def at(self, page: str) -> str:
        return f"{self.base}/{page}"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The demo's campaign at rest, with faults that were tried again."""
    folder = tmp_path_factory.mktemp("served") / "demo"
    store = settled(demo(folder), faults=0.05)
    with serving(store) as command:
        yield Served(f"{command.url}/s/demo/c/1", store)


def counted(page: Page) -> int:
    """How many trials the page says there are."""
    page.wait_for_load_state()
    return int(page.locator("#count strong").inner_text().replace(",", ""))


def column(page: Page, title: str) -> list[str]:
    """The cells of a column of the table of trials."""
    page.wait_for_load_state()
    titles = [one.split("\n")[0].strip(" ▼▲\u00a0") for one in page.locator("#trials thead th").all_inner_texts()]
    place = titles.index(title) + 1
    return page.locator(f"#trials tbody td:nth-child({place})").all_inner_texts()


def choose(page: Page, key: str, label: str) -> None:
    page.locator(f"#filter [name={key}]").select_option(label=label)


WINNER = "case winner when 'model_a' then model_a when 'model_b' then model_b else winner end"
FLIPPED = """
with found as (
  select judge, instruction_id, model_a, model_b, repeat from battle
  group by all having list_sort(list(winner)) = ['model_a', 'model_b'])
select count(*) from battle join found using (judge, instruction_id, model_a, model_b, repeat)
"""


@pytest.mark.parametrize("script", [True, False], ids=["with the script", "without it"])
def test_filters_of_the_form_narrow_the_table_as_sql_says(visit: Visit, served: Served, script: bool) -> None:
    page = visit.open(served.at("calls"), java_script_enabled=script)
    everything = "select count(*) from battle where judge = 'claude-3-opus'"
    assert counted(page) == ask(served.store, "select count(*) from battle") == 960
    choose(page, "judge", "claude-3-opus")
    page.get_by_role("button", name="Filter").click()
    assert counted(page) == ask(served.store, everything)
    choose(page, "model", "strong")
    choose(page, "winner", "strong")
    choose(page, "category", "explanation")
    page.get_by_role("button", name="Filter").click()
    won = everything + f" and category = 'explanation' and {WINNER} = 'strong'"
    assert counted(page) == ask(served.store, won) > 0
    assert set(column(page, "judge")) == {"claude-3-opus"}
    assert set(column(page, "winner")) == {"strong"}
    asked = parse_qs(urlsplit(page.url).query, keep_blank_values=script)
    numbers = dict(rows(served.store, "select name, id::varchar from model"))
    assert asked | {"rows": ["100"]} == {
        "judge": ["claude-3-opus"],
        "model": [numbers["strong"]],
        "winner": [numbers["strong"]],
        "category": ["explanation"],
        "rows": ["100"],
    }
    page.get_by_role("link", name=re.compile("winner: strong.*leave this out")).click()
    fewer = everything + " and category = 'explanation' and 'strong' in (model_a, model_b)"
    assert counted(page) == ask(served.store, fewer)
    visit.assert_quiet()


def test_what_is_odd_about_a_battle_can_be_asked_for(visit: Visit, served: Served) -> None:
    page = visit.open(served.at("calls"))
    choose(page, "flipped", "yes")
    page.get_by_role("button", name="Filter").click()
    flipped = ask(served.store, FLIPPED)
    assert counted(page) == flipped > 0
    assert all("flipped" in one for one in column(page, "marks"))
    choose(page, "retried", "yes")
    page.get_by_role("button", name="Filter").click()
    assert 0 < counted(page) < flipped
    choose(page, "flipped", "any")
    page.get_by_role("button", name="Filter").click()
    assert counted(page) == ask(served.store, "select count(distinct trial) from attempt where fault <> 0")
    visit.assert_quiet()


def test_costs_and_times_can_be_asked_for_by_their_bounds(visit: Visit, served: Served) -> None:
    page = visit.open(served.at("calls"))
    page.locator("#filter summary").click()
    slowest = "select trial, sum(latency_ms) spent from attempt group by trial"
    middle = ask(served.store, f"select round(median(spent) / 1000, 2) from ({slowest})")
    page.locator("#filter [name=min_latency]").fill(f"{middle:g}")
    page.get_by_role("button", name="Filter").click()
    above = ask(served.store, f"select count(*) from ({slowest}) where spent >= ?", middle * 1000)
    assert 0 < counted(page) == above < 960
    expect(page.locator("#filter details.more")).to_have_attribute("open", "")
    assert page.locator("#filter [name=min_latency]").input_value() == f"{middle:g}"
    visit.assert_quiet()


def test_a_permalink_of_a_battle_shows_it_to_somebody_else(visit: Visit, served: Served) -> None:
    page = visit.open(served.at("calls?flipped=yes"))
    page.locator("#trials td a").first.click()
    page.wait_for_url("**/battle/**")
    trial = re.search(r"battle/(\d+)", page.url)
    assert trial is not None
    again = visit.open(page.url)
    assert again.inner_text("main") == page.inner_text("main")
    judge, a, b, instruction = rows(
        served.store, "select judge, model_a, model_b, instruction_id from battle where trial = ?", int(trial[1])
    )[0]
    for words in (judge, a, b, instruction):
        expect(again.locator("main")).to_contain_text(words)
    told = rows(
        served.store,
        "select o.text from completion o join model m on m.id = o.model join instruction i on i.id = o.instruction "
        "where i.external_id = ? and m.name in (?, ?)",
        instruction, a, b,
    )  # fmt: skip
    shown = again.locator("[aria-label=Completions] .text").all_inner_texts()
    assert sorted(" ".join(one.split()) for one in shown) == sorted(" ".join(one.split()) for (one,) in told)
    replies = rows(served.store, "select text from attempt where trial = ? and fault = 0", int(trial[1]))
    said = " ".join(" ".join(again.locator(".trial.chosen .reply").all_inner_texts()).split())
    assert all(" ".join(one.split()) in said for (one,) in replies)
    visit.assert_quiet()


def test_j_and_k_walk_through_the_battles_of_a_filter_and_back_leads_to_it(visit: Visit, served: Served) -> None:
    page = visit.open(served.at("calls?flipped=yes&judge=gpt-4-0613"))
    start, count = page.url, counted(page)
    battles = page.locator("#trials tr.group").count()
    page.locator("#trials td a").first.click()
    page.wait_for_url("**/battle/**")
    seen = [page.url]
    while page.locator("main a[rel=next]").count():
        page.keyboard.press("j")
        page.wait_for_url(lambda url: url != seen[-1])
        seen.append(page.url)
    assert len(set(seen)) == len(seen) == battles > 3
    assert all("flipped=yes" in url and "judge=gpt-4-0613" in url for url in seen)
    page.keyboard.press("k")
    page.wait_for_url(lambda url: url != seen[-1])
    before = re.search(r"battle/(\d+)", seen[-2])
    assert before is not None
    expect(page.locator(f"#t{before[1]}")).to_be_visible()
    for _ in range(len(seen) + 1):
        page.go_back()
    assert page.url == start
    assert counted(page) == count
    assert page.locator("#filter [name=flipped]").input_value() == "yes"
    visit.assert_quiet()


def test_texts_that_share_little_are_marked_when_asked_and_technical_lines_are_folded(
    visit: Visit, served: Served
) -> None:
    page = visit.open(served.at("battle/53"))
    expect(page.locator("[aria-label=Completions]")).to_contain_text("Nearly all differs")
    expect(page.locator("mark.only")).to_have_count(0)
    expect(page.locator("[aria-label=Completions] pre.code").first).to_contain_text("add_tag(")
    trial = page.locator(".trial.chosen")
    expect(trial.locator("h4")).to_contain_text("prefers")
    expect(trial.get_by_text("step 1, attempt 1")).to_be_hidden()
    trial.locator(".facts > summary").click()
    expect(trial.get_by_text("step 1, attempt 1")).to_be_visible()
    page.get_by_role("link", name="differences").click()
    expect(page.locator("mark.only").first).to_be_visible()
    visit.assert_quiet()


def test_trials_of_a_battle_stand_together_with_the_first_line_of_each_reply(visit: Visit, served: Served) -> None:
    page = visit.open(served.at("calls?rows=25"))
    for group in page.locator("#trials tbody").all()[:5]:
        instruction, models = re.split(r"\s", group.locator(".group").inner_text(), maxsplit=1)
        a, b = models.split(" against ")
        trials = [int(one) for one in group.locator("td:first-child").all_inner_texts()]
        sql = "select trial from battle where instruction_id = ? and model_a = ? and model_b = ? order by trial"
        assert [(one,) for one in trials] == rows(served.store, sql, instruction, a, b)
        said = rows(served.store, "select text from attempt where trial = ? and step = 1 and fault = 0", trials[0])
        (start,) = group.locator(".reply-start").all_inner_texts()[:1]
        assert said[0][0].startswith(start.rstrip("…").strip())
    page.get_by_role("link", name="cost").click()
    expect(page.locator("#trials thead")).to_contain_text("A against B")
    expect(page.locator("#trials tr.group")).to_have_count(0)
    visit.assert_quiet()


def test_keys_are_letters_where_somebody_writes(visit: Visit, served: Served) -> None:
    page = visit.open(served.at("calls"))
    page.keyboard.press("/")
    page.keyboard.type("j k/")
    assert page.locator("#q").input_value() == "j k/"
    visit.assert_quiet()


def test_pages_of_the_table_hold_every_row_once_in_the_order_asked_for(visit: Visit, served: Served) -> None:
    page = visit.open(served.at("calls?rows=250&judge=gpt-4-0613"))
    page.get_by_role("link", name="cost").click()
    page.get_by_role("link", name="cost").click()
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("cost")
    trials, costs = [], []
    while True:
        trials += column(page, "trial")
        costs += column(page, "cost")
        if not page.get_by_role("link", name="next", exact=True).count():
            break
        page.get_by_role("link", name="next", exact=True).click()
    assert len(trials) == len(set(trials)) == 480
    numbers = [float(one.strip("$")) for one in costs]
    assert numbers == sorted(numbers, reverse=True)
    page.get_by_role("link", name="previous", exact=True).click()
    assert column(page, "trial") == trials[:250]
    page.get_by_role("link", name="last", exact=True).click()
    assert column(page, "trial") == trials[-250:]
    page.get_by_role("link", name="first", exact=True).click()
    assert column(page, "trial") == trials[:250]
    visit.assert_quiet()


@pytest.mark.parametrize("script", [True, False], ids=["with the script", "without it"])
def test_columns_are_chosen_and_kept(visit: Visit, served: Served, script: bool) -> None:
    page = visit.open(served.at("calls?rows=25&winner=0"), java_script_enabled=script)
    ties = counted(page)
    page.locator("summary", has_text="columns").click()
    for words in ("cost", "marks", "judge"):
        page.get_by_label(words, exact=True).and_(page.locator("[type=checkbox]")).uncheck()
    page.get_by_label("category", exact=True).and_(page.locator("[type=checkbox]")).check()
    page.get_by_role("button", name="Show these").click()
    titles = [one.strip(" ▼▲\u00a0") for one in page.locator("#trials thead th").all_inner_texts()]
    assert titles == ["trial", "shown first", "winner", "status", "reply", "latency"]
    expect(page.locator("#trials tr.group").first).to_contain_text("code")
    assert counted(page) == ties
    assert len(column(page, "winner")) == 25
    page.get_by_role("link", name="next", exact=True).click()
    assert len(page.locator("#trials thead th").all()) == len(titles)
    visit.assert_quiet()


def test_downloads_have_the_rows_of_the_filter(visit: Visit, served: Served, tmp_path: Path) -> None:
    page = visit.open(served.at("calls?winner=0&order=cost&down=1"))
    count = counted(page)
    saved = {}
    for form in ("csv", "jsonl", "parquet"):
        with page.expect_download() as download:
            page.get_by_role("link", name=form, exact=True).click()
        assert download.value.suggested_filename == f"trials.{form}"
        saved[form] = tmp_path / f"trials.{form}"
        download.value.save_as(saved[form])
    with saved["csv"].open(newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    lines = [json.loads(line) for line in saved["jsonl"].read_text(encoding="utf-8").splitlines()]
    parquet = duckdb.from_parquet(str(saved["parquet"])).project("trial, winner").fetchall()
    assert len(table) == count == ask(served.store, "select count(*) from battle where winner = 'tie'") > 0
    assert [int(one["trial"]) for one in table] == [one["trial"] for one in lines] == [one for one, _ in parquet]
    assert (
        {one["winner"] for one in table} == {one["winner"] for one in lines} == {one for _, one in parquet} == {"tie"}
    )
    assert [one["cost"] for one in lines] == sorted((one["cost"] for one in lines), reverse=True)
    visit.assert_quiet()


@pytest.mark.parametrize("script", [True, False], ids=["with the script", "without it"])
@pytest.mark.parametrize(
    ("where", "word", "sql"),
    [
        ("instructions", "Bread", "select count(*) from instruction where contains(lower(turns), 'bread')"),
        ("completions", "MOON", "select count(*) from completion where contains(lower(text), 'moon')"),
    ],
)
def test_a_word_is_found_in_texts(visit: Visit, served: Served, where: str, word: str, sql: str, script: bool) -> None:
    page = visit.open(served.at("calls"), java_script_enabled=script)
    page.locator("#q").fill(word)
    page.locator("select[name=in]").select_option(where)
    page.get_by_role("button", name="Search").click()
    hits = page.locator(".hits > li")
    expect(hits).to_have_count(ask(served.store, sql))
    assert all(one.lower() == word.lower() for one in page.locator(".hits mark").all_inner_texts())
    page.locator(".hits a").first.click()
    expect(page.locator("h1")).to_contain_text("Instruction")
    visit.assert_quiet()


@pytest.mark.parametrize("script", [True, False], ids=["with the script", "without it"])
def test_a_word_is_found_in_replies_part_by_part(visit: Visit, served: Served, script: bool) -> None:
    word = "better"
    sql = (
        f"select count(*) from attempt join battle using (trial) where fault = 0 and contains(lower(text), '{word}') "
        "and judge = 'claude-3-opus'"
    )
    expected = ask(served.store, sql)
    assert expected > 50, "more than a part"
    page = visit.open(served.at("calls?judge=claude-3-opus"), java_script_enabled=script)
    page.locator("#q").fill(word.upper())
    page.get_by_role("button", name="Search").click()
    expect(page.locator("main")).to_contain_text("Within: judge: claude-3-opus")
    found: list[str] = []
    if script:
        expect(page.locator(".hits > li")).to_have_count(min(expected, 500))
        expect(page.locator("#stop")).to_be_hidden()
        found = page.locator(".hits a").all_inner_texts()
    while not script:
        page.wait_for_load_state()
        found += page.locator(".hits a").all_inner_texts()
        if not page.get_by_role("link", name="Go on").count():
            break
        page.get_by_role("link", name="Go on").click()
    assert len(set(found)) == len(found) == (min(expected, 500) if script else expected)
    visit.assert_quiet()


def test_a_search_without_hits_says_so(visit: Visit, served: Served) -> None:
    for where in ("replies", "instructions", "completions"):
        page = visit.open(served.at(f"search?q=xyzzy+plugh&in={where}"))
        expect(page.locator(".nothing")).to_have_text("Nothing was found.")
    visit.assert_quiet()


@pytest.mark.parametrize("script", [True, False], ids=["with the script", "without it"])
def test_another_method_judge_and_category_give_another_board(visit: Visit, served: Served, script: bool) -> None:
    page = opened(visit, served.at("leaderboard"), java_script_enabled=script)
    models = rows(served.store, "select count(*) from model")[0][0]
    expect(page.locator("table.board tbody tr")).to_have_count(models)
    expect(page.locator("main")).to_contain_text("bradley-terry; ")
    ratings = page.locator("table.board td:nth-child(3)").all_inner_texts()
    for key, value in (("method", "win-rate"), ("category", "explanation")):
        page.locator(f"main form [name={key}]").select_option(value)
    page.get_by_role("checkbox", name="claude-3-opus").check()
    page.get_by_role("button", name="Rate").click()
    page.wait_for_url("**method=win-rate**")
    there(page)
    expect(page.locator("main")).to_contain_text("win-rate; ")
    assert page.locator("table.board td:nth-child(3)").all_inner_texts() != ratings
    expect(page.get_by_role("checkbox", name="claude-3-opus")).to_be_checked()
    expect(page.get_by_role("checkbox", name="gpt-4-0613")).not_to_be_checked()
    where = "judge = 'claude-3-opus' and category = 'explanation' and status = 'ok'"
    counts = rows(served.store, f"select model_a, model_b, count(*) from battle where {where} group by all")
    cell = page.locator(".matrix a").first
    said = re.match(r"(\S+) against (\S+): \d+% of (\d+)", cell.get_attribute("aria-label") or "")
    assert said is not None
    assert int(said[3]) == next(n for a, b, n in counts if {a, b} == {said[1], said[2]})
    cell.click()
    assert counted(page) == int(said[3])
    visit.assert_quiet()


def test_a_method_that_ranks_without_ratings_is_shown_as_an_order(visit: Visit, served: Served) -> None:
    page = opened(visit, served.at("leaderboard?method=borda"))
    expect(page.locator("table.board tbody tr")).to_have_count(6)
    visit.assert_quiet()


def test_a_contestant_has_its_answers_from_the_best_to_the_worst_and_charts_of_its_wins(
    visit: Visit, served: Served
) -> None:
    number = ask(served.store, "select id from model where name = 'sloppy'")
    page = visit.open(served.at(f"contestant/{number}"))
    there(page)
    expect(page.locator("main")).to_contain_text("Rated ")
    answers = page.locator("[aria-label=Answers] tbody tr")
    expect(answers).to_have_count(ask(served.store, "select count(*) from instruction"))
    best = answers.first.locator("th").inner_text()
    expect(page.locator("[aria-label='Best answer'] h2")).to_have_text(f"Best on {best}")
    expect(page.locator(".intervals.shares")).to_have_count(2)
    page.get_by_role("link", name="fewest wins first").click()
    worst = answers.first.locator("th").inner_text()
    expect(page.locator("[aria-label='Worst answer'] h2")).to_have_text(f"Worst on {worst}")
    assert worst != best
    answers.first.get_by_role("link", name=f"battles on {worst}").click()
    expect(page.locator("h2").first).to_contain_text(worst)
    expect(page.locator("[aria-label=Completions]")).to_contain_text("sloppy")
    visit.assert_quiet()


def every_page(served: Served) -> dict[str, str]:
    """Each kind of page with its address."""
    trial = ask(served.store, "select min(trial) from battle")
    numbered = {
        **{name: f"{name}/{trial if name == 'battle' else 1}" for name in NUMBERED},
        "markdown": f"battle/{trial}?markdown=1",
        "plain": f"battle/{trial}?plain=1",
        "marks": f"battle/{trial}?marks=1",
        "filtered": "calls?flipped=yes&min_latency=0.1&rows=25&order=cost&columns=trial+judge+category+score+time",
        "hits": "search?q=vague&judge=gpt-4-0613",
        "hits in texts": "search?q=the&in=completions",
        "nothing": "calls?category=none+such",
    }
    return {**{one: one for one in PAGES}, "calls": "calls?rows=25", **numbered}


SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
CUT = """() => [...document.querySelectorAll('main th, main td, main p, main li, main svg')]
  .filter(one => !one.closest('.scroll') || (innerWidth < 600 && one.closest('.stack')))
  .filter(one => { const {left, right} = one.getBoundingClientRect(); return left < 0 || right > innerWidth; })
  .filter(one => getComputedStyle(one).position !== 'absolute').slice(0, 5).map(one => one.outerHTML.slice(0, 200))"""
"""What is beyond an edge of the window and in no box that scrolls; of a table that stacks on a phone nothing is."""

RIGHTMOST = """() => Math.max(...[...document.querySelectorAll('main td, main p, main li, main svg, main .text')]
  .map(one => one.getBoundingClientRect()).filter(one => one.height > 0).map(one => one.right))"""
"""Where the content of a page ends."""

KINDS = (
    *PAGES, *NUMBERED, "markdown", "plain", "marks", "filtered", "hits", "hits in texts", "nothing",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_page_fits_is_accessible_and_asks_nobody_else(visit: Visit, served: Served, kind: str) -> None:
    url = served.at(every_page(served)[kind])
    for scheme in SCHEMES:
        page = opened(visit, url, 1440, scheme)
        for width in (1440, 1024, 390):
            page.set_viewport_size({"width": width, "height": 900})
            visit.no_overflow(page)
            assert page.evaluate(CUT) == [], f"{kind} at {width}"
            if width == 1440 and kind != "search":  # of no word, a form alone
                assert page.evaluate(RIGHTMOST) > 1200, f"the right of {kind} is empty"
            assert visit.axe(page) == [], f"{kind} at {width} in {scheme}"
    visit.assert_quiet()


@pytest.mark.parametrize("kind", KINDS)
def test_every_page_works_without_the_script(visit: Visit, served: Served, kind: str) -> None:
    page = opened(visit, served.at(every_page(served)[kind]), 390, java_script_enabled=False)
    expect(page.locator("h1")).to_be_visible()
    assert page.locator("header nav a").count() == len(registry.MENU["pages"])
    visit.no_overflow(page)
    visit.assert_quiet()


def test_the_first_page_leads_to_the_overview_and_from_there_to_all(visit: Visit, served: Served) -> None:
    page = visit.open(served.base.partition("/s/")[0])
    assert page.url == served.at("overview")
    assert page.locator("#settled").get_attribute("data-count") == "960"
    for words in (*list(registry.MENU["pages"].values())[1:], "Overview"):
        page.get_by_role("navigation", name="Pages").get_by_role("link", name=words).click()
        there(page)
        expect(page.locator("header nav [aria-current]")).to_have_text(words)
    visit.assert_quiet()


@pytest.mark.parametrize("script", [True, False], ids=["with the script", "without it"])
def test_charts_are_there_with_the_page_in_the_scheme_asked_for(visit: Visit, served: Served, script: bool) -> None:
    """The danger: a chart is asked for apart from its page, and stays blank for seconds."""
    asked = opened(visit, served.at("judges"))
    seen = []
    for scheme in SCHEMES:
        page = visit.open(served.at("overview"), scheme=scheme, java_script_enabled=script)
        area = page.locator("svg.chart rect.k-answered").first
        box = area.bounding_box()
        assert box is not None
        assert box["height"] > 10
        assert page.locator("img, picture, object, embed").count() == 0
        seen.append(area.evaluate("one => getComputedStyle(one).fill"))
        axes = page.locator("svg.chart text").all_text_contents()
        assert "calls a minute" in axes
        assert any(one.endswith(" UTC") for one in axes)
    assert len(set(seen)) == len(SCHEMES)
    box = asked.locator(".intervals .range").first.bounding_box()
    assert box is not None
    assert box["width"] > 10
    visit.assert_quiet()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("battle/99999999", "has no trial 99999999"),
        ("instruction/9999", "no instruction"),
        ("contestant/9999", "has no model 9999"),
        ("calls?rows=7", "rows: 25, 50, 100, 250"),
        ("calls?order=;drop+table", "rows are not sorted by"),
        ("calls?after=x~y", "is no place in the table"),
        ("calls?status=odd", "there is no status"),
        ("calls?min_cost=1e400", "cannot be read"),
        ("leaderboard?method=none", "there is no method"),
        ("contestant/1?answers=none", "they are not sorted by"),
        ("contestant/1?after=-1", "a number of answers"),
        ("instructions?order=none", "not sorted by"),
        ("search?in=none", "replies, instructions or completions"),
        ("nowhere", "Not Found"),
        ("../7/overview", "has no campaign number 7"),
        ("../../../other", "no such store"),
    ],
)
def test_an_address_that_leads_nowhere_is_answered_in_a_sentence(
    visit: Visit, served: Served, path: str, words: str
) -> None:
    page = visit.open(urljoin(served.at(""), path), status=404)
    expect(page.locator("main")).to_contain_text(words)
    assert "Traceback" not in page.content()
    visit.assert_quiet()


@pytest.mark.parametrize("page_name", ["leaderboard", "overview"])
def test_intervals_have_the_width_of_a_phone(visit: Visit, served: Served, page_name: str) -> None:
    page = opened(visit, served.at(page_name), 390)
    bars = page.locator(".board .bar")
    boxes = [bars.nth(number).bounding_box() for number in range(bars.count())]
    assert len(boxes) == 7  # of the axis, and of each model
    assert all(box is not None and box["width"] > 300 and box["x"] + box["width"] <= 390 for box in boxes)
    labels = page.locator(".board .axis text")
    assert labels.count() > 3
    ends = sorted(box["x"] + box["width"] for box in (one.bounding_box() for one in labels.all()) if box is not None)
    assert ends[-1] <= 390
