"""The variations that a simulation compares: other policies, protocols, numbers of judges, orders or budgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

from venire.arena.budgets import BudgetSettings
from venire.arena.campaigns import (
    CampaignSettings,
    DataSettings,
    JudgeSettings,
    PhaseSettings,
    RouteSettings,
    TokenPrice,
)
from venire.arena.errors import InputError
from venire.arena.hints import setting, setting_with
from venire.arena.records import GENERATE, RECORDED, Origin
from venire.arena.wording import money, suggest
from venire.experiments.contestants import ContestantField
from venire.judges import PROTOCOLS
from venire.judges.providers.price_table import find_price
from venire.orchestrator.policies import POLICIES
from venire.prices import check_prices
from venire.simulation.judge import load_profiles, model_name, parse_model

_SEEDS_APART = 1_000_003
"""Distance between the seeds of two runs, so that judges of neighbouring seeds share nothing across runs."""

_OWN_OPTIONS = ("best", "logprobs", "dialect", "recorded", "map")
"""Options that are specific to a protocol; other protocols refuse them."""


@dataclass(frozen=True, slots=True)
class StandIn:
    """The simulated judge that replaces a judge of the file, its price, and its differences from the file."""

    judge: JudgeSettings
    profile: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Variation:
    """One row of the table; None: as in the file. `judges` is the number of first judges; budgets are nano-dollars or
    calls."""

    policy: str | None = None
    protocol: str | None = None
    judges: int | None = None
    orders: Literal["both", "random"] | None = None
    calls: int | None = None
    money: int | None = None

    @property
    def name(self) -> str:
        """The varied settings, in words."""
        said = (
            self.policy,
            self.protocol,
            None if self.judges is None else f"{self.judges} judge{'s' * (self.judges != 1)}",
            None if self.orders is None else {"both": "both orders", "random": "one order"}[self.orders],
            None if self.calls is None else f"{self.calls} call{'s' * (self.calls != 1)}",
            None if self.money is None else money(self.money),
        )
        return ", ".join(one for one in said if one is not None) or "as the file says"


@dataclass(frozen=True, slots=True)
class Axes:
    """The crossed settings; an axis without values is as in the file. `budgets` are (calls, None) or (None, nano)."""

    policies: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ()
    judges: tuple[int, ...] = ()
    orders: tuple[Literal["both", "random"], ...] = ()
    budgets: tuple[tuple[int | None, int | None], ...] = ()


def cross(axes: Axes, campaign: CampaignSettings) -> tuple[Variation, ...]:
    """Every combination once; without any axis except budgets, the file's own plan and a balanced plan.

    Raises InputError for an unknown policy or protocol, and for more judges than the file names.
    """
    for policy in axes.policies:
        if policy not in POLICIES:
            raise InputError(f"{setting('policies')} {policy}: no such policy; {suggest(policy, POLICIES)}")
    for protocol in axes.protocols:
        if protocol not in _rating_protocols():
            raise InputError(
                f"{setting('protocols')} {protocol}: no protocol that rates models; "
                f"{suggest(protocol, _rating_protocols())}"
            )
    for count in axes.judges:
        if not 1 <= count <= len(campaign.judges):
            raise InputError(
                f"{setting('judges')} {count}: {campaign.path} names {len(campaign.judges)}; take 1 to so many"
            )
    policies: tuple[str | None, ...] = axes.policies or (None,)
    if not (axes.policies or axes.protocols or axes.judges or axes.orders):
        policies = (None, _beside(campaign))
    rows = product(
        axes.budgets or ((None, None),),
        policies,
        axes.protocols or (None,),
        axes.judges or (None,),
        axes.orders or (None,),
    )
    found = (Variation(policy, protocol, judges, orders, *budget) for budget, policy, protocol, judges, orders in rows)
    return tuple(dict.fromkeys(found))


def _rating_protocols() -> list[str]:
    return [name for name, one in PROTOCOLS.items() if one.shape.rates and name != RECORDED]


def _beside(campaign: CampaignSettings) -> str:
    own = {phase.policy for phase in campaign.plan.phases}
    choices = [name for name in ("balanced", "information", "all-pairs", "random") if name in POLICIES]
    return next(name for name in choices if own != {name})


def simulated(campaign: CampaignSettings, wanted: Sequence[str]) -> tuple[StandIn, ...]:
    """The judges of a simulation: simulated judges unchanged, real judges replaced by a profile.

    `wanted` are profiles, as `PROFILE` for the real judges in turn or `JUDGE=PROFILE` for one of them; a judge whose
    model has a profile's name needs no profile. Raises InputError for a judge without a profile, and for an unknown
    name.
    """
    profiles = load_profiles()
    named = dict(one.rsplit("=", 1) for one in wanted if "=" in one)
    plain = [one for one in wanted if "=" not in one]
    for profile in (*named.values(), *plain):
        if profile not in profiles:
            raise InputError(f"{setting('stand_ins')} {profile}: no such profile; {suggest(profile, profiles)}")
    if strange := sorted(named.keys() - {judge.name for judge in campaign.judges}):
        raise InputError(
            f"{setting('stand_ins')} {strange[0]}={named[strange[0]]}: {campaign.path} names no judge {strange[0]!r}"
        )
    if not campaign.judges:
        raise InputError(f"{campaign.path}: names no judge: add a [[judge]] table")
    taken: dict[str, int] = {}
    found, real = [], 0
    for judge in campaign.judges:
        check_prices(campaign, judge)
        if judge.origin is Origin.SIMULATED and judge.name not in named:
            found.append(_priced(judge, parse_model(judge.model)[0].name, ()))
            continue
        namesake = judge.model.rsplit("/", 1)[-1]
        chosen = named.get(judge.name) or (namesake if namesake in profiles else None)
        if chosen is None and plain:
            chosen = plain[real % len(plain)]
            real += 1
        if chosen is None:
            raise InputError(
                f"{campaign.path}: judge {judge.name!r} is a real model, {judge.model!r}, and nothing real is asked "
                f"here: say who stands for it, with --as PROFILE or --as '{judge.name}=PROFILE'; profiles: "
                f"{', '.join(profiles)}"
            )
        taken[chosen] = taken.get(chosen, -1) + 1
        found.append(_stand_in(judge, chosen, taken[chosen]))
    return tuple(found)


def _stand_in(judge: JudgeSettings, profile: str, seed: int) -> StandIn:
    model = model_name(profile, seed)
    notes = [f"{profile} stands for {judge.model}"]
    if seed:
        notes.append("another judge has this profile too, and they agree less than two real ones would")
    lane = replace(judge.lane, routes=(RouteSettings("openai", None, None, model),))
    price = judge.price or find_price(judge.model, judge.lane.routes[0].base_url)
    seat = replace(judge, model=model, lane=lane, price=price)
    if judge.protocol == RECORDED:
        notes.append("asked in two stages, where answers are on record")
    if judge.recorded is not None:
        protocol = "two-stage" if judge.protocol == RECORDED else judge.protocol
        seat = replace(seat, protocol=protocol, recorded=None, options=_options(judge.options))
    return _priced(seat, profile, tuple(notes))


def _priced(judge: JudgeSettings, profile: str, notes: tuple[str, ...]) -> StandIn:
    """The stand-in with the price in the file, of the model it replaces, or of its profile's namesake, else free."""
    price = judge.price or find_price(profile)
    if price is None:
        return StandIn(replace(judge, free=True), profile, (*notes, "no price is known: free"))
    if judge.price is None:
        notes = (*notes, f"priced as {profile}: {_dollars(price)}")
    return StandIn(replace(judge, free=False, price=price), profile, notes)


