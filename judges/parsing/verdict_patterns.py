"""Forms in which a verdict is written, each made for any set of labels: lines, marks, scores of both sides, JSON.

A form returns every label that a reply states in it; `UNCLEAR` among them means that it states something else too.
All repetitions in patterns are bounded, so that the time to read a reply is linear in its length.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

from venire.judges.parsing.reply_text import MAX_LINE, ReplyText, mask_quotations

__all__ = [
    "SIDE",
    "UNCLEAR",
    "VerdictPattern",
    "in_json",
    "labels_in_sentences",
    "leading_scores",
    "marks",
    "named_scores",
    "on_lines",
    "sides_chosen",
]

VerdictPattern = Callable[[ReplyText], set[str]]
"""A reply in, the labels out that it states in this form."""

UNCLEAR = "?"
"""A label of no dialect: what is said beside it cannot be read either."""

SIDE = (
    r"(?:assistant|response|answer|model|option|system|completion|score|output|submission)"
    r"(?:[ _-]|'s )?\(?([12ab])\)?(?!\w|\.[0-9])"
)
"""One of the two sides by its name."""

_DRESS = r"[\s\"'`*_()\[\]{}#]{0,20}"
_CLOSE = r"[\s\"'`*_.!()\[\]{}#]{0,20}"
_THEN = r"(?i:(?:therefore|thus|hence|so|overall|in conclusion|in summary),? )?"
_NAMED = (
    r"(?i:(?:(?:my|the|final|overall|preferred|better|best) ){0,4}"
    r"(?:answer|verdict|choice|decision|preference|output|winner|judge?ment))"
)
_TAKEN_BACK = re.compile(rf"{_NAMED} ?(?:is|:|=)|(?i:\b(?:actually|on reflection|instead|rather)\b)")
_WHOLE = re.compile(r"(?:[=/] ?[0-9]{1,3}|[.!?:;)\]\N{OBJECT REPLACEMENT CHARACTER}])[\"'`*_)\]]{0,4}\Z")
_AGAINST = re.compile(r"\b(?:not|never|neither|nor|cannot|whether|unless|worse|worst|wrong|refuse)\b|n['’]t\b", re.I)
_DENIED = re.compile(r"(?:\bnot|n['’]t|\bnever|\bthan|\bneither|\bnor|\bif)(?:\s{1,3}\w{1,12})?\W{0,4}\Z", re.I)
_CONDITION = re.compile(r"\W{0,4}(?:if|unless|when|or|and)\b", re.I)
_SCORE = r"([0-9]{1,3}(?:\.[0-9]{1,2})?)(?!\.?[0-9])"
_SCALE = r"(?: ?(?:/|out of) ?([0-9]{1,3})(?![0-9]))?"
_TWO = re.compile(rf"{_DRESS}{_SCORE}{_SCALE}(?: ?[,|] ?| {{1,4}}|\t){_SCORE}{_SCALE}{_CLOSE}", re.ASCII)
_SIDE_SCORE = re.compile(
    rf"\b{SIDE}(?:['’]s(?: [a-z]{{1,20}}){{1,3}})?[*_]{{0,2}}"
    r"(?: ?[:=][*_]{0,2}| (?:(?:receives|gets|scores|deserves|with) )?an?(?: overall)?(?: score of)?| of)"
    rf" {{0,2}}[*_]{{0,2}}{_SCORE}(?! ?, ?[0-9])",
    re.IGNORECASE | re.ASCII,
)
_PREFERS = re.compile(r"\b(?:slight|slightly|better|higher|edge|superior|outperforms?|outperformed)\b", re.I)
_KEYS = ("choice", "winner", "verdict", "answer", "preference", "preferred", "decision", "judgment", "better")
_OBJECTS = 8
"""A reply with more objects than these is no verdict."""
_DECODER = json.JSONDecoder(object_pairs_hook=list)
"""Pairs, since a key may stand there twice."""
_OBJECT = re.compile(r"\{\s{0,20}\"")


def on_lines(token: str, *, leading: bool = False, anywhere: bool = False) -> dict[str, VerdictPattern]:
    """Forms of a label, given as a pattern, that has a line of its own.

    `bare`: nothing but the label. `named`: behind words such as `Final answer:`, on the first or the last line, or
    `anywhere`: a number elsewhere may be the answer to the instruction. `last-line`: at the end, after a whole
    sentence. `first-line`: at the start, with no mention of a side or a number after it; where `leading`, with
    anything after it. Of the others each gives back all labels that have a line of their own.
    """
    bare = re.compile(rf"{_DRESS}({token}){_CLOSE}\Z", re.ASCII)
    link = rf"(?: (?:is|would be)(?: therefore)?{_DRESS}:?|{_DRESS}[:=]){_DRESS}"
    named = re.compile(rf"{_DRESS}{_THEN}{_DRESS}{_NAMED}{link}({token})(?:{_CLOSE}\Z|\. {{1,3}}(?=[A-Z]))", re.ASCII)

    def labels(lines: tuple[str, ...], *patterns: re.Pattern[str]) -> list[str]:
        found = []
        for line in lines:
            match = next((one for pattern in patterns if (one := pattern.match(line))), None)
            if match is not None:
                found.append(UNCLEAR if _TAKEN_BACK.search(line, match.end()) else match.group(1))
        return found

    def read_bare(reply: ReplyText) -> set[str]:
        found = labels(reply.lines, bare)
        return set(found) if found and len(found) == len(reply.lines) else set()

    def read_named(reply: ReplyText) -> set[str]:
        found = labels(reply.lines if anywhere else (*reply.lines[:1], *reply.lines[-1:]), named)
        return set(labels(reply.lines, bare, named)) if found else set()

    def read_last(reply: ReplyText) -> set[str]:
        if len(reply.lines) < 2 or not bare.match(reply.lines[-1]):
            return set()
        before = reply.lines[-2][-MAX_LINE:]
        sentence = before[before.rfind(". ") + 1 :]
        if not _WHOLE.search(before[-12:]) or (
            sentence.rstrip("\"'`*_)] ").endswith(":") and _AGAINST.search(sentence)
        ):
            return set()
        return set(labels(reply.lines, bare, named))

    def read_first(reply: ReplyText) -> set[str]:
        found = labels(reply.lines[:1], bare)
        found = [one.casefold() for one in found] if leading else found
        if leading or not found or len(reply.lines) < 2:
            return set(found)
        rest = "\n".join(reply.lines[1:])
        return set() if _MENTION.search(rest) else {*found, *labels(reply.lines, bare, named)}

    if leading:
        return {"first-line": read_first}
    return {"bare": read_bare, "named": read_named, "last-line": read_last, "first-line": read_first}


_MENTION = re.compile(r"[0-9]|\b(?:first|second|former|latter|on reflection|actually)\b|\b[A-C]\b", re.ASCII)


def marks(pattern: str) -> VerdictPattern:
    """The form of a label in marks that mean nothing else, such as `[[A]]`, anywhere in the judge's own words."""
    compiled = re.compile(pattern)

    def read(reply: ReplyText) -> set[str]:
        found = set()
        for line in reply.lines:
            for match in compiled.finditer(line):
                before, after = line[max(0, match.start() - 24) : match.start()], line[match.end() : match.end() + 12]
                found.add(UNCLEAR if _DENIED.search(before) or _CONDITION.match(after) else match.group(1))
        return found

    return read


