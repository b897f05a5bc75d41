"""Take pictures of the web pages into docs/screens/: `make screens`.

Of a demo that is run anew, and of recorded judgments that are replayed, in the folder that VENIRE_DATA names
(../shared/data beside the checkout without it): without that folder their pictures stay as they are.
With names as arguments, only these: `python docs/screens/make.py leaderboard recorded-battle`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
from playwright.sync_api import Browser, Page, sync_playwright
from small_png import with_palette

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
    "--no-proxy-server",
)
HIGHEST = 1600
"""Longer pages end here."""
PATIENCE_SECONDS = 120.0
SET = "vicuna80_peers"
DIALECTS = {
    "gpt-4": "one-two-three",
    "claude-v1": "one-two-three",
    "gpt-3.5-turbo": "one-two-three",
    "bard": "one-two-three",
    "vicuna-13b": "scores",
}
"""The judges of the recorded set, each with the dialect of its replies (docs/replay.md)."""


@dataclass(frozen=True, slots=True)
class Shot:
    """A picture: of what, at which address below the campaign or in which file, in which window, and what it shows."""

    of: str
    page: str
    says: str
    width: int = 1440
    dark: bool = False


SHOTS = {
    "overview": Shot(
        "demo", "overview", "A campaign that is done: who leads, what to doubt, then progress, money, judges and calls."
    ),
    "overview-running": Shot(
        "running", "overview", "The same while it runs: who leads so far, pace and time left, a button to stop it."
    ),
    "leaderboard": Shot(
        "demo", "leaderboard", "Ratings with intervals on one scale, and wins between each two, seen and expected."
    ),
    "judges": Shot("demo", "judges", "What each judge is worth, with intervals, and how far they agree."),
    "calls": Shot("demo", "calls?judge=gpt-4-0613&flipped=yes", "The calls, here those of one judge that flipped."),
    "search": Shot("demo", "search?q=practical+suggestion&in=replies", "Words looked for in all replies."),
    "battle": Shot("demo", "battle/53", "One battle: its completions, and each judge's verdicts above its reasons."),
    "instructions": Shot("demo", "instructions", "Instructions by how much they tell models apart, with remarks."),
    "instruction": Shot("demo", "instruction/1", "One instruction, and the pairs of models that it tells apart."),
    "contestant": Shot("demo", "contestant/1", "One model: against each other one, by category, and its answers."),
    "compare": Shot("demo", "compare", "Two judges side by side: ratings, agreement, and where they disagree most."),
    "audit": Shot("demo", "audit", "What could be wrong with the result, worst first, with the calls behind it."),
    "stores": Shot("stores", "/", "Where several stores are served: which there are."),
    "report": Shot("demo", "report.html", "What `venire report` writes: one file, here its beginning."),
    "report-phone": Shot("demo", "report.html", "The report on a phone.", width=390, dark=True),
    "recorded-report": Shot("recorded", "report.html", "The report on recorded judges, here its beginning."),
    "annotate": Shot("demo", "page.html", "The page of `venire annotate`, on which people vote blind."),
    "annotate-phone": Shot("demo", "page.html", "The same on a phone.", width=390, dark=True),
    "vote-begin": Shot("voting", "annotate", "`venire serve STORE --annotate`: who votes is asked for a name."),
    "vote": Shot("voting", "annotate", "The page to vote on, served: each vote goes to the store."),
    "vote-phone": Shot("voting", "annotate", "The same on a phone.", width=390, dark=True),
    "battle-people": Shot("voting", "battle/53", "What people said of a battle: the end of its page."),
    "computing": Shot("recorded", "audit", "What is shown while an audit is computed."),
    "leaderboard-dark": Shot("demo", "leaderboard", "The leaderboard for who prefers dark pages.", dark=True),
    "battle-dark": Shot("demo", "battle/53", "A battle for who prefers dark pages.", dark=True),
    "overview-dark": Shot("demo", "overview", "The overview for who prefers dark pages.", dark=True),
    "overview-phone": Shot("demo", "overview", "The overview on a phone.", width=390),
    "leaderboard-phone": Shot("demo", "leaderboard", "The leaderboard on a phone.", width=390),
    "calls-phone": Shot("demo", "calls", "The table of calls on a phone.", width=390),
    "battle-phone": Shot("demo", "battle/53", "A battle on a phone.", width=390),
    "audit-phone": Shot("demo", "audit", "The audit on a phone.", width=390),
    "recorded-leaderboard": Shot(
        "recorded", "leaderboard", "Five models on 80 questions, rated by one another's recorded verdicts."
    ),
    "recorded-judges": Shot(
        "recorded", "judges", "The same five as judges: consistency, agreement, people's votes, and their own replies."
    ),
    "recorded-battle": Shot("recorded", "battle/6707", "A battle on which recorded judges disagree, and replies."),
    "recorded-calls": Shot("recorded", "calls?status=unreadable", "Recorded replies that no rule could read."),
    "recorded-audit": Shot("recorded", "audit", "The audit of recorded judges: one of them favours the first place."),
}  # fmt: skip


def command(folder: Path, *words: str) -> str:
    """What a command of Venire prints, run in a folder so that no path of this machine gets into a picture."""
    done = subprocess.run(
        [sys.executable, "-m", "venire", *words], cwd=folder, capture_output=True, text=True, env=environment()
    )
    if done.returncode:
        raise SystemExit(f"venire {' '.join(words)}: {done.stderr or done.stdout}")
    return done.stdout


def environment() -> dict[str, str]:
    """That of the commands: this checkout's Venire."""
    return os.environ | {"PYTHONPATH": str(ROOT)}


