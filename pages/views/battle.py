"""One battle: the instruction, its completions side by side, and every judge in both orders with all its attempts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from venire.arena.errors import InputError, fault_name
from venire.pages.addresses import TableChoice, read_choice
from venire.pages.context import PageContext
from venire.pages.texts import Differences, marked_differences
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

_ALIKE = 0.3
"""The share of common words from which differences are marked unasked: below it the marks would cover nearly all."""

_VIEWS = {"plain": "text", "marks": "differences", "markdown": "Markdown"}
"""How completions can be shown: the parameter of the address, and the words of the link."""


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
    asked_view = next((one for one in _VIEWS if query.get(one) == "1"), None)
    flags = {} if asked_view is None else {asked_view: "1"}
    differences = None
    if len(texts) == 2 and asked_view in (None, "marks") and max(map(len, texts)) <= MAX_SHOWN:
        differences = marked_differences(texts[0], texts[1])
    view = asked_view or ("marks" if differences and differences.common >= _ALIKE else "plain")
    return {
        "title": f"Battle of trial {trial}",
        "trial": trial,
        "instruction": asked,
        "completions": [
            _completion(here, one, trial, place, differences if view == "marks" else None)
            for place, one in enumerate(shown)
        ],
        "view": view,
        "views": [
            (one, words, here.links.to(f"battle/{trial}", {**choice.query(), one: "1"}))
            for one, words in _VIEWS.items()
            if one != "marks" or len(texts) == 2
        ],
        "common": None if differences is None or view == "marks" else differences.common,
        "too_long": view == "marks" and differences is None,
        "cards": _cards(here, details, trial),
        "votes": votes[:_MAX_VOTES],
        "more_votes": max(0, len(votes) - _MAX_VOTES),
        "instruction_link": here.links.instruction(asked.number),
        "table": here.links.to("calls", choice.query()),
        "filtered": bool(TableChoice(choice.filter).query()),
        "neighbours": _neighbours(here, choice, numbers, trial, choice.query() | flags),
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


def _completion(
    here: PageContext, one: ShownCompletion, trial: int, place: int, differences: Differences | None
) -> dict[str, Any]:
    return {
        "model": one.model,
        "variant": one.variant,
        "text": one.text,
        "marked": None if differences is None else differences.texts[place],
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
        "spent": {
            "calls": len(one.attempts),
            "faults": sum(attempt.fault != 0 for attempt in one.attempts),
            "seconds": sum(attempt.latency_ms or 0 for attempt in one.attempts) / 1000,
            "nano": sum(attempt.reserved if attempt.cost is None else attempt.cost for attempt in one.attempts),
        },
        "message": next((attempt.message for attempt in reversed(one.attempts) if attempt.fault), None),
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
