"""Replicas in a Ray cluster as the address of a judge: what is read, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from venire.arena.campaigns import CampaignSettings
from venire.arena.errors import InputError
from venire.configs.loading import in_batches
from venire.configs.values import checked_url

JUDGE = '[plan]\npolicy = "all-pairs"\n[[judge]]\nmodel = "m"\nfree = true\nbase_url = "{url}"\n'
FALLBACK = '[[judge.fallback]]\nbase_url = "{url}"\nprice = {{ input = 0, output = 0 }}\n'

Load = Callable[[str], CampaignSettings]
Refusal = Callable[[str], str]


@pytest.mark.parametrize("name", ["judge", "Llama_3-70b", "judge-0"])
def test_a_judge_may_name_replicas(load: Load, name: str) -> None:
    (route,) = load(JUDGE.format(url=f"ray://{name}")).judges[0].lane.routes
    assert (route.base_url, route.replicas, route.endpoint) == (f"ray://{name}", name, f"ray://{name}")


def test_a_server_is_no_replicas(load: Load) -> None:
    (route,) = load(JUDGE.format(url="http://one.example/v1/")).judges[0].lane.routes
    assert (route.replicas, route.endpoint) == (None, "http://one.example/v1")


def test_replicas_may_be_a_fallback(load: Load) -> None:
    first, other = (
        load(JUDGE.format(url="http://one.example/v1") + FALLBACK.format(url="ray://spare")).judges[0].lane.routes
    )
    assert (first.replicas, other.replicas, other.rank) == (None, "spare", 1)


@pytest.mark.parametrize("url", ["ray://", "ray://head:10001", "ray://a/v1", "ray://a.b", "ray://a b", "ray://user@a"])
def test_another_name_is_refused(refusal: Refusal, url: str) -> None:
    said = refusal(JUDGE.format(url=url))
    assert 'judge[1].base_url (judge "m"): not the name of replicas in a Ray cluster' in said
    assert "such as ray://judge" in said


@pytest.mark.parametrize("transport", ["batch", "file"])
def test_replicas_are_asked_in_no_batches(load: Load, refusal: Refusal, transport: str) -> None:
    said = refusal(JUDGE.format(url="ray://judge") + f'transport = "{transport}"\n')
    assert 'judge[1].transport (judge "m"): replicas in a Ray cluster are asked call by call' in said
    with pytest.raises(InputError, match=r"^--batch m: replicas in a Ray cluster"):
        in_batches(load(JUDGE.format(url="ray://judge")), ["m"])


@pytest.mark.parametrize(("kind", "name"), [("contestant", "c"), ("editor", "echo")])
def test_who_writes_is_no_replica(refusal: Refusal, kind: str, name: str) -> None:
    text = JUDGE.format(url="http://one.example/v1")
    text += f'[[{kind}]]\nname = "{name}"\nmodel = "c"\nfree = true\nbase_url = "ray://writers"\n'
    said = refusal(text)
    assert f'{kind}[1].base_url ({kind} "{name}"): replicas in a Ray cluster are asked as judges alone' in said


def test_the_address_of_one_server_is_checked_alike() -> None:
    assert checked_url("http://10.0.0.5:8000/v1/") == "http://10.0.0.5:8000/v1"
    for url in ("ray://judge", "10.0.0.5:8000", "http://key@host/v1", "http://host/v1/chat/completions"):
        with pytest.raises(ValueError):
            checked_url(url)
