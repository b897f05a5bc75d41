"""promptfoo: the outputs of an evaluation, its scores, and which output `select-best` chose."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from venire.storage.transfer.formats.entry import Format
from venire.storage.transfer.formats.samples import LoggedSample, number, plain_text, prompt_turns
from venire.storage.transfer.formats.texts import TextRow, rows

_SELECTING = ("select-best", "max-score")
_LINE = ("promptIdx", "testIdx", "prompt", "provider", "vars", "response", "gradingResult", "score", "error")


def samples(paths: Sequence[Path]) -> Iterator[LoggedSample]:
    """The results of promptfoo's JSON and JSON Lines, one for each test case, prompt and provider.

    A contestant is a provider. Where a provider was given several prompts for one test case, prompts compete as well:
    the contestant is provider and prompt, and what judges see as the prompt are the variables of the test case. Raises
    InputError that names file and row.
    """
    for path in paths:
        results = list(_results(path))
        several = _has_several_prompts(results)
        count: Counter[tuple[str, tuple[str, ...]]] = Counter()
        for row, result in enumerate(results, start=1):
            sample = _sample(path, row, result, several)
            count[sample.model, sample.turns] += 1
            yield replace(sample, sample=count[sample.model, sample.turns])


def _results(path: Path) -> Iterator[Mapping[str, Any]]:
    for row in rows(path, ("results", *_LINE)):
        if "results" not in row:
            yield {name: row.value(name) for name in _LINE}
            continue
        summary = row.value("results")
        listed = summary.get("results") if isinstance(summary, dict) else summary
        if not isinstance(listed, list) or not all(isinstance(one, dict) and "provider" in one for one in listed):
            raise row.error('"results" holds no results of promptfoo: give what `promptfoo eval -o FILE.json` writes')
        yield from listed


def _has_several_prompts(results: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a provider was given several prompts for one test case."""
    labels: dict[tuple[str, str], set[str]] = defaultdict(set)
    for one in results:
        labels[str(one.get("testIdx")), _provider(one)].add(str((one.get("prompt") or {}).get("label")))
    return any(len(found) > 1 for found in labels.values())


def _provider(result: Mapping[str, Any]) -> str:
    provider = result.get("provider")
    return str(provider.get("label") or provider.get("id")) if isinstance(provider, dict) else str(provider or "")


def _sample(path: Path, row: int, result: Mapping[str, Any], several: bool) -> LoggedSample:
    prompt, response, grading = (result.get(name) or {} for name in ("prompt", "response", "gradingResult"))
    components = [one for one in grading.get("componentResults") or [] if isinstance(one, dict)]
    turns = prompt_turns(_variables(result.get("vars") or {})) if several else prompt_turns(prompt.get("raw"))
    if not turns:
        what = "variables to its test case" if several else "text of its prompt"
        raise TextRow(path, row, {}).error(f"there is no {what}; leave the result out")
    types = [(str((one.get("assertion") or {}).get("type")), bool(one.get("pass"))) for one in components]
    graded = bool(components) and any(kind not in _SELECTING for kind, _ in types)
    return LoggedSample(
        path,
        row,
        turns,
        f"{_provider(result)} ({prompt.get('label')})" if several else _provider(result),
        plain_text(response.get("output") if isinstance(response, dict) else response),
        grades={"promptfoo": number(result.get("score"))} if graded else {},
        best={kind: passed for kind, passed in types if kind in _SELECTING},
        failed=str(result.get("error") or "there is no output"),
    )


def _variables(variables: Mapping[str, Any]) -> str:
    """The variables of a test case as a text: a single one as it is, several with their names."""
    texts = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in variables.items()
        if not name.startswith("_")
    }
    return (
        next(iter(texts.values())) if len(texts) == 1 else "\n".join(f"{name}: {text}" for name, text in texts.items())
    )


PROMPTFOO = Format.of_logs(
    "promptfoo",
    "Import outputs of promptfoo, eval -o FILE.json or .jsonl; select-best, else scores, are read as verdicts.",
    samples,
    judge="promptfoo",
    signs=(
        frozenset({"evalId", "results", "config"}),
        frozenset({"results", "config", "shareableUrl"}),
        frozenset({"promptIdx", "testIdx", "provider"}),
    ),
)
