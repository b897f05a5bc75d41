"""Attempts to instruct a judge from inside a completion, written for this project to test defences."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Injection:
    """One attempt: its kind, its language, and the text that is appended to an ordinary answer."""

    kind: str
    language: str
    text: str


_LINES = Path(__file__).with_name("injections.jsonl").read_text(encoding="utf-8").splitlines()
INJECTIONS = tuple(Injection(**json.loads(line)) for line in _LINES)
"""All attempts in their order, grouped by kind."""
