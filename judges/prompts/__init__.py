"""Prompt texts, one file a message, versioned by their digest: a changed text is another trial."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from string import Template

from venire.arena.keys import prompt_digest

__all__ = ["digests", "load"]


@cache
def load(protocol: str, name: str) -> Template:
    """The template `name` of a protocol; its header, above the line of dashes, is for readers and not sent."""
    text = files(__name__).joinpath(protocol, f"{name}.txt").read_text(encoding="utf-8")
    _, _, body = text.partition("\n---\n")
    return Template(body.strip())


def digests(protocol: str, *names: str) -> tuple[bytes, ...]:
    """Digests of the texts that a protocol sends, 16 bytes each, in the order named; part of a respondent's key."""
    return tuple(prompt_digest(load(protocol, name).template) for name in names)