def leading_scores(reply: ReplyText) -> set[str]:
    """Two scores alone on the first line, the first side's first."""
    if not reply.lines or not (match := _TWO.fullmatch(reply.lines[0])):
        return set()
    first, scale, second, other_scale = match.groups()
    return {UNCLEAR} if scale != other_scale else {_higher(float(first), float(second))}


def named_scores(reply: ReplyText) -> set[str]:
    """A score behind each side's name, one a side in the whole reply; equal ones where no word prefers a side."""
    scores: dict[str, set[float]] = {"first": set(), "second": set()}
    for line in reply.lines:
        for match in _SIDE_SCORE.finditer(line):
            scores["first" if match.group(1) in "1aA" else "second"].add(float(match.group(2)))
    (first, second) = scores.values()
    if not first or not second:
        return set()
    verdict = _higher(*first, *second) if len(first) == len(second) == 1 else UNCLEAR
    preferred = verdict == "tie" and any(_PREFERS.search(line) for line in reply.lines)
    return {UNCLEAR if preferred else verdict}


def _higher(first: float, second: float) -> str:
    return "tie" if first == second else "first" if first > second else "second"


def in_json(reply: ReplyText) -> set[str]:
    """The choice under a key such as `winner` of a JSON object, in a sentence or in a block of code that ends a reply.

    An object behind a quotation mark is part of a quotation; one that is torn makes the reply unclear.
    """
    text = "\n".join(reply.unmasked)
    if reply.block is not None:
        text = reply.block if reply.block.strip() in text else f"{text}\n{reply.block}"
    found: set[str] = set()
    at, own = 0, ""
    for _ in range(_OBJECTS):
        if (match := _OBJECT.search(text, at)) is None:
            return found
        own += text[at : match.start()]
        try:
            pairs, at = _DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            return {UNCLEAR}
        if mask_quotations(own + "x")[-1] != "x":
            return {UNCLEAR}
        found |= {re.sub("[ -]", "_", str(value).strip().casefold()) for key, value in pairs if key.casefold() in _KEYS}
    return {UNCLEAR}


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


def _sentences(reply: ReplyText) -> list[str]:
    return [one for line in reply.lines for one in _STOP.split(line)]


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
    found: set[str] = set()
    for sentence in _sentences(reply):
        hinted = [pattern for hint, patterns in _HINTS if hint.search(sentence) for pattern in patterns]
        found |= {_LABELS.get(label, UNCLEAR) for pattern in hinted for label in _decisions(pattern, sentence)}
        if _TIE_HINT.search(sentence):
            found |= {label if label == UNCLEAR else "tie" for label in _decisions(_TIES, sentence)}
    return found


def labels_in_sentences(token: str) -> dict[str, VerdictPattern]:
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
        return {label for sentence in sentences for label in _decisions(pattern, sentence)}

    return {
        "chosen-label": lambda reply: read(says, _sentences(reply)),
        "answer-is": lambda reply: read(is_it, _sentences(reply)[-1:]),
    }
