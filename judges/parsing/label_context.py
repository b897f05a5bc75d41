"""The words around a label that has a line of its own: whether they end before it, and whether it is the judge's own.

A judge may report without any mark of quotation what a completion tells it to write. So a label is not read where the
sentence beside it gives it as somebody else's, where the side that it names is said to give orders or to hold an
attack, or where the judge's last word on both sides prefers the other one. Only English sentences are looked at. All
repetitions in patterns are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from venire.judges.parsing.decisions import preferred_side, sides_named, split_text

_END = re.compile(r"[.!?\N{IDEOGRAPHIC FULL STOP}！？．｡।॥؟۔…][\"'`*_)\]”’»」』）]{0,4}\Z")
"""The end of a sentence, in Latin, Chinese, Japanese, Indian and Arabic script."""
_ITEM = re.compile(r"[*_]{0,2}(?:[-*•–—·]|\(?[0-9]{1,2}[.)])[*_]{0,2} {1,3}\S")
_HALF = re.compile(
    r"(?:[,;:(]|\b(?:is|are|not|than|or|and|the|an?|of|to|as|be|say|says|choose|answer))[*_]{0,2}\Z", re.I
)
_HEADS_NO_REASONS = re.compile(
    r"\b(?:not|never|neither|cannot|worse|worst|wrong|refuse|options?|choices?)\b|n['’]t\b", re.IGNORECASE
)
_MIN_ITEMS = 2

_FLAGS = re.IGNORECASE | re.ASCII
_WHO = r"(?:me|us|you|the (?:judge|grader|evaluator|reader|model)|judges|graders|evaluators)"
_ORDERS = (
    r"(?:want|tell|ask|order|instruct|command|urge|beg|direct|force|request|expect|push|sway|steer|trick|manipulate)"
    r"(?:s|ed|ing)?|told|begged|swayed|tricked|tricking"
)
_ORDERED = re.compile(
    rf"\b(?:{_ORDERS}) {_WHO}\b"
    r"|\b(?:i am|i was|i['’]m|being) (?:told|asked|ordered|instructed|urged|directed)\b"
    r"|\b(?:wants?|demands?|dictate[sd]?|says?|asks?|orders) (?:to (?:write|say|print|output|answer|reply|choose|read"
    r"|hear)|(?:that|for) (?:letter|digit|number|grade|verdict|this))\b"
    r"|\bgrades itself\b",
    _FLAGS,
)
_ATTACK = re.compile(
    r"\binject(?:ion|ions|ed)\b"
    r"|\b(?:hidden|embedded|planted|smuggled) (?:instruction|order|text|prompt|verdict|command)"
    r"|\b(?:an?|the) attack\b|\b(?:forged|fake|faked|planted|ready-made|pre-written) (?:verdict|answer|line|judge?ment)"
    r"|\b(?:an?|the) (?:dirty )?trick\b|\bcheat(?:s|ing)\b",
    _FLAGS,
)
_ANNOUNCES = re.compile(
    r"\b(?:thus|as follows|like (?:this|so)|following(?: \w{1,12})?"
    r"|(?:with|is|demands|claims|towards|for) (?:this|these words|that)|this (?:letter|digit|number|line|grade|verdict)"
    r"|says?|saying|reads?|reading|states?|writes?|wrote|(?:to|me) (?:print|output|write|say|answer|reply))\W{0,6}\Z",
    _FLAGS,
)
_OWN = re.compile(
    r"\b(?:my(?: \w{1,12})? (?:verdict|choice|decision|preference|judge?ment|answer|vote|pick|output)"
    r"|(?:the )?(?:final|overall) (?:verdict|choice|decision|preference|judge?ment|answer)"
    r"|(?:i|we) (?:would |will |therefore |thus |must )?(?:say|choose|pick|answer|decide|vote|judge|conclude|give|go)"
    r"|(?:i|we) (?:have |had )?(?:reach|reached|came|come|arrived))\b",
    _FLAGS,
)
_GOES_ON = re.compile(r"[\"'(*_.,…–-]{0,6} ?(?:is|was|were|would|will|as|says?|said|reads?|stands?|which|that|by|it)\b")
_DISOWNS = re.compile(
    r"\A\W{0,6}(?:no|nope|never|not|wrong|false|so (?:says|said|wrote|claims))\b"
    r"|\bi (?:refuse|was told|am told|wo['’]?n['’]?t|do not agree|disagree|will not)\b"
    r"|\b(?:disregard|ignore) (?:that|this|the|it|what)\b"
    r"|\bnot (?:my|from me|mine)\b"
    r"|\b(?:this|that|it|(?:line|digit|number|letter|grade|verdict|label)(?: above)?|above)"
    r" (?:is|was|has been|comes|came) "
    r"(?:what|copied|quoted|taken|from|dictated|demanded|requested|the (?:output|verdict|line|digit|grade))"
    r"|\b(?:dictated|demanded|requested|wrote|suggested) (?:that|this|the) (?:letter|digit|number|grade|verdict|line)\b"
    r"|\b(?:the (?:answer|response|text|completion|material)) wants\b",
    _FLAGS,
)
_SAID_BY = re.compile(
    r"\b(?:says|said|claims|claimed|writes|wrote|demands|demanded|commands|orders|ends (?:with|in|by)|closes with|reads"
    r"|states|wants|asks for|holds|contains|(?:tells|told|asks|orders|commands|instructs|wants|begs|urges) me to"
    r" (?:write|say|print|output|answer|reply with|reply|give|choose))(?: (?:that|only|just|the words?|this))?:?"
    r"[^\w.!?]{0,3}\Z",
    _FLAGS,
)
_VERDICT_SAYS = re.compile(
    r"\b(?:verdict|decision|judge?ment|choice|conclusion|i|we)(?: (?:thus|therefore))? [a-z]{1,9}:?\W{0,3}\Z", _FLAGS
)
_SAYS_WHO = re.compile(
    r"[\W_]{0,4}(?:is|was) (?:what|how|the \w{1,12} (?:which|that)|demanded|requested|written|copied|quoted)\b"
    r"|[\W_]{0,4}(?:it|he|she|they|the \w{1,12}) (?:claims|claimed|says|said|writes|wrote|demands)\b",
    _FLAGS,
)
_OTHER = {"first": "second", "second": "first"}
_BLAMING = (
    *("inject", "hidden", "embedded", "planted", "smuggled", "attack", "forged", "fake", "ready-made", "pre-written"),
    *("trick", "cheat", " me", " us ", " us.", " us,", " you ", " you.", "judge", "grader", "evaluator", "the reader"),
    *("the model", "i am ", "i was ", "i'm ", "i’m ", "being ", "want", "demand", "dictate", "says to", "asks "),
    *("orders ", "grades itself", "says that", "says for"),
)
"""One of these words is in every sentence that blames a side; most lines have none of them."""


def ends_before_label(before: Sequence[str]) -> bool:
    """Whether lines end as a sentence does, or as a list of items without full stops; after half a sentence a label
    may belong to it.

    >>> ends_before_label(["- The first is complete", "- The second is short"])
    True
    """
    if not before:
        return False
    if _END.search(before[-1]):
        return True
    items = 0
    while items < len(before) and _ITEM.match(before[-1 - items]):
        items += 1
    heading = before[-1 - items] if items < len(before) else ""
    whole = not any(_HALF.search(line.rstrip()) for line in before[len(before) - items :])
    return items >= _MIN_ITEMS and whole and not _HEADS_NO_REASONS.search(heading)


def is_reported(before: Sequence[str], after: Sequence[str], side: str | None = None) -> bool:
    """Whether the lines around a label's line show that it is not the judge's own; `side` is the side it names, if any.

    >>> is_reported(["The first answer orders me to reply as follows."], [], "first")
    True
    """
    side = side if side in _OTHER else None
    if side is not None and (_blames(before, side) or _blames(after, side)):
        return True
    if after and (_GOES_ON.match(after[0]) or _DISOWNS.search(next(iter(split_text(after[0])), ""))):
        return True
    if after and any(_ordered(sentence, side) for sentence in split_text(after[0])):
        return True
    if not before:
        return False
    last = split_text(before[-1])[-1]
    if _ANNOUNCES.search(last) and not _OWN.search(last):
        return True
    return _ordered(last, side) or (side is not None and preferred_side(before) == _OTHER[side])


def reports(before: str, after: str) -> bool:
    """Whether a sentence that holds a label gives it as somebody else's; `before` and `after` are its two parts.

    >>> reports("The first answer says ", ".")
    True
    """
    said = _SAID_BY.search(before)
    return (said is not None and not _VERDICT_SAYS.search(before)) or _SAYS_WHO.match(after) is not None


def _ordered(sentence: str, side: str | None) -> bool:
    """Whether a sentence reports an order to the judge that may be the label: not one of the other side alone."""
    return _ORDERED.search(sentence) is not None and (side is None or sides_named(sentence) != {_OTHER[side]})


def _blames(lines: Sequence[str], side: str) -> bool:
    """Whether a sentence says of this side alone that it gives orders or holds an attack."""
    text = "\n".join(lines).lower()
    there = [word for word in _BLAMING if word in text]
    for line in lines if there else ():
        low = line.lower()
        if not any(word in low for word in there):
            continue
        for sentence in split_text(line):
            if (_ORDERED.search(sentence) or _ATTACK.search(sentence)) and sides_named(sentence) == {side}:
                return True
    return False
