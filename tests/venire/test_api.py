"""The Python interface: campaigns without a file, pairs in memory, and the names that a user sees."""

from __future__ import annotations

import asyncio
import doctest
import inspect
import math
import shutil
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import venire as vn
from venire.arena.battles import Statistics
from venire.configs.loading import campaign_of, resolve

PAIR = {"instruction": "Name a prime number.", "a": "Seven is a prime number.", "b": "Nine."}
ELO = {"a": 1400.0, "b": 800.0}
TABLES = {"instructions": "instructions.jsonl", "completions": "completions.jsonl", "elo": "elo.csv"}
EXPERT = vn.Judge(model="simulated/gpt-4-0613@1")


def small(folder: Path, **more: Any) -> vn.Campaign:
    return vn.Campaign(
        name="small",
        store=folder / "small.duckdb",
        data=vn.Data(**{kind: folder / name for kind, name in TABLES.items()}),
        judges=[EXPERT],
        **{"plan": vn.Plan(policy="all-pairs", instructions=2), **more},
    )


def test_every_public_name_is_there_and_dir_lists_them_alone() -> None:
    assert [name for name in vn.__all__ if not hasattr(vn, name)] == []
    assert set(dir(vn)) == {*vn.__all__, "__version__"}
    with pytest.raises(AttributeError, match="nonsense"):
        vn.nonsense  # noqa: B018


def test_neither_tables_nor_run_import_what_is_not_needed_before_a_run_begins() -> None:
    """An import of any of these takes from a tenth of a second to several."""
    heavy = {"aiohttp", "altair", "jinja2", "litellm", "polars", "pandas", "ray", "rich", "scipy", "tiktoken", "typer"}
    names = "vn.Campaign, vn.Judge, vn.plan, vn.run, vn.judge, vn.Session"
    script = f"import sys, venire as vn; {names}; print(sorted({heavy!r} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


FUNCTIONS = [name for name in vn.__all__ if inspect.isfunction(getattr(vn, name))]
pytestmark = pytest.mark.usefixtures("direct_judges")

