"""`venire prices` says what is known of a model's price and where it is from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import venire as vn
from venire.arena.errors import InputError

Venire = Callable[..., Any]
Write = Callable[..., Path]


def test_known_models_have_a_line_and_the_table_its_date(venire: Venire) -> None:
    done = venire("prices", "gpt-4o-mini", "claude-sonnet-4-5")
    assert done.code == 0
    rows = [line.split() for line in done.out.splitlines()]
    assert ["gpt-4o-mini", "$0.1500", "$0.6000", "$0.0750", "-", "128,000", "gpt-4o-mini"] in rows
    assert "by the table of litellm" in done.out


def test_a_model_without_a_price_gives_1_and_the_remedy(venire: Venire) -> None:
    done = venire("prices", "made-up", "gpt-4o-mini", "--json")
    assert done.code == 1
    made_up, mini = done.json()["models"]
    assert made_up == {"model": "made-up", "entry": None, "price": None, "context": None}
    assert mini["price"] == {"input": 0.15, "output": 0.6, "cached": 0.075, "written": None}
    assert "made-up: give price = {" in venire("prices", "made-up").out


def test_a_word_that_is_no_model_is_searched_in_the_names_of_all(venire: Venire) -> None:
    done = venire("prices", "Haiku 4-5", "openai:gpt-4o-mini", "--json")
    mini, *found = done.json()["models"]
    assert mini["entry"] == "gpt-4o-mini"
    assert found
    assert all("haiku" in one["model"] and one["price"]["input"] > 0 for one in found)
    assert "anthropic:claude-haiku-4-5" in venire("prices", "haiku").out
    many = venire("prices", "gpt")
    assert " more: " in many.out
    assert len(many.out.splitlines()) < 50


def test_without_words_models_are_counted_by_vendor(venire: Venire) -> None:
    done = venire("prices")
    assert done.code == 0
    assert len(done.out.splitlines()) < 30
    lines = (line.split() for line in done.out.splitlines())
    counts = {cells[0]: int(cells[1]) for cells in lines if cells[0].endswith(":") and cells[1].isdigit()}
    assert counts["anthropic:"] > 10
    listed = [one["model"] for one in venire("prices", "--json").json()["models"]]
    assert len(listed) == sum(counts.values())


def test_an_unknown_model_names_the_nearest(venire: Venire) -> None:
    done = venire("prices", "gpt-4o-mni")
    assert done.code == 1
    assert "openai:gpt-4o-mini" in done.out


def test_a_plan_without_a_price_names_the_nearest_model_of_the_same_vendor(
    venire: Venire, write_campaign: Write
) -> None:
    done = venire("plan", write_campaign(judges='[[judge]]\nmodel = "openai:gpt-4.1-mni"\n'))
    assert done.code == 2
    assert "the nearest known is openai:gpt-4.1-mini" in done.err
    other = '[[judge]]\nmodel = "gpt-4.1-mni"\nbase_url = "http://127.0.0.1:9/v1"\n'
    assert "nearest" not in venire("plan", write_campaign(name="other.toml", judges=other)).err


def test_a_plan_says_whose_prices_are_from_the_table(venire: Venire, write_campaign: Write) -> None:
    judge = '[[judge]]\nmodel = "gpt-4o-mini"\nbase_url = "http://127.0.0.1:9/v1"\n{}\n'
    done = venire("plan", write_campaign(judges=judge.format("")))
    assert done.code == 0
    assert "gpt-4o-mini: the table of litellm" in done.out + done.err
    given = venire("plan", write_campaign(name="given.toml", judges=judge.format("price = { input = 1, output = 1 }")))
    assert "prices of" not in given.out + given.err


PER_TOKEN = "{ input = 0.00000015, output = 0.0000006 }"
"""As many tables quote gpt-4o-mini: dollars per token."""
TRUE = "{ input = 0.15, output = 0.60 }"
MINI = 'model = "gpt-4o-mini"\nbase_url = "http://127.0.0.1:9/v1"\n'
FALLBACK = '[[judge.fallback]]\nbase_url = "http://127.0.0.1:9/v2"\nprice = '


@pytest.mark.parametrize(
    ("lines", "key"),
    [
        (f"[[judge]]\n{MINI}price = {PER_TOKEN}\n", "price.input"),
        (f"[[judge]]\n{MINI}price = {{ input = 0.15, output = 0.60, cached = 0.00000007 }}\n", "price.cached"),
        (f"[[judge]]\n{MINI}price = {{ input = 0.15, output = 0.60, written = 0.0001 }}\n", "price.written"),
        (f"[[judge]]\n{MINI}price = {TRUE}\n{FALLBACK}{PER_TOKEN}\n", "fallback[1].price.input"),
        (f"[[judge]]\n{MINI}free = true\n{FALLBACK}{PER_TOKEN}\n", "fallback[1].price.input"),
        (f'[[judge]]\n{MINI}price = {TRUE}\ntransport = "batch"\nbatch_price = {PER_TOKEN}\n', "batch_price.input"),
        (f"[[judge]]\n{MINI}price = {{ input = 0, output = 0 }}\n", "free = true"),
    ],
)
def test_a_price_that_no_model_has_is_refused_before_anything_is_asked(
    venire: Venire, write_campaign: Write, lines: str, key: str
) -> None:
    """A price per token in place of one per million makes a cap of money a million times too high."""
    file = write_campaign(judges=lines)
    for words in (["plan", file], ["run", file, "--yes"], ["simulate", file, "--as", "gpt-4-0613", "--seeds", "1"]):
        done = venire(*words)
        assert done.code == 2, words
        assert key in done.err, words
    assert not file.with_suffix(".duckdb").exists()
    done = venire("doctor", file)
    assert done.code == 1
    assert key in done.out


@pytest.mark.parametrize(("table", "verb"), [("contestant", "generate"), ("editor", "edit")])
def test_the_price_of_a_writer_is_held_to_the_same(
    venire: Venire, write_campaign: Write, table: str, verb: str
) -> None:
    file = write_campaign(more=f'[[{table}]]\nname = "echo"\n{MINI}price = {PER_TOKEN}\n')
    done = venire(verb, file, "--yes")
    assert (done.code, "times 1,000,000" in done.err) == (2, True)
    assert "has input = 0.15" in done.err


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("price = { input = 0.0025, output = 0.60 }", "price.input is $0.0025 per million tokens, 1/60 of the $0.15"),
        ("price = { input = 0.15, output = 2.0 }", "price.output is $2 per million tokens, 3.33 times the $0.6"),
        (f"price = {TRUE}\n{FALLBACK}{{ input = 0.01, output = 0.60 }}", "fallback[1].price.input"),
        (f'price = {TRUE}\ntransport = "batch"\nbatch_price = {{ input = 0.02, output = 0.3 }}', "batch_price.input"),
        ("price = { input = 0, output = 0.60 }", "price.input is $0 per million tokens, not the $0.15"),
        ("price = { input = 0.15, output = 0 }", "price.output is $0 per million tokens, not the $0.6"),
        ("price = { input = 0.15, output = 0.60, cached = 0 }", "price.cached is $0"),
        (f"price = {TRUE}\n{FALLBACK}{{ input = 0.15, output = 0 }}", "fallback[1].price.output is $0"),
        (
            f'price = {TRUE}\ntransport = "batch"\nbatch_price = {{ input = 0, output = 0.3 }}',
            "batch_price.input is $0",
        ),
    ],
)
def test_a_price_far_from_the_known_one_is_said(venire: Venire, write_campaign: Write, lines: str, says: str) -> None:
    file = write_campaign(judges=f"[[judge]]\n{MINI}{lines}\n")
    (found,) = [one for one in venire("doctor", file, "--json").json()["findings"] if "price" in one["subject"]]
    assert (found["state"], says in found["says"]) == ("warning", True)


def test_a_price_far_from_the_known_one_is_said_by_plan_and_python(venire: Venire, write_campaign: Write) -> None:
    file = write_campaign(judges=f"[[judge]]\n{MINI}price = {{ input = 0.15, output = 2.0 }}\n")
    says = "price.output is $2 per million tokens, 3.33 times the $0.6"
    assert any(says in one for one in venire("plan", file, "--json").json()["warnings"])
    said: list[str] = []
    with pytest.raises(InputError):  # nobody answers there
        vn.run(file, warn=said.append)
    assert any(says in one for one in said)


def test_a_price_near_the_known_one_is_used_without_a_word(venire: Venire, write_campaign: Write) -> None:
    near = f"price = {{ input = 0.2, output = 0.9, cached = 0.05 }}\n{FALLBACK}{{ input = 0, output = 0 }}"
    file = write_campaign(judges=f"[[judge]]\n{MINI}{near}\n")
    assert venire("plan", file, "--json").json()["warnings"] == []
