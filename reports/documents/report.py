"""The document of a report: everything that a report says, as plain JSON values, in the order in which it is said."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from venire.arena.budgets import BudgetSettings
from venire.arena.errors import InputError, VenireError
from venire.arena.keys import prompt_digest
from venire.arena.registry import PROTOCOLS
from venire.arena.wording import few
from venire.ratings.inference.options import Options
from venire.reports.audit.cases import case_of, case_of_campaign
from venire.reports.board.board import Board
from venire.reports.board.diagnostics import Diagnostics
from venire.reports.board.rate import read
from venire.reports.board.source import VerdictSource
from venire.reports.board.stored import choose_campaign, select_in_campaign
from venire.reports.board.verdicts import Verdicts
from venire.reports.chart_data import cost_rows
from venire.reports.documents.asked import asked_options, board_notes
from venire.reports.documents.boards import audit_document, cost_document, counts_document, with_pairs_seen
from venire.reports.documents.examples import example_battles
from venire.reports.documents.judged import agreement_rows, judge_ratings, judge_rows, reliability, verdict_digest
from venire.reports.documents.methods import methods_section
from venire.reports.documents.rows import tied
from venire.reports.documents.sentences import DEFINITIONS, MEANINGS, answer, short
from venire.reports.figure_tables import figure_tables
from venire.reports.wording import counted
from venire.storage.plans.rounds import rounds_document
from venire.storage.read import frames
from venire.storage.read.activity import campaign_settings, run_history
from venire.storage.read.readings import asked_judges, prompt_texts
from venire.storage.read.trial_table import TrialTable, categories
from venire.storage.store.store import Store

FORMAT = 1
"""The version of the document's form."""

_MAX_CATEGORIES = 16


def rated_verdicts(source: VerdictSource, method: str | None = None) -> tuple[Verdicts, Board]:
    """The verdicts of a source with their board; raises InputError as `venire.rate` does, and for grades alone."""
    verdicts = read(source)
    verdicts.refuse_grades_alone()
    return verdicts, verdicts.board(method)


def report_document(
    source: VerdictSource,
    *,
    options: Options | None = None,
    command: str = "venire report",
    made: tuple[Verdicts, Board] | None = None,
) -> dict[str, Any]:
    """The report of a store's campaign, or of files or a table of verdicts, as plain JSON values.

    `made` are the verdicts and their board, with the figures that were asked for beside it and made with `options`;
    default: `rated_verdicts`. `command` is what made the report, for whoever repeats it. A section about which there is
    nothing to say is None, and `left_out` says why. Raises InputError as `rated_verdicts` does.

    >>> report_document(VerdictSource((Path("campaign.duckdb"),)))["answer"]["leader"]
    'strong'
    """
    with source.opened() as store:
        verdicts, board = made or rated_verdicts(source)
        verdicts.refuse_grades_alone()
        campaign = None if store is None else choose_campaign(store, source.campaign)
        return _document(source, verdicts, board, options, command, store, campaign)


def headline(source: VerdictSource) -> tuple[str, Board]:
    """Who leads, how certain that is, by which judges, at what cost, in a sentence; and the board.

    Raises InputError as `rated_verdicts` does.
    """
    with source.opened() as store:
        verdicts, board = rated_verdicts(source)
        campaign = None if store is None else choose_campaign(store, source.campaign)
        return _answered(verdicts, board, store, campaign)["answer"]["sentence"], board


def _answered(
    verdicts: Verdicts, rated: Board, store: Store | None, campaign: frames.CampaignRow | None
) -> dict[str, Any]:
    """The answer of a report, and what it rests on."""
    board = with_pairs_seen(rated, verdicts.battles)
    found: dict[str, Any] = {
        "counts": counts_document(board, verdicts.battles),
        "cost": None,
        "board": board,
    }
    if store is not None and campaign is not None:
        found["cost"] = cost_document(frames.campaign_spending(store, campaign.id))
    return found | {"answer": answer(found).to_json()}


