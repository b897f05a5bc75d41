"""Traces of observability tools: the calls of models that Langfuse and LangSmith recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from venire.storage.transfer.formats.entry import Format
from venire.storage.transfer.formats.samples import LoggedSample, number, plain_text, prompt_turns
from venire.storage.transfer.formats.texts import TextRow, rows

_MODEL = ("model", "provided_model_name", "providedModelName")
_PROMPT = ("messages", "input", "question", "prompt", "query", "text")
_ANSWER = ("output", "answer", "response", "completion", "content", "text", "message", "choices", "generations")


def _numbered(samples: Iterator[LoggedSample]) -> Iterator[LoggedSample]:
    """The samples, several answers of a model to one prompt numbered."""
    count: Counter[tuple[str, str]] = Counter()
    for one in samples:
        count[one.model, one.instruction] += one.text is not None
        yield replace(one, sample=max(1, count[one.model, one.instruction]))


def langfuse_samples(paths: Sequence[Path]) -> Iterator[LoggedSample]:
    """Observations of Langfuse's exports that are generations. Raises InputError that names file and row."""
    return _numbered(one for path in paths for row in rows(path) for one in _generation(row))


def _generation(row: TextRow) -> Iterator[LoggedSample]:
    if row.cells.get("type") not in ("GENERATION", None):
        return
    model = next((row.cells[name] for name in _MODEL if row.cells.get(name)), None)
    turns = prompt_turns(_within(row.value("input"), _PROMPT))
    if model and turns:
        why = row.cells.get("status_message") or row.cells.get("statusMessage") or "there is no output"
        yield LoggedSample(row.path, row.number, turns, model, _answer(row.value("output")), failed=why)


def langsmith_samples(paths: Sequence[Path]) -> Iterator[LoggedSample]:
    """Runs of LangSmith's exports: those of a dataset's examples, else all calls of models.

    The model is `ls_model_name` of the metadata, else the experiment. Feedback is by its key. Raises InputError that
    names file and row.
    """
    return _numbered(one for path in paths for row in rows(path) for one in _run(row))


def _run(row: TextRow) -> Iterator[LoggedSample]:
    example = row.cells.get("reference_example_id")
    if row.cells.get("parent_run_id") or not (example or row.cells.get("run_type") == "llm"):
        return
    extra, feedback = row.value("extra"), row.value("feedback_stats")
    about = extra.get("metadata") or {} if isinstance(extra, dict) else {}
    session = row.cells.get("session_name") or row.cells.get("session_id")
    model = (session or about.get("ls_model_name")) if example else (about.get("ls_model_name") or session)
    turns = prompt_turns(_within(row.value("inputs"), _PROMPT))
    if model and turns:
        grades = feedback.items() if isinstance(feedback, dict) else ()
        yield LoggedSample(
            row.path,
            row.number,
            turns,
            str(model),
            _answer(row.value("outputs")),
            grades={key: number(one.get("avg")) for key, one in grades if isinstance(one, dict)},
            failed=row.cells.get("error") or "there is no output",
        )


def _within(value: Any, names: Sequence[str]) -> Any:
    """What an object holds under the first of these names, or its only value; anything else as it is."""
    if not isinstance(value, Mapping):
        return value
    found = next((value[name] for name in names if value.get(name)), None)
    return next(iter(value.values())) if found is None and len(value) == 1 else found


def _answer(value: Any) -> str | None:
    """The text of an answer, however deep an object or the last of a list holds it."""
    while value is not None and not isinstance(value, str):
        if isinstance(value, list) and value and not all(isinstance(one, dict) and "type" in one for one in value):
            value = value[-1]
        elif isinstance(value, Mapping) and (inner := _within(value, _ANSWER)) is not None:
            value = inner
        else:
            return plain_text(value)
    return value


LANGFUSE = Format.of_logs(
    "langfuse",
    "Import the generations of Langfuse's exports of observations: input, output, model.",
    langfuse_samples,
    signs=tuple(
        frozenset({trace, "type", "input", "output", model}) for trace in ("traceId", "trace_id") for model in _MODEL
    ),
)

LANGSMITH = Format.of_logs(
    "langsmith",
    "Import runs of LangSmith's exports, of experiments or calls of models; feedback is read as verdicts.",
    langsmith_samples,
    judge="the feedback's key",
    signs=(
        frozenset({"run_type", "inputs", "outputs", "extra"}),
        frozenset({"run_type", "inputs", "outputs", "trace_id"}),
    ),
)
