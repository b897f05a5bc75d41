"""From a table of answers to a leaderboard by one command, whatever the table looks like, or a sentence that helps."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from venire.storage.transfer.formats import files

Venire = Callable[..., Any]

PROMPTS = [f"Say hello in the language number {n}, in one sentence." for n in range(4)]
MODELS = ("gpt-4.1", "claude-haiku-4-5", "llama 3.3")
Rows = list[tuple[str, str, str]]


def answers() -> Rows:
    """Prompt, model and answer."""
    return [(prompt, model, f"Hello {prompt[-14:-1]}, says {model}.") for prompt in PROMPTS for model in MODELS]


def delimited(rows: Iterator[list[str]] | list[list[str]], delimiter: str = ",") -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return text.getvalue()


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def long(delimiter: str = ",", head: tuple[str, str, str] = ("prompt", "model", "response")) -> str:
    return delimited([list(head), *map(list, answers())], delimiter)


def wide(head: str = "question") -> str:
    by = {(prompt, model): text for prompt, model, text in answers()}
    rows = [[str(n), prompt, *(by[prompt, model] for model in MODELS)] for n, prompt in enumerate(PROMPTS)]
    return delimited([["id", head, *MODELS], *rows])


def alpaca_eval() -> str:
    return lines([{"instruction": p, "output": text, "generator": m, "dataset": "x"} for p, m, text in answers()])


def conversations() -> str:
    system = {"role": "system", "content": "Be kind."}
    return lines(
        [
            {
                "model": m,
                "messages": [system, {"role": "user", "content": p}, {"role": "assistant", "content": text}],
            }
            for p, m, text in answers()
        ]
    )


def gathered() -> str:
    return lines(
        [
            {"instruction": p, "completions": [{"model": m, "response": t} for q, m, t in answers() if q == p]}
            for p in PROMPTS
        ]
    )


def label_studio() -> str:
    by = {(prompt, model): text for prompt, model, text in answers()}
    return json.dumps(
        [
            {"id": n, "data": {"prompt": p, **{m: by[p, m] for m in MODELS}}, "annotations": []}
            for n, p in enumerate(PROMPTS)
        ]
    )


def parquet(path: Path) -> None:
    """As a DataFrame is written, whose ids were numbers with gaps."""
    with duckdb.connect() as connection:
        rows = ", ".join("(?, ?, ?, ?)" for _ in answers())
        cells = [cell for p, m, text in answers() for cell in (p, m, text, float(PROMPTS.index(p)))]
        table = f"select * from (values {rows}) as t(prompt, model_name, output, id)"
        connection.execute(f"create table t as {table}", cells)
        connection.sql("from t").write_parquet(str(path))


TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "long": ("answers.csv", long),
    "wide": ("answers.csv", wide),
    "semicolons": ("answers.csv", lambda: long(";", ("Frage", "Modell", "Antwort"))),
    "tabs in .csv": ("answers.csv", lambda: long("\t", ("Instruction", "Model Name", "Completion"))),
    "alpaca_eval": ("outputs.jsonl", alpaca_eval),
    "messages": ("chats.jsonl", conversations),
    "gathered": ("ultra.jsonl", gathered),
    "Label Studio": ("export.json", label_studio),
    "UTF-16": ("answers.csv", long),
    "Parquet": ("answers.parquet", str),
    "standard input": ("-", wide),
    "a file each": ("answers/*.csv", str),
}


def write(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Writes a table of this kind into the folder; returns what names it on the command line."""
    name, text = TABLES[kind]
    if kind == "Parquet":
        parquet(folder / name)
    elif kind == "standard input":
        files._standard_input.cache_clear()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text().encode())))
    elif kind == "a file each":
        (folder / "answers").mkdir()
        for model in MODELS:
            rows = [[prompt, text] for prompt, other, text in answers() if other == model]
            (folder / "answers" / f"{model.replace('.', '-')}.csv").write_text(
                delimited([["prompt", "response"], *rows]), encoding="utf-8"
            )
    else:
        (folder / name).write_text(text(), encoding="utf-16" if kind == "UTF-16" else "utf-8")
    return name


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_comes_to_a_rehearsed_leaderboard_by_one_command(
    venire: Venire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    table = write(kind, tmp_path, monkeypatch)
    german = ["instruction=Frage", "model=Modell", "completion=Antwort"] if kind == "semicolons" else []
    done = venire("judge", table, "--judge", "simulated", "--yes", *(f"--map={pair}" for pair in german))
    assert done.code == 0, done.err
    assert " leads with " in done.out
    assert "simulated" in done.out
    assert "models:   3 " in done.err
    assert "4 prompts" in done.err
    folder = {"-": "answers", "answers/*.csv": "answers"}.get(table, table.partition(".")[0])
    assert (tmp_path / f"{folder}.venire" / "rehearsal.toml").is_file()


def test_the_same_command_again_asks_nothing(venire: Venire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("judge", write("wide", tmp_path, monkeypatch), "--judge", "simulated", "--yes")
    first, again = venire(*words), venire(*words)
    assert again.code == 0
    assert "nothing was asked in this run" in again.err
    assert again.out == first.out


def test_a_rehearsal_does_not_shrink_what_follows(
    venire: Venire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    table = write("wide", tmp_path, monkeypatch)
    assert venire("judge", table, "--judge", "simulated", "--yes").code == 0
    asked = venire("judge", table, "--judge", "openai:gpt-4.1-mini")
    assert "battles:  12, every pair on every prompt" in asked.err
