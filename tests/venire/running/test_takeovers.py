"""A shard that takes over others: their spending and limits with their work, and nobody else may go on with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.stores import rows_of
from venire.arena.errors import InputError, StoreHeldError
from venire.configs.loading import load_campaign
from venire.embedded import Embedded
from venire.orchestrator.lanes.routes import register_routes, route_name
from venire.orchestrator.planning.sharding import Shard
from venire.orchestrator.recording.ending import Ending
from venire.session import Session
from venire.storage.plans import claims

Write = Callable[..., Path]

pytestmark = pytest.mark.usefixtures("direct_judges")

MODEL = '"simulated/gpt-4-0613@1"'
CAP = 80_000_000


def shard_store(path: Path, number: int, of: int = 4) -> Path:
    return path.with_name(f"{path.stem}.shard-{number}-of-{of}.duckdb")


def spent(path: Path) -> int:
    """Nano-dollars that all shards account for together."""
    found = 0
    for store in path.parent.glob("*.shard-*.duckdb"):
        found += sum(nano for (nano,) in rows_of(store, "select nano from spend"))
    return found


@pytest.fixture
def path(write_campaign: Write) -> Path:
    limits = f"[budget]\nmoney = 0.08\ncalls = 400\n[budget.model.{MODEL}]\nmoney = 0.04"
    return write_campaign(judge="price = { input = 1.0, output = 1.0 }", more=limits)


@contextmanager
def opened(path: Path, number: int, *taken: int, amend: bool = False) -> Iterator[Session]:
    with Session(load_campaign(path), shard=Shard(number, 4, taken), amend=amend) as session:
        yield session


def ask(path: Path, number: int, *taken: int) -> Ending:
    with opened(path, number, *taken) as session:
        return session.run(embedded=Embedded(direct=True)).ending


def test_the_parts_never_pass_the_budget_whoever_takes_them(write_campaign: Write) -> None:
    """The danger: a shard that takes two others has three parts of the budget, of which the others have spent two."""
    path = write_campaign(instructions=8, judge="price = { input = 1.0, output = 1.0 }", more="[budget]\nmoney = 0.04")
    assert {ask(path, 2), ask(path, 3), ask(path, 4)} == {Ending.BUDGET}
    assert ask(path, 1, 2, 3) is Ending.BUDGET
    assert ask(path, 4, 1) is Ending.BUDGET
    assert CAP // 4 < spent(path) <= CAP // 2


def write_call(path: Path, number: int, **given: Any) -> None:
    """Put a call of the first judge on a shard's account."""
    with opened(path, number) as session:
        judge = session.planned.judges[session.store.rows("trials", low=1, high=1, ids=[1])[0][2]]
        lane = register_routes(session.store, session.campaign)[route_name(judge.lane.routes[0])]
        row = {"campaign": session.planned.id, "trial": 1, "step": 1, "number": 1, "lane": lane, "fault": 0}
        row |= {"sent_at": session.store.clock.wall(), "reserved": 0, "request_digest": b"d", "text": "A"} | given
        names = ", ".join((*row, "batch"))
        marks = ", ".join("?" * (len(row) + 1))
        with session.store.commit() as commit:
            session.store.connection.execute(
                f"insert into attempt ({names}) values ({marks})", [*row.values(), commit.batch]
            )
            commit.written += 1


def test_what_the_others_spent_is_taken_off_every_budget(path: Path) -> None:
    write_call(path, 2, cost=3_000_000, input_tokens=10, output_tokens=5)
    write_call(path, 3, cost=None, reserved=2_000_000, fault=8, text=None)
    with opened(path, 1, 2, 3) as session:
        assert session.takeover is not None
        assert (session.takeover.spent, session.takeover.part) == (5_000_000, Fraction(3, 4))
        assert (session.campaign.budget.money, session.campaign.budget.calls) == (60_000_000 - 5_000_000, 300 - 2)
        assert session.campaign.model_budgets[MODEL.strip('"')].money == 30_000_000 - 5_000_000
        assert [one.lane.share for one in session.campaign.judges] == [0.75, 0.75]


