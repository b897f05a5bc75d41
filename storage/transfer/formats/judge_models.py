"""Files of models trained to judge: JudgeLM's judgments with their scores, PandaLM's test set with its annotators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from venire.arena.records import Completion, Instruction
from venire.storage.transfer.formats.entry import Format
from venire.storage.transfer.formats.judged import VerdictDialect
from venire.storage.transfer.formats.texts import Record, TextRow, digest_id, rows


def _pair(row: TextRow, turn: str, answers: Sequence[tuple[str, str]], known: set[tuple[str, str]]) -> Iterator[Record]:
    """A prompt and the answers of two models, each answer once."""
    name = digest_id([turn])
    yield Instruction(name, (turn,))
    for model, column in answers:
        if (model, name) not in known:
            known.add((model, name))
            yield Completion(model, name, row.text(column))


def read_judgelm(paths: Sequence[Path]) -> Iterator[Record]:
    """Questions and answers of JudgeLM. Raises InputError that names file, row and column."""
    known: set[tuple[str, str]] = set()
    for path in paths:
        for row in rows(
            path, ("question_body", "answer1_model_id", "answer2_model_id", "answer1_body", "answer2_body")
        ):
            sides = [(row.text(f"answer{side}_model_id"), f"answer{side}_body") for side in (1, 2)]
            yield from _pair(row, row.text("question_body"), sides, known)


JUDGELM = Format(
    "Import questions and answers of JudgeLM's files; the scores in pred_text are read as verdicts.",
    read_judgelm,
    (
        VerdictDialect(
            "judgelm",
            "judged_judgelm",
            {
                "model_a": ("answer1_model_id",),
                "model_b": ("answer2_model_id",),
                "winner": ("pred_text",),
                "judge": ("pred_model_id",),
                "instruction_id": ("question_id",),
            },
            ("model_a", "model_b", "winner", "instruction_id"),
            "two scores on the first line",
            note="the higher score wins; a file made with --if-reverse-answers has names and answers crossed",
        ),
    ),
    signs=(frozenset({"question_body", "answer1_body", "answer2_body", "answer1_model_id", "answer2_model_id"}),),
)


def read_pandalm(paths: Sequence[Path]) -> Iterator[Record]:
    """Prompts and responses of PandaLM's test set, of the two models in `cmp_key`.

    Raises InputError that names file, row and column.
    """
    known: set[tuple[str, str]] = set()
    for path in paths:
        for row in rows(path, ("cmp_key", "instruction", "input", "response1", "response2")):
            models = row.text("cmp_key").split("_")
            if len(models) != 2:
                raise row.error('"cmp_key" is no two names with one _ between them; leave the row out')
            below = row.cells.get("input")
            turn = f"{row.text('instruction')}\n\n{below}" if below else row.text("instruction")
            yield from _pair(row, turn, list(zip(models, ("response1", "response2"), strict=True)), known)


PANDALM = Format(
    "Import prompts and responses of PandaLM's test set; its annotators' labels are read as verdicts.",
    read_pandalm,
    (
        VerdictDialect(
            "pandalm",
            "judged_pandalm",
            {
                "key": ("cmp_key",),
                "winner": ("label_0", "annotator1"),
                "second": ("label_1", "annotator2"),
                "third": ("label_2", "annotator3"),
                "instruction": ("instruction",),
                "input": ("input",),
            },
            ("key", "winner", "instruction"),
            "1, 2, 0 or Tie",
            note="each annotator is a judge",
        ),
    ),
    signs=(frozenset({"cmp_key", "response1", "response2"}),),
)
