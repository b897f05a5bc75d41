"""Each policy's precision with the same judge, compared with the optimum: see README.md one folder up.

`python benchmarks/policies/bench.py [--seeds 20] [--judges NAME ...] [--purposes NAME ...] [--judge]`
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from dataclasses import dataclass

import numpy as np
from runs import Seen, Task, limit, run
from speed import seconds_of_a_round
from world import Truth, truth

_JUDGES = ("person", "gpt-4-0613", "gpt-4-vicuna80")
_POLICIES = ("information", "gap-error", "near-tie", "random", "widest-gap")
_MEAN = Task("mean", 1500, 100)
_BOUNDARY = Task("boundary", 1500, 100)
_PLACE = {"lowest": Task("place", 200, 20, 0), "highest": Task("place", 200, 20, 19)}
_HEAD = (
    "judge | purpose | policy | limit reached | limit / balanced | verdicts, balanced = 1 (by information) "
    "| (by error seen) | target | met\n"
    "--- | --- | --- | --- | --- | --- | --- | --- | ---\n"
)


@dataclass(frozen=True, slots=True)
class Line:
    """One policy for one purpose and judge, over seeds, compared with balanced at equal numbers of battles."""

    judge: str
    purpose: str
    policy: str
    seen: list[Seen]
    balanced: list[Seen]

    def show(self) -> str:
        """A row of the table."""
        ours, even = [one.efficiency for one in self.seen], [one.efficiency for one in self.balanced]
        target, met = self.target()
        cells = (
            self.judge,
            self.purpose,
            self.policy,
            _spread(ours),
            f"{statistics.mean(even):.2f}",
            _spread([b / a for a, b in zip(ours, even, strict=True)]),
            self._by_error(),
            target,
            {None: "-", True: "yes", False: "**no**"}[met],
        )
        return " | ".join(cells) + "\n"

    def target(self) -> tuple[str, bool | None]:
        """The target of this line, and whether it is met; None: no target."""
        if self.policy != "information":
            return "-", None
        ours = statistics.mean(one.efficiency for one in self.seen)
        ratio = statistics.mean(b.efficiency / a.efficiency for a, b in zip(self.seen, self.balanced, strict=True))
        if self.purpose == "mean":
            return "reaches 0.90", ours >= 0.9
        most = 1 / 3 if self.purpose == "boundary" else 0.5
        return f"verdicts at most {most:.2f}", ratio <= most

    def _by_error(self) -> str:
        """The ratio of mean squared errors, with a bootstrap interval over seeds."""
        ours, even = (np.array([one.error for one in each]) for each in (self.seen, self.balanced))
        drawn = np.random.default_rng(0).integers(0, len(ours), (4000, len(ours)))
        low, high = np.quantile(ours[drawn].mean(axis=1) / even[drawn].mean(axis=1), [0.025, 0.975])
        return f"{ours.mean() / even.mean():.2f} ({low:.2f} to {high:.2f})"


def _spread(values: list[float]) -> str:
    return f"{statistics.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def lines(judge: str, known: Truth, seeds: int, purposes: list[str]) -> list[Line]:
    """Every policy for some purposes with one judge."""
    found = []
    tasks = {"mean": (_MEAN, _POLICIES), "boundary": (_BOUNDARY, ("information",))}
    tasks |= {f"place the {end}": (task, ("information",)) for end, task in _PLACE.items()}
    for purpose, (task, policies) in tasks.items():
        if task.purpose not in purposes:
            continue
        best = limit(known, task)
        even = [run(judge, seed, "balanced", task, known, best) for seed in range(seeds)]
        for policy in policies:
            seen = [run(judge, seed, policy, task, known, best) for seed in range(seeds)]
            found.append(Line(judge, purpose, policy, seen, even))
    return found


def main() -> int:
    """Print the table; 1 for a missed target under `--judge`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--judges", nargs="+", default=_JUDGES)
    parser.add_argument("--purposes", nargs="+", default=["mean", "boundary", "place"])
    parser.add_argument("--judge", action="store_true", help="end with 1 where a target is missed")
    given = parser.parse_args()
    start, missed = time.monotonic(), False
    _say(f"verdicts: simulated; {given.seeds} seeds, means (least to most); intervals of 95 % by seeds drawn again\n\n")
    for judge in given.judges:
        known = truth(judge)
        _say(f"{judge}: {known.slope:.2f} of its log odds per logit of people's, {known.habit}\n")
    _say("\n" + _HEAD)
    for judge in given.judges:
        for line in lines(judge, truth(judge), given.seeds, given.purposes):
            _say(line.show())
            missed |= line.target()[1] is False
    _say("\npolicy | asked before | seconds of CPU for a round of 1,000 battles of 200 models x 1,000 instructions\n")
    _say("--- | --- | ---\n")
    for policy, before, seconds in seconds_of_a_round():
        _say(f"{policy} | {before:,} | {seconds:.2f}{'' if seconds < 2.0 else ' **over 2**'}\n")
        missed |= seconds >= 2.0
    _say(f"\nin {(time.monotonic() - start) / 60:.1f} minutes; load {os.getloadavg()[0]:.1f}\n")
    return int(missed and given.judge)


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
