"""Accounts: what several routes have in common at a vendor, and so the gate that they share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields

from venire.arena.campaigns import CampaignSettings, Identity, LaneSettings, Limits, RouteSettings
from venire.arena.clock import Clock
from venire.judges.providers.base import Provider
from venire.orchestrator.lanes.limits import Gate
from venire.orchestrator.lanes.routes import route_name
from venire.storage.plans import plans
from venire.storage.store.store import Store

__all__ = ["accepted_routes", "open_gates", "register_routes"]


def register_routes(store: Store, campaign: CampaignSettings) -> Mapping[str, int]:
    """The numbers of all routes in the store, by name; its table calls them lanes."""
    numbers: dict[str, int] = {}
    with store.commit() as commit:
        for route in {route.identity: route for _, route in _ways(campaign)}.values():
            name = route_name(route)
            commit.run("insert_lane", name=name, provider=route.provider, endpoint=route.base_url or "")
            numbers[name] = store.rows("lane_id", name=name)[0][0]
    return numbers


def accepted_routes(store: Store) -> frozenset[int]:
    """The numbers of routes by which a call was answered at any time."""
    return frozenset(number for (number,) in store.read("answered_routes"))


def open_gates(
    store: Store,
    campaign: CampaignSettings,
    numbers: Mapping[str, int],
    providers: Mapping[Identity, Provider],
    clock: Clock,
) -> Mapping[Identity, Gate]:
    """The gate of every route that there is a provider for: one an account, whichever lanes its routes belong to.

    Lanes that share an account share the strictest of what they say of it. A day's limit counts what earlier runs sent.
    """
    shared: dict[tuple[str, ...], list[tuple[LaneSettings, RouteSettings]]] = {}
    for lane, route in _ways(campaign):
        if route.identity in providers:
            shared.setdefault(providers[route.identity].account(route.model), []).append((lane, route))
    gates: dict[Identity, Gate] = {}
    for ways in shared.values():
        sent = plans.sent_today(store, sorted({numbers[route_name(route)] for _, route in ways}))
        gate = _gate([lane for lane, _ in ways], sent, clock)
        gates.update((route.identity, gate) for _, route in ways)
    return gates


def _ways(campaign: CampaignSettings) -> Iterable[tuple[LaneSettings, RouteSettings]]:
    """Every route of every judge, with the lane that it belongs to."""
    return ((judge.lane, route) for judge in campaign.judges for route in judge.lane.routes)


def _gate(lanes: Sequence[LaneSettings], sent: Sequence[tuple[float, int]], clock: Clock) -> Gate:
    figures = {
        field.name: [figure for lane in lanes if (figure := getattr(lane.limits, field.name)) is not None]
        for field in fields(Limits)
    }
    return Gate(
        Limits(**{name: min(given) for name, given in figures.items() if given}),
        clock,
        concurrency=min(lane.concurrency for lane in lanes),
        share=min(lane.share for lane in lanes),
        skew=max(lane.skew for lane in lanes),
        sent_today=sent,
    )
