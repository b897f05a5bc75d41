"""The input of a check of the data, and its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
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
