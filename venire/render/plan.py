"""Terminal output of a plan: its calls and their reasons, its cost, and the expected widths of its intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict

import numpy as np
from rich.console import Console

from venire.arena.campaigns import CampaignSettings, PhaseSettings
from venire.arena.shapes import Shape
from venire.arena.wording import few, interval_text, money, plain
from venire.forecasts.intervals import WANTED_HALF_WIDTHS, PlanIntervals, finite_or_none
from venire.forecasts.plan import DesignLimit, PolicyReason, budget_cuts, plan_warnings, within_budgets
from venire.judges import PROTOCOLS, REASONS_TOKENS
from venire.judges.providers.price_table import price_table
from venire.orchestrator.costs.call_cost import LEVEL
from venire.orchestrator.costs.forecast import Forecast, JudgeForecast, LongForecast
from venire.orchestrator.designs import PlannedCampaign, Replayed
from venire.orchestrator.planning.first_round import pairs_of
from venire.orchestrator.planning.respondents import generation
from venire.orchestrator.planning.sharding import Shard
from venire.orchestrator.run.takeover import Takeover
from venire.ratings.design.interval_forecast import DEFAULT_SPREAD
from venire.render.screen import tabulate
from venire.render.status import format_spending, show_recovered
from venire.reports.wording import counted
from venire.session import Session
from venire.storage.plans.rounds import stop_rules
from venire.storage.read import frames
from venire.storage.store.recovery import recovered
from venire.wording import duration

_MAX_JUDGES = 8
_LONG_INPUT_POLICY = {
    "error": "too_long without a call",
    "truncate-both": "their completions are cut at the end",
    "middle": "the middle of their completions is cut out",
}
_FAR_OFF = 0.1
_UNITS = (
    "battle: a matchup on an instruction; trial: a battle in one order by one judge, with one verdict; judgment: the "
    "verdicts of a battle's orders"
)


def show_plan(screen: Console, session: Session, forecast: Forecast) -> None:
    """What is planned, what is left of it, and what that will cost."""
    planned, chosen, progress = session.planned, session.planned.design, forecast.progress
    settings = session.campaign.plan.phases[0]
    screen.print(f"{plain(session.campaign.name)}: {_made_of(session)} = {planned.trials:,} trials")
    if session.campaign.pair_judges:
        screen.print(_UNITS, style="dim")
    if session.takeover is not None:
        _show_shard(screen, session, session.takeover, progress.planned)
    possible = pairs_of(chosen.models)
    wanted = min(settings.matchups or 0, possible) if session.campaign.pair_judges else 0
    if session.campaign.pair_judges and (settings.matchups or 0) > possible:
        screen.print(f"{settings.matchups} matchups were asked for: {len(chosen.models)} models have {possible} pairs")
    if len(chosen.matchups) < wanted:
        screen.print(f"{settings.matchups} matchups were asked for: coverage = {settings.coverage} allows no more")
    if session.rounds is not None:
        _show_phases(screen, session.campaign, planned)
    if planned.equal_texts:
        screen.print(f"left out: {planned.equal_texts} battles whose two texts are equal")
    _show_recorded(screen, chosen.recorded)
    _show_unwritten(screen, session)
    if chosen.left_out:
        names = plain(few([one.model for one in chosen.left_out], 8))
        screen.print(f"left out: {len(chosen.left_out)} models with {chosen.left_out[0].reason}: {names}")
    if chosen.matchups and chosen.matchups[0].gap is not None:
        gaps = [matchup.gap for matchup in chosen.matchups if matchup.gap is not None]
        screen.print(f"Elo gaps: {max(gaps):.0f} to {min(gaps):.0f} points")
    for sentence in (*plan_warnings(session), *budget_cuts(session, forecast)):
        screen.print(plain(sentence), style="yellow")
    show_recovered(screen, recovered(session.store))
    if session.tried_again:
        again = "1 failed step is" if session.tried_again == 1 else f"{session.tried_again:,} failed steps are"
        screen.print(f"{again} tried again: the endpoint, key or model that was asked is another one now")
    if progress.settled or progress.failed:
        screen.print(
            f"on record: {progress.settled:,} settled, {progress.failed:,} failed, {progress.missing:,} missing; "
            f"{format_spending(asdict(forecast.spending))}"
        )
    if not progress.missing:
        return
    _show_forecast(screen, forecast, session)
    campaign = session.campaign
    _show_waves(screen, campaign)
    budget = [campaign.budget.texts() or "none"]
    for budgets in (campaign.judge_budgets, campaign.model_budgets):
        budget += [f"{plain(name)}: {limits.texts() or 'none'}" for name, limits in budgets.items()]
    _show_price_source(screen, campaign)
    screen.print(f"budget: {'; '.join(budget)}\n", style="dim")
    _show_long_forecast(screen, session.forecast_long())


def _show_shard(screen: Console, session: Session, has: Takeover, trials: int) -> None:
    """Which part of a divided campaign is asked, with whose budgets and limits."""
    shard, whole = has.shard, session.whole.store
    and_taken = "".join(f" and what shard {number} has left" for number in sorted((*has.taken, *has.absent)))
    screen.print(
        f"shard {shard.number} of {shard.of}{and_taken}: {trials:,} of these trials, into "
        f"{plain(session.campaign.store.name)}, with {has.part} of budgets and limits"
        + (f"; of these budgets {money(has.spent)} are spent by those that were taken over" if has.taken else "")
    )
    for number in has.absent:
        screen.print(
            f"there is no {plain(shard.store(whole, number).name)} beside: what shard {number} spent and settled is "
            "not known, so all of its trials are asked, and its part of budgets and limits stays its own. Put its "
            f"store there to have both; where it was never begun, run it:{Shard(number, shard.of).options()}",
            style="yellow",
        )


def _show_price_source(screen: Console, campaign: CampaignSettings) -> None:
    """Whose prices are not the campaign file's."""
    looked_up = [one.name for one in campaign.judges if one.price is None and not one.free and one.recorded is None]
    if looked_up:
        names = plain(few(looked_up, 8))
        screen.print(f"prices of {names}: {price_table()}; compare with your provider's page", style="dim")


