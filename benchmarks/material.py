"""Inputs of the benchmarks: a campaign's files with generated texts, and the same calls for tools without an engine.

A prompt has about 6 kB, a reply of reasons 1.6 kB. A trial of the two-stage protocol makes two calls, one of the
binary protocol makes one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

CAMPAIGN = "campaign.toml"
_WORDS = (
    "answer because between boundary careful clear compare consider correct detail different either evidence example "
    "explain figure first follow formula general however important instead known matter measure method model most "
    "number often other partly perhaps point question rather reader reason result second several simple since small "
    "state step table their there therefore third though under until value whether which while without would "
)
REASONS = "The first answer names what was asked for and gives its grounds; the second one repeats the question. " * 15


@dataclass(frozen=True, slots=True)
class Judge:
    """A judge of a campaign with a separate lane, since no two have the same model and address."""

    name: str
    base_url: str
    concurrency: int


def _text(random: Random, length: int) -> str:
    known = _WORDS.split()
    chosen: list[str] = []
    while length > 0:
        chosen.append(random.choice(known))
        length -= len(chosen[-1]) + 1
    return " ".join(chosen)


def texts(instructions: int, models: int) -> Iterable[tuple[str, str, Mapping[str, str]]]:
    """Name and text of each instruction, and its completions by model."""
    random = Random(7)
    for n in range(instructions):
        yield f"q{n:05}", _text(random, 600), {f"model-{m:02}": _text(random, 2200) for m in range(models)}


def write_campaign(
    folder: Path, judges: Sequence[Judge], trials: int, *, models: int = 5, protocol: str = "two-stage"
) -> Path:
    """Write a campaign file with its tables to a new folder, with at least `trials` trials in total; returns the file.

    Every judge gets the same trials: each pair of models on every instruction, in both orders. The request limit is
    enabled but so high that it never delays a call.
    """
    instructions = -(-trials // (models * (models - 1) * len(judges)))
    folder.mkdir(parents=True)
    with (
        (folder / "instructions.jsonl").open("w", encoding="utf-8") as asked,
        (folder / "completions.jsonl").open("w", encoding="utf-8") as said,
    ):
        for name, text, completions in texts(instructions, models):
            _line(asked, {"instruction_id": name, "instruction": text})
            for model, completion in completions.items():
                _line(said, {"instruction_id": name, "model": model, "completion": completion})
    tables = "".join(
        f'[[judge]]\nname = "{judge.name}"\nmodel = "{judge.name}"\nbase_url = "{judge.base_url}"\n'
        f'protocol = "{protocol}"\nconcurrency = {judge.concurrency}\nrequests_per_minute = 10_000_000\nfree = true\n'
        f"repair = {'true' if protocol == 'two-stage' else 'false'}\n\n"  # the endpoint answers others with prose
        for judge in judges
    )
    path = folder / CAMPAIGN
    path.write_text(
        'name = "bench"\nseed = 7\n\n[data]\ninstructions = "instructions.jsonl"\ncompletions = "completions.jsonl"\n\n'
        f'[plan]\npolicy = "all-pairs"\n\n{tables}',
        encoding="utf-8",
    )
    return path


def write_calls(path: Path, trials: int = 200, *, protocol: str = "two-stage") -> None:
    """Write the messages of the calls of `trials` trials, one call per line, as the engine would send them."""
    from venire.judges.prompts import load
    from venire.judges.safety.sanitize import enclose

    ask = load("two_stage", "reasons") if protocol == "two-stage" else load("binary", "question")
    verdict = load("two_stage", "verdict").template
    with path.open("w", encoding="utf-8") as into:
        for name, text, completions in texts(trials, 2):
            fenced = [enclose(one, f"{name}-{n:010}") for n, one in enumerate((text, *completions.values()))]
            question = ask.substitute(instruction=fenced[0], first=fenced[1], second=fenced[2])
            first = {"role": "user", "content": question}
            _line(into, [first])
            if protocol == "two-stage":
                _line(into, [first, {"role": "assistant", "content": REASONS}, {"role": "user", "content": verdict}])


def _line(into: Any, what: object) -> None:
    into.write(json.dumps(what) + "\n")
