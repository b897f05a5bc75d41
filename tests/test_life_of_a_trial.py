"""The twelve hops of docs/architecture.md are those of a trial that is really asked."""

from __future__ import annotations

import re
import shutil
import sys
from functools import reduce
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import venire

PAGE = Path(__file__).resolve().parent.parent / "docs" / "architecture.md"
CAMPAIGN = """\
[data]
instructions = "instructions.jsonl"
completions = "completions.jsonl"
elo = "elo.csv"
models = ["strong", "terse"]
[[judge]]
model = "simulated/gpt-4-0613@1"
[plan]
policy = "all-pairs"
instructions = 1
"""


def hops() -> list[tuple[str, CodeType]]:
    """What each numbered line of the page names: its text, and the code of that function."""
    named = re.findall(r"^\d+\. `([\w/]+)\.py` `([\w.]+)`", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    found: list[tuple[str, Any]] = []
    for file, name in named:
        module = import_module(f"venire.{file.removeprefix('venire/').replace('/', '.')}")
        found.append((f"{file} {name}", reduce(getattr, name.split("."), module)))
    return [(name, function.__code__) for name, function in found]


def test_a_trial_makes_the_hops_of_the_page_in_their_order(tmp_path: Path) -> None:
    for name in ("instructions.jsonl", "completions.jsonl", "elo.csv"):
        shutil.copy(str(files("venire.configs.demo").joinpath(name)), tmp_path / name)
    (tmp_path / "one.toml").write_text(CAMPAIGN, encoding="utf-8")
    page = hops()
    names = {code: name for name, code in page}
    entered: list[str] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and (name := names.get(frame.f_code)) is not None:
            entered.append(name)

    sys.setprofile(note)
    try:
        with venire.Session(venire.load_campaign(tmp_path / "one.toml")) as session:
            summary = session.run()
    finally:
        sys.setprofile(None)
    assert (summary.ending, summary.progress.settled) == (venire.Ending.COMPLETE, 2)
    assert len(page) == 12
    left = iter(entered)  # each is entered many times
    assert [name for name, _ in page if name not in left] == [], "\n".join(entered)
