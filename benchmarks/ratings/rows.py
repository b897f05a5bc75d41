"""The rows of `make bench-ratings`: the comparisons and their targets."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import duckdb
import numpy as np
import tables
from judge_rows import abilities
from lines import Line
from numpy.typing import NDArray
from running import HERE, Failed, Missing, Run, last_words, run

from venire.arena.scale import POINTS_PER_LOGIT

_REPLICATES = 1000
_VERDICTS = (
    "update verdict set label = case when hash(trial) % 10 < 6 then 1 when hash(trial) % 10 < 7 then 0 else -1 end"
)
"""Six in ten for the first model, one a tie, three for the second, at random: a store is settled with one label."""


@dataclass(frozen=True)
class Bench:
    """The folder of tables, and the scale factor of their sizes."""

    folder: Path
    scale: float

    def rows(self, whole: float) -> int:
        """The number of rows of a table at this scale."""
        return max(20_000, round(whole * self.scale))

    def battles(self, rows: float, models: int, *, covariates: bool = False) -> Path:
        """A table of battles, created once."""
        size = self.rows(rows)
        folder = self.folder / f"battles-{size}-{models}{'-x' * covariates}"
        return folder if folder.exists() else tables.battles(folder, size, models, covariates=covariates)

    @cached_property
    def bootstrap(self) -> Run:
        """1,000 bootstraps by battle, which several rows are compared with."""
        return run("venire", "bootstrap", self.battles(1e6, 100), seconds=5.0, replicates=_REPLICATES)

    @cached_property
    def bootstrap_by_cluster(self) -> Run:
        """1,000 bootstraps by cluster."""
        return run("venire", "bootstrap by cluster", self.battles(1e6, 100), seconds=8.0, replicates=_REPLICATES)


def _sized(bench: Bench, rows: float, models: int) -> str:
    return f"{bench.rows(rows):,} x {models:,}"


def _apart(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Largest difference of two sets of ratings in Elo points, both with mean 0."""
    return float(POINTS_PER_LOGIT * np.abs((one - one.mean()) - (other - other.mean())).max())


def _beside(
    what: str,
    ours: Run,
    folder: Path,
    peer: str,
    task: str,
    least: float | None = None,
    *,
    beside: str = "",
    repeats: int = 3,
    seconds: float = 10.0,
    ratings: bool = True,
    **options: object,
) -> Line:
    """A library's CPU time as a multiple of ours."""
    name = beside or peer.replace("_", "-")
    try:
        theirs = run(peer, task, folder, repeats=repeats, seconds=seconds, **options)
    except (Missing, Failed) as reason:
        return Line(what, name, None, least=least, note=last_words(reason))
    notes = [f"best of {theirs.calls}" if theirs.calls > 1 else "one call"]
    if ratings:
        notes.append(f"{_apart(theirs.found, ours.found):.0e} Elo from ours")
    version = f" {theirs.version}" if theirs.version else ""
    return Line(what, f"{name}{version}", theirs.cpu / ours.cpu, least=least, note=", ".join(notes))


def _scaled(
    what: str,
    ours: Run,
    folder: Path,
    peer: str,
    task: str,
    few: int,
    many: int,
    least: float | None = None,
    *,
    beside: str = "",
) -> Line:
    """The same where a library takes minutes: the time per replicate comes from a small and a larger run.

    One-time work (coding of labels, a first fit, compiling) is in both runs, so it is not multiplied.
    """
    name = beside or peer.replace("_", "-")
    try:
        short, long = (run(peer, task, folder, repeats=1, replicates=count) for count in (few, many))
    except (Missing, Failed) as reason:
        return Line(what, name, None, least=least, note=last_words(reason))
    each = (long.cpu - short.cpu) / (many - few)
    version = f" {long.version}" if long.version else ""
    whole = short.cpu + (_REPLICATES - few) * each
    return Line(
        what, f"{name}{version}", whole / ours.cpu, least=least, note=f"scaled from {few} and {many} replicates"
    )


def _gradient(folder: Path, logits: NDArray[np.float64]) -> float:
    """Largest entry of the gradient over the weight, computed here from the table itself."""
    size = len(logits)
    wins = np.zeros((size, size))
    a, b, y = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in "aby")
    for start in range(0, len(y), 1 << 20):
        part = slice(start, start + (1 << 20))
        key = a[part].astype(np.int64) * size + b[part]
        won = np.bincount(key, y[part], size * size)
        wins += won.reshape(size, size) + (np.bincount(key, minlength=size * size) - won).reshape(size, size).T
    chance = 1.0 / (1.0 + np.exp(logits[None, :] - logits[:, None]))
    slope = wins.sum(axis=1) - ((wins + wins.T) * chance).sum(axis=1)
    return float(np.abs(slope).max() / wins.sum())


