"""The page on which people vote, in a browser, from a file: it keeps votes, asks nobody, and its table is taken in."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.serving import demo, rows, settled
from tests.browser.test_hostile import TEXTS, write
from venire.annotation import annotation_pages
from venire.storage.store.opening import open_store, reading
from venire.storage.transfer.formats import tables
from venire.storage.transfer.importing import add

COUNT = 12
MODELS = ("strong", "solid", "verbose", "terse", "sloppy", "evasive")


def venire(*words: object) -> str:
    """What a command prints."""
    done = subprocess.run([sys.executable, "-m", "venire", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's campaign on a few instructions, judged."""

    def change(text: str) -> str:
        return text.replace('policy = "all-pairs"', 'policy = "all-pairs"\ninstructions = 4')

    return settled(demo(tmp_path_factory.mktemp("voted"), change))


@pytest.fixture
def file(store: Path, tmp_path: Path) -> Path:
    """A page of twelve battles."""
    path = tmp_path / "page.html"
    with reading(store) as opened:
        path.write_text(annotation_pages(opened, count=COUNT, seed=3).pages[0].html, encoding="utf-8")
    return path


def held(page: Page) -> Any:
    """What the file has as data."""
    return json.loads(page.locator("#data").text_content() or "")


def table(page: Page) -> list[dict[str, str]]:
    """The rows in the box to copy from."""
    return list(csv.DictReader(page.locator("#rows").input_value().splitlines()))


def place(page: Page, number: int) -> None:
    expect(page.locator("#place")).to_have_text(f"Battle {number} of {COUNT}")


def test_twelve_votes_by_keyboard_become_a_row_on_the_board(
    visit: Visit, store: Path, file: Path, tmp_path: Path
) -> None:
    page = visit.open(file.as_uri())
    page.locator("#name").fill("ann")
    page.keyboard.press("Escape")
    for number in range(1, 6):
        place(page, number)
        page.keyboard.press("102"[number % 3])
    page.reload()
    place(page, 6)
    expect(page.locator("#name")).to_have_value("ann")
    page.keyboard.press("b")
    page.keyboard.press("Backspace")
    place(page, 4)
    expect(page.locator("button[aria-pressed=true]")).to_have_text("Tie 0")
    page.keyboard.press("2")
    place(page, 6)  # the fifth has a vote already
    page.keyboard.press("n")
    page.keyboard.type('b0th "wrong", 1 worse')
    page.keyboard.press("Escape")
    expect(page.locator("#voted")).to_have_text(f"5 of {COUNT} voted")
    for number in range(6, COUNT + 1):
        place(page, number)
        page.keyboard.press("1")
    expect(page.locator("#left")).to_have_text("All battles have a vote.")
    page.reload()
    expect(page.locator("#place")).to_have_text("End")

    with page.expect_download() as waiting:
        page.locator("#end .download").click()
    votes = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(votes)
    assert votes.read_text(encoding="utf-8") == page.locator("#rows").input_value()
    found = table(page)
    assert [row["winner"] for row in found[:6]] == [
        "tie", "answer_2", "answer_1", "answer_2", "answer_2", "answer_1",
    ]  # fmt: skip
    assert {row["annotator"] for row in found} == {"ann"}
    assert found[5]["note"] == 'b0th "wrong", 1 worse'

    said = venire("import", "votes", votes, "--as", "crowd", "--store", store)
    assert f"{COUNT} votes of crowd new" in said
    assert "0 votes of crowd new" in venire("import", "votes", votes, "--as", "crowd", "--store", store)
    texts = dict(rows(store, "select model || chr(0) || instruction_id, text from (select m.name model, "
                      "i.external_id instruction_id, c.text from completion c join model m on m.id = c.model "
                      "join instruction i on i.id = c.instruction)"))  # fmt: skip
    by_texts = {
        frozenset(answer["text"] for answer in battle["answers"]): (battle, row["winner"])
        for battle, row in zip(held(page)["battles"], found, strict=True)
    }
    kept = rows(store, "select instruction_id, model_a, model_b, winner from people_vote where annotator = 'ann'")
    assert len(kept) == COUNT
    for instruction, model_a, model_b, winner in kept:
        a, b = (texts[f"{one}\0{instruction}"] for one in (model_a, model_b))
        battle, chosen = by_texts[frozenset((a, b))]
        wanted = "tie" if chosen == "tie" else battle["answers"][int(chosen[-1]) - 1]["text"]
        assert {"model_a": a, "model_b": b, "tie": "tie"}[winner] == wanted
    board = json.loads(venire("rate", store, "--json"))["diagnostics"]["people"]
    assert [one["votes"] for one in board["judges"]] == [COUNT, COUNT]
    assert all(one["kappa"]["value"] is not None for one in board["judges"])
    shown = venire("rate", store)
    assert re.search(r"Judges and people +votes: people\n.*kappa", shown)
    visit.assert_quiet()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_accessible_and_fits_a_phone(visit: Visit, file: Path, scheme: Literal["light", "dark"]) -> None:
    for width in (1280, 390):
        page = visit.open(file.as_uri(), width, scheme)
        for _ in range(2):
            assert visit.axe(page) == []
            visit.no_overflow(page)
            page.keyboard.press("1")
            page.keyboard.press("n")
            page.keyboard.press("Escape")
            page.locator("summary").click()
            page.locator("h1").click()
            page.keyboard.press("b")
        page.evaluate("document.activeElement.blur()")
        for _ in range(COUNT):
            page.keyboard.press("f")
        expect(page.locator("#place")).to_have_text("End")
        assert visit.axe(page) == []
        visit.no_overflow(page)
    visit.assert_quiet()