def _show_waves(screen: Console, campaign: CampaignSettings) -> None:
    """Which judges are asked by batches: in how many waves, at which price, and how long that may take."""
    for judge in campaign.judges:
        if (batch := judge.lane.batch) is None:
            continue
        waves = len(PROTOCOLS[judge.protocol].expects)
        many = "1 wave" if waves == 1 else f"{waves} waves, one after another"
        more = "; a repair or a retry takes one more" if "repair" in judge.options else ""
        price = "the price given" if batch.price is not None else "half the live price"
        if batch.form == "file":
            price = "the live price"
        how = "answered by your server" if batch.form == "file" else "answered within a day, often sooner"
        screen.print(
            f"{plain(judge.name)} is asked by batches: {many}{more}; each is {how}; at {price}, which is used above",
            style="dim",
        )


def _made_of(session: Session) -> str:
    """What is shown how often, for each kind of protocol that the campaign's judges have."""
    chosen, settings = session.planned.design, session.campaign.plan
    judges = Counter(
        (one.shape, one.repeats or settings.repeats) for one in session.campaign.judges if one.recorded is None
    )
    many, models = f"{len(chosen.instructions):,} instructions", f"{len(chosen.models)} models"
    edits = f", and again with each answer edited ({plain(few(settings.variants))})" if settings.variants else ""
    pairs = f"{models}, {_format_pairs(session)} x {1 if settings.orders == 'random' else 2} orders{edits}"
    asked = [
        f"{pairs if shape.pairwise else _format_sets(shape, len(chosen.models), many)} x {number} {session.role}"
        f"{'s' if number > 1 else ''}{f' x {repeats} repeats' if repeats > 1 else ''}"
        for (shape, repeats), number in judges.items()
    ]
    if chosen.recorded:
        there, who = sum(one.trials for one in chosen.recorded), len(chosen.recorded)
        asked.append(f"{there:,} judgments on record of {who} judge{'s' if who > 1 else ''}, {models}")
    return " + ".join(asked)


def _format_sets(shape: Shape, models: int, many: str) -> str:
    """What is shown of so many instructions where no battles are chosen."""
    if not shape.size(models):
        return f"{many} to answer"
    sets = f"{len(shape.sets(range(models)))} sets of {shape.answers} of " if (shape.answers or 0) > 1 else ""
    lists = "lists of " if shape.answers is None else ""
    return f"{sets}{lists}{models} models x {many}{' to edit' if shape.writes else ''}"


def _format_pairs(session: Session) -> str:
    """Matchups on all instructions, or how many battles of which rounds."""
    planned, policy = session.planned, session.campaign.plan.phases[0].policy
    if len(planned.rounds) == 1 and planned.design.battles is None:
        return f"{len(planned.design.matchups)} matchups ({policy}) x {len(planned.design.instructions):,} instructions"
    rounds = f"{len(planned.rounds)} rounds" if len(planned.rounds) > 1 else "the first round"
    battles = counted(sum(one.design.size for one in planned.rounds), "battle")
    return f"{battles} of {rounds} ({planned.rounds[-1].policy})"


