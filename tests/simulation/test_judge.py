"""The formula gives what its table says, and nothing else moves it."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire.arena.errors import InputError
from venire.simulation.judge import load_profiles, model_name, parse_model, simulate, tokens_per_character

TABLE = json.loads(files("venire.simulation").joinpath("profiles.json").read_bytes())


def test_the_table_of_the_package_is_the_published_one(shared_data: Path) -> None:
    assert json.loads((shared_data / "judge_profiles.json").read_bytes()) == TABLE


def test_the_table_has_39_examples_and_its_profiles_are_read_whole() -> None:
    assert len(TABLE["examples"]) == 39
    assert list(load_profiles()) == list(TABLE["profiles"])
    assert tokens_per_character() == TABLE["tokens_per_character"]
    for name, entry in TABLE["profiles"].items():
        profile = load_profiles()[name]
        assert {parameter: getattr(profile, parameter) for parameter in TABLE["parameters"]} == entry["parameters"]


@pytest.mark.parametrize("number", range(39))
def test_an_example_is_reproduced(number: int) -> None:
    example = dict(TABLE["examples"][number])
    verdict, z, tokens, latency = (example.pop(name) for name in ("verdict", "z", "reply_tokens", "latency_s"))
    said = simulate(load_profiles()[example.pop("profile")], example.pop("seed"), **example)
    assert (said.verdict, said.reply_tokens) == (verdict, tokens)
    assert said.z == pytest.approx(z, abs=1e-8, rel=0)
    assert said.latency_s == pytest.approx(latency, abs=1e-5, rel=0)


@given(gap=st.floats(-400, 400), seed=st.integers(0, 9), chars=st.tuples(st.integers(0, 5000), st.integers(0, 5000)))
def test_without_position_and_noise_the_other_order_is_the_mirror_image(
    gap: float, seed: int, chars: tuple[int, int]
) -> None:
    still = replace(
        load_profiles()["bard"], position=0.0, sigma_position=0.0, sigma_order=0.0, temperature=0.0, self_preference=0.5
    )
    one = simulate(
        still,
        seed,
        instruction_id="i",
        first="a",
        second="b",
        gap=gap,
        chars_first=chars[0],
        chars_second=chars[1],
        own=1,
    )
    other = simulate(
        still,
        seed,
        instruction_id="i",
        first="b",
        second="a",
        gap=-gap,
        chars_first=chars[1],
        chars_second=chars[0],
        own=-1,
    )
    assert one.z == pytest.approx(-other.z, abs=1e-12)
    assert {"first": "second", "second": "first", "tie": "tie"}[one.leaning] == other.leaning


def test_a_judge_asked_again_may_differ_and_one_of_temperature_zero_never_does() -> None:
    noisy = load_profiles()["gemini-pro"]
    said = {
        temperature: {
            simulate(replace(noisy, temperature=temperature), 1, instruction_id="i", first="a", second="b", gap=0.0,
                     chars_first=500, chars_second=500, repeat=repeat).z
            for repeat in range(1, 6)
        }
        for temperature in (0.0, noisy.temperature)
    }  # fmt: skip
    assert {temperature: len(zs) for temperature, zs in said.items()} == {0.0: 1, noisy.temperature: 5}


def test_a_model_name_and_its_profile_and_seed_are_one() -> None:
    for name, profile in load_profiles().items():
        assert parse_model(model_name(name, 12)) == (profile, 12)


@pytest.mark.parametrize(
    "name",
    ["gpt-4", "simulated/", "simulated/bard", "simulated/bard@", "simulated/bard@x", "simulated/bard@-1",
     "simulated/bard@07", "simulated/bard@7 ", "simulated/nobody@7", "other/simulated/bard@7"],
)  # fmt: skip
def test_any_other_name_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"is not simulated|names no profile"):
        parse_model(name)
