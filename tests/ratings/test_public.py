"""What `venire.ratings` offers is what its documentation lists, and nothing else."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

from venire import ratings

DOCUMENTATION = Path(__file__).resolve().parents[2] / "docs" / "ratings.md"


def test_every_name_is_listed_in_the_documentation() -> None:
    table = DOCUMENTATION.read_text(encoding="utf-8").partition("## Functions")[2].partition("## ")[0]
    assert re.findall(r"^\|.*\|$", table, re.M)
    listed = re.findall(r"`(\w+)`", table.partition("|---|---|")[2])
    assert sorted(listed) == sorted(ratings.__all__)


def test_dir_shows_the_names_of_the_interface_alone() -> None:
    assert dir(ratings) == sorted(ratings.__all__)
    assert all(hasattr(ratings, name) for name in ratings.__all__)


def test_the_example_gives_what_it_says() -> None:
    assert doctest.testmod(ratings) == (0, 2)
