"""Voting on the pages of a served store, in a browser: blind, by keyboard, and every vote in the store."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.serving import PATIENCE_SECONDS, Command, command, demo, opened, rows, settled
from tests.browser.test_hostile import TEXTS, write
from venire.live.guard import DoorAddress, Guard
from venire.live.library import Library
from venire.live.pages import Pages
from venire.live.server import serve_pages
from venire.live.voting import Voting
from venire.storage.store.files import StoreLock

COUNT = 12
VOTES = "select annotator, instruction_id, model_a, model_b, swapped, winner, note from people_vote order by all"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The demo's campaign on a few instructions, judged."""

    def change(text: str) -> str:
        return text.replace('policy = "all-pairs"', 'policy = "all-pairs"\ninstructions = 4')

    return settled(demo(tmp_path / "voted", change))


@pytest.fixture
def served(store: Path) -> Iterator[tuple[Command, Path]]:
    words = ("--annotate", "--as", "crowd", "--count", COUNT, "--at", "127.0.0.1:0")
    with command("serve", store, *words) as one:
        yield one, store


def voting(visit: Visit, served: tuple[Command, Path], name: str | None = "ann", **options: Any) -> Page:
    """The page to vote on, reached from the overview, begun under a name."""
    base = f"{served[0].url}/s/voted/c/1"
    page = visit.open(f"{base}/annotate", **options)
    if name is not None:
        page.locator("#name").fill(name)
        page.keyboard.press("Enter")
        expect(page.locator("#me")).to_have_text(name)
    return page


def place(page: Page, number: int) -> None:
    expect(page.locator("#place")).to_have_text(f"Battle {number} of {COUNT}")


def test_twelve_votes_by_keyboard_are_in_the_store_and_on_the_board(visit: Visit, served: tuple[Command, Path]) -> None:
    base = f"{served[0].url}/s/voted/c/1"
    page = opened(visit, f"{base}/overview")
    page.get_by_role("link", name="Vote").click()
    expect(page.get_by_role("heading", name="Who votes?")).to_be_visible()
    page.keyboard.press("1")  # into the field of the name: no vote yet
    page.locator("#name").fill("  ann ")
    page.keyboard.press("Enter")
    answers: list[dict[int, str]] = []
    winners = "102210012102"
    for number in range(1, COUNT + 1):
        if number == 6:
            page.reload()
            expect(page.locator("#voted")).to_have_text(f"5 of {COUNT} voted")
        place(page, number)
        answers.append({side: page.locator(f"#text-{side}").text_content() or "" for side in (1, 2)})
        if number == 4:
            page.keyboard.press("n")
            page.keyboard.type("b0th <b>wrong</b>, 1 worse")
            page.keyboard.press("Escape")
        page.keyboard.press(winners[number - 1])
    expect(page.locator("#where")).to_have_text("All your votes are in the store, and can still be changed.")
    page.keyboard.press("b")
    expect(page.locator("button[aria-pressed=true]")).to_have_text("Answer 2 2")
    page.keyboard.press("0")  # a later vote takes its place
    expect(page.locator("#voted")).to_have_text(f"{COUNT} of {COUNT} voted")
    expect(page.locator("#unsent")).to_be_hidden()

    for name in ("leaderboard", "judges"):
        board = opened(visit, f"{base}/{name}")
        table = board.get_by_role("region", name="Agreement with people")
        expect(table).to_be_visible()
        assert "kappa" in table.inner_text()
        assert "12" in table.locator("tbody tr").first.inner_text().split()
        expect(board.get_by_text("12 votes of 1 annotator (crowd)")).to_be_visible()
        assert visit.axe(board) == []
    visit.assert_quiet()
    served[0].end()
    found = rows(served[1], VOTES)
    assert len(found) == COUNT
    assert {row[0] for row in found} == {"ann"}
    texts = dict(rows(served[1], "select model || chr(0) || instruction_id, text from (select m.name model, "
                      "i.external_id instruction_id, c.text from completion c join model m on m.id = c.model "
                      "join instruction i on i.id = c.instruction)"))  # fmt: skip
    by_texts = {frozenset(sides.values()): (sides, key) for sides, key in zip(answers, winners[:-1] + "0", strict=True)}
    for _, instruction, model_a, model_b, swapped, winner, note in found:
        a, b = (texts[f"{one}\0{instruction}"] for one in (model_a, model_b))
        sides, key = by_texts[frozenset((a, b))]
        assert sides[1] == (b if swapped else a)
        wanted = "tie" if key == "0" else "model_a" if sides[int(key)] == a else "model_b"
        assert winner == wanted
        assert note == ("b0th <b>wrong</b>, 1 worse" if sides is answers[3] else None)


def rows_of(served: tuple[Command, Path], sql: str) -> list[Any]:
    """Rows of the store once nobody holds it any more."""
    served[0].end()
    return rows(served[1], sql)


def test_two_people_vote_on_the_same_battles_in_orders_of_their_own(visit: Visit, served: tuple[Command, Path]) -> None:
    pages = [voting(visit, served, name) for name in ("ann", "bob")]
    seen: list[list[frozenset[str]]] = []
    for page in pages:
        battles = []
        for number in range(1, COUNT + 1):
            place(page, number)
            battles.append(frozenset(page.locator(f"#text-{side}").text_content() or "" for side in (1, 2)))
            page.keyboard.press("1")
        expect(page.locator("#where")).to_contain_text("All your votes are in the store")
        seen.append(battles)
    assert set(seen[0]) == set(seen[1])
    assert seen[0] != seen[1]
    other = voting(visit, served, "ann")  # another browser: votes come from the store
    expect(other.locator("#voted")).to_have_text(f"{COUNT} of {COUNT} voted")
    other.get_by_role("button", name="Another name").click()
    other.locator("#name").fill("cat")
    other.get_by_role("button", name="Begin").click()
    expect(other.locator("#voted")).to_have_text(f"0 of {COUNT} voted")
    visit.assert_quiet()
    found = rows_of(served, VOTES)
    assert [sum(row[0] == name for row in found) for name in ("ann", "bob", "cat")] == [COUNT, COUNT, 0]


