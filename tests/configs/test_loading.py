"""A campaign file becomes plain records; a wrong one is refused with everything that is wrong, and no secret shown."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from venire.arena.budgets import BudgetSettings
from venire.arena.campaigns import (
    CampaignSettings,
    DataSettings,
    LaneSettings,
    Limits,
    PhaseSettings,
    PlanSettings,
    RouteSettings,
    TokenPrice,
)
from venire.arena.errors import InputError
from venire.configs.loading import difference, load_campaign

SIMULATED = '[[judge]]\nmodel = "simulated/gpt-4-0613@1"\n'
FULL = """
name = "mine"
seed = 7
store = "data/mine.duckdb"
[data]
instructions = "i.jsonl"
completions = "c.parquet"
elo = "/abroad/elo.csv"
models = ["a", "b"]
[data.map]
elo = { elo = "arena_elo" }
[data.families]
"gpt-4.1" = "openai"
[plan]
policy = "random"
matchups = 12
instructions = 20
coverage = 0.5
repeats = 2
[[judge]]
name = "gpt"
model = "gpt-4o-mini"
provider = "litellm"
base_url = "https://api.openai.com/v1/"
key_variable = "OPENAI_API_KEY"
protocol = "criteria"
temperature = 0.70
max_tokens = 900
repair = false
requests_per_minute = 500
concurrency = 8
timeout = 30.5
max_attempts = 3
elo = 1200
family = "openai"
price = { input = 0.15, output = 0.60 }
[budget]
calls = 1000
money = 5.00
"""

Load = Callable[[str], CampaignSettings]


def judge(**keys: str) -> str:
    """One judge table of TOML values, real and complete unless told otherwise."""
    table = {"model": '"m"', "base_url": '"https://host.example/v1"'} | keys
    return "[[judge]]\n" + "".join(f"{key} = {value}\n" for key, value in table.items() if value)


def test_every_key_of_the_file_reaches_its_record(load: Load, tmp_path: Path) -> None:
    campaign = load(FULL)
    assert (campaign.name, campaign.seed) == ("mine", 7)
    assert (campaign.path, campaign.store) == (tmp_path / "first.toml", tmp_path / "data/mine.duckdb")
    assert campaign.text == FULL
    assert campaign.data == DataSettings(
        instructions=tmp_path / "i.jsonl",
        completions=tmp_path / "c.parquet",
        elo=Path("/abroad/elo.csv"),
        maps={"elo": {"elo": "arena_elo"}},
        models=("a", "b"),
        families={"gpt-4.1": "openai"},
    )
    assert campaign.plan == PlanSettings((PhaseSettings("random", matchups=12, coverage=0.5),), 20, 2)
    assert campaign.budget == BudgetSettings(calls=1000, money=5_000_000_000)
    (only,) = campaign.judges
    assert only.lane == LaneSettings(
        (RouteSettings("litellm", "https://api.openai.com/v1", "OPENAI_API_KEY", "gpt-4o-mini"),),
        Limits(requests_per_minute=500),
        concurrency=8,
        timeout=30.5,
        max_attempts=3,
    )
    assert only.options == {"max_tokens": "900", "repair": "0", "temperature": "0.7"}
    assert (only.name, only.model, only.protocol) == ("gpt", "gpt-4o-mini", "criteria")
    assert (only.price, only.free) == (TokenPrice(150_000_000, 600_000_000), False)
    assert (only.elo, only.family) == (1200.0, "openai")


def test_a_file_with_one_simulated_judge_has_defaults_for_the_rest(load: Load, tmp_path: Path) -> None:
    campaign = load(SIMULATED)
    assert (campaign.name, campaign.seed, campaign.store) == ("first", 0, tmp_path / "first.duckdb")
    assert (campaign.data, campaign.plan, campaign.budget) == (DataSettings(), PlanSettings(), BudgetSettings())
    (only,) = campaign.judges
    model = "simulated/gpt-4-0613@1"
    assert (only.name, only.protocol, only.price, only.free) == (model, "two-stage", None, True)
    assert only.options == {"max_tokens": "800", "repair": "1", "temperature": "0"}
    assert only.lane == LaneSettings((RouteSettings("openai", None, None, model),))


def test_an_unchanged_default_of_the_records_is_the_files_default(load: Load) -> None:
    fields = {field.name: field.default for field in dataclasses.fields(LaneSettings)}
    lane = load(SIMULATED).judges[0].lane
    for name in fields.keys() - {"routes", "headers"}:
        assert getattr(lane, name) == fields[name], name


@pytest.mark.parametrize(
    ("written", "option"),
    [("0.0", "0"), ("-0.0", "0"), ("0", "0"), ("0.70", "0.7"), ("1", "1"), ("1e-3", "0.001"), ("0e-999999", "0")],
)
def test_a_temperature_has_one_text_however_it_is_written(load: Load, written: str, option: str) -> None:
    assert load(SIMULATED + f"temperature = {written}\n").judges[0].options["temperature"] == option


def test_a_default_temperature_is_left_out(load: Load) -> None:
    assert "temperature" not in load(SIMULATED + 'temperature = "default"\n').judges[0].options


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(nano=st.integers(0, 10**18), price=st.integers(0, 10**18), zeros=st.integers(0, 12))
def test_money_and_prices_are_exact_to_the_nano_dollar(load: Load, nano: int, price: int, zeros: int) -> None:
    def written(amount: int) -> str:
        whole, rest = divmod(amount, 10**9)
        return f"{whole}.{rest:09d}" + "0" * zeros

    text = SIMULATED + f"price = {{ input = {written(price)}, output = {written(nano)} }}\n"
    campaign = load(text + f"[budget]\nmoney = {written(nano)}\n")
    assert campaign.budget.money == nano
    assert campaign.judges[0].price == TokenPrice(price, nano)


def test_rates_of_a_cache_are_optional_and_a_file_without_them_is_the_same_as_before_there_were_any(load: Load) -> None:
    plain = load(SIMULATED + "price = { input = 1.5, output = 6.00 }\n")
    assert plain.judges[0].price == TokenPrice(1_500_000_000, 6_000_000_000)
    assert '"price":{"input":"1.5","output":"6"}' in plain.settings
    caching = load(SIMULATED + "price = { input = 1.5, output = 6, cached = 0.15, written = 1.875 }\n")
    assert caching.judges[0].price == TokenPrice(1_500_000_000, 6_000_000_000, 150_000_000, 1_875_000_000)
    assert '"price":{"cached":"0.15","input":"1.5","output":"6","written":"1.875"}' in caching.settings


def test_cached_input_that_costs_more_than_other_input_is_refused(load: Load) -> None:
    with pytest.raises(InputError, match=r"judge\[1\]\.price\.cached .*: above input"):
        load(SIMULATED + "price = { input = 1.5, output = 6, cached = 1.6 }\n")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=st.decimals(min_value=0, max_value=1000, places=10).filter(lambda v: v * 10**9 != int(v * 10**9)))
def test_a_tenth_decimal_of_money_is_refused(load: Load, value: Decimal) -> None:
    with pytest.raises(InputError, match=r"budget\.money: found .*at most 9 decimals"):
        load(SIMULATED + f"[budget]\nmoney = {value:f}\n")


@pytest.mark.parametrize("value", ["-1", "1e10", "nan", "inf", '"5"', "true", "1e-999999999", "0x" + "f" * 5000])
def test_money_that_is_no_sensible_amount_is_refused(refusal: Callable[[str], str], value: str) -> None:
    assert "budget.money: found " in refusal(SIMULATED + f"[budget]\nmoney = {value}\n")


def test_a_price_makes_a_simulated_judge_cost_something(load: Load) -> None:
    assert load(SIMULATED + "price = { input = 1, output = 2 }\n").judges[0].free is False


def test_a_real_judge_without_a_price_is_not_free(load: Load) -> None:
    only = load(judge()).judges[0]
    assert (only.price, only.free) == (None, False)


def test_all_pairs_has_no_number_of_matchups(load: Load, refusal: Callable[[str], str]) -> None:
    plan = '[plan]\npolicy = "all-pairs"\n'
    assert load(SIMULATED + plan).plan.phases[0].matchups is None
    assert "plan.matchups: policy" in refusal(SIMULATED + plan + "matchups = 3\n")


@pytest.mark.parametrize(
    ("key", "value", "accepted"),
    [
        ("matchups", "0", "a whole number from 1"),
        ("matchups", "1.5", "a whole number from 1"),
        ("matchups", "true", "a whole number from 1"),
        ("coverage", "0", "above 0 and at most 1"),
        ("coverage", "1.01", "above 0 and at most 1"),
        ("repeats", "0", "a whole number from 1"),
        ("instructions", "0", "a whole number from 1"),
        ("policy", '"widest"', '"information", "gap-error" or "recorded"'),
    ],
)
def test_a_plan_outside_its_ranges_is_refused_with_what_is_accepted(
    refusal: Callable[[str], str], tmp_path: Path, key: str, value: str, accepted: str
) -> None:
    message = refusal(SIMULATED + f"[plan]\n{key} = {value}\n")
    assert message.startswith(f"{tmp_path / 'first.toml'}: plan.{key}: found {value}")
    assert accepted in message


def test_an_error_names_the_judge_by_its_place_from_one_and_its_name(refusal: Callable[[str], str]) -> None:
    message = refusal(judge(name='"a"') + judge(name='"b"', requests_per_minute='"fast"'))
    assert 'judge[2].requests_per_minute (judge "b"): found "fast"; accepted: a whole number' in message


@pytest.mark.parametrize(
    ("text", "place", "nearest"),
    [
        (judge(request_per_minute="5"), "judge[1].request_per_minute", "requests_per_minute"),
        (judge(price="{ input = 1, output = 1, outputs = 1 }"), "judge[1].price.outputs", "output"),
        (SIMULATED + "[budget]\nmony = 5\n", "budget.mony", "money"),
        ("sead = 5\n" + SIMULATED, "sead", "seed"),
        (SIMULATED + "[data]\nmodel = ['a', 'b']\n", "data.model", "models"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_accepted_one(
    refusal: Callable[[str], str], text: str, place: str, nearest: str
) -> None:
    message = refusal(text)
    assert f"{place}" in message
    assert f'unknown key; did you mean "{nearest}"?' in message


def test_an_unknown_key_like_no_other_is_refused_with_all_accepted_ones(refusal: Callable[[str], str]) -> None:
    assert "budget.zzz: unknown key; accepted: calls, generation, judge, model, money, tokens" in refusal(
        SIMULATED + "[budget]\nzzz = 1\n"
    )


def test_all_errors_stand_in_one_message_one_a_line(refusal: Callable[[str], str], tmp_path: Path) -> None:
    message = refusal(
        'seed = -1\n[plan]\npolicy = "all-pairs"\nmatchups = 0\n'
        + judge(name='"a"', free="true", price="{ input = 1, output = 1 }", max_tokens="0", base_url="")
        + judge(name='"a"')
        + "[budget]\ncalls = 0\n"
    )
    expected = [
        "seed: found -1",
        "plan.matchups: found 0",
        "plan.matchups: policy",
        'judge[1].max_tokens (judge "a"): found 0',
        'judge[1].free (judge "a"): free and price are both given',
        'judge[1].base_url (judge "a"): missing',
        'judge[2].name (judge "a"): the name "a" is taken by judge[1]',
        "budget.calls: found 0",
    ]
    assert len(message.splitlines()) == len(expected)
    for part in expected:
        assert f"{tmp_path / 'first.toml'}: {part}" in message


@pytest.mark.parametrize("text", ["", "judge = []", '[judge]\nmodel = "m"', "judge = 5", 'judge = ["m"]'])
def test_at_least_one_judge_is_needed(refusal: Callable[[str], str], text: str) -> None:
    assert "one or more [[judge]] tables" in refusal(text)


def test_judges_are_told_apart_by_their_names_even_when_left_to_the_model(refusal: Callable[[str], str]) -> None:
    assert 'judge[2].name (judge "m"): the name "m" is taken by judge[1]' in refusal(judge() + judge(name='"m"'))


def test_litellm_needs_a_base_url(refusal: Callable[[str], str], load: Load) -> None:
    assert "a key cannot go to a wrong host" in refusal(judge(provider='"litellm"', base_url=""))
    assert "judge[1].base_url" in refusal(SIMULATED + 'provider = "litellm"\n')
    assert load(judge(provider='"litellm"')).judges[0].lane.routes[0].provider == "litellm"


@pytest.mark.parametrize("key", ["requests_per_minute", "concurrency", "timeout", "max_attempts"])
def test_judges_of_one_lane_have_the_same_limits(refusal: Callable[[str], str], key: str) -> None:
    message = refusal(judge(name='"a"', **{key: "7"}) + judge(name='"b"', **{key: "9"}))
    assert 'judge[2] (judge "b"): shares a lane with judge[1] (judge "a")' in message
    assert f"{key} 7 and 9" in message


def test_a_limit_left_to_its_default_differs_from_one_that_is_given(refusal: Callable[[str], str]) -> None:
    message = refusal(judge(name='"a"', requests_per_minute="7") + judge(name='"b"'))
    assert "requests_per_minute 7 and not given" in message


@pytest.mark.parametrize("key", ["model", "key_variable", "base_url", "provider"])
def test_judges_of_two_lanes_may_have_their_own_limits(load: Load, key: str) -> None:
    other = {"model": '"m2"', "key_variable": '"OTHER"', "base_url": '"https://other.example"', "provider": '"litellm"'}
    text = judge(name='"a"', timeout="7") + judge(name='"b"', timeout="9", **{key: other[key]})
    assert [each.lane.timeout for each in load(text).judges] == [7.0, 9.0]


def test_a_slash_at_the_end_does_not_make_another_lane(load: Load) -> None:
    lanes = [
        each.lane for each in load(judge(name='"a"') + judge(name='"b"', base_url='"https://host.example/v1/"')).judges
    ]
    assert lanes[0] == lanes[1]


def test_a_map_for_a_file_that_is_not_named_is_refused(refusal: Callable[[str], str]) -> None:
    assert "data.map.elo: a map for a file" in refusal(SIMULATED + '[data.map]\nelo = { elo = "x" }\n')


@pytest.mark.parametrize("models", ['["a"]', '["a", "a"]', '["a", 3]', '"a"'])
def test_contestants_are_at_least_two_and_each_once(refusal: Callable[[str], str], models: str) -> None:
    assert "at least two model names, each once" in refusal(SIMULATED + f"[data]\nmodels = {models}\n")


def test_a_missing_file_a_folder_and_bytes_are_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.toml: no such campaign file"):
        load_campaign(tmp_path / "none.toml")
    with pytest.raises(InputError, match="cannot be read"):
        load_campaign(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"')
    with pytest.raises(InputError, match=r"latin\.toml: not a UTF-8 text"):
        load_campaign(tmp_path / "latin.toml")


@pytest.mark.parametrize(
    "text", ["a = ", "[a]\n[a]", "a = " + "[" * 10_000, "a = " + "9" * 5000, "a = 1e99999999999999999999"]
)
def test_what_is_no_toml_is_refused_in_words(refusal: Callable[[str], str], text: str) -> None:
    assert "first.toml: not valid TOML" in refusal(text)


def test_a_syntax_error_names_its_line(refusal: Callable[[str], str]) -> None:
    assert "line 2" in refusal("seed = 1\nname = first")


def test_settings_are_the_same_for_files_that_mean_the_same(load: Load) -> None:
    plain = load(judge(temperature="0.70", price="{ input = 1, output = 2.50 }") + "[budget]\nmoney = 5\n")
    other = load(
        "# the same\n[budget]\nmoney = 5.00\n"
        + judge(
            base_url='"https://host.example/v1/"', price="{ output = 2.5, input = 1.0 }", temperature="0.7", name='"m"'
        )
    )
    assert plain.settings == other.settings
    assert plain.text != other.text


def test_settings_change_with_the_file_and_hold_the_defaults(load: Load) -> None:
    settled = load(SIMULATED).settings
    assert load(SIMULATED + "max_tokens = 801\n").settings != settled
    assert load(SIMULATED + 'temperature = "default"\n').settings != settled
    read = json.loads(settled)
    assert settled == json.dumps(read, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert (read["name"], read["store"], read["seed"]) == ("first", "first.duckdb", 0)
    assert (read["judge"][0]["max_tokens"], read["judge"][0]["free"]) == (800, True)
    assert load(SIMULATED + '[plan]\npolicy = "all-pairs"\n').settings.count('"matchups":null') == 1


def test_settings_do_not_depend_on_the_folder(tmp_path: Path) -> None:
    found = set()
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "c.toml").write_text(SIMULATED + '[data]\nelo = "elo.csv"\n')
        found.add(load_campaign(tmp_path / folder / "c.toml").settings)
    assert len(found) == 1


def test_a_difference_shows_both_files_by_their_times() -> None:
    shown = difference("seed = 1\nname = 'a'\n", "seed = 2\nname = 'a'\n")
    assert shown.splitlines() == [
        "--- as started",
        "+++ as it is now",
        "@@ -1,2 +1,2 @@",
        "-seed = 1",
        "+seed = 2",
        " name = 'a'",
    ]
    assert difference("same\n", "same\n") == ""


@pytest.mark.parametrize(
    ("provider", "home"),
    [
        ("anthropic", "https://api.anthropic.com/v1"),
        ("gemini", "https://generativelanguage.googleapis.com/v1beta"),
    ],
)
def test_a_provider_with_one_host_needs_no_base_url(
    refusal: Callable[[str], str], load: Load, provider: str, home: str
) -> None:
    named = f'"{provider}"'
    assert load(judge(provider=named, base_url="")).judges[0].lane.routes[0].base_url == home
    assert load(judge(provider=named)).judges[0].lane.routes[0].base_url == "https://host.example/v1"
    assert "leave provider out" in refusal(SIMULATED + f"provider = {named}\n")


def test_a_temperature_that_anthropic_refuses_is_refused_here(refusal: Callable[[str], str], load: Load) -> None:
    assert "from 0 to 1" in refusal(judge(provider='"anthropic"', temperature="1.1"))
    for temperature in ("1", "0.5", '"default"'):
        load(judge(provider='"anthropic"', temperature=temperature))
    load(judge(temperature="1.1"))
