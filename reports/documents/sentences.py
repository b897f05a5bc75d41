"""Sentences of a report: the answer, how it was done, why methods differ, and what each figure means.

Names of models, judges and instructions are parts of these texts as they are: whoever renders them escapes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from venire.arena.wording import few, interval_text, money
from venire.reports.wording import counted

ORIGINS: Mapping[str, str] = {
    "real": "the verdicts are real: models were asked as judges",
    "simulated": "the verdicts are simulated: they rehearse a campaign and say nothing about real models",
    "recorded": "the verdicts were recorded elsewhere and are taken as they were written",
    "people": "the verdicts were given by people",
}
"""What the origin of verdicts means to a reader."""

WHY: Mapping[str, str] = {
    "bradley-terry": "takes each battle as it was asked, so that pairs asked often weigh more",
    "even-pairs": "weighs every pair alike, whatever was asked more often",
    "m-elo": "is Bradley-Terry under its other name and must agree with it",
    "am-elo": "gives each judge an ability, so that consistent judges weigh more",
    "elo": "updates ratings battle by battle and shrinks large gaps",
    "win-rate": "counts wins against whoever was met, so that weak opponents help",
    "win-rate-balanced": "counts every opponent alike, and ignores how strong it is",
    "kemeny": "looks for the order that contradicts the fewest votes, and ignores how clear each is",
    "borda": "counts votes, and ignores who was met",
    "soft-elo": "takes calibrated probabilities instead of verdicts, so that doubtful verdicts weigh less",
    "human-elo": "takes people's votes and no judge's",
}
"""What sets each method apart, as the reason why its order may be another."""

DEFINITIONS: Mapping[str, str] = {
    "Elo": "A rating on the scale where 100 points more win 64% of battles, 200 points 76% and 400 points 91%, ties "
    "as halves. Only differences mean anything; the mean of the models rated here is fixed.",
    "interval": "Where the rating lies at the stated level, given these judges; by instruction where instructions are "
    "known, since verdicts on one instruction share their noise. It says nothing of what other judges would find.",
    "rank": "The range of places that the intervals of all differences allow, at the same level.",
    "not distinguished": "Models whose difference from the first of their set is within what chance makes.",
    "judgment": "What one judge says of one battle: its verdicts in both orders together.",
    "flip": "A battle judged in both orders whose two verdicts named opposite winners.",
    "seen and expected": "The share of verdicts a model won against another, ties as halves; and the share that their "
    "ratings predict.",
    "reliability": "Pairs of models put together by the share of wins that the ratings predict for the better one, "
    "beside the share that the judge gave it. A judge who separates models as all judges together has equal columns; "
    "a share closer to 50% is a judge who separates them less.",
    "first place": "Share of decided verdicts for the completion shown first; 50% is no taste for a place.",
    "slope": "How much of a rating difference a judge sees; 1 is as much as all judges together.",
    "same winner": "Of the votes of people where both sides decided, the share that names the same winner; "
    "50% is what drawing lots gives.",
    "kappa": "Cohen's kappa: agreement on win, tie and loss beyond chance; 1 is full agreement, 0 is chance. A judge "
    "whose kappa with people is near that of people with one another agrees with them as they do.",
    "alpha": "Krippendorff's alpha: the same for any number of people, and where some of their votes are missing.",
    "worry, unsure, fine": "A check of the data beyond its threshold and beyond chance; beyond its threshold, though "
    "harmless; within it.",
    "Kendall's tau": "Agreement of two orders: 1 the same, 0 unrelated, -1 reversed.",
}
"""What the figures of the report mean."""


MEANINGS: Mapping[str, str] = {
    "consistency": "How far the judge's win shares are from chance, from 0 (a coin) to 1 (always the same side), "
    "without the bias from few instructions.",
    "decisive": "Consistency on the matchups that have a clear winner.",
    "discrimination": "How much of a rating difference between models this judge sees; 1 is as much as all "
    "judges together.",
    "ability": "The judge's weight in am-ELO, of mean 1.",
    "ties": "Share of its verdicts that are ties.",
    "flips": "Share of battles judged in both orders whose two verdicts named opposite winners.",
    "first": "Share of decided verdicts for the completion shown first; 50% is no taste for a place.",
    "readable": "Share of replies in which a verdict could be read.",
    "own_family": "Verdicts on models of the judge's own family.",
}
"""What each figure of a judge means, by its key in the board's document (docs/judges.md)."""


def elo_with_interval(row: Mapping[str, Any], level: float) -> str:
    """The rating of a board's row with its interval in words; a missing end is said to be missing.

    >>> elo_with_interval({"elo": 1100.4, "lo": 1050.0, "hi": None}, 0.95)
    '1100 Elo points (95% interval: 1050 or more)'
    """
    elo = row.get("elo")
    text = "no Elo rating" if elo is None else f"{elo:.0f} Elo points"
    bounds = interval_text(row.get("lo"), row.get("hi"))
    return text if not bounds else f"{text} ({100 * level:g}% interval: {bounds})"


