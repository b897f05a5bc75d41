"""Prompt texts, one file a message, versioned by their digest: a changed text is another trial.

A judge's option `prompt.<name>` stands in for the text of that name (`override`). It has the same variables. The texts
of a protocol are in a folder here, or in another package's, named `package:folder`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from string import Template

from venire.arena.errors import InputError
from venire.arena.keys import prompt_digest

__all__ = ["OVERRIDE", "Prompt", "check", "choose", "digests", "fixed", "load"]

OVERRIDE = "prompt."
"""What the name of an option begins with that replaces a prompt text."""

_NO_VALUES: Mapping[str, object] = {}


class Prompt(Template):
    """A template that is parsed at its first use only: a judge is sent the same one with each trial."""

    @cached_property
    def _parsed(self) -> tuple[list[str], list[tuple[int, str]]]:
        """The text in parts, and which of them stand for variables."""
        parts: list[str] = []
        variables: list[tuple[int, str]] = []
        end = 0
        for found in self.pattern.finditer(self.template):
            parts.append(self.template[end : found.start()])
            if found["invalid"] is not None:
                raise ValueError(f"the character after the $ at {found.start()} begins no variable")
            name = found["named"] or found["braced"]
            if name:
                variables.append((len(parts), name))
            parts.append(self.delimiter)
            end = found.end()
        return [*parts, self.template[end:]], variables

    def substitute(self, mapping: Mapping[str, object] = _NO_VALUES, /, **values: object) -> str:
        """The text with its variables filled in. Raises KeyError for one without a value, ValueError for a stray $."""
        parsed, variables = self._parsed
        parts = parsed.copy()
        given = {**mapping, **values} if mapping else values
        for place, name in variables:
            parts[place] = str(given[name])
        return "".join(parts)


@cache
def load(protocol: str, name: str) -> Prompt:
    """The template `name` of a protocol; its header, above the line of dashes, is for readers and not sent."""
    _, _, body = source(protocol, name).partition("\n---\n")
    return Prompt(body.strip())


@lru_cache(maxsize=256)
def _own(text: str) -> Prompt:
    return Prompt(text)


def source(protocol: str, name: str) -> str:
    """The whole file of a prompt: its header, a line of dashes, and the text that is sent."""
    package, _, folder = protocol.rpartition(":")
    return files(package or "venire.judges.protocols").joinpath(folder, f"{name}.txt").read_text(encoding="utf-8")


def header(protocol: str, name: str) -> Mapping[str, str]:
    """What the header of a prompt says of it: purpose, variables, expected answer."""
    lines = source(protocol, name).partition("\n---\n")[0].splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def choose(protocol: str, name: str, options: Mapping[str, str]) -> Prompt:
    """The template that a judge with these options is sent: its own where it has one, else that of the protocol."""
    own = options.get(OVERRIDE + name)
    return load(protocol, name) if own is None else _own(own)


def fixed(protocol: str, name: str, options: Mapping[str, str]) -> str:
    """The text that a judge with these options is sent where the prompt has no variables."""
    own = options.get(OVERRIDE + name)
    return _fixed(protocol, name) if own is None else _own(own).substitute()


@cache
def _fixed(protocol: str, name: str) -> str:
    return load(protocol, name).substitute()


def digests(protocol: str, *names: str, options: Mapping[str, str] | None = None) -> tuple[bytes, ...]:
    """Digests of the texts that a protocol sends, 16 bytes each, in the order named; part of a respondent's key."""
    return tuple(prompt_digest(choose(protocol, name, options or {}).template) for name in names)


def check(protocol: str, names: tuple[str, ...], options: Mapping[str, str]) -> None:
    """See that each prompt text among the options replaces one of these and has the variables of the one it replaces.

    Raises InputError that names the option and the variable.
    """
    for option, text in options.items():
        if not option.startswith(OVERRIDE):
            continue
        name = option.removeprefix(OVERRIDE)
        if name not in names:
            raise InputError(f"{option}: there is no such prompt; this protocol sends: {', '.join(names) or 'none'}")
        own = Template(text)
        if not text.strip():
            raise InputError(f"{option}: the text is empty: write one, or leave the option out")
        if not own.is_valid():
            raise InputError(f"{option}: a $ stands before what is no variable: write $$ for a dollar sign")
        needed, found = set(load(protocol, name).get_identifiers()), set(own.get_identifiers())
        if missing := sorted(needed - found):
            raise InputError(f"{option}: ${missing[0]} is missing: the text must say where it stands")
        if unknown := sorted(found - needed):
            known = ", ".join(f"${variable}" for variable in sorted(needed)) or "none"
            raise InputError(f"{option}: ${unknown[0]} is no variable of this prompt; it has: {known}")
