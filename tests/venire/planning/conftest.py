"""Plans and their limits: how judges are asked is no promise of these tests."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def without_http(direct_judges: None) -> None:
    """Commands of these tests ask simulated judges in this process."""
