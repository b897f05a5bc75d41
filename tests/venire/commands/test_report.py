"""`venire report` as it is typed: one file that fetches nothing, Markdown, JSON, tables without a store."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import fields
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from markdown_it import MarkdownIt

import venire as vn
from venire.arena.battles import Battles
from venire.pages.report_page import report_html, report_markdown
from venire.ratings.data import comparisons, judgments
from venire.ratings.data.wins import WinCounts
from venire.reports.audit.audit import WORDS, word
from venire.reports.audit.cases import audited
from venire.reports.board.source import VerdictSource
from venire.reports.documents.report import report_document
from venire.reports.markdown import plain_markdown
from venire.reports.plots import CHARTS

Venire = Callable[..., Any]

SECTIONS = [
    "Leaderboard",
    "Quality against cost",
    "Wins, seen and expected",
    "The same verdicts by other methods",
    "By category",
    "Judges",
    "What should be doubted",
    "How it was done",
    "Examples of battles",
    "What the figures mean",
    "What was left out, and why",
    "How to repeat it",
]


class Read(HTMLParser):
    """The tags of a page, their attributes, its second headings, and whether tags match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.headings: list[str] = []
        self._in = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        self._in = tag

    def handle_data(self, data: str) -> None:
        if self._in == "h2" and data.strip():
            self.headings.append(data.strip())
            self._in = ""


def test_the_audit_in_a_report_is_of_the_source_of_the_report(store: Path) -> None:
    plain, apart = (
        [one.says for one in sorted(audited(source).findings, key=lambda one: WORDS.index(word(one)))]
        for source in (VerdictSource((store,)), VerdictSource((store,), cluster="none"))
    )
    document = report_document(VerdictSource((store,), cluster="none"))
    assert [one["says"] for one in document["audit"]["findings"]] == apart != plain


