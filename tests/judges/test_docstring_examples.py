"""Examples in the docstrings of the room are true."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest


@pytest.mark.parametrize(
    "module",
    [
        "orientation",
        "parsing.choices",
        "parsing.letters",
        "parsing.rankings",
        "parsing.reply_text",
        "parsing.scores",
        "parsing.verdict_formats",
        "prompts",
        "providers.base",
        "providers.token_counting",
        "safety.injection_detection",
        "safety.sanitize",
    ],
)
def test_the_examples_of_a_module_are_true(module: str) -> None:
    result = doctest.testmod(import_module(f"venire.judges.{module}"))
    assert result.attempted > 0
    assert result.failed == 0