def _dollars(price: TokenPrice) -> str:
    return f"${price.input / 1e9:g} and ${price.output / 1e9:g} per million tokens in and out"


def _options(options: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in options.items() if name not in _OWN_OPTIONS and "prompt." not in name}


def campaign_of(
    campaign: CampaignSettings,
    judges: Sequence[StandIn],
    field: ContestantField,
    row: Variation,
    number: int,
    battles: int | None,
) -> CampaignSettings:
    """The campaign of one row in its run `number` (from 0), with separate seeds for it and its judges, and no data.

    `battles` is the number of battles for a policy that chooses battles, and overrides the file. Raises InputError
    where no number is given, and for a budget of money that no judge's price would use.
    """
    seats = [_seat(one.judge, row.protocol, number) for one in judges[: row.judges]]
    if row.money is not None and all(one.free for one in seats):
        raise InputError(
            f"{setting('budgets')} {money(row.money)}: all judges are free: give them a price = {{ input = DOLLARS, "
            f"output = DOLLARS }} per million tokens, or limit the calls with {setting('calls')}"
        )
    limited = row.calls is not None or row.money is not None
    own = {} if limited else campaign.judge_budgets
    plan = campaign.plan
    phases = plan.phases if row.policy is None else (_phase(campaign, row.policy),)
    phases = tuple(_sized(campaign, field, phase, battles, limited) for phase in phases)
    instructions, possible = plan.instructions, field.instructions
    if any(POLICIES[phase.policy].crossed for phase in phases if phase.policy in POLICIES):
        instructions = _instructions(campaign, field, phases[0], battles, limited)
    instructions = None if instructions is None else min(instructions, possible)
    budget = BudgetSettings(row.calls, row.money, None) if limited else campaign.budget
    return replace(
        campaign,
        seed=campaign.seed + number,
        data=DataSettings(models=field.models, families=campaign.data.families),
        plan=replace(plan, phases=phases, instructions=instructions, orders=row.orders or plan.orders),
        judges=tuple(seats),
        budget=budget,
        judge_budgets={one.name: own[one.name] for one in seats if one.name in own},
        model_budgets={
            seat.model: campaign.model_budgets[there.model]
            for there, seat in zip(campaign.judges, seats, strict=False)  # with fewer seats, the first judges
            if there.model in campaign.model_budgets and not limited
        },
        contestants=(),
        settings=f"simulated {row} {number}",
    )


