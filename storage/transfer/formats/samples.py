"""Logs of evaluation tools: answers of models to prompts, each with the grades that it got where it was made.

A tool's reader yields samples. Prompts, answers and verdicts are made of them here, the same way for every tool.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from venire.arena.errors import InputError
from venire.arena.records import Completion, Instruction
from venire.arena.wording import few
from venire.storage.transfer.formats.judged import VerdictDialect
from venire.storage.transfer.formats.texts import Reader, Record, Skipped, digest_id, message_turn
from venire.storage.transfer.memory import MemoryTable, memory_table


@dataclass(frozen=True, slots=True)
class LoggedSample:
    """One answer of a model, in row `row` of a file (the first is 1).

    `turns` are the prompt, none where the file has answers alone; `model` is empty where it has prompts alone. `text`
    is None where there is no answer, for the reason in `failed`. `id` names the prompt where the tool does. `grades`
    are by who gave them, the higher the better, None where none was read. `best` says by whom this answer was or was
    not selected as the best of all to its prompt.
    """

    path: Path
    row: int
    turns: tuple[str, ...]
    model: str
    text: str | None
    id: str = ""
    sample: int = 1
    category: str = ""
    reference: str | None = None
    grades: Mapping[str, float | None] = field(default_factory=dict)
    best: Mapping[str, bool] = field(default_factory=dict)
    failed: str = ""

    @property
    def instruction(self) -> str:
        """The name of the prompt."""
        return self.id or digest_id(self.turns)


Samples = Callable[[Sequence[Path]], Iterator[LoggedSample]]


def texts_of(samples: Samples) -> Reader:
    """What reads prompts and answers of a tool's logs."""

    def read(paths: Sequence[Path]) -> Iterator[Record]:
        for one in samples(paths):
            if one.model and one.text is None:
                yield Skipped(one.path, one.row, one.failed)
                continue
            if one.turns:
                yield Instruction(one.instruction, one.turns, one.reference or None, one.category)
            if one.text is not None:
                yield Completion(one.model, one.instruction, one.text, one.sample)

    return read


def dialects_of(form: str, judge: str) -> tuple[VerdictDialect, ...]:
    """The dialects of `verdict_table`; `judge` says who counts as the judge."""
    about = {"judge": ("judge",), "instruction_id": ("instruction_id",), "turn": ("sample",)}
    return (
        VerdictDialect(
            form,
            "judged_grades",
            {"model": ("model",), "winner": ("score",), **about},
            ("model", "winner", "judge", "instruction_id"),
            "a number",
            note=f"verdicts were made from grades: of two answers to a prompt the higher wins; the judge is {judge}",
        ),
        VerdictDialect(
            form,
            "judged_chatbot_arena",
            {"model_a": ("model_a",), "model_b": ("model_b",), "winner": ("winner",), **about},
            ("model_a", "model_b", "winner", "judge", "instruction_id"),
            "model_a",
            note="the answer that was selected as the best won against each of the others; these were not compared",
        ),
    )


def verdict_table(samples: Samples, paths: Sequence[Path]) -> MemoryTable:
    """The verdicts in a tool's logs, as a table: who was selected as the best, else all grades.

    Raises InputError for logs without any, and for those of one model.
    """
    found = [one for one in samples(paths) if one.model]
    rows = _selections(found) or [
        {**_about(one, judge), "model": one.model, "score": grade}
        for one in found
        for judge, grade in one.grades.items()
    ]
    what = few([str(path) for path in paths], 3)
    if not rows:
        raise InputError(f"{what}: no answer has a grade in it; `venire judge` asks judges where two models answered")
    if len(models := {one.model for one in found}) < 2:
        raise InputError(f"{what}: all grades are of one model, {min(models)!r}: give the logs of another one as well")
    return memory_table(rows, called=what)


def _about(one: LoggedSample, judge: str) -> dict[str, Any]:
    return {"judge": judge, "instruction_id": one.instruction, "sample": one.sample}


def _selections(found: Iterable[LoggedSample]) -> list[dict[str, Any]]:
    """The winner of each prompt against each that it was selected from."""

    def showing(entry: tuple[str, LoggedSample]) -> tuple[str, str, int]:
        judge, one = entry
        return judge, one.instruction, one.sample

    entries = sorted(((judge, one) for one in found for judge in one.best), key=showing)
    rows = []
    for (judge, _, _), group in groupby(entries, key=showing):
        shown = [one for _, one in group]
        for winner in (one for one in shown if one.best[judge]):
            others = [one.model for one in shown if not one.best[judge]]
            rows += [
                {**_about(winner, judge), "model_a": winner.model, "model_b": other, "winner": "model_a"}
                for other in others
            ]
    return rows


def prompt_turns(value: Any) -> tuple[str, ...]:
    """A prompt as turns: a text, messages, or messages as JSON in a text; empty where it is none of these.

    A message that is not the user's begins with its role in brackets.
    """
    if isinstance(value, str):
        said = _parsed(value)
        return prompt_turns(said) if _is_messages(said) else ((value,) if value.strip() else ())
    if not _is_messages(value):
        return ()
    return tuple(message_turn((str(one["role"]), plain_text(one.get("content")) or "")) for one in value)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text) if text.lstrip().startswith("[") else None
    except ValueError:
        return None


def _is_messages(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) and "role" in one for one in value)


def plain_text(content: Any) -> str | None:
    """The text of an answer or a message: as it is, in blocks of text, or an object as JSON; None for none."""
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, list) and content and all(isinstance(part, dict) for part in content):
        texts = [part.get("text") for part in content if part.get("type") in ("text", "output_text")]
        return "".join(text for text in texts if isinstance(text, str)) if texts else None
    return json.dumps(content, ensure_ascii=False)


def number(value: Any) -> float | None:
    """A grade as a number; None where it is none."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        return None
    return found if found == found else None  # NaN is no grade