def _show_recorded(screen: Console, found: Sequence[Replayed]) -> None:
    """What is not planned of judgments on record, and what the plan misses there, by judge; of many judges in all."""
    if len(found) > _MAX_JUDGES:
        rows, trials = sum(one.rows for one in found), sum(one.trials for one in found)
        missing, one_order = sum(one.missing for one in found), sum(one.one_order for one in found)
        found = [Replayed(f"{len(found)} judges", rows, trials, missing, one_order)]
    for one in found:
        if facts := "; ".join(_recorded_facts(one)):
            screen.print(f"on record of {plain(one.judge)}: {facts}")


def _show_unwritten(screen: Console, session: Session) -> None:
    """What contestants have yet to write: what one of them has not answered cannot be judged, and is not planned."""
    if session.campaign.writes or not session.campaign.contestants:
        return
    name = generation(session.campaign).name
    for one in frames.campaigns(session.store):
        left = frames.progress(session.store, one.id)
        if one.name == name and left.settled < left.planned:
            screen.print(
                f"contestants have {left.planned - left.settled:,} of {left.planned:,} answers to write: instructions "
                "that one of them has not answered are left out; after `venire generate` --amend takes them in"
            )


def _recorded_facts(one: Replayed) -> Iterator[str]:
    if one.rows > one.trials:
        other = one.rows - one.trials
        yield f"{other:,} of {one.rows:,} judgments are of other completions, matchups or repeats: left out"
    if one.missing:
        yield f"{one.missing:,} trials that would be planned are not there: left out"
    if one.one_order:
        yield f"{one.one_order:,} {'battle was' if one.one_order == 1 else 'battles were'} judged in one order only"


def _show_long_forecast(screen: Console, found: Iterable[LongForecast]) -> None:
    """A line for each judge with trials that will not fit; nothing for the others, nor where no context is known."""
    for one in found:
        if one.too_long:
            screen.print(
                f"too long for {plain(one.judge)}: about {_trials(one.too_long)} will not fit {one.context:,} tokens: "
                f"{_LONG_INPUT_POLICY[one.policy]}"
            )


def _trials(count: int) -> str:
    return "1 trial" if count == 1 else f"{count:,} trials"


def _show_phases(screen: Console, campaign: CampaignSettings, planned: PlannedCampaign) -> None:
    """What is planned after the rounds that stand: in which phases, in rounds of how many, and until what."""
    for phase in campaign.plan.phases:
        mine = [one for one in planned.rounds if one.phase == phase.name]
        size = counted(sum(one.design.size for one in mine), "battle")
        if campaign.plan.is_planned_at_once(phase):
            drawn = planned.design
            most = counted(pairs_of(drawn.models) * len(drawn.instructions), "battle")
            there = f"; planned: {size}{', all that there are' if size == most else ''}"
            rounds = "chosen at once"
        else:
            there, rounds = f"; planned so far: {counted(len(mine), 'round')}, {size}", f"in rounds of {phase.round:,}"
        screen.print(plain(f"phase {phase.name}: {_of_phase(phase, rounds)}{there if mine else ''}"))
    if rules := stop_rules(campaign.plan.stop):
        screen.print(f"stops when {' or '.join(rules)}, or at the end of the plan or of the budget")


def _of_phase(phase: PhaseSettings, rounds: str) -> str:
    if phase.crosses:
        return f"{phase.policy}, every matchup on all instructions"
    many = "battles until a rule or the budget ends it" if phase.battles is None else f"{phase.battles:,} battles"
    about = {"mean": "", "boundary": f" about the best {phase.top}", "place": f" about {phase.place}"}[phase.purpose]
    return f"{phase.policy}{about}, {many}, {rounds}"


def _show_forecast(screen: Console, forecast: Forecast, session: Session) -> None:
    """Calls, tokens, money and time by judge, with what budgets leave of it, and what these figures are learnt from."""
    without, forecast = forecast.whole.most, within_budgets(session, forecast)
    head = (session.role, "trials", "calls", "tokens in", "tokens out", "low", "expected", "high", "at most", "time")
    cells = [(*_cells(row), _time(row)) for row in forecast.judges]
    if len(cells) > 1:
        cells.append((*_cells(forecast.whole), ""))
    tabulate(screen, head, cells, unless_all=money(0))
    if forecast.whole.most < without:
        screen.print(f"at most: what the budget leaves; without it {money(without)}", style="dim")
    for sentence in _notes(forecast.judges):
        screen.print(sentence, style="dim")


