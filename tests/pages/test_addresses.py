"""An address holds everything that a page shows, and brings it back."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire.arena.errors import InputError
from venire.pages.addresses import COLUMNS, Links, TableChoice, read_choice, read_filter
from venire.storage.read.trial_table import ORDERS, TrialFilter

NUMBERS = st.integers(0, 2**31 - 1)
TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40).map(str.strip).filter(bool)
AMOUNTS = st.integers(0, 10_000).map(float)
TIMES = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)).map(lambda at: at.replace(microsecond=0, tzinfo=UTC))  # noqa: DTZ001
VALUES: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("judge", "protocol", "category", "status"), TEXTS),
    **dict.fromkeys(("model", "opponent", "instruction", "winner"), NUMBERS),
    **dict.fromkeys(("flipped", "disagree", "flagged", "retried"), st.booleans()),
    **dict.fromkeys(("min_cost", "max_cost", "min_latency", "max_latency"), AMOUNTS),
    **dict.fromkeys(("since", "until"), TIMES),
}
FILTERS = st.builds(TrialFilter, **{key: st.none() | value for key, value in VALUES.items()})


def test_every_field_of_a_filter_has_a_parameter() -> None:
    assert {one.name for one in fields(TrialFilter)} == VALUES.keys()


@given(FILTERS, st.sampled_from(sorted(ORDERS)), st.booleans(), st.none() | st.tuples(st.floats(-1e9, 1e9), NUMBERS))
def test_an_address_brings_its_choice_back(
    wanted: TrialFilter, order: str, down: bool, after: tuple[float, int] | None
) -> None:
    choice = TableChoice(wanted, order, down, after, columns=tuple(COLUMNS)[:3], rows=25)
    link = Links("s", 1).to("calls", choice.query())
    assert read_choice(dict(parse_qsl(urlsplit(link).query))) == choice


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"flipped": "maybe"}, "flipped: 'maybe' cannot be read: it takes yes or no"),
        ({"model": "x"}, "model: 'x' cannot be read: it takes a number of the store"),
        ({"model": "-1"}, "model: "),
        ({"min_cost": "nan"}, "min_cost: 'nan' cannot be read"),
        ({"since": "yesterday"}, "since: 'yesterday' cannot be read: it takes a time"),
        ({"judge": "x" * 1000}, "judge: at most"),
        ({"order": "x; drop table"}, "order: rows are not sorted by"),
        ({"rows": "7"}, "rows: 25, 50, 100, 250"),
        ({"after": "1"}, "after: '1' is no place in the table"),
        ({"after": "inf~1"}, "after: 'inf~1' is no place"),
        ({"before": "1~99999999999999999999"}, "before: "),
    ],
)
def test_what_cannot_be_read_is_named(query: dict[str, str], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence.replace("(", r"\(")):
        read_choice(query)


def test_empty_fields_of_a_form_narrow_nothing() -> None:
    assert read_filter({"judge": "", "model": " ", "flipped": ""}) == TrialFilter()


def test_a_link_quotes_what_it_names() -> None:
    link = Links("s", 1).calls(judge='a&b="#<>\u202e')
    assert set(link) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/?=&%_.+-")
