"""The board: models by rating, judges by consistency, and what a reader needs to doubt either."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.arena.records import Origin, Status
from venire.ratings.agreement import Agreement, agreement
from venire.ratings.bradley_terry import (
    BradleyTerry,
    NotConvergedError,
    count_components,
    fit,
    strong_groups,
    win_matrix,
)
from venire.ratings.consistency import Consistency, JudgeConsistency, consistency
from venire.ratings.inference import Bootstrap, bootstrap
from venire.ratings.merging import Judgments, Merge, merge_orders
from venire.ratings.scale import to_elo

__all__ = ["METHODS", "Board", "ModelRow", "build"]

METHODS = ("bradley-terry",)


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One model: Elo and its interval (None where no finite estimate exists), and the judgments it took part in.

    `group` counts from 1 and is None where all models were rated together; `reference` is a rating known before.
    """

    model: str
    elo: float | None
    lo: float | None
    hi: float | None
    battles: int
    group: int | None = None
    reference: float | None = None


@dataclass(frozen=True, slots=True)
class Board:
    """Models by falling Elo, judges by name; `verdicts` is where the verdicts come from, None where there is none."""

    method: str
    gauge: str
    verdicts: str | None
    models: tuple[ModelRow, ...]
    judges: tuple[JudgeConsistency, ...]
    diagnostics: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """The board as plain JSON values, floats rounded to six decimals, so that equal boards have equal bytes.

        A model has `group` only where there are several, and `reference` only where one is known.
        """
        optional = ("group", "reference")
        rows = [asdict(row) for row in self.models]
        models = [{key: row[key] for key in row if key not in optional or row[key] is not None} for row in rows]
        board = {
            "method": self.method,
            "gauge": self.gauge,
            "verdicts": self.verdicts,
            "models": models,
            "judges": [asdict(row) for row in self.judges],
            "diagnostics": self.diagnostics,
        }
        rounded: dict[str, Any] = _rounded(board)
        return rounded


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """Models that can be rated together, with their fit, or None and the reason why there is none."""

    models: tuple[str, ...]
    fit: BradleyTerry | None
    bootstrap: Bootstrap | None
    reason: str | None


def build(
    battles: Battles,
    *,
    reference: Mapping[str, float] | None = None,
    origins: Collection[Origin],
    method: str = "bradley-terry",
    merge: Merge = "mean",
    replicates: int = 200,
    seed: int = 0,
    families: Mapping[str, str] | None = None,
    judge_families: Mapping[str, str] | None = None,
) -> Board:
    """Rate the models and measure the judges of one table of verdicts.

    `reference` holds known Elo points by model, `origins` where the verdicts come from, `families` and
    `judge_families` the family of each model and judge. Where no common estimate exists, each group of models is
    rated apart and the diagnostics name the groups; a model alone in its group has no Elo. Raises `InputError` for
    verdicts of several origins, of none, for an unknown method or merge, and for a table that cannot be read.
    """
    origin = _one_origin(battles, origins)
    if method not in METHODS:
        raise InputError(f"method is {method!r}; choose one of {', '.join(METHODS)}")
    judgments = merge_orders(battles, merge)
    wins = win_matrix(judgments)
    groups = _rate(judgments, wins, replicates, seed) if len(battles.status) else []
    judges = consistency(battles, families=families, judge_families=judge_families, replicates=replicates, seed=seed)
    met = _agreement(groups, reference)
    return Board(
        method=method,
        gauge="mean 1000" if len(groups) < 2 else "mean 1000 in each group",
        verdicts=origin,
        models=_model_rows(judgments, groups, reference or {}),
        judges=judges.judges if len(battles.status) else (),
        diagnostics={
            "reason": None if len(judgments) else "there is no readable verdict to rate from",
            **_counts(battles, judgments),
            "between_groups": len(judgments) - sum(_weight(group) for group in groups),
            "bootstrap": _bootstrap(groups, judges),
            "groups": [list(group.models) for group in groups],
            "components": count_components(wins) if groups else 0,
            "fits": _fits(groups),
            "no_estimate": {name: group.reason for group in groups if group.reason for name in group.models},
            "agreement": _agreement_json(met, origin, groups),
            "agreement_reason": met.reason,
        },
    )


def _one_origin(battles: Battles, origins: Collection[Origin]) -> str | None:
    words = sorted({origin.value for origin in origins})
    if len(words) > 1:
        raise InputError(f"the verdicts are of several origins ({', '.join(words)}); rate one origin at a time")
    if not words and len(battles.status):
        raise InputError("the origin of the verdicts is not given; name it: real, simulated or recorded")
    return words[0] if words else None


