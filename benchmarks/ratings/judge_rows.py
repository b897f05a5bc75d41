"""Rows of `make bench-ratings` on judges: ratings and abilities from the same verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import tables
from lines import Line
from numpy.typing import NDArray
from running import Failed, Missing, last_words, run

if TYPE_CHECKING:
    from rows import Bench


def _told_short(folder: Path, found: NDArray[np.float64]) -> float:
    """Minus the log-likelihood of am-ELO in nats, counted here row by row; `found` are ratings, then abilities."""
    a, b, y, judge = (np.load(folder / f"{name}.npy") for name in ("a", "b", "y", "judge"))
    logits, ability = np.split(found, [int(max(a.max(), b.max())) + 1])
    gap = ability[judge] * (logits[a] - logits[b])
    return float((np.logaddexp(0.0, gap) - y * gap).sum())


def abilities(bench: Bench) -> Iterator[Line]:
    """am-ELO at the size of its paper compared with its authors' loop, and at a size too large for the loop."""
    folder, restarts = tables.judged(bench.folder / "judged", 4321, 20, 42), 20
    what, beside = "am-ELO, 4,321 x 20, 42 judges, codes", "its authors' loop, torch"
    ours = run("venire", "abilities", folder, repeats=200, seconds=5.0)
    best = run("venire", "abilities", folder, repeats=1, restarts=restarts)
    found = _told_short(folder, ours.found)
    try:
        theirs = run("am_elo_authors", "abilities", folder, repeats=2 if bench.scale == 1.0 else 1)
    except (Missing, Failed) as reason:
        least = _told_short(folder, best.found)
        yield Line(what, beside, None, least=400, note=last_words(reason))
    else:
        ends = _told_short(folder, theirs.found)
        least = min(ends, _told_short(folder, best.found))
        note = f"best of {theirs.calls}, ends {ends - least:.0e} nats short of the best known"
        yield Line(what, f"{beside} {theirs.version}", theirs.cpu / ours.cpu, least=400, note=note)
    yield Line("... nats short of the best known", f"{restarts} restarts", found - least, "", most=1e-6)
    yield Line("... time", "", 1000.0 * ours.cpu, " ms", most=4)
    size = bench.rows(1e6)
    large = run("venire", "abilities", tables.judged(bench.folder / f"judged-{size}", size, 100, 500), seconds=30.0)
    yield Line(f"am-ELO, {size:,} x 100, 500 judges, time", "", large.cpu, " s", note=f"best of {large.calls}")
    yield Line("... peak memory with the input", "", large.peak_mb, " MB", most=500)
