"""Terminal output of a board: models by rating, judges by consistency, the method's findings, and reasons to doubt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

from rich.cells import cell_len
from rich.console import Console

from venire.arena.wording import few, interval_text, plain
from venire.ratings.agreement.chance_corrected import Coefficient
from venire.ratings.agreement.people_agreement import JudgeAndPeople, PeopleAgreement
from venire.ratings.methods.findings import (
    AbilitySign,
    ConformalCoverage,
    ContradictedVotes,
    CovariateEffect,
    CovariateEffects,
    DroppedJudges,
    JudgesWithoutAbility,
    SoftEloByPeople,
)
from venire.ratings.methods.methods import METHODS
from venire.ratings.peers.peer_evaluation import PeerEvaluation, SelfPeerGap
from venire.ratings.peers.self_preference import SelfPreferenceOdds
from venire.render.screen import FAILED, tabulate
from venire.render.sections import show
from venire.reports.board.board import Board
from venire.reports.board.diagnostics import (
    Diagnostics,
    InputCounts,
    JudgeJackknife,
    PeopleVotes,
    ReferenceAgreement,
    ReferenceReading,
)
from venire.reports.board.model_rows import ModelRow
from venire.reports.board.source_sections import source_sections
from venire.reports.grade_sections import edit_sections, grade_sections
from venire.reports.sections import Gap
from venire.reports.wording import counted, elo_text

_NARROW = 111
"""Columns below which tables of judges leave out intervals, errors and the parts of a gap: no figure is cut."""

_MAX_JUDGES = 40
"""Judges shown, those with the most verdicts: a crowd does not push the leaderboard off the screen."""

_FEW_UNITS = 20
"""Instructions below which intervals of judges are wide and only roughly right: docs/judges.md."""

_WIDER = 1.005
"""Errors that lack of fit widens by more than this are said to include it."""

_MAX_PEERS = 40

_MAX_NAMED = 5
"""Judges that are named; all of them stand in `venire rate --json`."""


def show_board(screen: Console, board: Board) -> None:
    """Models by rating and judges by consistency, with what a reader needs to doubt them."""
    facts = board.diagnostics
    if board.grades is not None and not facts.counts.verdicts:  # nobody has set one model above another
        show(screen, grade_sections(board.grades))
        return
    if not board.models and facts.reason:
        screen.print(f"no ratings: {facts.reason}")
        return
    if board.models:
        _show_models(screen, board)
    if facts.source is not None:
        show(screen, source_sections(facts.source))
    if facts.reference is not None:
        _show_reference(screen, facts.reference)
    _show_doubts(screen, board)
    _show_judges(screen, board)
    if facts.people is not None:
        show_people(screen, facts, facts.people)
    if (by_people := facts.finding(SoftEloByPeople)) is not None:
        _show_left_out(screen, by_people)
    _show_predictions(screen, board)
    if facts.peers is not None:
        show_peers(screen, facts.peers, board.verdicts)
    if board.edits:
        show(screen, [Gap(), *edit_sections(board.edits, facts.level, board.verdicts)])
    if board.grades is not None:
        show(screen, [Gap(), *grade_sections(board.grades)])


def _show_models(screen: Console, board: Board) -> None:
    columns: dict[str, list[str]] = {
        "": [f"{place}" for place in range(1, len(board.models) + 1)],
        "model": [plain(row.model) for row in board.models],
        **_rating_column(board),
        _percent(board.diagnostics.level): [_interval(board, row) for row in board.models],
        "rank": [_ranks(row) for row in board.models],
        "judgments": [f"{row.battles}" for row in board.models],
    }
    for name in board.models[0].figures:
        values = [row.figures[name] for row in board.models]
        columns[name.replace("_", " ")] = ["" if value is None else _figure(value) for value in values]
    if any(row.reference is not None for row in board.models):
        columns["reference"] = ["" if row.reference is None else f"{row.reference:.0f}" for row in board.models]
    if any(row.group is not None for row in board.models):
        columns["group"] = [f"{row.group or ''}" for row in board.models]
    shown = {head: cells for head, cells in columns.items() if any(cells)}
    title = f"Leaderboard   {board.method}   verdicts: {board.verdicts}"
    if (coins := board.diagnostics.coins_text) is not None:
        screen.print(f"WORRY: {plain(coins)}", style=FAILED)
    tabulate(screen, list(shown), list(zip(*shown.values(), strict=True)), name=1, title=title)


def _rating_column(board: Board) -> dict[str, list[str]]:
    """Ratings, or places where the method gives an order and no ratings."""
    if board.ordered:
        return {"position": ["none" if row.position is None else f"{row.position:.4g}" for row in board.models]}
    return {"Elo": [elo_text(row.elo, row.lo, row.hi) for row in board.models]}


def _show_doubts(screen: Console, board: Board) -> None:
    facts = board.diagnostics
    rated = f"{board.gauge}; errors: {_errors(facts)}; " if board.models else ""
    if board.ordered:  # an order has no gauge
        rated = "" if facts.errors == "none" else f"ranks: {_errors(facts)}; "
    screen.print(
        f"{_judgment_counts(facts.counts)}; {rated}judges: {_jackknife(facts.jackknife)}",
        style="dim",
    )
    show_method_notes(screen, facts)
    fits = dict.fromkeys(fit.get("errors_reason") for fit in facts.fits)
    for note in [facts.open_intervals_text, facts.pairs_asked_text, *facts.notes, *fits]:
        if note:
            screen.print(f"note: {note}")
    for reason in dict.fromkeys(facts.no_estimate.values()):
        names = [plain(name) for name, why in facts.no_estimate.items() if why == reason]
        screen.print(f"no rating: {few(names)}: {reason}")
    if any(row.elo is None and (row.lo, row.hi) != (None, None) for row in board.models):
        screen.print(
            f"over, under: one-sided {_percent(facts.level)} bounds, opponents' ratings held",
        )
    if board.unrated:
        # Without any rating a method of judges' abilities lacks their scale, which a prior of ratings does not give.
        takes = "ridge" in METHODS[board.method].options and any(row.elo is not None for row in board.models)
        method = "" if takes or board.method == "bradley-terry" else "--method bradley-terry "
        screen.print(f"{method}--ridge 0.1, a weak prior, gives every model a rating")
    by_people, effects = facts.finding(SoftEloByPeople), facts.finding(CovariateEffects)
    if by_people is not None and by_people.conformal is not None:
        _show_conformal(screen, by_people.conformal)
    if effects is not None and effects.covariates:
        _show_covariates(screen, effects.covariates, facts.level)
    bad = {name: count for name, count in facts.counts.statuses.items() if count and name != "ok"}
    if bad:
        screen.print("not read: " + ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in bad.items()))
    if len(facts.groups) > 1:
        screen.print("no common estimate exists: these groups were rated apart")
        for group in facts.groups:
            screen.print("  " + plain(", ".join(group)))
    if (agreement := facts.agreement) is not None:
        screen.print(f"agreement with the reference: {_format_agreement(agreement)}   verdicts: {agreement.verdicts}")
    elif any(row.reference is not None for row in board.models):
        screen.print(f"agreement with the reference: none: {facts.agreement_reason}")
    screen.print()


def _jackknife(found: JudgeJackknife) -> str:
    """What judges' intervals rest on."""
    few = f", fewer than {_FEW_UNITS}: rough" if found.unit == "instruction" and found.units < _FEW_UNITS else ""
    return f"jackknife over {counted(found.units, found.unit)}{few}"


