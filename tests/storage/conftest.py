"""Factories for stores with a little in them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.forked import Forked
from venire.arena.budgets import BudgetSettings
from venire.arena.campaigns import (
    CampaignSettings,
    DataSettings,
    JudgeSettings,
    LaneSettings,
    PlanSettings,
    RouteSettings,
)
from venire.arena.keys import respondent_key, trial_key
from venire.arena.records import Battle, Completion, Instruction, Origin, PlannedTrial, Respondent
from venire.storage.plans import plans
from venire.storage.store.opening import open_store
from venire.storage.store.store import Store
from venire.storage.transfer import importing

START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class House:
    """A store and short ways to fill it; every method goes through the product where the product has one."""

    store: Store

    def fill(self, models: Sequence[str], instructions: Sequence[str]) -> None:
        """Every model answers every instruction, each answer a text of its own."""
        importing.add(self.store, [Instruction(name, (f"What of {name}?",)) for name in instructions])
        importing.add(self.store, [Completion(m, i, f"{m} says this of {i}") for m in models for i in instructions])

    def register(self, judges: Sequence[str] = ("j",), *, name: str = "c", settings: str = "{}") -> dict[str, int]:
        """A campaign with judges of these names, each a model of its own; judge name to respondent number."""
        lane = LaneSettings((RouteSettings("openai", None, None, "m"),))
        campaign = CampaignSettings(
            name,
            7,
            Path("c.toml"),
            self.store.path,
            DataSettings(),
            PlanSettings(),
            tuple(JudgeSettings(judge, f"model of {judge}", "two-stage", {}, lane) for judge in judges),
            BudgetSettings(),
            f"# {settings}",
            settings,
        )
        pairs = [(judge, Respondent(judge.model, judge.protocol, Origin.REAL)) for judge in campaign.judges]
        return dict(plans.register(self.store, campaign, pairs, [("two_stage/judge", b"p" * 16, "Judge.")])[1])

    def number(self, name: str = "c") -> int:
        """The number of a campaign."""
        known = plans.find_campaign(self.store, name)
        assert known is not None
        return known.id

    def trials(
        self, judges: Sequence[int], pairs: Sequence[tuple[str, str]], instructions: Sequence[str]
    ) -> list[PlannedTrial]:
        """Every pair on every instruction by every judge in both orders."""
        answers = plans.catalogue(self.store, sorted({model for pair in pairs for model in pair}))
        made: list[PlannedTrial] = []
        for name in instructions:
            number, key = answers.instructions[name]
            for a, b in pairs:
                first, second = answers.completions[a, name], answers.completions[b, name]
                for judge in judges:
                    digest = respondent_key(Respondent(str(judge), "two-stage", Origin.REAL))
                    for swapped in (False, True):
                        shown = (second[1], first[1]) if swapped else (first[1], second[1])
                        made.append(
                            PlannedTrial(
                                trial_key(digest, key, shown, 1),
                                1,
                                judge,
                                number,
                                (second[0], first[0]) if swapped else (first[0], second[0]),
                                1,
                                Battle(answers.models[a], answers.models[b], swapped, 120.5),
                            )
                        )
        return made

    def plan(self, trials: Sequence[PlannedTrial], *, name: str = "c", equal_texts: int = 0) -> list[int]:
        """A round of these trials; their numbers in the order given."""
        number = self.number(name)
        plans.append_round(self.store, number, iter(trials), policy="p", seed=7, equal_texts=[equal_texts])
        return self.planned(number)

    def planned(self, campaign: int) -> list[int]:
        """Numbers of the trials of the last round, in plan order."""
        return self.column(
            "select trial from plan where campaign = $1 and round = (select max(round) from plan where campaign = $1) "
            "order by ordinal",
            campaign,
        )

    def write(self, table: str, *rows: tuple[Any, ...]) -> None:
        """Rows of a table without their batch, in one commit."""
        with self.store.commit() as commit:
            commit.append(table, rows)

    def attempt(
        self,
        trial: int,
        step: int = 1,
        number: int = 1,
        *,
        text: str | None = "said",
        seconds: float = 0.0,
        campaign: int = 1,
        fault: int | None = None,
        reserved: int = 100,
        cost: int | None = 40,
        tokens: tuple[int, int] = (10, 5),
        waited: int = 0,
        reserved_tokens: int | None = 60,
        message: str = "the server fell over",
    ) -> tuple[Any, ...]:
        """A row of `attempt` without its batch, sent so many seconds after the start; no text: a fault."""
        answered = text is not None
        return (
            campaign,
            trial,
            step,
            number,
            1,
            START + timedelta(seconds=seconds),
            250,
            fault if fault is not None else int(not answered),
            200 if answered else 500,
            None if answered else message,
            waited,
            "stop" if answered else None,
            tokens[0] if answered else None,
            0 if answered else None,
            tokens[1] if answered else None,
            0 if answered else None,
            reserved,
            cost,
            "m-1" if answered else None,
            "" if answered else None,
            b"d" * 16,
            text,
            "" if answered else None,
            "" if answered else None,
            reserved_tokens,
            None,
            None,
            None,
        )

    def verdict(
        self, trial: int, label: int | None = 1, *, status: int = 0, reading: int = 1, score: float | None = None
    ) -> tuple[Any, ...]:
        """A row of `verdict` without its batch."""
        return (trial, reading, status, "rule", label, score, None, None, False, False, 80)

    def one(self, sql: str, *parameters: Any) -> tuple[Any, ...]:
        """The first row of a query on a cursor of its own."""
        return self.all(sql, *parameters)[0]

    def all(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """All rows of a query on a cursor of its own."""
        with self.store.cursor() as cursor:
            return cursor.execute(sql, list(parameters)).fetchall()

    def column(self, sql: str, *parameters: Any) -> list[Any]:
        """The first column of a query on a cursor of its own."""
        return [row[0] for row in self.all(sql, *parameters)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a store may be made."""
    return tmp_path / "judged.duckdb"


@pytest.fixture(scope="session")
def contents(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """An empty store and the one of `filled`, made once: a file is copied ten times as fast as its tables are made."""
    path = tmp_path_factory.mktemp("contents") / "judged.duckdb"
    open_store(path).close()
    empty = path.read_bytes()
    with open_store(path) as store:
        House(store).fill(("z", "a", "b"), ("q1", "q2", "q3"))
    return empty, path.read_bytes()


@pytest.fixture
def house(path: Path, contents: tuple[bytes, bytes]) -> Iterator[House]:
    """An empty store that is open."""
    path.write_bytes(contents[0])
    with open_store(path) as store:
        yield House(store)


@pytest.fixture
def filled(path: Path, contents: tuple[bytes, bytes]) -> Iterator[House]:
    """A store with models a, b and z, which answered instructions q1 to q3."""
    path.write_bytes(contents[1])
    with open_store(path) as store:
        yield House(store)


@pytest.fixture
def in_process() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a script in another process with arguments; what still runs at the end of the test is killed.

    `anew`: in a Python of its own, which has nothing in its memory yet.
    """
    started: list[subprocess.Popen[str]] = []

    def start(script: str, *arguments: object, anew: bool = False) -> subprocess.Popen[str]:
        process = (subprocess.Popen if anew else Forked)(
            [sys.executable, "-c", script, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate(timeout=30)