def _calls_a_trial(rows: Sequence[JudgeForecast]) -> str:
    """One figure where all respondents have the same, else one for each of a few."""
    each = {plain(row.judge): f"{row.calls / row.trials:.3g}" for row in rows if row.trials}
    if len({*each.values()}) == 1:
        return next(iter(each.values()))
    return few([f"{number} of {name}" for name, number in each.items()], 4) or "none"


def _cells(row: JudgeForecast) -> tuple[str, ...]:
    counts = (row.trials, row.calls, row.input_tokens, row.output_tokens)
    prices = (row.low, row.expected, row.high, row.most)
    return (plain(row.judge), *(f"{count:,}" for count in counts), *map(money, prices))


def _time(row: JudgeForecast) -> str:
    """The longer of what limits allow and what answers take."""
    known = [one for one in (row.seconds, row.waiting) if one is not None]
    return duration(max(known)) if known else "no limit"


def _notes(rows: Sequence[JudgeForecast]) -> list[str]:
    learnt = [row for row in rows if row.learnt and row.trials]
    notes = [f"calls a trial: {_calls_a_trial(rows)}{'' if any(row.most for row in rows) else '; nothing costs money'}"]
    if len(learnt) < len([row for row in rows if row.trials]):
        whose = "" if not learnt else " of the others"
        notes.append(
            f"tokens{whose} are guessed (4 characters each, 3 to 5 for low and high; {REASONS_TOKENS} of reasons, "
            "70 to 411), "
            "hidden reasoning left out; `venire plan --pilot 40` asks 40 trials of each judge first and learns"
        )
    if learnt:
        trials = ", ".join(f"{row.learnt:,} of {plain(row.judge)}" for row in learnt[:4])
        more = f" and {len(learnt) - 4} more judges" if len(learnt) > 4 else ""
        notes.append(f"learnt from settled trials on record: {trials}{more}; low to high holds {LEVEL:.0%} of the time")
    for row in learnt:
        if row.reasoning_tokens:
            notes.append(f"{plain(row.judge)}: {row.reasoning_tokens:,} of its tokens out are hidden reasoning")
        if row.paid_over_price is not None and abs(row.paid_over_price - 1.0) > _FAR_OFF:
            notes.append(
                f"{plain(row.judge)}: calls on record cost {row.paid_over_price:.2f} times what their tokens cost at "
                "the price in force, by which this is forecast"
            )
    return notes


def show_intervals(screen: Console, found: PlanIntervals | str | None) -> None:
    """A table of money and widths, what other widths would cost, and what this rests on."""
    if found is None:
        return
    if isinstance(found, str):
        screen.print(plain(found))
        return
    half = found.widths.half_width()
    low, high = found.within.band()
    screen.print(
        f"expected half width of the {found.widths.level:.0%} intervals ({found.estimand}), in Elo points on the "
        "judges' own scale: "
        + (
            f"{np.median(half):.0f} in the middle of {len(half)} models ({low:.0f} to {high:.0f} in four campaigns of "
            f"five), {half.min():.0f} to {half.max():.0f} from model to model"
            if np.isfinite(half).all()
            else "without end, on a single instruction"
        )
    )
    head = ("plan", "battles", *(("money",) if found.nano(1.0) else ()), "half width", "in 4 of 5")
    tabulate(screen, head, [_line(found, name, times) for name, times in found.sizes()])
    screen.print(_priced(found))
    if found.widths.instructions < 20:
        screen.print(
            f"only {counted(found.widths.instructions, 'instruction')}: the intervals themselves are uncertain with "
            "fewer than 20, and so are these widths"
        )
    if found.remaining.until is not None:
        remaining = round(float(found.remaining.weight.sum()))
        many = f"{remaining:,} of {found.battles:,}" if remaining <= found.battles else f"{remaining:,}"
        screen.print(
            f"{many} battles are still to be chosen, here by what is believed now "
            f"({found.remaining.until} says how many)"
        )
    if found.remaining.open:
        screen.print("how many battles follow is not known (no number, no budget): this is of those that are planned")
    for sentence in _rests_on(found):
        screen.print(sentence, style="dim")
    screen.print()


