"""Pairs judged from Python: what is kept, what is asked again, where a cap ends it, and what each mistake is called."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import venire as vn
from tests.parameters import slow_after
from venire.simulation.answer_key import AnswerKey
from venire.simulation.server import JudgeServer, serve_in_thread
from venire.storage.transfer.formats.columns import INSTRUCTION_TEXTS

PAIRS = [{"instruction": f"Say {n % 2}", "a": f"It is {n}, exactly.", "b": f"no {n}"} for n in range(6)]
"""Three pairs on each of two instructions."""
ELO = {"a": 1400.0, "b": 900.0}
PRICE = vn.Price(input=2, output=8)
CALLS_OF_A_PAIR = 4
"""Two orders, each in two stages."""
pytestmark = pytest.mark.usefixtures("direct_judges")
EMBEDDED = vn.Judge(model="simulated/gpt-4-0613@1")


@pytest.fixture
def serve() -> Callable[..., Any]:
    rows = ((str(n), pair["instruction"], side, pair[side]) for n, pair in enumerate(PAIRS) for side in ELO)
    key = AnswerKey(rows, ELO)
    return lambda **settings: serve_in_thread(JudgeServer(key, **{"speed": 0.0, **settings}))


@pytest.fixture
def server(serve: Callable[..., Any]) -> Iterator[Any]:
    with serve() as running:
        yield running


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "pairs.duckdb"


def judge_at(server: Any, **more: Any) -> vn.Judge:
    return vn.Judge(name="j", model=EMBEDDED.model, base_url=server.base_url, price=PRICE, **more)


def asked(server: Any) -> int:
    return len(server.ledger.entries)


def test_an_instruction_may_stand_in_any_number_of_pairs() -> None:
    rows = vn.judge(PAIRS, judge=EMBEDDED, elo=ELO)
    assert [row.pair for row in rows] == list(range(len(PAIRS)))
    assert all(row.replies[0] and row.replies[1] for row in rows)


def test_with_a_store_only_what_is_new_is_asked(server: Any, store: Path) -> None:
    judge = judge_at(server)
    first = vn.judge(PAIRS[:3], judge=judge, store=store, elo=ELO)
    assert asked(server) == 3 * CALLS_OF_A_PAIR
    assert vn.judge(PAIRS[:1], judge=judge, store=store, elo=ELO) == first[:1]
    assert asked(server) == 3 * CALLS_OF_A_PAIR
    assert vn.judge(PAIRS[:4], judge=judge, store=store, elo=ELO)[:3] == first
    assert asked(server) == 4 * CALLS_OF_A_PAIR
    changed = [{**PAIRS[0], "b": PAIRS[2]["b"]}]  # another text is another question
    assert vn.judge(changed, judge=judge, store=store, elo=ELO)[0].cost > 0
    assert asked(server) == 5 * CALLS_OF_A_PAIR
    vn.judge(PAIRS[:1], judge=judge, protocol="binary", store=store, elo=ELO)  # and so is another protocol
    assert asked(server) == 5 * CALLS_OF_A_PAIR + 2
    assert vn.judge(PAIRS[:3], judge=judge, store=store, elo=ELO) == first
    assert asked(server) == 5 * CALLS_OF_A_PAIR + 2


@pytest.mark.parametrize("kept", [True, False])
def test_a_cap_holds_over_all_calls_of_a_store_and_what_is_missing_is_said(
    server: Any, store: Path, kept: bool
) -> None:
    more: dict[str, Any] = {"judge": judge_at(server), "elo": ELO, "store": store if kept else None}
    with pytest.warns(UserWarning, match=r"of 12 verdicts are missing \(None\): the budget is reached"):
        rows = vn.judge(PAIRS, budget=0.03, **more)
    assert 0 < sum(row.cost for row in rows) <= 0.03
    assert None in [row.a_first for row in rows]
    if not kept:
        return
    before, said = asked(server), []
    assert vn.judge(PAIRS, budget=0.03, warn=said.append, **more) == rows
    assert asked(server) == before
    assert "with a higher budget" in said[-1]
    whole = vn.judge(PAIRS, budget=vn.Budget(money=1), **more)
    assert None not in [row.a_first for row in whole]
    assert asked(server) == len(PAIRS) * CALLS_OF_A_PAIR


CHILD = """
import json, sys
import venire as vn
url, store, pairs = sys.argv[1:]
price = vn.Price(input=2, output=8)
judge = vn.Judge(name="j", model="simulated/gpt-4-0613@1", base_url=url, price=price, concurrency=2)
vn.judge(json.loads(pairs), judge=judge, store=store, elo={"a": 1400.0, "b": 900.0})
"""


@pytest.mark.slow
@pytest.mark.parametrize(("number", "twice"), [(signal.SIGKILL, 8), (signal.SIGINT, 0)])
def test_after_a_kill_the_same_call_asks_only_what_is_missing(
    serve: Callable[..., Any], store: Path, number: signal.Signals, twice: int
) -> None:
    """What a SIGKILL may cost is what was in flight or answered within the last moment; Ctrl-C costs nothing."""
    children: list[subprocess.Popen[bytes]] = []
    begun = threading.Event()

    def kill(ordinal: int) -> None:
        if ordinal == 12:
            begun.wait()
            children[0].send_signal(number)

    with serve(on_request=kill, speed=50.0) as server:
        command = [sys.executable, "-c", CHILD, server.base_url, str(store), json.dumps(PAIRS)]
        children.append(subprocess.Popen(command, stderr=subprocess.PIPE))
        begun.set()
        _, errors = children[0].communicate()
        assert children[0].returncode == -number
        assert number is signal.SIGKILL or f"they are in {store}" in errors.decode()
        rows = vn.judge(PAIRS, judge=judge_at(server), store=store, elo=ELO)
        times = Counter(entry.key for entry in server.ledger.entries)
    assert all(row.winner for row in rows)
    assert len(times) == len(PAIRS) * CALLS_OF_A_PAIR
    assert sum(times.values()) - len(times) <= twice


def in_a_notebook(cell: Coroutine[Any, Any, None]) -> None:
    loop = asyncio.new_event_loop()  # `asyncio.run` has a handler of its own, which no notebook has
    loop.run_until_complete(cell)
    loop.close()


@pytest.mark.parametrize(
    ("run", "number"),
    slow_after(2, (in_a_notebook, signal.SIGINT), (asyncio.run, signal.SIGTERM), (asyncio.run, signal.SIGINT)),
)
def test_one_signal_inside_a_running_loop_ends_gently_and_loses_nothing(
    serve: Callable[..., Any], store: Path, run: Callable[..., None], number: signal.Signals
) -> None:
    """A running loop has the calls sent by another thread, which gets no signal; `asyncio.run` takes SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with serve(on_request=lambda n: n == 6 and os.kill(os.getpid(), number), speed=50.0) as server:
        judge = judge_at(server, concurrency=2)

        async def cell() -> None:
            with pytest.raises(KeyboardInterrupt, match="the same call goes on"):
                vn.judge(PAIRS, judge=judge, store=store, elo=ELO)
            assert asked(server) < len(PAIRS) * CALLS_OF_A_PAIR
            vn.judge(PAIRS, judge=judge, store=store, elo=ELO)

        run(cell())
        assert asked(server) == len(PAIRS) * CALLS_OF_A_PAIR
    signal.signal(signal.SIGINT, before)


