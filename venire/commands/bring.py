"""`venire import`: bring instructions, completions and ratings into a store."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import typer

__all__ = ["app"]

app = typer.Typer(help="Bring instructions, completions and ratings into a store.", no_args_is_help=True)


class Kind(StrEnum):
    """What the rows of a table are."""

    INSTRUCTIONS = "instructions"
    COMPLETIONS = "completions"
    ELO = "elo"


@app.callback()
def _group() -> None:
    """Bring instructions, completions and ratings into a store."""


@app.command()
def table(
    path: Path = typer.Argument(..., help="A Parquet, CSV, TSV or JSON Lines file."),
    kind: Kind = typer.Option(..., "--kind", help="What its rows are."),
    store: Path = typer.Option(..., "--store", help="The store; made when it is not there."),
    mapping: list[str] = typer.Option([], "--map", help="OURS=THEIRS: a column that is called otherwise in the file."),
) -> None:
    """Import a table: all of it, or nothing.

    Columns are instruction_id, instruction[, category, reference]; model, instruction_id, completion; or model, elo.
    """
    from venire.commands.options import column_map
    from venire.orchestrator.screening import screen
    from venire.storage.formats import FORMATS
    from venire.storage.imports import add
    from venire.storage.store import open_store

    records = FORMATS["table"](path, kind.value, column_map(mapping))
    with open_store(store) as opened:
        added = add(opened, records)
        screen(opened)
    new = added.instructions + added.completions + added.ratings
    word = {"instructions": "instructions", "completions": "completions", "elo": "ratings"}[kind.value]
    typer.echo(f"{path}: {new} {word} new in {store}, {added.known} known already")


_PATHS = typer.Argument(..., metavar="PATH...", help="Files of this format, in any order.")
_STORE = typer.Option(..., "--store", help="The store; made when it is not there.")
_JSON = typer.Option(False, "--json", help="Print JSON on standard output and nothing else.")


@app.command("alpaca-eval")
def alpaca_eval(paths: list[Path] = _PATHS, store: Path = _STORE, as_json: bool = _JSON) -> None:
    """Import model outputs of AlpacaEval: instruction, output, generator."""
    _texts("alpaca-eval", paths, store, as_json)


@app.command("arena-hard")
def arena_hard(paths: list[Path] = _PATHS, store: Path = _STORE, as_json: bool = _JSON) -> None:
    """Import questions and answers of Arena-Hard: question.jsonl, model_answer/*.jsonl."""
    _texts("arena-hard", paths, store, as_json)


@app.command("mt-bench")
def mt_bench(paths: list[Path] = _PATHS, store: Path = _STORE, as_json: bool = _JSON) -> None:
    """Import questions and answers of MT-bench with all their turns: question.jsonl, model_answer/*.jsonl."""
    _texts("mt-bench", paths, store, as_json)


@app.command("chatbot-arena")
def chatbot_arena(paths: list[Path] = _PATHS, store: Path = _STORE, as_json: bool = _JSON) -> None:
    """Import the prompts and answers of Chatbot Arena battles."""
    _texts("chatbot-arena", paths, store, as_json)


@app.command("llm-comparator")
def llm_comparator(paths: list[Path] = _PATHS, store: Path = _STORE, as_json: bool = _JSON) -> None:
    """Import the prompts and answers of LLM Comparator's reports."""
    _texts("llm-comparator", paths, store, as_json)


@app.command("preferences")
def preferences(paths: list[Path] = _PATHS, store: Path = _STORE, as_json: bool = _JSON) -> None:
    """Import preference pairs: prompt, chosen, rejected, texts or lists of messages."""
    _texts("preferences", paths, store, as_json)


_SHOWN = 3


def _texts(form: str, paths: list[Path], store: Path, as_json: bool) -> None:
    """All files of one format, or nothing of them; says what was new and which rows hold no text."""
    from venire.commands.options import write_json
    from venire.orchestrator.screening import screen
    from venire.screen import plain
    from venire.storage.formats import TEXTS
    from venire.storage.imports import add_texts
    from venire.storage.store import open_store

    for path in paths:
        next(TEXTS[form]([path]), None)  # a file that is none of these makes no store
    with open_store(store) as opened:
        added = add_texts(opened, TEXTS[form], paths)
        screen(opened)
    if as_json:
        counts = {"instructions": added.instructions, "completions": added.completions, "known": added.known}
        skipped = [{"path": str(one.path), "row": one.row, "why": one.why} for one in added.skipped]
        write_json({"store": str(store), "format": form, **counts, "skipped": skipped})
        return
    new = f"{added.instructions} instructions and {added.completions} completions new"
    typer.echo(f"{store}: {new}, {added.known} known already")
    for one in added.skipped[:_SHOWN]:
        typer.echo(plain(f"left out: {one.path}: row {one.row}: {one.why}"))
    if len(added.skipped) > _SHOWN:
        typer.echo(f"left out: {len(added.skipped) - _SHOWN} more rows of that kind (--json lists them)")
