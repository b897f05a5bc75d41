"""Texts that no budget covers: one call that shows such a text may come to more than all that may be spent.

Nobody can be asked about them, whatever else is asked, so their instructions are left out of a plan: otherwise one
answer of ten megabytes ends it, since what has to be kept free for the most expensive call of a plan is more than
there is.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from venire.arena.budgets import BudgetUnit
from venire.arena.planning import Pick
from venire.orchestrator.costs.budget import BudgetAccount
from venire.orchestrator.costs.call_cost import CHARACTERS_A_TOKEN, CallCost
from venire.orchestrator.costs.coverage import Funds
from venire.storage.plans.plans import Catalogue
from venire.storage.plans.trial_states import SettledPairs

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class TextLengths:
    """Characters of instructions, with their reference answers too, and of completions.

    As a store has them by number; of some models and instructions (instructions,) and (models, instructions), with NaN
    where a completion is missing.
    """

    instructions: NDArray[np.float64]
    referenced: NDArray[np.float64]
    completions: NDArray[np.float64]

    def of(self, answers: Catalogue, models: Sequence[str], instructions: Sequence[str]) -> TextLengths:
        """Those of some models and instructions, in that order."""
        numbers = [answers.instructions[name][0] for name in instructions]
        shown = np.full((len(models), len(instructions)), np.nan)
        for row, model in enumerate(models):
            for column, name in enumerate(instructions):
                if (completion := answers.completions.get((model, name))) is not None:
                    shown[row, column] = self.completions[completion.number]
        return TextLengths(self.instructions[numbers], self.referenced[numbers], shown)


@dataclass(frozen=True, slots=True)
class OversizedText:
    """An instruction (`model` None) or an answer to one that a judge cannot be shown, and whose limit is too low."""

    instruction: str
    model: str | None
    tokens: int
    """About, at four characters each."""
    judge: str
    whose: str

    def __str__(self) -> str:
        what = "" if self.model is None else f"the answer of {self.model!r} to "
        return self.sentence(f"{what}instruction {self.instruction!r}", "plan anew")

    def sentence(self, text: str, again: str) -> str:
        """What is left out, and what to do; `text` names it, `again` is how it is then asked about."""
        return (
            f"left out: {text} has about {self.tokens:,} tokens, and {self.whose} does not cover the longest answer "
            f"of {self.judge!r} to it: shorten the text, or raise that and {again}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """What is asked about, an instruction or a battle each: lengths in characters, all of one shape.

    `longest` is the longest answer, `authors` whose it is, and `shown` are the answers that one call surely shows.
    """

    names: Sequence[str]
    authors: Sequence[str | None]
    instructions: NDArray[np.float64]
    referenced: NDArray[np.float64]
    longest: NDArray[np.float64]
    shown: NDArray[np.float64]


def may_be_oversized(lengths: TextLengths, funds: Funds) -> bool:
    """Whether the longest texts of a store, of whatever models, are more than a budget covers: seldom, and quick."""
    asked = max(lengths.instructions.max(initial=0.0), lengths.referenced.max(initial=0.0))
    most = np.array([2.0 * lengths.completions.max(initial=0.0) + asked])
    return any(_beyond(cost, account, most) for cost in _asked_in_full(funds) for account in _accounts(funds, cost))


def oversized_texts(
    names: Iterable[str], models: Sequence[str], answers: Catalogue, lengths: TextLengths, funds: Funds
) -> tuple[OversizedText, ...]:
    """The longest text of each of some instructions that cannot be asked about, in the order of instructions.

    Of contestants that are to write, `models` are none. Limits count in full, whatever of them is spent.
    """
    names = sorted(names)
    if not names or not may_be_oversized(lengths, funds):
        return ()
    of = lengths.of(answers, models, names)
    written = np.nan_to_num(of.completions)
    longest = written.max(axis=0, initial=0.0)
    authors = [models[row] for row in written.argmax(axis=0)] if len(models) else [None] * len(names)
    found = _oversized(_Asked(names, authors, of.instructions, of.referenced, longest, longest), funds)
    return tuple(found[row] for row in sorted(found))


def oversized_battles(
    battles: Sequence[Pick], answers: Catalogue, lengths: TextLengths, funds: Funds, settled: Iterable[SettledPairs]
) -> Mapping[int, OversizedText]:
    """The same of battles that were chosen, by their row: both texts are shown. What was judged is not left out."""
    if not may_be_oversized(lengths, funds):
        return {}
    names = [str(battle.instruction) for battle in battles]
    numbers = [answers.instructions[name][0] for name in names]
    pairs = [(battle.model_a, battle.model_b) for battle in battles]
    sides = np.array(
        [[answers.completions[model, name].number for model in pair] for pair, name in zip(pairs, names, strict=True)]
    ).reshape(-1, 2)
    texts = lengths.completions[sides]
    authors = [pair[side] for pair, side in zip(pairs, texts.argmax(axis=1), strict=True)]
    instructions, referenced = lengths.instructions[numbers], lengths.referenced[numbers]
    found = _oversized(_Asked(names, authors, instructions, referenced, texts.max(axis=1), texts.sum(axis=1)), funds)
    judged = sum((one.of(sides[:, 0], sides[:, 1]) for one in settled), np.zeros(len(battles), dtype=np.int64))
    return {row: found[row] for row in sorted(found) if not judged[row]}


def _oversized(asked: _Asked, funds: Funds) -> dict[int, OversizedText]:
    """By row, what a judge cannot be asked about."""
    found: dict[int, OversizedText] = {}
    for cost in _asked_in_full(funds):
        before = asked.referenced if cost.needs_reference else asked.instructions
        for account in _accounts(funds, cost):
            for row in _beyond(cost, account, before + asked.shown):
                alone = not _is_covered(cost, account, int(before[row]))
                model = None if alone else asked.authors[row]
                tokens = int(before[row] if alone else asked.longest[row]) // CHARACTERS_A_TOKEN
                one = OversizedText(asked.names[row], model, tokens, cost.judge.name, _limit(account))
                found.setdefault(row, one)
    return found


def _asked_in_full(funds: Funds) -> Iterable[CallCost]:
    """Of judges that are shown texts as they are."""
    return (cost for cost in funds.calls.values() if not cost.cuts)


def _accounts(funds: Funds, cost: CallCost) -> Sequence[BudgetAccount]:
    return funds.budgets[cost.judge.name].accounts


def _beyond(cost: CallCost, account: BudgetAccount, characters: NDArray[np.float64]) -> list[int]:
    """Where texts are too long for a call that an account covers in full; nowhere where it covers none at all."""
    most = int(characters.max(initial=0.0))
    if _is_covered(cost, account, most) or not _is_covered(cost, account, 0):
        return []
    first = bisect_left(range(most + 1), True, key=lambda length: not _is_covered(cost, account, length))
    return np.flatnonzero(characters >= first).tolist()


def _is_covered(cost: CallCost, account: BudgetAccount, characters: int) -> bool:
    needed = cost.worst_call(characters)
    return all(unit.of_amount(needed) <= limit for unit, limit in _by_length(account))


def _limit(account: BudgetAccount) -> str:
    limits = (unit.text(limit, precise=True) for unit, limit in _by_length(account))
    return f"{account.whose} of {' and '.join(limits)}"


def _by_length(account: BudgetAccount) -> list[tuple[BudgetUnit, int]]:
    """The limits of what a call takes more of the longer its texts are."""
    return [(unit, limit) for unit, limit in account.limits.limited if not unit.is_certain]