@contextmanager
def pages_here(store: Path) -> Iterator[Pages]:
    """The same pages, served by a thread of this process, so that a test can take the store away from them."""
    pages = Pages(Library.of_paths([store]), Guard(DoorAddress(port=0)), voting=Voting("crowd", count=COUNT))
    begun, over = threading.Event(), threading.Event()

    async def go() -> None:
        async with serve_pages(pages):
            begun.set()
            await asyncio.to_thread(over.wait)

    server = threading.Thread(target=asyncio.run, args=(go(),))
    server.start()
    try:
        assert begun.wait(PATIENCE_SECONDS)
        yield pages
    finally:
        over.set()
        server.join(PATIENCE_SECONDS)


def test_votes_wait_in_the_browser_while_the_store_is_held(visit: Visit, store: Path) -> None:
    """The danger: a vote that was given is lost, or nobody hears that it is not kept."""
    with pages_here(store) as pages:
        page = visit.open(f"http://127.0.0.1:{pages.guard.port}/s/voted/annotate")
        page.locator("#name").fill("ann")
        page.keyboard.press("Enter")
        place(page, 1)
        (served,) = pages.library.stores.values()
        served.close_if_idle(0.0)  # as after half a minute
        lock = StoreLock.acquire(store)
        try:
            for number in (1, 2):
                place(page, number)
                page.keyboard.press("1")
            expect(page.locator("#unsent")).to_contain_text("2 votes are not in the store yet: the store")
            expect(page.locator("#unsent")).to_contain_text("is held by process")
            expect(page.locator("#voted")).to_have_text(f"2 of {COUNT} voted, 2 not sent")
            assert visit.axe(page) == []
        finally:
            lock.release()
        page.reload()  # or ten seconds later by itself
        expect(page.locator("#voted")).to_have_text(f"2 of {COUNT} voted")
        place(page, 3)
        page.keyboard.press("2")
        expect(page.locator("#voted")).to_have_text(f"3 of {COUNT} voted")
        expect(page.locator("#unsent")).to_be_hidden()
        assert {one.rpartition(": ")[2] for one in visit.failed_requests} == {"409"}
    assert len(rows(store, VOTES)) == 3


def test_the_page_is_accessible_and_fits_a_phone(visit: Visit, served: tuple[Command, Path]) -> None:
    for width in (1280, 390):
        for scheme in ("light", "dark"):
            page = voting(visit, served, name=None, width=width, scheme=scheme)
            assert visit.axe(page) == []
            visit.no_overflow(page)
            page.locator("#name").fill(f"a name of {width} {scheme} that is rather long indeed")
            page.keyboard.press("Enter")
            place(page, 1)
            page.keyboard.press("n")
            assert visit.axe(page) == []
            visit.no_overflow(page)
    visit.assert_quiet()


def test_texts_that_want_to_be_more_do_nothing(visit: Visit, store: Path, tmp_path: Path) -> None:
    folder = tmp_path / "hostile"
    folder.mkdir()
    write(folder / "i.jsonl", [{"instruction_id": f"i{n}", "instruction": one} for n, one in enumerate(TEXTS)])
    write(
        folder / "c.jsonl",
        [
            {"instruction_id": f"i{n}", "model": model, "completion": f"{TEXTS[(n + m) % len(TEXTS)]}{m}"}
            for n in range(len(TEXTS))
            for m, model in enumerate(("x", "y"))
        ],
    )
    write(folder / "e.jsonl", [{"model": model, "elo": 1000 + n} for n, model in enumerate(("x", "y"))])
    (folder / "hostile.toml").write_text(
        'name = "<img src=x onerror=window.__pwned=1>"\nstore = "hostile.duckdb"\n[data]\ninstructions = "i.jsonl"\n'
        'completions = "c.jsonl"\nelo = "e.jsonl"\n[plan]\npolicy = "all-pairs"\n[[judge]]\n'
        'model = "simulated/gpt-4-0613@1"\n',
        encoding="utf-8",
    )
    hostile = settled(folder / "hostile.toml")
    with command("serve", hostile, "--annotate", "--at", "127.0.0.1:0") as one:
        page = visit.open(f"{one.url}/s/hostile/annotate", 390)
        dialogs: list[str] = []
        page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
        page.locator("#name").fill(TEXTS[2][:80])
        page.keyboard.press("Enter")
        shape = "() => [...document.querySelectorAll('*')].map(one => one.localName).join(' ')"
        expect(page.locator("#place")).to_contain_text("Battle 1 of")
        count = int((page.locator("#place").text_content() or "").split()[-1])
        first = page.evaluate(shape)
        for number in range(1, count + 1):
            expect(page.locator("#place")).to_have_text(f"Battle {number} of {count}")
            visit.no_overflow(page)
            page.keyboard.press("n")
            page.locator("#note").fill(TEXTS[number % len(TEXTS)][:2000])
            page.keyboard.press("Escape")
            page.keyboard.press("1")
        expect(page.locator("#where")).to_contain_text("All your votes are in the store")
        assert page.evaluate(shape) == first
        assert page.evaluate("window.__pwned === undefined")
        assert dialogs == []
        visit.assert_quiet()
    assert len(rows(hostile, "select * from vote")) == count
