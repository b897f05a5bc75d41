"""A schema and log-probabilities from the campaign file to the store, against the embedded judges on loopback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.parameters import slow_after
from tests.stores import rows_of

Venire = Callable[..., Any]
Write = Callable[..., Path]

pytestmark = pytest.mark.usefixtures("direct_judges")

TRIALS = 15 * 2 * 2
ATTEMPTS = "select structured, count(*) from attempt group by all"
VERDICTS = "select count(*), count(score), count(label) filter (sign(score) = label) from verdict where status = 0"


def stored(path: Path, sql: str) -> list[tuple[Any, ...]]:
    return rows_of(path.with_suffix(".duckdb"), sql)


def judge(*lines: str) -> str:
    return "\n".join(('[[judge]]\nname = "j"\nmodel = "simulated/gpt-4-0613@1"', *lines))


@pytest.mark.parametrize(("line", "expected"), slow_after(1, ("structured_output = true", True), ("", False)))
def test_criteria_are_held_to_their_schema_where_the_file_says_so_and_the_store_tells(
    venire: Venire, write_campaign: Write, line: str, expected: bool
) -> None:
    path = write_campaign(instructions=2, judges=judge('protocol = "criteria"', line))
    done = venire("run", path, "--yes")
    assert done.code == 0, done.err
    ((structured, attempts),) = stored(path, ATTEMPTS)
    assert structured is expected
    assert attempts >= TRIALS
    ((verdicts, scored, _),) = stored(path, VERDICTS)
    assert verdicts == scored > TRIALS * 0.8


@pytest.mark.parametrize("asked", slow_after(1, True, False))
def test_a_binary_judge_is_scored_by_its_log_probabilities_and_read_again_to_the_same(
    venire: Venire, write_campaign: Write, asked: bool
) -> None:
    path = write_campaign(instructions=2, judges=judge('protocol = "binary"', f"logprobs = {str(asked).lower()}"))
    done = venire("run", path, "--yes")
    assert done.code == 0, done.err
    ((structured, _),) = stored(path, ATTEMPTS)
    assert structured is None, "no schema was asked for"
    ((verdicts, scored, agreeing),) = stored(path, VERDICTS)
    assert verdicts > TRIALS * 0.8
    assert scored == agreeing == (verdicts if asked else 0)
    again = venire("reparse", path.with_suffix(".duckdb"), "--dry-run")
    assert again.code == 0, again.err
    assert again.out.startswith(f"nothing changed: {TRIALS} verdicts read as before")
