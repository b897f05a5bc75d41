"""Events reach whoever watches, say only what is documented, and never harm the run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from venire.arena.clock import VirtualClock
from venire.orchestrator.recording.events import EVENTS, Event, Events

PAGE = Path(__file__).resolve().parents[3] / "docs" / "documents.md"
ROW = re.compile(r"^\| `([a-z.]+)` \| (.+) \| (.+) \|$", re.MULTILINE)


def test_an_event_is_told_to_all_with_the_time_of_day() -> None:
    clock = VirtualClock()
    clock.advance(5)
    one: list[Event] = []
    other: list[Event] = []
    Events(clock, [one.append, other.append]).emit("lane.closed", lane="x", why="refused")
    assert one == other == [Event("lane.closed", clock.wall(), {"lane": "x", "why": "refused"})]


def test_without_observers_there_is_nothing_to_build_fields_for() -> None:
    assert not Events(VirtualClock()).active
    assert Events(VirtualClock(), [print]).active


def test_an_observer_that_raises_is_dropped_and_told_of_once_and_the_others_go_on() -> None:
    told: list[str] = []
    seen: list[Event] = []

    def broken(event: Event) -> None:
        raise RuntimeError("no room")

    events = Events(VirtualClock(), [broken, seen.append], warn=told.append)
    for _ in range(3):
        events.emit("lane.closed", lane="x", why="refused")
    assert len(seen) == 3
    assert len(told) == 1
    assert "RuntimeError: no room" in told[0]
    alone = Events(VirtualClock(), [broken])
    alone.emit("lane.closed", lane="x", why="refused")
    assert not alone.active


def test_under_test_an_unknown_name_and_an_unknown_or_missing_field_are_errors() -> None:
    assert Events.checked, "tests/conftest.py sees to it"
    events = Events(VirtualClock(), [print])
    with pytest.raises(ValueError, match=r"no event is named 'lane\.shut'"):
        events.emit("lane.shut", lane="x")
    with pytest.raises(ValueError, match="missing or unknown fields: reason, why"):
        events.emit("lane.closed", lane="x", reason="refused")


def test_in_a_run_a_wrong_event_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Events, "checked", False)
    seen: list[Event] = []
    Events(VirtualClock(), [seen.append]).emit("lane.shut", lane="x")
    assert [event.name for event in seen] == ["lane.shut"]


def test_the_page_of_events_says_what_the_table_says() -> None:
    text = PAGE.read_text(encoding="utf-8").partition("### Names of events")[2].partition("\n### ")[0]
    rows = ROW.findall(text)
    page = {name: (told, tuple(re.findall(r"`([a-z_]+)`", fields))) for name, told, fields in rows}
    assert page == {name: (kind.meaning, kind.fields) for name, kind in EVENTS.items()}


def test_no_field_hides_a_line_s_own_and_none_is_for_texts_or_keys() -> None:
    fields = {field for kind in EVENTS.values() for field in kind.fields}
    assert not fields & {"event", "at", "text", "prompt", "reply", "body", "message", "raw", "api_key"}