def cost_text(cost: Mapping[str, Any] | None, origin: str | None) -> str:
    """What the verdicts cost, as the end of a sentence."""
    if cost is None:
        return "what they cost is not known"
    if cost["nano"] == 0:
        free = "of simulated judges, which cost nothing" if origin == "simulated" else "without any cost on record"
        return f"for {counted(cost['calls'], 'call')} {free}"
    reserved = cost["reserved_nano"]
    beside = f", of which {money(reserved)} is reserved for calls without a known cost" if reserved else ""
    return f"for {money(cost['nano'])} in {counted(cost['calls'], 'call')}{beside}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a report says first: `who` leads and how sure that is, by whose verdicts (`basis`), and their `origin`.

    `tied` are the models that are not distinguished from the `leader`; without a leader `reason` says why.
    """

    leader: str | None
    tied: list[str]
    who: str
    basis: str
    origin: str
    reason: str = ""

    @property
    def rest(self) -> str:
        """All but who leads, without a full stop."""
        return f"{self.basis}{f': {self.reason}' if self.reason else ''}; {self.origin}"

    @property
    def sentence(self) -> str:
        """All of it."""
        return f"{self.who}, {self.rest}."

    def to_json(self) -> dict[str, Any]:
        """As the document of a report has it."""
        names = ("leader", "tied", "basis", "origin", "sentence")
        return {name: getattr(self, name) for name in names}


def answer(document: Mapping[str, Any], *, so_far: bool = False) -> Answer:
    """Who leads, who is not distinguished from it, by which judges, on how much, at what cost.

    `document` has the `board`, the `counts` of its verdicts and what they `cost` (docs/pages.md#report); `so_far` says
    that more verdicts are to come.
    """
    board, counts = document["board"], document["counts"]
    rows, level = board["models"], board["diagnostics"].get("level") or 0.95
    names = [short(one) for one in counts["judges"]]
    judges = f"{counted(len(names), 'judge')} ({few(names)})"
    instructions = counted(counts["instructions"], "instruction") if counts["instructions"] else "unnamed instructions"
    basis = (
        f"by {judges} on {instructions}, {counted(counts['verdicts'], 'verdict')}, "
        f"{cost_text(document['cost'], board['verdicts'])}"
    )
    origin = ORIGINS.get(board["verdicts"] or "", "the origin of the verdicts is not known")
    now = " so far" if so_far else ""
    reason = board["diagnostics"].get("reason")
    if not rows or (reason and rows[0].get("accuracy") is None):
        if counts["verdicts"] and not counts["read"]:
            return Answer(None, [], f"Nobody leads{now}: no verdict could be read", basis, origin)
        reason = reason or "there is no judgment that could be read"
        return Answer(None, [], f"No model can be rated{now}", basis, origin, reason)
    first = {**rows[0], "model": short(rows[0]["model"])}
    beside = [one for one in rows[1:] if one.get("group") == first.get("group")]
    tied = [one["model"] for one in beside if one.get("tier") is not None and one["tier"] == first.get("tier")]
    who = _lead_text(board, first, level, now)
    if first.get("elo") is not None or first.get("position") is not None:
        who += _tie_text(first, tied, len(beside) + 1)
    return Answer(rows[0]["model"], tied, who, basis, origin)


def _lead_text(board: Mapping[str, Any], first: Mapping[str, Any], level: float, now: str) -> str:
    """Who is first, and with what."""
    if first.get("elo") is None and first.get("accuracy") is not None:
        bounds = interval_text(first.get("accuracy_lo"), first.get("accuracy_hi"), ".0%")
        beside = f" ({100 * level:g}% interval: {bounds})" if bounds else ""
        return f"{first['model']} is right most often{now}: {first['accuracy']:.0%} of its answers{beside}"
    if first.get("elo") is None and first.get("position") is None:
        return _without_rating(board, first, level, now)
    lead = f"{first['model']} leads{now} with {elo_with_interval(first, level)}"
    if first.get("elo") is None:
        lead = f"{first['model']} is first{now} in the order of {board['method']}, which gives no distances"
    groups = len(board["diagnostics"].get("groups") or ())
    if groups > 1:
        lead += f" in the first of {groups} groups of models that were rated apart, since no common scale joins them"
    return lead


def _without_rating(board: Mapping[str, Any], first: Mapping[str, Any], level: float, now: str) -> str:
    """What is known of a model that is first without a rating, and who leads those that have one."""
    names = {short(name): why for name, why in (board["diagnostics"].get("no_estimate") or {}).items()}
    why = names.get(first["model"], "no finite rating exists")
    bound = first.get("lo")
    known = "" if bound is None else f" (over {bound:.0f} Elo points by a one-sided {100 * level:g}% bound)"
    text = f"{first['model']} is first{now} and {why}{known}"
    rated = next((one for one in board["models"] if one.get("elo") is not None), None)
    if rated is not None:
        text += f"; of the models with a rating {short(rated['model'])} is first with {elo_with_interval(rated, level)}"
    return text


def _tie_text(first: Mapping[str, Any], tied: Sequence[str], models: int) -> str:
    if first.get("tier") is None:
        return "; these verdicts cannot show how certain that is"
    if tied:
        return f"; {few([short(one) for one in tied], 8)} cannot be distinguished from it"
    return f", ahead of every other of {models} models beyond chance" if models > 1 else ""


def short(name: str, most: int = 80) -> str:
    """A name on one line, short enough for a sentence.

    >>> short("a\\nb"), short("x" * 100, 4)
    ('a b', 'xxx…')
    """
    line = " ".join(name[: 4 * most].split())
    return line if len(line) <= most else line[: most - 1] + "…"
