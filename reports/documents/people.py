"""How far judges agree with people, as screens, pages and reports show it: sections from a board's document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from venire.arena.wording import interval_text
from venire.reports.numbers import count, number, share
from venire.reports.sections import Block, Column, Paragraph, TextTable, faint
from venire.reports.texts import clipped, name


def intervals_below(
    rows: Sequence[Mapping[str, Any]], lo: str, hi: str, write: str | Callable[[float], str] = ".2f"
) -> list[str]:
    """Intervals that stand below their figures, nothing where there is none."""
    return [interval_text(row.get(lo), row.get(hi), write) for row in rows]


def agreement_columns(rows: Sequence[Mapping[str, Any]]) -> list[Column]:
    """Same winner and kappa of each row of an agreement, with their intervals."""
    kappas = [row.get("kappa") or {} for row in rows]
    return [
        Column(
            "same winner",
            [share(row["agreement"]) for row in rows],
            below=intervals_below(rows, "agreement_lo", "agreement_hi", ".0%"),
        ),
        Column("kappa", [number(kappa.get("value"), 3) for kappa in kappas], below=intervals_below(kappas, "lo", "hi")),
    ]


def people_blocks(people: Mapping[str, Any] | None, title: str | None = None) -> Iterator[Block]:
    """How far judges agree with people, and people with one another, from the diagnostics of a board's document."""
    if not people:
        return
    annotators = f"{count(people['annotators'])} annotator{'' if people['annotators'] == 1 else 's'}"
    simulated = "" if people["origin"] == "people" else f", {people['origin']}"
    yield Paragraph(
        f"{count(people['votes'])} votes of {annotators} ({name(people['name'])}{simulated}), with 95% intervals. Same "
        "winner: of the votes where both decided. Kappa: agreement on win, tie and loss beyond chance."
    )
    if "judges" not in people:
        return
    rows = [*people["judges"], *people["each"], *([people["together"]] if people["together"] else [])]
    names = [name(row["judge"], 40) for row in people["judges"]]
    names += [f"{name(row['annotator'], 40)}, a person" for row in people["each"]]
    names += ["one person beside another"] * bool(people["together"])
    yield TextTable(
        [
            Column("beside people", names),
            Column("battles", [count(row["battles"]) for row in rows]),
            Column("votes", [count(row["votes"]) for row in rows]),
            *agreement_columns(rows),
        ],
        title,
        label="Agreement with people",
    )
    note = people.get("note") or ""
    alphas = [f"{who} {_coefficient(people.get(key))}" for key, who in _ALPHAS.items()]
    yield faint(
        f"Krippendorff's alpha: {', '.join(alphas)}." + (f" {note[:1].upper()}{clipped(note[1:])}." if note else "")
    )


_ALPHAS = {"alpha": "judges and people", "alpha_among_people": "people among themselves"}


def _coefficient(found: Mapping[str, Any] | None) -> str:
    if not found or found["value"] is None:
        return "–"
    between = interval_text(found["lo"], found["hi"], ".2f")
    return number(found["value"], 2) + (f" ({between})" if between else "")
