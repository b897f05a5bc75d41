"""Grades of single completions in a store, for the part of a board that is made of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from venire.arena.battles import Clustering, Grades
from venire.arena.records import Origin
from venire.arena.registry import PROTOCOLS
from venire.arena.wording import few
from venire.reports.grades import GradeBoard, grade_board
from venire.storage.read import frames
from venire.storage.store.store import Store


@dataclass(frozen=True, slots=True)
class StoredGrades:
    """Grades of a store, the campaigns that they were given in, and remarks on what was left out.

    Where all were left out there is no row and no origin.
    """

    grades: Grades
    campaigns: tuple[str, ...]
    origin: Origin | None
    notes: tuple[str, ...] = ()

    def board(self, level: float) -> GradeBoard:
        """The grades' part of a board, with intervals at a level (0 to 1)."""
        return grade_board(
            self.grades,
            verdicts=self.origin and self.origin.value,
            campaigns=self.campaigns,
            level=level,
            notes=self.notes,
        )

    def clustered(self, clustering: Clustering) -> StoredGrades:
        """The same with rows that share their noise so."""
        return replace(self, grades=replace(self.grades, clustering=clustering))


def graders(judges: Sequence[frames.JudgeRow]) -> tuple[frames.JudgeRow, ...]:
    """Those of some judges that are shown one completion at a time."""
    return tuple(one for one in judges if one.protocol in PROTOCOLS and PROTOCOLS[one.protocol].shape.grades)


def read_grades(
    store: Store, campaign: frames.CampaignRow, origins: Collection[Origin], models: Collection[str]
) -> StoredGrades | None:
    """The grades beside a campaign's board of some models, None where there are none.

    They are the campaign's own and, by protocols that it does not ask, those of the same models in the store's other
    campaigns: a grade is about a completion, whichever campaign paid for it. Those of an origin other than the board's
    `origins` are left out and noted.
    """
    own = graders(frames.judges(store, campaign.id))
    asked = {one.protocol for one in own}
    models = models or frames.grades(store, [campaign.id], own).models
    others: list[frames.JudgeRow] = []
    lenders: list[tuple[frames.CampaignRow, list[frames.JudgeRow]]] = []
    left_out = []
    for one in frames.campaigns(store):
        more = [judge for judge in graders(frames.judges(store, one.id)) if judge.protocol not in asked]
        if one.id == campaign.id or not more:
            continue
        kept = [judge for judge in more if judge.origin in origins]
        others += kept
        lenders.append((one, kept))
        left_out += [one.name] if len(kept) < len(more) else []
    numbers = [campaign.id, *(one.id for one, kept in lenders if kept)]
    grades = frames.grades(store, numbers, own, others, models)
    if not len(grades) and not left_out:
        return None
    there = set(zip(grades.judges, grades.protocols, strict=True))
    named = [campaign.name] if any((judge.name, judge.protocol) in there for judge in own) else []
    named += [one.name for one, kept in lenders if any((judge.name, judge.protocol) in there for judge in kept)]
    notes = (f"grades of another origin are left out: campaign {few(left_out)}",) if left_out else ()
    return StoredGrades(grades, tuple(named), min(origins) if len(grades) else None, notes)
