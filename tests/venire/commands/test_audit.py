"""`venire audit` as it is typed: from a store and from tables, on a screen, in a pipe and as JSON."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import venire as package
from venire.arena.errors import InputError
from venire.orchestrator.recording.ending import Ending
from venire.ratings.inference.options import Options
from venire.render import sections
from venire.reports.audit.audit import CHECKS
from venire.reports.audit.audit import Audit as Found
from venire.reports.audit.finding import Finding

Settle = Callable[..., Ending]
Venire = Callable[..., Any]
WriteCampaign = Callable[..., Path]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Three models on 30 instructions: a circle of eight wins in ten, in both orders."""
    lines = ["first,second,verdict,judge,instruction_id"]
    for number in range(30):
        up = number % 5 != 0
        for better, worse in (("ash", "birch"), ("birch", "cedar"), ("cedar", "ash")):
            lines.append(f"{better},{worse},{'first' if up else 'second'},ann,q{number}")
            lines.append(f"{worse},{better},{'second' if up else 'first'},ann,q{number}")
    path = tmp_path / "circle.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


WORDS = ["WORRY", "unsure", "fine", "-"]


def test_a_pipe_gets_one_line_a_check_and_worries_stand_first(venire: Venire, table: Path) -> None:
    done = venire("audit", table)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert "verdicts: recorded" in lines[0]
    assert re.search("checks worr(y|ies): ", lines[1])
    assert "circle" in lines[1]
    marks = [line.split()[0] for line in lines if line.split()[:1] and line.split()[0] in WORDS]
    assert len(marks) == len(CHECKS)
    assert marks == sorted(marks, key=WORDS.index)
    (circle,) = [line for line in lines if line.startswith("WORRY") and " circle " in line]
    assert "ash beats birch (80%)" in circle
    assert "cedar ash (80%)" in circle


def test_strict_ends_with_one_when_something_worries_and_checks_are_chosen(venire: Venire, table: Path) -> None:
    assert venire("audit", table, "--strict").code == 1
    assert venire("audit", table, "--check", "connectivity", "--strict").code == 0
    done = venire("audit", table, "--check", "circels")
    assert done.code == 2
    assert "check 'circels'; did you mean 'circle'? There are: connectivity" in done.err


def test_json_is_one_document_with_every_finding(venire: Venire, table: Path) -> None:
    done = venire("audit", table, "--json", "--seed", "3")
    found = done.json()
    assert (done.code, done.err, found["seed"]) == (0, "", 3)
    assert [one["check"] for one in found["findings"]] == list(CHECKS)
    assert set(found["worries"]) == {one["check"] for one in found["findings"] if one["worry"]}
    for one in found["findings"]:
        assert set(one) == {"check", "worry", "word", "figure", "threshold", "harmless", "unless", "says", "details"}
        assert one["worry"] is None or one["threshold"] is not None
    assert found == package.audit(table, options=Options(seed=3)).to_json()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["none.csv"], "none.csv"),
        (["TABLE", "--campaign", "x"], "leave --campaign out"),
        (["TABLE", "--map", "judge=nobody"], "nobody"),
        (["TABLE", "--level", "95"], "level is 95"),
        (["TABLE", "--where", "judge=bob"], "bob"),
        (["TABLE", "--cluster", "nothing"], "nothing"),
        (["TABLE", "--seed", "-1"], "seed is -1"),
    ],
)
def test_bad_input_is_a_sentence_and_exit_code_2(venire: Venire, table: Path, words: list[str], said: str) -> None:
    done = venire("audit", *(str(table) if word == "TABLE" else word for word in words))
    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err


def test_options_that_no_check_hears_are_refused_in_python(table: Path) -> None:
    with pytest.raises(InputError, match="does not take ridge"):
        package.audit(table, options=Options(ridge=1.0))


def test_where_and_cluster_choose_rows_and_errors(venire: Venire, table: Path) -> None:
    rows = venire("audit", table, "--where", "first=ash", "--json").json()["rows"]
    assert rows == 60
    lone = venire("audit", table, "--cluster", "none", "--check", "instructions", "--json").json()["findings"][0]
    assert lone["worry"] is None
    by_judge = venire("audit", table, "--cluster", "judge", "--check", "instructions", "--json").json()["findings"][0]
    assert "the next judges may say something else" in by_judge["says"]


def test_a_store_knows_what_was_planned_and_who_led_when(
    venire: Venire, write_campaign: WriteCampaign, settle: Settle
) -> None:
    path = write_campaign(name="done.toml")
    assert settle(path) is Ending.COMPLETE
    found = venire("audit", path.with_suffix(".duckdb"), "--json").json()
    by_name = {one["check"]: one for one in found["findings"]}
    assert found["verdicts"] == "simulated"
    assert by_name["complete"]["figure"] == 1.0
    assert len(by_name["first-place"]["details"]["path"]) == 10
    assert by_name["instructions"]["worry"] is True
    assert found["seed"] == 5
    done = venire("audit", path.with_suffix(".duckdb"), "--map", "a=b")
    assert done.code == 2


def show(width: int, *findings: Finding) -> str:
    stream = io.StringIO()
    screen = Console(file=stream, width=width, force_terminal=True, color_system=None, markup=False, highlight=False)
    sections.show(screen, Found(findings, "recorded", 10, 2, 1, 5, 0.95, 0).sections())
    return stream.getvalue()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_nothing_is_cut_on_a_terminal_of_any_width(width: int) -> None:
    says = "a model with a long name loses many of its verdicts, more than its judges lose of the others by far"
    fine = Finding("fit", False, 0.01, 0.05, "nothing \x1b[31mred")
    text = show(width, fine, Finding("circle", None, None, None, "no"), Finding("unread", True, 0.2, 0.05, says))
    words = text.split()
    assert all(word in words for word in says.split())
    assert max(len(line) for line in text.splitlines()) <= width
    assert text.index("WORRY") < text.index("fine") < text.rindex("circle")
    assert "\\x1b[31mred" in text
    assert "<= 0.05" in text


def test_an_audit_without_worries_says_so() -> None:
    assert "none of 1 checks worries" in show(80, Finding("fit", False, 0.0, 0.05, "well"))


def test_an_audit_of_nothing_but_checks_that_could_not_be_made_calls_nothing_fine() -> None:
    text = show(80, Finding("length", None, None, 0.2, "no lengths are known"))
    assert "no check could be made" in text
    assert "worries" not in text
