"""`venire simulate`: the same table whatever the number of processes, nothing left behind, and chance called chance."""

from __future__ import annotations

import csv
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

import venire as vn
from tests.processes import marked
from venire.configs.loading import load_campaign
from venire.experiments.contestants import made_up
from venire.experiments.experiment import (
    Run,
    Simulation,
    StoppedSimulationError,
    _jobs,
    _run,
    _run_without_files,
    field_of,
)
from venire.experiments.figures import FIGURES
from venire.experiments.results import conclusions, differences, means, simulation_document
from venire.experiments.variations import Axes, Variation, cross, simulated

Venire = Callable[..., Any]
Write = Callable[..., Path]
Start = Callable[..., "subprocess.Popen[str]"]

JUDGES = """
[[judge]]
name = "one"
model = "simulated/gpt-4-0613@4"
[[judge]]
name = "two"
model = "simulated/claude-3-opus@4"
"""
SMALL = "[plan]\npolicy = 'random'\nmatchups = 10\ninstructions = 3\n" + JUDGES
TINY = ("--models", 5, "--instructions", 8, "--seeds", 2, "--workers", 1)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL, encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders of a simulation go, so that a test sees what is left of them."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


@pytest.mark.slow
def test_a_table_over_seeds_holds_runs_means_and_differences(venire: Venire, file: Path, scratch: Path) -> None:
    csv_file = file.with_name("t.csv")
    done = venire("simulate", file, "--judges", 1, "--judges", 2, *TINY, "--json", "--csv", csv_file)
    assert done.code == 0, done.err
    assert "4/4 runs" in done.err
    assert "s left" in done.err
    assert list(scratch.iterdir()) == []
    assert sorted(one.name for one in file.parent.iterdir()) == ["scratch", "small.toml", "t.csv"]
    found = done.json()
    assert found["verdicts"] == "simulated"
    one, two = found["variations"]
    assert (one["name"], two["name"]) == ("1 judge", "2 judges")
    assert two["figures"]["calls"]["mean"] == 2 * one["figures"]["calls"]["mean"] == 240
    runs = [run["error"] for run in two["runs"]]
    assert two["figures"]["error"]["mean"] == pytest.approx(sum(runs) / 2)
    assert runs[0] != runs[1]
    assert 0 <= two["figures"]["coverage"]["mean"] <= 1
    assert two["figures"]["seconds"]["mean"] > 10  # of the virtual clock: 240 calls of some seconds, 32 in flight
    assert two["figures"]["unreadable"]["mean"] == 0.0
    apart = next(row for row in found["differences"] if row["figure"] == "error")
    assert apart["mean"] == pytest.approx(one["figures"]["error"]["mean"] - two["figures"]["error"]["mean"])
    assert len(found["conclusions"]) == 1
    with csv_file.open(encoding="utf-8") as rows:
        table = list(csv.DictReader(rows))
    assert [row["error"] for row in table] == [str(run["error"]) for row in (one, two) for run in row["runs"]]
    assert {row["verdicts"] for row in table} == {"simulated"}


def test_a_table_that_cannot_be_written_is_refused_before_anything_is_run(
    venire: Venire, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "venire.experiments.experiment.simulate", lambda *words, **options: pytest.fail("something was run")
    )
    done = venire("simulate", file, *TINY, "--csv", file.parent / "nowhere" / "t.csv")
    assert done.code == 2
    assert "t.csv: No such file" in done.err


def test_calls_are_a_limit_that_is_used_up_and_the_screen_says_what_it_is(venire: Venire, file: Path) -> None:
    done = venire("simulate", file, "--policy", "all-pairs", "--calls", 100, *TINY, "--seeds", 1)
    assert done.code == 0, done.err
    assert "verdicts: simulated" in done.out
    assert "all-pairs, 100 calls" in done.out
    assert "  100  " in done.out
    assert "seconds a second with 1" in done.out.splitlines()[-1]


def test_the_data_of_a_file_are_the_field_and_its_store_stays_away(venire: Venire, write_campaign: Write) -> None:
    path = write_campaign()
    found = venire("simulate", path, "--policy", "all-pairs", "--seeds", 1, "--workers", 1, "--json")
    assert found.code == 0, found.err
    assert found.json()["field"]["made_up"] is False
    assert len(found.json()["field"]["elo"]) == 6
    assert not path.with_suffix(".duckdb").exists()


