"""The demo's own texts are the first thing a user sees: each contestant keeps its character, and right is right."""

from __future__ import annotations

import csv
import json
import re
import sqlite3
import tomllib
from collections import Counter
from collections.abc import Callable
from functools import cache
from importlib.resources import as_file, files
from itertools import combinations, permutations
from statistics import median
from typing import Any

import pytest

from venire.arena.records import Origin
from venire.configs.loading import load_campaign

CONTESTANTS = ("strong", "solid", "verbose", "terse", "sloppy", "evasive")
RIGHT = ("strong", "solid", "verbose", "terse")
LONGEST_SHARED_RUN = 7
WORDS = {
    "strong": (40, 180),
    "solid": (40, 110),
    "verbose": (160, 300),
    "terse": (10, 50),
    "sloppy": (30, 80),
    "evasive": (30, 80),
}


def read(name: str) -> str:
    return (files("venire.configs.demo") / name).read_text(encoding="utf-8")


@cache
def instructions() -> dict[str, dict[str, str]]:
    return {row["instruction_id"]: row for row in map(json.loads, read("instructions.jsonl").splitlines())}


@cache
def completions() -> dict[tuple[str, str], str]:
    rows = map(json.loads, read("completions.jsonl").splitlines())
    return {(row["model"], row["instruction_id"]): row["completion"] for row in rows}


def planted() -> dict[str, float]:
    return {row["model"]: float(row["elo"]) for row in csv.DictReader(read("elo.csv").splitlines())}


def word_count(model: str, instruction: str) -> int:
    return len(completions()[model, instruction].split())


def sentences(text: str) -> set[str]:
    """Sentences of the prose, without markup; under four words it is a salutation or a heading, not a sentence."""
    prose = re.sub(r"```.*?```", "\n", text, flags=re.DOTALL)
    pieces = (re.findall(r"\w+", piece.casefold()) for piece in re.split(r"[.!?]\W*\s|\n", prose))
    return {" ".join(words) for words in pieces if len(words) > 3}


def runs(text: str, length: int) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.casefold())
    return {tuple(words[start : start + length]) for start in range(len(words) - length + 1)}


