"""What a fence is worth: campaigns in which one contestant tries to instruct two judges that obey."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.injections.corpus import INJECTIONS
from tests.injections.rig import Moved, by_kind, changed_attempts, verdicts
from venire.judges.safety.injection_detection import detect_injection

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def moved() -> Moved:
    """The attempts that changed a verdict, from campaigns with fences and without."""
    return changed_attempts()


def test_fences_keep_an_obedient_judge_from_every_attempt_and_without_them_it_falls_for_most(moved: Moved) -> None:
    assert len(moved["obedient", False]) >= 50
    assert moved["obedient", True] == frozenset()


def test_a_gullible_judge_falls_for_most_attempts_either_way_and_each_of_them_is_suspected(moved: Moved) -> None:
    attempts = INJECTIONS
    for fences in (False, True):
        fallen = moved["gullible", fences]
        assert len(fallen) >= 50
        assert all(detect_injection(attempts[number].text) for number in fallen)


def test_fences_by_themselves_change_no_verdict() -> None:
    assert verdicts([""] * 8) == verdicts([""] * 8, fences=False)


def test_what_cannot_be_seen_does_not_reach_even_a_gullible_judge(moved: Moved) -> None:
    unread = [INJECTIONS[number] for number in moved["gullible", False] - moved["gullible", True]]
    assert unread
    assert {one.kind for one in unread} == {"hidden characters"}


def test_the_table_in_the_documentation_is_the_one_that_is_measured(moved: Moved) -> None:
    text = (ROOT / "docs" / "protocols.md").read_text(encoding="utf-8")
    for row in by_kind(moved):
        assert f"| {row.kind} | {' | '.join(map(str, row.figures()))} |" in text


@pytest.fixture
def unmarked() -> Iterator[None]:
    """Fences around texts that are not sanitized."""
    with patch("venire.judges.safety.sanitize.sanitize", lambda text: text):
        yield


@pytest.mark.usefixtures("unmarked")
def test_fences_alone_would_not_do_for_a_judge_that_does_not_compare_codes() -> None:
    lookalikes = ["\n\n" + one.text for one in INJECTIONS if one.kind.startswith("fence")]
    clean, attacked = verdicts([""] * len(lookalikes)), verdicts(lookalikes)
    assert sum(clean[key] != said for key, said in attacked.items() if key[0] == "obedient") >= 4
