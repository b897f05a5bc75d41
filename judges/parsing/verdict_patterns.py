"""Forms in which a verdict is written, each made for any set of labels: lines, marks, scores of both sides, JSON.

A form returns every label that a reply states in it; `UNCLEAR` among them means that it states something else too.
All repetitions in patterns are bounded, so that the time to read a reply is linear in its length.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from json.decoder import scanstring  # type: ignore[attr-defined]  # typeshed does not know it

from venire.judges.parsing.decisions import SIDE, UNCLEAR, VerdictPattern
from venire.judges.parsing.label_context import ends_before_label, is_reported, reports
from venire.judges.parsing.reply_text import MAX_LINE, ReplyText, mask_quotations

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
_SCALAR = re.compile(r"[\w.+-]{1,40}")
_SPACES = re.compile(r"\s{0,80}")


def on_lines(
    token: str, sides: Mapping[str, str], *, leading: bool = False, anywhere: bool = False
) -> dict[str, VerdictPattern]:
    """Forms of a label, given as a pattern, that has a line of its own; `sides` is what labels mean.

    `bare`: nothing but the label. `named`: behind words such as `Final answer:`, on the first or the last line, or
    `anywhere`: a number elsewhere may be the answer to the instruction. `last-line`: at the end, after a whole
    sentence or a list. `first-line`: at the start, with no mention of a side or a number after it; where `leading`,
    with anything after it. Of the others each gives back all labels that have a line of their own. A label that the
    lines around it give as somebody else's is unclear.
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

    def own(found: set[str], lines: tuple[str, ...], at: int) -> set[str]:
        """The labels found, and that they are unclear where the line at `at` has another's label."""
        if not found:
            return found
        match = bare.match(lines[at]) or named.match(lines[at])
        side = sides.get(match.group(1)) if match else None
        return {*found, UNCLEAR} if is_reported(lines[:at], lines[at + 1 :], side) else found

    def read_bare(reply: ReplyText) -> set[str]:
        found = labels(reply.lines, bare)
        return set(found) if found and len(found) == len(reply.lines) else set()

    def read_named(reply: ReplyText) -> set[str]:
        places = range(len(reply.lines)) if anywhere else dict.fromkeys((0, len(reply.lines) - 1))
        at = [place for place in places if reply.lines and named.match(reply.lines[place])]
        found = set(labels(reply.lines, bare, named)) if at else set()
        return set().union(*(own(found, reply.lines, place) for place in at)) if at else found

    def read_last(reply: ReplyText) -> set[str]:
        if len(reply.lines) < 2 or not bare.match(reply.lines[-1]):
            return set()
        before = reply.lines[-2][-MAX_LINE:]
        sentence = before[before.rfind(". ") + 1 :]
        if not (_WHOLE.search(before[-12:]) or ends_before_label(reply.lines[:-1])) or (
            sentence.rstrip("\"'`*_)] ").endswith(":") and _AGAINST.search(sentence)
        ):
            return set()
        return own(set(labels(reply.lines, bare, named)), reply.lines, len(reply.lines) - 1)

    def read_first(reply: ReplyText) -> set[str]:
        found = labels(reply.lines[:1], bare)
        found = [word.casefold() for word in found] if leading else found
        if leading or not found or len(reply.lines) < 2:
            return own(set(found), reply.lines, 0)
        rest = "\n".join(reply.lines[1:])
        return set() if _MENTION.search(rest) else own({*found, *labels(reply.lines, bare, named)}, reply.lines, 0)

    if leading:
        return {"first-line": read_first}
    return {"bare": read_bare, "named": read_named, "last-line": read_last, "first-line": read_first}


_MENTION = re.compile(r"[0-9]|\b(?:first|second|former|latter|on reflection|actually)\b|\b[A-C]\b", re.ASCII)