def _document(
    source: VerdictSource,
    verdicts: Verdicts,
    rated: Board,
    asked: Options | None,
    command: str,
    store: Store | None,
    campaign: frames.CampaignRow | None,
) -> dict[str, Any]:
    left_out: list[dict[str, str]] = []
    options = replace(asked or Options(seed=verdicts.seed), replicates=0)
    table = None
    if store is not None and campaign is not None:
        table = TrialTable(store, campaign.id)
        table.refresh(at_once=True)
    battles = verdicts.battles
    found: dict[str, Any] = {
        "report": FORMAT,
        "venire": version("venire"),
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "title": _title(source, campaign),
        **_answered(verdicts, rated, store, campaign),
    }
    board = found["board"]
    elo = {one["model"]: one["elo"] for one in board["models"] if one.get("elo") is not None}
    found["contestants"] = _contestant_costs(verdicts, rated, board, left_out)
    sets = tied(board["models"])
    found["methods"] = methods_section(verdicts, board["method"], options, sets)
    if "reason" in found["methods"]:
        _leave_out(left_out, "Methods side by side", found["methods"]["reason"])
        found["methods"] = None
    found["figures"] = [asdict(one) for one in figure_tables(rated.diagnostics.figures)]
    found["notes"] = board_notes(rated)
    found["categories"] = _categories(store, verdicts, board["method"], options, left_out)
    found["judges"] = judge_rows(board, store, table)
    found["judge_ratings"] = judge_ratings(board, verdicts)
    found["reliability"] = reliability(battles, elo)
    found["agreement"] = [] if table is None else agreement_rows(table)
    found["people"] = _people(verdicts, board, left_out)
    found["audit"] = _audit(source, verdicts, store, campaign, left_out)
    found["asked"] = asked_options(source, asked)
    found["how"] = _how(found, rated, store, campaign, options.seed)
    found["prompts"] = [] if store is None or campaign is None else _prompts(store, campaign.id)
    found["battles"] = [] if store is None or table is None else example_battles(store, table, board["models"])
    if store is None:
        reason = "verdicts in files have no texts, calls, prices or prompts with them"
        _leave_out(left_out, "Costs, prompts, served models and examples of battles", reason)
    elif not found["battles"]:
        _leave_out(left_out, "Examples of battles", "no two completions were compared in this campaign")
    left_out += [
        {"what": f"Check {one['check']}", "why": one["says"]}
        for one in (found["audit"] or {}).get("findings", ())
        if one["word"] == "not made"
    ]
    left_out += [{"what": f"Rating of {name}", "why": why} for name, why in rated.diagnostics.no_estimate.items()]
    left_out += [
        {"what": f"Method {name}", "why": why} for name, why in ((found["methods"] or {}).get("left_out") or {}).items()
    ]
    found["left_out"] = left_out
    found["definitions"] = {**DEFINITIONS, **{key.replace("_", " "): words for key, words in MEANINGS.items()}}
    found["repeat"] = {
        "command": command,
        "seed": options.seed,
        "verdicts_sha256": verdict_digest(battles),
        "source": [Path(str(one)).name for one in source.paths],
        "campaign": None if campaign is None else campaign.name,
    }
    return found


def _leave_out(left_out: list[dict[str, str]], what: str, why: str) -> None:
    left_out.append({"what": what, "why": why})


def _title(source: VerdictSource, campaign: frames.CampaignRow | None) -> str:
    return Path(str(source.paths[0])).name if campaign is None else campaign.name


def _contestant_costs(
    verdicts: Verdicts, rated: Board, board: Mapping[str, Any], left_out: list[dict[str, str]]
) -> list[dict[str, Any]] | None:
    """What a completion of each rated model cost, with intervals, and who is on the frontier; None of fewer than two.

    A model is on the frontier where no other is rated as high for as little.
    """
    what = "Quality against cost"
    if verdicts.costs is None:
        _leave_out(left_out, what, "files of verdicts hold no prices of contestants")
        return None
    models, costs = board["models"], verdicts.costs().models
    rows = [
        {**{key: one[key] for key in ("model", "elo", "lo", "hi", "frontier", "completions")}, **_nano(one)}
        for one in cost_rows(models, costs, rated.diagnostics.level)
    ]
    if len(rows) < 2:
        why = (
            "completions were brought in from elsewhere, or their prices are not known: `venire generate` records them"
        )
        _leave_out(left_out, what, why)
        return None
    drawn = {row["model"] for row in rows}
    if missing := [one["model"] for one in models if one["model"] not in drawn]:
        why = "not rated on the scale of the others, asked for nothing here, or asked without a price"
        _leave_out(left_out, f"Cost of {few([short(one) for one in missing])}", why)
    return rows


