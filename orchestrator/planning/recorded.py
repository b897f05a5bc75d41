"""Judgments that were made elsewhere: which of them a plan takes, and the replies that they are.

A table of them is read when a plan is made and when a run begins; its rows of one judge are held in memory meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from venire.arena.campaigns import CampaignSettings, JudgeSettings
from venire.arena.errors import InputError
from venire.arena.keys import respondent_key, trial_key
from venire.arena.records import RECORDED, Respondent
from venire.arena.shapes import Shape
from venire.judges import PROTOCOLS
from venire.judges.protocols.recorded import WORD
from venire.orchestrator.designs import Replayed, RoundDesign
from venire.storage.plans import plans
from venire.storage.plans.plans import Catalogue
from venire.storage.store.store import Store
from venire.storage.transfer.formats.recorded import read_recorded

Shown = tuple[tuple[str, ...], int]
"""Models in the order shown, and the repeat."""


@dataclass(frozen=True)
class Recording:
    """The recorded judgments of one judge: by instruction the texts of what was shown."""

    judge: str
    shape: Shape
    texts: Mapping[str, Mapping[Shown, str]]

    @cached_property
    def rows(self) -> int:
        """How many there are."""
        return sum(map(len, self.texts.values()))

    @cached_property
    def models(self) -> frozenset[str]:
        """Whose completions were shown."""
        return frozenset(model for rows in self.texts.values() for shown, _ in rows for model in shown)

    def of(self, name: str, repeat: int, answers: Catalogue) -> Iterator[tuple[str, ...]]:
        """What of an instruction was shown in one repeat, in the table's order, where all of it has completions."""
        for shown, number in self.texts.get(name, ()):
            if number == repeat and all((model, name) in answers.completions for model in shown):
                yield shown


def read_recordings(
    campaign: CampaignSettings, judges: Sequence[JudgeSettings] | None = None
) -> Mapping[str, Recording]:
    """The tables of a campaign's recorded judges, or of those named, by judge.

    Raises InputError for a table that cannot be used, for a protocol of several steps, and for a judgment that is
    twice in one table.
    """
    found = {}
    for judge in campaign.judges if judges is None else judges:
        if judge.recorded is not None:
            try:
                found[judge.name] = _read(judge)
            except InputError as error:
                raise InputError(f"{campaign.path}: judge {judge.name!r}: {error}") from None
    return found


def _read(judge: JudgeSettings) -> Recording:
    assert judge.recorded is not None  # asked of recorded judges alone
    entry, path = PROTOCOLS[judge.protocol], judge.recorded.path
    if len(entry.expects) != 1:
        raise InputError(
            f"protocol {judge.protocol!r} takes {len(entry.expects)} calls, and one reply is on record: use "
            f"protocol {RECORDED!r} and the dialect of that reply"
        )
    verdicts = judge.protocol == RECORDED and judge.options.get("dialect", WORD) == WORD
    texts: dict[str, dict[Shown, str]] = {}
    for row in read_recorded(path, judge.model, entry.shape, judge.recorded.columns, verdicts=verdicts):
        there = texts.setdefault(row.instruction, {})
        if (row.shown, row.repeat) in there:
            raise InputError(
                f"{path}: two judgments of instruction {row.instruction!r}, {', '.join(row.shown)}, repeat "
                f"{row.repeat}: number them in a column repeat, or keep one"
            )
        there[row.shown, row.repeat] = row.text
    return Recording(judge.name, entry.shape, texts)


def judged_pairs(recordings: Iterable[Recording]) -> set[tuple[str, str]]:
    """Every pair of models that was judged, in canonical order."""
    return {
        (min(shown), max(shown))
        for recording in recordings
        if recording.shape.pairwise
        for rows in recording.texts.values()
        for shown, _ in rows
    }


def replay_summary(
    recording: Recording, chosen: RoundDesign, answers: Catalogue, repeats: int, policy: str
) -> Replayed:
    """What a plan takes of one judge's judgments, and what it misses there."""
    trials = missing = one_order = 0
    for name, matchups in zip(chosen.instructions, chosen.matchups_on(), strict=True):
        wanted = {(matchup.model_a, matchup.model_b) for matchup in matchups}
        designed = recording.shape.trials(len(chosen.models), len(wanted))
        for repeat in range(1, repeats + 1):
            there = list(recording.of(name, repeat, answers))
            if recording.shape.pairwise:
                there = [shown for shown in there if (min(shown), max(shown)) in wanted]
                one_order += 2 * len({(min(shown), max(shown)) for shown in there}) - len(there)
            missing += 0 if policy == RECORDED else max(0, designed - len(there))
            trials += len(there)
    return Replayed(recording.judge, recording.rows, trials, missing, one_order)


def recorded_texts(
    store: Store, campaign: CampaignSettings, judges: Sequence[tuple[JudgeSettings, Respondent]]
) -> Mapping[str, str]:
    """What recorded judges said, by the hexadecimal key of the trial; `judges` of whom it is wanted."""
    recordings = read_recordings(campaign, [judge for judge, _ in judges])
    models = {model for recording in recordings.values() for model in recording.models}
    answers = plans.catalogue(store, sorted(models)) if recordings else Catalogue({}, {}, {})
    found = {}
    for judge, respondent in judges:
        key = respondent_key(respondent)
        for name, rows in recordings[judge.name].texts.items() if judge.name in recordings else ():
            for (shown, repeat), text in rows.items():
                there = [answers.completions.get((model, name)) for model in shown]
                if all(there):
                    keys = [one.key for one in there if one is not None]
                    found[trial_key(key, answers.instructions[name][1], keys, repeat).hex()] = text
    return found
