"""Verdicts that other tools wrote become battles: the winner, the order shown, what was not read, nothing guessed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from venire.arena.errors import InputError
from venire.ratings.data.judgments import merge_orders
from venire.storage.transfer.formats import TABLE, guess, read_verdicts, with_dialects
from venire.storage.transfer.formats.judged import ImportedVerdicts

Named = tuple[str, str, int, int]


def written(path: Path, rows: Sequence[dict[str, Any]] | dict[str, Any]) -> Path:
    """The rows as JSON, or as JSON Lines by the file's ending."""
    lines = path.suffix == ".jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) if lines else json.dumps(rows), encoding="utf-8")
    return path


def judged(path: Path, form: str | None = None, **options: Any) -> ImportedVerdicts:
    found = read_verdicts([path], form, **options)
    assert found is not None
    return found


def named(found: ImportedVerdicts) -> list[Named]:
    """Model A, model B, label and status of each verdict."""
    of = found.battles
    rows = zip(of.model_a, of.model_b, of.label.tolist(), of.status.tolist(), strict=True)
    return [(of.models[a], of.models[b], label, status) for a, b, label, status in rows]


def alpaca(preference: Any, **more: Any) -> dict[str, Any]:
    row = {"instruction": "Say hi.", "output_1": "hi", "generator_1": "base", "output_2": "ho", "generator_2": "m"}
    return {**row, "dataset": "koala", "annotator": "j", "preference": preference, "raw_completion": "m", **more}


def hard(*games: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    row = {"uid": "u1", "category": "hard_prompt", "judge": "gpt-4.1", "model": "m", "baseline": "o3-mini"}
    return {**row, "games": list(games), **more}


def game(score: str | None) -> dict[str, Any]:
    return {"score": score, "judgment": {"answer": f"[[{score}]]"}, "prompt": [{"role": "user", "content": "?"}]}


def pair(first: str, second: str, **more: Any) -> dict[str, Any]:
    row = {"question_id": 81, "model_1": "a", "model_2": "b", "g1_winner": first, "g2_winner": second}
    row |= {"judge": ["gpt-4", "pair-v2"], "g1_user_prompt": "?", "g1_judgment": "[[A]]", "g2_user_prompt": "?"}
    return {**row, "g2_judgment": "[[B]]", "turn": 1, "tstamp": 1687222.5, **more}


def single(model: str, score: float, **more: Any) -> dict[str, Any]:
    row = {"question_id": 81, "model": model, "judge": ["gpt-4", "single-v1"], "user_prompt": "?", "judgment": "!"}
    return {**row, "score": score, "turn": 1, "tstamp": 1687222.5, **more}


def battle(winner: str | None, number: int = 1, **more: Any) -> dict[str, Any]:
    said = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
    row = {"question_id": f"q{number}", "model_a": "a", "model_b": "b", "winner": winner, "judge": "arena_user_1"}
    return {**row, "conversation_a": said, "conversation_b": said, "turn": 1, "anony": True, "tstamp": 1.5, **more}


def report(*examples: dict[str, Any]) -> dict[str, Any]:
    about = {"source_path": "x", "custom_fields_schema": []}
    return {"metadata": about, "models": [{"name": "a"}, {"name": "b"}], "examples": list(examples)}


def example(score: float | None, *ratings: tuple[float | None, bool]) -> dict[str, Any]:
    scores = [{"score": one, "is_flipped": flipped, "rationale": "so"} for one, flipped in ratings]
    row = {"input_text": "q", "tags": [], "output_text_a": "x", "output_text_b": "y", "score": score}
    return {**row, "individual_rater_scores": scores, "custom_fields": {}}


def test_an_alpaca_preference_is_read_at_its_side_and_null_is_no_tie(tmp_path: Path) -> None:
    path = written(tmp_path / "annotations.json", [alpaca(p) for p in (1, 2.0, 1.5, 0, None, 1.02, 1.98)])
    found = judged(path)
    assert (found.format, found.guessed, found.battles.judges) == ("alpaca-eval", True, ("j",))
    assert named(found) == [("base", "m", label, 0) for label in (1, -1, 0, 0)] + [
        ("base", "m", 0, 1),
        ("base", "m", 1, 0),
        ("base", "m", -1, 0),
    ]
    assert np.allclose(found.score, [1, -1, 0, np.nan, np.nan, 0.96, -0.96], equal_nan=True)


@pytest.mark.parametrize("preference", [3, 0.5, -1, "2nd"])
def test_another_alpaca_preference_is_refused_with_file_row_and_field(tmp_path: Path, preference: Any) -> None:
    path = written(tmp_path / "a.json", [alpaca(1), alpaca(preference)])
    with pytest.raises(InputError, match=r'a\.json: row 2: "preference" is ".*accepted: a number from 1'):
        judged(path)


@pytest.mark.parametrize(
    ("score", "first"),
    [("A>>B", 1), ("A>B", 1), ("A=B", 0), ("B=A", 0), ("B>A", -1), ("B>>A", -1), ("A<B", -1), ("B<<A", 1)],
)
def test_an_arena_hard_score_is_of_the_baseline_first_then_of_the_model(tmp_path: Path, score: str, first: int) -> None:
    found = judged(written(tmp_path / "m.jsonl", [hard(game(score), game(score))]))
    assert named(found) == [("m", "o3-mini", -first, 0), ("m", "o3-mini", first, 0)]
    assert (found.battles.swapped.tolist(), found.battles.ordered) == ([True, False], True)
    assert merge_orders(found.battles).flips == (1 if first else 0)


def test_an_arena_hard_game_without_a_score_is_not_read(tmp_path: Path) -> None:
    found = judged(written(tmp_path / "m.jsonl", [hard(game(None), None), hard(game("A>B"), game("B>A"))]))
    assert found.battles.status.tolist() == [1, 1, 0, 0]
    assert merge_orders(found.battles).ties == 0


def test_an_unknown_arena_hard_score_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r'row 1: "games" is "A>C"; accepted: A>>B'):
        judged(written(tmp_path / "m.jsonl", [hard(game("A>C"), game("A>B"))]))


