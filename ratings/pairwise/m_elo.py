"""m-ELO: Elo's likelihood at its maximum instead of one pass of updates, without order and without K; the am-ELO paper.

Maximising the sum of y ln P + (1 - y) ln(1 - P) over all battles is Bradley-Terry by another name.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.result import Ratings
from venire.ratings.pairwise.bradley_terry import bradley_terry

__all__ = ["m_elo"]


def m_elo(data: Comparisons, **options: Any) -> Ratings:
    """Bradley-Terry ratings under the name that am-ELO's authors give them; options and errors are its own."""
    return replace(bradley_terry(data, **options), method="m-elo")
