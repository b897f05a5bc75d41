"""Killed and stopped actors, and a killed coordinator, break no promise of a campaign."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture.actors import play, play_helpers
from tests.torture.clusters import HELPERS

pytestmark = [pytest.mark.ray, pytest.mark.timeout(600)]


def test_kills_cost_what_was_in_flight_and_nothing_else(tmp_path: Path) -> None:
    found = play(tmp_path, trials=1_000, lease=3.0)
    assert not found.broken
    assert found.actors_killed == 2
    assert found.stopped_seconds >= 6.0
    assert found.starts == 2
    assert found.asked_twice > 0


def test_a_cluster_of_the_command_is_started_again_where_its_raylet_is_killed(tmp_path: Path) -> None:
    found = play_helpers(tmp_path, trials=960, kinds=["raylet"])
    assert not found.broken
    assert found.helpers_killed == ["raylet"]
    assert found.unanswered > 0
    assert found.starts == 1, "the command itself starts its cluster again"


@pytest.mark.slow
def test_rays_own_processes_may_be_killed_one_of_each_kind(tmp_path: Path) -> None:
    found = play_helpers(tmp_path, trials=1_900)
    assert not found.broken
    assert found.helpers_killed == list(HELPERS)
    assert found.actors_killed >= 2


@pytest.mark.slow
def test_the_same_of_twenty_thousand_trials_for_minutes(tmp_path: Path) -> None:
    found = play(tmp_path, trials=20_000, lease=10.0, seconds=60.0, limit=10_800)
    assert not found.broken
    assert found.actors_killed == 3
    assert found.fullest_minute > 9_000, "the limit was what held the calls back"