@pytest.mark.parametrize("games", ["A>B", {"score": "A>B"}, 3])
def test_games_that_are_no_list_are_refused_with_their_row(tmp_path: Path, games: Any) -> None:
    rows = [hard(game("A>B"), game("A>B")), {**hard(), "games": games}]
    with pytest.raises(InputError, match=r'm\.jsonl: row 2: "games" is no list'):
        judged(written(tmp_path / "m.jsonl", rows))


def test_arena_hard_judgments_of_before_the_baseline_was_named_ask_for_it(tmp_path: Path) -> None:
    old = {"question_id": "u1", "model": "m", "judge": "gpt-4", "games": [game("B>>A"), game("A>B")]}
    path = written(tmp_path / "m.jsonl", [old])
    with pytest.raises(InputError, match='baseline="NAME"'):
        judged(path)
    assert named(judged(path, baseline="gpt-4-0314")) == [("m", "gpt-4-0314", 1, 0)] * 2


def test_a_baseline_is_refused_where_the_file_names_both_models(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="leave baseline out"):
        judged(written(tmp_path / "a.json", [alpaca(1)]), baseline="x")


def test_several_files_of_one_format_are_one_table_and_a_row_is_named_with_its_file(tmp_path: Path) -> None:
    one = written(tmp_path / "m.jsonl", [hard(game("A>B"), game("A>B"))])
    two = written(tmp_path / "n.jsonl", [hard(game("B>A"), game("B>A"), model="n")])
    found = read_verdicts([one, two], None)
    assert found is not None
    assert found.battles.models == ("m", "n", "o3-mini")
    bad = written(tmp_path / "bad.jsonl", [hard(game("?"), None)])
    with pytest.raises(InputError, match=r"bad\.jsonl: row 1"):
        read_verdicts([one, bad], None)


def test_both_games_of_an_mt_bench_pair_are_kept_and_an_error_is_no_tie(tmp_path: Path) -> None:
    rows = [pair("model_1", "model_2"), pair("tie", "error", turn=2)]
    found = judged(written(tmp_path / "gpt-4_pair.jsonl", rows))
    assert named(found) == [("a", "b", 1, 0), ("a", "b", -1, 0), ("a", "b", 0, 0), ("a", "b", 0, 1)]
    assert found.battles.swapped.tolist() == [False, True, False, True]
    assert found.battles.repeat.tolist() == [1, 1, 2, 2]
    assert (found.battles.judges, found.battles.instructions) == (("gpt-4",), ("81",))


