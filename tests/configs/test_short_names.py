"""Short names such as `openai:gpt-4.1-mini`: the same judge as written long, and no other model's name changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

import venire as vn
from venire.arena.campaigns import CampaignSettings
from venire.arena.errors import InputError
from venire.arena.registry import PROVIDERS
from venire.configs.loading import resolve
from venire.judges.providers.vendors import Vendor, VendorHome

VENDORS = {name: (one, by) for by, entry in PROVIDERS.items() for name, one in entry.vendors.items() if one.home}


@pytest.mark.parametrize("name", VENDORS)
@pytest.mark.parametrize("kind", ["judge", "contestant", "editor"])
def test_a_short_name_is_the_same_as_written_long(
    name: str, kind: str, load: Callable[[str], CampaignSettings]
) -> None:
    vendor, provider = VENDORS[name]
    home = vendor.home
    rest = f'key_variable = "{home.key_variable}"' if home.key_variable else "free = true"
    head = f'[[{kind}]]\nname = "one"\n'
    long = load(f'{head}model = "m:1/x"\nprovider = "{provider}"\nbase_url = "{home.base_url}"\n{rest}\n')
    for before in (name, *vendor.aliases):
        for short in (f"{before}:m:1/x", f"{before}/m:1/x"):
            found = load(f'{head}model = "{short}"\n')
            assert (found.settings, found.generation_settings) == (long.settings, long.generation_settings)
            assert (found.judges, found.contestants, found.editors) == (long.judges, long.contestants, long.editors)


def test_what_a_table_says_itself_stays(load: Callable[[str], CampaignSettings]) -> None:
    def lane(rest: str) -> list[str | None]:
        (judge,) = load(f'[[judge]]\nmodel = "{rest}\n').judges
        return [route.key_variable for route in judge.lane.routes]

    assert lane('groq:m"\nkey_variable = "MINE"') == ["MINE"]
    assert lane('groq:m"\nkey_variables = ["A", "B"]') == ["A", "B"]
    assert lane('vllm:m"\nkey_variable = "MINE"') == ["MINE"]
    assert lane('a/m"\nbase_url = "https://x.example/v1"\n[[judge.fallback]]\nmodel = "groq:m"') == [
        None,
        "GROQ_API_KEY",
    ]
    (judge,) = load('[[judge]]\nmodel = "ollama:m"\nprice = { input = 1, output = 2 }\n').judges
    assert judge.price is not None
    assert not judge.free


@pytest.mark.parametrize("model", ["openai:gpt-4o", "groq/llama", "ollama:llama3.2:1b", "ft:gpt-4o:us", "a/b"])
@pytest.mark.parametrize("more", ['base_url = "https://x.example/v1"', 'provider = "anthropic"'])
def test_a_model_that_is_given_its_way_keeps_its_name(
    model: str, more: str, load: Callable[[str], CampaignSettings]
) -> None:
    (judge,) = load(f'[[judge]]\nmodel = "{model}"\n{more}\n').judges
    assert judge.model == judge.lane.routes[0].model == model


def test_simulated_judges_have_a_short_name_too(load: Callable[[str], CampaignSettings]) -> None:
    short, long = (load(f'[[judge]]\nmodel = "simulated{mark}bard@1"\n') for mark in ":/")
    assert (short.judges, short.settings) == (long.judges, long.settings)


@pytest.mark.parametrize(
    ("rest", "says"),
    [
        ('opnai:gpt-4o"', "did you mean openai:gpt-4o?"),
        ('mistralai/m"', "did you mean mistral:m?"),
        ('gogle:m"', "did you mean gemini:m?"),
        ('azure:m"', "an address of its own"),
        ('openai:m"\nprovider = "openai"', "leave out provider"),
        ('gpt-4o"', "as in openai:gpt-4.1-mini; known are openai, "),
        ('llama3.2:1b"', "ollama, vllm"),
    ],
)
def test_a_model_whose_address_is_not_known_says_what_to_write(
    rest: str, says: str, refusal: Callable[[str], str]
) -> None:
    assert says in refusal(f'[[judge]]\nmodel = "{rest}\n')


def test_python_gives_the_model_first() -> None:
    judge = vn.Judge("openai:gpt-4.1-mini", temperature=1)
    assert judge == vn.Judge(model="openai:gpt-4.1-mini", temperature=1)
    assert (judge.model, judge.base_url) == ("gpt-4.1-mini", "https://api.openai.com/v1")
    assert vn.Contestant("groq:m").key_variable == "GROQ_API_KEY"
    for wrong in (("a", "b"), ("a",)):
        with pytest.raises(InputError, match="Judge: "):
            vn.Judge(*wrong, model="a")
    with pytest.raises(InputError, match="all keys with their names"):
        vn.Budget(5)


def test_names_of_parts_are_understood_as_python_would_spell_them() -> None:
    def settings(policy: str, protocol: str, provider: str) -> str:
        judge = vn.Judge("m", protocol=protocol, provider=provider)
        return resolve(vn.Campaign(name="c", plan=vn.Plan(policy=policy, battles=10), judges=[judge])).settings

    assert settings("Near_Tie", "two_stage", "Anthropic") == settings("near-tie", "two-stage", "anthropic")


def test_a_provider_of_a_package_brings_short_names_of_its_own(load: Callable[[str], CampaignSettings]) -> None:
    home = VendorHome("https://llm.acme.example/v1", "ACME_KEY", "https://acme.example/keys")
    PROVIDERS.register("acme-wire", replace(PROVIDERS["openai"], vendors={"acme": Vendor("", "", home=home)}))
    try:
        (route,) = load('[[judge]]\nmodel = "acme:big/1"\n').judges[0].lane.routes
    finally:
        PROVIDERS.unregister("acme-wire")
    assert (route.provider, route.base_url, route.key_variable, route.model) == (
        "acme-wire",
        home.base_url,
        "ACME_KEY",
        "big/1",
    )
