"""Consistency and discrimination of recorded judges, against the formula in plain SQL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from venire.arena.battles import Battles
from venire.ratings.judges.consistency import consistency

Table = Callable[..., Battles]

COLUMNS = "first, second, verdict, judge, instruction_id, repeat"


def read(path: Path, columns: str, where: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        return connection.execute(f"SELECT {columns} FROM read_parquet(?) WHERE {where}", [str(path)]).fetchall()


BY_HAND = """
with verdicts as (
    select judge, instruction_id, least(first, second) a, greatest(first, second) b,
      avg(case when verdict = 'tie' then 0.5 when (verdict = 'first') = (first < second) then 1.0 else 0.0 end) y
    from read_parquet(?) where verdict is not null and (? or verdict <> 'tie') and (repeat = 1 or ?)
    group by judge, instruction_id, a, b, first < second),
shares as (select judge, a, b, instruction_id, avg(y) u from verdicts group by all),
matchups as (select judge, a, b, avg(u) p, var_samp(u) / count(*) v from shares group by all)
select judge, 1 - 4 * avg(p * (1 - p)), 1 - 4 * avg(p * (1 - p) + v) from matchups group by judge order by judge
"""
"""Consistency, plain and corrected, as plain SQL."""


@pytest.mark.parametrize(("name", "repeats"), [("vicuna80_peers", False), ("devbench_repeats", True)])
def test_consistency_of_recorded_judges_is_that_of_the_formula(
    shared_data: Path, table: Table, name: str, repeats: bool
) -> None:
    path = shared_data / name / "judgments.parquet"
    found = consistency(table(read(path, COLUMNS, "true" if repeats else "repeat = 1")))
    for ties in (True, False):
        with duckdb.connect() as connection:
            expected = connection.execute(BY_HAND, [str(path), ties, repeats]).fetchall()
        scores = [(row.judge, row.consistency if ties else row.decisive) for row in found.judges]
        assert [judge for judge, *_ in expected] == [judge for judge, _ in scores]
        assert [score for _, score in scores] == pytest.approx([plain for _, plain, _ in expected], abs=1e-12)
        if ties:
            corrected = [row.corrected for row in found.judges]
            assert corrected == pytest.approx([unbiased for *_, unbiased in expected], abs=1e-12)


def test_discrimination_of_peers_by_the_gaps_that_the_others_see(shared_data: Path, table: Table) -> None:
    path = shared_data / "vicuna80_peers" / "judgments.parquet"
    found = consistency(table(read(path, COLUMNS, "repeat = 1")))
    assert found.gaps == "other judges"
    slopes = {row.judge: (row.discrimination_ml, row.discrimination_ml_se) for row in found.judges}
    assert slopes["gpt-4"] == pytest.approx((2.7198, 0.2091), abs=1e-3)
    assert slopes["vicuna-13b"] == pytest.approx((0.4082, 0.0635), abs=1e-3)
    assert found.slopes is not None
    assert found.slopes.reliability == pytest.approx(0.97, abs=0.005)


def test_a_sparse_crowd_table_has_its_corrected_figures_inside_their_intervals(shared_data: Path, table: Table) -> None:
    """Some 1,290 matchups on 19 instructions, two or three of them each: the plain figures lean high."""
    path = shared_data / "llmfao" / "comparisons.parquet"
    rows = read(path, "first, second, verdict, annotator, prompt_id", "annotator_kind = 'llm'")
    found = consistency(table(rows, ordered=False))
    for row in found.judges:
        assert row.consistency is not None
        assert row.consistency_hi is not None
        assert row.corrected is not None
        assert row.consistency_lo is not None
        assert row.consistency > row.consistency_hi
        assert row.consistency_lo < row.corrected < row.consistency_hi
