"""What a check of the data looks at, and what it says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.ratings.data.judgments import Judgments
from venire.ratings.inference.options import Options

__all__ = ["CLEAR", "Case", "Finding"]

CLEAR = 0.01
"""A test worries below this p-value: in one of a hundred audits of clean data, were size not asked for as well."""


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """Verdicts under examination: as they were read, and with their two orders brought together by `options`.

    `families` and `judge_families` name the family of each model and judge, where known. `seconds` (verdicts,) is when
    each verdict was given, in seconds since 1970, None where no verdict says. `planned` is how many verdicts were to
    be had, None where that is not known.
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
    """One check: whether to worry (None: it could not be made), the figure that decides and its threshold.

    `says` is one line for a reader: what was found and what it means; where the check could not be made, why.
    `details` holds plain JSON values: what the line leaves out, such as the strongest cycles by name.
    """

    check: str
    worry: bool | None
    figure: float | None
    threshold: float | None
    says: str
    details: Mapping[str, Any] = field(default_factory=dict)