def fit_few(bench: Bench) -> Iterator[Line]:
    """Many battles of few models, from integer codes."""
    folder, what = bench.battles(1e7, 20), f"Bradley-Terry, {_sized(bench, 1e7, 20)}, codes"
    ours = run("venire", "fit", folder, repeats=7, seconds=5.0)
    yield _beside(what, ours, folder, "evalica", "fit", 60, beside="evalica, public call", repeats=2)
    yield _beside(what, ours, folder, "evalica", "kernel", 7, beside="evalica, its kernel alone")
    yield Line("... largest gradient over the weight", "", _gradient(folder, ours.found), "", most=1e-12)
    yield Line("... peak memory with the input", "", ours.peak_mb, " MB", most=1000)


def fit_many(bench: Bench) -> Iterator[Line]:
    """Many battles of many models."""
    folder, what = bench.battles(1e7, 1000), f"Bradley-Terry, {_sized(bench, 1e7, 1000)}, codes"
    ours = run("venire", "fit", folder, repeats=5, seconds=5.0)
    yield _beside(what, ours, folder, "evalica", "fit", 40, beside="evalica, public call", repeats=2)
    yield _beside(what, ours, folder, "fastchat", "fit", 150, repeats=1)
    yield _beside(what, ours, folder, "arena_rank", "fit", 250, repeats=1)
    yield Line("... largest gradient over the weight", "", _gradient(folder, ours.found), "", most=1e-12)
    yield Line("... peak memory with the input", "", ours.peak_mb, " MB", most=1000)


def fit_labels(bench: Bench) -> Iterator[Line]:
    """Many battles of few models, from strings, each as the other library takes them."""
    folder, what = bench.battles(1e7, 20), f"Bradley-Terry, {_sized(bench, 1e7, 20)}"
    lists = run("venire", "labels", folder, seconds=8.0, kind="lists")
    yield _beside(f"{what}, lists of strings", lists, folder, "evalica", "labels", 10, repeats=2)
    objects = run("venire", "labels", folder, seconds=8.0, kind="objects")
    yield _beside(f"{what}, columns of strings", objects, folder, "fastchat", "labels", 25, repeats=1)
    yield _beside(f"{what}, columns of strings", objects, folder, "arena_rank", "labels", 25, repeats=2, seconds=45.0)


def fit_all(bench: Bench) -> Iterator[Line]:
    """A smaller table, which every library can rate."""
    for size in (1e5, 1e6):
        folder, what = bench.battles(size, 100), f"Bradley-Terry, {_sized(bench, size, 100)}, codes"
        ours = run("venire", "fit", folder, repeats=9, seconds=3.0)
        for peer in ("evalica", "fastchat", "arena_rank", "arenakit", "scikit_learn", "choix"):
            if peer != "choix" or size == 1e5:  # it iterates over a list of every win in Python
                yield _beside(what, ours, folder, peer, "fit", seconds=8.0)


def ladder(bench: Bench) -> Iterator[Line]:
    """Models that meet only neighbours: the largest error in Elo points against the exact ratings."""
    models = 1000
    folder, exact = tables.ladder(bench.folder / "ladder", models), tables.ladder_logits(models)
    what = f"ladder of {models:,} models, largest error"
    ours = run("venire", "fit", folder)
    yield Line(what, "venire", _apart(ours.found, exact), " Elo", most=1e-6, note="against the closed form")
    for peer, note, limits in (
        ("evalica", "its limit of 100 steps", {}),
        ("evalica", "limit of 20,000 steps", {"limit": 20_000}),
        ("fastchat", "", {}),
        ("arena_rank", "", {}),
        ("arenakit", "", {}),
        ("scikit_learn", "", {}),
        ("choix", "", {}),
    ):
        name = peer.replace("_", "-")
        try:
            theirs = run(peer, "fit", folder, repeats=1, **limits)
        except (Missing, Failed) as reason:
            yield Line(what, name, None, note=last_words(reason))
            continue
        time = f"{theirs.cpu / ours.cpu:,.0f}x the time of ours"
        error = _apart(theirs.found, exact)
        yield Line(what, f"{name} {theirs.version}".strip(), error, " Elo", note=", ".join(filter(None, (note, time))))


