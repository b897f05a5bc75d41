"""The protocol of a chat request, recognised by its own words: the text outside the fences of the question.

Nothing is sent for the simulator's sake. A question that was made from the prompt of a registered protocol, also of
another package, is of that protocol. Prompts may be a user's own: what a reader needs in order to read a reply must
stand in any prompt of its protocol, and that is what is looked for then.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache

from venire.judges import PROTOCOLS, prompts
from venire.judges.protocols.criteria import CRITERIA
from venire.simulation.dialect import Ask

__all__ = ["Asked", "recognise"]

_TURN = re.compile(r"^Turn \d+, (?:user|assistant)", re.MULTILINE)
_LABEL = re.compile(r"^Answer \w+:$", re.MULTILINE)
_NUMBERED = re.compile(r"^\W*[0-9]+[.)]\s", re.MULTILINE)
_ONE_OR_TWO = tuple(re.compile(rf"(?<![\w.]){digit}(?!\w|\.[0-9])") for digit in "12")
_BEST = re.compile(r"\b(?:best|exactly|top) ([0-9]+)\b")


@dataclass(frozen=True, slots=True)
class Asked:
    """A protocol by its name, the fenced texts of the question, and how many are to be ranked where not all are."""

    protocol: str
    texts: tuple[str, ...]
    best: int | None = None


def recognise(ask: Ask) -> Asked:
    """The protocol of a request and what it shows; two stages where nothing says otherwise."""
    if not ask.texts:
        return Asked("two-stage" if ask.question.startswith(_openings()) else "generate", ())
    protocol, best = _by_words(ask.words, ask.top_logprobs > 0, PROTOCOLS.changes)
    return Asked(protocol, ask.texts, best)


@lru_cache(maxsize=64)
def _by_words(outside: str, listed: bool, changes: int) -> tuple[str, int | None]:
    """The protocol that a question's own words ask for, which are the same in all of a judge's questions.

    With it how many are to be ranked, where not all are. `listed` says whether log-probabilities are asked for,
    `changes` how often the registry of protocols has changed.
    """
    words = _LABEL.sub("", _TURN.sub("", outside))
    protocol = _of_template(outside, changes) or _protocol(words, words.casefold(), listed)
    best = _BEST.search(words) if protocol == "listwise" else None
    return protocol, int(best[1]) if best else None


def _protocol(words: str, lower: str, listed: bool) -> str:
    if all(name in lower for name in CRITERIA):
        return "criteria"
    if "A>>B" in words:
        return "five-point"
    if "NO_ECHO" in words:
        return "echo"
    if re.search(r"\bnot[ _-]attempted\b", lower):
        return "direct-reference" if re.search(r"\breference\b", lower) else "direct"
    if re.search(r"\brank", lower):
        return "listwise"
    if listed or all(digit.search(_NUMBERED.sub("", words)) for digit in _ONE_OR_TWO):
        return "binary"
    return "two-stage"


def _of_template(outside: str, changes: int) -> str | None:
    """The protocol whose own prompt a question was made from; of several that fit the one with most words."""
    words = " ".join(outside.split())
    return next((protocol for pattern, protocol in _templates(changes) if pattern.fullmatch(words)), None)


@lru_cache(maxsize=1)
def _templates(changes: int) -> tuple[tuple[re.Pattern[str], str], ...]:
    """What the words of each protocol's own questions look like, those with most words first."""
    found = []
    for protocol, entry in PROTOCOLS.items():
        for name in entry.prompts if entry.rehearse is not None else ():
            template = prompts.load(entry.folder, name)
            if template.get_identifiers():
                text = template.substitute(dict.fromkeys(template.get_identifiers(), "\0"))
                parts = [" ".join(part.split()) for part in text.split("\0")]
                found.append((len("".join(parts)), r"\s?.*?\s?".join(map(re.escape, parts)), protocol))
    return tuple((re.compile(pattern), protocol) for _, pattern, protocol in sorted(found, key=lambda one: -one[0]))


@cache
def _openings() -> tuple[str, ...]:
    """How the questions of judges begin: one that shows nothing in fences is still no instruction for a contestant."""
    sent = [(entry.folder, name) for entry in PROTOCOLS.values() for name in entry.prompts]
    texts = (prompts.load(folder, name) for folder, name in sent)
    return tuple(text.template.partition("$")[0] for text in texts if text.get_identifiers())
