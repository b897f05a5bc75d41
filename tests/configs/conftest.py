"""A campaign file of some text, read or refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from venire.arena.campaigns import CampaignSettings
from venire.arena.errors import InputError
from venire.configs.loading import load_campaign


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str], CampaignSettings]:
    """Writes a campaign file and reads it; a module whose files all begin alike has a `load` of its own."""

    def loaded(text: str) -> CampaignSettings:
        path = tmp_path / "first.toml"
        path.write_text(text, encoding="utf-8")
        return load_campaign(path)

    return loaded


@pytest.fixture
def refusal(load: Callable[[str], CampaignSettings]) -> Callable[[str], str]:
    """What is said of a file that `load` does not take."""

    def refused(text: str) -> str:
        with pytest.raises(InputError) as caught:
            load(text)
        return str(caught.value)

    return refused
