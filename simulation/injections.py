"""Attempts to instruct a judge from inside a completion: a corpus written for this project, to try defences on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

__all__ = ["Injection", "load_injections"]


@dataclass(frozen=True, slots=True)
class Injection:
    """One attempt: its kind, the language that it is in, and what is put after an ordinary answer."""

    kind: str
    language: str
    text: str


@cache
def load_injections() -> tuple[Injection, ...]:
    """All attempts in their order, read once from the package; those of a kind stand together."""
    lines = files("venire.simulation").joinpath("injections.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(Injection(**json.loads(line)) for line in lines)
