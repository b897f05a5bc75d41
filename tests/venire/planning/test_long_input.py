"""What a person sees of long input: in the plan, when the run has ended, and in the status; as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from venire.configs.loading import load_campaign

Venire = Callable[..., Any]
Write = Callable[..., Path]

JUDGE = """\
[[judge]]
name = "small"
model = "simulated/gpt-4-0613@1"
max_tokens = 300
"""


@pytest.mark.slow
def test_what_will_not_fit_is_told_before_it_is_asked_and_counted_when_it_was_not_sent(
    venire: Venire, write_campaign: Write, folder: Path
) -> None:
    path = write_campaign(judges=JUDGE + "context = 1000\n")
    planned = venire("plan", path)
    (told,) = venire("plan", path, "--json").json()["too_long"]
    assert told["context"] == 1000
    assert 0 < told["too_long"] < 120
    sentence = f"too long for small: about {told['too_long']} trials will not fit 1,000 tokens"
    assert sentence in " ".join(planned.out.split())
    done = venire("run", path, "--yes")
    assert done.code == 0
    status = venire("status", folder / "small.duckdb", "--json").json()["campaigns"][0]
    (found,) = status["long_input"]
    assert found == {"judge": "small", "unsent": found["unsent"], "refused": 0, "cut": 0, "most_cut": 0}
    assert found["unsent"] == pytest.approx(told["too_long"], abs=30)
    sentence = f"long input of small: {found['unsent']} not sent, since they do not fit its context"
    assert sentence in done.err
    assert sentence in venire("status", folder / "small.duckdb").out
    assert venire("plan", path, "--json").json()["too_long"][0]["too_long"] == 0
    assert venire("reparse", folder / "small.duckdb", "--dry-run").out.startswith("nothing changed")
    checked = venire("store", "check", folder / "small.duckdb")
    assert checked.code == 0, checked.out


@pytest.mark.parametrize("policy", ["truncate-both", pytest.param("middle", marks=pytest.mark.slow)])
def test_what_is_cut_is_judged_and_told(venire: Venire, write_campaign: Write, folder: Path, policy: str) -> None:
    path = write_campaign(instructions=1, judges=f'{JUDGE}context = 1100\ntoo_long = "{policy}"\n')
    done = venire("run", path, "--yes")
    assert done.code == 0, done.err
    status = venire("status", folder / "small.duckdb", "--json").json()["campaigns"][0]
    (found,) = status["long_input"]
    assert found["cut"] > 0 < found["most_cut"]
    assert (found["unsent"], found["refused"]) == (0, 0)
    assert f"{found['cut']} asked with texts" in done.err
    assert f"to fit, by {found['most_cut']:,} characters at most" in done.err
    assert status["judged"][0]["readable"] > 0.95  # a simulated judge knows a text by what is left of it
    again = venire("run", path, "--yes")
    assert "nothing was asked" in again.err


def test_nothing_is_said_of_long_input_where_no_context_is_known(venire: Venire, write_campaign: Write) -> None:
    path = write_campaign(instructions=1, judges=JUDGE)
    assert venire("plan", path, "--json").json()["too_long"] == [
        {"judge": "small", "context": None, "too_long": None, "policy": "error"}
    ]
    done = venire("run", path, "--yes")  # which shows the plan first
    assert done.code == 0
    assert not [one for one in ("too long", "long input") if one in done.out + done.err]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('too_long = "middle"', "missing; texts are cut to fit it (too_long)"),
        ('too_long = "shorten"', '"error", "truncate-both" or "middle"'),
        ("context = 300", "no more than max_tokens (300)"),
        ("context = 0", "a whole number from 1 to"),
    ],
)
def test_a_context_that_cannot_be_is_refused(venire: Venire, write_campaign: Write, lines: str, said: str) -> None:
    refused = venire("plan", write_campaign(judges=f"{JUDGE}{lines}\n"))
    assert refused.code == 2
    assert said in " ".join(refused.err.split())


@pytest.mark.slow
def test_a_file_without_the_new_keys_is_the_same_as_before_and_a_larger_context_asks_for_amend(
    venire: Venire, write_campaign: Write, folder: Path
) -> None:
    path = write_campaign(judges=JUDGE, more="[budget]\ncalls = 20")
    assert not {"context", "too_long"} & json.loads(load_campaign(path).settings)["judge"][0].keys()
    assert venire("run", path, "--yes").code == 3
    write_campaign(judges=JUDGE + 'too_long = "error"\n', more="[budget]\ncalls = 20")
    assert venire("run", path, "--yes").code == 3
    write_campaign(judges=JUDGE + "context = 8000\n", more="[budget]\ncalls = 20")
    assert venire("run", path, "--yes").code == 2
    amended = venire("run", path, "--yes", "--amend")
    assert amended.code == 3
    assert "20 calls" in venire("status", folder / "small.duckdb").out  # the same judge: nothing is asked again


def test_the_last_line_says_that_all_was_too_long_and_what_to_do(venire: Venire, write_campaign: Write) -> None:
    done = venire("run", write_campaign(instructions=1, judges=JUDGE + "context = 500\n"), "--yes")
    last = " ".join(done.err.split("\n\n")[-1].split())
    assert last.startswith("too long: all ")
    assert 'too_long = "truncate-both"' in last
