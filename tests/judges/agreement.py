"""`python -m tests.judges.agreement`: how often the dialects read recorded judges as their verdicts were published.

Rules were made with one half of the instructions in view, `made`; the other half, `held`, is what counts. The folder
of the records is named by VENIRE_DATA.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import duckdb

from venire.judges.parsing.verdict_formats import VERDICT_FORMATS, read_verdict

_SETS = (
    ("vicuna80_peers", "instruction_id", "judge"),
    ("devbench_repeats", "instruction_id", "judge"),
    ("pandalm", "pair_id", "annotator"),
)
_DIALECTS = {"bard": "prose", "vicuna-13b": "scores"}
_OF_A_SET = {"vicuna80_peers": "one-two-three", "devbench_repeats": "letter", "pandalm": "label-line"}


class Agreement(NamedTuple):
    """One judge and half: replies, how many were read, and how many of these as published."""

    records: str
    judge: str
    half: str
    dialect: str
    replies: int
    read_verdict: int
    agree: int

    @property
    def share_read(self) -> float:
        return self.read_verdict / self.replies

    @property
    def share_agree(self) -> float:
        return self.agree / self.read_verdict


def half(instruction: object) -> str:
    """The half that an instruction or pair belongs to, by the last bit of its id's SHA-256."""
    return "held" if hashlib.sha256(str(instruction).encode()).digest()[-1] & 1 else "made"


def agreements(folder: Path, halves: tuple[str, ...] = ("made", "held")) -> Iterator[Agreement]:
    """Every judge of the records that wrote replies, in each half."""
    for name, key, column in _SETS:
        rows = duckdb.sql(
            f"select {column}, {key}, verdict, raw_output from read_parquet('{folder}/{name}/judgments.parquet') "
            "where raw_output is not null"
        ).fetchall()
        for judge in sorted({row[0] for row in rows}):
            dialect = _DIALECTS.get(judge, _OF_A_SET[name])
            for which in halves:
                found = [
                    (verdict, read_verdict(reply, VERDICT_FORMATS[dialect]).verdict)
                    for who, instruction, verdict, reply in rows
                    if who == judge and half(instruction) == which
                ]
                readings = [pair for pair in found if pair[1] is not None]
                agree = sum(published == ours for published, ours in readings)
                yield Agreement(name, judge, which, dialect, len(found), len(readings), agree)


def main() -> None:
    """Print the table."""
    lines = [
        f"| {one.records} | {one.judge} | {one.half} | {one.dialect} | {one.replies} | {one.share_read:.2%} "
        f"| {one.share_agree:.2%} ({one.read_verdict - one.agree} otherwise) |"
        for one in agreements(Path(os.environ["VENIRE_DATA"]))
    ]
    head = [
        "| records | judge | half | dialect | replies | read | of these as published |",
        "|---|---|---|---|---|---|---|",
    ]
    lines = [*head, *lines]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