def bootstrap(bench: Bench) -> Iterator[Line]:
    """1,000 refits; libraries that take long do fewer, and are scaled."""
    folder, ours = bench.battles(1e6, 100), bench.bootstrap
    what = f"1,000 bootstraps, {_sized(bench, 1e6, 100)}"
    yield _scaled(what, ours, folder, "fastchat", "bootstrap", 20, 100, 75)
    yield _scaled(what, ours, folder, "arenakit", "bootstrap", 5, 25, 24)
    yield _scaled(what, ours, folder, "evalica", "bootstrap", 2, 6, 3000)
    yield _scaled(what, ours, folder, "arena_rank", "bootstrap", 2, 8, 3000)


def sandwich(bench: Bench) -> Iterator[Line]:
    """Errors by formula compared with those of 1,000 bootstraps: the difference, and the relative time."""
    folder = bench.battles(1e6, 100)
    for kind, task, drawn in (
        ("by battle", "sandwich", bench.bootstrap),
        ("by instruction", "clustered", bench.bootstrap_by_cluster),
    ):
        what = f"sandwich errors {kind}, {_sized(bench, 1e6, 100)}"
        ours = run("venire", task, folder, repeats=9, seconds=3.0)
        ratio = ours.found / drawn.found
        beside = "our 1,000 bootstraps"
        yield Line(f"{what}, mean off by", beside, float(abs(ratio.mean() - 1.0)) * 100, " %", most=1)
        yield Line("... furthest model off by", beside, float(np.abs(ratio - 1.0).max()) * 100, " %", most=8)
        yield Line("... time, ratings included", beside, ours.cpu / drawn.cpu, "x", most=0.1)


def clusters(bench: Bench) -> Iterator[Line]:
    """Resampling of instructions compared with that of battles."""
    what = f"1,000 bootstraps by instruction, {_sized(bench, 1e6, 100)}, time"
    ratio = bench.bootstrap_by_cluster.cpu / bench.bootstrap.cpu
    yield Line(what, "our 1,000 by battle", ratio, most=3)


def _sample(bench: Bench) -> Path:
    """The recorded sample of 1,000 scored battles; a generated sample of that size without the records."""
    folder = bench.folder / "sample"
    source = Path(os.environ.get("VENIRE_DATA", "")) / "softelo_sample" / "battles.parquet"
    if not os.environ.get("VENIRE_DATA") or not source.exists():
        return tables.scored(folder, 1000, 14)
    names = "model_a, model_b, judge_winner, human_winner, score_difference"
    query = f"SELECT {names} FROM read_parquet(?) ORDER BY battle_id"
    with duckdb.connect() as connection:
        columns = connection.execute(query, [str(source)]).fetchnumpy()
    share = {"model_a": 1.0, "tie": 0.5, "model_b": 0.0}
    said = {"y": columns["judge_winner"], "human": columns["human_winner"]}
    verdicts = {name: np.array([share[word] for word in words]) for name, words in said.items()}
    both = np.concatenate([columns["model_a"], columns["model_b"]]).astype(str)
    models, sides = np.unique(both, return_inverse=True)
    a, b = np.split(sides.astype(np.int32), 2)
    score = np.asarray(columns["score_difference"], dtype=np.float64)
    return tables.save(folder, models.tolist(), a=a, b=b, score=score, **verdicts)


def soft(bench: Bench) -> Iterator[Line]:
    """Soft-Elo compared with its authors' row-by-row method."""
    size = bench.rows(25_000)
    folder = tables.scored(bench.folder / "scored", size, 55)
    ours = run("venire", "soft", folder, repeats=9, seconds=2.0)
    beside = "row by row, as its authors"
    what = f"Soft-Elo: beta and three fits, {size:,} x 55"
    yield _beside(what, ours, folder, "rowwise", "soft", 1000, beside=beside, repeats=2, ratings=False)
    folder = _sample(bench)
    ours = run("venire", "held out", folder, repeats=5, seconds=2.0, replicates=200)
    what = "Soft-Elo: leave one of 14 out, 200 bootstraps, 1,000 battles"
    yield _beside(what, ours, folder, "rowwise", "held out", 50, beside=beside, repeats=2, replicates=200)