def _phase(campaign: CampaignSettings, policy: str) -> PhaseSettings:
    """The file's last phase under another policy, its other keys unchanged."""
    return replace(campaign.plan.phases[-1], policy=policy, name="plan")


def _sized(
    campaign: CampaignSettings, field: ContestantField, phase: PhaseSettings, battles: int | None, limited: bool
) -> PhaseSettings:
    """The phase with the wanted number of battles, or that of the file's own plan; until the budget if one is given."""
    if phase.policy not in POLICIES:
        raise InputError(
            f"{campaign.path}: policy {phase.policy!r} cannot be simulated: name another with {setting('policies')}"
        )
    if POLICIES[phase.policy].crossed:
        return replace(phase, matchups=None if phase.policy == "all-pairs" else phase.matchups or 30)
    if battles is not None:
        return replace(phase, battles=battles)
    if limited:
        return replace(phase, battles=phase.battles if len(campaign.plan.phases) > 1 else None)
    return replace(phase, battles=phase.battles or _planned(campaign, field))


def _planned(campaign: CampaignSettings, field: ContestantField) -> int | None:
    """The number of battles in the file's own plan; None where budgets or stopping rules end it."""
    first = campaign.plan.phases[0]
    if first.policy in POLICIES and POLICIES[first.policy].crossed:
        possible = len(field.elo) * (len(field.elo) - 1) // 2
        matchups = possible if first.policy == "all-pairs" else min(first.matchups or possible, possible)
        return matchups * min(campaign.plan.instructions or field.instructions, field.instructions)
    stop, budget = campaign.plan.stop, campaign.budget
    if not stop.has_rules and not budget.limited and first.battles is None:
        raise InputError(
            f"{campaign.path}: nothing says how many battles to judge: add {setting_with('battles', 1000)}, or "
            f"{setting('calls')}"
        )
    return first.battles


def _instructions(
    campaign: CampaignSettings, field: ContestantField, phase: PhaseSettings, battles: int | None, limited: bool
) -> int | None:
    """Number of instructions for a policy that crosses them with matchups: to reach the battles, or the budget."""
    possible = len(field.elo) * (len(field.elo) - 1) // 2
    matchups = possible if phase.policy == "all-pairs" else min(phase.matchups or possible, possible)
    wanted = battles if battles is not None else None if limited else _planned(campaign, field)
    if wanted is None:
        return None if limited else campaign.plan.instructions
    return max(1, round(wanted / matchups))


def _seat(judge: JudgeSettings, protocol: str | None, number: int) -> JudgeSettings:
    profile, seed = parse_model(judge.model)
    model = model_name(profile.name, seed + number * _SEEDS_APART)
    lane = replace(judge.lane, routes=(RouteSettings("openai", None, None, model),))
    seat = replace(judge, model=model, lane=lane)
    if protocol is None or protocol == judge.protocol or judge.protocol == GENERATE:
        return seat
    return replace(seat, protocol=protocol, options=_options(judge.options))
