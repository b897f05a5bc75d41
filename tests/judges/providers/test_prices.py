"""Prices from the table, and tokens from bytes."""

from __future__ import annotations

import json
from importlib.machinery import ModuleSpec

import pytest

from venire.arena.campaigns import TokenPrice
from venire.judges.providers import price_table
from venire.judges.providers.price_table import selling_vendor
from venire.judges.providers.token_counting import estimate, worst_case


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Puts a table of our own in the place of the shipped one."""

    def put(entries):
        path = tmp_path / "model_prices_and_context_window_backup.json"
        path.write_text(entries if isinstance(entries, str) else json.dumps(entries), encoding="utf-8")
        spec = ModuleSpec("litellm", None, origin=str(tmp_path / "__init__.py"))
        monkeypatch.setattr(price_table, "find_spec", lambda name: spec)
        price_table._table.cache_clear()

    yield put
    price_table._table.cache_clear()


def test_the_shipped_table_knows_a_common_model():
    assert price_table.find_price("gpt-4o-mini") == TokenPrice(150_000_000, 600_000_000, cached=75_000_000)
    assert price_table.find_price("openai/gpt-4o-mini") == price_table.find_price("gpt-4o-mini")


def test_prices_are_exact(table):
    table('{"m": {"mode": "chat", "input_cost_per_token": 1.5e-07, "output_cost_per_token": 0.0000001}}')
    assert price_table.find_price("m") == TokenPrice(150_000_000, 100_000_000)


def test_the_shipped_table_knows_what_a_cache_costs():
    assert price_table.find_price("claude-sonnet-4-5") == TokenPrice(3 * 10**9, 15 * 10**9, 300_000_000, 3_750_000_000)


@pytest.mark.parametrize(
    ("read", "write", "cached", "written"),
    [
        (1e-7, 1.25e-6, 100_000_000, 1_250_000_000),
        (1e-6, 1e-6, 10**9, None),
        (0, 0, None, None),
        (2e-6, 5e-7, None, None),
        (None, None, None, None),
    ],
)
def test_rates_of_a_cache_count_only_where_they_can_be_true(table, read, write, cached, written):
    rates = {"cache_read_input_token_cost": read, "cache_creation_input_token_cost": write}
    table({"m": {"mode": "chat", "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6, **rates}})
    assert price_table.find_price("m") == TokenPrice(10**9, 2 * 10**9, cached, written)


def test_a_fraction_of_a_nano_dollar_is_rounded_up(table):
    table('{"m": {"mode": "chat", "input_cost_per_token": 0.000015000020000000002, "output_cost_per_token": 0}}')
    assert price_table.find_price("m") == TokenPrice(15_000_020_001, 0)


def test_the_whole_name_comes_before_the_part(table):
    rate = {"mode": "chat", "output_cost_per_token": 0}
    table({"v/m": {**rate, "input_cost_per_token": 1}, "m": {**rate, "input_cost_per_token": 2}})
    assert price_table.find_price("v/m") == TokenPrice(10**15, 0)
    assert price_table.find_price("w/m") == TokenPrice(2 * 10**15, 0)
    assert price_table.find_price("u/w/m") is None


@pytest.mark.parametrize(
    "entry",
    [
        {"mode": "embedding", "input_cost_per_token": 1, "output_cost_per_token": 0},
        {"mode": "chat", "input_cost_per_token": 1},
        {"mode": "chat", "output_cost_per_token": 1},
        {"mode": "chat", "input_cost_per_token": "much", "output_cost_per_token": 1},
        {"mode": "chat", "input_cost_per_token": True, "output_cost_per_token": 1},
    ],
)
def test_half_a_price_is_none(table, entry):
    table({"m": entry})
    assert price_table.find_price("m") is None


def test_without_a_table_no_price_is_known(monkeypatch):
    monkeypatch.setattr(price_table, "find_spec", lambda name: None)
    price_table._table.cache_clear()
    assert price_table.find_price("gpt-4o-mini") is None
    price_table._table.cache_clear()


def test_tokens_are_about_a_quarter_of_the_bytes():
    assert (estimate(""), estimate("a"), estimate("abcd"), estimate("abcde")) == (1, 1, 1, 2)
    assert estimate("数学") == 2


def test_the_worst_case_is_never_less_than_the_estimate():
    assert worst_case(b"") == 1
    assert worst_case(b"x" * 301) == 301
    for text in ("word " * 100, "数学" * 100, ""):
        assert worst_case(text.encode()) >= estimate(text)


def test_the_table_is_named_with_the_date_of_the_locked_release(request):
    """A new release in requirements.lock needs its date in `_TABLE_DATES`: that of the files in its wheel."""
    lock = (request.config.rootpath / "requirements.lock").read_text(encoding="utf-8")
    (locked,) = [line.split()[0] for line in lock.splitlines() if line.startswith("litellm==")]
    assert locked.removeprefix("litellm==") in price_table._TABLE_DATES
    assert "the table of litellm" in price_table.price_table()


def test_an_entry_is_named_as_it_was_found(table):
    price = {"mode": "chat", "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6, "max_input_tokens": 9}
    table(
        {"m": price, "openrouter/m": {**price, "max_input_tokens": 5}, "picture": {**price, "mode": "image_generation"}}
    )
    assert price_table.find_model("m") == price_table.KnownModel("m", TokenPrice(10**9, 2 * 10**9), 9)
    assert price_table.find_model("x/m").entry == "m"
    assert price_table.find_model("m", "https://openrouter.ai/api/v1").entry == "openrouter/m"
    assert price_table.find_model("picture") is None
    assert price_table.find_model("unknown") is None


def test_a_bare_name_is_of_the_one_vendor_that_sells_it(table) -> None:
    price = {"mode": "chat", "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}
    table(
        {
            "listed": {**price, "litellm_provider": "anthropic"},
            "groq/alone": price,
            "together_ai/many": price,
            "mistral/many": price,
            "ollama/mine": price,
            "embedding": {**price, "mode": "embedding", "litellm_provider": "openai"},
        }
    )
    found = {name: selling_vendor(name) for name in ("listed", "alone", "many", "mine", "embedding", "unknown")}
    assert found == {**dict.fromkeys(found), "listed": "anthropic", "alone": "groq"}
