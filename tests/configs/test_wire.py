"""How a judge is reached: its timeouts, its headers, its proxy; no secret stands in the file."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from venire.arena.campaigns import CampaignSettings, LaneSettings, RouteSettings
from venire.arena.errors import InputError

SECRET = "sk-proj-A1b2C3d4E5f6G7h8"
JUDGE = '[[judge]]\nname = "{0}"\nmodel = "m"\nbase_url = "https://host.example/v1"\n'
NEW = ("connect_timeout", "read_timeout", "headers", "proxy", "proxy_variable")


@pytest.fixture
def refusal(load: Callable[[str], CampaignSettings]) -> Callable[[str], str]:
    def refused(text: str) -> str:
        with pytest.raises(InputError) as caught:
            load(JUDGE.format("a") + text)
        return str(caught.value)

    return refused


def test_every_key_reaches_the_lane(load: Callable[[str], CampaignSettings]) -> None:
    text = 'connect_timeout = 2.5\nread_timeout = 30\nheaders = { "X-Title" = "mine", OpenAI-Project = "p" }\n'
    (only,) = load(JUDGE.format("a") + text + 'proxy = "http://proxy.example.org:3128/"\n').judges
    assert (only.lane.connect_timeout, only.lane.read_timeout) == (2.5, 30.0)
    assert only.lane.headers == {"X-Title": "mine", "OpenAI-Project": "p"}
    assert (only.lane.proxy, only.lane.proxy_variable) == ("http://proxy.example.org:3128", None)
    (only,) = load(JUDGE.format("a") + 'proxy_variable = "HTTPS_PROXY"\n').judges
    assert (only.lane.proxy, only.lane.proxy_variable) == (None, "HTTPS_PROXY")


def test_the_defaults_of_the_file_are_those_of_the_records(load: Callable[[str], CampaignSettings]) -> None:
    (only,) = load(JUDGE.format("a")).judges
    assert only.lane == LaneSettings((RouteSettings("openai", "https://host.example/v1", None, "m"),))


def test_a_file_without_the_keys_is_the_same_as_before_they_were_there(load: Callable[[str], CampaignSettings]) -> None:
    """Else every campaign that was begun before would be refused as changed."""
    plain = load(JUDGE.format("a"))
    assert not set(NEW) & set(json.loads(plain.settings)["judge"][0])
    spelled = load(JUDGE.format("a") + "connect_timeout = 15.0\nheaders = {}\n")
    assert spelled.settings == plain.settings
    for line in ("connect_timeout = 14", "read_timeout = 15", 'headers = { a = "b" }', 'proxy = "http://p"'):
        assert load(JUDGE.format("a") + line).settings != plain.settings


@pytest.mark.parametrize(
    "name",
    [
        "Authorization",
        "x-api-key",
        "api-key",
        "X-Goog-Api-Key",
        "Cookie",
        "Proxy-Authorization",
        "Helicone-Auth",
        "X-Access-Token",
        "X-Secret",
        "Ocp-Apim-Subscription-Key",
        "X-Password",
    ],
)
def test_a_header_that_may_be_a_credential_is_refused_and_not_shown(refusal: Callable[[str], str], name: str) -> None:
    said = refusal(f'headers = {{ "{name}" = "hunter22" }}\n')
    assert "judge[1].headers" in said
    assert "key_variable" in said
    assert "hunter22" not in said


@pytest.mark.parametrize("value", [f"Bearer {SECRET}", "basic aHVudGVyMjI=", SECRET, f" {SECRET}"])
def test_a_credential_under_a_harmless_name_is_refused_and_not_shown(refusal: Callable[[str], str], value: str) -> None:
    said = refusal(f'headers = {{ "X-Title" = "{value}" }}\n')
    assert "key_variable" in said
    assert value.strip() not in said


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ('{ Content-Type = "text/plain" }', "sets by itself"),
        ('{ host = "other.example" }', "sets by itself"),
        ('{ Accept-Encoding = "br" }', "sets by itself"),
        ('{ "X A" = "b" }', "HTTP cannot carry"),
        ('{ "X-A" = "b\\r\\nHost: evil" }', "HTTP cannot carry"),
        ('{ "X-A" = "naïve" }', "HTTP cannot carry"),
        ('{ "X-A" = "1", "x-a" = "2" }', "twice"),
        ('{ "X-A" = 5 }', "a table of texts"),
        ('"X-A: b"', "a table of texts"),
    ],
)
def test_a_header_that_cannot_be_sent_is_refused(refusal: Callable[[str], str], headers: str, words: str) -> None:
    said = refusal(f"headers = {headers}\n")
    assert "judge[1].headers" in said
    assert words in said


@pytest.mark.parametrize(
    "proxy", ["http://me:hunter22@proxy:3128", "http://hunter22@proxy", "https://hunter22:x@proxy", "hunter22@proxy"]
)
def test_a_proxy_with_a_password_is_refused_and_not_shown(refusal: Callable[[str], str], proxy: str) -> None:
    said = refusal(f'proxy = "{proxy}"\n')
    assert "judge[1].proxy" in said
    assert "proxy_variable" in said
    assert "hunter22" not in said


@pytest.mark.parametrize(
    "proxy", ["proxy:3128", "https://proxy", "socks5://proxy", "http://", "http://p/path", "http://p:x"]
)
def test_a_proxy_that_is_none_is_refused(refusal: Callable[[str], str], proxy: str) -> None:
    assert "such as http://proxy.example.org:3128" in refusal(f'proxy = "{proxy}"\n')


@pytest.mark.parametrize("variable", [SECRET, "http://me:hunter22@proxy", "A1B2C3D4E5F6G7H8"])
def test_the_variable_of_a_proxy_is_a_name(refusal: Callable[[str], str], variable: str) -> None:
    said = refusal(f'proxy_variable = "{variable}"\n')
    assert "name of an environment variable" in said
    assert variable not in said
    assert "hunter22" not in said


def test_a_proxy_is_given_once(refusal: Callable[[str], str]) -> None:
    assert "give one of them" in refusal('proxy = "http://p"\nproxy_variable = "P"\n')


@pytest.mark.parametrize("line", ['proxy = "http://p"', 'proxy_variable = "P"'])
def test_litellm_has_no_proxy(refusal: Callable[[str], str], line: str) -> None:
    assert "not asked through a proxy" in refusal(f'provider = "litellm"\n{line}\n')


@pytest.mark.parametrize(
    "line",
    [
        "connect_timeout = 0",
        "read_timeout = -1",
        "read_timeout = 86401",
        "read_timeout = true",
    ],
)
def test_a_timeout_is_a_number_of_seconds(refusal: Callable[[str], str], line: str) -> None:
    assert "seconds above 0 and at most 86400" in refusal(line + "\n")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("connect_timeout = 7", "connect_timeout 15 and 7"),
        ("read_timeout = 7", "read_timeout not given and 7"),
        ('headers = { "X-A" = "hunter22" }', 'headers not given and with "X-A"'),
        ('proxy = "http://p"', "proxy not given and http://p"),
        ('proxy_variable = "P"', "proxy_variable not given and P"),
    ],
)
def test_judges_of_one_lane_are_reached_in_one_way(refusal: Callable[[str], str], line: str, words: str) -> None:
    said = refusal(JUDGE.format("b") + line + "\n")
    assert 'judge[2] (judge "b"): shares a lane with judge[1] (judge "a")' in said
    assert words in said
    assert "hunter22" not in said


FALLBACK = '[[judge.fallback]]\nbase_url = "https://other.example/v1"\n'


@pytest.mark.parametrize(
    ("judge", "fallback", "place", "words"),
    [
        ("free = true\n", "", "fallback[1].price", "the judge is free"),
        ("", "price = { input = 1, output = 2, cached = 3 }\n", "fallback[1].price.cached", "above input"),
        ("temperature = 1.5\n", 'provider = "anthropic"\n', "judge[1].temperature", "anthropic takes"),
        ('proxy = "http://p:1"\n', 'provider = "litellm"\n', "fallback[1].provider", "not asked through a proxy"),
        ("", 'model = "simulated/gpt-4@1"\n', "fallback[1].model", "does not stand in"),
    ],
)
def test_a_fallback_is_held_to_what_its_judge_asks(
    refusal: Callable[[str], str], judge: str, fallback: str, place: str, words: str
) -> None:
    said = refusal(judge + FALLBACK + fallback)
    assert place in said
    assert words in said


@pytest.mark.parametrize(
    ("judge", "fallback"),
    [("free = true\n", "price = { input = 0, output = 0 }\n"), ("price = { input = 1, output = 2 }\n", "")],
)
def test_a_fallback_costs_what_it_says_or_what_the_judge_does(
    load: Callable[[str], CampaignSettings], judge: str, fallback: str
) -> None:
    assert len(load(JUDGE.format("a") + judge + FALLBACK + fallback).judges[0].lane.routes) == 2


@pytest.mark.parametrize("line", ['headers = { "X-Title" = "b" }\n', 'proxy = "http://p:1"\n', "timeout = 7\n"])
def test_lanes_that_meet_at_an_endpoint_reach_it_in_one_way(
    load: Callable[[str], CampaignSettings], refusal: Callable[[str], str], line: str
) -> None:
    """It is opened once: what the second judge asks for would silently not be done."""
    other = '[[judge]]\nname = "b"\nmodel = "m"\ntemperature = 1\nbase_url = "https://other.example/v1"\n'
    said = refusal(FALLBACK + other + line)
    assert 'judge[2] (judge "b"): shares a key with judge[1] (judge "a")' in said
    assert line.partition(" ")[0] in said
    assert len(load(JUDGE.format("a") + line + FALLBACK + other + line).judges) == 2
