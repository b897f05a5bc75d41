"""Batch interfaces of providers: files of requests, and of their results, which repeat no prompt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from venire.storage.transfer.formats.entry import Format
from venire.storage.transfer.formats.samples import LoggedSample, plain_text, prompt_turns
from venire.storage.transfer.formats.texts import TextRow, rows

_CELLS = ("custom_id", "body", "params", "response", "result", "error")


def samples(paths: Sequence[Path]) -> Iterator[LoggedSample]:
    """Requests and results of batches in OpenAI's form, which vLLM's run-batch has too, and in Anthropic's.

    Requests and results meet by `custom_id`, in whatever order the files come. Raises InputError for an id that two
    prompts have.
    """
    asked: dict[str, tuple[str, ...]] = {}
    results = []
    for path in paths:
        for row in rows(path, _CELLS):
            name = row.text("custom_id")
            if "response" in row or "result" in row or "error" in row:
                results.append((name, row))
                continue
            turns = _prompt(row.value("body") or row.value("params") or {})
            if not turns:
                raise row.error("the request has no messages, input or prompt; leave it out")
            if asked.setdefault(name, turns) != turns:
                raise row.error(
                    f'the custom_id "{name}" has another prompt in an earlier row: give an id to one prompt alone'
                )
            yield LoggedSample(path, row.number, turns, "", None)
    count: Counter[tuple[str, tuple[str, ...] | str]] = Counter()
    for name, row in results:
        turns = asked.get(name, ())
        for sample in _answers(row, name, turns):
            count[sample.model, turns or name] += 1
            yield LoggedSample(
                row.path, row.number, turns, sample.model, sample.text, sample.id, count[sample.model, turns or name],
                failed=sample.failed,
            )  # fmt: skip


def _prompt(body: Any) -> tuple[str, ...]:
    if not isinstance(body, dict):
        return ()
    system = plain_text(body.get("system") or body.get("instructions"))
    first = (f"[system]\n{system}",) if system else ()
    turns = next((found for key in ("messages", "input", "prompt") if (found := prompt_turns(body.get(key)))), ())
    return (*first, *turns) if turns else ()


def _answers(row: TextRow, name: str, turns: tuple[str, ...]) -> Iterator[LoggedSample]:
    """The answers of one result; without its request it is known by its id alone."""
    response, result = row.value("response"), row.value("result")
    body = response.get("body") if isinstance(response, dict) else None
    body = body or (result.get("message") if isinstance(result, dict) else None)
    error = row.cells.get("error") or (result or {}).get("error") or (body or {}).get("error") or "there is no answer"
    texts = _texts(body) if isinstance(body, dict) and "error" not in body else [None]
    for text in texts:
        model = str((body or {}).get("model") or "(no model)")
        yield LoggedSample(
            row.path, row.number, turns, model, text, "" if turns else name, failed=f"{name}: {plain_text(error)}"
        )


def _texts(body: Mapping[str, Any]) -> list[str | None]:
    """The texts of a chat's choices, of a completion's, of a response, or of a message."""
    if isinstance(choices := body.get("choices"), list):
        return [plain_text((one.get("message") or {}).get("content", one.get("text"))) for one in choices] or [None]
    if isinstance(output := body.get("output"), list):
        parts = [plain_text(one.get("content")) for one in output if one.get("type") == "message"]
        return ["".join(part for part in parts if part)] if parts else [None]
    return [plain_text(body.get("content"))]


BATCHES = Format.of_logs(
    "batch",
    "Import answers of OpenAI's, vLLM's and Anthropic's batches: the files of requests and of results together.",
    samples,
    signs=tuple(frozenset({"custom_id", name}) for name in ("body", "params", "response", "result")),
)