def with_covariates(bench: Bench) -> Iterator[Line]:
    """Bradley-Terry with ten covariates."""
    folder = bench.battles(1e6, 100, covariates=True)
    ours = run("venire", "covariates", folder, seconds=4.0)
    what = f"covariates, {_sized(bench, 1e6, 100)} x 10"
    for peer, least in (("scikit_learn", 15), ("fastchat", 15), ("arena_rank", 20)):
        yield _beside(what, ours, folder, peer, "covariates", least, repeats=2, ratings=False)


def consistency(bench: Bench) -> Iterator[Line]:
    """From the store of a settled campaign: consistency of its judges with intervals, the peer's of 1,000 draws."""
    trials = max(10_000, round(1e6 * bench.scale) // 1000 * 1000)
    folder = bench.folder / f"store-{trials}"
    if not folder.exists():
        _campaign(folder, trials)
    ours = run("venire", "consistency", folder, repeats=3, seconds=10.0, replicates=_REPLICATES)
    what = f"consistency of 5 judges, {trials:,} verdicts, with intervals, from the store"
    beside = "verdict by verdict, from arrays"
    yield _scaled(what, ours, folder, "rowwise", "consistency", 2, 12, beside=beside)


def _campaign(folder: Path, trials: int) -> None:
    """A settled campaign whose judges follow the models' numbers, and its verdicts as plain arrays."""
    sys.path.append(str(HERE.parent))
    import stores

    from venire.storage.read import frames

    campaign = stores.load_campaign(stores.make(folder, trials))
    with stores.open_store(campaign.store) as store:
        stores.settle(store, stores.settled_first(trials))
        with store.commit() as commit:
            store.connection.execute(_VERDICTS)
            commit.written += trials
        verdicts = frames.battles(store, 1)
    key = verdicts.model_a.astype(np.int64) * len(verdicts.models) + verdicts.model_b
    columns = {"judge": verdicts.judge, "instruction": verdicts.instruction, "y": (verdicts.label + 1) / 2.0}
    columns["pair"] = np.unique(key, return_inverse=True)[1]
    for name, column in columns.items():
        np.save(folder / f"{name}.npy", column)


def kemeny(bench: Bench) -> Iterator[Line]:
    """The proved order that contradicts the fewest votes, compared with programs with all constraints at once."""
    cases = (
        ("25 voters who agree", 50, 0.15, 0.02),
        ("25 random ballots", 40, 0.0, 0.1),
        ("one random vote a pair", 25, None, 10.0),
    )
    for told, models, agreement, most in cases:
        size = max(8, round(models * bench.scale))
        folder = bench.folder / f"votes-{size}-{agreement}"
        if agreement is None:
            tables.tournament(folder, size)
        else:
            tables.ballots(folder, size, 25, agreement)
        ours = run("venire", "kemeny", folder, repeats=5, seconds=10.0, limit=60.0)
        order, proved = ours.found[:-1].astype(np.int64), ours.found[-1]
        what = f"Kemeny-Young, {size} models, {told}"
        yield Line(what, "venire", ours.cpu, " s", most=most, note="proved" if proved else "not proved")
        for peer in ("rowwise", "pulp", "corankco") if agreement is not None else ("rowwise", "pulp"):
            yield _ordered_beside(what, ours, order, folder, peer)


def _ordered_beside(what: str, ours: Run, order: NDArray[np.int64], folder: Path, peer: str) -> Line:
    """A peer's CPU time for an order as a multiple of ours, and the cost of its order."""
    name = {"rowwise": "SciPy, all rows at once", "pulp": "PuLP with CBC, all rows at once"}.get(peer, peer)
    try:
        theirs = run(peer, "kemeny", folder, repeats=2, seconds=20.0, limit=60.0)
    except (Missing, Failed) as reason:
        return Line(what, name, None, note=last_words(reason))
    weight = np.load(folder / "weight.npy")
    ours_cost, cost = (np.tril(weight[np.ix_(one, one)], -1).sum() for one in (order, theirs.found.astype(np.int64)))
    note = "the same cost" if cost == ours_cost else f"costs {cost - ours_cost:g} more"
    return Line(what, f"{name} {theirs.version}".strip(), theirs.cpu / ours.cpu, note=note)


ROWS: dict[str, Callable[[Bench], Iterator[Line]]] = {
    "few": fit_few,
    "many": fit_many,
    "labels": fit_labels,
    "all": fit_all,
    "ladder": ladder,
    "bootstrap": bootstrap,
    "sandwich": sandwich,
    "clusters": clusters,
    "soft": soft,
    "covariates": with_covariates,
    "abilities": abilities,
    "consistency": consistency,
    "kemeny": kemeny,
}
"""Every row by its name, in the order of the table."""
