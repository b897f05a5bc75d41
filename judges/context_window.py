"""Context windows: whether a request fits one, decided before it is sent, and truncation of texts that do not.

A request that is declared to fit does fit, as far as its tokens can be counted here (docs/prompts.md). A truncated
text keeps the fence of the whole text, and marks within it where something is missing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from venire.arena.errors import PromptSize
from venire.arena.records import (
    UNSENT,
    Completion,
    Conversation,
    Material,
    Outcome,
    Protocol,
    Reply,
    Request,
    Status,
    Trial,
)
from venire.judges.conversation import resume
from venire.judges.providers.token_counting import counter
from venire.judges.safety.sanitize import sanitize

_OF_A_REQUEST = 16
_OF_A_MESSAGE = 8
"""Tokens that vendors put around a request and around each of its messages; OpenAI's chat format takes 3 and 4."""

_BYTES_OF_A_CHARACTER = 4
_MIN_TOKENS = 32
"""Tokens below which a completion is not cut: a judge of so little would judge something else."""

_OF_A_STEP = 128
"""Tokens that the words of a later step have at most, as far as room is left for it."""

_TRIES = 6
_COUNTED = 64
"""Texts of which the count is remembered: a step shows again what the step before it showed."""


def tokens_left(request: Request, context: int) -> int:
    """Tokens that the texts of a request may have, so that they and its reply fit into the context."""
    return context - request.max_tokens - _OF_A_REQUEST - _OF_A_MESSAGE * len(request.messages)


def fits(request: Request, context: int, vocabulary: str) -> bool:
    """Whether a request and its reply fit into a context of so many tokens.

    A byte has one token at most, and a character four bytes: nearly all requests are decided by length alone, in a
    microsecond, and texts are counted only near the limit.
    """
    left = tokens_left(request, context)
    texts = _texts(request)
    if _BYTES_OF_A_CHARACTER * sum(map(len, texts)) <= left:
        return True
    if left < 0:
        return False
    return sum(map(_bytes, texts)) <= left or request_tokens(request, vocabulary) <= left


_CLOSER = 0.98
"""What is left of a context once more than its limit was counted there: counts of two texts differ in proportion."""
_BLIND = 0.7
"""What is left of it where nothing was counted, or not to the end."""


def context_after_refusal(request: Request, context: int, vocabulary: str, size: PromptSize | None) -> int:
    """The context, in tokens as they are counted here, into which a request has to fit that its server refused.

    `context` is what the server is said to have, `size` what it counted itself; where it did not, or stopped counting,
    the texts become shorter by a part each time. A request of as many bytes as the server takes tokens is refused for
    another reason, since a byte has one token at most: never smaller than that.
    """
    texts = _texts(request)
    around = _OF_A_REQUEST + _OF_A_MESSAGE * len(request.messages)
    counted = sum(count_tokens(text, vocabulary) for text in texts) + around
    stated = min(context, size.context) if size is not None and size.context else context
    room = stated - request.max_tokens
    if size is not None and size.tokens > room and not size.at_least:
        left = _CLOSER * room * counted / size.tokens
    else:
        left = max(_BLIND * counted, room * counted / (sum(map(_bytes, texts)) + around))
    return int(min(left, counted - 1)) + request.max_tokens


def request_tokens(request: Request, vocabulary: str) -> int:
    """How many tokens the texts of a request have together, not too low; a schema is one of them."""
    return sum(count_tokens(text, vocabulary) for text in _texts(request))


def _texts(request: Request) -> list[str]:
    texts = [message["content"] for message in request.messages]
    return texts if request.schema is None else [*texts, json.dumps(request.schema)]


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


@lru_cache(maxsize=_COUNTED)
def count_tokens(text: str, vocabulary: str) -> int:
    """How many tokens a text has in a vocabulary (see `providers.token_counting`), not too low."""
    return counter(vocabulary)(text)


def _end(text: str, kept: int) -> tuple[str, int]:
    return f"{text[:kept]}\n{_mark(len(text) - kept)}", len(text) - kept


def _middle(text: str, kept: int) -> tuple[str, int]:
    head, tail = kept - kept // 2, kept // 2
    gone = len(text) - kept
    return f"{text[:head]}\n{_mark(gone)}\n{text[len(text) - tail :] if tail else ''}", gone


def _mark(characters: int) -> str:
    return f"[... {characters:,} characters cut ...]"


_MARK = re.compile(r"\n\[\.\.\. ([0-9,]{1,15}) characters cut \.\.\.\]\n?")


def parse_cut(text: str) -> tuple[str, int] | None:
    """The text before the mark of a cut text, and how many characters the whole had; None for a text without one."""
    found = _MARK.search(text)
    if found is None:
        return None
    left = len(text) - (found.end() - found.start())
    return text[: found.start()], left + int(found[1].replace(",", "") or "0")


TRUNCATIONS: Mapping[str, Callable[[str, int], tuple[str, int]]] = {"truncate-both": _end, "middle": _middle}
"""By policy, what is left of a text when so many of its characters are kept, and how many are gone."""


