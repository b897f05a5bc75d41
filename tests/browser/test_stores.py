"""Pages of stores that are odd, old, held, replaced or gone: each has a page with a sentence, and the others go on."""

from __future__ import annotations

import json
import lzma
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.serving import NUMBERED, PAGES, PATIENCE_SECONDS, Command, demo, opened, rows, serving, settled
from venire.storage.store.opening import open_store

FIXTURES = Path(__file__).parent.parent / "storage" / "fixtures"
CONTENTS = ("sound", "old", "held", "missing", "text", "empty", "folder", "grades", "ballots", "two")

JUDGE = '[[judge]]\nname = "{0}"\nmodel = "simulated/{0}@1"\nprotocol = "{1}"\n'
HOLDER = """
import sys
from venire.storage.store.opening import open_store
with open_store(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def small(folder: Path, name: str, *protocols: str) -> Path:
    """A store of a small campaign whose judges have these protocols."""
    judges = "".join(
        JUDGE.format(judge, protocol)
        for judge, protocol in zip(("gpt-4-0613", "claude-3-opus"), protocols, strict=False)
    )

    def change(text: str) -> str:
        text = text.replace('policy = "all-pairs"', 'policy = "all-pairs"\ninstructions = 3')
        return text.partition("[[judge]]")[0].replace('name = "demo"', f'name = "{name}"') + judges

    file = demo(folder / name, change)
    if "direct-reference" in protocols:
        table = folder / name / "instructions.jsonl"
        lines = [json.loads(line) for line in table.read_text(encoding="utf-8").splitlines()]
        table.write_text(
            "".join(json.dumps({**one, "reference": "it is so"}) + "\n" for one in lines), encoding="utf-8"
        )
    return settled(file).rename(folder / f"{name}.duckdb")


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Command, Path]]:
    """One command that serves stores of every kind, and their folder."""
    folder = tmp_path_factory.mktemp("shelf")
    small(folder, "sound", "two-stage", "binary")
    small(folder, "grades", "direct", "direct-reference")
    small(folder, "ballots", "listwise")
    (folder / "old.duckdb").write_bytes(lzma.decompress((FIXTURES / "schema-0006.duckdb.xz").read_bytes()))
    (folder / "two.duckdb").write_bytes(lzma.decompress((FIXTURES / "schema-0010.duckdb.xz").read_bytes()))
    open_store(folder / "two.duckdb").close()
    shutil.copy(folder / "sound.duckdb", folder / "held.duckdb")
    (folder / "text.duckdb").write_text("<script>alert(1)</script> no store", encoding="utf-8")
    open_store(folder / "empty.duckdb").close()
    (folder / "missing.duckdb").touch()
    (folder / "folder.duckdb").touch()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder / "held.duckdb")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert holder.stdin is not None
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    try:
        with serving(*(folder / f"{name}.duckdb" for name in CONTENTS)) as command:
            _ = command.url
            (folder / "missing.duckdb").unlink()
            (folder / "folder.duckdb").unlink()
            (folder / "folder.duckdb").mkdir()
            yield command, folder
    finally:
        holder.stdin.close()
        holder.wait(PATIENCE_SECONDS)
        holder.stdout.close()


def without_trace(page: Page) -> None:
    assert not re.search(r"Traceback|Error:|\.py\b|_duckdb", page.inner_text("body")), page.inner_text("body")


def test_the_list_has_every_store_and_says_what_is_wrong_with_it(visit: Visit, shelf: tuple[Command, Path]) -> None:
    page = visit.open(f"{shelf[0].url}/")
    said = {
        "old": "format", "held": "process", "missing": "there is no store", "text": "store", "folder": "no store",
        "empty": "no campaign yet", "sound": "at rest", "grades": "at rest", "ballots": "at rest",
    }  # fmt: skip
    for name, words in said.items():
        expect(page.locator("tr", has_text=f"{name}.duckdb")).to_contain_text(words)
    expect(page.locator("tr", has_text="two.duckdb")).to_have_count(2)
    without_trace(page)
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        visit.no_overflow(page)
        assert visit.axe(page) == []
    visit.assert_quiet()


@pytest.mark.parametrize("name", ["old", "held", "missing", "text", "folder", "empty"])
@pytest.mark.parametrize("path", ["", "/c/1/overview", "/c/1/calls", "/c/1/leaderboard", "/c/1/search?q=a"])
def test_a_store_that_cannot_be_shown_has_a_page_with_a_sentence(
    visit: Visit, shelf: tuple[Command, Path], name: str, path: str
) -> None:
    page = visit.open(f"{shelf[0].url}/s/{name}{path}", status=409 if name == "held" else 404)
    expect(page.locator("#waiting p").first).to_contain_text(f"{name}.duckdb")
    without_trace(page)
    visit.no_overflow(page)
    if not path:
        assert visit.axe(page) == []
    visit.assert_quiet()


WITHOUT = {"grades": ("audit",)}
"""What there is not of a campaign, which its page says in a sentence."""


@pytest.mark.parametrize("name", ["grades", "ballots"])
def test_campaigns_of_every_kind_have_every_page(visit: Visit, shelf: tuple[Command, Path], name: str) -> None:
    command, folder = shelf
    trial = rows(folder / f"{name}.duckdb", "select min(id) from trial")[0][0]
    for path in (*PAGES, *(f"{one}/{trial if one == 'battle' else 1}" for one in NUMBERED)):
        status = 404 if path in WITHOUT.get(name, ()) else 200
        page = opened(visit, f"{command.url}/s/{name}/c/1/{path}", 390, status=status)
        expect(page.locator("h1")).to_be_visible()
        without_trace(page)
        visit.no_overflow(page)
        page.context.close()
    page = opened(visit, f"{command.url}/s/{name}/c/1/leaderboard")
    expect(page.locator("table.board tbody tr, main .scroll tbody tr").first).to_be_visible()
    assert visit.axe(page) == []
    visit.assert_quiet()


def test_campaigns_of_one_store_lead_to_each_other(visit: Visit, shelf: tuple[Command, Path]) -> None:
    page = visit.open(f"{shelf[0].url}/s/two/c/1/overview")
    expect(page.locator("h1")).to_contain_text("first")
    page.locator("header .run summary").click()
    page.locator("header .run").get_by_role("link", name="second").click()
    expect(page.locator("h1")).to_contain_text("second")
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Calls").click()
    counted = page.locator("#count strong").inner_text()
    assert int(counted) == rows(shelf[1] / "two.duckdb", "select count(*) from planned where campaign = 2")[0][0]
    visit.assert_quiet()


def test_a_store_that_is_replaced_is_shown_as_it_is_now(visit: Visit, shelf: tuple[Command, Path]) -> None:
    command, folder = shelf
    page = visit.open(f"{command.url}/s/sound/c/1/overview")
    expect(page.locator("h1")).to_contain_text("sound")
    shutil.copy(folder / "grades.duckdb", folder / "newer")
    os.replace(folder / "newer", folder / "sound.duckdb")
    page.reload()
    expect(page.locator("h1")).to_contain_text("grades")
    without_trace(page)
    other = visit.open(f"{command.url}/s/ballots/c/1/calls")
    expect(other.locator("#trials tbody tr").first).to_be_visible()
    assert visit.console_errors == visit.page_errors == visit.foreign_requests == []
