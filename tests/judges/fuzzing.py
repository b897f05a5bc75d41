"""`python -m tests.judges.fuzzing`: random and hostile replies, and what has to hold for every reading of them."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator

from venire.judges.parsing.verdict_formats import VERDICT_FORMATS, FormatReading, read_in_every_format

STATEMENTS: dict[str, dict[str, tuple[str, ...]]] = {
    "zero-one-two": {"first": ("1", "Answer: 1"), "second": ("2", "Final answer: **2**"), "tie": ("0", "Answer: 0")},
    "one-two-three": {
        "first": ("1", "Output: 1", "My choice is: 1"),
        "second": ("2", "Output: 2", "**2**"),
        "tie": ("3", "Output: 3"),
    },
    "label-line": {"first": ("1",), "second": ("2",), "tie": ("Tie", "0")},
    "letter": {
        "first": ("A", "Choice: A", "The answer is A."),
        "second": ("B", "Choice: B", "**B**"),
        "tie": ("C", "Choice: C"),
    },
    "mt-bench": {
        "first": ("[[A]]", "My verdict is [[A]]."),
        "second": ("[[B]]", "My verdict: **[[B]]**"),
        "tie": ("[[C]]",),
    },
    "arena-hard": {
        "first": ("[[A>>B]]", "I say [[A>B]]."),
        "second": ("[[B>A]]", "So: [[B>>A]]"),
        "tie": ("[[A=B]]",),
    },
    "alpaca-eval": {"first": ("Output (a)", "m"), "second": ("Output (b)", "M")},
    "scores": {
        "first": ("Score A: 8 Score B: 7", "I choose Assistant 1."),
        "second": ("Assistant 1: 6/10, Assistant 2: 9/10", "I choose Assistant 2."),
    },
    "json": {
        "first": ('{"winner": "model_a"}', '{"choice": "A"}'),
        "second": ('{"winner": "model_b"}', '{"choice": "B"}'),
        "tie": ('{"winner": "tie"}',),
    },
    "prose": {
        "first": ("I would choose Assistant 1 as the better answer.", "Overall, Assistant A is better."),
        "second": ("I choose Response 2.", "In conclusion, the second answer is better."),
        "tie": ("It is a tie.",),
    },
}
"""A few ways to state each verdict, whole lines each; where one stands beside another verdict, neither is read."""

_DECIDES = {"label-line"}
"""Dialects whose documented form lets one line count over what follows."""

_NEUTRAL = (
    "it is long.",
    "Some words.",
    "hm",
    "(",
    ")",
    "**",
    "#",
    "\n",
    "\n\n",
    " ",
    "!",
    "?",
    ":",
    "é",
    "\u200b",
    "---",
)
_LABELS = (*"0123456789ABCabmM", "Tie", "tie", "10", "1.5", "7 8", "８", "①", "first", "second", "D")
_WORDS = (
    *("Answer:", "Output: ", "Choice: ", "Final answer is ", "My verdict: ", "Score A: ", "Score B: ", "The better "),
    *("I would choose ", "I choose ", "not ", "if ", "Overall, ", "Assistant 1", "Assistant 2", " is better", " or "),
    *("It is a tie.", "Both are equivalent.", "also ", "I don't think ", " a slight edge", "'s answer", "because "),
)
_MARKS = (
    *("[[A]]", "[[B]]", "[[C]]", "[[", "]]", "[[A>>B]]", "[[B>A]]", "[[A=B]]", "Output (a)", "Output (b)"),
    *('"', "'", "`", "“", "”", "‘", "’", "«", "»", "```", "```json\n", "~~~", "\n> ", "\n```\n"),
    *(
        "<<<0123456789abcdef\n",
        "\n0123456789abcdef>>>",
        "<<<",
        ">>>",
        "\x00",
        "\ud800",
        "\u2028",
        "\r\n",
        "\x0b",
        "\ufeff",
    ),
    *("<think>", "</think>", "<reasoning>", "</reasoning>", "<THINK>", "</thinking>"),
    *('{"winner": "model_a"}', '{"choice": "B"}', '{"a": ', "{", "}", '{"', '"}', '{"choice": "A", "choice": "B"}'),
)
_SPACE = (" ", "\n", "\t", "\r\n", "  \n\n ", "\n\n\n")


def hostile(rng: random.Random) -> str:
    """One reply: a mixture of labels, words and marks, or statements that contradict, or code points at random."""
    kind = rng.randrange(10)
    if kind == 0:
        points = rng.choices(range(0x11000), k=rng.randrange(20))
        return "".join(chr(point) for point in points)
    if kind == 1:
        return rng.choice(_MARKS + _LABELS) * rng.randrange(1, 200)
    pieces = (*_NEUTRAL, *_LABELS, *_WORDS, *_MARKS)
    return "".join(rng.choice(pieces) for _ in range(rng.randrange(14)))


def neutral(rng: random.Random) -> str:
    """A reply without any label."""
    return "".join(rng.choice(_NEUTRAL) for _ in range(rng.randrange(14)))


def contradictions(rng: random.Random) -> Iterator[tuple[str, str]]:
    """For each dialect a reply that states two verdicts, with other words around them."""
    for name, statements in STATEMENTS.items():
        if name in _DECIDES:
            continue
        first, second = rng.sample(list(statements), 2)
        lines = [rng.choice(statements[first]), rng.choice(statements[second])]
        at = rng.randrange(3)
        lines[at:at] = rng.choices(("Some words.", "", "It is long."), k=rng.randrange(3))
        yield name, rng.choice(("\n", "\n\n")).join(lines)


def check(rng: random.Random) -> Counter[str]:
    """One round: a hostile reply, and in some a neutral one and a contradiction in each dialect; counts what was read.

    Raises AssertionError with the reply where a promise is broken.
    """
    text = hostile(rng)
    readings = read_in_every_format(text)
    for name, reading in readings.items():
        assert reading.verdict in {None, *VERDICT_FORMATS[name].labels.values()}, ascii(text)
        assert (reading.verdict is None) == (reading.rule is None), ascii(text)
        assert reading.rule in {None, *(rule.name for rule in VERDICT_FORMATS[name].rules)}, ascii(text)
    if rng.random() < 0.25:
        assert read_in_every_format(text + rng.choice(_SPACE)) == readings, f"blanks at the end change {text!a}"
    if rng.random() < 0.25:
        words = neutral(rng)
        assert read_in_every_format(words) == dict.fromkeys(VERDICT_FORMATS, FormatReading()), (
            f"no label stands in {words!a}"
        )
    for name, both in contradictions(rng) if rng.random() < 0.1 else ():
        assert read_in_every_format(both)[name] == FormatReading(), f"{name}: two verdicts stand in {both!a}"
    return Counter(name for name, reading in readings.items() if reading.verdict is not None)


def main() -> None:
    """Check many replies within a time; prints how many, and how many each dialect read."""
    options = argparse.ArgumentParser(description=main.__doc__)
    options.add_argument("--count", type=int, default=1_000_000)
    options.add_argument("--seconds", type=float, default=900.0)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    rng = random.Random(given.seed)
    start = time.monotonic()
    read: Counter[str] = Counter()
    done = 0
    while done < given.count and time.monotonic() - start < given.seconds:
        read += check(rng)
        done += 1
    told = ", ".join(f"{name} {read[name]:,}" for name in VERDICT_FORMATS)
    sys.stdout.write(
        f"{done:,} of {given.count:,} replies checked in {time.monotonic() - start:.0f} s, seed {given.seed}: "
        f"no exception and no guess. Read by {told}.\n"
    )


if __name__ == "__main__":
    main()