def code(model: str, instruction: str, language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", completions()[model, instruction], flags=re.DOTALL)
    assert found is not None, f"{model} shows no {language} for {instruction}"
    return found[1]


def function(model: str, instruction: str, name: str) -> Callable[..., Any]:
    namespace: dict[str, Any] = {}
    exec(compile(code(model, instruction, "python"), f"{model}/{instruction}", "exec"), namespace)
    found: Callable[..., Any] = namespace[name]
    return found


def test_there_are_sixteen_instructions_in_four_categories_of_four() -> None:
    assert len(read("instructions.jsonl").splitlines()) == len(instructions()) == 16
    assert len({row["instruction"] for row in instructions().values()}) == 16
    assert Counter(row["category"] for row in instructions().values()) == dict.fromkeys(
        ("explanation", "writing", "reasoning", "code"), 4
    )


def test_every_contestant_answers_every_instruction_once() -> None:
    assert len(read("completions.jsonl").splitlines()) == len(completions()) == 96
    assert set(completions()) == {(model, name) for model in CONTESTANTS for name in instructions()}


def test_lines_hold_the_documented_columns_and_nothing_else() -> None:
    for line in read("instructions.jsonl").splitlines():
        assert list(json.loads(line)) == ["instruction_id", "instruction", "category"]
    for line in read("completions.jsonl").splitlines():
        assert list(json.loads(line)) == ["model", "instruction_id", "completion"]


@pytest.mark.parametrize("model", CONTESTANTS)
def test_texts_are_whole(model: str) -> None:
    for name in instructions():
        text = completions()[model, name]
        assert text
        assert text == text.strip()
        assert text.count("```") % 2 == 0, name
        assert text.count("**") % 2 == 0, name


@pytest.mark.parametrize("name", sorted(instructions()))
def test_no_two_completions_share_a_sentence_or_a_long_run_of_words(name: str) -> None:
    for one, other in combinations(CONTESTANTS, 2):
        texts = completions()[one, name], completions()[other, name]
        assert not sentences(texts[0]) & sentences(texts[1]), (one, other)
        shared = runs(texts[0], LONGEST_SHARED_RUN + 1) & runs(texts[1], LONGEST_SHARED_RUN + 1)
        assert not shared, (one, other)


def test_a_shared_sentence_would_be_found() -> None:
    assert sentences("Well.  The *tide* comes\nThe sea is wide!") & sentences("No. THE SEA IS  WIDE. Yes.")
    assert runs("a b, c d", 3) & runs("x B C d", 3)


@pytest.mark.parametrize("model", CONTESTANTS)
def test_lengths_fit_the_character(model: str) -> None:
    least, most = WORDS[model]
    for name in instructions():
        assert least <= word_count(model, name) <= most, name


def test_verbose_is_longer_than_strong_and_strong_than_terse() -> None:
    middle = {model: median(len(completions()[model, name]) for name in instructions()) for model in CONTESTANTS}
    assert 1.5 * middle["strong"] < middle["verbose"] < 2.5 * middle["strong"]
    assert middle["strong"] > middle["solid"] > middle["terse"]
    for name in instructions():
        assert word_count("verbose", name) > word_count("strong", name) > word_count("terse", name)


def test_the_strengths_name_exactly_the_contestants_in_order() -> None:
    assert tuple(planted()) == CONTESTANTS
    assert sorted(planted().values(), reverse=True) == list(planted().values())
    assert len(set(planted().values())) == len(CONTESTANTS)


def test_the_readme_states_the_planted_strengths() -> None:
    stated = re.findall(r"^\| `(\w+)` \|.*\| (\d+) \|$", read("README.md"), flags=re.MULTILINE)
    assert {model: float(elo) for model, elo in stated} == planted()
    assert "verdicts: simulated" in read("README.md")


def test_the_campaign_names_these_files_and_only_simulated_judges() -> None:
    campaign = tomllib.loads(read("campaign.toml"))
    assert set(campaign["data"]) == {"instructions", "completions", "elo"}
    assert all((files("venire.configs.demo") / name).is_file() for name in campaign["data"].values())
    assert {Origin.of_model(judge["model"]) for judge in campaign["judge"]} == {Origin.SIMULATED}
    trials = len(list(combinations(CONTESTANTS, 2))) * len(instructions()) * 2 * len(campaign["judge"])
    assert campaign["budget"]["calls"] >= 2 * trials, "a judge in two stages makes two calls a trial"


def test_the_campaign_loads_with_its_files_beside_it() -> None:
    with as_file(files("venire.configs.demo")) as folder:
        campaign = load_campaign(folder / "campaign.toml")
        assert (campaign.name, campaign.seed, campaign.plan.phases[0].policy) == ("demo", 7, "all-pairs")
        data = campaign.data
        assert all(path is not None and path.is_file() for path in (data.instructions, data.completions, data.elo))
    assert all(judge.free and judge.protocol == "two-stage" for judge in campaign.judges)


# What right answers hold, and wrong ones miss.


def race_orders() -> list[tuple[str, ...]]:
    return [
        order
        for order in permutations(("Ada", "Ben", "Cleo", "Dev"))
        if order.index("Ben") == order.index("Ada") + 1
        and order.index("Cleo") < order.index("Ada")
        and order.index("Dev") in (1, 2)
    ]


REASONING = {
    "reason-cycling": rf"\b{60 / (30 / 15 + 30 / 30):.0f} km/h",
    "reason-screening": rf"[Aa]bout {100 * (50 * 0.9) / (50 * 0.9 + 9950 * 0.04):.0f}(\.2)?%",
    "reason-discounts": rf"(?s)(?=.*{80 * 0.7 * 0.8:.2f}).*\b{80 * 0.55:.0f}(\.00\b| euros)",
    "reason-race": r"\W+(?:and )?".join(race_orders()[0]),
}


FIGURES = {
    "reason-cycling": ["30", "15", "30", "22.5"],
    "reason-screening": ["1", "200", "90", "4"],
    "reason-discounts": ["80", "30", "20", "45"],
}


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_the_expected_results_belong_to_the_figures_of_the_instruction(name: str) -> None:
    assert re.findall(r"\d+(?:\.\d+)?", instructions()[name]["instruction"]) == FIGURES[name]


def test_the_race_has_one_order() -> None:
    assert race_orders() == [("Cleo", "Dev", "Ada", "Ben")]


@pytest.mark.parametrize("name", sorted(REASONING))
def test_reasoning_is_right_where_it_should_be(name: str) -> None:
    for model in CONTESTANTS:
        found = re.search(REASONING[name], completions()[model, name])
        assert (found is not None) == (model in RIGHT), model


@pytest.mark.parametrize("model", RIGHT)
def test_the_cheaper_shop_is_named(model: str) -> None:
    text = completions()[model, "reason-discounts"]
    assert re.search(r"Shop B is (therefore )?(0\.80 euros )?cheaper|shop B is the cheaper|B is 80 cents cheaper", text)
    assert re.search(r"80 cents|0\.80 euros", text)


WRITING = {
    "write-apology": (r"Dear Ms Okafor", r"(?i)sorry|apolog", r"refund|money back", r"(?i)new (lamp|one)|replacement"),
    "write-kayak-ad": (r"280", r"(?i)wooden|wood\b", r"scratch", r"\bleft", r"\bHollen\b"),
    "write-station-notice": (
        r"(?i)lifts? (number )?2 and (also )?(lift number )?3",
        r"\b4(th)?\b.*?\b19(th)? (of )?May",
        r"Harrow Lane",
        r"Mill Road",
        r"(?i)north exit",
        r"(?i)\bfree\b|nothing at all",
        r"12 min",
    ),
}


@pytest.mark.parametrize("name", sorted(WRITING))
def test_writing_keeps_to_its_instruction_where_it_should(name: str) -> None:
    for model in CONTESTANTS:
        text = completions()[model, name]
        missing = [pattern for pattern in WRITING[name] if not re.search(pattern, text)]
        assert (not missing) == (model in RIGHT), (model, missing)


def stanzas(text: str) -> list[int]:
    return [len(stanza.splitlines()) for stanza in text.split("\n\n")]


def test_the_poem_keeps_its_form_where_it_should() -> None:
    poems = {model: completions()[model, "write-night-bus"] for model in CONTESTANTS}
    for model in ("strong", "solid", "terse"):
        assert stanzas(poems[model]) == [4, 4, 4], model
    assert stanzas(poems["verbose"]) == [1, 1, 4, 4, 4, 1]
    assert stanzas(poems["sloppy"]) != [4, 4, 4]
    for model in RIGHT:
        assert not re.search(r"\b(dark|moon)\b", poems[model], flags=re.IGNORECASE), model
    assert re.search(r"\bdark\b", poems["sloppy"])


def drops_repeats(unique: Callable[..., Any]) -> bool:
    cases: list[list[Any]] = [[], [3, 1, 3, 2, 1], ["b", "a", "b"], [(1, 2), (0,), (1, 2)], [7] * 5]
    expected: list[list[Any]] = [[], [3, 1, 2], ["b", "a"], [(1, 2), (0,)], [7]]
    return [unique(list(case)) for case in cases] == expected


def formats_durations(format_duration: Callable[..., Any]) -> bool:
    cases = {0: "0s", 59: "59s", 60: "1m", 3600: "1h", 3601: "1h 1s", 3725: "1h 2m 5s", 100_000: "27h 46m 40s"}
    return all(format_duration(seconds) == text for seconds, text in cases.items())


def forgets_earlier_calls(add_tag: Callable[..., Any]) -> bool:
    first, second, third = list(add_tag("a")), list(add_tag("b")), list(add_tag("d", ["c"]))
    return (first, second, third) == (["a"], ["b"], ["c", "d"])


PYTHON = {
    "code-unique": ("unique", drops_repeats),
    "code-duration": ("format_duration", formats_durations),
    "code-default": ("add_tag", forgets_earlier_calls),
}


@pytest.mark.parametrize("name", sorted(PYTHON))
def test_python_does_what_was_asked_where_it_should(name: str) -> None:
    wanted, works = PYTHON[name]
    for model in RIGHT:
        assert works(function(model, name, wanted)), model
    assert not works(function("sloppy", name, wanted))
    assert "```" not in completions()["evasive", name]


def test_the_function_with_the_remembered_tags_does_remember() -> None:
    found = re.search(r"```python\n(.*?)```", instructions()["code-default"]["instruction"], flags=re.DOTALL)
    assert found is not None
    namespace: dict[str, Any] = {}
    exec(found[1], namespace)
    assert not forgets_earlier_calls(namespace["add_tag"])


def test_the_list_passed_in_is_extended_in_place_as_strong_says() -> None:
    tags = ["c"]
    function("strong", "code-default", "add_tag")("d", tags)
    assert tags == ["c", "d"]


def without_orders(query: str) -> list[str]:
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(
            """
            CREATE TABLE customers (id INTEGER, name TEXT);
            CREATE TABLE orders (id INTEGER, customer_id INTEGER, total REAL);
            INSERT INTO customers VALUES (1, 'Zoe'), (2, 'Abel'), (3, 'Mina'), (4, 'Bo'), (5, 'Abel');
            INSERT INTO orders VALUES (1, 2, 9.5), (2, 2, 0), (3, 3, 12), (4, NULL, 3);
            """
        )
        return [name for (name,) in connection.execute(query)]
    finally:
        connection.close()


def test_the_query_finds_customers_without_orders_where_it_should() -> None:
    for model in RIGHT:
        assert without_orders(code(model, "code-sql", "sql")) == ["Abel", "Bo", "Zoe"], model
    assert without_orders(code("sloppy", "code-sql", "sql")) != ["Abel", "Bo", "Zoe"]
    assert "```" not in completions()["evasive", "code-sql"]