def _rate(judgments: Judgments, wins: NDArray[np.float64], replicates: int, seed: int) -> list[_Group]:
    rated = []
    for codes in strong_groups(wins):
        names = tuple(judgments.models[code] for code in codes)
        if len(names) == 1:
            rated.append(_Group(names, None, None, _alone(wins, int(codes[0]))))
            continue
        try:
            found = fit(judgments, names)
            interval = bootstrap(judgments, names, replicates=replicates, seed=seed)
        except NotConvergedError as error:
            rated.append(_Group(names, None, None, str(error)))
        else:
            rated.append(_Group(names, found, interval, None))
    return rated


def _alone(wins: NDArray[np.float64], code: int) -> str:
    """Why a model that shares its group with no other has no finite rating."""
    won, lost = float(wins[code].sum()), float(wins[:, code].sum())
    if won == 0 and lost == 0:
        return "took part in no readable judgment"
    if lost == 0:
        return "won every judgment it took part in: no finite rating exists"
    if won == 0:
        return "lost every judgment it took part in: no finite rating exists"
    return "no chain of wins leads both to it and back from it: no finite rating exists"


def _model_rows(judgments: Judgments, groups: list[_Group], reference: Mapping[str, float]) -> tuple[ModelRow, ...]:
    sides = np.concatenate([judgments.model_a, judgments.model_b])
    battles = dict(zip(judgments.models, np.bincount(sides, minlength=len(judgments.models)).tolist(), strict=True))
    rows = []
    for number, group in enumerate(groups, start=1):
        nothing = np.full(len(group.models), np.nan)
        elo = nothing if group.fit is None else to_elo(group.fit.ratings)
        lo, hi = (nothing, nothing) if group.bootstrap is None else (group.bootstrap.lo, group.bootstrap.hi)
        rows += [
            ModelRow(
                model=name,
                elo=_known(elo[place]),
                lo=_known(lo[place]),
                hi=_known(hi[place]),
                battles=battles[name],
                group=number if len(groups) > 1 else None,
                reference=reference.get(name),
            )
            for place, name in enumerate(group.models)
        ]
    # Ratings that print alike are ties: the last bits of a fit must not decide who stands above whom.
    return tuple(sorted(rows, key=lambda row: (math.inf if row.elo is None else -round(row.elo, 6), row.model)))


def _weight(group: _Group) -> int:
    return 0 if group.fit is None else round(float(group.fit.battles.sum()) / 2.0)


def _counts(battles: Battles, judgments: Judgments) -> dict[str, Any]:
    return {
        "merge": judgments.merge,
        "judgments": len(judgments),
        "statuses": {status.name.lower(): int(np.count_nonzero(battles.status == status)) for status in Status},
        "ties": judgments.ties,
        "flips": judgments.flips,
        "one_order": judgments.one_order,
        "unreadable": judgments.unreadable,
    }


def _bootstrap(groups: list[_Group], judges: Consistency) -> dict[str, Any]:
    """How intervals were drawn; `without_estimate` is that of the group which lost the most replicates."""
    lost = [group.bootstrap.without_estimate for group in groups if group.bootstrap is not None]
    return {
        "unit": judges.unit,
        "units": judges.units,
        "level": judges.level,
        "replicates": judges.replicates,
        "without_estimate": max(lost, default=0),
        "seed": judges.seed,
    }


def _fits(groups: list[_Group]) -> list[dict[str, Any]]:
    return [
        {
            "group": number,
            "models": len(group.models),
            "judgments": _weight(group),
            "pairs": group.fit.pairs,
            "log_likelihood": group.fit.log_likelihood,
            "iterations": group.fit.iterations,
        }
        for number, group in enumerate(groups, start=1)
        if group.fit is not None
    ]


def _largest(groups: list[_Group]) -> int | None:
    """Position of the rated group with the most models; of equals, the first."""
    rated = [place for place, group in enumerate(groups) if group.fit is not None]
    return max(rated, key=lambda place: len(groups[place].models)) if rated else None


def _agreement(groups: list[_Group], reference: Mapping[str, float] | None) -> Agreement:
    """Agreement with the reference within the largest rated group: differences between groups are not known."""
    largest = _largest(groups)
    if not reference:
        return Agreement(None, None, None, 0, "no reference ratings are known")
    found = None if largest is None else groups[largest].fit
    if found is None:
        return Agreement(None, None, None, 0, "no model could be rated")
    elo = to_elo(found.ratings)
    return agreement({name: float(elo[place]) for place, name in enumerate(found.models)}, reference)


def _agreement_json(met: Agreement, origin: str | None, groups: list[_Group]) -> dict[str, Any] | None:
    if met.mae is None:
        return None
    figures: dict[str, Any] = {"pearson": met.pearson, "spearman": met.spearman, "mae": met.mae, "models": met.models}
    largest = _largest(groups)
    if len(groups) > 1 and largest is not None:
        figures["group"] = largest + 1
    return {**figures, "verdicts": origin}


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 6) + 0.0
    if isinstance(value, Mapping):
        return {key: _rounded(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(entry) for entry in value]
    return value
