"""Draw the figures of docs/, each from battles simulated with a seed: `make figures`.

With names as arguments, only these: `python docs/figures/make.py ranks ties`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import altair as alt
import judges_and_ballots
import measuring_judges
import rating_models

HERE = Path(__file__).resolve().parent
FIGURES = rating_models.FIGURES | measuring_judges.FIGURES | judges_and_ballots.FIGURES


def look() -> alt.theme.ThemeConfig:
    """Small, on white, so that the figures read in light and dark."""
    return {
        "config": {
            "background": "white",
            "padding": 8,
            "view": {"continuousWidth": 340, "continuousHeight": 220, "discreteWidth": 340, "stroke": None},
            "axis": {"gridColor": "#e5e5e5", "labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal"},
            "legend": {"labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal", "labelLimit": 240},
            "header": {"labelFontSize": 11},
            "range": {"category": ["#2166ac", "#d6604d", "#4d9221", "#8073ac", "#b8860b"]},
        }
    }


def main(names: list[str]) -> int:
    """Draw the figures named, or all; 2 for a name that is none."""
    if strange := sorted(set(names) - set(FIGURES)):
        sys.stderr.write(f"no figure is called {strange[0]}; there are: {', '.join(FIGURES)}\n")
        return 2
    alt.theme.register("venire", enable=True)(look)
    for name in names or FIGURES:
        drawing = FIGURES[name]()
        drawing.save(str(HERE / f"{name}.svg"))
        sys.stdout.write(f"docs/figures/{name}.svg\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