def _line(found: PlanIntervals, name: str, times: float) -> tuple[str, ...]:
    price = (money(found.nano(times)),) if found.nano(1.0) else ()
    half, band = finite_or_none(found.within.median(times)), interval_text(*found.within.band(times))
    return (name, f"{found.battles * times:,.0f}", *price, "no end" if half is None else f"{half:.0f}", band)


def _priced(found: PlanIntervals) -> str:
    """What each of some widths takes."""
    told, not_here = [], []
    for half in WANTED_HALF_WIDTHS:
        times = found.needed(half)
        if times is None:
            not_here.append(f"{half:.0f}")
        else:
            price = money(found.nano(times)) if found.nano(1.0) else f"{found.battles * times:,.0f} battles"
            told.append(f"{half:.0f} takes {price}")
    if not_here:
        few = counted(found.widths.instructions, "instruction")
        told.append(f"{', '.join(not_here)} cannot be had on {few}: it takes more of them")
    more = "more instructions" if found.widths.grows else "more battles on the same instructions"
    return f"half widths in the middle: {'; '.join(told)} (a larger plan: {more})"


def _rests_on(found: PlanIntervals) -> list[str]:
    seen, effect = found.belief, found.effect
    if seen.source == "verdicts":
        ratings = f"ratings by {seen.judgments:,} judgments so far"
    elif seen.source == "reference":
        whose = f"fitted to {seen.judgments:,} judgments" if seen.judgments else "as usual judges see them"
        ratings = f"reference ratings x {seen.slope:.1f}, {whose}"
    else:
        ratings = f"nothing is known of the models: ratings with a spread of {DEFAULT_SPREAD:g} logit"
    notes = [
        f"believed: {ratings}; judgments scatter {effect.scatter:.2f} of p (1 - p), correlations: judges "
        f"{effect.judges:.2f}, completions {effect.completions:.2f}, repeats {effect.repeats:.2f}"
    ]
    if not effect.judgments:
        return [*notes, "the scatter and correlations are usual ones: --pilot 40 measures them and narrows the range"]
    assert effect.ties is not None
    assert effect.flips is not None
    measured = f"measured on {effect.judgments:,} judgments: {effect.ties:.0%} ties, {effect.flips:.0%} flips"
    return [*notes, measured]


def show_reasons(screen: Console, rows: Sequence[PolicyReason], limit: DesignLimit | str | None) -> None:
    """A table of the first ones chosen, and the limit beside it."""
    if not rows:
        screen.print("nothing was chosen: no judge of this plan is shown pairs")
        return
    crossed = all(one.instruction is None for one in rows)
    optional = {
        "instruction": not crossed,
        "gain": any(one.gain is not None for one in rows),
        "gap": any(one.gap is not None for one in rows),
        "se": any(one.se_a is not None for one in rows),
        "price": any(one.nano for one in rows),
    }
    head = ("matchup", "round", "phase", "why", *(name for name, there in optional.items() if there))
    cells = []
    for one in rows:
        optional_cells = {
            "instruction": plain(one.instruction or "all"),
            "gain": "" if one.gain is None else f"{one.gain:.4g}",
            "gap": "" if one.gap is None else f"{one.gap:.0f}",
            "se": " / ".join("?" if se is None else f"{se:.0f}" for se in (one.se_a, one.se_b)),
            "price": "" if one.nano is None else money(one.nano),
        }
        place = f"{one.round - rows[0].round + 1}"  # as everywhere a round is shown, also of a plan that was made anew
        first = (f"{plain(one.model_a)} - {plain(one.model_b)}", place, plain(one.phase), plain(one.why))
        cells.append((*first, *(optional_cells[name] for name, there in optional.items() if there)))
    tabulate(screen, head, cells, title=f"the first {len(rows)} {'matchups' if crossed else 'battles'} chosen")
    for sentence in _limit_sentences(limit):
        screen.print(sentence)
    screen.print()


def _limit_sentences(limit: DesignLimit | str | None) -> Iterator[str]:
    if isinstance(limit, str):
        yield plain(limit)
    elif limit is not None:
        yield (
            f"for the purpose {limit.purpose!r} the best design of pairs would do with {limit.efficiency:.0%} of these "
            "battles, at the ratings believed"
        )
        of = "about the mean" if limit.across is None else f"of the differences between {limit.across}"
        if limit.error is not None:
            yield (
                f"expected standard error {of} (root mean square): {limit.error:.1f} Elo points; "
                f"the best design's limit {limit.least:.1f}"
            )
        else:
            yield "no expected error beside it: it takes the other models' ratings for known, as no width above does"
