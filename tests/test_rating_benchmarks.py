"""The benchmark of ratings runs and says what it left out; its figures are not judged: other work shares the cores."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import islice
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from venire.ratings.data.comparisons import comparisons
from venire.ratings.pairwise.bradley_terry import bradley_terry

_BENCHMARK = Path(__file__).parent.parent / "benchmarks" / "ratings"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the benchmark pins processes to a core")


@pytest.fixture(scope="module")
def modules() -> Iterator[dict[str, ModuleType]]:
    """The benchmark's own modules, which are no part of the package."""
    names = ("lines", "running", "tables", "judge_rows", "rows")
    sys.path.insert(0, str(_BENCHMARK))
    try:
        yield {name: import_module(name) for name in names}
    finally:
        sys.path.remove(str(_BENCHMARK))
        for name in names:
            del sys.modules[name]


@pytest.mark.slow
def test_small_tables_are_rated_and_not_judged() -> None:
    given = ["--scale", "0.002", "--rows", "few", "abilities", "--judge"]
    command = [sys.executable, str(_BENCHMARK / "bench.py"), *given]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    assert "| Bradley-Terry, 20,000 x 20, codes | evalica" in done.stdout
    assert "at least 60: not judged" in done.stdout
    assert "| ... largest gradient over the weight |" in done.stdout
    assert "| am-ELO, 4,321 x 20, 42 judges, codes | its authors' loop, torch" in done.stdout
    assert "| am-ELO, 20,000 x 100, 500 judges, time |" in done.stdout
    (short,) = (line for line in done.stdout.splitlines() if line.startswith("| ... nats short of the best known |"))
    assert abs(float(short.split("|")[3])) < 1e-6
    assert "one run on one core in" in done.stdout


@pytest.mark.slow
def test_votes_are_put_in_order_without_the_programs_beside_it(
    modules: dict[str, ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(modules["running"], "_PEERS", tmp_path)
    lines = list(islice(modules["rows"].kemeny(modules["rows"].Bench(tmp_path, 0.2)), 4))
    assert lines[0].show().startswith("| Kemeny-Young, 10 models, 25 voters who agree | venire |")
    assert (lines[0].most, lines[0].note) == (0.02, "proved")
    assert lines[0].figure is not None
    assert [line.figure for line in lines[1:]] == [None] * 3
    assert lines[2].note == "pulp is not installed: make bench-ratings-peers"


def test_the_closed_form_of_a_ladder_is_its_maximum(modules: dict[str, ModuleType], tmp_path: Path) -> None:
    folder = modules["tables"].ladder(tmp_path / "ladder", 30)
    a, b, y = (np.load(folder / f"{name}.npy") for name in "aby")
    found = bradley_terry(comparisons(a, b, y), errors="none").logits
    assert found == pytest.approx(modules["tables"].ladder_logits(30), abs=1e-9)


def test_a_library_that_is_not_installed_or_cannot_do_it_is_told(
    modules: dict[str, ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, folder = modules["running"], modules["tables"].battles(tmp_path / "battles", 2000, 4)
    monkeypatch.setattr(running, "_PEERS", tmp_path)
    with pytest.raises(running.Missing, match="evalica is not installed: make bench-ratings-peers"):
        running.run("evalica", "fit", folder)
    with pytest.raises(running.Missing, match="venire has no dance"):
        running.run("venire", "dance", folder)


@pytest.mark.slow
def test_a_driver_that_ends_with_an_error_is_told(modules: dict[str, ModuleType], tmp_path: Path) -> None:
    with pytest.raises(modules["running"].Failed, match="FileNotFoundError"):
        modules["running"].run("venire", "fit", tmp_path)


def test_every_lock_names_hashes_and_no_index() -> None:
    locks = sorted((_BENCHMARK / "peers").glob("*.lock"))
    assert len(locks) >= 6
    for lock in locks:
        text = lock.read_text(encoding="utf-8")
        pinned = sum("==" in line and not line.startswith((" ", "#")) for line in text.splitlines())
        assert pinned
        assert text.count("--hash=sha256:") >= pinned
        assert "http" not in text.replace("httpcore", "").replace("httpx", "")


def test_a_target_is_judged_by_its_figure(modules: dict[str, ModuleType]) -> None:
    line = modules["lines"].Line
    assert line("fit", "other", 61.0, least=60).met
    assert not line("fit", "other", 59.0, least=60).met
    assert not line("memory", "", 1001.0, " MB", most=1000).met
    assert line("fit", "other", None, least=60, note="it is not installed").met
    assert line("fit", "other", 59.0, least=60, judged=False).met
    assert line("fit", "other", 59.0, least=60).show() == "| fit | other | 59x | at least 60: **missed** |  |"
