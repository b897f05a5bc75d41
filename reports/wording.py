"""Lists and numbers in sentences."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from venire.arena.wording import few, interval_text

if TYPE_CHECKING:
    from venire.ratings.judges.order_agreement import OrderAgreement


def counted(number: int, word: str) -> str:
    """A number with its word in the singular or the plural."""
    return f"{number:,} {word}" + ("" if number == 1 else "s")


def estimand_text(unit: str, respondents: str, number: int, *, crossed: bool = False, pairs: str | None = None) -> str:
    """What intervals are about, by the `unit` that errors are over and whether `number` of respondents cross it.

    `pairs` are those of models where it makes a difference: "all" or "given". Who is clustered alone varies alone.

    >>> estimand_text("instructions", "judges", 3)
    'other instructions; these judges only'
    >>> estimand_text("instructions", "people", 20, crossed=True, pairs="given")
    'other instructions and other people like these; these pairs only'
    """
    if unit == respondents:
        who = f"other {respondents} like these; these instructions only"
    elif crossed:
        who = f"other {unit} and other {respondents} like these"
    else:
        one = {"judges": "this judge", "people": "this person"}[respondents]
        who = f"other {unit}; {f'these {respondents}' if number != 1 else one} only"
    return who + {None: "", "all": "; all pairs, asked or not", "given": "; these pairs only"}[pairs]


def alike_text(models: Sequence[str]) -> str | None:
    """A note on names of models that may be one model's, or None where there are none.

    >>> alike_text(["gpt-4.1", "oak", "GPT-4.1"])
    'names that differ in letter case or Unicode form only are rated as models of their own: GPT-4.1 and gpt-4.1'
    """
    from venire.ratings.data.models import alike_names  # a run shows words before it rates, and ratings load SciPy

    groups = alike_names(models)
    if not groups:
        return None
    # Composed and combining accents are drawn alike: such names are shown with what they are made of.
    texts = [" and ".join(_spelt_out(name, group) for name in group) for group in groups]
    return f"names that differ in letter case or Unicode form only are rated as models of their own: {few(texts)}"


def _spelt_out(name: str, others: Sequence[str]) -> str:
    drawn = [unicodedata.normalize("NFC", other) for other in others]
    return ascii(name) if drawn.count(unicodedata.normalize("NFC", name)) > 1 else name


def elo_text(elo: float | None, lo: float | None, hi: float | None) -> str:
    """A rating in whole Elo points or, where it is None, the one bound that it has.

    >>> elo_text(None, 1490.2, None)
    'over 1490'
    """
    if elo is not None:
        return f"{elo:.0f}"
    return f"over {lo:.0f}" if lo is not None else f"under {hi:.0f}" if hi is not None else "none"


def open_intervals_text(without_estimate: int, replicates: int) -> str | None:
    """What is said of bootstrap replicates without a finite estimate, or None without any.

    >>> open_intervals_text(80, 200)[:54]
    '80 of 200 bootstrap replicates have no finite estimate'
    """
    if not without_estimate:
        return None
    return (
        f"{without_estimate:,} of {replicates:,} bootstrap replicates have no finite estimate of "
        "every model: an interval or a rank that they reach is open. An anchor closes those of the models joined to it "
        "by wins both ways, more judgments close all, and errors by formula, without a bootstrap, have no replicates"
    )


def coin_words(one: OrderAgreement) -> str:
    """How far a judge's two orders agree, with the interval."""
    between = interval_text(one.lo, one.hi, ".2f")
    span = f" ({between})" if between else ""
    return (
        f"{one.judge}'s verdicts in both orders agree by {one.value or 0.0:.2f}{span} beyond its preference for a place"
    )


def coins_text(coins: Sequence[OrderAgreement]) -> str | None:
    """What is said of judges that nothing shows to decide better than a coin; None without any."""
    if not coins:
        return None
    if len(coins) == 1:
        said = coin_words(coins[0])
    else:
        names = few([one.judge for one in coins])
        said = f"verdicts in both orders of {names} do not agree beyond a preference for a place"
    return f"{said}: no better than a coin, so what {'it says' if len(coins) == 1 else 'they say'} ranks nobody"


def pairs_asked_text(
    asked: int, possible: int, coverage: float | None, fits: Sequence[Mapping[str, Any]] = ()
) -> str | None:
    """What is said of pairs that were not asked, or None where all were; `fits` are those of the groups of a board.

    >>> pairs_asked_text(15, 66, 2.31)
    '15 of 66 pairs were asked (coverage 2.31; 1 is even): ratings speak of these pairs'
    """
    if asked == possible:
        return None
    head = f"{asked:,} of {possible:,} pairs were asked"
    if coverage is not None:
        head += f" (coverage {coverage:.2f}; 1 is even)"
    found = [fit["lack_of_fit"] for fit in fits if "lack_of_fit" in fit]
    if not found:
        return f"{head}: ratings speak of these pairs"
    spreads = [fit["spread"] for fit in found if fit["spread"] is not None]
    if not spreads:
        return f"{head}: ratings and intervals speak of these pairs; whether others agree cannot be told from them"
    spread = f"{max(spreads):.0f} Elo" if max(spreads) >= 0.5 else "no more than chance"
    return (
        f"{head}: they differ from one rating a model by {spread}, which intervals take of the others too; "
        "policy balanced asks all pairs"
    )


@dataclass(frozen=True, slots=True)
class DifferenceWords:
    """What the two sides of differences are called, and the words for these."""

    first: str
    second: str
    some: str
    none: str
    all: str
    verb: str
    caution: str

    @classmethod
    def beside(cls, first: str, second: str) -> DifferenceWords:
        """Of two sides of which neither was before the other."""
        return cls(first, second, "Rated differently", "None is rated differently", "Differences", "differs", "")


IN_TIME = DifferenceWords(
    "before",
    "now",
    "Changed",
    "None changed",
    "Changes",
    "changed",
    "Judges, prompts or instructions that changed change ratings too.",
)
