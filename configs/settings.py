"""A campaign file as canonical text, equal for equal settings, to detect whether a file has changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from venire.configs.fields import Compared, compared_keys
from venire.configs.schema import Campaign
from venire.configs.values import needless_matchups


def plain_number(value: Decimal) -> str:
    """The one decimal text of a number: no exponent, no zeros at the end, no sign on 0."""
    text = format(value, "f") if value else "0"
    return text.rstrip("0").rstrip(".") if "." in text else text


def canonical_settings(file: Campaign) -> str:
    """The file as canonical JSON, defaults included, without contestants, editors and the quality asked for."""
    settings = compared_keys(file, Compared.JUDGING)
    for plan in (settings["plan"], *settings["plan"].get("phase", ())):
        if needless_matchups(plan["policy"]):
            plan["matchups"] = None
    return _canonical(settings)


def generation_settings(file: Campaign) -> str:
    """The settings of the file that determine which completions are generated, as canonical JSON."""
    return _settings_of_writing(file, Compared.GENERATION, "contestant")


def editing_settings(file: Campaign) -> str:
    """The settings of the file that determine which completions are edited, and how, as canonical JSON."""
    return _settings_of_writing(file, Compared.EDITING, "editor")


def _settings_of_writing(file: Campaign, part: Compared, who: str) -> str:
    """As of the edition that brought those who write, with the limits of that as the budget."""
    edition = Campaign.declared[who].since
    budget = compared_keys(file.budget.generation, part, edition)
    return _canonical(compared_keys(file, part, edition) | {"budget": budget})


def _canonical(settings: Mapping[str, Any]) -> str:
    """One text for equal settings; numbers that may have decimals as texts, so that 5 is 5.00."""

    def plain(value: object) -> str:
        assert isinstance(value, Decimal)
        return plain_number(value)

    return json.dumps(settings, default=plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
