"""Decisions in sentences: the side that a judge says it chose, prefers or finds better, and labels inside of prose.

All repetitions in patterns are bounded, so that the time to read a reply is linear in its length.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from venire.judges.parsing.reply_text import ReplyText

VerdictPattern = Callable[[ReplyText], set[str]]
"""A reply in, the labels out that it states in this form."""

UNCLEAR = "?"
"""A label of no dialect: what is said beside it cannot be read either."""

SIDE = (
    r"(?:assistant|response|answer|model|option|system|completion|score|output|submission)"
    r"(?:[ _-]|'s )?\(?([12ab])\)?(?!\w|\.[0-9])"
)
"""One of the two sides by its name."""

_DECISIONS_A_SENTENCE = 8
"""A sentence that decides more often than this is no decision."""
_FLAGS = re.IGNORECASE | re.ASCII


class _LatePattern:
    """A pattern that is compiled when it is first used, and then as quick as another: its methods are kept."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(self._pattern, _FLAGS), name)
        setattr(self, name, found)
        return found


def _late(pattern: str) -> re.Pattern[str]:
    """A pattern of sides. Together they take a tenth of a second to compile, and most runs use few of them."""
    return cast("re.Pattern[str]", _LatePattern(pattern))


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
    _late(pattern)
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
_CRITERION = r"\b(?! (?:at|in|for|on|with|when|suited)\b)(?! \w{1,16}(?:ed|en|ing)\b)"
"""Not behind it: what a side is better at, or how it is made ("better divided into parts")."""
_STATED = _late(
    rf"(?:^|, |\b(?:overall|therefore|thus|hence|conclusion|summary|result|opinion|so|reason),? )"
    rf"{_ANY_SIDE}{_WHOSE} (?:is|was|wins|performed|did) {_BETTER}{_CRITERION}",
)
_TIES = _late(
    r"\b(?:it is|it['’]s|this is|call it|declare(?: it)?) (?:therefore )?a (?:tie|draw)\b"
    rf"|{_I} (?:rate|rank|score) (?:both|the two) (?:assistants|{_WORK}s) equally\b"
    rf"|(?:\b(?:both|the two) (?:\w{{1,20}} )?(?:assistants?|{_WORK}s)['’]?(?: {_WORK}s)?|{SIDE} and {SIDE})"
    r"(?: as| are| is| to be){0,2} (?:therefore |equally )?(?:equal|equivalent|tied)"
    r"(?: in (?:terms of )?(?:their )?(?:overall )?(?:quality|performance))?(?=\W{0,3}\Z)",
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
_BOTH = _late(
    rf"{_WHOSE}(?: as[\w ]{{1,30}})?,? (?:or|and|and/or|but) (?:also )?(?:i )?(?:would )?(?:also )?"
    rf"(?:choose |recommend )?{_ANY_SIDE}",
)
_ALSO = re.compile(r"\balso (?:choose|recommend|select|pick|go)\b", _FLAGS)
_REASONS = re.compile(r"\b(?:because|as|since|due to|given)\b|, which\b", _FLAGS)
_LABELS = {
    **dict.fromkeys(("1", "a", "one", "first"), "first"),
    **dict.fromkeys(("2", "b", "two", "second"), "second"),
}


def split_text(line: str) -> list[str]:
    """The sentences of one line."""
    return _STOP.split(line)


def _sentences(reply: ReplyText) -> list[str]:
    return [sentence for line in reply.lines for sentence in split_text(line)]


def _decisions(pattern: re.Pattern[str], sentence: str) -> Iterator[str]:
    """The text of the pattern's one group that matched, for each decision in a sentence, or `UNCLEAR`."""
    for count, match in enumerate(pattern.finditer(sentence)):
        if count == _DECISIONS_A_SENTENCE:
            yield UNCLEAR
            return
        label = next((group for group in match.groups() if group is not None), "tie")
        yield label.lower() if _is_decision(sentence, match) else UNCLEAR


def _is_decision(sentence: str, match: re.Match[str]) -> bool:
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


def sides_chosen(reply: ReplyText) -> set[str]:
    """Sides that the judge says it chose, prefers or finds better on the whole: `first`, `second`; or `tie`."""
    return {label for sentence in _sentences(reply) for label in _chosen_in(sentence)}


def _chosen_in(sentence: str) -> set[str]:
    hinted = [pattern for hint, patterns in _HINTS if hint.search(sentence) for pattern in patterns]
    found = {_LABELS.get(label, UNCLEAR) for pattern in hinted for label in _decisions(pattern, sentence)}
    if _TIE_HINT.search(sentence):
        found |= {label if label == UNCLEAR else "tie" for label in _decisions(_TIES, sentence)}
    return found


_SIDE_WORD = rf"(?:assistant|model|option|system|{_WORK})"
_X = (
    rf"(?:(?:the )?(?:{_WORK} (?:given |provided )?(?:by|of|from) )?(?:the )?{_SIDE_WORD}[ _-]?\(?"
    r"(?:([12])|(one|two)|((?-i:[AB])))\)?(?!\w|\.[0-9])"
    rf"|the (first|second)\b(?: {_SIDE_WORD}\b)?|number (?:(one|two)|([12]))\b"
    r"|(?<![\w.,<>=])(?:([12])|((?-i:[AB])))(?= (?:is|was|wins|beats|outperforms|loses)\b)"
    r"|(?<= )((?-i:[AB]))(?=[.!,;]|\Z))"
)
"""A side, also by a word for its number or by its bare letter."""
_BARE_X = _late(_X)
_THE_REPLY = rf"(?:one|reply|{_WORK})"
_PREFERRED = tuple(
    _late(pattern)
    for pattern in (
        rf"{_X}{_WHOSE} {_HOW}(?:(?:is|was|seems|remains) (?:{_BETTER}|the {_HOW}\w{{1,12}} one){_CRITERION}"
        rf"|(?:wins|won|prevails|prevailed){_CRITERION}"
        r"|(?:beats|outperforms|outperformed|surpasses|surpassed|outdoes|outclasses|defeats)\b"
        r"|deserves (?:the win|the victory|to win|to be preferred)\b"
        rf"|(?:gives|gave|provides|provided|offers|offered|has|wrote) the {_HOW}"
        rf"(?:better|best|stronger|strongest|superior) {_THE_REPLY}\b)",
        rf"\bonly {_X}{_WHOSE} (?:is|was) (?:correct|right|true|accurate|valid)\b",
        rf"\bmy (?:\w{{1,12}} )?(?:pick|choice|preference|vote|favou?rite|winner)"
        rf" (?:is|was|would be|goes to|would go to)(?: for)? {_X}",
        rf"{_I} (?:prefer|choose|pick|select|favou?r|go with|vote for) {_X}",
        rf"{_I} (?:find|found|consider|judge|think) {_X}{_WHOSE} (?:to be )?{_BETTER}{_CRITERION}",
        rf"\bthe {_HOW}(?:better|best|stronger|strongest|superior|winning|preferred) {_THE_REPLY}(?: overall)?"
        rf" (?:is|was|comes from|came from) {_X}",
    )
)
_REJECTED = _late(
    rf"{_X}{_WHOSE} (?:(?:is|was) {_HOW}(?:the )?(?:worse|worst|inferior|weaker|weakest|loser){_CRITERION}"
    rf"|(?:loses|lost){_CRITERION})",
)
_PREFERENCE_HINT = re.compile(
    r"better|best|superior|winn?|won\b|strong|prefer|prevail|beats|outperform|surpass|outd|outcl|defeat|deserve|only|pick"
    r"|choice|vote|favou?r|choose|select|go with|wors|inferior|weak|lose|lost",
    _FLAGS,
)
_OTHER = {"first": "second", "second": "first"}
_LAST_SENTENCES = 4
"""Sentences before a label in which a judge's last word on both sides is looked for."""


def sides_named(sentence: str) -> set[str]:
    """The sides that a sentence names: `first`, `second`."""
    return {_side(match) for match in _BARE_X.finditer(sentence)}


def preferred_side(lines: Sequence[str]) -> str | None:
    """The side that one of the last sentences prefers, the last that does: `first`, `second`; None for both, or none.

    Weaker signs count than for a verdict, since a label is only held against them.
    """
    left = _LAST_SENTENCES
    for line in reversed(lines):
        for sentence in reversed(split_text(line)):
            left -= 1
            if left < 0:
                return None
            if not _PREFERENCE_HINT.search(sentence):
                continue
            found = _chosen_in(sentence)
            found |= {
                _side(match)
                for pattern in _PREFERRED
                for match in pattern.finditer(sentence)
                if _is_decision(sentence, match)
            }
            found |= {_OTHER[_side(match)] for match in _REJECTED.finditer(sentence) if _is_decision(sentence, match)}
            if found:
                return next(iter(found)) if len(found) == 1 and found <= set(_OTHER) else None
    return None


def _side(match: re.Match[str]) -> str:
    label = next(group for group in match.groups() if group is not None)
    return _LABELS[label.lower()]


def labels_in_sentences(token: str) -> dict[str, VerdictPattern]:
    """Forms of a label inside a sentence, the label given as a pattern.

    `chosen-label`: "I choose 2 as the better answer", anywhere. `answer-is`: "Therefore, the answer is 3, as both are
    equivalent", in the last sentence, since elsewhere it may be the answer to the instruction.
    """
    end = r"(?![\w/%]|[.,][0-9]| (?:out|points?|of|or|and)\b)"
    labelled = r"(?:answer |option |choice |output |number )?"
    says = _late(rf"{_I} (?:choose|chose|select|pick|prefer|recommend|go with) {labelled}({token}){end}")
    is_it = _late(
        r"\b(?:my|the)(?: final| preferred)? (?:answer|choice|output|verdict|decision|preference)"
        rf" (?:is|would be|should be):? {labelled}({token}){end}",
    )

    def read(pattern: re.Pattern[str], sentences: list[str]) -> set[str]:
        return {label for sentence in sentences for label in _decisions(pattern, sentence)}

    return {
        "chosen-label": lambda reply: read(says, _sentences(reply)),
        "answer-is": lambda reply: read(is_it, _sentences(reply)[-1:]),
    }
