"""Checks of a campaign file that concern more than one key.

They read the file's own tables and look only at values of the right type, so that they also find what is wrong in a
file that the schema refuses: a user mends everything at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from pydantic import ValidationError

from venire.arena.budgets import UNITS
from venire.arena.campaigns import REPLICAS
from venire.arena.records import RECORDED, Origin
from venire.arena.registry import POLICIES, PROVIDERS
from venire.arena.wording import suggest
from venire.configs.fields import LaneKey
from venire.configs.problems import Place, Problem, quoted
from venire.configs.schema import Contestant, Editor, Judge, PhaseTable, Plan, RespondentTable
from venire.configs.short_names import missing_address, written_out
from venire.configs.values import chooses_battles, needless_matchups, policies_with


def is_simulated(model: str) -> bool:
    """Whether the embedded server answers for this model."""
    return Origin.of_model(model) is Origin.SIMULATED


def cross_problems(raw: Mapping[str, Any]) -> list[Problem]:
    """What is wrong between the keys of a parsed campaign file, whatever else is wrong with it."""
    judges, contestants, editors = (
        [_PlacedTable(kind, number, _written_out(table)) for number, table in _tables(raw.get(kind))]
        for kind in ("judge", "contestant", "editor")
    )
    asked = [*judges, *contestants, *editors]
    return [
        *_nobody(raw),
        *plan_problems(raw, [judge.table for judge in judges]),
        *_data_problems(raw.get("data")),
        *(problem for respondent in asked for problem in _respondent_problems(respondent.place, respondent.table)),
        *_name_problems(judges),
        *_name_problems(contestants),
        *_name_problems(editors),
        *_budget_problems(raw.get("budget"), [judge.table for judge in judges]),
        *_lane_problems(asked),
    ]


class _PlacedTable(NamedTuple):
    """A table of a judge or a contestant, and its place in the file."""

    kind: str
    number: int
    table: Mapping[str, Any]

    @property
    def place(self) -> Place:
        return self.kind, self.number

    @property
    def name(self) -> object:
        return self.table.get("name", self.table.get("model"))


def _tables(found: object) -> list[tuple[int, Mapping[str, Any]]]:
    return [(i, table) for i, table in enumerate(found) if isinstance(table, dict)] if isinstance(found, list) else []


def _written_out(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """The table of a respondent with its short names written out, those of fallbacks too."""
    ways = table.get("fallback")
    if isinstance(ways, list):
        ways = [written_out(way, fallback=True) if isinstance(way, dict) else way for way in ways]
        table = {**table, "fallback": ways}
    return written_out(table)


def _nobody(raw: Mapping[str, Any]) -> Iterator[Problem]:
    if not raw.get("contestant") and not raw.get("editor") and ("judge" not in raw or raw["judge"] == []):
        what = "found a list of 0" if "judge" in raw else "missing"
        yield Problem(("judge",), f"{what}; accepted: one or more [[judge]] tables, with double brackets")


def _data_problems(data: object) -> Iterator[Problem]:
    maps = data.get("map") if isinstance(data, dict) else None
    for kind in ("instructions", "completions", "elo"):
        if isinstance(data, dict) and isinstance(maps, dict) and kind in maps and kind not in data:
            yield Problem(("data", "map", kind), f"a map for a file that is not named: give {kind} in [data] too")


def _respondent_problems(place: Place, judge: Mapping[str, Any]) -> Iterator[Problem]:
    if judge.get("free") is True and "price" in judge:
        yield Problem((*place, "free"), "free and price are both given: give one of them")
    if "key_variable" in judge and "key_variables" in judge:
        yield Problem((*place, "key_variables"), "key_variable and key_variables are both given: give one")
    if is_simulated(str(judge.get("model"))) and "base_url" not in judge and judge.get("fallback"):
        yield Problem((*place, "fallback"), "a simulated judge without base_url has no other endpoint")
    yield from _context_problems(place, judge)
    if "proxy" in judge and "proxy_variable" in judge:
        yield Problem((*place, "proxy"), "proxy and proxy_variable are both given: give one of them")
    yield from _way_problems(place, judge, judge)
    for rank, way in _fallbacks(judge):
        yield from _way_problems((*place, "fallback", rank), way, judge)
        yield from _fallback_problems((*place, "fallback", rank), way, judge)
        if way.get("provider") == "replay":
            yield Problem((*place, "fallback", rank, "provider"), "what is on record does not stand in for a judge")
    yield from _recorded_problems(place, judge)
    yield from _option_problems(place, judge)
    yield from _transport_problems(place, judge)
    yield from _replica_problems(place, judge)
    model = judge.get("model")
    if "base_url" in judge or not isinstance(model, str):
        return
    provider = judge.get("provider", "openai")
    if not isinstance(provider, str) or provider not in PROVIDERS:
        return
    home = PROVIDERS[provider].home
    if home is not None:
        if is_simulated(model):
            yield Problem((*place, "provider"), "a simulated judge speaks OpenAI's protocol: leave provider out")
    elif provider != "openai":
        yield Problem(
            (*place, "base_url"),
            f"missing; provider {provider} needs it, so that a key cannot go to a wrong host; accepted: an http(s) URL",
        )
    elif not is_simulated(model):
        yield Problem((*place, "base_url"), missing_address(model))


_OF_BATCHES = ("wave_size", "max_wait", "after_wait", "batch_price")


def _transport_problems(place: Place, judge: Mapping[str, Any]) -> Iterator[Problem]:
    """Settings of waves belong to judges that are asked in waves, and these need an interface for it."""
    transport = judge.get("transport", "live")
    if transport == "live":
        for key in _OF_BATCHES:
            if key in judge:
                yield Problem((*place, key), 'only for calls in batches: add transport = "batch", or leave it out')
        return
    if "after_wait" in judge and "max_wait" not in judge:
        yield Problem((*place, "max_wait"), "missing; after_wait says what becomes of calls that took longer than that")
    if judge.get("free") is True and "batch_price" in judge:
        yield Problem((*place, "batch_price"), "free and batch_price are both given: give one of them")
    provider = judge.get("provider", "openai")
    if provider == "replay":
        yield Problem((*place, "transport"), 'provider "replay" asks nobody: leave it out')
    elif isinstance(provider, str) and provider in PROVIDERS and not PROVIDERS[provider].batches:
        able = [f'"{name}"' for name, entry in PROVIDERS.items() if entry.batches]
        yield Problem(
            (*place, "transport"), f'provider "{provider}" has no batch interface; those that have: {", ".join(able)}'
        )


def _replica_problems(place: Place, judge: Mapping[str, Any]) -> Iterator[Problem]:
    """Replicas in a Ray cluster are asked by `venire run`, call by call."""
    ways = [(place, judge), *((((*place, "fallback", rank), way)) for rank, way in _fallbacks(judge))]
    for where, way in ways:
        if not str(way.get("base_url")).startswith(REPLICAS):
            continue
        if place[0] != "judge":
            yield Problem(
                (*where, "base_url"), "replicas in a Ray cluster are asked as judges alone: give an http or https URL"
            )
        elif judge.get("transport", "live") != "live":
            yield Problem((*place, "transport"), "replicas in a Ray cluster are asked call by call: leave it out")


def _option_problems(place: Place, judge: Mapping[str, Any]) -> Iterator[Problem]:
    """The table of a protocol's own options holds no key that belongs to the judge itself."""
    options = judge.get("options")
    for name in options if isinstance(options, dict) else ():
        if name in Judge.model_fields:
            yield Problem((*place, "options", name), f"this is a key of the judge itself: give {name} beside options")
        elif not name.replace("_", "").isalnum() or name == "vocabulary":
            yield Problem((*place, "options", name), "no protocol can have an option of this name: leave it out")


