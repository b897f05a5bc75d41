"""Choices that the command line offers and the library takes under the same words; the first of each is the default."""

from __future__ import annotations

from typing import Literal

OrdersMerge = Literal["mean", "strict"]
"""What a tie in one order and a winner in the other make together: half a win, or a tie."""

Merge = Literal[OrdersMerge, "none"]
"""The same; "none": verdicts are not merged, which some methods require."""

Flips = Literal["tie", "drop"]
"""What becomes of two orders with opposite winners."""

BattleOrder = Literal["shuffled", "given"]
"""The order in which online Elo takes battles: many drawn ones, or that of a file's rows or of a store's verdicts."""

Ties = Literal["half", "drop", "rao-kupper", "davidson"]
"""What a tie counts as in the Bradley-Terry family."""

HumanTies = Literal["drop", "half"]
"""What a tie of people counts as where a judge's scores are calibrated on them: nothing, or half a win."""

ConformalMethod = Literal["leave-one-out", "jackknife+"]
"""How a model's conformal interval is calibrated: on the other models each left out alone, or with this one as well."""

PairErrors = Literal["cluster", "sandwich", "hessian"]
"""How standard errors are found."""

RatedPairs = Literal["all", "given"]
"""Which pairs of models intervals are about: all, whichever were asked, or those that were."""

Habit = Literal["position", "ties"]
"""What a judge may be given to, whatever it is shown."""

OwnVotes = Literal["include", "exclude"]
"""Whether a judge that is one of the models is counted on itself."""

BothBad = Literal["tie", "drop"]
"""What a verdict that both answers are bad counts as: a tie, or nothing."""

Unranked = Literal["below", "absent"]
"""What a model without a row on a ballot is: shown and not ranked, where the instruction's other ballots have it; or
not shown."""

Unattempted = Literal["keep", "drop"]
"""What becomes of pairs of which either answer was not attempted, or has no grade."""

TableKind = Literal["instructions", "completions", "elo"]
"""What the rows of an imported table are."""

VerdictOrigin = Literal["real", "recorded", "simulated", "people"]
"""Where the verdicts of a table come from; a store knows by itself."""

KeptPairs = Literal["agreed", "decided", "every"]
"""Judgments that become preference pairs: both orders name the winner, they favour it, or each verdict that has one."""

AnnotationSample = Literal["random", "disputed", "decisive"]
"""Which battles people vote on: by chance, where judges differ most, or where the order of two models is in doubt."""

VoteWinner = Literal["answer_1", "answer_2", "tie"]
"""What a person says of two answers, in the order they were shown."""
