"""What tests of served pages share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from venire.live.fits import Fits


@pytest.fixture(scope="module")
def fits() -> Iterator[Fits]:
    """Shared by the tests: a process for boards takes a second to start."""
    found = Fits()
    yield found
    found.close()
