"""What a trial shows, as it stands in a prompt: every text that is not ours between its own fence."""

from __future__ import annotations

from collections.abc import Sequence

from venire.arena.records import Material
from venire.judges.safety.sanitize import enclose

__all__ = ["in_parts", "labels", "show_completion", "show_instruction", "show_list", "show_reference", "speakers"]

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def speakers(turns: Sequence[str]) -> tuple[str, ...]:
    """Who says each turn of an instruction, `user` or `assistant`.

    Of an odd number they alternate, the user first and last. An even number are all the user's, put one after another,
    and an answer has a part for each (as in MT-bench).
    """
    if len(turns) % 2 == 0:
        return ("user",) * len(turns)
    return tuple("assistant" if number % 2 else "user" for number in range(len(turns)))


def in_parts(answers: Sequence[str]) -> str:
    """The one text of a completion that answers several turns, each part under a line with the number of its turn."""
    return "\n\n".join(f"[turn {number}]\n{one}" for number, one in enumerate(answers, 1))


def show_instruction(material: Material) -> str:
    """The instruction in its fence; of several turns each in a fence, with who says it and which one is answered.

    The marks stand outside the fences, so that no turn can pretend to be two.
    """
    turns, mark = material.instruction.turns, material.fences[0]
    if len(turns) == 1:
        return enclose(turns[0], mark)
    shown, spoken = [], speakers(turns)
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


def labels(shown: Sequence[object]) -> tuple[str, ...]:
    """Names for anonymous answers in the order shown: letters, or numbers where there are more than letters."""
    if len(shown) <= len(_ALPHABET):
        return tuple(_ALPHABET[: len(shown)])
    return tuple(str(number) for number in range(1, len(shown) + 1))


def show_list(material: Material) -> str:
    """All completions in the order shown, each under its label and in its fence."""
    named = enumerate(labels(material.shown))
    return "\n\n".join(f"Answer {label}:\n{show_completion(material, place)}" for place, label in named)
