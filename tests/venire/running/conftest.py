"""What the campaigns of this folder have in common."""

from __future__ import annotations

import pytest

from tests.venire.running.test_routes import KEYS


@pytest.fixture(autouse=True)
def stores_of_demo(demo_is_imported: None) -> None:
    """Campaigns of this folder are about the demo's tables."""


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of the routes that these tests ask by."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
