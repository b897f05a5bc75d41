"""What the store hands to ratings and reports: verdicts as arrays, and the labels beside them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from venire.arena.battles import GOLD, Ballots, Battles, Grades
from venire.arena.records import Origin
from venire.storage.plans.trial_states import TrialStates, respondents, trial_states
from venire.storage.store.store import Store

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class CampaignRow:
    """A campaign of a store, by number and name."""

    id: int
    name: str
    seed: int
    started_at: str
    planned: bool


@dataclass(frozen=True, slots=True)
class JudgeRow:
    """A judge of a campaign under its name there."""

    name: str
    respondent: int
    model: str
    protocol: str
    origin: Origin
    elo: float | None
    family: str | None


@dataclass(frozen=True, slots=True)
class PeopleRow:
    """A group of people whose votes a store has: how many they are, their votes, and how many of these are ties."""

    id: int
    name: str
    origin: Origin
    annotators: int
    votes: int
    ties: int


@dataclass(frozen=True, slots=True)
class Progress:
    """Trials in force: planned, settled, failed."""

    planned: int
    settled: int
    failed: int

    @property
    def missing(self) -> int:
        """Trials still to ask."""
        return self.planned - self.settled - self.failed


@dataclass(frozen=True, slots=True)
class CampaignSpending:
    """What a campaign paid: nano-dollars in all, of it known and only reserved; calls, tokens, waits in ms."""

    nano: int = 0
    known: int = 0
    unknown: int = 0
    calls: int = 0
    answered: int = 0
    wait_ms: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    unanswered: int = 0
    """Of what is only reserved, that for calls without an answer."""
    unanswered_calls: int = 0
    """How many of these there are for which anything is set aside."""
    unanswered_tokens: int = 0
    """Tokens that are set aside for them, where a budget limits tokens."""


def campaigns(store: Store) -> tuple[CampaignRow, ...]:
    """The campaigns of a store in the order they were started."""
    return tuple(CampaignRow(*row) for row in store.read("campaigns"))


def judges(store: Store, campaign: int) -> tuple[JudgeRow, ...]:
    """The judges of a campaign, by name."""
    return tuple(
        JudgeRow(name, respondent, model, protocol, Origin(origin), elo, family)
        for name, respondent, model, protocol, origin, elo, family in store.read("judges", campaign=campaign)
    )


def progress(store: Store, campaign: int, only: Collection[int] | None = None) -> Progress:
    """How far a campaign is; `only` are the trials that are counted, None: all."""
    states = _exclusive(trial_states(store, campaign))
    if only is not None:
        return Progress(*(int(np.count_nonzero(state[list(only)])) for state in states))
    return Progress(*(int(np.count_nonzero(state)) for state in states))


def judge_progress(store: Store, campaign: int) -> dict[str, Progress]:
    """How far a campaign is with each of its judges, by name."""
    states = _exclusive(trial_states(store, campaign))
    judged_by = respondents(store, len(states[0]) - 1)
    size = int(judged_by.max(initial=0)) + 1
    planned, settled, failed = (np.bincount(judged_by[state], minlength=size).tolist() for state in states)
    return {
        row.name: Progress(planned[row.respondent], settled[row.respondent], failed[row.respondent])
        for row in judges(store, campaign)
        if row.respondent < size and planned[row.respondent]
    }


def _exclusive(now: TrialStates) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Planned, and of these settled, and failed without being settled."""
    settled = now.planned & now.settled
    return now.planned, settled, now.planned & now.failed & ~settled


def campaign_spending(store: Store, campaign: int) -> CampaignSpending:
    """What a campaign paid."""
    rows = store.read("spend", campaign=campaign)
    found = CampaignSpending(*rows[0]) if rows else CampaignSpending()
    if found.unanswered_tokens:
        settings = store.read("campaign_settings", campaign=campaign)
        if not any(_limits_tokens(json.loads(text).get("budget", {})) for (text,) in settings):
            return replace(found, unanswered_tokens=0)
    return found


