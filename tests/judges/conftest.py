"""What the tests of protocols share: a trial's material with real fences, and a script of replies played to its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from venire.arena.keys import fence
from venire.arena.records import Completion, Instruction, Material, Outcome, Reply, Request, Trial
from venire.judges import PROTOCOLS
from venire.judges.conversation import advance

Say = Callable[..., Request | Outcome]
OPTIONS = {"max_tokens": "512", "temperature": "0", "repair": "1"}


@pytest.fixture(scope="session")
def material() -> Callable[..., Material]:
    """An instruction (its turns) with these completions, each in the fence of one store."""

    def make(
        *texts: str, turns: tuple[str, ...] = ("Longest river?",), reference: str | None = "The Volga."
    ) -> Material:
        shown = tuple(Completion(f"model-{number}", "i", text) for number, text in enumerate(texts))
        fences = tuple(fence(text, b"constant") for text in ("\n\n".join(turns), *texts))
        return Material(Instruction("i", turns, reference), shown, fences)

    return make


@pytest.fixture(scope="session")
def say(material: Callable[..., Material]) -> Say:
    """What a protocol asks next, or how it ended, after these replies (texts are replies that came to their end)."""

    def play(
        protocol: str, *replies: Reply | str, shown: Material | None = None, options: Mapping[str, str] | None = None
    ) -> Request | Outcome:
        said = [Reply(one) if isinstance(one, str) else one for one in replies]
        trial = Trial(bytes(16), bytes(16), protocol, "i", (), 3)
        settings = {**OPTIONS, **(options or {})}
        if shown is None:
            count = PROTOCOLS[protocol].shape.size(3)
            shown = material(*("The Volga.", "The Rhine.", *(f"Of {n}." for n in range(count - 2)))[: max(count, 2)])
        return advance(PROTOCOLS[protocol].talk, trial, shown, settings, said)

    return play