def fit_to_context(talk: Protocol, steps: int = 1) -> Protocol:
    """The same protocol with completions truncated to the context window, as its judge's option `too_long` says.

    `context` and `vocabulary` are options too then, since they decide what is sent. `steps` is how many replies a
    trial has that needs no repair: where a text must be cut, room is left for all of them.
    """

    def asked(trial: Trial, material: Material, options: Mapping[str, str]) -> Conversation:
        if options.get("too_long", "error") not in TRUNCATIONS:
            return talk(trial, material, options)
        return _truncated(talk, steps, trial, material, options)

    return asked


def _truncated(
    talk: Protocol, steps: int, trial: Trial, material: Material, options: Mapping[str, str]
) -> Conversation:
    """A conversation whose requests fit: from a step that does not, it goes on as if all texts had been cut."""
    context, vocabulary = int(options["context"]), options.get("vocabulary", "estimate")
    replies: list[Reply] = []
    conversation, gone = talk(trial, material, options), 0
    try:
        request = next(conversation)
        while True:
            if not fits(request, context, vocabulary):
                conversation.close()
                later = (steps - 1 - len(replies)) * (request.max_tokens + _OF_A_STEP)
                for spare in (later, 0) if later > 0 else (0,):
                    found = _cut_to_fit(talk, trial, material, options, replies, request, spare)
                    if found is not None:
                        break
                if found is None:
                    return request.otherwise or Outcome(Status.TOO_LONG, rule=UNSENT)
                conversation, request, gone = found
            reply = yield replace(request, cut=gone) if gone else request
            replies.append(reply)
            request = conversation.send(reply)
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome
    finally:
        conversation.close()


def _cut_to_fit(
    talk: Protocol,
    trial: Trial,
    material: Material,
    options: Mapping[str, str],
    replies: Sequence[Reply],
    request: Request,
    spare: int,
) -> tuple[Conversation, Request, int] | None:
    """The conversation over truncated texts after these replies, its request, and the characters cut; None: impossible.

    All texts are cut to one budget of tokens, so that a judge is shown as much of each; a text within it stays whole.
    """
    context, vocabulary = int(options["context"]), options.get("vocabulary", "estimate")
    cut = TRUNCATIONS[options["too_long"]]
    sizes = [count_tokens(sanitize(completion.text), vocabulary) for completion in material.shown]
    over = request_tokens(request, vocabulary) - tokens_left(request, context) + spare
    for _ in range(_TRIES):
        budget = _budget(sizes, sum(sizes) - over)
        if budget < _MIN_TOKENS:
            return None
        shown, gone = _cut_all(material.shown, sizes, budget, vocabulary, cut)
        found = resume(talk, trial, replace(material, shown=shown), options, replies)
        if isinstance(found, Outcome):
            raise ValueError("a conversation ended otherwise when its texts were cut")
        conversation, made = found
        if fits(made, context - spare, vocabulary):
            return conversation, made, gone
        conversation.close()
        over += request_tokens(made, vocabulary) - tokens_left(made, context) + spare + _MIN_TOKENS // 4
    return None


def _budget(sizes: Sequence[int], all_together: int) -> int:
    """The most tokens that each text may have, so that none has more and all have no more than `all_together`."""
    left = all_together
    for done, size in enumerate(sorted(sizes)):
        each = left // (len(sizes) - done)
        if size > each:
            return each
        left -= size
    return max(sizes, default=0)


def _cut_all(
    shown: Sequence[Completion],
    sizes: Sequence[int],
    budget: int,
    vocabulary: str,
    cut: Callable[[str, int], tuple[str, int]],
) -> tuple[tuple[Completion, ...], int]:
    """The completions with each at most so many tokens long, its mark included, and the characters cut of all."""
    texts, gone = [], 0
    for completion, size in zip(shown, sizes, strict=True):
        if size <= budget:
            texts.append(completion)
            continue
        text, missing = _cut_one(completion.text, budget, size, vocabulary, cut)
        texts.append(replace(completion, text=text))
        gone += missing
    return tuple(texts), gone


_WELL_USED = 0.95
"""Part of a budget from which on a cut text is not made longer again."""


def _cut_one(
    whole: str, budget: int, size: int, vocabulary: str, cut: Callable[[str, int], tuple[str, int]]
) -> tuple[str, int]:
    """A text of at most so many tokens, nearly as many as the budget has, and the characters that are gone.

    Characters are tried in proportion to tokens, which a text of several scripts does not have all along: a beginning
    in English and an end in Chinese, cut by the average, would keep half of what fits.
    """
    kept, most, best = len(whole) * budget // size, len(whole), None
    for _ in range(2 * _TRIES):
        text, missing = cut(whole, kept)
        tokens = count_tokens(sanitize(text), vocabulary)
        if tokens <= budget:
            best = text, missing, kept
            longer = min(kept * budget // tokens, most - 1) if tokens else kept
            if tokens >= _WELL_USED * budget or longer <= kept:
                break
            kept = longer
        else:
            most = kept
            kept = min(kept - 1, kept * budget // tokens) if best is None else (best[2] + kept) // 2
            if best is not None and kept <= best[2]:
                break
    if best is not None:
        return best[0], best[1]
    return cut(whole, 0)
