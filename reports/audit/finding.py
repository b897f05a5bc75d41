"""A check of the data: its input, its declaration and its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.errors import VenireError
from venire.ratings.data.judgments import Judgments
from venire.ratings.inference.options import Options

CLEAR = 0.01
"""A test worries below this p-value: in 1 of 100 audits of clean data, if a large effect were not required as well."""


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """The verdicts to audit: as they were read, and with their two orders merged by `options`.

    `families` and `judge_families` name the family of each model and judge, where known. `seconds` (verdicts,) is the
    time of each verdict in seconds since 1970, None where no verdict has a time. `planned` is the planned number of
    verdicts, None where it is unknown.
    """

    battles: Battles
    judgments: Judgments
    options: Options = field(default_factory=Options)
    families: Mapping[str, str] = field(default_factory=dict)
    judge_families: Mapping[str, str] = field(default_factory=dict)
    seconds: NDArray[np.float64] | None = None
    planned: int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check: whether to worry (None: it could not be made), the deciding figure and its threshold.

    `says` is one line for a reader: the result and its meaning, or the reason why the check could not be made.
    `details` holds plain JSON values that the line leaves out, for example the strongest cycles by name.
    """

    check: str
    worry: bool | None
    figure: float | None
    threshold: float | None
    says: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What the function of a check returns: the parts of a `Finding` that depend on the case.

    `threshold` replaces that of the check, where the case decides which figure is judged.
    """

    worry: bool | None
    figure: float | None
    says: str
    details: Mapping[str, Any] = field(default_factory=dict)
    threshold: float | None = None


Calls = Literal["unreadable", "ties", "flips", "failed", "pending", "instructions", "disagreements"]
"""Sets of a campaign's calls that a finding may rest on, for links to them."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check, with everything that a terminal, a page, a report or the documentation states about it.

    A figure at the `harmless` side of `threshold` is no worry; `unless` is in words the condition under which one on
    the other side is none either. `asks` is the question that the check answers, `scope` whether it is about the board
    or about its judges, `calls` what to read to see what it found.
    """

    name: str
    function: Callable[[Case], CheckResult]
    harmless: Literal["at most", "at least"]
    threshold: float
    asks: str
    unless: str | None = None
    scope: Literal["board", "judges"] = "board"
    calls: tuple[Calls, ...] = ()

    def __call__(self, case: Case) -> Finding:
        """The finding about a case; where the function raises a VenireError, one that gives the reason."""
        try:
            made = self.function(case)
        except VenireError as error:
            made = CheckResult(None, None, str(error))
        threshold = self.threshold if made.threshold is None else made.threshold
        return Finding(self.name, made.worry, made.figure, threshold, made.says, made.details)


def check(
    name: str,
    harmless: Literal["at most", "at least"],
    threshold: float,
    asks: str,
    *,
    unless: str | None = None,
    scope: Literal["board", "judges"] = "board",
    calls: tuple[Calls, ...] = (),
) -> Callable[[Callable[[Case], CheckResult]], Check]:
    """Declare the decorated function as a `Check`; `reports.audit.audit.CHECKS` lists them."""
    return lambda function: Check(name, function, harmless, threshold, asks, unless, scope, calls)