@contextmanager
def served(folder: Path, *words: str) -> Iterator[str]:
    """The address of pages that a command of Venire serves, until it is ended."""
    log = folder / "served.log"
    with log.open("w") as out:
        one = subprocess.Popen(
            [sys.executable, "-m", "venire", *words], cwd=folder, stdout=out, stderr=out, env=environment()
        )
    try:
        end = time.monotonic() + PATIENCE_SECONDS
        while not (found := re.search(r"http://\S+", log.read_text())):
            if one.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"venire {' '.join(words)}: {log.read_text()}")
            time.sleep(0.1)
        yield found[0].rstrip("/")
    finally:
        one.terminate()
        one.wait(PATIENCE_SECONDS)


def make_demo(folder: Path) -> None:
    """The demo, and once more its files, for a campaign that is still running."""
    command(folder, "demo", "--folder", "demo", "--speed", "1000")
    command(folder, "report", "demo", "-o", "demo/report.html")
    command(folder, "annotate", "demo", "-o", "demo/page.html", "--count", "40")
    shutil.copytree(folder / "demo", folder / "running", ignore=shutil.ignore_patterns("*.duckdb*"))
    shutil.copytree(folder / "demo", folder / "voting")
    with duckdb.connect(str(folder / "voting" / "campaign.duckdb"), read_only=True) as store:
        query = "select instruction_id, model_a, model_b from battle where trial = 53"
        battle, a, b = store.execute(query).fetchall()[0]
    rows = [
        "annotator,instruction_id,first,second,verdict,note",
        f'Dora,{battle},{a},{b},first,"The other names no source, and repeats the question."',
        f"Ben,{battle},{b},{a},tie,Both say the same.",
        f"Cleo,{battle},{a},{b},first,",
    ]
    (folder / "votes.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    command(folder, "import", "votes", "votes.csv", "--as", "people", "--store", "voting/campaign.duckdb")


def make_recorded(folder: Path, data: Path) -> None:
    """Five judges of 80 questions replayed from their recorded replies, with people's votes on the same models."""
    home = folder / "recorded"
    home.mkdir()
    for table in ("instructions", "completions", "judgments"):
        shutil.copy(data / SET / f"{table}.parquet", home)
    lines = ['name = "recorded"', "[data]", 'instructions = "instructions.parquet"']
    lines += ['completions = "completions.parquet"', "[plan]", 'policy = "recorded"']
    for judge, dialect in DIALECTS.items():
        lines += ["[[judge]]", f"model = {json.dumps(judge)}", 'provider = "replay"']
        lines += ['recorded = "judgments.parquet"', f"dialect = {json.dumps(dialect)}"]
    (home / "campaign.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    command(folder, "run", "recorded/campaign.toml", "--yes")
    models = f"(select model from '{home / 'completions.parquet'}')"
    votes = f"from '{data / SET / 'human_votes.parquet'}' where first in {models} and second in {models}"
    duckdb.execute(f"copy (select * exclude (vote) {votes}) to '{home / 'votes.csv'}'")
    command(folder, "import", "votes", "recorded/votes.csv", "--as", "people", "--store", "recorded/campaign.duckdb")
    command(folder, "report", "recorded", "-o", "recorded/report.html")


@contextmanager
def opened(browser: Browser, shot: Shot, *, scripts: bool = True) -> Iterator[Page]:
    """An empty page in the window of a picture."""
    size = {"width": shot.width, "height": 900 if shot.width > 600 else 844}
    context = browser.new_context(
        viewport=size, color_scheme="dark" if shot.dark else "light", java_script_enabled=scripts
    )
    context.set_default_timeout(PATIENCE_SECONDS * 1000)
    try:
        yield context.new_page()
    finally:
        context.close()


def visit(page: Page, address: str) -> None:
    """Opens an address, and waits for what is computed and for its pictures."""
    answer = page.goto(address)
    if not address.startswith("file:") and (answer is None or answer.status not in (200, 202)):
        raise SystemExit(f"{address}: {answer and answer.status}: {page.inner_text('main')}")
    page.locator("#waiting").wait_for(state="detached")  # the page comes by itself
    page.wait_for_load_state("load")
    page.evaluate("Promise.all([...document.images].map(one => one.decode()))")


def take(browser: Browser, page: Page, name: str, *, whole: bool = True, part: str = "") -> None:
    """The picture of a page as it now is, to its end or, for one whose buttons stay in sight, of the window alone.

    With `part`, a selector, of that part of the page.
    """
    body = page.locator("body").bounding_box()
    assert page.viewport_size is not None
    assert body is not None
    high = int(body["height"]) + 1 if whole else page.viewport_size["height"]
    size = {"width": page.viewport_size["width"], "height": min(HIGHEST, max(high, 300))}
    if part:
        taken = page.locator(part).screenshot(animations="disabled")
    else:
        taken = page.screenshot(clip={"x": 0, "y": 0, **size}, full_page=whole, animations="disabled")
    path = HERE / f"{name}.png"
    path.write_bytes(with_palette(browser, taken))
    sys.stdout.write(f"docs/screens/{name}.png {path.stat().st_size / 1000:.0f} kB\n")


def take_running(browser: Browser, folder: Path, name: str, shot: Shot) -> None:
    """The overview in the middle of a run."""
    words = ("run", "running/campaign.toml", "--yes", "--speed", "8", "--faults", "0.05", "--serve", "127.0.0.1:0")
    with served(folder, *words) as site, opened(browser, shot) as page:
        end = time.monotonic() + PATIENCE_SECONDS
        page.goto(site)
        while int(page.locator("#settled").get_attribute("data-count") or 0) < 400:
            if time.monotonic() > end:
                raise SystemExit("the run does not come to its middle")
            page.wait_for_timeout(500)
        visit(page, page.url)
        take(browser, page, name)


def take_voting(browser: Browser, folder: Path, shots: Mapping[str, Shot]) -> None:
    """The page to vote on before and after somebody has begun, and a battle that they voted on."""
    words = ("serve", "voting/campaign.duckdb", "--annotate", "--count", "40", "--at", "127.0.0.1:0")
    with served(folder, *words) as site:
        for name, shot in shots.items():
            with opened(browser, shot) as page:
                address = f"{site}/s/voting/c/1/{shot.page}"
                visit(page, address)
                if shot.page != "annotate":
                    take(browser, page, name, part="section[aria-label=People]")
                    continue
                page.locator("#name").fill("Ann")
                if name != "vote-begin":
                    page.keyboard.press("Enter")
                    page.locator("#who").wait_for()
                    for key in "12021":
                        page.keyboard.press(key)
                    page.get_by_text("not sent").wait_for(state="detached")
                take(browser, page, name, whole=False)


def take_still(browser: Browser, site: str, folder: Path, name: str, shot: Shot) -> None:
    """A page of a store at rest, or a file; one that waits for a computation without scripts, which would go on."""
    if shot.page.endswith(".html"):
        with opened(browser, shot) as page:
            visit(page, (folder / shot.of / shot.page).as_uri())
            take(browser, page, name, whole=shot.page != "page.html")
        return
    path = shot.page if shot.of == "stores" else f"/s/{shot.of}/c/1/{shot.page}"
    with opened(browser, shot, scripts=name != "computing") as page:
        if name == "computing":
            answer = page.goto(site + path)
            if answer is None or answer.status != 202:
                raise SystemExit(f"{path} was there at once")
        else:
            visit(page, site + path)
        take(browser, page, name)


def write_index() -> None:
    """The list of the pictures, each with a sentence."""
    lines = ["# Pictures of the pages", ""]
    lines += [
        "What `venire serve STORE...` and `venire run FILE --serve` show, and `venire report` and `venire annotate`"
    ]
    lines += [
        "write, of the demo (`venire demo`) and, where the name begins with `recorded-`, of recorded judgments that are"
    ]
    lines += [
        "replayed ([how](../replay.md)): five models that judge one another's answers to 80 questions. The demo's"
    ]
    lines += ["judges are simulated."]
    lines += ["", "```console", "make screens    # takes them again; VENIRE_DATA names the records", "```", ""]
    for name, shot in SHOTS.items():
        lines += [f"## {name}", "", shot.says, "", f"![{shot.says}]({name}.png)", ""]
    (HERE / "README.md").write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8")


def main(names: list[str]) -> int:
    """Take the pictures named, or all; 2 for a name that is none, or without a browser."""
    if strange := sorted(set(names) - set(SHOTS)):
        sys.stderr.write(f"no picture is called {strange[0]}; there are: {', '.join(SHOTS)}\n")
        return 2
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        sys.stderr.write(f"none of {', '.join(BROWSERS)} is on PATH\n")
        return 2
    data = Path(os.environ.get("VENIRE_DATA") or ROOT.parent / "shared" / "data").resolve()
    wanted = {name: shot for name, shot in SHOTS.items() if not names or name in names}
    if not (data / SET).is_dir():
        sys.stderr.write("the recorded judgments are not here, and VENIRE_DATA does not name their folder\n")
        wanted = {name: shot for name, shot in wanted.items() if shot.of not in ("recorded", "stores")}
    kinds = {shot.of for shot in wanted.values()}
    write_index()
    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        folder = Path(made)
        make_demo(folder)
        stores = ["demo/campaign.duckdb"]
        if kinds & {"recorded", "stores"}:
            make_recorded(folder, data)
            stores.append("recorded/campaign.duckdb")
        browser = playwright.chromium.launch(
            executable_path=found, args=list(FLAGS), chromium_sandbox=os.geteuid() != 0
        )
        with served(folder, "serve", *stores, "--at", "127.0.0.1:0") as site:
            for name, shot in wanted.items():
                if shot.of not in ("running", "voting"):
                    take_still(browser, site, folder, name, shot)
        for name, shot in wanted.items():
            if shot.of == "running":
                take_running(browser, folder, name, shot)
        take_voting(browser, folder, {name: shot for name, shot in wanted.items() if shot.of == "voting"})
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