def _nano(row: Mapping[str, Any]) -> dict[str, float | None]:
    """The dollars of a row and their interval as nano-dollars."""
    named = (("nano", "cost"), ("nano_lo", "cost_lo"), ("nano_hi", "cost_hi"))
    return {ours: None if row[key] is None else round(1e9 * row[key], 3) for ours, key in named}


def _categories(
    store: Store | None, verdicts: Verdicts, method: str, options: Options, left_out: list[dict[str, str]]
) -> list[dict[str, Any]] | None:
    """The board of each category by the same method and options, in the order of their names."""
    what = "Categories"
    if store is None:
        _leave_out(left_out, what, "files of verdicts name no categories of instructions")
        return None
    names = categories(store)
    if len(names) < 2:
        _leave_out(left_out, what, "the instructions have no categories, or one alone")
        return None
    found = []
    for number, name in enumerate(names):
        if number >= _MAX_CATEGORIES:
            _leave_out(left_out, "More categories", few(names[_MAX_CATEGORIES:]))
            break
        try:
            part = select_in_campaign(store, verdicts, category=name)
            board = part.board(method, options).to_json()
        except InputError as error:
            _leave_out(left_out, f"Category {name}", str(error))
            continue
        rows = {
            one["model"]: {key: one.get(key) for key in ("elo", "lo", "hi", "rank_lo", "rank_hi", "battles")}
            for one in board["models"]
        }
        counts = {"instructions": len(set(part.battles.instruction.tolist())), "verdicts": len(part.battles.status)}
        found.append({"category": name, **counts, "models": rows})
    return found or None


def _people(verdicts: Verdicts, board: Mapping[str, Any], left_out: list[dict[str, str]]) -> dict[str, Any] | None:
    """Agreement of judges with people and of people with one another, as boards have it; the most kappa first."""
    found = board["diagnostics"].get("people")
    if found is not None and "judges" in found:
        by_kappa = sorted(found["judges"], key=lambda one: (_kappa(one) is None, -(_kappa(one) or 0.0), one["judge"]))
        return {**found, "judges": by_kappa}
    why = "there are no votes of people: `venire annotate` and `venire import votes` bring them"
    if found is not None:
        why = "no battle has both a vote and a judgment, or people's votes are rated here themselves"
    elif len(verdicts.groups) > 1:
        why = f"there are votes of {few(verdicts.groups)}: --human NAME says of whom"
    _leave_out(left_out, "Agreement with people", why)
    return None


def _kappa(one: Mapping[str, Any]) -> float | None:
    value: float | None = (one.get("kappa") or {}).get("value")
    return value


def _audit(
    source: VerdictSource,
    verdicts: Verdicts,
    store: Store | None,
    campaign: frames.CampaignRow | None,
    left_out: list[dict[str, str]],
) -> dict[str, Any] | None:
    try:
        if store is None or campaign is None:
            case = case_of(source, verdicts, Options(seed=verdicts.seed))
        else:
            case = case_of_campaign(store, campaign, verdicts)
        found = audit_document(case, verdicts.origins, verdicts.note)
    except VenireError as error:
        _leave_out(left_out, "What should be doubted", str(error))
        return None
    shown = ("check", "word", "says", "figure", "threshold", "asks")
    found["findings"] = [{key: one[key] for key in shown} for one in found["findings"]]
    return found


