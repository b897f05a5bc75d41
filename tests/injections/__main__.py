"""`python -m tests.injections`: the table of docs/protocols.md, from campaigns that are run for it."""

from __future__ import annotations

from tests.injections.rig import by_kind, changed_attempts
from venire.render.screen import console, tabulate

HEAD = ("kind", "attempts", "obedient, no fences", "obedient", "gullible, no fences", "gullible", "suspected")


def main() -> None:
    """Run the campaigns and print a row a kind, and their sum."""
    rows = by_kind(changed_attempts())
    counts = [one.figures() for one in rows]
    lines = [(one.kind, *map(str, row)) for one, row in zip(rows, counts, strict=True)]
    totals = ("all", *(str(sum(column)) for column in zip(*counts, strict=True)))
    tabulate(console(), HEAD, [*lines, totals])


if __name__ == "__main__":
    main()
