"""Shared parts of the libraries' drivers: the battles, the timer, and one JSON line of results.

It runs in a library's own environment, so it uses only the standard library and NumPy.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

Call = Callable[[], Any]
"""The timed call: from prepared arrays or labels to an array of figures."""


@dataclass(frozen=True)
class Battles:
    """One table, the same for every library; a library's own input format is prepared before the timer starts."""

    folder: Path
    options: dict[str, Any]

    def column(self, name: str) -> Any:
        """One of the saved arrays (rows,), read into memory."""
        return np.load(self.folder / f"{name}.npy")

    @cached_property
    def models(self) -> list[str]:
        """The names behind the codes."""
        return list(json.loads((self.folder / "models.json").read_text(encoding="utf-8")))

    def labels(self, name: str) -> Any:
        """The names of one side as Python strings (rows,): each name is one object, as a data frame holds them."""
        return np.array(self.models, dtype=object)[self.column(name)]

    def winners(self) -> Any:
        """The outcomes in words as in Chatbot Arena (rows,)."""
        return np.array(["model_b", "tie", "model_a"], dtype=object)[(2.0 * self.column("y")).astype(np.int8)]

    def frame(self) -> Any:
        """The same as a pandas data frame of strings."""
        import pandas as pd

        sides = {f"model_{side}": self.labels(side) for side in "ab"}
        return pd.DataFrame({**sides, "winner": self.winners()})


Tasks = dict[str, Callable[[Battles], Call]]


def _offline(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook that blocks network access during a benchmark."""
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        raise ConnectionRefusedError(f"a benchmark stays on this machine, it does not go to {arguments[1][0]}")


def _cpu() -> float:
    """CPU seconds of this process and of its finished children."""
    used = os.times()
    return time.process_time() + used.children_user + used.children_system


def drive(package: str, tasks: Tasks) -> None:
    """Time one task, named in the arguments: task, folder of the table, file for the result, options as JSON."""
    sys.addaudithook(_offline)
    task, folder, result, options = sys.argv[1:]
    given = json.loads(options)
    if task not in tasks:
        sys.stdout.write(json.dumps({"missing": f"{package} has no {task}"}) + "\n")
        return
    call = tasks[task](Battles(Path(folder), given))
    wall, cpu, found = [], [], None
    while len(wall) < given["repeats"] and sum(wall) < given["seconds"]:
        started, used = time.perf_counter(), _cpu()
        found = call()
        wall.append(time.perf_counter() - started)
        cpu.append(_cpu() - used)
    np.save(result, np.asarray(found, dtype=np.float64))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    told = {"wall": wall, "cpu": cpu, "version": version(package) if package else "", "peak_mb": peak}
    sys.stdout.write(f"\n{json.dumps(told)}\n")
