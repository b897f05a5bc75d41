"""Logs of evaluation harnesses: Inspect, lm-evaluation-harness, OpenAI Evals and HELM."""

from __future__ import annotations

import json
import re
import shlex
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from venire.arena.errors import InputError
from venire.storage.transfer.formats.entry import Format
from venire.storage.transfer.formats.samples import LoggedSample, number, plain_text, prompt_turns
from venire.storage.transfer.formats.source import connect
from venire.storage.transfer.formats.texts import TextRow, rows

_INSPECT_VALUES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
"""What Inspect's scorers write in place of numbers: correct, partial, incorrect, no answer."""
_SAMPLE = ("id", "epoch", "input", "target", "output", "scores", "attachments", "error")
_ATTACHMENT = "attachment://"
_LOCAL_HEADER = 30
_LARGEST = 1 << 30


def inspect_samples(paths: Sequence[Path]) -> Iterator[LoggedSample]:
    """Samples of Inspect's logs, `.json` or `.eval`; a prompt is named by its task and the id of the sample.

    Raises InputError for a file that is no log, and for an archive that cannot be unpacked.
    """
    for path in paths:
        if path.suffix.lower() == ".eval":
            header, samples = _archived(path)
            yield from _inspect(path, header, samples)
            continue
        for row in rows(path, ("eval", "samples")):
            header, samples = row.value("eval"), row.value("samples")
            if not isinstance(header, dict):
                raise row.error('"eval" is no object: give a log of Inspect')
            yield from _inspect(path, header, samples or [])


def _inspect(path: Path, header: Mapping[str, Any], samples: Sequence[Mapping[str, Any]]) -> Iterator[LoggedSample]:
    task, model = str(header.get("task") or ""), str(header.get("model") or "")
    for row, sample in enumerate(samples, start=1):
        output, target = sample.get("output") or {}, sample.get("target")
        error = (sample.get("error") or {}).get("message") or "the model gave no answer"
        yield LoggedSample(
            path,
            row,
            prompt_turns(_attached(sample.get("input"), sample)),
            model,
            plain_text(_attached(_inspect_text(output), sample)),
            id=f"{task}-{sample.get('id')}",
            sample=int(sample.get("epoch") or 1),
            category=task,
            reference="\n".join(map(str, target)) if isinstance(target, list) else target,
            grades=dict(_inspect_grades(sample.get("scores") or {})),
            failed=str(error),
        )


def _inspect_text(output: Mapping[str, Any]) -> Any:
    choices = output.get("choices") or []
    return output.get("completion") or choices[0]["message"]["content"] if choices else None


def _attached(value: Any, sample: Mapping[str, Any]) -> Any:
    """A text that Inspect keeps apart by its digest, wherever it stands in a value."""
    if isinstance(value, str) and value.startswith(_ATTACHMENT):
        return (sample.get("attachments") or {}).get(value.removeprefix(_ATTACHMENT), value)
    if isinstance(value, list):
        return [_attached(one, sample) for one in value]
    if isinstance(value, dict):
        return {key: _attached(one, sample) for key, one in value.items()}
    return value


def _inspect_grades(scores: Mapping[str, Any]) -> Iterator[tuple[str, float | None]]:
    for scorer, score in scores.items():
        value = score.get("value") if isinstance(score, dict) else score
        if isinstance(value, dict):
            yield from ((f"{scorer}/{key}", _inspect_number(one)) for key, one in value.items())
        elif not isinstance(value, list):
            yield scorer, _inspect_number(value)


def _inspect_number(value: Any) -> float | None:
    if isinstance(value, str):
        return _INSPECT_VALUES.get(value, _INSPECT_VALUES.get(value.lower(), number(value)))
    return number(value)