def _judgment_counts(facts: InputCounts) -> str:
    """What the judgments were made from, and what of that decides nothing."""
    counts = f"{facts.judgments} judgments, {facts.ties} ties"
    if facts.ballots is not None:
        return f"pairs of {facts.ballots} ballot{'' if facts.ballots == 1 else 's'}; {counts}"
    if facts.merge == "none":
        flips = f"; {facts.flips} times the order turned the winner" if facts.flips else ""
        return f"each verdict for itself; {facts.judgments} verdicts, {facts.ties} ties{flips}"
    flips = f"{facts.flips} flipped with the order"
    flips += f", {facts.one_order} seen in one order only" if facts.one_order else ""
    return f"{facts.merge} of both orders; {counts}, {flips}"


def _format_agreement(agreement: ReferenceAgreement) -> str:
    """Correlations with the reference with their intervals, and the error where it is in the reference's unit.

    Of an order there are those of ranks alone, since places are no ratings.
    """
    parts = []
    for name in ("pearson", "spearman", "kendall"):
        value: float | None = getattr(agreement, name)
        if value is not None:
            lo, hi = agreement.intervals.get(name, (None, None))
            between = f" ({words})" if (words := interval_text(lo, hi, ".2f")) else ""
            parts.append(f"{name.capitalize()} {value:.3f}{between}")
    if agreement.mae is not None:
        parts.append(f"MAE {agreement.mae:.0f} Elo")
    elif agreement.mae_line is not None:
        wide = f"ratings spread {agreement.spread:.1f} times as wide as the reference's"
        parts.append(f"MAE after the best line {agreement.mae_line:.3g} points ({wide})")
    return f"{agreement.models} models, " + ", ".join(parts)


