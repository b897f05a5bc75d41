"""Covariates of battles from a table's columns: what is said of both sides becomes one number of A less B.

A covariate NAME stands in two columns, `NAME_a` and `NAME_b` (or `NAME_first` and `NAME_second`), of figures that are
not negative, and becomes `(a - b) / (a + b)`, 0 where both are 0, divided by its standard deviation; or it stands in
one column NAME, which is taken as it is. Nothing is centred, and the deviation is taken about 0: so neither depends on
which model a table calls A.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from venire.arena.errors import InputError
from venire.storage.transfer.formats.source import Table

__all__ = ["columns_of", "feature_cells", "refuse_bad_features", "scaled"]

_SIDES = (("a", "b"), ("first", "second"))


def columns_of(table: Table, features: Sequence[str], mapping: Mapping[str, str] = {}) -> dict[str, tuple[str, ...]]:
    """The file's one or two columns of each covariate. Raises InputError for one that is not there."""
    found: dict[str, tuple[str, ...]] = {}
    for name in features:
        ways = [*(tuple(f"{name}_{side}" for side in sides) for sides in _SIDES), (name,)]
        way = next((way for way in ways if all(one in mapping or one in table.columns for one in way)), None)
        if way is None:
            raise InputError(
                f'{table.path}: no columns "{name}_a" and "{name}_b" and no column "{name}" for the covariate {name}; '
                f"columns found: {', '.join(list(table.columns)[:30])}"
            )
        found[name] = tuple(table.column(one, mapping) for one in way)
    return found


def feature_cells(table: Table, covariates: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Names and SQL of what a table of verdicts needs: `x0`, `x1`, ... and beside them the cells they are made of."""
    cells = {}
    for number, columns in enumerate(covariates.values()):
        given = [table.cell(column) for column in columns]
        sides = [f"try_cast({cell} as double)" for cell in given]
        x = sides[0]
        if len(sides) == 2:
            a, b = sides
            x = f"case when {a} < 0 or {b} < 0 then null when {a} + {b} = 0 then 0 else ({a} - {b}) / ({a} + {b}) end"
        cells[f"x{number}"] = f"cast({x} as double)"
        cells |= {f"x{number}_{side}": cell for side, cell in enumerate(given)}
    return cells


def scaled(
    values: Mapping[str, NDArray[np.float64]], covariates: Mapping[str, Sequence[str]], rows: NDArray[np.bool_]
) -> dict[str, NDArray[np.float64]]:
    """The covariates, those of two columns divided by their deviation over the rows; one that is 0 there stays."""
    found = dict(values)
    for name, columns in covariates.items():
        spread = float(np.sqrt(np.mean(np.square(values[name][rows])))) if rows.any() else 0.0
        if len(columns) == 2 and spread > 0.0:
            found[name] = values[name] / spread
    return found


def refuse_bad_features(table: Table, covariates: Mapping[str, Sequence[str]]) -> None:
    """Raises InputError for the first row whose figure is missing, is no number, or is negative beside another."""
    for number, columns in enumerate(covariates.values()):
        two = len(columns) == 2
        for side, column in enumerate(columns):
            cell = f"x{number}_{side}"
            figure = f"try_cast({cell} as double)"
            fine = f"coalesce(isfinite({figure}){f' and {figure} >= 0' if two else ''}, false)"
            row = table.connection.execute(
                f"select row, cast({cell} as varchar) from verdict where not {fine} order by row limit 1"
            ).fetchone()
            if row is not None:
                kind = "a number, 0 or more" if two else "a number"
                raise InputError(
                    f'{table.path}: row {row[0]}: "{column}" is "{(row[1] or "")[:60]}"; accepted: {kind}; fill it in '
                    "or leave the row out"
                )
