"""A dataset folder in the layout of Hugging Face datasets: Parquet files, and a card that says where they come from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import duckdb

from venire.storage.store.connection import query
from venire.storage.transfer.formats.entry import ExportOptions, Format, Part, refuse_without_verdicts, statement

_SIZES = (
    *("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B", "1B<n<10B"),
    *("10B<n<100B", "100B<n<1T", "n>1T"),
)
"""The Hub's words for a number of rows, by its digits."""
_ORIGINS = {
    "simulated": "simulated: a program drew them from planted strengths, no language model was asked, and they say "
    "nothing about real models",
    "real": "real: each is what a language model answered when it was asked to judge",
    "recorded": "recorded: they come from files of earlier judgments",
    "people": "votes of people",
}
_CONFIGS = {
    "battles": ("write_battles", "one verdict a row: judge, instruction, both models, the order shown, who won"),
    "judgments": ("write_judgments", "both orders of a battle by one judge as one row, and whether they agree"),
    "instructions": ("write_instructions", "the prompts, with category and reference answer where there is one"),
    "completions": ("write_completions", "the answers, a row a model and instruction"),
    "preferences": ("write_preferences", "pairs of a chosen and a rejected answer on which both orders agree"),
    "ratings": ("write_ratings", "ratings of the models from these verdicts, with intervals"),
}
_MARKS = re.compile(r"([\\`*_\[\]<>|&~#])")


@dataclass(frozen=True, slots=True)
class _JudgeCounts:
    """A judge's verdicts under one protocol."""

    judge: str
    model: str
    protocol: str
    origin: str
    verdicts: int
    read: int
    ties: int


def parts(connection: duckdb.DuckDBPyConnection, options: ExportOptions) -> Iterator[Part]:
    """Tables under `data/`, each a configuration of its own, and the card. Raises InputError without verdicts."""
    refuse_without_verdicts(connection)
    files = [_part(name, options) for name in _CONFIGS if name != "ratings" or options.ratings]
    sizes = {file.path.stem: _rows(connection, file) for file in files}
    files = [file for file in files if sizes[file.path.stem]]
    yield from files
    text = _card(connection, {name: count for name, count in sizes.items() if count}, options.ratings)
    yield Part(PurePath("README.md"), text, "text")


def _part(name: str, options: ExportOptions) -> Part:
    keep = options.keep if name == "preferences" else None
    return Part(PurePath("data", f"{name}.parquet"), _CONFIGS[name][0], "parquet", keep=keep)


def _rows(connection: duckdb.DuckDBPyConnection, part: Part) -> int:
    ((count,),) = connection.execute(f"select count(*) from ({statement(connection, part)})").fetchall()
    return int(count)


def _card(connection: duckdb.DuckDBPyConnection, sizes: dict[str, int], ratings: Sequence[Any]) -> str:
    judges = [_JudgeCounts(*row) for row in connection.execute(query("dataset_judges")).fetchall()]
    ((campaigns, instructions, models, verdicts, both, flipped),) = connection.execute(
        query("dataset_counts")
    ).fetchall()
    title = f"Verdicts of language models as judges: {', '.join(campaigns)}"
    origins = sorted({judge.origin for judge in judges})
    unparsed = verdicts - sum(judge.read for judge in judges)
    lines = [
        *_front_matter(title, sizes, verdicts, origins),
        "",
        f"# {_plain(title)}",
        "",
        f"{verdicts:,} verdicts on the answers of {len(models)} models to {instructions:,} instructions, by "
        f"{len({judge.judge for judge in judges})} judges; written by `venire export`.",
        "",
        "## Where the verdicts come from",
        "",
        *[f"- {_origin_sentence(origin, judges)}" for origin in origins],
        f"- {both:,} judgments were asked in both orders; in {flipped:,} of them the winner changed with the order.",
        f"- {unparsed:,} replies gave no verdict that could be read; their `winner` is empty, which is no tie.",
        "",
        "| judge | asked model | protocol | verdicts | read | ties |",
        "|---|---|---|---:|---:|---:|",
        *[
            f"| {_plain(judge.judge)} | {_plain(judge.model)} | {_plain(judge.protocol)} | {judge.verdicts:,} "
            f"| {judge.read:,} | {judge.ties:,} |"
            for judge in judges
        ],
        "",
        f"Models: {', '.join(map(_plain, models))}.",
        "",
        "## What is in it",
        "",
        "| configuration | rows | content |",
        "|---|---:|---|",
        *[f"| `{name}` | {count:,} | {_CONFIGS[name][1]} |" for name, count in sizes.items()],
        "",
        "Costs are in billionths of a dollar. `instruction_id` joins the tables.",
        *(_ratings_sentences(ratings) if ratings else []),
        "",
        "## How to load it",
        "",
        "```python",
        "from datasets import load_dataset",
        "",
        'battles = load_dataset("path/of/this/folder", "battles", split="train")',
        "```",
        "",
        "## License",
        "",
        "Unknown: the store that this was written from records no license of prompts, answers or verdicts. Find out "
        "what their sources allow, and state it here, before you publish this folder.",
        "",
    ]
    return "\n".join(lines)


def _front_matter(title: str, sizes: dict[str, int], verdicts: int, origins: list[str]) -> list[str]:
    """YAML; texts are written as JSON strings, which YAML reads as they are."""
    lines = ["---", f"pretty_name: {json.dumps(title)}", "license: unknown", "size_categories:", f"- {_size(verdicts)}"]
    lines += ["tags:", "- llm-as-a-judge", "- preference", *[f"- {origin}-verdicts" for origin in origins], "configs:"]
    for name in sizes:
        lines += [f"- config_name: {name}", *(["  default: true"] if name == "battles" else []), "  data_files:"]
        lines += ["  - split: train", f"    path: data/{name}.parquet"]
    return [*lines, "---"]


def _size(rows: int) -> str:
    return _SIZES[min(max(0, len(str(rows)) - 3), len(_SIZES) - 1)]


def _origin_sentence(origin: str, judges: list[_JudgeCounts]) -> str:
    count = sum(judge.verdicts for judge in judges if judge.origin == origin)
    return f"{count:,} verdicts are {_ORIGINS.get(origin, _plain(origin))}."


def _ratings_sentences(ratings: Sequence[Any]) -> list[str]:
    return ["", f"Ratings are by the method {_plain(str(ratings[0].get('method', 'unknown')))}, in Elo points."]


def _plain(name: str) -> str:
    """A name as text in Markdown, whatever characters it holds."""
    return _MARKS.sub(r"\\\1", " ".join(name.split()))


DATASET = Format(
    "A folder in the layout of Hugging Face datasets: data/*.parquet and a card, README.md.",
    write=parts,
    options=frozenset({"keep", "ratings"}),
)
