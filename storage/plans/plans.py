"""Campaigns and their plans in a store: registering, rounds written as a stream, and interim analyses after them."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from venire.arena.campaigns import CampaignSettings, JudgeSettings
from venire.arena.keys import respondent_key
from venire.arena.planning import InterimAnalysis, InterimRating
from venire.arena.records import EDIT, GENERATE, PlannedTrial, Respondent
from venire.storage.plans.trial_states import any_failed
from venire.storage.store.connection import Row
from venire.storage.store.recovery import ENDED_WITHOUT_ANSWER
from venire.storage.store.store import Store

_CHUNK = 10_000


@dataclass(frozen=True, slots=True)
class StoredCampaign:
    """A campaign as the store has it: its number, its file and settings when last accepted, and what was asked."""

    id: int
    text: str
    settings: str
    planned: bool
    calls: int


@dataclass(frozen=True, slots=True)
class KnownCampaign:
    """A campaign with its judges, and what the store knows of both.

    `stored` is None for a new campaign; `numbers` are those of respondents, by judge name, of judges that are known.
    """

    settings: CampaignSettings
    judges: Sequence[tuple[JudgeSettings, Respondent]]
    stored: StoredCampaign | None
    numbers: Mapping[str, int]

    @property
    def number(self) -> int | None:
        """The number of the campaign; None for a new one."""
        return None if self.stored is None else self.stored.id

    @property
    def by_number(self) -> Mapping[int, JudgeSettings]:
        """Judges by respondent number; below 0 for one that the store does not know."""
        return {self.numbers.get(judge.name, -n): judge for n, (judge, _) in enumerate(self.judges, start=1)}


class StoredRound(NamedTuple):
    """A round of a plan in force: trials, battles left out because their texts are equal, the design as JSON."""

    number: int
    phase: str
    policy: str
    trials: int
    equal_texts: int
    planned_at: str
    design: str


@dataclass(frozen=True, slots=True)
class SentLately:
    """What left by some routes of late, with its age in seconds, rounded down."""

    calls: tuple[tuple[float, int], ...] = ()
    """Of the last day: age, and how many."""
    tokens: tuple[tuple[float, int, int], ...] = ()
    """Of the last two minutes: age, tokens in and out, the oldest first."""

    def __add__(self, other: SentLately) -> SentLately:
        return SentLately(self.calls + other.calls, tuple(sorted(self.tokens + other.tokens, reverse=True)))


class Catalogued(NamedTuple):
    """A completion as the planner knows it: its number and key, and a hash of its text to find equal ones."""

    number: int
    key: bytes
    text: int


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What the planner needs to know of the completions of some models."""

    models: Mapping[str, int]
    """Model name to its number."""
    instructions: Mapping[str, tuple[int, bytes]]
    """Instruction id to its number and key."""
    completions: Mapping[tuple[str, str], Catalogued]
    """By (model, instruction id)."""
    referenced: frozenset[str] = frozenset()
    """Instructions that have a reference answer."""
    edited: Mapping[tuple[str, str, str], Catalogued] = field(default_factory=dict)
    """Edited copies of completions by (model, instruction id, variant)."""


def find_campaign(store: Store, name: str) -> StoredCampaign | None:
    """The campaign of that name, or None."""
    found = store.read("read_campaign", name=name)
    if not found:
        return None
    number, text, settings, in_force = found[0]
    spent = store.read("spend", campaign=number)
    return StoredCampaign(number, text, settings, in_force is not None, spent[0][3] if spent else 0)


def known_campaign(
    store: Store, campaign: CampaignSettings, judges: Sequence[tuple[JudgeSettings, Respondent]]
) -> KnownCampaign:
    """What the store knows of a campaign and its judges."""
    rows = {judge.name: store.read("respondent_id", respondent_key=respondent_key(one)) for judge, one in judges}
    numbers = {name: found[0][0] for name, found in rows.items() if found}
    return KnownCampaign(campaign, judges, find_campaign(store, campaign.name), numbers)


