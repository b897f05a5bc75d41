"""Judge protocols, the reading of replies, and the providers that carry the calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from venire.arena.errors import InputError
from venire.arena.keys import prompt_digest
from venire.arena.records import GENERATE, RECORDED, Protocol, Shape
from venire.judges import (
    binary,
    criteria,
    direct,
    echo,
    five_point,
    generate,
    listwise,
    prompts,
    recorded,
    two_stage,
)
from venire.judges.dressing import dress, front
from venire.judges.parsing.dialects import DIALECTS

__all__ = ["PROTOCOLS", "REASONS", "SHORT", "ProtocolEntry"]


@dataclass(frozen=True, slots=True)
class ProtocolEntry:
    """A protocol in the registry: its number in the store, what it shows, its conversation and the prompts it sends."""

    number: int
    shape: Shape
    talk: Protocol
    """With what a judge's options `system` and `examples` put in front."""
    prompts: tuple[str, ...]
    folder: str
    expects: tuple[int, ...]
    """Tokens expected of each reply of a trial that needs no repair; a judge's options may allow fewer."""
    needs_reference: bool = False
    """Whether only instructions with a reference answer can be asked."""
    settings: frozenset[str] = frozenset()
    """Options of this protocol beside those that all have."""

    def digests(self, options: Mapping[str, str] | None = None) -> tuple[bytes, ...]:
        """Digests of the prompt texts that a judge with these options is sent, part of a respondent's key."""
        return prompts.digests(self.folder, *self.prompts, options=options)

    def texts(self, options: Mapping[str, str] | None = None) -> tuple[tuple[str, bytes, str], ...]:
        """Name, digest and text of each prompt that a judge with these options is sent."""
        chosen = ((name, prompts.choose(self.folder, name, options or {}).template) for name in self.prompts)
        return tuple((f"{self.folder}/{name}", prompt_digest(text), text) for name, text in chosen)

    def check(self, options: Mapping[str, str]) -> None:
        """See that a judge's options can be used: own prompts, examples, and what this protocol asks for.

        Raises InputError that names the option and what it may be.
        """
        prompts.check(self.folder, self.prompts, options)
        front(options)
        for name, fits, wanted in _SETTINGS:
            if name not in options:
                continue
            if name not in self.settings:
                raise InputError(f"{name}: this protocol has no such setting: leave it out")
            if not fits(options[name]):
                raise InputError(f"{name}: {options[name]!r} is not {wanted}")


def _is_count(value: str) -> bool:
    return value.isascii() and value.isdecimal() and int(value) > 0


_SETTINGS = (
    ("best", _is_count, "a whole number of at least 1"),
    ("logprobs", frozenset({"0", "1"}).__contains__, '"1" or "0"'),
    ("dialect", recorded.is_dialect, f"a dialect: {', '.join((recorded.WORD, *DIALECTS))}"),
)

REASONS = 250
"""Tokens expected of a judge's reasons: the medians of recorded judges lie between 70 and 411."""
SHORT = 4

_PAIR, _ONE = Shape.PAIR, Shape.SINGLE

PROTOCOLS: dict[str, ProtocolEntry] = {
    "two-stage": ProtocolEntry(
        1, _PAIR, dress(two_stage.two_stage, 2), two_stage.PROMPTS, "two_stage", (REASONS, SHORT)
    ),
    "criteria": ProtocolEntry(2, _PAIR, dress(criteria.criteria), criteria.PROMPTS, "criteria", (REASONS,)),
    "binary": ProtocolEntry(
        3, _PAIR, dress(binary.binary), binary.PROMPTS, "binary", (SHORT,), settings=frozenset({"logprobs"})
    ),
    "direct": ProtocolEntry(4, _ONE, dress(direct.direct), direct.PROMPTS, "direct", (SHORT,)),
    "direct-reference": ProtocolEntry(
        5, _ONE, dress(direct.direct_reference), direct.PROMPTS, "direct_reference", (SHORT,), needs_reference=True
    ),
    "listwise": ProtocolEntry(
        6, Shape.LIST, dress(listwise.listwise), listwise.PROMPTS, "listwise", (60,), settings=frozenset({"best"})
    ),
    "echo": ProtocolEntry(7, _ONE, dress(echo.echo), echo.PROMPTS, "echo", (SHORT,)),
    "five-point": ProtocolEntry(8, _PAIR, dress(five_point.five_point), five_point.PROMPTS, "five_point", (REASONS,)),
    GENERATE: ProtocolEntry(9, Shape.NONE, dress(generate.generate), generate.PROMPTS, "generate", (600,)),
    RECORDED: ProtocolEntry(
        10, _PAIR, recorded.recorded, recorded.PROMPTS, "recorded", (REASONS,), settings=frozenset({"dialect"})
    ),
}
"""Every protocol by the name used in a campaign file; a number, once given, is never used again."""