TOML = """\
[data]
instructions = "instructions.jsonl"
completions = "completions.jsonl"
elo = "elo.csv"
[[judge]]
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


EDITOR = """
[[editor]]
name = "echo"
model = "simulated/gpt-4-0613@1"
"""


@pytest.fixture
def examples(folder: Path, judged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What examples find in their folder: a campaign that was run, one that was not, and those of writers."""
    for name, text in {"campaign": TOML, "new": TOML, "writers": WRITERS, "edits": TOML + EDITOR}.items():
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    shutil.copy(judged, folder / "campaign.duckdb")
    monkeypatch.chdir(folder)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of such a campaign."""
    here = tmp_path_factory.mktemp("judged")
    for name in TABLES.values():
        shutil.copy(str(files("venire.configs.demo").joinpath(name)), here / name)
    (here / "campaign.toml").write_text(TOML, encoding="utf-8")
    return vn.run(here / "campaign.toml").store


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.usefixtures("examples")
def test_every_public_function_has_an_example_that_is_true(name: str) -> None:
    function = getattr(vn, name)
    (example,) = doctest.DocTestFinder().find(function, name, globs=dict(vars(import_module(function.__module__))))
    found = doctest.DocTestRunner(verbose=False).run(example)
    assert found.attempted > 0
    assert found.failed == 0


def test_the_example_of_the_package_is_true() -> None:
    assert doctest.testmod(vn) == (0, 4)


FILE = """\
name = "both"
seed = 4
[data]
instructions = "i.csv"
completions = "c.csv"
map.completions = { completion = "output" }
families = { strong = "gpt", "na\\"me \N{GRINNING FACE}" = "a b" }
[[judge]]
model = "claude-x"
provider = "anthropic"
key_variable = "SOME_KEY"
temperature = 0.7
price = { input = 3, output = 15.5 }
headers = { X-Title = "both" }
[[judge.fallback]]
base_url = "https://other.example/v1"
provider = "openai"
[[judge]]
model = "simulated/gpt-4-0613@1"
protocol = "binary"
[[contestant]]
model = "writer"
base_url = "http://127.0.0.1:9/v1"
free = true
samples = 2
[plan]
instructions = 5
orders = "random"
stop = { top = 3, half_width = 30.5 }
[[plan.phase]]
name = "first"
policy = "balanced"
battles = 100
[[plan.phase]]
name = "then"
policy = "information"
[budget]
money = 5.25
[budget.judge.claude-x]
calls = 300
"""


def test_a_campaign_in_python_is_the_one_of_a_file_with_the_same_keys(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    written = vn.Campaign(
        name="both",
        seed=4,
        data=vn.Data(
            instructions=Path("i.csv"),
            completions="c.csv",
            map={"completions": {"completion": "output"}},
            families={"strong": "gpt", 'na"me \N{GRINNING FACE}': "a b"},
        ),
        judges=[
            vn.Judge(
                model="claude-x",
                provider="anthropic",
                key_variable="SOME_KEY",
                temperature=0.7,
                price=vn.Price(input=3, output=15.5),
                headers={"X-Title": "both"},
                fallback=[vn.Fallback(base_url="https://other.example/v1", provider="openai")],
            ),
            vn.Judge(model="simulated/gpt-4-0613@1", protocol="binary"),
        ],
        contestants=(vn.Contestant(model="writer", base_url="http://127.0.0.1:9/v1", free=True, samples=2),),
        plan=vn.Plan(
            instructions=5,
            orders="random",
            stop=vn.Stop(top=3, half_width=30.5),
            phases=[
                vn.Phase(name="first", policy="balanced", battles=100),
                vn.Phase(name="then", policy="information"),
            ],
        ),
        budget=vn.Budget(money=5.25, judge={"claude-x": vn.BudgetLimits(calls=300)}),
    )
    found, filed = resolve(written), campaign_of(tmp_path / "both.toml", FILE)
    assert tomllib.loads(FILE)["judge"][0]["temperature"] == 0.7
    unequal = {"text", "path"}
    for name in ("settings", "generation_settings", "judges", "contestants", "plan", "data", "budget", "store", "seed"):
        assert name not in unequal
        assert getattr(found, name) == getattr(filed, name), name
    assert found.judge_budgets == filed.judge_budgets
    again = campaign_of(tmp_path / "both.toml", found.text)  # what a store keeps can be read as a file
    assert (again.settings, again.generation_settings) == (found.settings, found.generation_settings)
    assert "  { " in found.text


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: vn.Judge(model="x", temperature=3), "Judge: temperature: found 3"),
        (lambda: vn.Judge(modle="x"), 'did you mean "model"'),
        (lambda: vn.Judge(model="x", key_variable="sk-abcdefghijklmnop123456"), "looks like a key itself"),
        (lambda: vn.Plan(stop=vn.Stop(level=0.1)), "Stop: level"),
        (lambda: vn.Campaign(judges=vn.Judge(model="x")), "Campaign: judge: found a table"),
        (
            lambda: vn.Campaign(judges=[{"model": "x", "concurrency": 0}]),
            r"judge\[1\].concurrency .judge .x..: found 0",
        ),
        (lambda: resolve(vn.Campaign(name="x")), "judge: missing"),
        (lambda: resolve(vn.Campaign(judges=[vn.Judge(model="x")])), "write its vendor before it"),
        (lambda: vn.plan("nowhere.toml"), "no such campaign file"),
    ],
)
def test_what_is_wrong_is_said_as_of_a_file_and_shows_no_secret(make: Any, said: str) -> None:
    with pytest.raises(vn.InputError, match=said) as caught:
        make()
    assert "sk-abc" not in str(caught.value)


def test_a_campaign_is_planned_run_and_rated_without_a_file(folder: Path) -> None:
    campaign, seen = small(folder), []
    plan = vn.plan(campaign)
    assert (plan.campaign, plan.trials, plan.missing, plan.calls) == ("small", 60, 60, 120)
    assert plan.to_json()["trials"] == 60
    result = vn.run(campaign, progress=seen.append)
    assert result.ending is vn.Ending.COMPLETE
    assert result.board is not None
    assert isinstance(seen[-1], Statistics)
    assert vn.rate(result.store).to_json() == result.board.to_json()
    compared = vn.compare(result.store, methods=("bradley-terry", "kemeny"))
    assert compared.methods == ("bradley-terry", "kemeny")
    file = [f"name = 'small'\nstore = '{folder}/small.duckdb'\n[data]"]
    file += [f"{kind} = '{folder / name}'" for kind, name in TABLES.items()]
    file += [f"[[judge]]\nmodel = '{EXPERT.model}'\n[plan]\npolicy = 'all-pairs'\ninstructions = 2\n"]
    (folder / "small.toml").write_text("\n".join(file), encoding="utf-8")
    filed = vn.run(folder / "small.toml")  # the file's campaign is the same one: nothing is refused or asked again
    assert (filed.ending, filed.summary.statistics.calls) == (vn.Ending.COMPLETE, 0)
    assert filed.summary.progress.settled == 60


def test_a_cancelled_run_stops_gently_and_goes_on(folder: Path) -> None:
    campaign = small(folder)

    async def cancelled() -> None:
        begun = asyncio.Event()
        loop = asyncio.get_running_loop()
        embedded = vn.Embedded(speed=50.0)
        task = asyncio.create_task(
            vn.arun(campaign, embedded=embedded, progress=lambda now: loop.call_soon_threadsafe(begun.set))
        )
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    rest = vn.plan(campaign)
    assert 0 < rest.missing <= 60
    result = asyncio.run(vn.arun(campaign))
    assert result.ending is vn.Ending.COMPLETE
    assert result.summary.progress.settled == 60


def test_pairs_are_judged_in_memory_in_both_orders(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    same = ("Say hello.", "Hello!", "Go away.")
    judges = [EXPERT, vn.Judge(name="plain", model="simulated/gpt-4-0613@2", protocol="binary")]
    rows = vn.judge([PAIR, same, PAIR], judge=judges, elo=ELO)
    assert [(row.pair, row.judge) for row in rows] == [(n, j) for n in range(3) for j in (judges[0].model, "plain")]
    assert rows[0].winner == rows[0].a_first == rows[0].b_first == "a"
    assert not rows[0].flipped
    assert [len(texts) for texts in rows[0].replies] == [2, 2]
    assert [len(texts) for texts in rows[1].replies] == [1, 1]
    assert rows[4] == type(rows[4])(2, *[getattr(rows[0], name) for name in ROW])  # equal pairs are asked once
    assert list(tmp_path.iterdir()) == []
    assert vn.judge([], judge=EXPERT) == []


ROW = ("judge", "winner", "a_first", "b_first", "replies", "cost")


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        ({"instruction": "x", "a": "y"}, "pair 0: b is missing: .* instruction, a"),
        ({**PAIR, "a": None}, "pair 0: a is None"),
        ({**PAIR, "b": math.nan}, "pair 0: b is nan"),
        ({**PAIR, "instruction": 7}, "pair 0: instruction is 7"),
        ({**PAIR, "reference": ["x"]}, "pair 0: reference is list"),
        (("x", "y"), "pair 0: give the texts .* not tuple"),
        ("xyz", "pair 0: give the texts"),
        (("x", "y", "y"), "pair 0: a and b are the same"),
        ((" ", "x", "y"), "pair 0: the instruction is empty"),
        (("x\ud800", "x", "y"), "pair 0: .*half a character"),
    ],
)
def test_a_pair_that_cannot_be_judged_is_named(pair: Any, said: str) -> None:
    with pytest.raises(vn.InputError, match=said):
        vn.judge([pair], judge=EXPERT, elo=ELO)


def test_protocols_that_show_other_than_two_answers_are_refused() -> None:
    for name, why in (("listwise", "does not show two answers"), ("nonsense", "does not exist")):
        with pytest.raises(vn.InputError, match=f"{why}: name one of two-stage, ") as refused:
            vn.judge([PAIR], judge=EXPERT, protocol=name, elo=ELO)
        assert "listwise" not in str(refused.value).partition("name one of")[2]


def test_a_judge_that_cannot_be_reached_is_an_error_and_not_an_empty_list() -> None:
    judge = vn.Judge(model="m", base_url="http://127.0.0.1:9/v1", free=True, max_attempts=1, patience=0.1)
    with pytest.raises(vn.VenireError, match=r"127\.0\.0\.1"):
        vn.judge([PAIR], judge=judge)


def test_replies_are_read_in_the_dialect_that_reads_most_of_them() -> None:
    readings = vn.parse(["I like the first. [[A]]", "[[C]]", None, "No idea."])
    assert [one.verdict for one in readings] == ["first", "tie", None, None]
    with pytest.raises(vn.InputError, match="no dialect"):
        vn.parse(["[[A]]"], dialect="nonsense")
    with pytest.raises(vn.InputError, match="none of the dialects reads any of the 1 replies"):
        vn.parse(["hm"])


def test_replies_of_a_store_are_read_again(judged: Path) -> None:
    found = vn.reparse(judged, dry_run=True)
    assert (found.to_json()["verdicts"], found.to_json()["same"]) == (60, 60)
