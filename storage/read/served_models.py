"""Under which names and fingerprints the replies of a campaign were served: a model behind one name can change."""

from __future__ import annotations

from dataclasses import dataclass

from venire.storage.store.store import Store

__all__ = ["Served", "ServedModel", "served"]


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A name that a provider gave to the model that answered; times as 2026-11-20T10:02Z."""

    name: str
    replies: int
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class Served:
    """What a judge's replies were served by, as far as the provider said; models in the order first seen."""

    judge: str
    models: tuple[ServedModel, ...] = ()
    fingerprints: int = 0
    newest_fingerprint: str | None = None

    @property
    def drift(self) -> bool:
        """Whether more than one model name answered for this judge."""
        return len(self.models) > 1


def served(store: Store, campaign: int) -> tuple[Served, ...]:
    """By judge, what served the replies to the trials in force, whichever campaign paid for them."""
    models: dict[str, list[ServedModel]] = {}
    for judge, *fields in store.read("served_models", campaign=campaign):
        models.setdefault(judge, []).append(ServedModel(*fields))
    prints = {judge: (count, newest) for judge, count, newest in store.read("served_fingerprints", campaign=campaign)}
    judges = sorted({*models, *prints})
    return tuple(Served(judge, tuple(models.get(judge, ())), *prints.get(judge, (0, None))) for judge in judges)
