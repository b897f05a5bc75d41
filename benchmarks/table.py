"""The table of `make bench`: figures with their spread, and their targets."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from measuring import Run, Spread

HEAD = (
    "| what | calls | in flight (seen) | ratio of calls/s | ratio of CPU | target | CPU ms a call (share of core) |\n"
    "|---|---:|---:|---|---|---|---|\n"
)


_OWN_CORE = 0.8
"""Share of a core from which a client counts as having had the core alone."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line: a figure with its spread. `least` and `most` bound the target of its median."""

    what: str
    calls: int
    in_flight: str
    figure: Spread
    cpu: Spread | None = None
    least: float | None = None
    most: float | None = None
    note: str = ""
    disturbed: bool = False
    """Whether a client with work for a whole core did not get it: then the target is not judged."""

    @property
    def met(self) -> bool:
        """Whether the target is met, if there is one."""
        return (self.least is None or self.figure.median >= self.least) and (
            self.most is None or self.figure.median <= self.most
        )

    def show(self) -> str:
        """The line in Markdown."""
        target = "reported"
        if self.least is not None or self.most is not None:
            limit = f"at least {self.least:g}" if self.least is not None else f"under {self.most:g}"
            target = f"{limit}: {'core shared, not judged' if self.disturbed else 'met' if self.met else '**missed**'}"
        cpu = "" if self.cpu is None else self.cpu.show()
        cells = (
            self.what,
            f"{self.calls:,}",
            self.in_flight,
            self.figure.show(3 if self.figure.median < 1 else 2),
            cpu,
            target,
            self.note,
        )
        return f"| {' | '.join(cells)} |"


def _share(runs: list[Run]) -> float:
    return median(run.cpu / run.seconds for run in runs)


def _cpu(runs: list[Run]) -> str:
    """CPU per call in ms, and the share of its core that a client had."""
    return f"{median(run.cpu_ms for run in runs):.3f} ({_share(runs):.0%})"


def compare(
    what: str,
    in_flight: int,
    base: list[Run],
    subject: list[Run],
    least: float | None = None,
    *,
    saturated: bool = True,
) -> Line:
    """A line for runs in consecutive pairs: median and range of the pairs' ratios.

    The shown number in flight is the minimum over runs of the endpoint's maximum. `saturated` means that both have work
    for a whole core.
    """
    pairs = list(zip(base, subject, strict=True))
    figure = Spread(tuple(two.rate / one.rate for one, two in pairs))
    cpu = Spread(tuple(one.cpu_ms / two.cpu_ms for one, two in pairs))
    note = f"{_cpu(subject)} against {_cpu(base)}"
    seen = f"{in_flight:,} ({min(run.most for run in base):,}, {min(run.most for run in subject):,})"
    disturbed = saturated and min(_share(base), _share(subject)) < _OWN_CORE
    return Line(what, subject[0].calls, seen, figure, cpu, least, note=note, disturbed=disturbed)
