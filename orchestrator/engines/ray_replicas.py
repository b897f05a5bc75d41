"""Replicas of a judge in a Ray cluster: found by name, asked for their addresses, and made routes of the judge's lane.

`base_url = "ray://NAME"` stands for the actors NAME, NAME-0, NAME-1, ... of the cluster, in the namespace of Venire.
Each has a method `base_url()` that returns the address of an OpenAI-compatible server. A number is all that may follow
the name: two models whose names begin alike must not end up in one lane.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from venire.arena.campaigns import REPLICAS, CampaignSettings, JudgeSettings, RouteSettings
from venire.arena.errors import InputError
from venire.configs.values import checked_url
from venire.orchestrator.engines.ray_cluster import NAMESPACE

_SECONDS = 5.0
"""For which a replica may take to say its address."""

Warn = Callable[[str], None]


def with_replicas(campaign: CampaignSettings, ray: Any, warn: Warn | None = None) -> CampaignSettings:
    """The campaign with a route to each replica in place of each `ray://NAME`.

    `ray` is the module, connected to a cluster. A replica that does not say its address in time, or says none that can
    be used, is left out with a warning.

    Raises InputError for a judge that has no replica.
    """
    names = {way.replicas for judge in campaign.judges for way in judge.lane.routes} - {None}
    if not names:
        return campaign
    said = warn or (lambda sentence: None)
    return replaced(campaign, _addresses(ray, sorted(map(str, names)), said), said)


def replaced(
    campaign: CampaignSettings, addresses: Mapping[str, Sequence[str]], warn: Warn | None = None
) -> CampaignSettings:
    """The campaign with a route to each address in place of each `ray://NAME`; `addresses` are by name.

    The routes to replicas of one name have one rank, and all else that the route in the file had. A fallback without
    replicas is left out with a warning.

    Raises InputError for a judge that has no replica.
    """
    judges = tuple(_with_routes(campaign, judge, addresses, warn) for judge in campaign.judges)
    return replace(campaign, judges=judges)


def _with_routes(
    campaign: CampaignSettings, judge: JudgeSettings, addresses: Mapping[str, Sequence[str]], warn: Warn | None
) -> JudgeSettings:
    routes: list[RouteSettings] = []
    for way in judge.lane.routes:
        found = list(_routes(way, addresses))
        if not found:
            sentence = f"judge {judge.name!r}: {_expected(str(way.replicas))}"
            if not way.rank:
                raise InputError(f"{campaign.path}: {sentence}")
            if warn is not None:
                warn(f"warning: {sentence}")
        routes += found
    return replace(judge, lane=replace(judge.lane, routes=tuple(routes)))


def _routes(way: RouteSettings, addresses: Mapping[str, Sequence[str]]) -> Iterator[RouteSettings]:
    """A route itself, or a route to each of the replicas that it stands for."""
    if way.replicas is None:
        yield way
        return
    for address in dict.fromkeys(addresses.get(way.replicas, ())):
        yield replace(way, base_url=address, replica_of=way.base_url)


def _expected(name: str) -> str:
    return (
        f"no replica answers for {REPLICAS}{name}: start actors {name}-0, {name}-1, ... in the Ray namespace "
        f"{NAMESPACE!r}, each with a method base_url() that returns the address of an OpenAI-compatible server "
        f"within {_SECONDS:g} s, as examples/ray_vllm.py does"
    )


def _addresses(ray: Any, names: Sequence[str], warn: Warn) -> Mapping[str, Sequence[str]]:
    """What the replicas of each name say that their addresses are, in the order of the actors' names."""
    asked: dict[Any, tuple[str, str]] = {}
    found: dict[str, list[str]] = {name: [] for name in names}
    for name, actor in _actors(ray, names):
        try:
            asked[ray.get_actor(actor, namespace=NAMESPACE).base_url.remote()] = name, actor
        except AttributeError:
            warn(f"warning: actor {actor} has no method base_url(): it is left out of {REPLICAS}{name}")
        except ValueError:  # it ended meanwhile
            continue
    if not asked:
        return found
    ready, _ = ray.wait(list(asked), num_returns=len(asked), timeout=_SECONDS)
    answered = set(ready)
    for reference, (name, actor) in asked.items():
        try:
            if reference not in answered:
                raise ValueError(f"did not say its address within {_SECONDS:g} s; it may not have started yet")
            found[name].append(_address(ray, reference))
        except ValueError as error:
            warn(f"warning: replica {actor} {error}: it is left out of {REPLICAS}{name}")
    return found


def _actors(ray: Any, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Name and actor of all replicas in the cluster, in the order of their numbers."""
    there = {one["name"] for one in ray.util.list_named_actors(all_namespaces=True) if one["namespace"] == NAMESPACE}
    for name in names:
        numbered = [one for one in there if re.fullmatch(rf"{re.escape(name)}(-\d+)?", one, re.ASCII)]
        yield from ((name, one) for one in sorted(numbered, key=lambda one: (len(one), one)))


def _address(ray: Any, reference: Any) -> str:
    """The address that a replica said. Raises ValueError where it cannot be used, with the rest of a sentence."""
    try:
        said = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        reason = str(error.cause).strip().partition("\n")[0]
        raise ValueError(f"says no address ({reason})") from None
    except ray.exceptions.RayError as error:
        raise ValueError(f"does not answer ({type(error).__name__})") from None
    try:
        if not isinstance(said, str):
            raise ValueError("no text")
        return checked_url(said)
    except ValueError as error:
        raise ValueError(f"says an address that cannot be used ({error})") from None
