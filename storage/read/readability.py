"""What came of a campaign's trials, judge by judge: how much could be read, and how often the order decided."""

from __future__ import annotations

from dataclasses import dataclass

from venire.storage.store.store import Store

__all__ = ["Judged", "judged"]


@dataclass(frozen=True, slots=True)
class Judged:
    """Counts over the settled trials of one judge."""

    judge: str
    protocol: str
    settled: int
    read: int
    """Those with status ok."""
    too_long: int
    """Those that the judge was not shown, or could not take whole."""
    a_first: int
    """Battles shown with model A first, settled."""
    a_first_read: int
    b_first: int
    b_first_read: int
    both_read: int
    """Battles read in both orders."""
    flips: int
    """Of these with opposite winners: the order decided."""
    flagged: int
    """Trials that showed a completion which tries to instruct the judge."""
    cost: int
    """Nano-dollars, of all attempts."""

    @property
    def readable(self) -> float | None:
        """Share that could be read, of the settled trials that were not too long; None where all were."""
        answered = self.settled - self.too_long
        return self.read / answered if answered else None

    @property
    def flip_rate(self) -> float | None:
        """Share of the battles read in both orders that had opposite winners; None without any."""
        return self.flips / self.both_read if self.both_read else None


def judged(store: Store, campaign: int) -> tuple[Judged, ...]:
    """The judges of a campaign that have settled trials, by name."""
    return tuple(Judged(*row) for row in store.read("judged", campaign=campaign))