def register(
    store: Store,
    campaign: CampaignSettings,
    judges: Sequence[tuple[JudgeSettings, Respondent]],
    prompts: Iterable[tuple[str, bytes, str]],
    *,
    plan_stays: bool = False,
) -> tuple[int, Mapping[str, int]]:
    """Write a campaign, its judges and their prompts (name, digest, text).

    Returns the number of the campaign, and those of respondents by judge name.

    A campaign that is there is brought to the settings given, and its plan put out of force when they differ,
    unless `plan_stays`. Nothing is written where all of it is there.
    """
    known = find_campaign(store, campaign.name)
    texts = {digest: (name, text) for name, digest, text in prompts}
    if known is not None and known.settings == campaign.settings:
        there = _registered(store, known.id, judges, texts.keys())
        if there is not None:
            return known.id, there
    numbers: dict[str, int] = {}
    with store.commit() as commit:
        fields = {"seed": campaign.seed, "text": campaign.text, "settings": campaign.settings}
        if known is None:
            commit.run("insert_campaign", name=campaign.name, now=store.clock.wall(), **fields)
        elif known.settings != campaign.settings:
            commit.run("update_campaign", campaign=known.id, plan_stays=plan_stays, **fields)
        number = store.rows("read_campaign", name=campaign.name)[0][0]
        commit.run("clear_judges", campaign=number)
        if texts:
            names, contents = zip(*texts.values(), strict=True)
            commit.run("insert_prompts", names=names, digests=list(texts), texts=contents)
        for judge, respondent in judges:
            key = respondent_key(respondent)
            commit.run(
                "insert_respondent",
                model=respondent.model,
                protocol=respondent.protocol,
                options=json.dumps(dict(respondent.options), sort_keys=True),
                respondent_key=key,
                origin=respondent.origin.value,
                role="contestant" if respondent.protocol in (GENERATE, EDIT) else "judge",
            )
            numbers[judge.name] = store.rows("respondent_id", respondent_key=key)[0][0]
            commit.run(
                "insert_judge",
                campaign=number,
                respondent=numbers[judge.name],
                name=judge.name,
                elo=judge.elo,
                family=judge.family,
            )
    return number, numbers


def _registered(
    store: Store, campaign: int, judges: Sequence[tuple[JudgeSettings, Respondent]], prompts: Set[bytes]
) -> dict[str, int] | None:
    """The numbers of respondents by judge name, where the store has these judges and prompts (digests); else None."""
    rows = store.read("registered_judges", campaign=campaign)
    there = {(name, bytes(key), elo, family) for _, name, key, elo, family in rows}
    if there != {(judge.name, respondent_key(one), judge.elo, judge.family) for judge, one in judges}:
        return None
    if not prompts <= {bytes(digest) for (digest,) in store.read("prompt_digests")}:
        return None
    return {name: number for number, name, *_ in rows}


def catalogue(store: Store, models: Sequence[str], variants: Sequence[str] = ()) -> Catalogue:
    """The first answers of the named models, with their edited copies of these variants."""
    numbers = {name: number for name, number, *_ in store.read("models")}
    instructions: dict[str, tuple[int, bytes]] = {}
    completions: dict[tuple[str, str], Catalogued] = {}
    referenced: set[str] = set()
    rows = store.read("catalogue", models=list(models))
    for model, name, number, key, has_reference, completion, completion_key, text in rows:
        instructions[name] = (number, bytes(key))
        if has_reference:
            referenced.add(name)
        completions[model, name] = Catalogued(completion, bytes(completion_key), text)
    known = {name: numbers[name] for name in models if name in numbers}
    edits = store.read("edited_catalogue", models=list(models), variants=list(variants)) if variants else []
    edited = {
        (model, name, variant): Catalogued(number, bytes(key), text)
        for model, name, variant, number, key, text in edits
    }
    return Catalogue(known, instructions, completions, frozenset(referenced), edited)


