"""A report's file in a real browser: readable by everybody, whole on a phone and on paper, and moved by no text."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Dialog, Page

from tests.browser.conftest import Visit
from tests.browser.serving import aside
from tests.browser.test_hostile import make
from venire.configs.loading import load_campaign
from venire.embedded import Embedded
from venire.session import Session

A4_PIXELS = 703
"""What A4 has between the margins of the report's sheet."""

DEMO = Path(__file__).resolve().parents[2] / "configs" / "demo"


def written(store: Path, folder: Path) -> Path:
    """The report of a store as a file, by the command."""
    out = folder / "report.html"
    subprocess.run([sys.executable, "-m", "venire", "report", str(store), "-o", str(out)], check=True, timeout=50)
    return out


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the demo, judged in this process."""
    folder = tmp_path_factory.mktemp("plain")
    for one in (*DEMO.glob("*.jsonl"), DEMO / "elo.csv", DEMO / "campaign.toml"):
        (folder / one.name).write_bytes(one.read_bytes())

    def run() -> Path:
        campaign = load_campaign(folder / "campaign.toml")
        with Session(campaign) as session:
            session.run(environ={}, embedded=Embedded(direct=True))
        return campaign.store

    return written(aside(run), folder)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a store whose every text wants to be more than a text."""
    folder = tmp_path_factory.mktemp("hostile")
    return written(make(folder), folder)


def opened(visit: Visit, path: Path, width: int = 1280, scheme: Literal["light", "dark"] = "light") -> Page:
    """A report's file as a reader opens it, beside what it asks for."""
    return visit.open(path.as_uri(), width, scheme)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_report_has_no_faults_of_access(visit: Visit, plain: Path, scheme: Literal["light", "dark"]) -> None:
    page = opened(visit, plain, scheme=scheme)
    assert visit.axe(page) == []
    visit.assert_quiet()


def test_a_report_is_whole_on_a_phone_and_on_paper(visit: Visit, plain: Path, hostile: Path) -> None:
    for path in (plain, hostile):
        page = opened(visit, path, 390)
        visit.no_overflow(page)
        page.emulate_media(media="print")
        page.set_viewport_size({"width": A4_PIXELS, "height": 1000})
        wide = page.evaluate(
            "() => [...document.querySelectorAll('table, pre, svg')].filter(one => "
            "one.getBoundingClientRect().right > innerWidth + 1).map(one => one.outerHTML.slice(0, 120))"
        )
        if path == plain:
            assert wide == []
        tables = page.locator(".scroll").evaluate_all("all => all.map(one => getComputedStyle(one).breakInside)")
        assert set(tables) == {"avoid"}  # a table that fits on a page is not cut in two
        assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")


def test_nothing_of_a_hostile_text_runs_or_asks(visit: Visit, hostile: Path) -> None:
    dialogs: list[Dialog] = []
    page = opened(visit, hostile)
    page.on("dialog", lambda dialog: dialogs.append(dialog))
    assert page.evaluate("window.__pwned === undefined")
    assert page.evaluate("document.scripts.length") == 0
    assert page.locator("h1").count() == 1
    assert page.locator("body > *").evaluate_all("all => all.map(one => one.localName)") == ["main"]
    assert page.locator("iframe, object, embed, math, base, form, img, [style], body style").count() == 0
    odd = page.evaluate(
        "() => [...document.querySelectorAll('body *')].flatMap(one => [...one.attributes].filter(each => "
        "each.name.startsWith('on') || (['href', 'src', 'action', 'srcset', 'xlink:href'].includes(each.name) "
        "&& !/^#/.test(each.value))).map(each => `${one.localName} ${each.name}`))"
    )
    assert odd == []
    assert dialogs == []
    assert hostile.stat().st_size < 3_000_000
    visit.assert_quiet()