_NEEDLESS = ("base_url", "key_variable", "key_variables", "fallback", "price", "system", "examples", "prompts", "proxy")


def _recorded_problems(place: Place, judge: Mapping[str, Any]) -> Iterator[Problem]:
    """Where recorded judgments stand, and nothing that only a judge which is asked can use."""
    if judge.get("provider") != "replay":
        for key in ("recorded", "map", "dialect"):
            if key in judge:
                yield Problem((*place, key), 'only for recorded judgments: add provider = "replay", or leave it out')
        if judge.get("protocol") == RECORDED:
            yield Problem((*place, "protocol"), 'nobody can be asked by it: add provider = "replay" and recorded')
        return
    if place[0] != "judge":
        yield Problem((*place, "provider"), "completions, edited ones too, are brought in by [data] completions")
        return
    if "recorded" not in judge:
        yield Problem((*place, "recorded"), "missing; accepted: the path of a table of recorded judgments")
    if is_simulated(str(judge.get("model"))):
        yield Problem((*place, "model"), "a simulated model's judgments are not recorded ones: leave provider out")
    for key in _NEEDLESS:
        if key in judge:
            yield Problem((*place, key), 'provider "replay" asks nobody: leave it out')


def _context_problems(place: Place, judge: Mapping[str, Any]) -> Iterator[Problem]:
    """A context must be larger than the reply, and truncation needs a context to truncate to."""
    tables: dict[object, type[RespondentTable]] = {"judge": Judge, "contestant": Contestant, "editor": Editor}
    default = tables[place[0]].model_fields["max_tokens"].default
    context, reply = judge.get("context"), judge.get("max_tokens", default)
    if isinstance(context, int) and isinstance(reply, int) and context <= reply:
        yield Problem((*place, "context"), f"no more than max_tokens ({reply}): prompt and reply share the context")
    if judge.get("too_long", "error") != "error" and "context" not in judge:
        yield Problem(
            (*place, "context"),
            "missing; texts are cut to fit it (too_long): give the length in tokens that the model's vendor names",
        )


