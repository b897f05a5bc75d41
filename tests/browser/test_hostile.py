"""Texts that want to be more than texts, on every page of a real browser: nothing of them runs or asks."""

from __future__ import annotations

import csv
import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import duckdb
import pytest
from playwright.sync_api import Dialog, Page, expect

from tests.browser.conftest import Visit
from tests.browser.serving import PAGES, aside, opened, rows, serving
from venire.configs.loading import load_campaign
from venire.orchestrator.recording.ending import Ending
from venire.pages import registry
from venire.session import Session
from venire.storage.store.opening import open_store
from venire.storage.transfer.delimited import restored

SET = "window.__pwned=1"
MARKUP = (
    f"<script>{SET}</script>",
    f"</script><script>{SET}</script>",
    f"<img src=x onerror='{SET}'>",
    f'"><svg/onload={SET}>',
    f"'><details open ontoggle={SET}>",
    "<style>@import url(http://stranger.invalid/a.css);*{display:none!important}</style>",
    f"<math><mtext><table><mglyph><style><img src=x onerror={SET}></style></mglyph></table></mtext></math>",
    "<svg><style>*{display:none}</style><image href=http://stranger.invalid/b.png /></svg>",
    "<base href=http://stranger.invalid/><meta http-equiv=refresh content='0;url=http://stranger.invalid/'>",
    f"<iframe srcdoc='<script>parent.{SET}</script>'></iframe>",
    f'<a href="javascript:{SET}">click</a> <form action=javascript:{SET}><button>go</button></form>',
    "</title></textarea></noscript></template></main></body></html><!--",
    f"{{{{ 7*7 }}}} {{% raw %}} ${{7*7}} <%= {SET} %>",
)
"""As HTML, or as a template's own writing."""
MARKDOWN = (
    f"[click](javascript:{SET})",
    f'[click](data:text/html;base64,PHNjcmlwdD4x) ![dot](http://stranger.invalid/c.png "onload={SET}")',
    f"<http://stranger.invalid/> [ref][1]\n\n[1]: javascript:{SET}\n\n<javascript:{SET}>",
    f"```html\n<script>{SET}</script>\n```\n\n| a | b |\n|---|---|\n| <img src=x onerror={SET}> | `</code>` |",
    "# A heading\n\n<h1 id=main class=lost>a false one</h1>\n\n> " + "> " * 200 + "deep",
)
TRICKS = (
    "\u202egnp.exe\u202c \u2066\u2067never closed",
    "zero\u200b\u200d\u2060\ufeffwidth \u00ad\u034f\u115f",
    "Z" + "\u0300\u0489\u20dd" * 60 + "algo" + "\u0335" * 300,
    "null\u2400 bell\x07 escape\x1b[31m\x1b]0;title\x07 back\x08space\x7f\x85",
    "line one\r\nSet-Cookie: pwned=1\r\n\r\n<script>window.__pwned=1</script>",
    '=HYPERLINK("http://stranger.invalid/";"x")',
    "../../../../etc/passwd\nfile:///etc/passwd",
    "\u0001\ufff9\ufffa\ufffb\ufffe\uffff\U000e0001\U000e0041",
    "x" * 4_000,
    "\u4e16" * 3_000,
    "one two " * 700,
    "\n" * 300 + "below",
    "\ufdfd" * 100 + "\U0001f468\u200d\U0001f469\u200d\U0001f467" * 50,
    "' or 1=1; drop table verdict; --",
    "%s %n {0} \\u0000 \\x3cscript\\x3e &lt;script&gt; &#60;script&#62;",
)
TEXTS = (*MARKUP, *MARKDOWN, *TRICKS)
HUGE = 5_000_000
LONGEST_NAME = 20_000
"""What each verdict's row is multiplied by where names are joined to it."""

CAMPAIGN = """\
name = "<b>&quot;'\\"></b>"
seed = 3
[data]
instructions = "instructions.jsonl"
completions = "completions.jsonl"
elo = "elo.jsonl"
[plan]
policy = "random"
matchups = 12
[[judge]]
name = {names[0]}
model = {names[1]}
protocol = "binary"
base_url = "{url}"
free = true
concurrency = 8
[[judge]]
name = {names[2]}
model = {names[3]}
protocol = "two-stage"
base_url = "{url}"
free = true
concurrency = 8
"""


