"""Decisions in sentences: "I would choose Assistant 1 as the better answer."

Only what a judge says of its own choice counts, not what it finds good or bad on the way there; and not what it denies,
asks or makes depend on something.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from venire.judges.parsing.forms import SIDE, UNCLEAR, Form
from venire.judges.parsing.spoken import Spoken

__all__ = ["answered", "chosen"]

_DECISIONS_A_SENTENCE = 8
"""A sentence that decides more often than this is no decision."""
_FLAGS = re.IGNORECASE | re.ASCII
_STOP = re.compile(r"(?<=[.!?])[\"')*_]{0,3}\s{1,3}(?=[\"'(*_]{0,3}[A-Z])")

_WORK = (
    "(?:answer|response|submission|solution|implementation|code|script|review|email|letter|version|poem|essay|post"
    "|explanation|work|output|completion|text|summary)"
)
_ORDINAL = rf"the (first|second)(?: (?:assistant|model|option|one|{_WORK}))"
_PATH = r"(?:using |choosing |selecting |(?:that )?(?:you|users|the users?) (?:choose|use|go with|select) )?"
_ANY_SIDE = (
    rf"{_PATH}(?:that )?(?:(?:the )?{_WORK}s? (?:given |provided )?(?:by|of|from) )?(?:the )?(?:{SIDE}|{_ORDINAL})"
)
_WHOSE = rf"(?:['’]s?)?(?: {_WORK}\b)?"
_HOW = (
    r"(?:(?:slightly|somewhat|much|far|clearly|a bit|a little|marginally|overall|generally|significantly|also|still"
    r"|therefore|ultimately) ){0,2}"
)
_BETTER = rf"{_HOW}(?:the |a )?{_HOW}(?:better|best|superior|winner|stronger|strongest|preferable|preferred)"
_MORE = rf"(?:as )?{_HOW}(?:the |a )?{_HOW}(?:more|better|best|higher|superior|most)\b"
_I = (
    r"\b(?:i|we)(?:['’]d|['’]ll| would| will| have to| must| am going to| can| do)?"
    r"(?: (?:therefore|thus|ultimately|also|still|probably|personally|have|had to|like to|choose to)){0,2}"
)
_OPINION = rf"{_I} (?:say|think|believe|feel|find|found|consider|argue|conclude|judge)(?: that)?"
_SLIGHT = r"(?:a |an |the )?(?:slight |small |clear )?"
_OWN = tuple(
    re.compile(pattern, _FLAGS)
    for pattern in (
        rf"{_I} (?:choose|chose|chosen|select|selected|pick|picked|prefer|recommend|go with|vote for|favou?r) "
        rf"{_ANY_SIDE}{_WHOSE}",
        rf"{_I} (?:give|award) {_ANY_SIDE}{_WHOSE} {_SLIGHT}(?:edge|win|advantage|(?:slightly )?higher score)\b",
        rf"{_I} (?:give|award) {_SLIGHT}(?:edge|advantage) to {_ANY_SIDE}{_WHOSE}",
        rf"{_I} (?:rate|rank|score) {_ANY_SIDE}{_WHOSE} (?:as )?(?:being )?{_MORE}",
        rf"{_OPINION} {_ANY_SIDE}{_WHOSE} "
        rf"(?:is|was|to be|provides|provided|gives|gave|did|has|had|does|performed) (?:an? |the )?{_MORE}",
    )
)
_STATED = re.compile(
    rf"(?:^|, |\b(?:overall|therefore|thus|hence|conclusion|summary|result|opinion|so|reason),? )"
    rf"{_ANY_SIDE}{_WHOSE} (?:is|was|wins|performed|did) {_BETTER}\b(?! (?:at|in|for|on|with|when|suited)\b)",
    _FLAGS,
)
_TIES = re.compile(
    r"\b(?:it is|it['’]s|this is|call it|declare(?: it)?) (?:therefore )?a (?:tie|draw)\b"
    rf"|{_I} (?:rate|rank|score) (?:both|the two) (?:assistants|{_WORK}s) equally\b"
    rf"|(?:\b(?:both|the two) (?:\w{{1,20}} )?(?:assistants?|{_WORK}s)['’]?(?: {_WORK}s)?|{SIDE} and {SIDE})"
    r"(?: as| are| is| to be){0,2} (?:therefore |equally )?(?:equal|equivalent|tied)"
    r"(?: in (?:terms of )?(?:their )?(?:overall )?(?:quality|performance))?(?=\W{0,3}\Z)",
    _FLAGS,
)
# A word that each of these holds, looked for first: most sentences have none of them.
_HINTS = (
    (re.compile(r"\b(?:i|we)\b", _FLAGS), _OWN),
    (re.compile(r"\b(?:better|best|superior|winner|stronge(?:r|st)|prefer(?:able|red))\b", _FLAGS), (_STATED,)),
)
_TIE_HINT = re.compile("tie|draw|equal|equivalent", _FLAGS)
_DENIES = re.compile(
    r"\b(?:not|never|cannot|hardly|whether|unless|neither|nor|if|which|who|asked|says|said|claims)\b|n['’]t\b", _FLAGS
)
_HAD_TO = re.compile(r"\bif (?:i|we) (?:had to|have to|must|were to|was to|was forced to|am to)\b", _FLAGS)
_DEPENDS = re.compile(
    r"\b(?:if|unless|depending|depends|provided that|when (?:you|the user|users))\b"
    r"|\b(?:for|to) (?:users|those|people|someone|anyone|beginners|readers)\b",
    _FLAGS,
)
_BOTH = re.compile(
    rf"{_WHOSE}(?: as[\w ]{{1,30}})?,? (?:or|and|and/or|but) (?:also )?(?:i )?(?:would )?(?:also )?"
    rf"(?:choose |recommend )?{_ANY_SIDE}",
    _FLAGS,
)
_ALSO = re.compile(r"\balso (?:choose|recommend|select|pick|go)\b", _FLAGS)
_REASONS = re.compile(r"\b(?:because|as|since|due to|given)\b|, which\b", _FLAGS)
_LABELS = {"1": "first", "a": "first", "first": "first", "2": "second", "b": "second", "second": "second"}


def _sentences(reply: Spoken) -> list[str]:
    return [one for line in reply.lines for one in _STOP.split(line)]


def _stated(pattern: re.Pattern[str], sentence: str) -> Iterator[str]:
    """What the pattern's one group that matched says, for each decision in a sentence, or that it is unclear."""
    for count, match in enumerate(pattern.finditer(sentence)):
        if count == _DECISIONS_A_SENTENCE:
            yield UNCLEAR
            return
        label = next((group for group in match.groups() if group is not None), "tie")
        yield label.lower() if _stands(sentence, match) else UNCLEAR


