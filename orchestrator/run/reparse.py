"""What follows from a store without asking anybody: verdicts by today's parsers, completions, flags of injections.

An earlier reading of a reply stays beside the new one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from venire.arena.campaigns import CampaignSettings
from venire.arena.errors import Fault, InputError
from venire.arena.keys import respondent_key
from venire.arena.records import EDIT, UNSENT, Completion, GeneratedText, Outcome, Status, Verdict
from venire.judges import PROTOCOLS, parsing
from venire.judges.conversation import advance
from venire.judges.orientation import orient
from venire.judges.safety import injection_detection
from venire.orchestrator.designs import PlannedCampaign
from venire.orchestrator.engines.trial import UNSENT_OUTCOME, VERDICT_FAULTS, stage
from venire.orchestrator.planning.respondents import respondents
from venire.orchestrator.recording.recorder import verdict_columns
from venire.storage.plans import plans, screening, trial_states
from venire.storage.plans.screening import Rules, Screened
from venire.storage.plans.trial_states import PendingTrial, load
from venire.storage.read.readings import AskedRespondent, ReadingComparison, ReadingDraft, ReadVerdict, last_faults
from venire.storage.store.store import Store
from venire.storage.transfer import importing
from venire.storage.transfer.importing import Added

_CHUNK = 500
_EXAMPLES = 10

_UNASKED = Outcome(Status.UNREADABLE)
"""A trial that would need another call: nobody is asked, so nothing was read."""


@dataclass(frozen=True, slots=True)
class Reread:
    """What reading again brought: how it compares with what was in force, and the number of the reading if kept."""

    parser: str
    comparison: ReadingComparison
    reading: int | None
    """None where nothing was written: nothing changed, or nothing was to be written."""

    @property
    def changed(self) -> bool:
        """Whether there is anything that the verdicts in force do not say already, the parser's name included."""
        return self.comparison.same < self.comparison.verdicts or not self.comparison.by_this_parser


def reparse(
    store: Store,
    campaigns: Sequence[int],
    *,
    write: bool = True,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Reread:
    """Read every verdict in force for some campaigns again, and append a reading where it differs from them.

    `progress` is called with the verdicts read and their number. Raises InputError for a judge whose protocol is not
    known today, StoreError when the store fails; nothing is written then.
    """
    screen(store)
    with ReadingDraft(store, campaigns) as draft:
        respondents = _known(store, draft.respondents())
        trials = draft.trials()
        unsent = draft.unsent(UNSENT)
        for start in range(0, len(trials), _CHUNK):
            chunk = trials[start : start + _CHUNK]
            faults = last_faults(store, chunk)
            draft.add([_row(one, respondents[one.respondent], faults, unsent) for one in load(store, chunk)])
            progress(start + len(chunk), len(trials))
        found = Reread(parsing.PARSER, draft.compare(parsing.PARSER, examples=_EXAMPLES), None)
        if not write or not found.changed:
            return found
        return Reread(found.parser, found.comparison, draft.keep(found.parser))


def read_again(
    pending: PendingTrial, asked: AskedRespondent, faults: Mapping[tuple[int, int], int], unsent: Collection[int] = ()
) -> tuple[Verdict, bool]:
    """The verdict of a settled trial as its replies are read today, and whether one more step would be asked for it.

    Of the replies on record the fewest are used that end the conversation. `faults` holds the fault of the last attempt
    at (trial, step) where that brought no reply, `unsent` the trials whose next request was counted and not sent.
    """
    talk = PROTOCOLS[asked.protocol].talk
    trial, material = stage(pending, asked.key, asked.protocol)
    step = advance(talk, trial, material, asked.options, pending.replies)
    if isinstance(step, Outcome):
        return orient(pending.key, pending.swapped, step, flagged=pending.flagged), False
    if pending.id in unsent:
        return orient(pending.key, pending.swapped, UNSENT_OUTCOME, flagged=pending.flagged), False
    fault = Fault(faults.get((pending.id, len(pending.replies) + 1), Fault.NONE))
    if fault in VERDICT_FAULTS:
        return orient(pending.key, pending.swapped, Outcome(VERDICT_FAULTS[fault]), flagged=pending.flagged), False
    outcome = step.otherwise or _UNASKED
    return orient(pending.key, pending.swapped, outcome, flagged=pending.flagged), step.otherwise is None


def _row(
    pending: PendingTrial, asked: AskedRespondent, faults: Mapping[tuple[int, int], int], unsent: Collection[int]
) -> ReadVerdict:
    verdict, unasked = read_again(pending, asked, faults, unsent)
    return ReadVerdict._make((pending.id, *verdict_columns(verdict), unasked))


def _known(store: Store, respondents: Mapping[int, AskedRespondent]) -> Mapping[int, AskedRespondent]:
    for asked in respondents.values():
        if asked.protocol not in PROTOCOLS:
            raise InputError(
                f"{store.path}: {asked.model} was asked by the protocol {asked.protocol!r}, which this Venire does not "
                f"have (it has {', '.join(PROTOCOLS)}): read it again with the version that asked it"
            )
    return respondents


def take_answers(store: Store, campaign: CampaignSettings, planned: PlannedCampaign) -> Added:
    """Make completions of what the contestants or editors of a plan have answered so far.

    Nothing is made twice, whenever it is called: a completion is known by its model, instruction, sample and edit.
    """
    keys = {judge.name: respondent_key(who) for judge, who in respondents(campaign)}
    added = Added()
    trials = plans.answered_trials(store, planned.id)
    for start in range(0, len(trials), _CHUNK):
        found = importing.add(store, _completions(store, planned, keys, trials[start : start + _CHUNK]))
        added = Added(completions=added.completions + found.completions, known=added.known + found.known)
    return added


def _completions(
    store: Store, planned: PlannedCampaign, keys: dict[str, bytes], trials: list[int]
) -> Iterator[Completion]:
    for pending in trial_states.load(store, np.asarray(trials, dtype=np.int64)):
        contestant = planned.judges[pending.respondent]
        trial, material = stage(pending, keys[contestant.name], contestant.protocol)
        conversation = PROTOCOLS[contestant.protocol].talk
        outcome = advance(conversation, trial, material, contestant.options, pending.replies)
        if isinstance(outcome, Outcome) and isinstance(outcome.reading, GeneratedText):
            text = outcome.reading.text
            if contestant.protocol == EDIT:  # the copy is of the model whose completion was shown
                yield replace(pending.shown[0], text=text, variant=contestant.name)
            else:
                yield Completion(contestant.name, pending.instruction.id, text, pending.repeat)


def screen(store: Store) -> Screened:
    """Flag the completions of a store that try to instruct their judge, by the rules of `injection_detection`.

    Those that were looked at by today's rules are not looked at again.

    Raises StoreError when the store fails.
    """
    rules = Rules(
        injection_detection.version(),
        injection_detection.CANDIDATES,
        injection_detection.LOWER_CASE_CANDIDATES,
        injection_detection.detect_injection,
    )
    return screening.screen(store, rules)
