"""Prompts and answers of other tools come into a store whole: every turn, every sample, or nothing at all."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire.arena.errors import InputError
from venire.arena.records import Completion, Instruction
from venire.storage.store.opening import open_store
from venire.storage.store.store import Store
from venire.storage.transfer.formats import FORMATS
from venire.storage.transfer.formats.texts import Skipped, joined, split
from venire.storage.transfer.importing import add, add_texts, answer_key


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "s.duckdb") as opened:
        yield opened


def written(path: Path, rows: Sequence[dict[str, Any]] | dict[str, Any]) -> Path:
    lines = path.suffix == ".jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) if lines else json.dumps(rows), encoding="utf-8")
    return path


def said(*texts: str) -> list[dict[str, str]]:
    """Messages of a user and an assistant in turn."""
    return [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]


def output(text: str | None, model: str = "m", **more: Any) -> dict[str, Any]:
    return {"dataset": "koala", "instruction": "Say hi.", "output": text, "generator": model, **more}


def test_alpaca_outputs_of_two_models_share_their_instruction(store: Store, tmp_path: Path) -> None:
    paths = [written(tmp_path / f"{m}.json", [output(f"hi of {m}", m)]) for m in "ab"]
    added = add_texts(store, FORMATS["alpaca-eval"].read, paths)
    assert (added.instructions, added.completions, added.known) == (1, 2, 0)
    again = add_texts(store, FORMATS["alpaca-eval"].read, paths)
    assert (again.instructions, again.completions, again.known) == (0, 0, 3)


def test_an_alpaca_input_belongs_to_the_instruction_and_an_empty_output_is_an_answer(tmp_path: Path) -> None:
    path = written(tmp_path / "m.json", [output("", input="Bob")])
    instruction, completion = FORMATS["alpaca-eval"].read([path])
    assert isinstance(instruction, Instruction)
    assert (instruction.turns, instruction.category) == (("Say hi.\n\nBob",), "koala")
    assert completion == Completion("m", instruction.id, "")


def test_an_instruction_that_is_known_by_its_text_keeps_its_id(store: Store, tmp_path: Path) -> None:
    add(store, [Instruction("7", ("Say hi.",))])
    added = add_texts(store, FORMATS["alpaca-eval"].read, [written(tmp_path / "m.json", [output("hi")])])
    assert (added.instructions, added.completions) == (0, 1)
    assert list(answer_key(store)) == [("7", ("Say hi.",), "m", "hi")]


def test_a_null_output_is_refused_with_its_row_and_nothing_is_imported(store: Store, tmp_path: Path) -> None:
    path = written(tmp_path / "m.json", [output("hi"), output(None, "n")])
    with pytest.raises(InputError, match=r'm\.json: row 2: "output" is missing or null'):
        add_texts(store, FORMATS["alpaca-eval"].read, [path])
    assert store.rows("instruction_keys") == []
    assert list(answer_key(store)) == []


def test_answers_without_their_questions_are_refused(store: Store, tmp_path: Path) -> None:
    answer = {"question_id": 81, "model_id": "m", "choices": [{"index": 0, "turns": ["x", "y"]}]}
    with pytest.raises(InputError, match=r"answers instruction '81', which is not in the store"):
        add_texts(store, FORMATS["mt-bench"].read, [written(tmp_path / "m.jsonl", [answer])])


def test_both_turns_of_mt_bench_are_kept_in_whatever_order_the_files_come(store: Store, tmp_path: Path) -> None:
    question = {"question_id": 81, "category": "math", "turns": ["1+1?", "+1?"], "reference": ["2", "3"]}
    answer = {"question_id": 81, "model_id": "m", "choices": [{"index": 0, "turns": ["Two.\n\n", "Three."]}]}
    paths = [written(tmp_path / "m.jsonl", [answer]), written(tmp_path / "question.jsonl", [question])]
    add_texts(store, FORMATS["mt-bench"].read, paths)
    ((name, turns, model, text),) = answer_key(store)
    assert (name, turns, model) == ("81", ("1+1?", "+1?"), "m")
    assert split(text, 2) == ("Two.\n\n", "Three.")
    found = [one for one in FORMATS["mt-bench"].read(paths) if isinstance(one, Instruction)]
    assert (found[0].reference, found[0].category) == ("2\n\n3", "math")


def test_an_answer_whose_call_failed_is_left_out_and_told(store: Store, tmp_path: Path) -> None:
    question = {"question_id": 81, "turns": ["1+1?", "+1?"]}
    answer = {"question_id": 81, "model_id": "m", "choices": [{"index": 0, "turns": ["2", "$ERROR$"]}]}
    path = written(tmp_path / "all.jsonl", [question, answer])
    added = add_texts(store, FORMATS["mt-bench"].read, [path])
    assert (added.instructions, added.completions) == (1, 0)
    assert added.skipped == (Skipped(path, 2, "the answer of m is $ERROR$"),)


def test_several_choices_are_samples(tmp_path: Path) -> None:
    choices = [{"index": n, "turns": [{"content": text}]} for n, text in enumerate(("x", "y"))]
    path = written(tmp_path / "m.jsonl", [{"question_id": "q", "model_id": "m", "choices": choices}])
    assert list(FORMATS["arena-hard"].read([path])) == [Completion("m", "q", "x", 1), Completion("m", "q", "y", 2)]


@pytest.mark.parametrize(
    "question",
    [{"uid": "u", "category": "hard", "prompt": "Why?"}, {"question_id": "u", "turns": [{"content": "Why?"}]}],
)
def test_arena_hard_questions_of_both_versions_are_read(tmp_path: Path, question: dict[str, Any]) -> None:
    (found,) = FORMATS["arena-hard"].read([written(tmp_path / "question.jsonl", [question])])
    assert isinstance(found, Instruction)
    assert (found.id, found.turns) == ("u", ("Why?",))


@pytest.mark.parametrize("content", ["Because.", {"answer": "Because."}])
def test_arena_hard_answers_of_both_kinds_of_message_are_read(tmp_path: Path, content: Any) -> None:
    told = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": content}]
    row = {"uid": "u", "ans_id": "x", "model": "m", "messages": told, "tstamp": 1.5, "metadata": {"token_len": 2}}
    assert list(FORMATS["arena-hard"].read([written(tmp_path / "m.jsonl", [row])])) == [
        Completion("m", "u", "Because.")
    ]


def test_what_is_neither_question_nor_answer_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "x.jsonl", [{"uid": "u", "model": "m", "games": []}])
    with pytest.raises(InputError, match=r"x\.jsonl: row 1: neither a question"):
        list(FORMATS["arena-hard"].read([path]))
    with pytest.raises(InputError, match=r"none of the columns instruction, .*columns found: uid, model, games"):
        list(FORMATS["alpaca-eval"].read([path]))


def test_arena_conversations_keep_every_turn_and_number_answers_to_one_prompt(tmp_path: Path) -> None:
    blocks = [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}, *said("", "Hello")[1:]]
    rows = [
        {"model_a": "a", "model_b": "b", "conversation_a": said("Hi", "Ho"), "conversation_b": blocks},
        {"model_a": "a", "model_b": "c", "conversation_a": said("Hi", "Yo"), "conversation_b": said("Hi", "Hm")},
        {"model_a": "a", "model_b": "b", "conversation_a": said(*"qrst"), "conversation_b": said(*"qusw")},
    ]
    found = list(FORMATS["chatbot-arena"].read([written(tmp_path / "b.json", rows)]))
    completions = [one for one in found if isinstance(one, Completion)]
    assert [(one.model, one.text, one.sample) for one in completions[:4]] == [
        ("a", "Ho", 1),
        ("b", "Hello", 1),
        ("a", "Yo", 2),
        ("c", "Hm", 1),
    ]
    assert split(completions[4].text, 2) == ("r", "t")
    assert [one.turns for one in found if isinstance(one, Instruction)][-1] == ("q", "s")


def test_one_answer_in_two_battles_is_one_answer(tmp_path: Path) -> None:
    row = {"model_a": "a", "model_b": "b", "conversation_a": said("Hi", "Ho"), "conversation_b": said("Hi", "Yo")}
    found = FORMATS["chatbot-arena"].read([written(tmp_path / "b.json", [row, row])])
    assert [(one.model, one.sample) for one in found if isinstance(one, Completion)] == [("a", 1), ("b", 1)]


def test_prompts_written_as_lists_in_a_table_are_read(tmp_path: Path) -> None:
    path = tmp_path / "train.csv"
    path.write_text(
        'id,model_a,model_b,prompt,response_a,response_b\n1,a,b,"[""Hi"",""And?""]","[""x"",""y""]","[""v"",""w""]"\n'
    )
    instruction, completion, *_ = FORMATS["chatbot-arena"].read([path])
    assert isinstance(instruction, Instruction)
    assert isinstance(completion, Completion)
    assert (instruction.turns, split(completion.text, 2)) == (("Hi", "And?"), ("x", "y"))


def test_a_picture_is_refused(tmp_path: Path) -> None:
    shown = [{"role": "user", "content": [{"type": "image", "image": "x"}]}, *said("", "Hello")[1:]]
    row = {"model_a": "a", "model_b": "b", "conversation_a": shown, "conversation_b": shown}
    with pytest.raises(InputError, match=r"row 1: .*only texts can be judged"):
        list(FORMATS["chatbot-arena"].read([written(tmp_path / "b.json", [row])]))


def test_a_comparator_report_brings_its_texts(tmp_path: Path) -> None:
    chunks = [{"type": "text", "data": "x"}, {"type": "text", "data": "y"}]
    example = {"input_text": "q", "tags": ["math"], "output_text_a": chunks, "output_text_b": "z", "score": 1}
    report = {"metadata": {}, "models": [{"name": "a"}, {"name": "b"}], "examples": [example]}
    instruction, first, second = FORMATS["llm-comparator"].read([written(tmp_path / "r.json", report)])
    assert isinstance(instruction, Instruction)
    assert (instruction.turns, instruction.category) == (("q",), "math")
    assert (first, second) == (Completion("a", instruction.id, "xy"), Completion("b", instruction.id, "z"))


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": "q", "chosen": "x", "rejected": "y"},
        {"prompt": said("q"), "chosen": said("", "x")[1:], "rejected": said("", "y")[1:]},
        {"chosen": said("q", "x"), "rejected": said("q", "y")},
        {"prompt": "q", "chosen": said("q", "x"), "rejected": said("q", "y")},
    ],
)
def test_preference_pairs_are_read_as_texts_and_as_messages(tmp_path: Path, row: dict[str, Any]) -> None:
    instruction, chosen, rejected = FORMATS["preferences"].read([written(tmp_path / "p.jsonl", [row])])
    assert isinstance(instruction, Instruction)
    assert instruction.turns == ("q",)
    assert (chosen, rejected) == (
        Completion("chosen", instruction.id, "x"),
        Completion("rejected", instruction.id, "y"),
    )


def test_answers_after_different_prompts_are_refused(tmp_path: Path) -> None:
    row = {"chosen": said("q", "x"), "rejected": said("p", "y")}
    with pytest.raises(InputError, match="row 1: the answers follow different prompts"):
        list(FORMATS["preferences"].read([written(tmp_path / "p.jsonl", [row])]))


def test_earlier_answers_within_a_prompt_keep_their_role(tmp_path: Path) -> None:
    row = {"prompt": said("q", "a", "r"), "chosen": said("", "x")[1:], "rejected": said("", "y")[1:]}
    instruction, *_ = FORMATS["preferences"].read([written(tmp_path / "p.jsonl", [row])])
    assert isinstance(instruction, Instruction)
    assert instruction.turns == ("q", "[assistant]\na", "r")


@given(turns=st.lists(st.text(st.sampled_from("ab[]turn 12\n"), max_size=12), min_size=1, max_size=3))
def test_turns_that_were_joined_come_apart_again_or_are_refused(turns: list[str]) -> None:
    text = joined(turns)
    assert text is None or split(text, len(turns)) == tuple(turns)


def test_real_outputs_of_alpaca_eval_come_in_whole(shared_data: Path, store: Store, tmp_path: Path) -> None:
    path, source = tmp_path / "outputs.json", shared_data / "alpaca_eval"
    with duckdb.connect() as connection:
        connection.execute(
            f"copy (select source dataset, instruction, completion as output, model as generator from "
            f"'{source}/completions.parquet' join '{source}/instructions.parquet' i using (instruction_id) "
            f"where model in ('alpaca-7b', 'llama-2-70b-chat-hf')) to '{path}' (array true)"
        )
    added = add_texts(store, FORMATS["alpaca-eval"].read, [path])
    assert (added.instructions, added.completions, added.skipped) == (805, 1609, ())