def test_the_last_minute_of_the_others_counts_within_the_limits(path: Path) -> None:
    """The danger: two parts of a limit at once, after one of them was just used up."""
    write_call(path, 2, cost=0, input_tokens=10, output_tokens=5)
    with opened(path, 1, 2) as session:
        (sent,) = (one for one in session.planned.sent_elsewhere.values() if one.calls)
        assert [calls for _, calls in sent.calls] == [1]
        assert [row[1:] for row in sent.tokens] == [(10, 5)]


def test_a_shard_that_was_taken_is_asked_by_its_taker_alone(path: Path) -> None:
    with opened(path, 2), opened(path, 3):
        pass
    with opened(path, 1, 2):
        pass
    with pytest.raises(InputError, match="--shard 1/4"), opened(path, 2):
        pass
    with pytest.raises(InputError, match="--shard 3/4 --take 1/4"), opened(path, 3, 2):
        pass
    with opened(path, 1) as session:
        assert session.takeover is not None
        assert session.takeover.taken == (2,), "a start without --take goes on with all that it has"


def test_whoever_takes_a_taker_has_all_that_it_had(path: Path) -> None:
    write_call(path, 2, cost=3_000_000)
    write_call(path, 3, cost=2_000_000)
    with opened(path, 3, 2), pytest.raises(StoreHeldError), opened(path, 1, 3):
        pass
    with opened(path, 1, 3) as session:
        assert session.takeover is not None
        assert (session.takeover.taken, session.takeover.spent) == ((2, 3), 5_000_000)
    with pytest.raises(InputError, match="--shard 1/4"), opened(path, 3):
        pass
    with opened(path, 3, 1) as session:  # taken back, with all that came together meanwhile
        assert session.takeover is not None
        assert (session.takeover.taken, session.takeover.spent) == ((1, 2), 3_000_000)
    with pytest.raises(InputError, match="--shard 3/4"), opened(path, 1):
        pass


def test_a_claim_that_was_cut_short_lets_nobody_else_spend(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The danger: a kill between two stores gives the same money to two shards."""
    for number in (1, 2, 3):
        with opened(path, number):
            pass
    with monkeypatch.context() as patch:
        patch.setattr(claims, "note_taken", raising(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt), opened(path, 1, 2):
            pass
    with pytest.raises(InputError, match="taken over by shard 1"), opened(path, 2):
        pass
    with opened(path, 1) as session:
        assert session.campaign.budget.money == CAP // 4, "nobody has what the other left until it is taken"
    with opened(path, 3, 1, 2) as session:
        assert session.campaign.budget.money == 3 * CAP // 4


def test_of_a_shard_whose_store_is_elsewhere_the_trials_are_asked_and_nothing_of_its_part_is_spent(path: Path) -> None:
    with opened(path, 1) as session:
        own = session.progress.planned
    with opened(path, 1, 2) as session:
        assert session.takeover is not None
        assert session.progress.planned > own
        assert (session.takeover.part, session.campaign.budget.money) == (Fraction(1, 4), CAP // 4)
        for number, taken in ((3, (2,)), (2, ())):
            with pytest.raises(StoreHeldError, match="shard-2-of-4"), opened(path, number, *taken):
                pass
    with opened(path, 2), opened(path, 3):
        pass


def test_a_store_that_was_taken_over_and_is_gone_is_asked_for(path: Path) -> None:
    with opened(path, 2):
        pass
    with opened(path, 1, 2):
        pass
    shard_store(path, 2).rename(path.with_name("away"))
    with pytest.raises(InputError, match="put it back"), opened(path, 1):
        pass


def test_a_changed_file_that_the_taker_accepts_is_accepted_for_what_it_took(path: Path) -> None:
    """The danger: a raised budget that only one store knows of, whose shards can then not be merged."""
    write_call(path, 2, cost=3_000_000)
    path.write_text(path.read_text(encoding="utf-8").replace("money = 0.08", "money = 0.16"), encoding="utf-8")
    with pytest.raises(InputError, match="--amend"), opened(path, 1, 2):
        pass
    with opened(path, 1, 2, amend=True) as session:
        assert session.campaign.budget.money == CAP - 3_000_000
    kept = []
    for number in (1, 2):
        kept += rows_of(shard_store(path, number), "select text, settings, in_force from campaign")
    assert kept[0] == kept[1], "as stores must be that are merged"


def raising(error: BaseException) -> Callable[..., None]:
    def fail(*given: object) -> None:
        raise error

    return fail