def uncounted_answers(store: Store, campaign: int) -> int:
    """Answers of a campaign whose tokens the provider did not count: they are in no sum of tokens."""
    return int(store.read("uncounted", campaign=campaign)[0][0])


def _limits_tokens(budget: Mapping[str, Any]) -> bool:
    """Whether a table of budgets, or one in it for a judge or a model, limits tokens."""
    return budget.get("tokens") is not None or any(
        _limits_tokens(one) for one in budget.values() if isinstance(one, Mapping)
    )


def elos(store: Store) -> dict[str, float]:
    """Known ratings by model name, in Elo points."""
    return {name: elo for name, _, elo, _ in store.read("models") if elo is not None}


def families(store: Store) -> dict[str, str]:
    """Known families by model name."""
    return {name: family for name, _, _, family in store.read("models") if family is not None}


def battles(store: Store, campaign: int) -> Battles:
    """The verdicts of a campaign as arrays, names in alphabetical order so that no estimate depends on numbering."""
    return _battles(store, campaign, store.arrays("battles", campaign=campaign))


@dataclass(frozen=True, slots=True, eq=False)
class TimedBattles:
    """The verdicts of a campaign with when each was given (`seconds` since 1970, NaN: not known).

    `planned` is how many there are to be, `shown` the numbers of the completions of A and of B, one a verdict. The
    covariate `length` is A's length in characters less B's, over both.
    """

    battles: Battles
    seconds: NDArray[np.float64]
    planned: int
    shown: tuple[NDArray[np.int64], NDArray[np.int64]]


def battles_in_time(store: Store, campaign: int) -> TimedBattles:
    """The same with when each verdict was given, lengths, completions, and how many verdicts are planned."""
    columns = store.arrays("battles_in_time", campaign=campaign)
    return TimedBattles(
        battles=replace(_battles(store, campaign, columns), features={"length": np.asarray(_plain(columns["length"]))}),
        seconds=np.ma.filled(np.ma.asarray(columns["told_at"], dtype=np.float64), np.nan),
        planned=int(store.read("battles_planned", campaign=campaign)[0][0]),
        shown=_shown(columns),
    )