@pytest.mark.parametrize("judge", ["gpt-4", "[gpt-4", ["gpt-4", "pair-v2"]])
def test_a_judge_of_mt_bench_may_be_a_name_or_a_list_of_name_and_prompt(tmp_path: Path, judge: Any) -> None:
    found = judged(written(tmp_path / "pair.jsonl", [pair("tie", "tie", judge=judge)]))
    assert found.battles.judges == (judge if isinstance(judge, str) else "gpt-4",)


def test_mt_bench_grades_become_battles_and_a_failed_grade_is_no_tie(tmp_path: Path) -> None:
    rows = [single("a", 7), single("b", 7.05), single("c", -1), single("d", 3), single("d", 9)]
    found = judged(written(tmp_path / "gpt-4_single.jsonl", rows))
    verdicts = {(a, b): (label, status) for a, b, label, status in named(found)}
    assert verdicts == {
        ("a", "b"): (0, 0),
        ("a", "c"): (0, 1),
        ("b", "c"): (0, 1),
        ("a", "d"): (-1, 0),
        ("b", "d"): (-1, 0),
        ("c", "d"): (0, 1),
    }
    assert "made from grades" in found.note
    assert np.array_equal(np.isnan(found.score), found.battles.status == 1)


def test_votes_of_mt_bench_keep_an_inconsistent_tie_as_a_tie(tmp_path: Path) -> None:
    rows = [battle(winner) for winner in ("model_a", "tie (inconsistent)", "tie", "model_b")]
    for row in rows:
        del row["anony"], row["tstamp"]
    found = judged(written(tmp_path / "human.json", rows))
    assert (found.format, found.battles.label.tolist()) == ("mt-bench", [1, 0, 0, -1])
    assert not found.both_bad.any()


@pytest.mark.parametrize("word", ["tie (bothbad)", "both_bad"])
def test_both_bad_is_kept_apart_and_fitted_as_a_tie_or_not_at_all(tmp_path: Path, word: str) -> None:
    rows = [battle(winner, n) for n, winner in enumerate(("model_a", "tie", word, None))]
    found = judged(written(tmp_path / "battles.json", rows))
    assert found.format == "chatbot-arena"
    assert found.both_bad.tolist() == [False, False, True, False]
    assert found.fitted().label.tolist() == [1, 0, 0, 0]
    assert found.fitted("drop").instruction.tolist() == [0, 1, 3]
    assert (found.reading().both_bad, found.reading().not_read) == (1, 1)
    with pytest.raises(InputError, match="choose tie or drop"):
        found.fitted("loss")  # type: ignore[arg-type]


def test_a_bare_table_with_both_bad_in_it_is_taken_for_arena_battles(tmp_path: Path) -> None:
    path = tmp_path / "b.csv"
    path.write_text("model_a,model_b,winner\na,b,tie\na,b,tie (bothbad)\n", encoding="utf-8")
    assert guess(path) == "chatbot-arena"


def test_a_table_of_our_own_columns_stays_one(tmp_path: Path) -> None:
    path = tmp_path / "b.csv"
    path.write_text("model_a,model_b,winner,judge,instruction_id\na,b,tie,j,1\n", encoding="utf-8")
    assert guess(path) == TABLE
    assert read_verdicts([path], None) is None


def test_flags_of_the_three_outcomes_are_read_and_two_at_once_refused(tmp_path: Path) -> None:
    head = "id,model_a,model_b,prompt,response_a,response_b,winner_model_a,winner_model_b,winner_tie\n"
    path = tmp_path / "train.csv"
    path.write_text(f"{head}1,a,b,p,x,y,1,0,0\n2,a,b,p,x,y,0,1,0\n3,a,b,p,x,y,0,0,1\n4,a,b,p,x,y,0,0,0\n")
    assert named(judged(path)) == [("a", "b", label, 0) for label in (1, -1, 0)] + [("a", "b", 0, 1)]
    path.write_text(f"{head}1,a,b,p,x,y,1,1,0\n", encoding="utf-8")
    with pytest.raises(InputError, match='row 1: "winner" is "1, 1, 0"'):
        judged(path)


def test_a_named_winner_must_be_one_of_the_two(tmp_path: Path) -> None:
    row = {"model_a_name": "a", "model_b_name": "b", "chosen_model_name": "b", "both_equal": False, "id": 1}
    equal = {**row, "chosen_model_name": None, "both_equal": True}
    assert named(judged(written(tmp_path / "v.json", [row, equal]))) == [("a", "b", -1, 0), ("a", "b", 0, 0)]
    with pytest.raises(InputError, match='is "c"'):
        judged(written(tmp_path / "v.json", [row, {**row, "chosen_model_name": "c"}]))


