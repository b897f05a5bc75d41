"""`venire prices` says what is known of a model's price and where it is from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

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
    assert "no price is known of made-up: give price = { input" in venire("prices", "made-up").out


def test_a_plan_says_whose_prices_are_from_the_table(venire: Venire, write_campaign: Write) -> None:
    judge = '[[judge]]\nmodel = "gpt-4o-mini"\nbase_url = "http://127.0.0.1:9/v1"\n{}\n'
    done = venire("plan", write_campaign(judges=judge.format("")))
    assert done.code == 0
    assert "prices of gpt-4o-mini: the table of litellm" in done.out + done.err
    given = venire("plan", write_campaign(name="given.toml", judges=judge.format("price = { input = 1, output = 1 }")))
    assert "prices of" not in given.out + given.err