def test_no_bound_of_queries_cuts_the_verdicts_that_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The danger: of more than 32 million characters of replies the rest was paid for, and None."""
    monkeypatch.setattr("venire.storage.read.selecting._MAX_CHARACTERS", 1)
    assert all(row.replies[1] and row.winner for row in vn.judge(PAIRS, judge=EMBEDDED, elo=ELO))


def columns(pairs: list[dict[str, str]], **names: str) -> dict[str, list[str]]:
    return {names.get(key, key): [pair[key] for pair in pairs] for key in ("instruction", "a", "b")}


@cache
def judged() -> list[vn.JudgedPair]:
    """The verdicts on the first two pairs."""
    return vn.judge(PAIRS[:2], judge=EMBEDDED, elo=ELO)


def frame(library: str) -> Any:
    return pytest.importorskip(library).DataFrame(columns(PAIRS[:2]))


@pytest.mark.parametrize(
    "make",
    [lambda: columns(PAIRS[:2]), lambda: frame("pandas"), lambda: frame("polars"), lambda: iter(PAIRS[:2])],
    ids=["columns", "pandas", "polars", "iterator"],
)
def test_pairs_come_in_any_table(make: Callable[[], Any]) -> None:
    assert vn.judge(make(), judge=EMBEDDED, elo=ELO) == judged()


def test_pairs_come_from_a_file_with_columns_of_any_name(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    rows = ({"task": pair["instruction"], "a": pair["a"], "b": pair["b"]} for pair in PAIRS[:2])
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert vn.judge(path, judge=EMBEDDED, elo=ELO, mapping={"instruction": "task"}) == judged()
    with pytest.raises(vn.InputError, match=r'columns found: task, a, b.*mapping=\{"instruction": '):
        vn.judge(str(path), judge=EMBEDDED, elo=ELO)


@pytest.mark.parametrize("name", slow_after(1, *INSTRUCTION_TEXTS))
def test_a_column_of_instructions_may_be_called_as_in_other_tables(name: str) -> None:
    assert vn.judge(columns(PAIRS[:2], instruction=name), judge=EMBEDDED, elo=ELO) == judged()


@pytest.mark.parametrize("key", slow_after(1, "a", "instruction"))
def test_a_text_that_no_budget_covers_is_named_and_the_other_pairs_are_judged(key: str, store: Path) -> None:
    """The danger: one answer longer than the budget ended the call, and no other pair was judged."""
    said: list[str] = []
    long = {**PAIRS[1], key: "word" * 100_000}
    more: dict[str, Any] = {"judge": EMBEDDED, "elo": ELO, "store": store, "warn": said.append}
    rows = vn.judge([PAIRS[0], long, *PAIRS[2:]], budget=vn.Budget(tokens=90_000), **more)
    assert [row.pair for row in rows if row.winner is None] == [1]
    (sentence,) = said
    assert f"{key} of pair 1" in sentence
    assert "about 100,00" in sentence
    assert "the budget of 90,000 tokens" in sentence
    whole = vn.judge([long], budget=vn.Budget(tokens=900_000), **more)
    assert whole[0].winner is not None, "with a higher budget the same call asks it"
    assert vn.judge([PAIRS[0], long], budget=vn.Budget(tokens=90_000), **more)[1].winner == whole[0].winner
    assert len(said) == 1, "what was judged is given back whatever the budget is now"


@pytest.mark.parametrize(
    ("pairs", "more", "says"),
    [
        (None, {}, "pairs: give .* not None"),
        (5, {}, "pairs: give .* not 5"),
        ("", {}, "pairs: give .* not ''"),
        ({}, {}, "no columns: give it instruction, a and b"),
        ({"instruction": ["x"], "a": [None], "b": ["z"]}, {}, "row 1: a is None"),
        (PAIRS, {"judge": None}, "judge is None; give a Judge, a text or a list"),
        (PAIRS, {"judge": 5}, "judge is 5; give"),
        (PAIRS, {"judge": ""}, "judge is '': give"),
        (PAIRS, {"judge": {"model": "m"}}, "judge is a dict; give"),
        (PAIRS, {"judge": [EMBEDDED, {"model": "m"}]}, "judge holds a dict; give"),
        (PAIRS, {"mapping": {"left": "a"}}, "mapping: 'left' is no name of ours"),
        (PAIRS, {"mapping": {"a": "left"}}, "pair 0: a is missing: it has no 'left'"),
        (PAIRS, {"mapping": {"reference": "gold"}}, "mapping: no pair has 'gold'"),
        (columns(PAIRS), {"mapping": {"reference": "gold"}}, 'no column "gold"'),
        (PAIRS, {"mapping": 5}, "mapping is 5; give a dict"),
        (PAIRS, {"elo": 5}, "elo is 5; give a dict from a text to a number"),
        (PAIRS, {"elo": {"a": "x", "b": 1}}, "elo holds a str; give a dict"),
        (PAIRS, {"store": 5}, "store is 5; give a path"),
    ],
)
def test_what_cannot_be_judged_is_named(pairs: Any, more: dict[str, Any], says: str) -> None:
    with pytest.raises(vn.InputError, match=says):
        vn.judge(pairs, **{"judge": EMBEDDED, "elo": ELO, **more})


def test_lists_tables_and_files_differ_in_form_alone(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("instruction,a,b,more\nSay 1,,It is 1.,x\n")
    row = {"instruction": "Say 1", "a": "", "b": "It is 1.", "more": "x"}
    table = {key: [cell] for key, cell in row.items()}
    first, *others = (vn.judge(given, judge=EMBEDDED, elo=ELO) for given in (path, table, [row]))
    assert first[0].winner is not None
    assert others == [first, first]
    path.write_text("instruction,a,b\n")
    for nothing in (path, {"instruction": [], "a": [], "b": []}, []):
        assert vn.judge(nothing, judge=EMBEDDED, elo=ELO) == []


def test_verdicts_that_cannot_be_read_are_counted(server: Any) -> None:
    """The server knows no verdict on texts that are not in its key."""
    strange = {"instruction": "Say 9", "a": "nine", "b": "none"}
    said: list[str] = []
    rows = vn.judge([PAIRS[0], strange, strange], judge=judge_at(server), elo=ELO, warn=said.append)
    assert [row.winner is None for row in rows] == [False, True, True]
    assert any("2 of 4 verdicts could" in one for one in said)


def test_the_name_of_a_model_brings_its_vendors_address_and_key(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {
        "gpt-4o-mini": "OPENAI_API_KEY",
        "claude-sonnet-4-5": "ANTHROPIC_API_KEY",
        "gemini-2.5-flash": "GEMINI_API_KEY",
        "mistral/mistral-large-latest": "MISTRAL_API_KEY",
        "openai:gpt-4o-mini": "OPENAI_API_KEY.*https://platform.openai.com/api-keys",
    }
    for name, variable in names.items():
        monkeypatch.delenv(variable.partition(".")[0], raising=False)
        with pytest.raises(vn.InputError, match=f"environment variable {variable}"):
            vn.judge(PAIRS[:1], judge=name)
    with pytest.raises(vn.InputError, match="write its vendor before it"):
        vn.judge(PAIRS[:1], judge="my-own")
    with pytest.raises(vn.InputError, match=r"no price is known.*price=vn.Price\("):
        vn.judge(PAIRS[:1], judge="groq/never-heard-of")


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"judge": "gpt-4o-mini"}, "write OPENAI_API_KEY=... into .env"),
        (
            {"judge": vn.Judge(model="m", base_url="http://127.0.0.1:9/v1")},
            "price=vn.Price(input=DOLLARS, output=DOLLARS) per million tokens, or free=True",
        ),
        ({"judge": vn.Judge(model="m", base_url="http://127.0.0.1:9/v1", free=True)}, "base_url"),
        ({"judge": EMBEDDED}, "elo={"),
        ({"judge": EMBEDDED, "elo": {"x": 1}}, "both sides"),
        ({"judge": EMBEDDED, "elo": ELO, "protocol": "two-stage-reference"}, "reference"),
    ],
)
def test_no_message_names_a_folder_that_is_not_there(
    more: dict[str, Any], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(vn.InputError) as caught:
        vn.judge(PAIRS[:1], **more)
    assert says in str(caught.value)
    assert tempfile.gettempdir() not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_store_of_something_else_is_refused(store: Path, tmp_path: Path) -> None:
    rows = vn.judge(PAIRS[:1], judge=EMBEDDED, elo=ELO, store=store)
    assert store.exists()
    assert vn.judge(PAIRS[:1], judge=EMBEDDED, elo=ELO, store=store) == rows
    with pytest.raises(vn.InputError, match="make it first"):
        vn.judge(PAIRS[:1], judge=EMBEDDED, elo=ELO, store=tmp_path / "none" / "s.duckdb")
    two = [{**PAIRS[0], "reference": "0"}, {**PAIRS[2], "reference": "1"}]
    with pytest.raises(vn.InputError, match="pair 1: its instruction has another reference"):
        vn.judge(two, judge=EMBEDDED, elo=ELO)