def test_wrong_words_end_with_2_and_a_sentence(venire: Venire, file: Path) -> None:
    for words, said in (
        (("--orders", "one"), "take both, or random"),
        (("--budget", "much"), "take an amount of US dollars above 0"),
        (("--as", "gpt-9"), "no such profile"),
        (("--calls", "3", "--policy", "nothing"), "no such policy"),
    ):
        done = venire("simulate", file, *words, *TINY)
        assert done.code == 2
        assert said in done.err
        assert done.out == ""


@pytest.mark.slow
def test_the_table_is_the_same_with_any_number_of_processes(venire: Venire, file: Path, scratch: Path) -> None:
    def table(workers: int) -> Any:
        words = ("--judges", 1, "--judges", 2, "--calls", 130, "--models", 5, "--instructions", 8, "--seeds", 3)
        found = venire("simulate", file, *words, "--workers", workers, "--json").json()
        assert found.pop("speed")["workers"] == workers
        return found

    assert table(1) == table(2) == table(3)
    assert list(scratch.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_simulation_leaves_nothing_behind(
    start: Start, file: Path, scratch: Path, workers: int, number: signal.Signals
) -> None:
    words = ("simulate", file, "--policy", "random", "--models", 10, "--battles", 400, "--seeds", 200)
    process = start("-m", "venire", *words, "--workers", workers)
    assert process.stderr is not None
    while "runs" not in process.stderr.readline():
        pass
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert ("of 200 runs" in err and "seed" in out) or ("interrupted" in err and out == "")  # the second seed was first
    assert "Traceback" not in err
    assert list(scratch.iterdir()) == []


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("figure", "judges", "better", "worse"),
    [("half_width", 1, "information", "widest-gap"), ("consistency", 6, "widest-gap", "near-tie")],
)
def test_ranking_models_takes_other_matchups_than_judging_judges(
    venire: Venire, tmp_path: Path, figure: str, judges: int, better: str, worse: str
) -> None:
    profiles = ("gpt-4-0613", "gpt-3.5-turbo-1106", "claude-v1", "gemini-pro", "vicuna-13b", "claude-3-haiku-designs")
    path = tmp_path / "both.toml"
    seats = "".join(f'[[judge]]\nmodel = "simulated/{name}@1"\nprotocol = "binary"\n' for name in profiles)
    path.write_text(f"[plan]\npolicy = 'balanced'\nbattles = 150\nround = 50\n{seats}", encoding="utf-8")
    words = ("--policy", better, "--policy", worse, "--judges", judges, "--models", 12, "--instructions", 30)
    found = venire("simulate", path, *words, "--seeds", 4, "--json").json()
    apart = next(one for one in found["differences"] if one["figure"] == figure)
    gain = -apart["mean"] if figure == "half_width" else apart["mean"]
    assert gain > apart["se"]


def made(errors: list[list[float]], calls: float = 100.0) -> Simulation:
    """Runs with these errors, by variation and seed."""
    runs = [
        Run(place, number, "complete", {**dict.fromkeys(FIGURES), "error": error, "calls": calls * (place + 1)})
        for place, row in enumerate(errors)
        for number, error in enumerate(row)
    ]
    return Simulation(tuple(runs), 1.0, 1)


ROWS = (Variation("random"), Variation("all-pairs"), Variation("widest-gap"))


def test_differences_are_taken_seed_by_seed() -> None:
    found = made([[10.0, 20.0, 30.0, 40.0], [11.0, 21.1, 31.0, 40.9]])
    (one,) = differences(found, 2, "error")
    assert one.mean == pytest.approx(-1.0)
    assert one.se == pytest.approx(0.0408, abs=1e-3)
    assert one.beyond_chance
    assert one.calls == 0.5
    assert means(found, 0)["error"].sd == pytest.approx(12.91, abs=0.01)
    assert means(found, 0)["error"].se == pytest.approx(12.91 / 2, abs=0.01)
    assert means(found, 0)["kendall"].mean is None