def test_a_report_computes_nothing_again_that_it_has(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The danger: boards, comparisons, charts and checks each merge and count the same verdicts for themselves.

    Some pairs are counted again: an audit has covariates beside its verdicts, and two of its checks refit alike.
    """
    made: dict[str, Counter[bytes]] = {"merged": Counter(), "counted": Counter(), "joined": Counter()}

    def counted(home: object, name: str, kind: str, columns: Callable[..., Sequence[object]]) -> None:
        plain = getattr(home, name)

        def recorded(*given: Any) -> Any:
            content = [one.tobytes() if isinstance(one, np.ndarray) else repr(one).encode() for one in columns(*given)]
            made[kind][sha256(b"|".join(content)).digest()] += 1
            return plain(*given)

        monkeypatch.setattr(home, name, recorded)

    def table(rows: Battles, *how: object) -> Sequence[object]:
        return [getattr(rows, one.name) for one in fields(rows) if one.name != "features"] + [
            *rows.features,
            *rows.features.values(),
            *how,
        ]

    counted(judgments, "_merged", "merged", table)
    counted(comparisons, "win_counts", "counted", lambda data: [data.models, data.a, data.b, data.y, data.weight])
    counted(
        WinCounts, "_joined", "joined", lambda pairs, held: [pairs.first, pairs.second, pairs.won, pairs.lost, held]
    )
    assert report_document(VerdictSource((store,)))["audit"]["findings"]
    again = {kind: sum(times.values()) - len(times) for kind, times in made.items()}
    assert again["merged"] == 0
    assert again["counted"] < 0.2 * len(made["counted"])
    assert again["joined"] < 0.35 * len(made["joined"])


def test_figures_are_files_for_a_paper_and_only_those_there_is_data_for(
    venire: Venire, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = {name: CHARTS[name] for name in ("leaderboard", "matrix", "reliability")}
    monkeypatch.setattr("venire.pages.chart_files.CHARTS", some)
    figures = tmp_path / "made" / "figures"
    done = venire("report", table, "-o", tmp_path / "r.html", "--figures", figures)
    assert done.code == 0, done.err
    kinds = {one.stem for one in figures.iterdir()}
    assert kinds == {"leaderboard", "matrix"}, "no person voted: of reliability there is nothing"
    for kind in kinds:
        assert kind in done.err
        assert (figures / f"{kind}.png").read_bytes().startswith(b"\x89PNG")
        drawn = ElementTree.parse(figures / f"{kind}.svg").getroot()
        assert drawn.tag == "{http://www.w3.org/2000/svg}svg"
        assert "vega-lite" in json.loads((figures / f"{kind}.json").read_text(encoding="utf-8"))["$schema"]
    done = venire("report", table, "-o", tmp_path / "r.html", "--figures", tmp_path / "r.html")
    assert done.code == 2
    assert "figures cannot be written to" in done.err


def test_what_ends_the_process_that_draws_is_a_sentence(
    venire: Venire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A panic in what draws aborted the command: no report of why, and no status that scripts know."""
    rows = "\n".join(["al\x1bpha,beta,model_a", "al\x1bpha,beta,model_b"] * 4)
    (tmp_path / "votes.csv").write_text(f"model_a,model_b,winner\n{rows}\n", encoding="utf-8")
    monkeypatch.setattr("venire.reports.charts.plain", lambda text: text)
    monkeypatch.setattr("venire.pages.chart_files.CHARTS", {"leaderboard": CHARTS["leaderboard"]})
    done = venire("report", tmp_path / "votes.csv", "-o", tmp_path / "r.html", "--figures", tmp_path / "figures")
    assert done.code == 2, done.err
    assert "leaderboard.svg cannot be drawn" in done.err
    assert json.loads((tmp_path / "figures" / "leaderboard.json").read_text(encoding="utf-8"))["$schema"]
    assert (tmp_path / "r.html").exists()


@pytest.fixture
def store(judged: Callable[..., Path]) -> Path:
    return judged().with_suffix(".duckdb")


_DOCUMENT: dict[str, Any] = {}


@pytest.fixture
def document(venire: Venire, store: Path) -> dict[str, Any]:
    """The report of that store, which is made once."""
    if not _DOCUMENT:
        _DOCUMENT.update(venire("report", store, "--format", "json").json())
    return _DOCUMENT


@pytest.fixture
def table(tmp_path: Path) -> Path:
    lines = ["model_a,model_b,winner,judge,instruction_id"]
    for number in range(12):
        lines += [f"oak,elm,{'model_b' if number % 4 == 0 else 'model_a'},ann,q{number}"]
        lines += [f"elm,*ash* <b>,{'tie' if number % 3 == 0 else 'model_a'},ann,q{number}"]
    path = tmp_path / "votes.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_report_of_a_store_fetches_nothing(document: dict[str, Any]) -> None:
    page = Read(report_html(document))
    assert page.headings == SECTIONS
    assert not page.tags & {"script", "iframe", "object", "embed", "form", "base", "audio", "video"}
    (policy,) = [value for name, value in page.attributes if name == "content" and "default-src" in value]
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert "style-src 'sha256-" in policy
    for name, value in page.attributes:
        assert not name.startswith("on")
        assert name != "style"  # the policy allows the sheet alone
        if name in ("src", "href", "srcset", "action", "data"):
            assert value.startswith(("#", "data:")), (name, value)


def test_the_answer_names_leader_doubt_judges_cost_and_origin(
    venire: Venire, store: Path, document: dict[str, Any]
) -> None:
    answer, board = document["answer"], venire("rate", store, "--json").json()
    assert answer["leader"] == board["models"][0]["model"]
    for part in (
        f"{answer['leader']} leads with {board['models'][0]['elo']:.0f} Elo points",
        "2 judges (claude-3-opus, gpt-4-0613)",
        "on 2 instructions, 120 verdicts",
        "which cost nothing",
        "the verdicts are simulated",
    ):
        assert part in answer["sentence"]
    tied = [one["model"] for one in board["models"][1:] if one.get("tier") == board["models"][0].get("tier")]
    assert answer["tied"] == tied
    findings = venire("audit", store, "--json").json()["findings"]
    assert {(one["check"], one["word"], one["says"]) for one in document["audit"]["findings"]} == {
        (one["check"], one["word"], one["says"]) for one in findings
    }
    words = [one["word"] for one in document["audit"]["findings"]]
    assert words == sorted(words, key=["worry", "unsure", "fine", "not made"].index)
    assert all(one["digest"] and one["text"] for one in document["prompts"])
    assert {one["kind"] for one in document["battles"]} >= {"closest"}
    assert all(verdict["reasons"] for one in document["battles"] for verdict in one["verdicts"])


def test_the_same_verdicts_have_the_same_digest_in_any_order(venire: Venire, table: Path, tmp_path: Path) -> None:
    head, *lines = table.read_text(encoding="utf-8").splitlines()
    turned, changed = tmp_path / "turned.csv", tmp_path / "changed.csv"
    turned.write_text("\n".join([head, *reversed(lines)]) + "\n", encoding="utf-8")
    changed.write_text("\n".join([head, *lines[:-1], lines[-1].replace("model_a", "model_b")]), encoding="utf-8")
    first, second, third = (
        venire("report", path, "--format", "json").json()["repeat"]["verdicts_sha256"]
        for path in (table, turned, changed)
    )
    assert first == second != third


def test_a_table_has_a_report_without_what_only_stores_know(venire: Venire, table: Path) -> None:
    document = venire("report", table, "--format", "json").json()
    page = report_html(document)
    assert not {"Examples of battles", "By category"} & set(Read(page).headings)
    assert "*ash* &lt;b&gt;" in page
    assert any("files of verdicts" in one["why"] for one in document["left_out"])
    assert "recorded" in document["answer"]["sentence"]


def test_markdown_shows_names_as_they_are(venire: Venire, table: Path) -> None:
    done = venire("report", table, "-o", "-", "--format", "md")
    assert done.code == 0
    assert done.out.startswith("# votes.csv\n\n**oak leads with ")
    assert r"| \*ash\* \<b\> |" in done.out
    rows = [line for line in done.out.splitlines() if line.startswith("|")]
    assert all(re.sub(r"\\\|", "", line).endswith("|") for line in rows)
    for text in ("- a", "1. b", "@user", "http://x.invalid", "www.x.invalid", "![x](y)", "`c`", "a|b", ":smile:"):
        assert plain_markdown(text) != text


@pytest.mark.parametrize(
    "text",
    [
        *("- a", "1. b", "![x](y)", "`c`", "a|b", ":smile:", "*a*@b*", "`a@b`@c`", "x (a@b.c), y@d: 2", "\\`a@b`"),
        *("@user", "simulated/gpt-4-0613@1", "http://x.invalid", "www.x.invalid", "gpt@1.5"),
    ],
)
def test_a_name_that_is_copied_from_markdown_is_the_name_and_no_link_or_mention(text: str) -> None:
    shown = MarkdownIt().render(plain_markdown(text)).strip().removeprefix("<p>").removesuffix("</p>")
    assert unescape(re.sub("</?code>", "", shown)) == text
    assert not re.search("@|www|http", re.sub("<code>.*?</code>", "", shown))
    table = f"| {plain_markdown(text)} | b |\n|---|---|\n"
    assert unescape(re.sub("</?[a-z]+>|\n", "", MarkdownIt().enable("table").render(table))) == f"{text}b"


def test_mistakes_are_sentences(venire: Venire, store: Path, table: Path, tmp_path: Path) -> None:
    for words, said in (
        ((store,), "add -o report.html"),
        ((table, "-o", table), "is what the report is made of"),
        ((store, "-o", tmp_path / "no" / "r.html"), "a folder that is there"),
        ((store, "-o", tmp_path), "a folder that is there"),
        ((store, "-o", "-", "--campaign", "none"), "no campaign 'none'"),
    ):
        done = venire("report", *words)
        assert done.code == 2
        assert said in done.err
        assert done.out == ""


def test_the_form_follows_the_file_s_name(venire: Venire, table: Path, tmp_path: Path) -> None:
    for name, start in (("r.json", "{"), ("r.md", "# "), ("r.html", "<!doctype html>")):
        done = venire("report", table, "-o", tmp_path / name)
        assert (done.code, done.out) == (0, ""), done.err
        assert (tmp_path / name).read_text(encoding="utf-8").lstrip().startswith(start)
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["report"] == 1
    assert {one.name for one in tmp_path.iterdir()} == {table.name, "r.json", "r.md", "r.html"}


def test_rate_writes_the_report_of_the_board_that_it_shows(venire: Venire, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.json"
    done = venire("rate", table, "--json", "--anchor", "oak=1500", "--level", "0.9", "--report", out)
    assert done.code == 0, done.err
    board, document = done.json(), json.loads(out.read_text(encoding="utf-8"))
    assert document["board"]["models"] == board["models"]
    assert document["board"]["diagnostics"]["level"] == 0.9
    assert "90% interval" in document["answer"]["sentence"] or "90% intervals" in " ".join(document["how"])
    assert venire("rate", table, "--compare", "--report", out).code == 2


def test_a_model_that_changed_is_named_and_those_beside_it_are_not(venire: Venire, tmp_path: Path) -> None:
    """Both files judge the same instructions anew; in the second, pine is better."""
    paths, rng = [tmp_path / "before.csv", tmp_path / "now.csv"], Random(7)
    names = ("ash", "elm", "oak", "pine", "yew")
    for path, better in zip(paths, (0.0, 0.35), strict=True):
        lines = ["model_a,model_b,winner,judge,instruction_id"]
        for number in range(60):
            for a, b in combinations(range(5), 2):
                share = 0.6 + better * ((a == 3) - (b == 3))
                lines.append(f"{names[a]},{names[b]},{'model_a' if rng.random() < share else 'model_b'},j,q{number}")
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    earlier, later = paths
    same = venire("report", earlier, "--against", earlier, "--format", "json").json()["changes"]
    assert all((row["change"], row["lo"], row["hi"], row["changed"]) == (0, 0, 0, False) for row in same["models"])
    assert same["instructions"] == {"before": 60, "now": 60, "shared": 60}
    document = venire("report", later, "--against", earlier, "--format", "json").json()
    changes = document["changes"]
    assert [row["model"] for row in changes["models"] if row["changed"]] == ["pine"]
    pine = changes["models"][0]
    assert pine["change"] > 100.0
    assert pine["lo"] > 0.0
    assert pine["now"] - pine["before"] == pytest.approx(pine["change"])
    for said in ("Changed beyond chance: pine", "60 instructions judged in both", "at most 5%", "one model at a time"):
        assert said in changes["says"]
    page, text = report_html(document), report_markdown(document)
    assert "Differences" in Read(page).headings
    for written in (page[page.index('id="changes"') :][:3000], text[text.index("## Differences") :][:3000]):
        assert "Changed beyond chance: pine" in written
    assert venire("report", earlier, "--against-campaign", "x").code == 2


def test_a_judge_that_is_a_coin_is_said_beside_the_headline_on_every_road(venire: Venire, tmp_path: Path) -> None:
    """Ranks and intervals of lots look like any others: nothing else on a board shows what they are."""
    path = tmp_path / "coin.csv"
    names, rng = ("oak", "elm", "ash"), Random(4)
    lines = ["first,second,verdict,judge,instruction_id"]
    for number in range(40):
        for a, b in ((0, 1), (1, 2), (0, 2)):
            for one, other in ((a, b), (b, a)):
                winner = "first" if rng.random() < 0.6 else "second"
                lines.append(f"{names[one]},{names[other]},{winner},coin,q{number}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    told = "no better than a coin"
    done = venire("rate", path)
    board = " ".join(done.out.split())
    assert done.code == 0, done.err
    assert told in board.split("Leaderboard")[0]
    coins = venire("rate", path, "--json").json()["diagnostics"]["coins"]
    assert [one["judge"] for one in coins["judges"]] == ["coin"]
    assert told in vn.rate(path)._repr_html_()
    document = venire("report", path, "--format", "json").json()
    assert told in report_markdown(document).split("## Leaderboard")[0]
    assert told in report_html(document).split('id="board"')[0]
    audit = venire("audit", path, "--check", "better-than-coin", "--json").json()
    assert audit["worries"] == ["better-than-coin"]


def test_two_campaigns_of_one_store_are_held_against_each_other(
    venire: Venire, judged: Callable[..., Path], settle: Callable[..., Any]
) -> None:
    first = judged()
    second = first.with_name("second.toml")
    text = first.read_text(encoding="utf-8").replace('name = "small"', 'name = "other"').replace("seed = 5", "seed = 6")
    second.write_text('store = "small.duckdb"\n' + text, encoding="utf-8")
    settle(second)
    asked = ("report", first.with_suffix(".duckdb"), "--campaign", "other", "--format", "json")
    done = venire(*asked, "--against", first.with_suffix(".duckdb"), "--against-campaign", "small")
    assert done.code == 0, done.err
    changes = done.json()["changes"]
    assert changes["against"] == "small.duckdb, campaign small"
    assert len(changes["models"]) == 6


def test_parts_of_a_campaign_are_held_against_the_rest(venire: Venire, store: Path, document: dict[str, Any]) -> None:
    asked = ("report", store, "--format", "json", "--split")
    judge = document["counts"]["judges"][0]
    done = venire(*asked, f"judge={judge}")
    assert done.code == 0, done.err
    by_judge = done.json()["changes"]
    assert by_judge["against"] == f"judge={judge}"
    assert len(by_judge["models"]) == document["counts"]["models"]
    assert "by wins both ways" in by_judge["says"], "each of the two judged too little by itself"
    for part, said in (
        ("judge=nobody", "no verdict is of it"),
        ("category=none", "no verdict is of it"),
        ("before=1999-01-01", "no verdict is of it"),
        ("before=soon", "give a date or time"),
        ("model=x", "judge, category or before"),
        ("judge", "COLUMN=VALUE"),
    ):
        done = venire(*asked, part)
        assert done.code == 2
        assert said in done.err
    assert venire(*asked, f"judge={judge}", "--against", store).code == 2


def test_parts_of_a_table_are_held_against_the_rest(venire: Venire, tmp_path: Path) -> None:
    """The second judge prefers elm where the first does not: judges that differ are found as changes are."""
    path, rng = tmp_path / "judges.csv", Random(2)
    lines = ["model_a,model_b,winner,judge,instruction_id"]
    for number in range(60):
        for judge, favour in (("ann", 0.0), ("ben", 0.4)):
            for a, b in combinations(("ash", "elm", "oak", "yew"), 2):
                share = 0.5 + favour * ((a == "elm") - (b == "elm"))
                lines.append(f"{a},{b},{'model_a' if rng.random() < share else 'model_b'},{judge},q{number}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    changes = venire("report", path, "--format", "json", "--split", "judge=ann").json()["changes"]
    assert changes["instructions"] == {"before": 60, "now": 60, "shared": 60}
    assert changes["estimand"] == "other instructions; these judges only"
    assert changes["estimand"] in changes["says"]
    assert [row["model"] for row in changes["models"] if row["changed"]] == ["elm"]


def test_models_that_were_rated_apart_are_never_called_not_distinguished(venire: Venire, tmp_path: Path) -> None:
    lines = ["model_a,model_b,winner,judge,instruction_id"]
    for number in range(12):
        won = "model_a" if number % 2 else "model_b"
        lines += [f"oak,elm,{won},ann,q{number}", f"ash,fir,{won},ann,q{number}"]
        lines += [f"oak,ash,model_a,ann,q{number}", f"elm,fir,model_a,ann,q{number}"]
    table = tmp_path / "apart.csv"
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    document = venire("report", table, "--format", "json").json()
    groups = {one["model"]: one["group"] for one in document["board"]["models"]}
    assert groups == {"oak": 1, "elm": 1, "ash": 2, "fir": 2}
    (tied,) = document["answer"]["tied"]
    assert {tied, document["answer"]["leader"]} == {"oak", "elm"}
    assert "the first of 2 groups" in document["answer"]["sentence"]
    assert "elm, oak; ash, fir." in report_markdown(document)


def test_judges_are_drawn_by_consistency_and_their_own_rating(
    venire: Venire, judged: Callable[..., Path], document: dict[str, Any], tmp_path: Path
) -> None:
    assert document["judge_ratings"] is None
    lines = ["first,second,verdict,judge,instruction_id"]
    models = ["oak", "elm", "ash", "fir"]
    for item in range(6):
        for place, (a, b) in enumerate((a, b) for a in models for b in models if a != b):
            for number, judge in enumerate(models):
                better = min(a, b, key=models.index)
                wrong = (item * 5 + place * 3 + number) % 10 < 1 + number
                lines.append(f"{a},{b},{(a if better == b else b) if wrong else better},{judge},q{item}")
    table = tmp_path / "peers.csv"
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    peers = venire("report", table, "--format", "json").json()
    rated = peers["judge_ratings"]
    board = {one["model"]: one for one in peers["board"]["models"]}
    assert rated["ratings"] == "of this board"
    assert {one["judge"]: (one["elo"], one["lo"], one["hi"]) for one in rated["judges"]} == {
        name: (one["elo"], one["lo"], one["hi"]) for name, one in board.items()
    }
    assert "Pearson's correlation" in rated["says"]
    page = report_html(peers)
    start = page.index("Consistency of each judge against its Elo of this board")
    assert page.count('<text class="name"', start) == 4
    given = venire("report", judged(name="given.toml", judge="elo = 1200"), "--format", "json").json()["judge_ratings"]
    assert (given["ratings"], [one["elo"] for one in given["judges"]]) == ("known before", [1200.0, 1200.0])
    assert "too few, or" in given["says"]


def test_ratings_and_intervals_without_an_end_are_shown_as_such(venire: Venire, tmp_path: Path) -> None:
    lines = ["model_a,model_b,winner,judge,instruction_id"]
    for number in range(14):
        won = "model_a" if number % 3 else "model_b"
        lines += [f"oak,elm,{won},ann,q{number}", f"top,oak,model_a,ann,q{number}", f"elm,low,model_a,ann,q{number}"]
    table = tmp_path / "open.csv"
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    document = venire("report", table, "--format", "json").json()
    rows = {one["model"]: one for one in document["board"]["models"]}
    over, under = round(rows["top"]["lo"]), round(rows["low"]["hi"])
    assert (rows["top"]["elo"], rows["top"]["hi"], rows["low"]["elo"], rows["low"]["lo"]) == (None,) * 4
    assert document["answer"]["sentence"].startswith(
        f"top is first and won every judgment it took part in: no finite rating exists (over {over} Elo points by a "
        "one-sided 95% bound); of the models with a rating oak is first with "
    )
    page = report_html(document)
    assert f"{over} or more" in page
    assert f"{under} or less" in page
    assert page.count('<path class="arrow"') == 2
    assert "An arrow at the edge" in page
    assert not re.search(r"\b(nan|inf|None)\b", page[page.index("<body>") :])
    text = report_markdown(document)
    assert f"| top | – | – | {over}" in text
    assert f"| {over} or more | 14 |" in text
    closed = tmp_path / "closed.csv"
    closed.write_text("\n".join(line for line in lines if "top" not in line and "low" not in line), encoding="utf-8")
    assert 'class="arrow"' not in report_html(venire("report", closed, "--format", "json").json())