class Judge(http.server.BaseHTTPRequestHandler):
    """A judge that answers with hostile texts in every field that it writes, and sometimes with an error or 5 MB."""

    protocol_version = "HTTP/1.1"
    numbers = count()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        number = next(self.numbers)
        said, other = TEXTS[number % len(TEXTS)], TEXTS[(number + 5) % len(TEXTS)]
        if number == 40:
            said = f"<script>{SET}</script> " * (HUGE // 33)
        elif number == 41:
            said = ""
        document: dict[str, Any] = {
            "id": other,
            "object": "chat.completion",
            "model": other,
            "system_fingerprint": other,
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {
                        "role": "assistant",
                        "content": f"{said}\n\n{'12'[number % 2]}",
                        "reasoning_content": other,
                    },
                }
            ],
            "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20},
        }
        status = 200
        if number % 17 == 3:
            status, document = 500, {"error": {"message": said, "type": other, "code": other}}
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Retry-After", "0")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def judging() -> Iterator[str]:
    """The address of that judge."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Judge) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


def write(path: Path, table: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in table), encoding="utf-8")


def make(folder: Path) -> Path:
    """A store whose every text is hostile: of tables, of a campaign file, and of replies."""
    models = [f"{one[:3_000]} {n}" for n, one in enumerate(TEXTS) if one.strip()][::3]
    models += ["m" * LONGEST_NAME, f"<script>{SET}</script>" * (LONGEST_NAME // 40)]
    texts = list(TEXTS)
    write(
        folder / "instructions.jsonl",
        [
            {"instruction_id": f"{one[:3_000]} {n}", "instruction": one, "category": one[:5_000], "reference": one}
            for n, one in enumerate(texts)
        ]
        + [{"instruction_id": "i" * LONGEST_NAME, "instruction": f"<img src=x onerror={SET}>" * (HUGE // 35)}],
    )
    asked = [f"{one[:3_000]} {n}" for n, one in enumerate(texts)] + ["i" * LONGEST_NAME]
    write(
        folder / "completions.jsonl",
        [
            {
                "model": model,
                "instruction_id": instruction,
                "completion": "" if (m + n) % 11 == 0 else f"{texts[(m + n) % len(texts)]}{m}",
            }
            for m, model in enumerate(models)
            for n, instruction in enumerate(asked)
        ],
    )
    write(folder / "elo.jsonl", [{"model": model, "elo": 1000 + n} for n, model in enumerate(models[:3])])
    names = [json.dumps(one) for one in (*MARKUP[:1], MARKUP[3], "\u0489" * 40 + "j" * 3_000, MARKDOWN[0])]
    with judging() as url:
        file = folder / "campaign.toml"
        file.write_text(CAMPAIGN.format(names=names, url=url), encoding="utf-8")

        def run() -> Ending:
            with Session(load_campaign(file)) as session:
                return session.run(environ={}).ending

        aside(run)
    store = load_campaign(file).store
    worsen(store)
    return store


def worsen(store: Path) -> None:
    """What no import lets in and a store may hold all the same: 5 MB, null bytes, and marks in names."""
    with open_store(store) as opened, opened.commit() as commit:
        run = opened.connection.execute
        run("update completion set text = text || repeat(?, ?) where id % 60 = 7", [MARKUP[2], HUGE // len(MARKUP[2])])
        run("update completion set text = 'nu' || chr(0) || 'll' || text where id % 60 = 8")
        run("update attempt set text = chr(0) || text || chr(0) where trial % 10 = 4")
        run("update completion set characters = length(text)")
        run("update campaign_judge set name = ? where respondent = (select min(respondent) from campaign_judge)", [
            TRICKS[0] + MARKUP[0]
        ])  # fmt: skip
        run("insert into people values (1, ?, 'people')", [MARKUP[3] + TRICKS[0]])
        run("insert into annotator select n, 1, list_extract(?, n) from range(1, ?) s(n)", [TEXTS, len(TEXTS) + 1])
        run(
            "insert into vote select 1 + (i + m) % $many, i, m, o, true, 1, (i % 3)::tinyint - 1, 1, "
            "list_extract($notes, 1 + (i + m + o) % $many) from (select distinct instruction i, model_a m, model_b o "
            "from trial)",
            {"many": len(TEXTS), "notes": TEXTS},
        )
        commit.written += 1


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("hostile") / "<img src=x onerror=alert(1)>"
    folder.mkdir()
    store = make(folder)
    with serving(store) as command:
        with urlopen(command.url, timeout=30) as answer:
            base = answer.url.rpartition("/")[0]
        yield base, store


WIDTHS = (1440, 390)


class Calm:
    """A visitor who notices what a text has done."""

    def __init__(self, visit: Visit) -> None:
        self.visit = visit
        self.dialogs: list[str] = []

    def _refuse(self, dialog: Dialog) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def read(self, url: str, width: int = 1440) -> Page:
        """A page on which nothing has happened, and which is whole."""
        page = opened(self.visit, url, width)
        page.on("dialog", self._refuse)
        self.check(page)
        return page

    def check(self, page: Page) -> None:
        page.wait_for_load_state()
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            self.visit.no_overflow(page)
        assert page.evaluate("window.__pwned === undefined"), page.url
        assert page.context.cookies() == []
        for one in ("h1", "header nav"):
            expect(page.locator(one).first).to_be_visible()
        assert page.locator("h1").count() == 1
        assert page.locator("header nav a").count() == len(registry.MENU["pages"])
        assert page.locator("body > *").evaluate_all("all => all.map(one => one.localName)") == [
            "a", "header", "p", "main", "footer",
        ]  # fmt: skip
        # what a page is made of: nothing that a text has brought, and no address but the server's own
        assert page.locator("iframe, object, embed, style, math, base, form[action^=javascript], h1[id]").count() == 0
        odd = page.evaluate(
            "() => [...document.querySelectorAll('*')].flatMap(one => [...one.attributes].filter(each => "
            "each.name.startsWith('on') || (['href', 'src', 'action', 'srcset', 'xlink:href'].includes(each.name) "
            "&& !/^[/#]/.test(each.value))).map(each => `${one.localName} ${each.name}=${each.value.slice(0, 80)}`))"
        )
        assert odd == []
        assert page.evaluate("document.scripts.length") == 1
        for name in page.evaluate(
            "() => [...document.querySelectorAll('.markdown *')].map(one => one.attributes.length)"
        ):
            assert name == 0

    def stayed(self) -> None:
        assert self.dialogs == []
        self.visit.assert_quiet()


@pytest.fixture
def calm(visit: Visit) -> Calm:
    return Calm(visit)


@pytest.mark.parametrize("page", [*PAGES, "leaderboard?method=borda", "instructions?order=flips"])
def test_no_page_of_a_campaign_is_moved_by_its_texts(calm: Calm, hostile: tuple[str, Path], page: str) -> None:
    calm.read(f"{hostile[0]}/{page}")
    calm.stayed()


def test_no_table_of_calls_is_moved_by_its_texts(calm: Calm, hostile: tuple[str, Path]) -> None:
    every = (
        "trial judge protocol instruction category models order repeat winner score status marks reply attempts cost"
    )
    page = calm.read(f"{hostile[0]}/calls?{urlencode({'rows': 250, 'columns': every})}")
    for key in ("judge", "category", "model"):
        page.locator(f"#filter [name={key}]").select_option(index=1)
        page.get_by_role("button", name="Filter").click()
        calm.check(page)
        expect(page.locator(".chip")).to_have_count(1)
        page.locator(".chip").click()
    calm.stayed()


def test_no_battle_is_moved_by_its_texts_in_any_view(calm: Calm, hostile: tuple[str, Path]) -> None:
    base, store = hostile
    trials = [one for (one,) in rows(store, "select min(trial) from battle group by model_a, model_b, instruction_id")]
    huge = rows(store, "select trial from attempt where length(text) > 1000000 limit 1")[0][0]
    page = calm.read(f"{base}/battle/{huge}")
    for place, trial in enumerate([huge, *sorted(trials)[:: max(1, len(trials) // 10)]]):
        for view in ("", "?markdown=1", "?marks=1", "?plain=1")[: 4 if place < 2 else 2]:
            page.goto(f"{base}/battle/{trial}{view}")
            page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
            expect(page.get_by_role("heading", name="People")).to_have_count(1)
            calm.check(page)
    calm.stayed()


def test_no_instruction_or_contestant_is_moved_by_its_texts(calm: Calm, hostile: tuple[str, Path]) -> None:
    base, store = hostile
    page = calm.read(f"{base}/instruction/1")
    for kind, table in (("instruction", "instruction"), ("contestant", "model")):
        for (number,) in rows(store, f"select id from {table} order by id")[::2]:
            page.goto(f"{base}/{kind}/{number}")
            calm.check(page)
    calm.stayed()


@pytest.mark.parametrize("where", ["replies", "instructions", "completions"])
def test_no_hit_of_a_search_and_no_word_searched_for_moves_the_page(
    calm: Calm, hostile: tuple[str, Path], where: str
) -> None:
    for word in ("<script>", "onerror=", '"><svg/onload=window.__pwned=1>', "\u202egnp", "stranger.invalid", "%s"):
        page = calm.read(f"{hostile[0]}/search?{urlencode({'q': word, 'in': where})}")
        assert page.locator("#q").input_value() == word
        if word in ("<script>", "onerror="):
            expect(page.locator(".hits mark").first).to_have_text(word, use_inner_text=True)
    calm.stayed()


def test_no_header_holds_anything_of_a_text_and_texts_come_as_files(hostile: tuple[str, Path]) -> None:
    base, store = hostile
    trial, reply = rows(store, "select trial, step || '-' || number from attempt where length(text) > 1000000 limit 1")[
        0
    ]
    known = {
        "Content-Security-Policy", "X-Content-Type-Options", "X-Frame-Options", "Referrer-Policy", "Content-Type",
        "Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy", "Permissions-Policy", "Cache-Control", "Date",
        "Content-Length", "Content-Disposition", "Transfer-Encoding", "Connection", "Server",
    }  # fmt: skip
    for path in ("calls", "calls.csv", "calls.jsonl", "calls.parquet", f"battle/{trial}", f"text/{trial}/completion/0",
                 f"text/{trial}/instruction/0", f"text/{trial}/reply/{reply}", "search?q=script"):  # fmt: skip
        with urlopen(f"{base}/{path}", timeout=60) as answer:
            headers = dict(answer.headers.items())
            body = answer.read()
        assert set(headers) <= known, path
        assert "pwned" not in str(headers)
        assert "stranger" not in str(headers)
        assert "script-src 'self';" in headers["Content-Security-Policy"]
        if path.startswith(("text/", "calls.")):
            assert headers["Content-Disposition"].startswith("attachment; filename=")
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert not headers["Content-Type"].startswith("text/html")
        if "/reply/" in path:
            assert len(body) > HUGE // 2


def test_downloads_hold_the_texts_as_they_are(hostile: tuple[str, Path], tmp_path: Path) -> None:
    base, store = hostile
    saved = {}
    for form in ("csv", "jsonl", "parquet"):
        with urlopen(f"{base}/calls.{form}", timeout=60) as answer:
            saved[form] = tmp_path / f"trials.{form}"
            saved[form].write_bytes(answer.read())
    expected = rows(store, "select trial, model_a, instruction_id from battle order by trial")
    csv.field_size_limit(1 << 30)
    with saved["csv"].open(newline="", encoding="utf-8") as file:
        table = [
            (int(one["trial"]), restored(one["model_a"]), restored(one["instruction"])) for one in csv.DictReader(file)
        ]
    lines = [json.loads(one) for one in saved["jsonl"].read_text(encoding="utf-8").split("\n") if one]
    parquet = duckdb.from_parquet(str(saved["parquet"])).project("trial, model_a, instruction").fetchall()
    with_verdict = {one["trial"] for one in lines if one["status"] not in ("failed", "pending")}
    assert [
        (one["trial"], one["model_a"], one["instruction"]) for one in lines if one["trial"] in with_verdict
    ] == expected
    assert [one for one in parquet if one[0] in with_verdict] == expected
    assert [one for one in table if one[0] in with_verdict] == expected
