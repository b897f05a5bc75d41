"""Replicas of a judge: each becomes a route, and one that says no address is left out, with a word about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from venire.arena.campaigns import CampaignSettings
from venire.arena.errors import InputError
from venire.configs.loading import load_campaign
from venire.orchestrator.engines.ray_replicas import replaced, with_replicas

Write = Callable[..., Path]

ONE, TWO, THREE = (f"http://10.0.0.{number}:8100/v1" for number in (1, 2, 3))
FALLBACK = '[[judge.fallback]]\nbase_url = "{url}"\nprice = {{ input = 2, output = 8 }}\n'


class RayError(Exception):
    pass


class RayTaskError(RayError):
    def __init__(self, cause: Exception) -> None:
        super().__init__(cause)
        self.cause = cause


class FakeRay:
    """As much of the module as is used: actors by name, each with what `base_url` returns, or an error that it raises.

    None: it does not answer. An actor without the method is `...`.
    """

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)

    def __init__(self, actors: Mapping[str, Any], namespace: str = "venire") -> None:
        self.actors, self.namespace = dict(actors), namespace
        self.util = SimpleNamespace(list_named_actors=self._list)
        self.asked: list[str] = []

    def _list(self, *, all_namespaces: bool) -> list[dict[str, str]]:
        assert all_namespaces
        return [{"name": name, "namespace": self.namespace} for name in self.actors]

    def get_actor(self, name: str, *, namespace: str) -> Any:
        if self.actors[name] == "gone":
            raise ValueError("no such actor")
        if self.actors[name] is ...:
            return SimpleNamespace()
        return SimpleNamespace(base_url=SimpleNamespace(remote=lambda: self.asked.append(name) or name))

    def wait(self, references: list[str], *, num_returns: int, timeout: float) -> tuple[list[str], list[str]]:
        assert num_returns == len(references)
        assert 0 < timeout <= 10
        ready = [one for one in references if self.actors[one] is not None]
        return ready, [one for one in references if one not in ready]

    def get(self, reference: str) -> Any:
        said = self.actors[reference]
        if isinstance(said, Exception):
            raise said
        return said


@pytest.fixture
def campaign(write: Write) -> CampaignSettings:
    return load_campaign(write(judge='base_url = "ray://judge"'))


def addresses(campaign: CampaignSettings) -> list[str | None]:
    return [way.base_url for way in campaign.judges[0].lane.routes]


def test_each_replica_is_a_route_of_the_first_rank(campaign: CampaignSettings) -> None:
    before = campaign.judges[0].lane
    lane = replaced(campaign, {"judge": [ONE, TWO, ONE]}).judges[0].lane
    assert lane.routes == tuple(replace(before.routes[0], base_url=url, replica_of="ray://judge") for url in (ONE, TWO))
    assert lane.workers == 2 * before.concurrency, "concurrency is of each replica"
    assert {way.rank for way in lane.routes} == {0}
    assert {way.endpoint for way in lane.routes} == {"ray://judge"}
    assert not any(way.replicas for way in lane.routes)
    assert replace(lane, routes=before.routes) == before


def test_keys_and_other_judges_are_kept(write: Write) -> None:
    second = '[[judge]]\nname = "b"\nmodel = "simulated/claude-3-opus@1"\n'
    path = write(judge='base_url = "ray://judge"\nkey_variable = "KEY"', more=second)
    before = load_campaign(path)
    after = replaced(before, {"judge": [ONE, TWO]})
    assert {way.key_variable for way in after.judges[0].lane.routes} == {"KEY"}
    assert after.judges[1] == before.judges[1]
    assert after.settings == before.settings


def test_fallbacks_stay_behind_and_may_be_replicas_too(write: Write) -> None:
    more = FALLBACK.format(url=THREE) + FALLBACK.format(url="ray://spare")
    before = load_campaign(write(judge='base_url = "ray://judge"', more=more))
    said: list[str] = []
    routes = replaced(before, {"judge": [ONE], "spare": [TWO]}, said.append).judges[0].lane.routes
    assert [(way.base_url, way.rank) for way in routes] == [(ONE, 0), (THREE, 1), (TWO, 2)]
    assert routes[2].price == before.judges[0].lane.routes[2].price
    assert said == []
    routes = replaced(before, {"judge": [ONE], "spare": []}, said.append).judges[0].lane.routes
    assert [way.base_url for way in routes] == [ONE, THREE]
    assert len(said) == 1
    assert said[0].startswith("warning: judge 'judge': no replica answers for ray://spare")


def test_without_a_replica_the_judge_is_refused(campaign: CampaignSettings) -> None:
    with pytest.raises(InputError) as caught:
        with_replicas(campaign, FakeRay({}))
    assert str(caught.value) == (
        f"{campaign.path}: judge 'judge': no replica answers for ray://judge: start actors judge-0, judge-1, ... in "
        "the Ray namespace 'venire', each with a method base_url() that returns the address of an OpenAI-compatible "
        "server within 5 s, as examples/ray_vllm.py does"
    )


def test_replicas_are_found_by_name_and_number(campaign: CampaignSettings) -> None:
    others = {"judge-large-0": THREE, "judges": THREE, "my-judge-0": THREE, "judge-": THREE, "asker-a-1": THREE}
    ray = FakeRay({"judge-10": TWO, "judge-9": ONE, **others})
    assert addresses(with_replicas(campaign, ray)) == [ONE, TWO]
    assert ray.asked == ["judge-9", "judge-10"], "nobody else is asked"
    assert addresses(with_replicas(campaign, FakeRay({"judge": ONE}))) == [ONE]
    with pytest.raises(InputError, match="no replica answers"):
        with_replicas(campaign, FakeRay({"judge-0": ONE}, namespace="other"))


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (None, "replica judge-1 did not say its address within 5 s; it may not have started yet"),
        (RayError("died"), "replica judge-1 does not answer (RayError)"),
        (RayTaskError(RuntimeError("no server\nat all")), "replica judge-1 says no address (no server)"),
        (5, "replica judge-1 says an address that cannot be used (no text)"),
        ("10.0.0.1:80", "replica judge-1 says an address that cannot be used (not an http or https URL; accepted: "
         "such as https://api.openai.com/v1)"),
        (..., "actor judge-1 has no method base_url()"),
    ],
)  # fmt: skip
def test_one_that_says_no_address_is_left_out(campaign: CampaignSettings, answer: Any, says: str) -> None:
    said: list[str] = []
    found = with_replicas(campaign, FakeRay({"judge-0": ONE, "judge-1": answer}), said.append)
    assert addresses(found) == [ONE]
    assert said == [f"warning: {says}: it is left out of ray://judge"]


def test_one_that_ends_meanwhile_is_left_out(campaign: CampaignSettings) -> None:
    assert addresses(with_replicas(campaign, FakeRay({"judge-0": "gone", "judge-1": ONE}))) == [ONE]


def test_a_campaign_without_replicas_is_as_it_was(write: Write) -> None:
    campaign = load_campaign(write())
    assert with_replicas(campaign, None) is campaign
