"""Results of placements by policy: errors, coverage of intervals, and numbers of verdicts."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_NORMAL = 1.959964


def summary(paths: Sequence[Path]) -> str:
    """A table in Markdown of all rows in some files, with the spread of the mean error over seeds."""
    rows = [row for path in paths for row in csv.DictReader(path.open(newline=""))]
    lines = [
        "| judge | policy | placements | mean abs. error, people's Elo (by seed) | conformal 90 % covers "
        "| its half-width | judge's 95 % covers | error by the judge | its se | battles | verdicts | dollars |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    kinds = sorted({(row["profile"], row["policy"]) for row in rows}, key=lambda kind: (kind[0], kind[1] == "balanced"))
    for profile, policy in kinds:
        mine = [row for row in rows if (row["profile"], row["policy"]) == (profile, policy)]
        lines.append(_line(profile, policy, mine))
    return "\n".join(["verdicts: simulated", "", *lines, *_ends(rows)]) + "\n"


def _line(profile: str, policy: str, rows: Sequence[dict[str, str]]) -> str:
    number = {name: np.array([float(row[name]) for row in rows]) for name in _figures(rows)}
    models = np.array([row["model"] for row in rows])
    off = np.abs(number["elo"] - number["people"])
    seeds = [off[number["seed"] == seed].mean() for seed in np.unique(number["seed"])]
    held = (number["low"] <= number["people"]) & (number["people"] <= number["high"])
    by_judge = (number["judge_low"] <= number["judge_truth"]) & (number["judge_truth"] <= number["judge_high"])
    apart = number["judge"] - number["judge_truth"]
    told = [
        profile,
        policy,
        f"{len(rows)}",
        f"{off.mean():.1f} ({min(seeds):.1f} to {max(seeds):.1f})",
        _share(held, models),
        f"{np.median(number['high'] - number['low']) / 2:.0f}",
        _share(by_judge, models),
        f"{np.sqrt(np.mean(apart**2)):.1f} (mean {apart.mean():+.1f})",
        f"{number['se'].mean():.1f}",
        f"{number['battles'].mean():.0f}",
        f"{number['verdicts'].mean():.0f}",
        f"{number['dollars'].mean():.3f}",
    ]
    return "| " + " | ".join(told) + " |"


def _figures(rows: Sequence[dict[str, str]]) -> list[str]:
    return [name for name in rows[0] if name not in ("profile", "policy", "model")]


def _share(held: NDArray[np.bool_], models: NDArray[np.str_]) -> str:
    share, low, high = clustered(held, models)
    return f"{share:.3f} ({low:.3f} to {high:.3f})"


def clustered(held: NDArray[np.bool_], models: NDArray[np.str_]) -> tuple[float, float, float]:
    """A share with its 95 % interval, rows of one model counted as dependent (Wilson's, for the effective number).

    The effective number is the number of rows over the design effect, which is at least 1.
    """
    share, size = float(held.mean()), len(held)
    sums = np.array([(held[models == one] - share).sum() for one in np.unique(models)])
    plain = size * share * (1.0 - share)
    effect = max(1.0, float((sums**2).sum()) / plain) if plain > 0.0 else float(size / len(sums))
    many = size / effect
    middle = (share + _NORMAL**2 / (2 * many)) / (1 + _NORMAL**2 / many)
    half = _NORMAL / (1 + _NORMAL**2 / many) * np.sqrt(share * (1 - share) / many + _NORMAL**2 / (4 * many**2))
    return share, max(0.0, float(middle - half)), min(1.0, float(middle + half))


def _ends(rows: Sequence[dict[str, str]]) -> list[str]:
    """Verdicts that balanced anchors need for the error of `information`, by the model's distance from the middle."""
    lines = ["", "| judge | models | verdicts that balanced anchors need for the same error |", "|---|---|---|"]
    for profile in sorted({row["profile"] for row in rows}):
        both: dict[tuple[str, str], dict[str, tuple[float, float]]] = {}
        elo: dict[str, float] = {}
        for row in (one for one in rows if one["profile"] == profile):
            both.setdefault((row["model"], row["seed"]), {})[row["policy"]] = (float(row["se"]), float(row["battles"]))
            elo[row["model"]] = float(row["people"])
        names = sorted(elo, key=lambda name: elo[name])
        fifth = max(1, len(names) // 5)
        for told, chosen in (
            ("weakest fifth", names[:fifth]),
            ("middle", names[fifth:-fifth]),
            ("best fifth", names[-fifth:]),
        ):
            pairs = [one for (name, _), one in both.items() if name in chosen and len(one) == 2]
            if pairs:
                ratio = [
                    (one["balanced"][0] ** 2 * one["balanced"][1])
                    / (one["information"][0] ** 2 * one["information"][1])
                    for one in pairs
                ]
                lines.append(
                    f"| {profile} | {told} ({len(chosen)}) | {np.exp(np.mean(np.log(ratio))):.2f} times as many |"
                )
    return lines
