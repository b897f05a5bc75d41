"""The answer key: instruction, model and Elo points of a completion, looked up by its text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from venire.arena.errors import InputError
from venire.arena.keys import text_digest
from venire.judges.context_window import parse_cut
from venire.judges.safety.sanitize import sanitize
from venire.simulation.judge import load_profiles, normal


@dataclass(frozen=True, slots=True)
class KnownCompletion:
    """A completion of the answer key: its instruction, its model, and that model's rating in Elo points."""

    instruction_id: str
    model: str
    elo: float


_SPREAD = 60.0
"""Standard deviation of made-up strengths, in Elo points."""
_MAX_REMEMBERED = 128
_HEAD = 24
"""Number of characters at the beginning of a completion that remain after any truncation."""


_text_digest = lru_cache(maxsize=512)(text_digest)  # a completion is shown in both orders and in several matchups


def _when_cut(text: str, characters: int) -> bytes:
    """Lookup key of a truncated completion: its beginning and its original length."""
    return text_digest(f"{characters}|{text[:_HEAD]}")


def with_made_up(elo: Mapping[str, float], models: Iterable[str], seed: int) -> dict[str, float]:
    """The Elo of these models; of those without, a strength about the mean of the others that their name and the seed
    draw: 1000 where no Elo is known."""
    middle = sum(elo.values()) / len(elo) if elo else 1000.0
    return {
        model: elo[model] if model in elo else middle + _SPREAD * normal("strength", seed, model) for model in models
    }


class AnswerKey:
    """Finds instruction, model and Elo by the texts of an instruction and of a completion, as a prompt shows them.

    A server receives it at its start and does not change it. `completions` holds (instruction id, instruction text,
    model, completion text), where the text of an instruction is its turns joined by a blank line; `elo` has the rating
    of each of these models in Elo points; `own` names the contestant behind a profile, if there is one.

    Where several models gave the same answer to an instruction, the first by name counts; `shared` is the number of
    these answers. Where several ids have the same instruction text, the first id in code point order counts.

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
        """Cache of the latest look-ups: each step of a trial shows the same texts."""

    def __len__(self) -> int:
        """The number of distinct pairs of instruction and completion text."""
        return len(self._models)

    def find(self, instruction: str, *completions: str) -> tuple[KnownCompletion, ...] | None:
        """These completions of one instruction in the answer key, in their order; None if one is missing."""
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
        """The model of this completion, whole or truncated to fit a context."""
        model = self._models.get(asked + _text_digest(completion))
        if model is None and (cut := parse_cut(completion)) is not None:
            model = self._cut.get(asked + _when_cut(*cut))
        return model

    def find_pair(self, texts: Sequence[str]) -> tuple[KnownCompletion, ...] | None:
        """The last two of these texts in the answer key; the texts before them are the turns of their instruction."""
        return self.find("\n\n".join(texts[:-2]), *texts[-2:]) if len(texts) > 2 else None

    def find_list(self, texts: Sequence[str]) -> tuple[KnownCompletion, ...] | None:
        """The completions in the answer key of a list that begins with an instruction of one or more turns."""
        tries = (self.find("\n\n".join(texts[:turns]), *texts[turns:]) for turns in range(1, len(texts)))
        return next((found for found in tries if found is not None), None)

    def own(self, profile: str, first: str, second: str) -> int:
        """1, -1 or 0 when the first, the second or neither model is the judge's own (0 too when both are)."""
        contestant = self._own.get(profile)
        return (first == contestant) - (second == contestant)