def test_a_difference_that_one_comparison_would_believe_is_not_believed_of_many() -> None:
    rows = [[10.0, 10.0, 10.0, 10.0], [10.2, 11.0, 11.4, 10.6]]  # t = 3.1 of three degrees, and 3.18 is the limit
    assert not differences(made(rows), 2, "error")[0].beyond_chance
    sure = [[10.0, 10.0, 10.0, 10.0], [10.5, 11.0, 11.4, 10.6]]
    assert differences(made(sure), 2, "error")[0].beyond_chance
    many = [*sure, *([[12.0, 10.0, 9.0, 14.0]] * 8)]
    assert not differences(made(many), 10, "error")[0].beyond_chance


def test_two_runs_that_agree_to_the_last_digit_prove_nothing() -> None:
    """As the share of the best three is 0 or 1: twice 1 against twice 0 happens by chance."""
    (one,) = differences(made([[1.0, 1.0], [0.0, 0.0]]), 2, "error")
    assert (one.mean, one.se) == (1.0, 0.0)
    assert not one.beyond_chance


def test_the_sentence_names_the_best_and_calls_chance_chance() -> None:
    clear = conclusions(made([[10.0, 20.0, 30.0], [15.0, 25.1, 35.0]]), ROWS[:2])
    assert clear == [
        "Ranking the models: the smallest error is that of random, 20.0, against 25.0 of all-pairs (difference 5.0, "
        "standard error 0.03, 3 seeds): beyond chance, at 0.5 times its calls."
    ]
    (blurred,) = conclusions(made([[10.0, 20.0, 30.0], [15.0, 15.0, 31.0]]), ROWS[:2])
    assert ": not beyond chance" in blurred
    (third,) = conclusions(made([[10.0, 20.0, 30.0], [11.0, 19.5, 30.2], [60.0, 70.0, 80.1]]), ROWS)
    assert "not beyond chance" in third
    assert "better than widest-gap" in third
    (single,) = conclusions(made([[10.0], [15.0]]), ROWS[:2])
    assert "nobody can tell" in single
    assert conclusions(made([[10.0, 20.0]]), ROWS[:1]) == []


def test_a_plan_that_rates_a_few_models_alone_is_never_the_best() -> None:
    found = made([[1.0, 2.0, 3.0], [11.0, 19.5, 30.2], [60.0, 70.0, 80.1]])
    for run in found.runs:
        cast(dict[str, float], run.figures)["unrated"] = 4.5 if run.variation == 0 else 0.0
    (told,) = conclusions(found, ROWS)
    assert "error is that of all-pairs" in told
    assert told.endswith(" random left 4.5 models unrated on average.")


def test_the_document_names_every_figure() -> None:
    found = simulation_document(made([[10.0, 20.0], [11.0, 19.0]]), ROWS[:2], made_up(5, 5), ())
    assert set(found["figures"]) == set(FIGURES) == set(found["variations"][0]["figures"])


@pytest.mark.parametrize(
    ("engine", "sentence"),
    [
        ("spark", "take local, ray, or ray:ADDRESS"),
        ("ray:nowhere", "the address of a cluster is HOST:PORT"),
        ("local:2", "take local, ray, or ray:ADDRESS"),
    ],
)
def test_an_engine_that_is_not_there_ends_with_2(venire: Venire, file: Path, engine: str, sentence: str) -> None:
    done = venire("simulate", file, *TINY, "--engine", engine)
    assert done.code == 2
    assert f"--engine {engine}: {sentence}" in " ".join(done.err.split())
    assert done.out == ""


