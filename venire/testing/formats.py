"""The contract of a file format."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from venire.arena.clock import VirtualClock
from venire.arena.records import Completion, Instruction
from venire.embedded import Embedded
from venire.session import Session
from venire.storage.store.connection import query
from venire.storage.transfer.exporting import export_format
from venire.storage.transfer.formats import FORMATS, Format, read_verdicts
from venire.storage.transfer.formats.texts import Record
from venire.testing.campaigns import small_campaign


def check_format(name: str, *, texts: Sequence[Path] = (), verdicts: Sequence[Path] = ()) -> None:
    """Check that a registered file format keeps its contract. Raises AssertionError with the broken rule.

    `texts` and `verdicts` are realistic files of the format, required if it can be read. Reading them twice gives the
    same result; completions belong to instructions that exist; verdicts are about two models, with labels 1, 0 and -1.
    A format that can be written writes rows of a store with verdicts.

    >>> check_format("dataset")
    """
    form = FORMATS[name]
    assert form.read or form.dialects or form.write, f"{name}: can neither be read nor written"
    if form.read is not None:
        assert form.purpose, f"{name}: has no line for `venire import --help`"
        assert texts, f"{name}: give `texts`, files with instructions and completions"
        _check_texts(name, form, texts)
    if form.dialects:
        assert verdicts, f"{name}: give `verdicts`, files with verdicts"
        _check_verdicts(name, form, verdicts)
    if form.write is not None:
        _check_written(name)


def _check_texts(name: str, form: Format, paths: Sequence[Path]) -> None:
    assert form.read is not None
    found: list[Record] = list(form.read(paths))
    assert found == list(form.read(paths)), f"{name}: read twice, the files say different things"
    asked = {one.id for one in found if isinstance(one, Instruction)}
    answers = [one for one in found if isinstance(one, Completion)]
    assert answers, f"{name}: no completion is read from {paths[0]}"
    lost = [one.instruction for one in answers if one.instruction not in asked]
    assert not lost, f"{name}: a completion is of the instruction {lost[0]!r}, which these files do not have"


def _check_verdicts(name: str, form: Format, paths: Sequence[Path]) -> None:
    for dialect in form.dialects:
        assert dialect.format == name, f"{name}: one of its dialects says that it is of {dialect.format!r}"
        assert query(dialect.query), f"{name}: has no query"
    found = read_verdicts(paths, name)
    assert found is not None
    battles = found.battles
    assert len(battles.label), f"{name}: no verdict is read from {paths[0]}"
    assert (battles.model_a != battles.model_b).all(), f"{name}: a model meets itself"
    assert set(np.unique(battles.label).tolist()) <= {-1, 0, 1}, f"{name}: a label is none of 1, 0 and -1"


def _check_written(name: str) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "small.duckdb").write_bytes(_judged_store())
        made = export_format(folder / "small.duckdb", folder / "out", name)
        assert made, f"{name}: writes no file"
        assert any(one.rows for one in made), f"{name}: writes no row of a store with verdicts"


@cache
def _judged_store() -> bytes:
    """The file of a store in which one judge compared two models on four instructions; judged once for all formats."""
    with tempfile.TemporaryDirectory() as scratch:
        campaign = small_campaign(Path(scratch), {"ant": 1400.0, "bee": 900.0}, instructions=4)
        with Session(campaign, clock=VirtualClock()) as session:
            session.run(embedded=Embedded(direct=True))
        return campaign.store.read_bytes()