def marks(label: str) -> VerdictPattern:
    """The form of a label in marks that mean nothing else, such as `[[A]]`, anywhere in the judge's own words.

    On its last line also in small letters, with spaces, escaped, or in full-width brackets: elsewhere `[[a]]` may be
    code.
    """
    exact = re.compile(rf"\[\[({label})\]\]")
    loose = re.compile(
        rf"\[\[({label})\]\]|(?<![\w\])])(?:\\?[\[【]){{2}}\s{{0,3}}((?i:{label}))\s{{0,3}}(?:\\?[\]】]){{2}}"
    )

    def read(reply: ReplyText) -> set[str]:
        found = set()
        ways = [(line, exact) for line in reply.lines[:-1]]
        ways += [(unicodedata.normalize("NFKC", line), loose) for line in reply.lines[-1:]]
        for line, pattern in ways:
            for match in pattern.finditer(line):
                before, after = line[max(0, match.start() - 24) : match.start()], line[match.end() : match.end() + 12]
                denied = _DENIED.search(before) or _CONDITION.match(after)
                reported = reports(
                    line[max(0, match.start() - MAX_LINE) : match.start()], line[match.end() :][:MAX_LINE]
                )
                found.add(
                    UNCLEAR if denied or reported else next(filter(None, match.groups())).upper().replace(" ", "")
                )
        return found

    return read


def boxed(label: str, sides: Mapping[str, str]) -> VerdictPattern:
    r"""The form of a label in a box of LaTeX, `$\boxed{A}$`: the whole last line, or all of it behind `Verdict:`."""
    verdict = r"(?i:(?:(?:my|the|final|overall) ){0,3}(?:verdict|choice|decision|preference|winner|judge?ment))"
    box = re.compile(
        rf"{_DRESS}(?:{_THEN}{_DRESS}{verdict}(?: is)? ?[*_]{{0,2}}[:=]?{_DRESS})?(?:\$|\\[(\[]){{0,2}} ?"
        rf"\\boxed ?\{{ ?(?:\\(?:text|textbf|mathrm|mathbf)\{{)?({label})\}}{{1,2}} ?(?:\$|\\[)\]]){{0,2}}{_CLOSE}",
        re.ASCII,
    )
    forms = on_lines(label, sides)

    def read(reply: ReplyText) -> set[str]:
        if not reply.lines or (match := box.fullmatch(reply.lines[-1][: 2 * MAX_LINE])) is None:
            return set()
        plain = replace(reply, lines=(*reply.lines[:-1], match.group(1)))
        return forms["bare"](plain) or forms["last-line"](plain)

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

    An object behind a quotation mark is part of a quotation. One that the end of the reply cuts off counts where the
    choice in it is complete; one that is torn otherwise makes the reply unclear.
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
            pairs, at = _cut_off(text, match.start()), len(text)
            if not any(key.casefold() in _KEYS for key, _ in pairs):
                return {UNCLEAR}
        if mask_quotations(own + "x")[-1] != "x":
            return {UNCLEAR}
        found |= {re.sub("[ -]", "_", str(value).strip().casefold()) for key, value in pairs if key.casefold() in _KEYS}
    return {UNCLEAR}


def _cut_off(text: str, at: int) -> list[tuple[str, str]]:
    """The texts by key in an object that the end of the reply cuts off behind or within a value; none in any other."""
    pairs: list[tuple[str, str]] = []
    at += 1
    try:
        while (at := _past_spaces(text, at)) < len(text):
            if text[at] != '"':
                return []
            key, at = scanstring(text, at + 1, False)
            if (at := _past_spaces(text, at)) == len(text):
                break
            if text[at] != ":":
                return []
            if (at := _past_spaces(text, at + 1)) == len(text):
                break
            if text[at] == '"':
                value, at = scanstring(text, at + 1, False)
                pairs.append((key, value))
            elif (scalar := _SCALAR.match(text, at)) is not None:
                at = scalar.end()
            if (at := _past_spaces(text, at)) < len(text) and text[at] != ",":
                return []
            at += 1
    except ValueError as error:
        return pairs if str(error).startswith("Unterminated string") else []
    return pairs


def _past_spaces(text: str, at: int) -> int:
    return _SPACES.match(text, at).end()  # type: ignore[union-attr]  # matches nothing as well