def _prompts(store: Store, campaign: int) -> list[dict[str, Any]]:
    """The texts that the campaign's judges were asked with, by name, each with its digest."""
    wanted = set()
    for judge in asked_judges(store, campaign):
        if judge.protocol in PROTOCOLS:
            entry = PROTOCOLS[judge.protocol]
            wanted |= {f"{entry.folder}/{name}" for name in entry.prompts}
    return [
        {"name": name, "digest": prompt_digest(text).hex(), "text": text}
        for name, texts in sorted(prompt_texts(store).items())
        if name in wanted
        for text in texts
    ]


def _interval_text(facts: Diagnostics) -> str:
    """By what intervals are clustered and what they are about; that there are none."""
    if facts.estimand is None:
        return "without intervals"
    independent = facts.errors.partition(",")[0] in ("sandwich", "hessian")
    by = "" if independent else f" by {facts.cluster}"
    return f"with {100 * facts.level:g}% intervals{by} (about {facts.estimand})"


def _how(
    document: Mapping[str, Any],
    rated: Board,
    store: Store | None,
    campaign: frames.CampaignRow | None,
    seed: int,
) -> list[str]:
    """How the report's figures came about, in sentences for a section on methods."""
    found = [] if store is None or campaign is None else _campaign_sentences(store, campaign)
    counts, facts, judged = document["counts"], rated.diagnostics, rated.diagnostics.counts
    if store is None:
        found.append(
            f"{counted(counts['verdicts'], 'verdict')} of {counted(len(counts['judges']), 'judge')} on "
            f"{counted(counts['models'], 'model')} were read from {document['title']}."
        )
    merged = "averaged" if judged.merge == "mean" else f"merged by {judged.merge!r}"
    found.append(
        f"The two orders of a battle were {merged} into one judgment, orders that named opposite winners counting as "
        f"{judged.flips_as}: {counted(judged.judgments, 'judgment')}, of which "
        f"{judged.ties:,} are ties and {judged.flips:,} flipped; "
        f"{counts['verdicts'] - counts['read']:,} verdicts could not be read and count for nobody."
    )
    if document["asked"]:
        found.append(f"It was asked for with {', '.join(document['asked'])}.")
    found.append(
        f"Ratings are by {rated.method} on a scale of {rated.gauge}, {_interval_text(facts)}; ranks and sets of models "
        "that are not distinguished are at the same level."
    )
    found.append(
        f"Computed by venire {document['venire']} on Python {platform.python_version()} with seed {seed}, "
        f"on {document['made_at'][:10]}."
    )
    return found


def _campaign_sentences(store: Store, campaign: frames.CampaignRow) -> list[str]:
    settings, plan = campaign_settings(store, campaign.id), rounds_document(store, campaign.id)
    found = []
    for one in asked_judges(store, campaign.id):
        options = sorted((key, value) for key, value in one.options.items() if len(value) < 40)
        given = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in options)
        found.append(
            f"Judge {short(one.name)} is {short(one.model)} by the protocol {one.protocol}"
            + (f" ({given})." if given else ".")
        )
    rounds = plan["rounds"]
    if rounds:
        policies = sorted({one["policy"] for one in rounds})
        trials = sum(one["trials"] for one in rounds)
        equal = sum(one["equal_texts"] for one in rounds)
        found.append(
            f"Battles were chosen by the policy {few(policies)} in {counted(len(rounds), 'round')} with seed "
            f"{campaign.seed}: {counted(trials, 'trial')} were planned"
            + (f", and {counted(equal, 'battle')} of equal texts left out." if equal else ".")
        )
    rules = plan["stops_when"]
    looks = len(plan["looks"])
    found.append(
        f"The campaign was to stop when {' or '.join(rules)}, looked at in {looks:,} interim "
        f"{'analysis' if looks == 1 else 'analyses'}."
        if rules
        else "No rule stopped the campaign early: it asked what was planned."
    )
    if limits := BudgetSettings.of_table(settings.get("budget") or {}).texts():
        found.append(f"Its budget was {limits}.")
    history = run_history(store, campaign.id, 1000)
    if history:
        first, last = str(history[-1][0])[:16], str(history[0][0])[:16]
        runs = sum(kind == "run started" for _, kind, _ in history)
        found.append(f"It was run between {first} and {last} UTC in {counted(runs, 'run')}.")
    return found