def instruction_catalogue(store: Store) -> Catalogue:
    """All instructions of a store, without their answers."""
    return Catalogue({}, {name: (number, bytes(key)) for name, number, key in store.read("instruction_keys")}, {})


def append_round(
    store: Store,
    campaign: int,
    trials: Iterator[PlannedTrial],
    *,
    policy: str,
    seed: int,
    equal_texts: list[int],
    design: str = "{}",
    phase: str | None = None,
    follows: bool = False,
) -> int:
    """Write a round of the plan as a stream, in chunks of 10,000, and put it in force; returns its number of trials.

    With `follows` the rounds in force stay so, and trials that one of them plans are left out and not counted.
    Trials that the store knows keep their numbers. `equal_texts` is a counter of one entry that the stream fills,
    `design` is the design of the round as JSON. An earlier unfinished round is dropped first.
    """
    with store.commit() as commit:
        commit.run("drop_unfinished_round", campaign=campaign)
    number = store.read("next_round", campaign=campaign)[0][0]
    count = handed = 0
    while chunk := list(islice(trials, _CHUNK)):
        with store.commit() as commit:
            commit.run("stage_trials")
            store_rows: list[Row] = [_trial_row(handed + n, trial) for n, trial in enumerate(chunk)]
            appender = store.connection.appender("staged_trial")
            appender.append_rows(store_rows)
            appender.flush()
            commit.run("insert_trials", last=store.rows("last_trial")[0][0], batch=commit.batch)
            before = commit.written
            into = "insert_following_plan" if follows else "insert_plan"
            commit.run(into, campaign=campaign, round=number, batch=commit.batch)
            count += commit.written - before
        handed += len(chunk)
    with store.commit() as commit:
        commit.run(
            "insert_round",
            campaign=campaign,
            number=number,
            policy=policy,
            seed=seed,
            trials=count,
            equal_texts=equal_texts[0],
            design=design,
            phase=phase,
            now=store.clock.wall(),
        )
        if not follows:
            commit.run("put_in_force", campaign=campaign, round=number)
    if store.is_due():
        store.checkpoint()
    return count


def clear_failures(store: Store, campaign: int) -> int:
    """Let the failed steps of a campaign be tried again; returns how many."""
    with store.commit() as commit:
        commit.run("clear_failures", campaign=campaign, batch=commit.batch)
        return commit.written


def clear_failures_elsewhere(
    store: Store, campaign: int, routes: Collection[str], replicas: Collection[str] = ()
) -> int:
    """Let failed steps be tried again whose last attempt went by none of these routes; returns how many.

    `replicas` are endpoints (`ray://NAME`) whose servers may be others at each start, with the same model.
    """
    if not any_failed(store):
        return 0
    with store.commit() as commit:
        ways = {"routes": list(routes), "replicas": list(replicas)}
        commit.run("clear_failures_elsewhere", campaign=campaign, batch=commit.batch, **ways)
        return commit.written


def release_unanswered(store: Store, campaign: int) -> tuple[int, int]:
    """Set aside nothing any more for calls without an answer; returns how many they are, and the nano-dollars freed.

    They stay on record with a cost that is not known, and an event says what was freed.
    """
    calls, nano = store.read("unanswered", campaign=campaign)[0]
    if not calls:
        return 0, 0
    with store.commit() as commit:
        commit.run("unanswered_verdict_costs", campaign=campaign)
        commit.run("release_unanswered", campaign=campaign)
        detail = json.dumps({"calls": calls, "nano": nano})
        now = store.clock.wall()
        commit.run("insert_event", now=now, campaign=campaign, kind="released", detail=detail, batch=commit.batch)
    return calls, nano


def last_options(store: Store, campaign: int) -> str:
    """The options of the command that last ran a campaign, as far as they say who asks what of it."""
    return _last_start(store, campaign)[0]


