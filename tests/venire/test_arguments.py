"""Arguments of the public functions: what a signature does not allow is refused by name, before anything is done."""

from __future__ import annotations

import asyncio
import inspect
import math
import re
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import venire as vn
from venire.reports.figures import Figures

PAIR = {"instruction": "Name a prime number.", "a": "Seven is a prime number.", "b": "Nine."}
CAMPAIGN = """\
[data]
instructions = "instructions.jsonl"
completions = "completions.jsonl"
elo = "elo.csv"
[[judge]]
model = "simulated/gpt-4-0613@1"
[[editor]]
name = "echo"
model = "simulated/gpt-4-0613@1"
[plan]
policy = "all-pairs"
instructions = 2
"""
WRITERS = """\
[data]
instructions = "instructions.jsonl"
[[contestant]]
model = "simulated/gpt-4-0613@1"
"""
FILE = {"campaign": "campaign.toml"}
STORE = {"source": "judged.duckdb"}
SOUND: dict[str, dict[str, Any]] = {
    "arun": FILE,
    "audit": {**STORE, "checks": ["connectivity"]},
    "compare": {**STORE, "methods": ["bradley-terry", "kemeny"]},
    "edit": FILE,
    "generate": {"campaign": "writers.toml"},
    "judge": {"pairs": [PAIR], "judge": "simulated/gpt-4-0613@1", "elo": {"a": 1400.0, "b": 800.0}},
    "load_campaign": {"path": "campaign.toml"},
    "open_store": {"path": "judged.duckdb"},
    "parse": {"replies": ["[[A]]"]},
    "place": {"model": "terse", "on": "judged.duckdb", "battles": 4},
    "plan": FILE,
    "rate": STORE,
    "reparse": {"store": "judged.duckdb"},
    "run": FILE,
    "simulate": {**FILE, "seeds": 1, "battles": 4, "policies": ["random"]},
    "Embedded": {},
    "Figures": {},
    "Options": {},
    "Session": FILE,
    "Session.run": {},
}
"""Arguments with which each function succeeds."""
PUBLIC: dict[str, Any] = {
    **{name: getattr(vn, name) for name in vn.__all__ if inspect.isfunction(getattr(vn, name))},
    "Embedded": vn.Embedded,
    "Figures": Figures,
    "Options": vn.Options,
    "Session": vn.Session,
    "Session.run": vn.Session.run,
}
VALUES: list[tuple[Any, str]] = [
    (None, "None"),
    (True, "bool"),
    ("x", "str|Path"),
    (math.nan, "Any"),
    (-1, "float"),
    ([], "Sequence|Iterable|Collection|tuple"),
]
"""Values, and the types that allow each of them."""
ANYTHING = re.compile("Any|Rateable|Crew|Guard")
"""Types of what a function looks at itself, or of which a module knows no more than the name."""


def parameters(name: str) -> dict[str, str]:
    """The parameters of a public function with the types that each takes, without what those hold."""
    shown = inspect.signature(PUBLIC[name]).parameters.values()
    return {one.name: re.sub(r"\[.*\]", "", str(one.annotation)) for one in shown if one.name != "self"}


@pytest.fixture
def here(judged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(judged)
    shutil.copy("campaign.duckdb", "judged.duckdb")


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a campaign that has been run."""
    folder = tmp_path_factory.mktemp("judged")
    for name in ("instructions.jsonl", "completions.jsonl", "elo.csv"):
        shutil.copy(str(files("venire.configs.demo").joinpath(name)), folder / name)
    (folder / "campaign.toml").write_text(CAMPAIGN, encoding="utf-8")
    (folder / "writers.toml").write_text(WRITERS, encoding="utf-8")
    vn.run(folder / "campaign.toml", embedded=vn.Embedded(direct=True))
    return folder


def call(name: str, argument: str, value: Any) -> None:
    function, given = PUBLIC[name], {**SOUND[name], argument: value}
    found = function(vn.Session("campaign.toml"), **given) if name == "Session.run" else function(**given)
    if inspect.iscoroutine(found):
        asyncio.run(found)
    if isinstance(found, vn.Store):
        found.close()


def test_every_public_function_is_walked() -> None:
    assert SOUND.keys() == PUBLIC.keys()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", SOUND)
def test_an_argument_of_another_type_is_refused_by_its_name(name: str) -> None:
    for argument, types in parameters(name).items():
        for value, allowed in VALUES:
            if not ANYTHING.search(types) and not re.search(rf"\b({allowed})\b", types):
                with pytest.raises(vn.InputError, match=rf"^{argument} (is|holds) .*; (give|choose) "):
                    call(name, argument, value)


@pytest.mark.slow
@pytest.mark.usefixtures("here", "direct_judges")
@pytest.mark.parametrize("name", [name for name in SOUND if name not in ("Session.run", "arun", "edit", "generate")])
def test_an_argument_of_its_type_is_taken_or_refused_in_a_sentence(name: str) -> None:
    for argument, types in parameters(name).items():
        for value, allowed in VALUES:
            if ANYTHING.search(types) or re.search(rf"\b({allowed})\b", types):
                try:
                    call(name, argument, value)
                except vn.InputError as refused:
                    assert re.search(rf"{argument}|\bx\b|two methods|nothing was named", str(refused), re.IGNORECASE)  # noqa: PT017 - most are taken


def test_what_a_list_or_dict_holds_is_checked_and_a_secret_in_it_is_not_shown() -> None:
    battles = [{"model_a": "oak", "model_b": "elm", "winner": "tie"}]
    with pytest.raises(vn.InputError, match=r"^anchors holds a str; give a dict from a text to a number or None$"):
        vn.rate(battles, anchors={"oak": "high"})  # type: ignore[dict-item]
    with pytest.raises(vn.InputError, match=r"^methods holds 3; give a list that holds a text$"):
        vn.compare(battles, methods=[3])  # type: ignore[list-item]
    with pytest.raises(vn.InputError, match=r"^environ is a str; give a dict from a text to a text or None$"):
        vn.run("campaign.toml", environ="sk-secret")  # type: ignore[arg-type]
    with pytest.raises(vn.InputError, match=r"^habits holds 'shouting'; give a list that holds one of position, ties$"):
        vn.Options(habits=("shouting",))  # type: ignore[arg-type]


def test_numbers_of_numpy_are_taken() -> None:
    options = vn.Options(replicates=np.int64(2), level=np.float32(0.5))
    assert options.replicates == 2