def _show_conformal(screen: Console, conformal: ConformalCoverage) -> None:
    """What intervals for people's ratings promise, beside what they held; and why one may not be believed."""
    if conformal.expected is not None and conformal.observed is not None:
        screen.print(
            f"conformal intervals: {conformal.observed:.0%} of the models that people rated are within, "
            f"{conformal.expected:.0%} expected",
            style="dim",
        )
    for warning in conformal.warnings:
        screen.print(f"note: {warning}")


def _show_covariates(screen: Console, effects: Sequence[CovariateEffect], level: float) -> None:
    """What each covariate is worth, in log odds a unit of it."""
    rows = [
        [
            plain(one.name),
            _signed(one.coefficient),
            _signed(one.se),
            interval_text(one.lo, one.hi, ".3f"),
            _number(one.p),
        ]
        for one in effects
    ]
    screen.print()
    tabulate(screen, ["covariate", "log odds", "se", _percent(level), "p"], rows)


def _errors(facts: Diagnostics) -> str:
    """How the errors of ratings were found."""
    if facts.errors != "cluster":
        return facts.errors
    if facts.degrees is None:
        return "none"
    clusters = max((fit["clusters"] for fit in facts.fits if "clusters" in fit), default=facts.degrees + 1)
    fitted = any((fit.get("lack_of_fit") or {}).get("widened", 1.0) > _WIDER for fit in facts.fits)
    return f"sandwich over {clusters:.0f} {facts.cluster}" + (", with lack of fit between pairs" if fitted else "")


def _interval(board: Board, row: ModelRow) -> str:
    """The interval of a rated model; a model without a rating has its one bound in the rating's column."""
    if row.elo is None:
        return ""
    return interval_text(row.lo, row.hi) or ("no bound" if board.diagnostics.bootstrap.without_estimate else "")


def _ranks(row: ModelRow) -> str:
    if row.rank_lo is None or row.rank_hi is None:
        return ""
    return f"{row.rank_lo}" if row.rank_lo == row.rank_hi else f"{row.rank_lo}-{row.rank_hi}"


