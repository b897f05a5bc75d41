"""MT-bench, and Arena-Hard, which grew out of it: verdicts on pairs, grades of answers, questions and answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

import duckdb

from venire.arena.records import Completion, Instruction
from venire.storage.transfer.formats.entry import ExportOptions, Format, Part, file_name, names
from venire.storage.transfer.formats.judged import VerdictDialect
from venire.storage.transfer.formats.texts import Record, Skipped, TextRow, joined, messages, rows, turns_of

_JUDGE, _QUESTION, _TURN = ("judge",), ("question_id",), ("turn",)

_MT_BENCH_DIALECTS = (
    VerdictDialect(
        "mt-bench",
        "judged_mt_bench_pairs",
        {
            "model_a": ("model_1",),
            "model_b": ("model_2",),
            "winner": ("g1_winner",),
            "second": ("g2_winner",),
            "judge": _JUDGE,
            "instruction_id": _QUESTION,
        },
        ("model_a", "model_b", "winner", "second", "judge", "instruction_id"),
        "model_1, model_2, tie, error",
        nested=frozenset({"judge"}),
        ordered=True,
        once=True,
        note="the turns of a question count as repeats of it",
    ),
    VerdictDialect(
        "mt-bench",
        "judged_grades",
        {"model": ("model",), "winner": ("score",), "judge": _JUDGE, "instruction_id": _QUESTION, "turn": _TURN},
        ("model", "winner", "judge", "instruction_id", "turn"),
        "a number, -1 where no grade was read",
        nested=frozenset({"judge"}),
        note="verdicts were made from grades: the higher of two answers wins, within 0.1 they tie",
        tied=0.1,
        unparsed=-1.0,
    ),
    VerdictDialect(
        "mt-bench",
        "judged_chatbot_arena",
        {
            "model_a": ("model_a",),
            "model_b": ("model_b",),
            "winner": ("winner",),
            "judge": _JUDGE,
            "instruction_id": _QUESTION,
            "turn": _TURN,
        },
        ("model_a", "model_b", "winner", "judge", "instruction_id", "turn"),
        "model_a, model_b, tie, tie (inconsistent)",
        absent=frozenset({"tstamp", "anony", "language"}),
    ),
)


_CELLS = ("uid", "question_id", "category", "cluster", "prompt", "turns", "reference", "model", "model_id", "messages")
_FAILED = "$ERROR$"
"""What FastChat writes for an answer whose call failed."""


def read(paths: Sequence[Path]) -> Iterator[Record]:
    """Questions (`prompt` or `turns`) and answers (`choices` or `messages`) of MT-bench and Arena-Hard, in any order.

    All turns are kept. Several choices are samples of an answer. An answer whose call failed yields `Skipped`. Raises
    InputError that names file, row and column.
    """
    for path in paths:
        for row in rows(path, (*_CELLS, "choices")):
            if "choices" in row or "messages" in row:
                yield from _answers(row)
            elif "prompt" in row or "turns" in row:
                reference = "\n\n".join(turns_of(row, "reference")) if row.cells.get("reference") else None
                turns = turns_of(row, "prompt" if "prompt" in row else "turns")
                category = row.cells.get("category") or row.cells.get("cluster") or ""
                yield Instruction(row.first("uid", "question_id"), turns, reference or None, category)
            else:
                raise row.error("neither a question (prompt, turns) nor an answer (choices, messages)")


def _answers(row: TextRow) -> Iterator[Record]:
    model, question = row.first("model", "model_id"), row.first("uid", "question_id")
    for sample, turns in enumerate(_samples(row), start=1):
        if _FAILED in turns:
            yield Skipped(row.path, row.number, f"the answer of {model} is {_FAILED}")
            continue
        text = joined(turns)
        if text is None:
            raise row.error('an answer has a line "[turn 1]" or the like, by which its turns are told apart; change it')
        yield Completion(model, question, text, sample)


def _samples(row: TextRow) -> list[tuple[str, ...]]:
    """The turns of each choice, or of the one conversation."""
    if (said := messages(row, "messages")) is not None:
        found = [tuple(text for role, text in said if role == "assistant")]
    else:
        choices = row.value("choices")
        if not isinstance(choices, list) or not all(
            isinstance(choice, dict) and "turns" in choice for choice in choices
        ):
            raise row.error('"choices" is no list of objects with turns')
        found = [tuple(_said(row, turn) for turn in choice["turns"]) for choice in choices]
    if not found or not all(found):
        raise row.error("the answer has no turn; fill it in or leave the row out")
    return found


def _said(row: TextRow, turn: object) -> str:
    text = turn.get("content") if isinstance(turn, dict) else turn
    if not isinstance(text, str):
        raise row.error('a turn of "choices" holds no text; fill it in or leave the row out')
    return text


def _mt_bench_parts(connection: duckdb.DuckDBPyConnection, options: ExportOptions) -> Iterator[Part]:
    """Questions, answers with their turns, and judgments of pairs in both orders, in MT-bench's folders."""
    yield Part(PurePath("question.jsonl"), "write_mt_bench_questions")
    for (model,) in names(connection, "written_models"):
        yield Part(PurePath("model_answer", f"{file_name(model)}.jsonl"), "write_mt_bench_answers", model=model)
    for (judge,) in names(connection, "written_judges"):
        path = PurePath("model_judgment", f"{file_name(judge)}_pair.jsonl")
        yield Part(path, "write_mt_bench_pairs", judge=judge)


MT_BENCH = Format(
    "Import questions and answers of MT-bench with all their turns: question.jsonl, model_answer/*.jsonl.",
    read,
    _MT_BENCH_DIALECTS,
    _mt_bench_parts,
    signs=(frozenset({"choices", "question_id"}), frozenset({"choices", "uid"})),
)


_ARENA_HARD_DIALECTS = (
    VerdictDialect(
        "arena-hard",
        "judged_arena_hard",
        {
            "model_a": ("model",),
            "model_b": ("baseline",),
            "winner": ("games",),
            "judge": ("judge",),
            "instruction_id": ("uid", "question_id"),
        },
        ("model_a", "model_b", "winner", "judge", "instruction_id"),
        "A>>B, A>B, A=B, B>A, B>>A",
        nested=frozenset({"winner"}),
        lists=frozenset({"winner"}),
        given=frozenset({"model_b"}),
        ordered=True,
        once=True,
        note="A>>B counts as one win, as A>B does",
    ),
)


def _arena_hard_parts(connection: duckdb.DuckDBPyConnection, options: ExportOptions) -> Iterator[Part]:
    """Questions, answers and judgments in Arena-Hard's folders; the baseline is whom all met, or each pair's A."""
    yield Part(PurePath("question.jsonl"), "write_arena_hard_questions")
    for (model,) in names(connection, "written_models"):
        yield Part(PurePath("model_answer", f"{file_name(model)}.jsonl"), "write_arena_hard_answers", model=model)
    for (judge,) in names(connection, "written_judges"):
        for (model,) in names(connection, "written_judged_models", judge=judge):
            path = PurePath("model_judgment", file_name(judge), f"{file_name(model)}.jsonl")
            yield Part(path, "write_arena_hard_judgments", model=model, judge=judge)


ARENA_HARD = Format(
    "Import questions and answers of Arena-Hard: question.jsonl, model_answer/*.jsonl.",
    read,
    _ARENA_HARD_DIALECTS,
    _arena_hard_parts,
)