def test_a_model_that_meets_itself_is_left_out_and_counted(tmp_path: Path) -> None:
    found = judged(written(tmp_path / "b.json", [battle("tie"), battle("model_a", model_b="a")]))
    assert (len(found.battles.label), found.itself, found.reading().itself) == (1, 1, 1)


def test_an_empty_model_is_refused_with_its_row(tmp_path: Path) -> None:
    with pytest.raises(InputError, match='row 2: "model_b" is empty'):
        judged(written(tmp_path / "b.json", [battle("tie"), battle("tie", model_b=None)]))


def test_every_rating_of_a_comparator_report_is_a_verdict_in_its_order(tmp_path: Path) -> None:
    examples = [example(0.25, (1.0, False), (-0.5, True)), example(0.0, (0.0, False), (None, True))]
    found = judged(written(tmp_path / "r.json", report(*examples)))
    assert named(found) == [("a", "b", 1, 0), ("a", "b", -1, 0), ("a", "b", 0, 0), ("a", "b", 0, 1)]
    assert (found.battles.swapped.tolist(), found.battles.ordered) == ([False, True, False, True], True)


def test_an_example_without_ratings_counts_by_its_score(tmp_path: Path) -> None:
    found = judged(written(tmp_path / "r.json", report(example(-0.5), example(None), example(0))))
    assert named(found) == [("a", "b", -1, 0), ("a", "b", 0, 1), ("a", "b", 0, 0)]
    assert not found.battles.ordered


@pytest.mark.slow
def test_a_report_longer_than_one_value_may_be_for_duckdb_is_read(tmp_path: Path) -> None:
    long = {**example(1.0), "output_text_a": "word " * 3_400_000}
    assert named(judged(written(tmp_path / "r.json", report(long)), "llm-comparator")) == [("a", "b", 1, 0)]


def test_am_elo_reads_words_and_its_numbers(tmp_path: Path) -> None:
    path = tmp_path / "Chatbot.csv"
    path.write_text("judge,model_a,model_b,winner\nj,a,b,1\nj,a,b,0\nj,a,b,0.5\nj,a,b,tie (bothbad)\nk,a,b,model_b\n")
    found = judged(path, "am-elo")
    assert (found.battles.label.tolist(), found.battles.judges) == ([1, -1, 0, 0, -1], ("j", "k"))
    assert found.both_bad.tolist() == [False, False, False, True, False]


