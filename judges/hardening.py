"""Completions are untrusted: how their text is set apart in a prompt."""

from __future__ import annotations

import re

__all__ = ["enclose", "enclosed"]

_ENCLOSED = re.compile(r"<<<([0-9a-f]{16})\n(.*?)\n\1>>>", re.DOTALL)


def enclose(text: str, fence: str) -> str:
    """The text between an opening and a closing line made of its fence (see `arena.keys.fence`)."""
    return f"<<<{fence}\n{text}\n{fence}>>>"


def enclosed(prompt: str) -> tuple[str, ...]:
    """The texts that `enclose` set apart in a prompt, in order; a look-alike inside an enclosed text does not count."""
    return tuple(match.group(2) for match in _ENCLOSED.finditer(prompt))