def _fallbacks(judge: Mapping[str, Any]) -> list[tuple[int, Mapping[str, Any]]]:
    ways = judge.get("fallback")
    return [(i, way) for i, way in enumerate(ways) if isinstance(way, dict)] if isinstance(ways, list) else []


def _way_problems(place: Place, way: Mapping[str, Any], judge: Mapping[str, Any]) -> Iterator[Problem]:
    """What a judge asks for that one endpoint, its first or a fallback, cannot do."""
    price = way.get("price")
    cached, plain = (price.get("cached"), price.get("input")) if isinstance(price, dict) else (None, None)
    if isinstance(cached, int | Decimal) and isinstance(plain, int | Decimal) and cached > plain:
        yield Problem((*place, "price", "cached"), "above input: reading from a cache never costs more")
    provider = way.get("provider", judge.get("provider"))
    if not isinstance(provider, str) or provider not in PROVIDERS:
        return
    entry, temperature = PROVIDERS[provider], judge.get("temperature")
    if not entry.proxies and ("proxy" in judge or "proxy_variable" in judge):
        yield Problem((*place, "provider"), f"{provider} is not asked through a proxy: leave the proxy out")
    if isinstance(temperature, int | Decimal) and entry.max_temperature < temperature <= 2:
        where = (*place[:2], "temperature")
        yield Problem(where, f"{provider} takes a temperature from 0 to {entry.max_temperature}: choose one of these")


def _fallback_problems(place: Place, way: Mapping[str, Any], judge: Mapping[str, Any]) -> Iterator[Problem]:
    """A fallback may cost what the judge does not, and must not make up answers of a model that was not asked."""
    model = str(judge.get("model"))
    simulated = is_simulated(str(way.get("model", model)))
    if simulated != is_simulated(model):
        yield Problem((*place, "model"), "a simulated model does not stand in for another: name the same model")
    elif judge.get("free") is True and not simulated and "price" not in way:
        yield Problem(
            (*place, "price"),
            "missing; the judge is free, and calls here would count as nothing: add price = { input = DOLLARS, "
            "output = DOLLARS } per million tokens, with 0 for both where it is free too",
        )


def _name_problems(tables: Sequence[_PlacedTable]) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for table in tables:
        if not isinstance(table.name, str):
            continue
        if table.name in first:
            sentence = (
                f"the name {quoted(table.name)} is taken by {table.kind}[{first[table.name] + 1}]: give each "
                f"{table.kind} a name of its own"
            )
            yield Problem((*table.place, "name"), sentence)
        first.setdefault(table.name, table.number)