def _figure(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _signed(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"


def show_method_notes(screen: Console, facts: Diagnostics) -> None:
    """The lines that a board's diagnostics ask for, as far as its method made them."""
    if facts.counts.own_left_out is not None:
        screen.print(f"left out: {facts.counts.own_left_out} verdicts of judges on themselves", style="dim")
    if weights := facts.counts.judge_weights:
        screen.print(f"weights: {few([f'{plain(name)} {weight:g}' for name, weight in weights.items()])}", style="dim")
    if (order := facts.finding(ContradictedVotes)) is not None:
        _show_order(screen, order)
    if (sign := facts.finding(AbilitySign)) is not None and sign.sign.startswith("undecided"):
        screen.print(f"note: the sign of the abilities is {plain(sign.sign)}")
    without = facts.finding(JudgesWithoutAbility)
    unknown = without.no_ability if without is not None else {}
    for reason in dict.fromkeys(unknown.values()):
        names = [plain(name) for name, why in unknown.items() if why == reason]
        screen.print(f"no finite ability: {few(names)}: {plain(reason)}")
    left_out = facts.finding(DroppedJudges)
    dropped = left_out.dropped if left_out is not None else ()
    for one in dropped[:_MAX_NAMED]:
        screen.print(f"left out: {plain(one.judge)}: {plain(one.reason)}")
    if len(dropped) > _MAX_NAMED:
        screen.print(f"and {len(dropped) - _MAX_NAMED} more judges left out: all of them in `venire rate --json`")


def _show_order(screen: Console, order: ContradictedVotes) -> None:
    text = "proved to be the least" if order.proved else "not known to be the least"
    count = order.optimal_orders
    orders = (
        "" if count is None else "; no other order costs as little" if count == 1 else f"; {count:,} orders cost it"
    )
    screen.print(
        f"cost {order.cost:.10g}, the votes that this order contradicts, lower bound {order.lower_bound:.10g}: "
        f"{text}{orders}",
        style="dim",
    )


def _show_reference(screen: Console, reference: ReferenceReading) -> None:
    """One line on the ratings of a file: how many were used, and which could not be."""
    shared = f"{reference.shared} of its {reference.ratings} models were judged"
    where = reference.file or ""
    if reference.people is not None:
        where = f"votes of {reference.people.name} ({reference.people.origin.value})"
    line = f"reference: {plain(where)}, {shared}"
    line += f" (not judged: {plain(few(reference.not_judged))})" if reference.not_judged else ""
    line += f"; no reference for {plain(few(reference.not_rated))}" if reference.not_rated else ""
    line += f"; in place of the store's {reference.replaces} ratings" if reference.replaces else ""
    screen.print(line, style="dim")


def show_peers(screen: Console, found: PeerEvaluation, verdicts: str | None) -> None:
    """What models that judge say of themselves, what the others say, and what their own verdicts move."""
    models, level = found.models[:_MAX_PEERS], f"{100 * found.level:g} %"
    positions = found.unit == "positions"
    places = 2 if positions else 3
    columns: list[tuple[str, list[str]]] = [
        ("model", [plain(row.model) for row in models]),
        ("by itself", [_fixed(row.self_evaluation, places) for row in models]),
        ("by others", [_fixed(row.peer_evaluation, places) for row in models]),
        ("gap", [_fixed(row.gap.value, places, "+") for row in models]),
        (level, [_between(row.gap, places) for row in models]),
        ("own odds", [_fixed(row.odds.value, 2, "+") for row in models]),
        (level, [_between(row.odds, 2) for row in models]),
        ("moved", [_fixed(row.moved, 2, "+") for row in models]),
    ]
    wide = screen.width >= _NARROW
    shown = [(head, cells) for head, cells in columns if any(cells) and (wide or not head.startswith("by"))]
    cells = list(zip(*(cells for _, cells in shown), strict=True))
    screen.print()
    tabulate(screen, [head for head, _ in shown], cells, title=f"Judges on themselves   verdicts: {verdicts}")
    gap = "positions (1 is the best)" if positions else "share of points lost"
    held = found.held
    beyond = f"that and its taste for {plain(', '.join(held))}" if held else "that, and for what looks like its own"
    screen.print(
        f"gap: by itself less by others, {gap}; a sharp judge puts a good model, itself too, further ahead. "
        f"own odds: log odds for itself beyond {beyond}; above 0 it favours itself. "
        "moved: places by verdicts of models on themselves, below 0 to the better",
        style="dim",
    )
    for reason in dict.fromkeys(row.odds.reason for row in found.models if row.odds.reason):
        names = [row.model for row in found.models if row.odds.reason == reason]
        screen.print(f"no own odds: {plain(few(names))}: {reason}", style="dim")
    for warning in found.warnings:
        screen.print(f"note: {plain(warning)}")


def _fixed(value: float | None, places: int, sign: str = "") -> str:
    if value is None:
        return ""
    return f"{value:{sign}.{places}f}" if round(value, places) else f"{0:.{places}f}"


def _between(found: SelfPeerGap | SelfPreferenceOdds, places: int) -> str:
    return interval_text(found.lo, found.hi, f".{places}f")


def _show_judges(screen: Console, board: Board) -> None:
    """A line a judge; on a narrow screen without intervals, errors and the share of first places."""
    wide, level = screen.width >= _NARROW, _percent(board.diagnostics.level)
    judges = sorted(board.judges, key=lambda row: -row.verdicts)[:_MAX_JUDGES]
    rows = sorted(judges, key=lambda row: row.judge)
    notes = list(dict.fromkeys(row.note for row in rows if row.note))
    marks: dict[str | None, str] = {note: "*" * count for count, note in enumerate(notes, start=1)}
    names = [row.judge for row in rows]
    columns: list[tuple[str, list[str]]] = [
        ("judge", [plain(name) for name in names]),
        *(
            (name.replace("_", " "), [_two_places(found, judge) for judge in names])
            for name, found in board.judge_figures.items()
        ),
        ("consistency", [_corrected(row.corrected, row.consistency) + marks.get(row.note, "") for row in rows]),
        (level, [interval_text(row.consistency_lo, row.consistency_hi, ".2f") if wide else "" for row in rows]),
        ("decisive", [_corrected(row.decisive_corrected, row.decisive) for row in rows]),
        (level, [interval_text(row.decisive_lo, row.decisive_hi, ".2f") if wide else "" for row in rows]),
        ("slope", ["" if row.discrimination is None else f"{row.discrimination:.2f}" for row in rows]),
        ("ties", [_share(row.ties) for row in rows]),
        ("flips", [_share(row.flips) for row in rows]),
        ("1st", [_share(row.first) if wide else "" for row in rows]),
        ("read", [_share(row.readable) for row in rows]),
        ("verdicts", [f"{row.verdicts}" for row in rows]),
    ]
    shown = [(head, cells) for head, cells in columns if any(cells)]
    if sum(2 + max(map(cell_len, (head, *cells))) for head, cells in shown) - 2 > screen.width:
        shown = [(head, cells) for head, cells in shown if not head.endswith(" se")]
    if rows:
        cells = list(zip(*(cells for _, cells in shown), strict=True))
        tabulate(screen, [head for head, _ in shown], cells, title=f"Judges   verdicts: {board.verdicts}")
    if len(board.judges) > _MAX_JUDGES:
        left = len(board.judges) - _MAX_JUDGES
        screen.print(f"and {left} judges with fewer verdicts: all of them in `venire rate --json`", style="dim")
    for note in notes:
        screen.print(f"{marks[note]} {note}", style="dim")
    if "ability" in board.judge_figures:
        screen.print(_ability_note(board), style="dim")
    if not wide and rows:
        screen.print("narrow terminal: intervals and 1st in `venire rate --json`", style="dim")


def _corrected(corrected: float | None, plain: float | None) -> str:
    """A score without what few instructions add, as its interval is about it, within the scale."""
    return _number(plain if corrected is None else min(max(corrected, 0.0), 1.0))


def show_people(screen: Console, facts: Diagnostics, people: PeopleVotes) -> None:
    """How judges and people agree on the battles that both saw, and people among themselves."""
    found = facts.people_agreement
    judges = [one for one in (found.judges if found is not None else ()) if one.votes][:_MAX_JUDGES]
    screen.print()
    if found is None:
        screen.print(_people_line(people), style="dim")
        return
    if not judges:
        screen.print(f"{_people_line(people)}: on none of the battles that were judged")
        return
    head = ["battles", "votes", "same winner", "95 %", "kappa", "95 %"]
    rows = [_beside(one.judge, one) for one in judges]
    _tabulate_known(screen, ["judge", *head], rows, f"Judges and people   votes: {people.origin.value}")
    if found.together is not None:
        each = [_beside(one.judge, one) for one in found.annotators] if len(found.annotators) > 2 else []
        rows = [*each, _beside("one beside another", found.together)]
        screen.print()
        head[1] = "vote pairs"
        title = f"People and one another   votes: {people.origin.value}"
        _tabulate_known(screen, ["annotator", *head], rows, title)
    screen.print(_people_line(people) + _alphas(found), style="dim")
    if (unbounded := facts.unbounded_text) is not None:
        screen.print(f"note: {unbounded}")


def _tabulate_known(screen: Console, head: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> None:
    """A table without the columns in which no cell is known."""
    head, *rows = zip(*(one for one in zip(head, *rows, strict=True) if any(one[1:])), strict=True)
    tabulate(screen, head, rows, title=title)


def _beside(name: str, one: JudgeAndPeople) -> list[str]:
    """A judge or an annotator beside people's votes: a row of cells."""
    return [
        plain(name),
        f"{one.battles}",
        f"{one.votes}",
        _share(one.agreement),
        interval_text(one.agreement_lo, one.agreement_hi, ".2f"),
        _number(one.kappa.value),
        interval_text(one.kappa.lo, one.kappa.hi, ".2f"),
    ]


def _people_line(people: PeopleVotes) -> str:
    count = people.annotators
    return f"{plain(people.name)}: {people.votes:,} votes of {count:,} annotator{'' if count == 1 else 's'}"


def _alphas(found: PeopleAgreement) -> str:
    """Krippendorff's alpha of judges and people together, and of people alone, where known."""
    known = [
        f"{name} {alpha.value:.2f}{_span_of(alpha)}"
        for alpha, name in ((found.alpha, "judges and people"), (found.among, "people alone"))
        if alpha.value is not None
    ]
    return f"; Krippendorff's alpha: {', '.join(known)}" if known else ""


def _span_of(coefficient: Coefficient) -> str:
    between = interval_text(coefficient.lo, coefficient.hi, ".2f")
    return f" ({between})" if between else ""


_SIGNALS = {"hard": "hard", "scaled_hard": "scaled", "smoothed": "smoothed", "soft": "soft"}
"""Ways to use a judge, as fields of `SignalAccuracy`, and heads of columns."""


def _show_left_out(screen: Console, by_people: SoftEloByPeople) -> None:
    """How far each way to use a judge is from people, every model left out in turn; all judges together come last."""
    lines = [(one.judge or "the judge", one.leave_one_out) for one in by_people.judges_by_people]
    if len(lines) > 1:
        lines.append(("all together", by_people.baselines))
    rows = [
        [
            plain(name),
            *(f"{getattr(found, one).mae:.0f}" for one in _SIGNALS),
            *(_number(one.spearman) for one in (found.hard, found.soft)),
        ]
        for name, found in lines
        if found is not None
    ]
    if not rows:
        return
    screen.print()
    head = ["judge", *(f"MAE {name}" for name in _SIGNALS.values()), "Spearman hard", "Spearman soft"]
    tabulate(screen, head, rows, title="Judges' ratings beside people's, each model left out in turn")
    screen.print(
        "MAE in Elo points; hard: verdicts; scaled: these times one constant; smoothed: wins count as the best of nine "
        "shares; soft: probabilities from scores, sigma(beta score)",
        style="dim",
    )


def _show_predictions(screen: Console, board: Board) -> None:
    """How well each score of the judges predicts their own Elo."""
    head = [
        "Elo of judges from",
        "judges",
        "Pearson",
        "95 %",
        "Spearman",
        "Kendall",
        "MAE left out",
        "over sd",
        "limit",
    ]
    rows = []
    for one in board.diagnostics.elo_from_consistency:
        for name, line in ((one.score, one.all), (f"{one.score}, {one.cluster}", one.top)):
            if line.pearson is None:
                continue
            left, share = line.mae_left_out, line.reliability
            over = None if left is None or not line.sd else left / line.sd
            limit = None if share is None else max(share, 0.0) ** 0.5
            lo, hi = line.intervals.get("pearson", (None, None))
            between = interval_text(lo, hi, ".2f")
            figures = [_number(line.pearson), between, _number(line.spearman), _number(line.kendall)]
            error = "" if left is None else f"{left:.0f}"
            rows.append([name, f"{len(line.judges)}", *figures, error, _number(over), _number(limit)])
    if rows:
        screen.print()
        tabulate(screen, head, rows, title=f"Judges by their own Elo   verdicts: {board.verdicts}")


def _percent(level: float) -> str:
    """A level as the head of a column of intervals."""
    return f"{100 * level:g} %"


def _number(value: float | None) -> str:
    """A figure to three places; nothing where it is not known."""
    return "" if value is None else f"{value:.3f}"


def _ability_note(board: Board) -> str:
    """What the figure is, which no head of a column can say."""
    text = "ability: how sharply a judge follows the order that all imply together; mean 1, below 0: against it"
    left_out = board.diagnostics.finding(DroppedJudges)
    if left_out is not None and any(isfinite(one.ability) for one in left_out.dropped):
        text += "; of judges left out: on the scale of the first fit"
    return text


def _two_places(found: Mapping[str, float | None], judge: str) -> str:
    value = found.get(judge)
    return "" if value is None else f"{value:.2f}"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"
