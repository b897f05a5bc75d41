"""Stopping a judge whose replies cannot be read, before it spends the budget; and the quality gates of a campaign."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence

from venire.arena.campaigns import QualitySettings
from venire.arena.records import Reply, Status
from venire.judges.providers.replies import excerpt, instead_of_text
from venire.storage.read.judge_quality import JudgeReadability

WINDOW = 100
"""The last verdicts of a judge that decide whether it is asked further."""
_FIRST, _INSTRUCTIONS = 20, 3
"""Verdicts before that is decided for the first time, and instructions where most were refused or cut off."""

_REMEDY = {
    Status.UNREADABLE: "look whether its protocol and prompts fit the model (`venire prompts render FILE`)",
    Status.REFUSED: "it declines to answer: change its prompts, or take another model",
    Status.TRUNCATED: "its replies are cut off: raise its max_tokens",
}


class ReadabilityMonitor:
    """The share of readable verdicts among the last `WINDOW` of each judge, across resumptions.

    `recent` are (respondent, instruction, status) of the verdicts in force, the oldest first. Verdicts that are about
    the texts and not the judge, filtered or too long, do not count. Refused and truncated replies may be the doing of
    one instruction, whose trials follow each other: several instructions, or a full window, are needed for them.

    >>> monitor = ReadabilityMonitor(QualitySettings(), [(1, i, Status.UNREADABLE) for i in range(20)])
    >>> monitor.is_unreadable(1)
    True
    """

    def __init__(self, quality: QualitySettings, recent: Iterable[tuple[int, int, int]]) -> None:
        self._least = quality.give_up
        self._last: defaultdict[int, deque[tuple[int, Status]]] = defaultdict(lambda: deque(maxlen=WINDOW))
        for respondent, instruction, status in recent:
            self.add(respondent, instruction, Status(status))

    def add(self, respondent: int, instruction: int, status: Status) -> None:
        """Count another verdict of a judge."""
        if status is not Status.FILTERED and status is not Status.TOO_LONG:
            self._last[respondent].append((instruction, status))

    def is_unreadable(self, respondent: int) -> bool:
        """Whether so few of its last verdicts could be read that the judge is asked no more."""
        last = self._last[respondent]
        if sum(status is Status.OK for _, status in last) >= self._least * len(last):
            return False
        mostly_unreadable = 2 * sum(status is Status.UNREADABLE for _, status in last) > len(last)
        several = mostly_unreadable or len({instruction for instruction, _ in last}) >= _INSTRUCTIONS
        return len(last) >= _FIRST and (several or len(last) == WINDOW)

    def explain(self, respondent: int, reply: Reply | None) -> str:
        """Why a respondent is asked no more, with an example of a reply where there is one, and what to do."""
        last = Counter(status for _, status in self._last[respondent])
        read = last.pop(Status.OK, 0)
        ((common, _),) = last.most_common(1)
        kinds = ", ".join(f"{number} {status.name.lower()}" for status, number in sorted(last.items()))
        return (
            f"of its last {last.total() + read} trials {read or 'none'} could be read ({kinds})"
            f"{_example(reply, _REMEDY[common])}"
        )


def _example(reply: Reply | None, remedy: str) -> str:
    """A reply as an example, with what came instead of a text, and what to do: the remedy for that, else the other."""
    if reply is None:
        return f"; {remedy}"
    textless = instead_of_text(reply)
    what, remedy = textless or (repr(excerpt(reply.text)), remedy)
    return f"; a reply: {what}; {remedy}"


def gates_missed(
    judges: Sequence[JudgeReadability],
    quality: QualitySettings,
    examples: Mapping[str, tuple[Status, Reply]] | None = None,
) -> tuple[str, ...]:
    """A sentence for each gate that a judge missed; that not one of its verdicts could be read is always one.

    `examples` are the last verdicts of this run that were not ok, with their replies, by judge.

    >>> one = JudgeReadability("x", "two-stage", 10, 8, 0, 5, 4, 5, 4, 4, 2, 0, 0)
    >>> gates_missed([one], QualitySettings(readable=0.9, flips=0.6))
    ("judge 'x': 80.0% of its trials could be read, [quality] asks for readable = 0.9",)
    """
    found = []
    for one in judges:
        if one.readable is not None and one.readable < (quality.readable or 0.0):
            found.append(
                f"judge {one.judge!r}: {one.readable:.1%} of its trials could be read, [quality] asks for readable = "
                f"{quality.readable:g}"
            )
        elif one.readable == 0.0:
            status, reply = (examples or {}).get(one.judge, (Status.UNREADABLE, None))
            said = _example(reply, _REMEDY.get(status, "")) if reply is not None else ""
            found.append(f"judge {one.judge!r}: none of its {one.settled - one.too_long:,} trials could be read{said}")
        if quality.flips is not None and one.flip_rate is not None and one.flip_rate > quality.flips:
            found.append(
                f"judge {one.judge!r}: {one.flip_rate:.1%} of its battles had opposite winners in the two orders, "
                f"[quality] allows flips = {quality.flips:g}"
            )
    return tuple(found)