def _stands(sentence: str, match: re.Match[str]) -> bool:
    """Whether what is said before and after a decision leaves it one."""
    before = _HAD_TO.sub("", sentence[: match.start()])
    after = sentence[match.end() :]
    reasons = _REASONS.search(after)
    return not (
        _DENIES.search(before)
        or _DEPENDS.search(after[: reasons.start()] if reasons else after)
        or sentence.rstrip().endswith("?")
        or _ALSO.search(match.group())
        or _BOTH.match(after)
    )


def chosen(reply: Spoken) -> set[str]:
    """Sides that the judge says it chose, prefers or finds better on the whole: `first`, `second`; or `tie`."""
    found: set[str] = set()
    for sentence in _sentences(reply):
        hinted = [pattern for hint, patterns in _HINTS if hint.search(sentence) for pattern in patterns]
        found |= {_LABELS.get(label, UNCLEAR) for pattern in hinted for label in _stated(pattern, sentence)}
        if _TIE_HINT.search(sentence):
            found |= {label if label == UNCLEAR else "tie" for label in _stated(_TIES, sentence)}
    return found


def answered(token: str) -> dict[str, Form]:
    """Forms of a label inside a sentence, the label given as a pattern.

    `chosen-label`: "I choose 2 as the better answer", anywhere. `answer-is`: "Therefore, the answer is 3, as both are
    equivalent", in the last sentence, since elsewhere it may be the answer to the instruction.
    """
    end = r"(?![\w/%]|[.,][0-9]| (?:out|points?|of|or|and)\b)"
    labelled = r"(?:answer |option |choice |output |number )?"
    says = re.compile(rf"{_I} (?:choose|chose|select|pick|prefer|recommend|go with) {labelled}({token}){end}", _FLAGS)
    is_it = re.compile(
        r"\b(?:my|the)(?: final| preferred)? (?:answer|choice|output|verdict|decision|preference)"
        rf" (?:is|would be|should be):? {labelled}({token}){end}",
        _FLAGS,
    )

    def read(pattern: re.Pattern[str], sentences: list[str]) -> set[str]:
        return {label for sentence in sentences for label in _stated(pattern, sentence)}

    return {
        "chosen-label": lambda reply: read(says, _sentences(reply)),
        "answer-is": lambda reply: read(is_it, _sentences(reply)[-1:]),
    }
