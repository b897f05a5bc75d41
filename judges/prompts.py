"""Prompts: their texts, how a trial's texts are inserted in them, and examples that a user puts in front.

Each message is one text file, versioned by its digest: a changed text is another trial. A judge's option
`prompt.<name>` replaces the text of that name (`OVERRIDE`) and has the same variables. The texts of a protocol are in a
folder here, or in another package's, named `package:folder`. Every text that is not ours is enclosed in its own fence.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from string import Template

from venire.arena.errors import InputError
from venire.arena.keys import prompt_digest
from venire.arena.records import Conversation, Material, Outcome, Protocol, Trial
from venire.arena.wording import suggest
from venire.judges.context_window import fit_to_context
from venire.judges.safety.sanitize import enclose

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
    """The header of a prompt: purpose, variables, expected answer."""
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
            raise InputError(f"{option}: this protocol has no such prompt; {suggest(name, names)}")
        own = Template(text)
        if not text.strip():
            raise InputError(f"{option}: the text is empty: write one, or leave the option out")
        if not own.is_valid():
            raise InputError(f"{option}: a $ stands before what is no variable: write $$ for a dollar sign")
        needed, found = set(load(protocol, name).get_identifiers()), set(own.get_identifiers())
        if missing := sorted(needed - found):
            raise InputError(f"{option}: ${missing[0]} is missing: the text must say where it stands")
        if unknown := sorted(found - needed):
            known = suggest(f"${unknown[0]}", [f"${variable}" for variable in sorted(needed)])
            raise InputError(f"{option}: ${unknown[0]} is no variable of this prompt; {known}")


_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def turn_roles(turns: Sequence[str]) -> tuple[str, ...]:
    """The role of each turn of an instruction, `user` or `assistant`.

    Of an odd number they alternate, the user first and last. An even number are all the user's, put one after another,
    and an answer has a part for each (as in MT-bench).

    >>> turn_roles(["Which river?", "The Nile.", "How long is it?"])
    ('user', 'assistant', 'user')
    """
    if len(turns) % 2 == 0:
        return ("user",) * len(turns)
    return tuple("assistant" if number % 2 else "user" for number in range(len(turns)))


def join_turn_answers(answers: Sequence[str]) -> str:
    """The one text of a completion that answers several turns, each part under a line with the number of its turn."""
    return "\n\n".join(f"[turn {number}]\n{answer}" for number, answer in enumerate(answers, 1))


def show_instruction(material: Material) -> str:
    """The instruction in its fence; of several turns each in a fence, with its role and a mark on the turn to answer.

    The marks are outside the fences, so that no turn can pretend to be two.
    """
    turns, mark = material.instruction.turns, material.fences[0]
    if len(turns) == 1:
        return enclose(turns[0], mark)
    shown, spoken = [], turn_roles(turns)
    for number, (who, turn) in enumerate(zip(spoken, turns, strict=True), 1):
        answered = " (the turn to be answered)" if number == len(turns) else ""
        if "assistant" not in spoken:
            answered = f" (answered under [turn {number}])"
        shown.append(f"Turn {number}, {who}{answered}:\n{enclose(turn, mark)}")
    return "\n\n".join(shown)


def show_completion(material: Material, place: int) -> str:
    """The completion at a place of the order shown, from 0, in its fence."""
    return enclose(material.shown[place].text, material.fences[1 + place])


def show_reference(material: Material) -> str:
    """The instruction's reference answer, in the fence of the instruction, which no text of the store can hold.

    Raises ValueError where there is none.
    """
    if material.instruction.reference is None:
        raise ValueError(f"instruction {material.instruction.id!r} has no reference answer")
    return enclose(material.instruction.reference, material.fences[0])


def answer_labels(shown: Sequence[object]) -> tuple[str, ...]:
    """Names for anonymous answers in the order shown: letters, or numbers where there are more than letters."""
    if len(shown) <= len(_ALPHABET):
        return tuple(_ALPHABET[: len(shown)])
    return tuple(str(number) for number in range(1, len(shown) + 1))


def show_list(material: Material) -> str:
    """All completions in the order shown, each under its label and in its fence."""
    named = enumerate(answer_labels(material.shown))
    return "\n\n".join(f"Answer {label}:\n{show_completion(material, place)}" for place, label in named)


_SIDES = ("user", "assistant")


def preamble(options: Mapping[str, str]) -> tuple[Mapping[str, str], ...]:
    """The messages that go before every request: the option `system`, then the `examples`.

    `examples` is a JSON list of objects with the texts `user` and `assistant`. Raises InputError for another form.
    """
    system = options.get("system")
    opening = () if system is None else ({"role": "system", "content": system},)
    return (*opening, *_read_examples(options.get("examples", "[]")))


@lru_cache(maxsize=256)
def _read_examples(text: str) -> tuple[Mapping[str, str], ...]:
    try:
        given = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"examples: this is not JSON ({error}): write a list of user and assistant texts") from error
    if not isinstance(given, list):
        raise InputError('examples: write a list, such as [{"user": "...", "assistant": "..."}]')
    said: list[Mapping[str, str]] = []
    for number, completion in enumerate(given, 1):
        if (
            not isinstance(completion, dict)
            or set(completion) != set(_SIDES)
            or not all(isinstance(completion[side], str) for side in completion)
        ):
            raise InputError(f"examples: number {number} must have the texts user and assistant, and nothing else")
        said += [{"role": side, "content": completion[side]} for side in _SIDES]
    return tuple(said)


def with_options(talk: Protocol, steps: int = 1) -> Protocol:
    """The same protocol with its judge's options: what they put in front of each request, and completions cut to fit.

    `steps` is how many replies a trial has that needs no repair.
    """

    def dressed(trial: Trial, material: Material, options: Mapping[str, str]) -> Conversation:
        before, conversation = preamble(options), talk(trial, material, options)
        return _put_before(before, conversation) if before else conversation

    return fit_to_context(dressed, steps)


def _put_before(before: tuple[Mapping[str, str], ...], conversation: Conversation) -> Conversation:
    try:
        request = next(conversation)
        while True:
            reply = yield replace(request, messages=(*before, *request.messages))
            request = conversation.send(reply)
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome
    finally:
        conversation.close()
