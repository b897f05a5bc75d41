"""The charts of a report as files: for a paper, a slide, or whoever wants to draw them otherwise."""

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from venire.arena.errors import InputError
from venire.boards.rate import Source, read
from venire.ratings.inference.options import Options
from venire.reports.charts import CHART_KINDS

__all__ = ["write_figures"]


def write_figures(
    source: Source, folder: Path, *, method: str | None = None, options: Options | None = None
) -> tuple[str, ...]:
    """Draw each chart that a board has data for as SVG and PNG, with its Vega-Lite specification; the kinds drawn.

    The folder is made where it is missing, files of these names in it are replaced. Raises InputError where altair or
    vl-convert is missing or the folder cannot be written, and as `venire.rate` does.
    """
    if missing := [package for module, package in _NEEDED.items() if find_spec(module) is None]:
        raise InputError(f"figures need {', '.join(missing)}: pip install 'venire[report]'")
    board = read(source, () if options is None else options.covariates).board(method, options)
    drawn = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for kind in CHART_KINDS:
            with suppress(InputError):  # it has no data for this kind
                chart = board.plot(kind)
                for ending, how in (("svg", {}), ("png", {"scale_factor": 2}), ("json", {})):
                    chart.save(str(folder / f"{kind}.{ending}"), **how)
                drawn.append(kind)
    except OSError as error:
        raise InputError(f"figures cannot be written to {folder}: {error.strerror or error}") from error
    return tuple(drawn)


_NEEDED = {"altair": "altair", "vl_convert": "vl-convert-python"}