def _archived(path: Path) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    """The header and the samples of an `.eval` archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            header = next((name for name in ("header.json", "_journal/start.json", "start.json") if name in names), "")
            samples = [name for name in names if re.fullmatch(r"samples/[^/]+\.json", name)]
            if not header:
                raise InputError(f"{path}: an archive without a header, and so no log of Inspect")
            (first, *others) = _unpacked(archive, path, [header, *samples])
            return first["eval"], others
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (zipfile.BadZipFile, duckdb.Error, KeyError, ValueError) as error:
        copy = shlex.quote(str(path.with_suffix(".json")))
        raise InputError(
            f"{path}: cannot be read as a log of Inspect ({str(error).partition(chr(10))[0][:120]}): give what "
            f"`inspect log dump {shlex.quote(str(path))} > {copy}` writes"
        ) from None


def _unpacked(archive: zipfile.ZipFile, path: Path, names: Sequence[str]) -> list[Mapping[str, Any]]:
    """Members as objects, with the keys of a header or a sample; DuckDB reads Zstandard, which zipfile lacks."""
    try:
        return [json.loads(archive.read(name)) for name in names]
    except NotImplementedError:  # what zipfile says of a compression that this Python has not
        pass
    columns = dict.fromkeys(("eval", *_SAMPLE), "JSON")
    with TemporaryDirectory() as scratch, path.open("rb") as raw, connect() as connection:
        files = []
        for index, name in enumerate(names):
            member = archive.getinfo(name)
            raw.seek(member.header_offset)
            local = raw.read(_LOCAL_HEADER)
            lengths = (int.from_bytes(local[at : at + 2], "little") for at in (26, 28))  # of its name and extra field
            raw.seek(member.header_offset + _LOCAL_HEADER + sum(lengths))
            files.append(f"{scratch}/{index:09}.json.zst")
            Path(files[-1]).write_bytes(raw.read(member.compress_size))
        found = connection.execute(
            "select * from read_json(?, columns=?, compression='zstd', maximum_object_size=?, filename='file') "
            "order by file",
            [files, columns, _LARGEST],
        ).fetchall()
    return [
        {key: json.loads(cell) for key, cell in zip(columns, cells, strict=False) if cell is not None}
        for cells in found
    ]


INSPECT = Format.of_logs(
    "inspect-ai",
    "Import answers of Inspect's logs, .json or .eval; their scores are read as verdicts.",
    inspect_samples,
    judge="the scorer",
    signs=(frozenset({"eval", "samples", "status"}),),
    suffixes=(".eval",),
)


_LM_EVAL = frozenset(
    (
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
        *("doc_hash", "prompt_hash", "target_hash"),
    )
)
_LOWER_IS_BETTER = re.compile(r"(word_|byte_)?perplexity|bits_per_byte|brier_score|ter|wer|cer|bypass|loglikelihood")
_SAMPLES_FILE = re.compile(r"samples_(.+)_\d{4}-\d\d-\d\dT[\d.-]+\.jsonl?")


def lm_eval_samples(paths: Sequence[Path]) -> Iterator[LoggedSample]:
    """Samples of lm-evaluation-harness. The model is the folder's name, the task is in the file's.

    A document has one prompt, that of the first file: templates of chats make different texts of it. Raises InputError
    that names file, row and column.
    """
    prompts: dict[str, tuple[str, ...]] = {}
    for path in paths:
        named = _SAMPLES_FILE.fullmatch(path.name.removesuffix(".gz"))
        task = named[1] if named else path.name.partition(".")[0].removeprefix("samples_")
        model = path.absolute().parent.name.replace("__", "/", 1)
        for row in rows(path):
            if not {"doc_id", "arguments", "resps"} <= row.cells.keys():
                raise row.error("not a sample of lm-evaluation-harness: doc_id, arguments and resps are needed")
            name = f"{task}-{row.text('doc_id')}"
            key = f"{name} {row.cells.get('doc_hash')}"
            request = _lm_eval_request(row.value("arguments"))
            turns = prompts.setdefault(key, prompt_turns(_lm_eval_prompt(request)))
            text = _lm_eval_text(request, row.value("resps"))
            yield LoggedSample(
                path,
                row.number,
                turns,
                model,
                text,
                id=name,
                category=task,
                reference=row.cells.get("target"),
                grades=_lm_eval_grades(row),
                failed="no text was generated: the model was asked for likelihoods",
            )


def _lm_eval_request(arguments: Any) -> list[Any]:
    """The arguments of the first request: its prompt, and its settings where a text was to be generated."""
    requests = list(arguments.values()) if isinstance(arguments, dict) else arguments
    first = requests[0] if isinstance(requests, list) and requests else []
    return list(first.values()) if isinstance(first, dict) else list(first) if isinstance(first, list) else [first]


def _lm_eval_prompt(request: Sequence[Any]) -> Any:
    """The prompt of a request; that of a chat is a list whose only entry is its messages as JSON."""
    prompt = request[0] if request else None
    return prompt[0] if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str) else prompt


def _lm_eval_text(request: Sequence[Any], responses: Any) -> str | None:
    """The first text that was generated; where likelihoods were asked for there is none."""
    if not any(isinstance(argument, dict) for argument in request[1:]):
        return None
    while isinstance(responses, list) and responses:
        responses = responses[0]
    return responses if isinstance(responses, str) else None


def _lm_eval_grades(row: TextRow) -> dict[str, float | None]:
    """The numbers of a row that are metrics; of several filters each is a judge."""
    metrics = row.value("metrics")
    names = metrics if isinstance(metrics, list) else [name for name in row.cells if name not in _LM_EVAL]
    filters = f" ({row.cells['filter']})" if row.cells.get("filter") not in (None, "none") else ""
    grades = {name: number(_boolean(row.cells.get(name))) for name in map(str, names)}
    return {
        f"{name}{filters}": grade
        for name, grade in grades.items()
        if grade is not None and not _LOWER_IS_BETTER.fullmatch(name)
    }


def _boolean(cell: str | None) -> Any:
    return {"true": 1, "false": 0}.get((cell or "").lower(), cell)


LM_EVAL = Format.of_logs(
    "lm-eval",
    "Import answers of lm-evaluation-harness, MODEL/samples_TASK_*.jsonl; its metrics are read as verdicts.",
    lm_eval_samples,
    judge="the metric, and its filter",
    signs=(frozenset({"doc_id", "arguments", "resps"}),),
)


def openai_evals_samples(paths: Sequence[Path]) -> Iterator[LoggedSample]:
    """Samples of OpenAI Evals' records and whether they matched. Raises InputError that names file and row."""
    for path in paths:
        model, task = "", ""
        sampled: dict[str, list[LoggedSample]] = {}
        matched: dict[str, dict[str, float | None]] = {}
        for row in rows(path, ("spec", "type", "sample_id", "data")):
            spec, data, name = row.value("spec"), row.value("data"), row.cells.get("sample_id") or ""
            if isinstance(spec, dict):
                model, task = str((spec.get("completion_fns") or [""])[0]), str(spec.get("eval_name") or "")
            elif row.cells.get("type") == "sampling" and isinstance(data, dict):
                if not model:
                    raise row.error('no line before it has a "spec" that names the model: give the whole record')
                texts = data["sampled"] if isinstance(data.get("sampled"), list) else [data.get("sampled")]
                made = sampled.setdefault(name, [])
                made += [
                    LoggedSample(
                        path, row.number, prompt_turns(data.get("prompt")), model, plain_text(text), id=name,
                        sample=len(made) + index, category=task, failed="nothing was sampled",
                    )
                    for index, text in enumerate(texts, start=1)
                ]  # fmt: skip
            elif row.cells.get("type") == "match" and isinstance(data, dict):
                matched[name] = {"match": number(data.get("correct"))}
            elif row.cells.get("type") == "metrics" and isinstance(data, dict):
                matched.setdefault(name, {}).update({k: number(v) for k, v in data.items() if number(v) is not None})
        for name, made in sampled.items():
            for one in made:
                yield LoggedSample(
                    one.path, one.row, one.turns, one.model, one.text, one.id, one.sample, one.category, None,
                    matched.get(name, {}) if one.sample == 1 else {}, {}, one.failed,
                )  # fmt: skip


