"""Verdict formats: which labels mean the first side, the second or a tie, and in which patterns they are written.

One table; on the command line and in documents a format is called a dialect. Each has its rules in order; none knows a
judge's name. All of its rules look at a reply, and what they state has to agree: two verdicts are none. Only a rule
that `decides` is not held against the rules after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from venire.arena.errors import InputError
from venire.arena.records import Status
from venire.judges.parsing.choices import CHOICE_RULES, read_choice
from venire.judges.parsing.decisions import VerdictPattern, labels_in_sentences, sides_chosen
from venire.judges.parsing.reply_text import ReplyText, read_reply_text
from venire.judges.parsing.verdict_patterns import boxed, in_json, leading_scores, marks, named_scores, on_lines

VerdictSide = Literal["first", "second", "tie"]


@dataclass(frozen=True, slots=True)
class FormatReading:
    """What was read from a reply: a verdict and the rule that read it, or neither and the status unreadable."""

    verdict: VerdictSide | None = None
    rule: str | None = None

    @property
    def status(self) -> Status:
        return Status.UNREADABLE if self.verdict is None else Status.OK


@dataclass(frozen=True, slots=True)
class FormatRule:
    """One form of a dialect, with a reply that it reads; where it `decides`, rules after it are not asked."""

    name: str
    states: VerdictPattern
    example: str
    decides: bool = False


@dataclass(frozen=True, slots=True)
class VerdictFormat:
    """A way of writing verdicts: what it reads, described; what its labels mean; its rules in order."""

    name: str
    reads: str
    labels: Mapping[str, VerdictSide]
    rules: tuple[FormatRule, ...]


_read_choice = lru_cache(maxsize=1)(read_choice)
"""Each of the rules asks, one after the other."""


def _choice_rule(name: str, example: str) -> FormatRule:
    def states(reply: ReplyText) -> set[str]:
        found = _read_choice(reply.text)
        if found is None or found[1] != name or not any(str(found[0]) in line for line in reply.lines):
            return set()
        return {str(found[0])}

    return FormatRule(name, states, example)


def _rules(
    forms: Mapping[str, VerdictPattern], examples: Mapping[str, str], decide: tuple[str, ...] = ()
) -> tuple[FormatRule, ...]:
    return tuple(FormatRule(name, forms[name], example, name in decide) for name, example in examples.items())


_PLAIN: dict[str, VerdictSide] = {"first": "first", "second": "second", "tie": "tie"}
_LETTERS: dict[str, VerdictSide] = {"A": "first", "B": "second", "C": "tie"}
_NUMBERS: dict[str, VerdictSide] = {"1": "first", "2": "second", "3": "tie", **_PLAIN}
_OUTPUTS: dict[str, VerdictSide] = {"Output (a)": "first", "Output (b)": "second", "m": "first", "M": "second"}
_SIDES = ("model", "assistant", "response", "answer", "completion", "output")
_BOXED = FormatRule("boxed", boxed("[A-C]", _LETTERS), "The first one is clearer.\n\n$\\boxed{A}$")
_CHOSEN = FormatRule("chosen", sides_chosen, "Both are correct. I would choose Assistant 1 as the better answer.")

VERDICT_FORMATS: dict[str, VerdictFormat] = {
    dialect.name: dialect
    for dialect in (
        VerdictFormat(
            "zero-one-two",
            "1, 2 or 0 for a tie, as Venire's own two-stage protocol asks for them",
            {"1": "first", "2": "second", "0": "tie"},
            tuple(_choice_rule(rule.name, rule.example) for rule in CHOICE_RULES),
        ),
        VerdictFormat(
            "one-two-three",
            "1, 2 or 3 for a tie: on the last line, which counts, or the first; else in a sentence",
            _NUMBERS,
            (
                *_rules(
                    on_lines("[0-9]{1,3}", _NUMBERS),
                    {
                        "bare": "3",
                        "named": "Both are detailed.\n\nOutput: 1",
                        "last-line": "The second one is clearer.\n\n2",
                        "first-line": "3\n\nBoth say the same.",
                    },
                    decide=("bare", "named", "last-line"),
                ),
                *_rules(
                    labels_in_sentences("[0-9]{1,3}"),
                    {
                        "chosen-label": "Therefore, I choose 3 as both assistants are equivalent.",
                        "answer-is": "Both are clear. Therefore, my choice is 3, the two assistants are equivalent.",
                    },
                ),
                _CHOSEN,
            ),
        ),
        VerdictFormat(
            "label-line",
            "1, 2 or Tie (0) on the first line, which counts; the reason after it",
            {"1": "first", "2": "second", "0": "tie", "tie": "tie"},
            _rules(
                on_lines("[0-9]{1,3}|(?i:tie)", _NUMBERS, leading=True),
                {"first-line": "2\nResponse 2 is better than Response 1, which has 3 faults."},
            ),
        ),
        VerdictFormat(
            "mt-bench",
            "[[A]], [[B]] or [[C]] for a tie, anywhere",
            _LETTERS,
            (FormatRule("brackets", marks("[A-C]"), "Assistant A is clearer. My final verdict is: [[A]]"), _BOXED),
        ),
        VerdictFormat(
            "arena-hard",
            "[[A>>B]], [[A>B]], [[A=B]], [[B>A]] or [[B>>A]], anywhere",
            {"A>>B": "first", "A>B": "first", "A=B": "tie", "B=A": "tie", "B>A": "second", "B>>A": "second"},
            (
                FormatRule(
                    "brackets",
                    marks("A ?>> ?B|A ?> ?B|A ?= ?B|B ?= ?A|B ?> ?A|B ?>> ?A"),
                    "My final verdict is that assistant B is slightly better: [[B>A]]",
                ),
            ),
        ),
        VerdictFormat(
            "alpaca-eval",
            "Output (a) or Output (b) on a line of its own, or the bare letters m and M",
            _OUTPUTS,
            _rules(
                on_lines(r"Output \([ab]\)|[mM]", _OUTPUTS),
                {
                    "bare": "Output (a)",
                    "named": "Final answer: Output (b)",
                    "last-line": "The second output is longer.\n\nOutput (a)",
                    "first-line": "Output (b)\nIt is complete.",
                },
            ),
        ),
        VerdictFormat(
            "letter",
            "A, B or C for a tie, alone or behind a word such as Choice",
            _LETTERS,
            (
                *_rules(
                    on_lines("[A-Z]", _LETTERS, anywhere=True),
                    {
                        "bare": "**A**",
                        "named": "Choice: B\nReason: it is complete.",
                        "last-line": "The first one is clearer.\nA",
                        "first-line": "B\nIt is complete.",
                    },
                ),
                _BOXED,
            ),
        ),
        VerdictFormat(
            "scores",
            "scores of both sides, the higher wins: two on the first line, which counts, or one behind each name; "
            "or a decision in a sentence",
            _PLAIN,
            (
                FormatRule("first-line", leading_scores, "7 8\n\nThe second answer is more detailed.", decides=True),
                FormatRule("named", named_scores, "Score A: 7 Score B: 8"),
                _CHOSEN,
            ),
        ),
        VerdictFormat(
            "json",
            "a JSON object with a key such as choice or winner, in a sentence or in a closing block of code",
            {
                **dict.fromkeys(("a", "first", *(f"{side}_{mark}" for side in _SIDES for mark in "a1")), "first"),
                **dict.fromkeys(("b", "second", *(f"{side}_{mark}" for side in _SIDES for mark in "b2")), "second"),
                **dict.fromkeys(("c", "tie", "tied", "draw", "equal"), "tie"),
            },
            (FormatRule("object", in_json, '{"reason": "It is complete.", "winner": "model_a"}'),),
        ),
        VerdictFormat("prose", "a decision in a sentence", _PLAIN, (_CHOSEN,)),
    )
}


def read_verdict(text: str, dialect: VerdictFormat) -> FormatReading:
    """The verdict of one reply in a format, or a reading without one.

    >>> read_verdict("Assistant A is clearer. My final verdict is: [[A]]", VERDICT_FORMATS["mt-bench"]).verdict
    'first'
    """
    reply = read_reply_text(text)
    return FormatReading() if reply is None else _read(reply, dialect, {})


def read_in_every_format(text: str) -> dict[str, FormatReading]:
    """The reading of one reply in each dialect, by name."""
    reply = read_reply_text(text)
    known: dict[VerdictPattern, set[str]] = {}
    return {
        name: FormatReading() if reply is None else _read(reply, dialect, known)
        for name, dialect in VERDICT_FORMATS.items()
    }


def _read(reply: ReplyText, dialect: VerdictFormat, known: dict[VerdictPattern, set[str]]) -> FormatReading:
    """The reading in one dialect; `known` has what the reply states in forms that several dialects share."""
    stated: set[VerdictSide | None] = set()
    by: str | None = None
    for rule in dialect.rules:
        if rule.states not in known:
            known[rule.states] = rule.states(reply)
        labels = known[rule.states]
        stated |= {dialect.labels.get(label) for label in labels}
        by = rule.name if labels and by is None else by
        if labels and rule.decides:
            break
    verdict = stated.pop() if len(stated) == 1 else None
    return FormatReading(verdict, by) if verdict is not None else FormatReading()


_NEARLY = 0.9
"""A dialect that reads this share of what the best one reads is its rival."""
_DIFFERS = 0.01
"""A rival that reads this share of the replies that both read otherwise makes the choice the user's."""


