"""What every test may use."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of recorded judgments, which is not part of the repository."""
    root = Path(__file__).resolve().parent.parent
    folder = Path(os.environ.get("VENIRE_DATA", root.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("the recorded judgments are not here; VENIRE_DATA names their folder")
    return folder


@pytest.fixture(scope="session", autouse=True)
def no_room_under_its_bare_name() -> Iterator[None]:
    """`import judges` works by accident in a checkout; nothing may rely on it."""
    yield
    rooms = {"arena", "configs", "judges", "orchestrator", "ratings", "reports", "simulation", "storage"}
    assert not rooms & sys.modules.keys()