def _budget_problems(budget: object, judges: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """A limit for somebody who is not there would hold nobody back."""
    there = {
        "judge": [name for judge in judges if isinstance(name := judge.get("name", judge.get("model")), str)],
        "model": [model for judge in judges if isinstance(model := judge.get("model"), str)],
    }
    for kind, names in there.items():
        known = [quoted(name).strip('"') for name in names]
        limits = budget.get(kind) if isinstance(budget, dict) else None
        for name in limits if isinstance(limits, dict) else ():
            if name not in names:
                yield Problem(("budget", kind, name), f"no {kind} of that name; {suggest(name, known)}")


def _lane_problems(tables: Sequence[_PlacedTable]) -> Iterator[Problem]:
    """Those behind one door have one set of limits, and an endpoint that two lanes have in common is reached alike."""
    sound: list[tuple[_PlacedTable, RespondentTable]] = []
    for place in tables:
        try:
            model = Judge if place.kind == "judge" else Contestant
            sound.append((place, model.model_validate(place.table)))
        except ValidationError:
            continue
    known: dict[tuple[str | None, ...], tuple[_PlacedTable, RespondentTable]] = {}
    for place, respondent in sound:
        routes = _routes(respondent)
        if len(set(routes)) < len(routes):
            yield Problem(
                (*place.place, "fallback"),
                "the same provider, base_url, key_variable and model twice: leave out a fallback that is no other way",
            )
        before, other = next((known[route] for route in routes if route in known), (place, respondent))
        one_lane = all(
            repr(getattr(respondent, key)) == repr(getattr(other, key)) for key in Judge.keys_of(LaneKey.IDENTITY)
        )
        unlike = [
            f"{key} {_said(getattr(other, key))} and {_said(getattr(respondent, key))}"
            for key in Judge.keys_of(LaneKey.LIMIT, *([LaneKey.RETRY] if one_lane else []), LaneKey.CONNECTION)
            if getattr(other, key) != getattr(respondent, key)
        ]
        if unlike:
            yield Problem(
                place.place,
                f"shares a {'lane' if one_lane else 'key'} with {before.kind}[{before.number + 1}] ({before.kind} "
                f"{quoted(other.name or other.model)}): same provider, base_url, key_variable and model, but "
                f"{'; '.join(unlike)}: give both the same",
            )
        for route, held in zip(routes, _structured(respondent), strict=True):
            before, other = known.get(route, (place, respondent))
            held_there = dict(zip(_routes(other), _structured(other), strict=True))[route]
            if held_there != held:
                yield Problem(
                    (*place.place, "structured_output"),
                    f"{_said(held).lower()} for {route[1]}, but {_said(held_there).lower()} with {before.kind}"
                    f"[{before.number + 1}] ({before.kind} {quoted(other.name or other.model)}), which asks through "
                    "the same: give both the same",
                )
            known.setdefault(route, (place, respondent))


def _routes(judge: RespondentTable) -> list[tuple[str | None, ...]]:
    """Provider, address, key variable and model of each way to a judge."""
    keys = [judge.key_variable] if judge.key_variables is None else judge.key_variables
    return [
        *((judge.provider, judge.base_url, key, judge.model) for key in keys),
        *(
            (way.provider or judge.provider, way.base_url, way.key_variable, way.model or judge.model)
            for way in judge.fallback
        ),
    ]


def _structured(judge: RespondentTable) -> list[bool | None]:
    """Whether answers are held to a schema on each of `_routes`."""
    own = len(judge.key_variables or [None])
    return [*([judge.structured_output] * own), *(way.structured_output for way in judge.fallback)]


def _said(value: object) -> str:
    if isinstance(value, dict):
        return f"with {', '.join(map(quoted, value))}" if value else "not given"
    return "not given" if value is None else str(value)


_OF_PHASES = frozenset(PhaseTable.model_fields)
"""Keys that belong to a phase; in [plan] where there is one phase without a name."""
_OF_BATTLES = ("battles", "round")
_RULES = ("battles", "half_width", "top", "ranks")


def plan_problems(raw: Mapping[str, Any], judges: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """What is wrong with the plan of a parsed campaign file; `judges` are its tables of judges."""
    plan = raw.get("plan")
    if not isinstance(plan, dict):
        return
    if plan.get("policy") == "recorded" and any(judge.get("provider") != "replay" for judge in judges):
        yield Problem(
            ("plan", "policy"),
            '"recorded" plans what is on record, and a judge of this file is asked: choose another policy (of recorded '
            "judgments those are taken that it plans), or a file of their own for the recorded ones",
        )
    phases = _phases(plan)
    for place, phase in phases:
        yield from _phase_problems(place, phase)
    if plan.get("phase"):
        for place, phase in phases:
            if phase.get("policy") == "recorded":
                yield Problem((*place, "policy"), '"recorded" takes all that is on record: give it in [plan], alone')
        for key in plan:
            if key in _OF_PHASES:
                yield Problem(("plan", key), "where there are [[plan.phase]] tables, this stands in each of them")
        yield from _names(phases)
    yield from _endings(raw, phases)


def _phases(plan: Mapping[str, Any]) -> list[tuple[Place, Mapping[str, Any]]]:
    """The tables that say what a phase is, with their places."""
    tables = plan.get("phase")
    if not isinstance(tables, list) or not tables:
        return [(("plan",), plan)]
    return [(("plan", "phase", n), table) for n, table in enumerate(tables) if isinstance(table, dict)]


def _policy(phase: Mapping[str, Any]) -> str:
    return POLICIES.named(str(phase.get("policy", Plan.model_fields["policy"].default)))


def _phase_problems(place: Place, phase: Mapping[str, Any]) -> Iterator[Problem]:
    policy = _policy(phase)
    if (why := needless_matchups(policy)) and "matchups" in phase:
        instead = "give battles" if chooses_battles(policy) else 'choose "widest-gap" or "random"'
        yield Problem((*place, "matchups"), f'policy "{policy}" {why}: leave matchups out, or {instead}')
    if not chooses_battles(policy):
        for key in _OF_BATTLES:
            if key in phase:
                yield Problem(
                    (*place, key),
                    f'policy "{policy}" puts whole matchups to all instructions: leave {key} out, or choose one of '
                    f"{_battle_policies()}",
                )
    if "purpose" in phase and policy not in (able := policies_with("purpose")):
        yield Problem((*place, "purpose"), f"only policy {_listed(able)} has a purpose: leave it out")
    if "band" in phase and policy not in (able := policies_with("band")):
        yield Problem((*place, "band"), f"a band belongs to policy {_listed(able)}: leave it out")
    for key, purpose in (("top", "boundary"), ("place", "place")):
        if key in phase and phase.get("purpose") != purpose:
            yield Problem((*place, key), f'{key} belongs to purpose "{purpose}": leave it out, or choose that')
    if phase.get("purpose") == "place" and "place" not in phase:
        yield Problem((*place, "place"), 'missing; accepted: the name of the model that purpose "place" is about')


def _battle_policies() -> str:
    return ", ".join(name for name in POLICIES if chooses_battles(name))


def _listed(policies: Sequence[str]) -> str:
    return " or ".join(f'"{name}"' for name in policies)


def _names(phases: Sequence[tuple[Place, Mapping[str, Any]]]) -> Iterator[Problem]:
    """Two phases of one name, and phases after one that has no end."""
    seen: dict[object, Place] = {}
    for number, (place, phase) in enumerate(phases):
        name = phase.get("name")
        if isinstance(name, str) and name in seen:
            yield Problem((*place, "name"), "another phase has this name: give each its own")
        seen.setdefault(name, place)
        if number + 1 < len(phases) and chooses_battles(_policy(phase)) and "battles" not in phase:
            yield Problem((*place, "battles"), "missing: only the last phase may go on until a rule stops it")


def _endings(raw: Mapping[str, Any], phases: Sequence[tuple[Place, Mapping[str, Any]]]) -> Iterator[Problem]:
    """A rule that nothing could follow, and a phase that nothing would end."""
    plan, budget = raw["plan"], raw.get("budget")
    stop = plan.get("stop")
    rules = [key for key in _RULES if isinstance(stop, dict) and stop.get(key)]
    in_rounds = [place for place, phase in phases if chooses_battles(_policy(phase))]
    if rules and not in_rounds:
        yield Problem(
            ("plan", "stop"),
            "a rule stops a campaign between two rounds, and no policy here plans in rounds: choose one of "
            f"{_battle_policies()}, or leave [plan.stop] out",
        )
    if isinstance(stop, dict) and "indifference" in stop and not {"top", "ranks"} & set(rules):
        yield Problem(("plan", "stop", "indifference"), "belongs to the rules top and ranks: give one of them")
    place, last = phases[-1] if phases else (("plan",), plan)
    limited = isinstance(budget, dict) and any(unit in budget for unit in UNITS)
    if place in in_rounds and "battles" not in last and not rules and not limited:
        yield Problem(
            (*place, "battles"), "nothing would end this: give battles, a rule in [plan.stop], or a limit in [budget]"
        )