def test_without_ray_the_command_says_what_to_install(
    venire: Venire, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    done = venire("simulate", file, *TINY, "--engine", "ray")
    assert done.code == 2
    assert 'needs Ray: pip install "venire[ray]"' in " ".join(done.err.split())


def test_a_run_needs_no_file_of_the_machine_where_it_was_asked_for(
    write_campaign: Write, tmp_path: Path, scratch: Path
) -> None:
    """A pool that pickles jobs and deletes the data, the field's store and its folder before it runs them."""
    path = write_campaign(instructions=1)
    settings = load_campaign(path)
    rows, seats = cross(Axes(), settings), simulated(settings, ())
    field, template = field_of(settings, scratch, None, None)
    assert template is not None
    (scratch / "jobs").mkdir()
    jobs = [*_jobs(settings, seats, rows, field, template, scratch / "jobs", 1, None)]
    here = [_run(job) for job in jobs]
    parcel = pickle.dumps((partial(_run_without_files, template.read_bytes()), jobs))
    shutil.rmtree(tmp_path)
    scratch.mkdir(parents=True)
    run, jobs = pickle.loads(parcel)
    assert [run(job) for job in jobs] == here
    assert list(scratch.iterdir()) == []


@pytest.mark.ray
@pytest.mark.parametrize("given", [False, True])
def test_ray_gives_the_bytes_of_this_machine(
    venire: Venire, file: Path, scratch: Path, write_campaign: Write, ray_cluster: Any, given: bool
) -> None:
    words = ("--policy", "all-pairs", "--calls", 40, "--seeds", 2) if given else ("--judges", 1, "--judges", 2, *TINY)
    path = write_campaign() if given else file

    def table(*engine: object) -> tuple[str, bytes]:
        table = file.with_name("t.csv")
        table.unlink(missing_ok=True)
        done = venire("simulate", path, *words, *engine, "--json", "--csv", table)
        assert done.code == 0, done.err
        speed = done.json()["speed"]
        return done.out.replace(str(speed["wall_seconds"]), "").replace(
            f'"workers": {speed["workers"]}', ""
        ), table.read_bytes()

    assert table("--engine", "ray", "--workers", 2) == table("--engine", "local", "--workers", 1)
    assert list(scratch.iterdir()) == []


@pytest.mark.ray
def test_ray_is_an_engine_in_python(file: Path, ray_cluster: Any) -> None:
    found = vn.simulate(file, policies=["random"], models=5, instructions=8, seeds=2, engine="ray")
    assert found.simulation.workers == 2
    assert (
        found.simulation.runs
        == vn.simulate(file, policies=["random"], models=5, instructions=8, seeds=2).simulation.runs
    )


@pytest.mark.ray
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_simulation_on_ray_leaves_nothing_behind(
    start: Start, file: Path, scratch: Path, nothing_left_of_ray: None, number: signal.Signals
) -> None:
    words = (
        "simulate",
        file,
        "--policy",
        "random",
        "--models",
        10,
        "--battles",
        400,
        "--seeds",
        200,
        "--engine",
        "ray",
    )
    process = start("-m", "venire", *words)
    assert process.stderr is not None
    while "runs" not in process.stderr.readline():
        pass
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert ("of 200 runs" in err and "seed" in out) or ("interrupted" in err and out == "")  # the second seed was first
    assert "Traceback" not in err
    assert list(scratch.iterdir()) == []


@pytest.mark.ray
def test_a_worker_that_is_killed_costs_its_run_alone(
    start: Start, venire: Venire, file: Path, nothing_left_of_ray: None
) -> None:
    words = ("simulate", file, "--policy", "random", "--models", 8, "--battles", 200, "--seeds", 6, "--json")
    process = start("-m", "venire", *words, "--engine", "ray")
    assert process.stderr is not None
    while "runs" not in process.stderr.readline():
        pass
    workers: list[int] = []
    while not workers:  # between two runs a worker has another name
        found = marked(f"VENIRE_TEST_MARK={os.environ['VENIRE_TEST_MARK']}")
        workers = [number for number, command in found if command.startswith("ray::_call")]
    os.kill(workers[0], signal.SIGKILL)
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    there, here = json.loads(out), venire(*words, "--workers", 1).json()
    assert there.pop("speed") != here.pop("speed")
    assert there == here


def test_ctrl_c_keeps_the_seeds_that_every_variation_was_run_with(file: Path, direct_judges: None) -> None:
    """The danger: 36 finished runs were lost."""

    def stop(done: int, _: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    words: dict[str, Any] = {"policies": ["random", "balanced"], "battles": 30, "workers": 1, "models": 6}
    with pytest.raises(KeyboardInterrupt) as stopped:
        vn.simulate(file, seeds=4, progress=stop, **words)
    assert isinstance(stopped.value, StoppedSimulationError)
    assert stopped.value.planned == 8
    kept = stopped.value.result.to_json()["variations"]
    whole = vn.simulate(file, seeds=1, **words).to_json()["variations"]
    assert [one["runs"] for one in kept] == [one["runs"] for one in whole]
