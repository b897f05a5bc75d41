"""Several keys and fallback endpoints in a campaign file: what they become, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from venire.arena.campaigns import CampaignSettings, Limits, RouteSettings, TokenPrice
from venire.arena.errors import InputError
from venire.configs.loading import load_campaign

URL, OTHER = "http://one.example/v1", "http://other.example/v1"
JUDGE = f'[[judge]]\nname = "a"\nmodel = "m"\nbase_url = "{URL}"\nfree = true\n'
SECOND = f'[[judge]]\nname = "b"\nmodel = "m"\nbase_url = "{URL}"\nfree = true\n'
FALLBACK = f'[[judge.fallback]]\nbase_url = "{OTHER}"\n'

Load = Callable[[str], CampaignSettings]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def load(text: str) -> CampaignSettings:
        (tmp_path / "c.toml").write_text('[plan]\npolicy = "all-pairs"\n' + text, encoding="utf-8")
        return load_campaign(tmp_path / "c.toml")

    return load


def test_keys_stand_side_by_side_and_fallbacks_behind_them_in_their_order(load: Load) -> None:
    free = "price = { input = 0, output = 0 }\n"
    more = 'key_variable = "C"\nmodel = "m-2"\nprovider = "litellm"\nprice = { input = 1, output = 2 }\n'
    lane = load(JUDGE + 'key_variables = ["A", "B"]\n' + FALLBACK + free + FALLBACK + more).judges[0].lane
    assert lane.routes == (
        RouteSettings("openai", URL, "A", "m"),
        RouteSettings("openai", URL, "B", "m"),
        RouteSettings("openai", OTHER, None, "m", 1, TokenPrice(0, 0)),
        RouteSettings("litellm", OTHER, "C", "m-2", 2, TokenPrice(10**9, 2 * 10**9)),
    )
    assert lane.workers == 2 * lane.concurrency, "fallbacks stand in for keys, not beside them"


def test_limits_and_times_are_read_and_their_defaults_are_as_documented(load: Load) -> None:
    lane = load(JUDGE).judges[0].lane
    assert lane.limits == Limits()
    assert (lane.share, lane.skew, lane.max_elapsed, lane.patience) == (1.0, 1.0, 21_600.0, 900.0)
    lane = (
        load(
            JUDGE + "requests_per_minute = 1\ntokens_per_minute = 2\ninput_tokens_per_minute = 3\n"
            "output_tokens_per_minute = 4\nrequests_per_day = 5\nshare = 0.5\nskew = 0\n"
            "max_elapsed = 60\npatience = 2592000\n"
        )
        .judges[0]
        .lane
    )
    assert lane.limits == Limits(1, 2, 3, 4, 5)
    assert (lane.share, lane.skew, lane.max_elapsed, lane.patience) == (0.5, 0.0, 60.0, 2_592_000.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (JUDGE + 'key_variables = ["A"]\n', "at least two names"),
        (JUDGE + 'key_variables = ["A", "A"]\n', "a name twice"),
        (JUDGE + 'key_variables = ["A", "B"]\nkey_variable = "C"\n', "both given"),
        (JUDGE + 'key_variables = ["A", "sk-1234567890"]\n', "looks like a key itself"),
        (JUDGE + "share = 0\n", "above 0 and at most 1"),
        (JUDGE + "skew = 61\n", "from 0 to 60"),
        (JUDGE + "patience = 0\n", "above 0 and at most 2592000"),
        (JUDGE + "tokens_per_minute = 0\n", "whole number from 1"),
        (JUDGE + f'[judge.fallback]\nbase_url = "{OTHER}"\n', "with double brackets"),
        (JUDGE + '[[judge.fallback]]\nmodel = "x"\n', "fallback[1].base_url"),
        (JUDGE + FALLBACK + "concurrency = 3\n", "unknown key"),
        (JUDGE + f'[[judge.fallback]]\nbase_url = "{URL}"\n', "leave out a fallback that is no other way"),
        (JUDGE + FALLBACK + FALLBACK, "leave out a fallback that is no other way"),
        ('[[judge]]\nmodel = "simulated/gpt-4-0613@1"\n' + FALLBACK, "has no other endpoint"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_words_that_say_what_to_do(load: Load, text: str, said: str) -> None:
    with pytest.raises(InputError) as raised:
        load(text)
    assert said in str(raised.value)
    assert "sk-1234567890" not in str(raised.value)


def test_judges_that_share_a_key_have_one_set_of_limits_though_their_lanes_differ(load: Load) -> None:
    both = JUDGE + 'key_variables = ["A", "B"]\nrequests_per_minute = 60\n' + SECOND + 'key_variable = "B"\n'
    with pytest.raises(InputError, match=r"shares a key with judge\[1\].*requests_per_minute 60 and not given"):
        load(both)
    load(both + "requests_per_minute = 60\nmax_attempts = 9\npatience = 5\n")


def test_judges_that_share_a_fallback_have_one_set_of_limits(load: Load) -> None:
    other = f'[[judge]]\nname = "b"\nmodel = "m"\nbase_url = "{OTHER}"\nfree = true\nconcurrency = 3\n'
    with pytest.raises(InputError, match=r"shares a key with.*concurrency 16 and 3"):
        load(JUDGE + FALLBACK + other)
