"""Whether answers are held to a schema: what the file says of each endpoint; old files mean what they meant."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from venire.arena.campaigns import CampaignSettings
from venire.arena.errors import InputError

URL, OTHER = "https://one.example/v1", "https://other.example/v1"
JUDGE = f'[[judge]]\nname = "{{0}}"\nmodel = "m"\nbase_url = "{URL}"\n'
FALLBACK = f'[[judge.fallback]]\nbase_url = "{OTHER}"\n'
CONTESTANT = f'[[contestant]]\nname = "c"\nmodel = "m-2"\nbase_url = "{URL}"\n'

Load = Callable[[str], CampaignSettings]


def test_each_endpoint_has_its_own_word(load: Load) -> None:
    text = JUDGE.format("a") + 'structured_output = true\nkey_variables = ["A", "B"]\n'
    routes = load(text + FALLBACK + FALLBACK + 'key_variable = "C"\nstructured_output = false\n').judges[0].lane.routes
    assert [route.structured for route in routes] == [True, True, None, False]
    assert [route.structured for route in load(JUDGE.format("a")).judges[0].lane.routes] == [None]


def test_a_file_without_the_key_is_the_same_as_before_it_was_there(load: Load) -> None:
    """Else every campaign that was begun before would be refused as changed."""
    plain = load(JUDGE.format("a") + FALLBACK + CONTESTANT)
    (judge,) = json.loads(plain.settings)["judge"]
    (contestant,) = json.loads(plain.generation_settings)["contestant"]
    for table in (judge, *judge["fallback"], contestant):
        assert "structured_output" not in table
    line = "structured_output = false\n"
    assert load(JUDGE.format("a") + line + FALLBACK + CONTESTANT).settings != plain.settings
    assert load(JUDGE.format("a") + FALLBACK + line + CONTESTANT).settings != plain.settings
    changed = load(JUDGE.format("a") + FALLBACK + CONTESTANT + line)
    assert changed.settings == plain.settings
    assert changed.generation_settings != plain.generation_settings


def test_only_true_and_false_are_accepted(load: Load) -> None:
    with pytest.raises(InputError, match=r"structured_output .*true or false"):
        load(JUDGE.format("a") + 'structured_output = "yes"\n')


@pytest.mark.parametrize(
    "text",
    [
        JUDGE.format("a") + "structured_output = true\n" + JUDGE.format("b"),
        JUDGE.format("a") + "structured_output = true\n" + JUDGE.format("b") + "structured_output = false\n",
        JUDGE.format("a")
        + FALLBACK
        + "structured_output = true\n"
        + JUDGE.format("b").replace(URL, OTHER)
        + "structured_output = false\n",
    ],
)
def test_one_endpoint_is_asked_in_one_way(load: Load, text: str) -> None:
    """Judges that share it share its connections, and what is stored of an answer must be true of it."""
    with pytest.raises(
        InputError, match=r"judge\[2\]\.structured_output .*, but true with judge\[1\] .*give both the same"
    ):
        load(text)


def test_different_endpoints_are_asked_in_different_ways(load: Load) -> None:
    load(JUDGE.format("a") + "structured_output = true\n" + FALLBACK + JUDGE.format("b").replace('"m"', '"n"'))
    load(JUDGE.format("a") + "structured_output = true\n" + JUDGE.format("b") + "structured_output = true\n")
