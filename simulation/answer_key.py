"""The answer key: instruction, model and Elo points of a completion, found by its text alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from venire.arena.errors import InputError
from venire.arena.keys import text_digest
from venire.judges.context_window import parse_cut
from venire.judges.safety.sanitize import sanitize
from venire.simulation.judge import load_profiles

__all__ = ["AnswerKey", "KnownCompletion"]


@dataclass(frozen=True, slots=True)
class KnownCompletion:
    """A completion of the answer key: its instruction, its model, and that model's rating in Elo points."""

    instruction_id: str
    model: str
    elo: float


_MAX_REMEMBERED = 128
_HEAD = 24
"""Characters at the beginning of a completion that are left of it, however it is cut."""


_text_digest = lru_cache(maxsize=512)(text_digest)  # a completion is shown in both orders and in several matchups


def _when_cut(text: str, characters: int) -> bytes:
    """What a completion is known by when it was cut: how it begins, and how long it was."""
    return text_digest(f"{characters}|{text[:_HEAD]}")


class AnswerKey:
    """Finds instruction, model and Elo by the texts of an instruction and of a completion, as a prompt shows them.

    It is given to a server at its start and not changed after. `completions` holds (instruction id, instruction text,
    model, completion text), where the text of an instruction is its turns joined by a blank line; `elo` has the
    rating of each of these models in Elo points; `own` names the contestant behind a profile, where there is one.

    Where several models answered an instruction word for word, the first by name counts; `shared` is how many
    such answers there are. Where several ids have the same instruction text, the first id in code point order counts.

    Raises `InputError` for a model without a rating, and for an `own` that names no profile.
    """

    def __init__(
        self,
        completions: Iterable[tuple[str, str, str, str]],
        elo: Mapping[str, float],
        own: Mapping[str, str] | None = None,
    ) -> None:
        self._own = dict(own or {})
        if unknown := sorted(self._own.keys() - load_profiles().keys()):
            raise InputError(f"own names {unknown[0]!r}, which is no profile: choose of {', '.join(load_profiles())}")
        self._elo: dict[str, float] = {}
        self._ids: dict[bytes, str] = {}
        self._models: dict[bytes, str] = {}
        self._cut: dict[bytes, str] = {}
        shared: set[bytes] = set()
        digests: dict[str, bytes] = {}
        for instruction_id, instruction, model, completion in completions:
            if model not in elo:
                raise InputError(f"model {model!r} has completions and no Elo: add its rating, or leave it out")
            self._elo[model] = elo[model]
            if (asked := digests.get(instruction)) is None:
                digests[instruction] = asked = text_digest(sanitize(instruction))
            self._ids[asked] = min(instruction_id, self._ids.get(asked, instruction_id))
            shown = sanitize(completion)
            answered = asked + text_digest(shown)
            other = self._models.setdefault(answered, model)
            if other != model:
                shared.add(answered)
                self._models[answered] = min(model, other)
            cut = asked + _when_cut(shown, len(completion))
            self._cut[cut] = min(model, self._cut.get(cut, model))
        self.shared = len(shared)
        self._lately: dict[tuple[str, ...], tuple[KnownCompletion, ...] | None] = {}
        """The latest look-ups: each step of a trial shows the same texts."""

    def __len__(self) -> int:
        """How many different pairs of instruction and completion text are known."""
        return len(self._models)

    def find(self, instruction: str, *completions: str) -> tuple[KnownCompletion, ...] | None:
        """These completions of one instruction in the answer key, in their order; None where one is not in it."""
        shown = (instruction, *completions)
        if shown not in self._lately:
            if len(self._lately) >= _MAX_REMEMBERED:
                del self._lately[next(iter(self._lately))]
            self._lately[shown] = self._find(instruction, completions)
        return self._lately[shown]

    def _find(self, instruction: str, completions: Sequence[str]) -> tuple[KnownCompletion, ...] | None:
        asked = _text_digest(instruction)
        found = []
        for completion in completions:
            if (model := self._model(asked, completion)) is None:
                return None
            found.append(KnownCompletion(self._ids[asked], model, self._elo[model]))
        return tuple(found)

    def _model(self, asked: bytes, completion: str) -> str | None:
        """Whose completion this is, whole or cut to fit a context."""
        model = self._models.get(asked + _text_digest(completion))
        if model is None and (cut := parse_cut(completion)) is not None:
            model = self._cut.get(asked + _when_cut(*cut))
        return model

    def find_pair(self, texts: Sequence[str]) -> tuple[KnownCompletion, ...] | None:
        """The last two of these texts in the answer key, where those before are the turns of their instruction."""
        return self.find("\n\n".join(texts[:-2]), *texts[-2:]) if len(texts) > 2 else None

    def find_list(self, texts: Sequence[str]) -> tuple[KnownCompletion, ...] | None:
        """The completions of a list in the answer key, which begins with an instruction of one turn or several."""
        tries = (self.find("\n\n".join(texts[:turns]), *texts[turns:]) for turns in range(1, len(texts)))
        return next((found for found in tries if found is not None), None)

    def own(self, profile: str, first: str, second: str) -> int:
        """1, -1 or 0 when the first, the second or neither model is the judge's own (0 too when both are)."""
        contestant = self._own.get(profile)
        return (first == contestant) - (second == contestant)