def battles_shown(store: Store, campaign: int) -> tuple[Battles, tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The verdicts of a campaign, and the numbers of the completions of A and of B, one a verdict."""
    columns = store.arrays("battles", campaign=campaign)
    return _battles(store, campaign, columns), _shown(columns)


def battle_texts(store: Store, campaign: int) -> dict[int, str]:
    """The texts of all completions that a campaign's battles show, by number."""
    return dict(store.read("battle_texts", campaign=campaign))


def _shown(columns: Mapping[str, Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    first, second = (np.asarray(_plain(columns[f"completion_{side}"]), dtype=np.int64) for side in "ab")
    return first, second


def edited_battles(store: Store, campaign: int) -> dict[tuple[str, str], Battles]:
    """The verdicts of a campaign on battles that show an edited completion, by the edit and the side that has it.

    The key is the name of the edit and "a" or "b"; `battles` has none of these.
    """
    if not store.read("edited_completions")[0][0]:
        return {}
    found = store.arrays("edited_battles", campaign=campaign)
    sides = {side: np.asarray(_plain(found[f"variant_{side}"]), dtype=np.str_) for side in "ab"}
    edited = {}
    for side, other in ("ab", "ba"):
        for variant in np.unique(sides[side][sides[side] != ""]).tolist():
            rows = (sides[side] == variant) & (sides[other] == "")
            if rows.any():
                columns = {name: column[rows] for name, column in found.items()}
                edited[variant, side] = _battles(store, campaign, columns)
    return edited


def ballots(store: Store, campaign: int) -> tuple[Ballots, NDArray[np.int8]]:
    """What judges of several completions said in a campaign, names in alphabetical order, and each ballot's status.

    A ballot that was not read ranks nothing. A model that was not shown is not on a ballot.
    """
    found = store.arrays("campaign_ballots", campaign=campaign)
    columns = {name: _plain(column) for name, column in found.items()}
    # Of a reply that was not read there are no places; 0 is a completion that was not ranked.
    place = np.ma.filled(np.ma.asarray(found["place"], dtype=np.float64), 0.0)
    _, first, ballot = np.unique(columns["trial"], return_index=True, return_inverse=True)
    models, model = _encode(columns["model"], dict(store.read("model_names")))
    heads = {name: column[first] for name, column in columns.items()}
    judge_names, judge = _encode(heads["respondent"], {row.respondent: row.name for row in judges(store, campaign)})
    instructions, instruction = _encode(heads["instruction"], dict(store.read("instruction_names")))
    rank = np.full((len(first), len(models)), np.nan)
    rank[ballot, model] = np.where(place > 0, place, np.inf)
    order = np.lexsort([heads["repeat"], instruction, judge])
    return Ballots(
        models=models,
        judges=judge_names,
        instructions=instructions,
        judge=judge[order],
        instruction=instruction[order],
        repeat=heads["repeat"][order].astype(np.int32),
        rank=rank[order],
    ), heads["status"][order].astype(np.int8)


def grades(
    store: Store,
    campaigns: Sequence[int],
    judges: Sequence[JudgeRow],
    others: Sequence[JudgeRow] = (),
    models: Collection[str] = (),
) -> Grades:
    """What some judges said of single completions in some campaigns, each verdict once; rows in an order of names.

    Of `others` only what they said of `models` is taken. Of a judge that is given under two names, the first counts.
    Where people labelled every answer that these judges were asked about, their labels are the last rows, of judges
    under `GOLD`; else labels are the `truth` of these answers alone.
    """
    rows = {row.respondent: row for row in reversed([*judges, *others])}
    found = store.arrays(
        "grades",
        campaigns=list(campaigns),
        respondents=[row.respondent for row in judges],
        others=[row.respondent for row in others],
        models=list(models),
    )
    model_names: dict[int, str] = dict(store.read("model_names"))
    columns = _with_gold(store, {name: _plain(column) for name, column in found.items()}, model_names, models)
    names, model = _encode(columns["model"], model_names)
    people: dict[int, str] = dict(store.read("gold_annotators"))
    # Judges of two campaigns may share a name: the protocol and the number tell them apart.
    numbers, number = np.unique(columns["respondent"], return_inverse=True)
    graders = [
        (people[one], GOLD, "") if one < 0 else (rows[one].name, rows[one].protocol, rows[one].model)
        for one in numbers.tolist()
    ]
    asked = sorted(range(len(numbers)), key=lambda code: (numbers[code] < 0, *graders[code][:2], numbers[code]))
    position = np.empty(len(numbers), dtype=np.int32)
    position[asked] = np.arange(len(numbers), dtype=np.int32)
    judge = position[number]
    instructions, instruction = _encode(columns["instruction"], dict(store.read("instruction_names")))
    categories: dict[str, str] = dict(store.read("instruction_categories"))
    order = np.lexsort([columns["repeat"], instruction, model, judge])
    judge_names, protocols, judge_models = zip(*(graders[code] for code in asked), strict=True) if asked else ((),) * 3
    return Grades(
        models=names,
        judges=tuple(judge_names),
        protocols=tuple(protocols),
        instructions=instructions,
        categories=tuple(categories[name] for name in instructions),
        model=model[order],
        judge=judge[order],
        instruction=instruction[order],
        repeat=columns["repeat"][order].astype(np.int32),
        status=columns["status"][order].astype(np.int8),
        label=columns["label"][order].astype(np.int8),
        truth=columns["truth"][order].astype(np.int8),
        judge_models=tuple(judge_models),
    )


def _with_gold(
    store: Store, graded: Mapping[str, NDArray[Any]], names: Mapping[int, str], models: Collection[str]
) -> Mapping[str, NDArray[Any]]:
    """Grades with the labels of people, of some models and of those graded, if they are of all answers graded."""
    labels = {name: _plain(column) for name, column in store.arrays("gold_labels").items()}
    answers = (one["model"].astype(np.int64) << 32 | one["instruction"] for one in (graded, labels))
    if not len(labels["label"]) or not np.isin(*answers).all():
        return graded
    wanted = {*graded["model"].tolist(), *(number for number, name in names.items() if name in models)}
    kept = np.isin(labels["model"], list(wanted))
    return {name: np.concatenate([column, labels[name][kept]]) for name, column in graded.items()}


def people(store: Store) -> tuple[PeopleRow, ...]:
    """The groups of people whose votes a store has, in the order they were first imported."""
    rows = (PeopleRow(number, name, Origin(origin), *counts) for number, name, origin, *counts in store.read("people"))
    return tuple(row for row in rows if row.votes)


def votes(store: Store, group: int) -> Battles:
    """The votes of a group of people, by its number; its annotators are the judges.

    The order shown counts as known (`ordered`) where it is known of every vote.
    """
    columns = {name: _plain(column) for name, column in store.arrays("votes", people=group).items()}
    models, sides = _encode(np.concatenate([columns["model_a"], columns["model_b"]]), dict(store.read("model_names")))
    judge_list, judge_codes = _encode(columns["annotator"], dict(store.read("annotator_names", people=group)))
    instructions, instruction = _encode(columns["instruction"], dict(store.read("instruction_names")))
    half = len(sides) // 2
    return Battles(
        models=models,
        judges=judge_list,
        instructions=instructions,
        model_a=sides[:half],
        model_b=sides[half:],
        judge=judge_codes,
        instruction=instruction,
        repeat=columns["repeat"].astype(np.int32),
        swapped=columns["swapped"].astype(np.bool_),
        status=np.zeros(half, dtype=np.int8),
        label=columns["label"].astype(np.int8),
        ordered=half > 0 and bool(columns["shown"].all()),
    )


def _battles(store: Store, campaign: int, columns: Mapping[str, Any]) -> Battles:
    model_names: dict[int, str] = dict(store.read("model_names"))
    instruction_names: dict[int, str] = dict(store.read("instruction_names"))
    judge_names = {row.respondent: row.name for row in judges(store, campaign)}
    sides = np.concatenate([_plain(columns["model_a"]), _plain(columns["model_b"])])
    models, model_codes = _encode(sides, model_names)
    judge_list, judge_codes = _encode(_plain(columns["respondent"]), judge_names)
    instructions, instruction_codes = _encode(_plain(columns["instruction"]), instruction_names)
    half = len(model_codes) // 2
    return Battles(
        models=models,
        judges=judge_list,
        instructions=instructions,
        model_a=model_codes[:half],
        model_b=model_codes[half:],
        judge=judge_codes,
        instruction=instruction_codes,
        repeat=_plain(columns["repeat"]).astype(np.int32),
        swapped=_plain(columns["swapped"]).astype(np.bool_),
        status=_plain(columns["status"]).astype(np.int8),
        label=_plain(columns["label"]).astype(np.int8),
        score=_scores(columns["score"]),
    )


def _scores(column: Any) -> NDArray[np.float64] | None:
    """NaN where a verdict has no score; None where no verdict has one."""
    scores = np.ma.filled(np.ma.asarray(column, dtype=np.float64), np.nan)
    return None if bool(np.isnan(scores).all()) else np.asarray(scores)


def _plain(column: Any) -> NDArray[Any]:
    return np.ma.getdata(column)


def _encode(numbers: NDArray[Any], names: Mapping[int, str]) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """The names that occur, sorted, and each row's position among them.

    Ids count from 1 without gaps, so that a table by id costs far less than sorting the rows.
    """
    occurs = np.zeros(int(numbers.max(initial=0)) + 1, dtype=np.bool_)
    occurs[numbers] = True
    ordered = sorted(np.flatnonzero(occurs).tolist(), key=names.__getitem__)
    position = np.zeros(len(occurs), dtype=np.int32)
    position[ordered] = np.arange(len(ordered), dtype=np.int32)
    return tuple(names[number] for number in ordered), position[numbers]
