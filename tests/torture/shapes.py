"""The campaigns that are disturbed: small ones, on the demo's texts."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path

from venire.arena.campaigns import TokenPrice
from venire.simulation.faults import Faults

JUDGES = ("gpt-4-0613", "claude-3-opus")
PRICES: Mapping[str, TokenPrice] = {
    f"simulated/{JUDGES[0]}@1": TokenPrice(10_000_000_000, 30_000_000_000),
    f"simulated/{JUDGES[1]}@1": TokenPrice(15_000_000_000, 75_000_000_000),
}
_TABLES = ("instructions.jsonl", "completions.jsonl", "elo.csv")


@dataclass(frozen=True)
class Campaign:
    """One campaign file: judges, instructions and budgets; `of_first`: the first judge's own, in tokens."""

    name: str
    judges: int = 1
    instructions: int = 3
    calls: int | None = None
    dollars: str | None = None
    tokens: int | None = None
    of_first: int | None = None
    strict: bool = False

    @property
    def money(self) -> int | None:
        """The budget in nano-dollars."""
        return None if self.dollars is None else round(float(self.dollars) * 1e9)


@dataclass(frozen=True)
class Shape:
    """One or two campaigns in a store, and how they are run."""

    name: str
    campaigns: tuple[Campaign, ...]
    group_rows: int = 500
    group_seconds: float = 0.1
    concurrency: int = 8
    speed: float = 150.0
    """By how much the server divides a judge's latency."""
    faults: Faults = field(default_factory=Faults)
    timeout: float = 5.0

    @property
    def budgeted(self) -> bool:
        """Whether a budget ends a campaign before it is complete."""
        limits = {limit for one in self.campaigns for limit in (one.calls, one.dollars, one.tokens, one.of_first)}
        return limits != {None}

    @property
    def in_flight(self) -> int:
        """The most calls that a run has open together."""
        return self.concurrency * max(one.judges for one in self.campaigns)

    def write(self, folder: Path, base_url: str, store: str, timeout: float) -> list[Path]:
        """Write the tables and the campaign files into a folder; returns the files."""
        for name in _TABLES:
            shutil.copy(str(files("venire.configs.demo").joinpath(name)), folder / name)
        return [self._write(one, folder, base_url, store, timeout) for one in self.campaigns]

    def _write(self, campaign: Campaign, folder: Path, base_url: str, store: str, timeout: float) -> Path:
        path = folder / f"{campaign.name}.toml"
        judges = "".join(
            _JUDGE.format(name=name, base_url=base_url, concurrency=self.concurrency, timeout=timeout, **_price(name))
            for name in JUDGES[: campaign.judges]
        )
        budget = "" if campaign.calls is None else f"calls = {campaign.calls}\n"
        budget += "" if campaign.dollars is None else f"money = {campaign.dollars}\n"
        budget += "" if campaign.tokens is None else f"tokens = {campaign.tokens}\n"
        budget += (
            "" if campaign.of_first is None else f'judge = {{ "{JUDGES[0]}" = {{ tokens = {campaign.of_first} }} }}\n'
        )
        head = {"name": campaign.name, "store": store, "durability": "strict" if campaign.strict else "normal"}
        path.write_text(
            _FILE.format(**head, instructions=campaign.instructions, judges=judges)
            + (f"\n[budget]\n{budget}" if budget else ""),
            encoding="utf-8",
        )
        return path


@cache
def _price(judge: str) -> dict[str, float]:
    price = PRICES[f"simulated/{judge}@1"]
    return {"input": price.input / 1e9, "output": price.output / 1e9}


_FILE = """\
name = "{name}"
seed = 5
store = "{store}"
durability = "{durability}"

[data]
instructions = "instructions.jsonl"
completions = "completions.jsonl"
elo = "elo.csv"

[plan]
policy = "all-pairs"
instructions = {instructions}
{judges}"""

_JUDGE = """
[[judge]]
name = "{name}"
model = "simulated/{name}@1"
base_url = "{base_url}"
concurrency = {concurrency}
timeout = {timeout}
max_attempts = 8
price = {{ input = {input}, output = {output} }}
"""

SHAPES = (
    Shape("plain", (Campaign("plain"),)),
    Shape("small groups", (Campaign("small", judges=2, instructions=2),), group_rows=12, group_seconds=0.02),
    Shape(
        "retries",
        (Campaign("retries"),),
        group_rows=40,
        group_seconds=0.05,
        faults=Faults(0.03, 0.03, 0.0, 0.03, 0.03, retry_after_s=0.05),
    ),
    Shape("call budget", (Campaign("calls", calls=110),), group_rows=20, group_seconds=0.03),
    Shape("money budget", (Campaign("money", dollars="0.9"),), concurrency=4),
    Shape("token budget", (Campaign("tokens", tokens=60_000),), concurrency=4, group_rows=30),
    Shape("judge's budget", (Campaign("judge", judges=2, instructions=2, of_first=30_000),), concurrency=5),
    Shape("strict", (Campaign("strict", instructions=2, strict=True),), group_rows=50, group_seconds=0.01),
    Shape(
        "two campaigns",
        (Campaign("first", instructions=2), Campaign("second", judges=2, instructions=1)),
        group_rows=25,
        group_seconds=0.04,
        concurrency=6,
    ),
)