@dataclass(frozen=True, slots=True)
class FormatCandidate:
    """A dialect beside the one that reads most: how many replies it reads, how many both read, how many otherwise."""

    name: str
    read: int
    both: int
    against: int
    example: int | None
    """Row, the first is 1, of the first reply that the two read otherwise."""


def rank_formats(verdicts: Mapping[str, Sequence[VerdictSide | None]]) -> list[FormatCandidate]:
    """All dialects that read something, the one that reads most first; of equals the first of the table."""
    counts = {name: sum(verdict is not None for verdict in column) for name, column in verdicts.items()}
    ordered = sorted((name for name in counts if counts[name]), key=lambda name: -counts[name])
    return [_beside_best(name, counts[name], verdicts[name], verdicts[ordered[0]]) for name in ordered]


def _beside_best(
    name: str, read: int, column: Sequence[VerdictSide | None], best: Sequence[VerdictSide | None]
) -> FormatCandidate:
    both = [at for at, pair in enumerate(zip(column, best, strict=True)) if None not in pair]
    against = [at for at in both if column[at] != best[at]]
    return FormatCandidate(name, read, len(both), len(against), against[0] + 1 if against else None)


def choose_format(found: Sequence[FormatCandidate], rows: int) -> FormatCandidate:
    """The first candidate; raises InputError where there is none, or where a rival reads the same replies otherwise."""
    if not found:
        raise InputError(
            f"none of the dialects reads any of the {rows} replies; `venire parse --list` shows what they read"
        )
    best = found[0]
    rivals = [
        one
        for one in found[1:]
        if one.against
        and (one.read == best.read or (one.read >= _NEARLY * best.read and one.against >= _DIFFERS * one.both))
    ]
    if rivals:
        others = "; ".join(
            f"{rival.name} reads {rival.read}, {rival.against} of them otherwise (the first in row {rival.example})"
            for rival in rivals
        )
        raise InputError(
            f"several dialects read these replies and disagree: {best.name} reads {best.read} of {rows}; {others}. "
            f"Name the right one with --dialect"
        )
    return best