def test_the_file_names_no_model_and_the_page_can_ask_nobody(visit: Visit, store: Path, file: Path) -> None:
    page = visit.open(file.as_uri())
    data = held(page)
    assert data.keys() == {"page", "annotator", "battles"}
    for battle in data["battles"]:
        assert battle.keys() == {"asked", "answers"}
        for answer in battle["answers"]:
            assert answer.keys() == {"code", "text"}
    opaque = file.read_text(encoding="utf-8")
    known = {str(one) for (one,) in rows(store, "select lower(hex(completion_key)) from completion")}
    assert not any(one in opaque for one in known)
    ids = {one for (one,) in rows(store, "select external_id from instruction")}
    assert not any(f'"{one}"' in opaque for one in (*ids, *MODELS))
    refused = page.evaluate("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')")
    assert refused == "refused"
    assert all("Content Security Policy" in one for one in visit.console_errors)
    assert visit.foreign_requests == []


def test_buttons_do_what_keys_do_and_a_second_window_shows_the_same(visit: Visit, file: Path) -> None:
    page = visit.open(file.as_uri(), 390)
    other = page.context.new_page()
    other.goto(file.as_uri())
    page.get_by_role("button", name="Answer 2").click()
    place(page, 2)
    place(other, 2)
    page.get_by_role("button", name="Back").click()
    expect(page.get_by_role("button", name="Answer 2")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Whole texts").click()
    expect(page.locator("#text-1")).to_have_css("max-height", "none")
    visit.assert_quiet()


def test_a_long_text_is_folded_and_whole_when_asked_for(visit: Visit, tmp_path: Path) -> None:
    ends = {"x": "\U0001f600" * 50_001 + "the end of x", "y": "short", "z": "w" * 99_999 + "\U0001f600" + " end of z"}
    write(tmp_path / "i.jsonl", [{"instruction_id": "i", "instruction": "q" * 100_001}])
    write(
        tmp_path / "c.jsonl",
        [{"instruction_id": "i", "model": model, "completion": text} for model, text in ends.items()],
    )
    with open_store(tmp_path / "s.duckdb") as store:
        for name, kind in (("i", "instructions"), ("c", "completions")):
            add(store, tables.read(tmp_path / f"{name}.jsonl", kind))
        made = annotation_pages(store).pages[0]
    file = tmp_path / "page.html"
    file.write_text(made.html, encoding="utf-8")
    page = visit.open(file.as_uri())
    assert {answer["text"] for battle in held(page)["battles"] for answer in battle["answers"]} == {*ends.values()}
    shown: set[str] = set()
    for number in (1, 2, 3):
        expect(page.locator("#place")).to_have_text(f"Battle {number} of 3")
        for side in (1, 2):
            box, button = page.locator(f"#text-{side}"), page.locator(f"#unfold-text-{side}")
            text = box.text_content() or ""
            if text == "short":
                expect(button).to_be_hidden()
                continue
            assert "end of" not in text
            assert text.endswith("\u2026")
            assert not re.search("[\ud800-\udfff\ufffd]", text)
            if number % 2:
                button.click()
            else:
                page.keyboard.press("w")
            expect(button).to_have_attribute("aria-expanded", "true")
            shown.add(box.text_content() or "")
            if number % 2:
                button.click()
            else:
                page.keyboard.press("w")
            expect(button).to_have_attribute("aria-expanded", "false")
            assert visit.axe(page) == []
        page.keyboard.press("1")
    assert shown == {ends["x"], ends["z"]}
    visit.assert_quiet()


def test_texts_that_want_to_be_more_do_nothing(visit: Visit, tmp_path: Path) -> None:
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
    with open_store(folder / "s.duckdb") as store:
        for name, kind in (("i", "instructions"), ("c", "completions")):
            add(store, tables.read(folder / f"{name}.jsonl", kind))
        made = annotation_pages(store).pages[0]
    path = folder / "<img src=x onerror=alert(1)>.html"
    path.write_text(made.html, encoding="utf-8")
    page = visit.open(path.as_uri(), 390)
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    shape = "() => [...document.querySelectorAll('*')].map(one => one.localName).join(' ')"
    first = page.evaluate(shape)
    for number in range(1, len(TEXTS) + 1):
        expect(page.locator("#place")).to_have_text(f"Battle {number} of {len(TEXTS)}")
        visit.no_overflow(page)
        page.keyboard.press("1")
    page.keyboard.press("b")
    page.keyboard.press("n")
    page.keyboard.type(TEXTS[0])
    assert page.evaluate(shape) == first
    assert page.evaluate("window.__pwned === undefined")
    assert dialogs == []
    visit.assert_quiet()