def lost_since_start(store: Store, campaign: int) -> int:
    """Calls that the last run had no answer to when it ended without notice, and that are to be asked again."""
    _, batch = _last_start(store, campaign)
    found: int = store.read("lost_since", campaign=campaign, batch=batch, message=ENDED_WITHOUT_ANSWER)[0][0]
    return found


def _last_start(store: Store, campaign: int) -> tuple[str, int]:
    rows = store.read("last_start", campaign=campaign)
    return (json.loads(rows[0][0]).get("options", ""), rows[0][1]) if rows else ("", 0)


def _trial_row(ordinal: int, trial: PlannedTrial) -> Row:
    battle = trial.battle
    return (
        ordinal,
        trial.key,
        trial.protocol,
        trial.respondent,
        trial.instruction,
        *((battle.model_a, battle.model_b, battle.swapped) if battle is not None else (None, None, None)),
        list(trial.shown),
        trial.repeat,
        None if battle is None else battle.gap,
    )


def sent_lately(store: Store, routes: Collection[str]) -> SentLately:
    """What left by some routes, given by name; the store need not know them."""
    lanes = [row[0] for name in routes for row in store.read("lane_id", name=name)]
    asked = {"now": store.clock.wall(), "lanes": lanes}
    return SentLately(tuple(store.read("sent_lately", **asked)), tuple(store.read("tokens_lately", **asked)))


def edited_already(store: Store, campaign: int) -> list[tuple[str, str, int]]:
    """Edits that a campaign would ask for and of which the store has copies: name, an instruction, how many."""
    return store.read("edited_already", campaign=campaign)


def written_already(store: Store, campaign: int) -> list[tuple[str, str, int]]:
    """Contestants of a campaign that have answers to what it would ask them: name, first instruction, how many."""
    return store.read("written_already", campaign=campaign)


def answered_trials(store: Store, campaign: int) -> list[int]:
    """Trials of a campaign in force whose replies are a contestant's own text that is no completion yet, by number."""
    return [number for (number,) in store.read("answered", campaign=campaign)]


def rounds(store: Store, campaign: int) -> tuple[StoredRound, ...]:
    """The rounds of the plan in force, in order."""
    return tuple(StoredRound(*row) for row in store.read("rounds", campaign=campaign))


def add_interim(store: Store, campaign: int, round_number: int, analysis: InterimAnalysis, settled: int = 0) -> None:
    """Keep an interim analysis, made after the round of that number when so many of its trials were settled.

    Figures that are no number or without end are kept as not known. Raises StoreError when the store cannot be written.
    """
    figures = json.dumps(_finite(asdict(analysis)), ensure_ascii=False, allow_nan=False)
    with store.commit() as commit:
        commit.run(
            "insert_interim",
            campaign=campaign,
            round=round_number,
            now=store.clock.wall(),
            settled=settled,
            battles=analysis.battles,
            verdicts=analysis.verdicts,
            nano=analysis.nano,
            stop=analysis.stop,
            figures=figures,
        )


def interim_analyses(store: Store, campaign: int) -> tuple[tuple[int, InterimAnalysis], ...]:
    """The interim analyses of a plan in force, each with the number of the round it was made after; any thread."""
    return tuple(
        (number, _analysis(figures)) for number, _, figures in store.read("interim_analyses", campaign=campaign)
    )


def last_interim(store: Store, campaign: int) -> tuple[int, int, InterimAnalysis] | None:
    """The last analysis: its round, how many trials were settled then, and its results; None before the first."""
    rows = store.read("interim_analyses", campaign=campaign)
    return None if not rows else (rows[-1][0], rows[-1][1], _analysis(rows[-1][2]))


def _analysis(figures: str) -> InterimAnalysis:
    found = json.loads(figures)
    models = tuple(InterimRating(**one) for one in found.pop("models"))
    return InterimAnalysis(**found | {"models": models, "warnings": tuple(found["warnings"])})


def _finite(value: Any) -> Any:
    """Plain values, with None for what JSON has no number for."""
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