OPENAI_EVALS = Format.of_logs(
    "openai-evals",
    "Import answers of OpenAI Evals' records, which oaieval writes; their matches are read as verdicts.",
    openai_evals_samples,
    judge="match, or the metric",
    signs=(frozenset({"spec", "final_report"}), frozenset({"spec", "run_id", "event_id", "sample_id"})),
)


def helm_samples(paths: Sequence[Path]) -> Iterator[LoggedSample]:
    """Requests and results of HELM's `scenario_state.json`, those of multiple choice by separate requests left out."""
    for path in paths:
        for row in rows(path, ("adapter_spec", "request_states")):
            states = row.value("request_states")
            if not isinstance(states, list):
                raise row.error('"request_states" is no list: give a scenario_state.json of HELM')
            count: Counter[tuple[str, str]] = Counter()
            for index, state in enumerate(states, start=1):
                yield from _helm(TextRow(path, index, {}), state, count)


def _helm(row: TextRow, state: Mapping[str, Any], count: Counter[tuple[str, str]]) -> Iterator[LoggedSample]:
    request, result, instance = state.get("request") or {}, state.get("result") or {}, state.get("instance") or {}
    if state.get("reference_index") is not None or state.get("request_mode") == "calibration":
        return
    turns = prompt_turns(request.get("messages") or request.get("prompt"))
    model = str(request.get("model") or request.get("model_deployment") or "")
    correct = [one for one in instance.get("references") or [] if "correct" in (one.get("tags") or [])]
    name = "\n".join(turns)
    for completion in result.get("completions") or [{}]:
        count[model, name] += 1
        yield LoggedSample(
            row.path,
            row.number,
            turns,
            model,
            completion.get("text"),
            sample=count[model, name],
            reference=(correct[0].get("output") or {}).get("text") if correct else None,
            failed=str(result.get("error") or "there is no completion"),
        )


HELM = Format.of_logs(
    "helm",
    "Import prompts and answers of HELM, scenario_state.json of each run.",
    helm_samples,
    signs=(frozenset({"adapter_spec", "request_states"}),),
)