def test_a_soft_elo_preference_counts_zero_for_a_and_scores_written_by_python_are_read(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    head = "model_a,model_b,human_pref,judge_pref,scores_a,scores_b\n"
    scores = '"{\'clarity\': 3.0, \'depth\': 5}","{""clarity"": 4, ""depth"": 5, ""tone"": 9}"'
    path.write_text(f"{head}a,b,1,0,{scores}\na,b,0,1.0,,\na,b,0,0.5,,\na,b,0,,,\n", encoding="utf-8")
    found = judged(path)
    assert named(found) == [("a", "b", 1, 0), ("a", "b", -1, 0), ("a", "b", 0, 0), ("a", "b", 0, 1)]
    assert found.score[0] == -0.5
    assert judged(path, "soft-elo", mapping={"winner": "human_pref"}).battles.label.tolist() == [-1, 1, 1, 1]


def test_the_chosen_answer_of_a_preference_pair_won(tmp_path: Path) -> None:
    row = {"prompt": "q", "chosen": "x", "rejected": "y", "chosen_model": "b", "rejected_model": "a"}
    assert named(judged(written(tmp_path / "p.jsonl", [row]))) == [("b", "a", 1, 0)]


def test_a_file_of_another_format_is_refused_with_what_is_missing(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", [alpaca(1)])
    with pytest.raises(InputError, match=r'a\.json: not mt-bench: no column ".*columns found: instruction, output_1'):
        judged(path, "mt-bench")
    with pytest.raises(InputError, match="no format 'alpaca'; did you mean 'alpaca-eval'"):
        judged(path, "alpaca")


def test_a_mapping_to_a_column_of_no_use_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", [alpaca(1)])
    with pytest.raises(InputError, match='mapping names "vote", which is no column of alpaca-eval'):
        judged(path, "alpaca-eval", mapping={"vote": "preference"})


def test_every_format_tells_its_own_dialects_apart() -> None:
    assert all(dialect.format == name for name, dialects in with_dialects().items() for dialect in dialects)


def test_real_alpaca_preferences_give_the_published_win_rate(shared_data: Path, tmp_path: Path) -> None:
    path = tmp_path / "annotations.json"
    source = shared_data / "alpaca_eval"
    with duckdb.connect() as connection:
        connection.execute(
            f"copy (select i.instruction, 'gpt4_1106_preview' generator_1, model generator_2, judge annotator, "
            f"1 + prob_model_beats_baseline preference, raw_output raw_completion from '{source}/judgments.parquet' j "
            f"join '{source}/instructions.parquet' i using (instruction_id)) to '{path}' (array true)"
        )
    found = judged(path)
    of = found.battles
    assert (len(of.label), len(of.instructions), int(of.status.sum())) == (16_100, 805, 0)
    mine = (of.model_b == of.models.index("alpaca-7b")) | (of.model_a == of.models.index("alpaca-7b"))
    assert np.mean((1 - found.score[mine]) / 2) * 100 == pytest.approx(2.591451, abs=1e-6)


def test_real_verdicts_in_both_orders_keep_their_flips_as_mt_bench_pairs(shared_data: Path, tmp_path: Path) -> None:
    path, source = tmp_path / "gpt-4_pair.jsonl", shared_data / "vicuna80_peers/judgments.parquet"
    said = "case {}.verdict when 'first' then '{}' when 'second' then '{}' else 'tie' end"
    with duckdb.connect() as connection:
        connection.execute(f"create view j as from '{source}' where judge = 'gpt-4' and repeat = 1")
        connection.execute(
            f"copy (select x.instruction_id question_id, x.first model_1, x.second model_2, "
            f"{said.format('x', 'model_1', 'model_2')} g1_winner, {said.format('y', 'model_2', 'model_1')} g2_winner, "
            "['gpt-4', 'pair-v2'] judge, 1 turn from j x join j y on x.instruction_id = y.instruction_id "
            f"and x.first = y.second and x.second = y.first where x.first < x.second) to '{path}' (format json)"
        )
    merged = merge_orders(judged(path).battles)
    assert (len(merged), merged.flips) == (800, 115)


def test_real_soft_elo_battles_keep_their_counts_and_scores(shared_data: Path, tmp_path: Path) -> None:
    source, path = shared_data / "softelo_sample/battles.parquet", tmp_path / "sample_annotations.csv"
    number = "case {} when 'model_a' then 0 when 'model_b' then 1 else 0.5 end"
    names = ("adherence", "helpfulness", "factuality", "completeness", "clarity", "fluency")
    sides = [f"to_json({{{', '.join(f'{name}: {name}_{s}' for name in names)}}}) scores_{s}" for s in "ab"]
    with duckdb.connect() as connection:
        connection.execute(
            f"copy (select battle_id, model_a, model_b, {number.format('human_winner')} human_pref, "
            f"{number.format('judge_winner')} judge_pref, {', '.join(sides)} from '{source}') to '{path}'"
        )
    words, numbers = judged(source), judged(path)
    assert Counter(numbers.battles.label.tolist()) == {1: 380, -1: 368, 0: 252}
    assert np.array_equal(words.battles.label, numbers.battles.label)
    assert np.allclose(words.score, numbers.score)


def test_arena_battles_of_several_row_groups_are_read_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "b.parquet"
    with duckdb.connect() as connection:
        connection.sql(
            "select 'q' || range as question_id, 'a' || hash(range) % 99 as model_a, 'b' || hash(range + 7) % 99 as "
            "model_b, ['model_a', 'tie', 'tie (bothbad)'][1 + (hash(range + 9) % 3)::int] as winner, 'j' as judge, "
            "range + 0.5 as tstamp from range(12000)"
        ).write_parquet(str(path), row_group_size=2048)
    found = judged(path)
    assert len(found.both_bad) == 12_000
    assert [found.battles.instructions[code] for code in found.battles.instruction[:3]] == ["q0", "q1", "q2"]
    assert found.battles.instructions[found.battles.instruction[-1]] == "q11999"
