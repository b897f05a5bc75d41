"""What the campaigns of this folder have in common."""

from __future__ import annotations

import pytest

from tests.venire.running.test_routes import KEYS


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of the routes that these tests ask by."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
