"""What the registry knows of a judge protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Any

from venire.arena.errors import InputError
from venire.arena.keys import prompt_digest
from venire.arena.records import Protocol, Reading
from venire.arena.shapes import Shape
from venire.judges import prompts

REASONS_TOKENS = 250
"""Tokens expected of a judge's reasons: the medians of recorded judges lie between 70 and 411."""
FOREIGN = 127
"""The number stored for any protocol of another package: the largest that the column holds."""
VERDICT_TOKENS = 4
"""Tokens expected of a verdict without reasons."""

_OF_ALL = frozenset(
    [
        "context",
        "examples",
        "map",
        "max_tokens",
        "recorded",
        "repair",
        "system",
        "temperature",
        "too_long",
        "vocabulary",
    ]
)
"""Options that a judge of any protocol may have."""


@dataclass(frozen=True, slots=True)
class ProtocolOption:
    """An option of one protocol, a text: whether a value can be used, and in words what is wanted."""

    fits: Callable[[str], bool]
    wanted: str


@dataclass(frozen=True, slots=True)
class ReplyExample:
    """The replies of one trial in step order, and what is read from them, in the order shown."""

    replies: tuple[str, ...]
    reading: Reading


@dataclass(frozen=True, slots=True)
class ProtocolEntry:
    """A judge protocol, an entry of `registry.PROTOCOLS`: all facts about it.

    `talk` is the conversation with the options `system` and `examples` of a judge applied (`prompts.with_options`).

    >>> from venire.judges import PROTOCOLS
    >>> str(PROTOCOLS["two-stage"].shape), PROTOCOLS["two-stage"].expects
    ('pair', (250, 4))
    """

    shape: Shape
    """How many completions a trial shows, and the kind of its verdict; plans, forecasts and boards follow from it."""
    talk: Protocol
    prompts: tuple[str, ...]
    """Names of the texts that it sends."""
    folder: str
    """Where these texts are, one file `<name>.txt` each: a folder of `venire.judges.protocols`, or `package:folder`."""
    expects: tuple[int, ...]
    """Tokens expected of each reply of a trial that needs no repair; a judge's options may allow fewer."""
    needs_reference: bool = False
    """Whether only instructions with a reference answer can be asked."""
    options: Mapping[str, ProtocolOption] = field(default_factory=dict)
    """Options of this protocol beside those that all have."""
    examples: tuple[ReplyExample, ...] = ()
    """Replies with their readings: what the contract (`venire.testing`) tries, and a reader of the entry sees."""
    rehearse: str | Callable[..., Any] | None = None
    """How a simulated judge replies: a function of `simulation.rehearsal`, or a reference to it; None: it cannot be."""
    number: int = FOREIGN
    """Ours in the store's table of trials, never used again; protocols of other packages are distinguished by name."""

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
        prompts.preamble(options)
        for name, value in options.items():
            if name.startswith(prompts.OVERRIDE) or (name in _OF_ALL and name not in self.options):
                continue
            if name not in self.options:
                raise InputError(f"{name}: this protocol has no such setting: leave it out")
            if not self.options[name].fits(value):
                raise InputError(f"{name}: {value!r} is not {self.options[name].wanted}")

    @property
    def example(self) -> ReplyExample:
        """Its first example in which nothing is repaired. Raises StopIteration where there is none."""
        return next(example for example in self.examples if len(example.replies) == len(self.expects))

    @property
    def rehearsal(self) -> Callable[..., Any] | None:
        """What `rehearse` refers to."""
        found: Callable[..., Any] | None = (
            resolve_name(self.rehearse) if isinstance(self.rehearse, str) else self.rehearse
        )
        return found
