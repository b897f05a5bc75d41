"""The table of `make bench-ratings`: a figure, its target, and its basis."""

from __future__ import annotations

from dataclasses import dataclass

HEAD = "| what | beside | figure | target | seen |\n|---|---|---:|---|---|\n"


@dataclass(frozen=True, slots=True)
class Line:
    """One line. `least` and `most` bound the target; without a figure `note` gives the reason."""

    what: str
    beside: str
    figure: float | None
    unit: str = "x"
    least: float | None = None
    most: float | None = None
    note: str = ""
    judged: bool = True
    """Whether the tables have the size for which the target is defined."""

    @property
    def met(self) -> bool:
        """Whether the target is met, if there are a target and a figure."""
        if self.figure is None or not self.judged:
            return True
        return (self.least is None or self.figure >= self.least) and (self.most is None or self.figure <= self.most)

    def show(self) -> str:
        """The line in Markdown."""
        target = "reported"
        if self.least is not None or self.most is not None:
            limit = f"at least {self.least:g}" if self.least is not None else f"at most {self.most:g}"
            found = "met" if self.met else "**missed**"
            target = f"{limit}: {found if self.figure is not None and self.judged else 'not judged'}"
        shown = "" if self.figure is None else f"{_short(self.figure)}{self.unit}"
        return f"| {self.what} | {self.beside} | {shown} | {target} | {self.note} |"


def _short(value: float) -> str:
    if value != 0 and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.1e}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
