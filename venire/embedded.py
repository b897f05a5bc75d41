"""Simulated judges without an endpoint: how they behave, what they must know, and who answers for them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from venire.arena.campaigns import CampaignSettings, DataSettings, JudgeSettings
from venire.arena.choices import TableKind
from venire.arena.clock import Clock, VirtualClock
from venire.arena.keywords import check_fields
from venire.arena.records import Completion, Instruction, Origin, Rating
from venire.endpoints import EmbeddedProvider
from venire.judges.providers import PROVIDERS
from venire.simulation.answer_key import AnswerKey, with_made_up
from venire.simulation.faults import Faults
from venire.storage.read import frames
from venire.storage.store.opening import open_store
from venire.storage.store.store import Store
from venire.storage.transfer import importing
from venire.storage.transfer.formats import tables


@dataclass(frozen=True, slots=True)
class Embedded:
    """How simulated judges without an endpoint behave: see `simulation.server` and `simulation.direct`.

    `speed` divides their latency; 0 removes it. None keeps it on a virtual clock and removes it on the real clock.
    `direct` calls them in this process without HTTP, on the session's clock.
    """

    speed: float | None = None
    faults: Faults = field(default_factory=Faults)
    direct: bool = False

    def __post_init__(self) -> None:
        check_fields(self)


@contextlib.contextmanager
def embedded_provider(
    judges: Sequence[JudgeSettings], campaign: CampaignSettings, store: Store, clock: Clock, settings: Embedded
) -> Iterator[EmbeddedProvider | None]:
    """The provider for simulated judges that have no endpoint; None where there are none."""
    if not any(map(is_embedded, judges)):
        yield None
        return
    key = AnswerKey((), {}) if campaign.writes else answer_key(campaign, store)
    speed, seed = settings.speed, campaign.seed
    if speed is None:
        speed = 1.0 if isinstance(clock, VirtualClock) else 0.0
    if settings.direct:
        from venire.simulation.direct import ADDRESS, DirectJudges  # and what real judges do without

        direct = DirectJudges(key, clock=clock, speed=speed, faults=settings.faults, seed=seed)
        yield EmbeddedProvider(ADDRESS, direct.provider)
        return
    from venire.simulation.server import JudgeServer, serve_in_thread  # and aiohttp

    with serve_in_thread(JudgeServer(key, speed=speed, faults=settings.faults, seed=seed)) as server:
        entry = PROVIDERS["openai"]
        yield EmbeddedProvider(server.base_url, entry.open, entry.open_batches)


def even_faults(rate: float) -> Faults:
    """Faults of five kinds that share a rate (0 to 1) evenly; they are short, to keep a demonstration fast."""
    each = rate / 5
    return Faults(each, each, each, each, each, retry_after_s=0.2, timeout_s=2.0)


def is_embedded(judge: JudgeSettings) -> bool:
    """Whether a judge is simulated by this process, not asked at an address."""
    return judge.origin is Origin.SIMULATED and judge.lane.routes[0].base_url is None


def answer_key(campaign: CampaignSettings, store: Store | None = None) -> AnswerKey:
    """What simulated judges must know about a campaign's completions: the model of each, and that model's strength.

    A model's strength is its Elo; of one without, it is made up from its name and the campaign's seed. Such a strength
    is known to simulated judges alone: no store, plan or board has it. Read from the given store, else from the
    campaign's data files, else from its store.
    """
    data = campaign.data
    if store is None and (data.instructions is None or data.completions is None):
        with open_store(campaign.store, create=False, to_read=True) as opened:
            return answer_key(campaign, opened)
    if store is not None:
        elo = with_made_up(frames.elos(store), [one.model for one in importing.contestants(store)], campaign.seed)
        rows = ((name, "\n\n".join(turns), model, text) for name, turns, model, text in importing.answer_key(store))
        return AnswerKey(rows, elo)
    read = {kind: tables.read(path, kind, (data.maps or {}).get(kind, {})) for kind, path in data_tables(data)}
    known = {one.model: one.elo for one in read.get("elo", ()) if isinstance(one, Rating)}
    texts = {one.id: "\n\n".join(one.turns) for one in read["instructions"] if isinstance(one, Instruction)}
    names = {text: name for name, text in texts.items()} | {name: name for name in texts}  # known by either
    given = [one for one in read["completions"] if isinstance(one, Completion) and one.instruction in names]
    return AnswerKey(
        ((names[one.instruction], texts[names[one.instruction]], one.model, one.text) for one in given),
        with_made_up(known, [one.model for one in given], campaign.seed),
    )


def data_tables(data: DataSettings) -> list[tuple[TableKind, Path]]:
    """The data files that a campaign names, by the kind of their rows."""
    named: tuple[tuple[TableKind, Path | None], ...] = (
        ("instructions", data.instructions),
        ("completions", data.completions),
        ("elo", data.elo),
    )
    return [(kind, path) for kind, path in named if path is not None]
