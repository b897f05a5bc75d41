"""One battle: the instruction, its completions side by side, and every judge in both orders with all its attempts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from venire.arena.errors import InputError, fault_name
from venire.pages.addresses import TableChoice, read_choice
from venire.pages.context import PageContext
from venire.pages.texts import marked_differences
from venire.reports.texts import MAX_SHOWN, visible
from venire.storage.read.trial_details import (
    ShownCompletion,
    TrialDetail,
    completions,
    instruction,
    trial_details,
    votes_on,
)
from venire.storage.read.trial_table import TrialTable

_MAX_VOTES = 100
"""Votes on one battle that its page shows; those with notes come first."""


@dataclass(frozen=True, slots=True)
class _Card:
    """One judge and repeat of a battle: the trials of its orders."""

    judge: str
    protocol: str
    model: str
    repeat: int
    trials: tuple[dict[str, Any], ...]
    flipped: bool
    verdict: str


def battle(here: PageContext) -> dict[str, Any]:
    """The values of a battle's page, opened at one of its trials. Raises InputError for a trial that is not there."""
    trial, query = here.number, here.query
    choice = read_choice(query)
    numbers = here.table.battle(trial)
    if not numbers:
        raise InputError(f"campaign {here.campaign.name!r} has no trial {trial}")
    details = trial_details(here.store, here.campaign.id, numbers)
    chosen = next(one for one in details if one.id == trial)
    asked = instruction(here.store, chosen.instruction)
    shown = completions(here.store, chosen)
    texts = [one.text for one in shown]
    votes = votes_on(here.store, chosen.instruction, shown)
    flags = {name: query[name] for name in ("markdown", "plain") if query.get(name) == "1"}
    formatted, plain = "markdown" in flags, "plain" in flags
    differences = None
    if len(texts) == 2 and not formatted and not plain and max(map(len, texts)) <= MAX_SHOWN:
        differences = marked_differences(texts[0], texts[1])
    return {
        "title": f"Battle of trial {trial}",
        "trial": trial,
        "instruction": asked,
        "completions": [
            _completion(here, one, trial, place, differences and differences[place]) for place, one in enumerate(shown)
        ],
        "formatted": formatted,
        "compared": differences is not None,
        "too_different": len(texts) == 2 and differences is None and not formatted and not plain,
        "cards": _cards(here, details, trial),
        "votes": votes[:_MAX_VOTES],
        "more_votes": max(0, len(votes) - _MAX_VOTES),
        "instruction_link": here.links.instruction(asked.number),
        "table": here.links.to("calls", choice.query()),
        "filtered": bool(TableChoice(choice.filter).query()),
        "neighbours": _neighbours(here, choice, numbers, trial, choice.query() | flags),
        "views": {
            "plain": here.links.to(f"battle/{trial}", {**choice.query(), "plain": "1"}),
            "differences": here.links.to(f"battle/{trial}", choice.query()),
            "formatted": here.links.to(f"battle/{trial}", {**choice.query(), "markdown": "1"}),
        },
    }


def _neighbours(
    here: PageContext, choice: TableChoice, numbers: tuple[int, ...], trial: int, kept: Mapping[str, str]
) -> dict[str, str | None]:
    """The battles of the trials before and after these, in the order and the filter of the table."""
    before, after = here.table.neighbours(
        choice.filter, order=choice.order, descending=choice.descending, trial=trial, without=numbers
    )
    return {
        "prev": None if before is None else here.links.battle(before, kept),
        "next": None if after is None else here.links.battle(after, kept),
    }


def _completion(here: PageContext, one: ShownCompletion, trial: int, place: int, marked: Any) -> dict[str, Any]:
    return {
        "model": one.model,
        "variant": one.variant,
        "text": one.text,
        "marked": marked,
        "characters": one.characters,
        "suspicions": one.suspicions,
        "cut": one.characters > MAX_SHOWN,
        "whole": here.links.to(f"text/{trial}/completion/{place}"),
        "page": here.links.contestant(one.model_number),
    }


def _cards(here: PageContext, details: tuple[TrialDetail, ...], chosen: int) -> list[_Card]:
    conversations = here.conversations(details)
    groups: dict[tuple[str, int], list[TrialDetail]] = {}
    for one in details:
        groups.setdefault((one.judge or "", one.repeat), []).append(one)
    cards = []
    for (judge, repeat), trials in groups.items():
        winners = [one.winner for one in trials]
        flipped = len(trials) == 2 and {1, -1} == {one.label for one in trials if one.status == "ok"}
        settled = [one for one in winners if one is not None]
        if flipped:
            verdict = "flipped: the order decided"
        elif settled and len(set(settled)) == 1:
            verdict = settled[0]
        else:
            verdict = ", ".join(dict.fromkeys(settled)) or "no verdict"
        cards.append(
            _Card(
                judge,
                trials[0].protocol,
                trials[0].respondent_model,
                repeat,
                tuple(_trial(here, one, one.id == chosen, conversations.get(one.id, {})) for one in trials),
                flipped,
                verdict,
            )
        )
    return cards


def _trial(here: PageContext, one: TrialDetail, chosen: bool, found: Mapping[str, Any]) -> dict[str, Any]:
    steps: dict[int, dict[str, Any]] = {}
    for attempt in one.attempts:
        step = steps.setdefault(attempt.step, {"number": attempt.step, "attempts": [], "request": None})
        step["attempts"].append(
            {
                "row": attempt,
                "fault": None if attempt.fault == 0 else fault_name(attempt.fault).replace("_", " "),
                "raw": None if attempt.raw is None else _pretty(attempt.raw),
                "whole": here.links.to(f"text/{one.id}/reply/{attempt.step}-{attempt.number}"),
                "cut": len(attempt.text or "") > MAX_SHOWN or len(attempt.reasoning or "") > MAX_SHOWN,
            }
        )
    for number, request in enumerate(found.get("requests", ()), 1):
        if number in steps:
            steps[number]["request"] = request
    return {
        "detail": one,
        "chosen": chosen,
        "steps": [steps[number] for number in sorted(steps)],
        "conversation": found,
        "differs": bool(found.get("today")) and found["today"]["verdict"] != one.verdict,
    }


def _pretty(raw: str) -> str:
    """A raw answer, indented where it is JSON."""
    if len(raw) > MAX_SHOWN:
        return visible(raw[:MAX_SHOWN]) + "…"
    try:
        return visible(json.dumps(json.loads(raw), indent=2, ensure_ascii=False))
    except (ValueError, RecursionError):
        return visible(raw)


def full_text(table: TrialTable, trial: int, kind: str, place: str) -> str:
    """The whole of a text that a page cuts: a completion by its place, or a reply by its step and attempt.

    Raises InputError for one that is not there.
    """
    details = trial_details(table.store, table.campaign, (trial,))
    missing = InputError(f"trial {trial} has no {kind} {place}")
    if not details:
        raise missing
    if kind == "completion":
        shown = completions(table.store, details[0])
        if not place.isdigit() or int(place) >= len(shown):
            raise missing
        return shown[int(place)].text
    if kind == "instruction":
        return "\n\n".join(instruction(table.store, details[0].instruction).turns)
    for attempt in details[0].attempts:
        if f"{attempt.step}-{attempt.number}" == place:
            return "\n\n".join(part for part in (attempt.reasoning, attempt.text) if part)
    raise missing
