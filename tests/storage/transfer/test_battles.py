"""A table of battles becomes arrays, row by row as it stands there, or a row is named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.storage.transfer.formats.battles import read_battle_table, read_battles
from venire.storage.transfer.formats.columns import UNNAMED_JUDGE

HEADER = "model_a,model_b,winner"


def battles(path: Path, text: str, mapping: Mapping[str, str] = {}) -> Battles:
    path.write_text(text, encoding="utf-8")
    return read_battles(path, mapping)


def named(found: Battles) -> list[tuple[str, str, int, int]]:
    """Model A, model B, label and status of each row."""
    rows = zip(found.model_a, found.model_b, found.label.tolist(), found.status.tolist(), strict=True)
    return [(found.models[a], found.models[b], label, status) for a, b, label, status in rows]


def test_every_winner_has_its_label_and_no_winner_is_unreadable(tmp_path: Path) -> None:
    found = battles(tmp_path / "b.csv", f"{HEADER}\nz,a,model_a\na,z,model_b\nm,a,tie\na,m,\n")
    assert found.models == ("a", "m", "z")
    assert named(found) == [("z", "a", 1, 0), ("a", "z", -1, 0), ("m", "a", 0, 0), ("a", "m", 0, 1)]


def test_what_the_table_does_not_know_is_said(tmp_path: Path) -> None:
    found = battles(tmp_path / "b.csv", f"{HEADER}\nz,a,model_a\na,z,tie\n")
    assert (found.judges, found.instructions, found.ordered) == ((UNNAMED_JUDGE,), (), False)
    assert (found.judge.tolist(), found.instruction.tolist()) == ([0, 0], [-1, -1])
    assert (found.repeat.tolist(), found.swapped.tolist()) == ([1, 1], [False, False])


def test_arrays_have_the_types_of_the_record(tmp_path: Path) -> None:
    found = battles(tmp_path / "b.csv", f"{HEADER},judge,instruction_id\nz,a,model_a,j,i\n")
    for name in ("model_a", "model_b", "judge", "instruction", "repeat"):
        assert getattr(found, name).dtype == np.int32
    assert (found.status.dtype, found.label.dtype, found.swapped.dtype) == (np.int8, np.int8, np.bool_)


def test_judges_and_instructions_are_sorted_by_name(tmp_path: Path) -> None:
    text = f"{HEADER},judge,instruction_id\nz,a,tie,y,10\nz,a,tie,Z,9\nz,a,tie,é,10\n"
    found = battles(tmp_path / "b.csv", text)
    assert found.judges == ("Z", "y", "é")
    assert found.instructions == ("10", "9")
    assert found.judge.tolist() == [1, 0, 2]
    assert found.instruction.tolist() == [0, 1, 0]


names = st.text("ab_é猫'\" ", min_size=1, max_size=3).map(str.strip).filter(bool)


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        yield opened


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(names, names, st.sampled_from([1, 0, -1, None])), min_size=1, max_size=30))
def test_codes_lead_back_to_the_rows(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, rows: list[tuple[str, str, int | None]]
) -> None:
    rows = [row for row in rows if row[0] != row[1]] or [("a", "b", 1)]
    words = {1: "model_a", 0: "tie", -1: "model_b", None: None}
    path = tmp_path / "b.parquet"
    connection.execute("create or replace table t (model_a varchar, model_b varchar, winner varchar)")
    connection.executemany("insert into t values (?, ?, ?)", [(a, b, words[label]) for a, b, label in rows])
    connection.table("t").write_parquet(str(path))
    found = read_battles(path)
    assert named(found) == [(a, b, label or 0, int(label is None)) for a, b, label in rows]
    assert list(found.models) == sorted({name for a, b, _ in rows for name in (a, b)})


@pytest.mark.parametrize("winner", ["c", "1", "first"])
def test_another_winner_is_refused_with_its_row_and_value(tmp_path: Path, winner: str) -> None:
    with pytest.raises(InputError, match=r"b\.csv: row 2: .*accepted: model_a, model_b, tie") as caught:
        battles(tmp_path / "b.csv", f"{HEADER}\na,b,tie\na,b,{winner}\na,b,{winner}\n")
    assert f'"winner" is "{winner}"' in str(caught.value)


def test_numbers_in_place_of_winners_are_pointed_to_their_column(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r'read with mapping=\{"score": "winner"\}$'):
        battles(tmp_path / "b.csv", f"{HEADER}\na,b,1\na,b,0.5\n")
    assert battles(tmp_path / "b.csv", f"{HEADER}\na,b,1\na,b,0\n", {"score": "winner"}).label.tolist() == [1, -1]


def test_a_model_that_meets_itself_is_refused_with_its_row(tmp_path: Path) -> None:
    with pytest.raises(InputError, match='row 2: "a" meets itself'):
        battles(tmp_path / "b.csv", f"{HEADER}\na,b,tie\na,a,tie\n")


@pytest.mark.parametrize(
    ("row", "column"),
    [(",b,tie,j,i", "model_a"), ("a,,tie,j,i", "model_b"), ("a,b,tie,,i", "judge"), ("a,b,,j,", "instruction_id")],
)
def test_an_empty_name_is_refused_with_its_row(tmp_path: Path, row: str, column: str) -> None:
    with pytest.raises(InputError, match=f'row 2: "{column}" is empty'):
        battles(tmp_path / "b.csv", f"{HEADER},judge,instruction_id\na,b,tie,j,i\n{row}\n")


def test_a_missing_column_is_refused_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r'mapping=\{"winner": "human_winner"\}'):
        battles(tmp_path / "b.csv", "model_a,model_b,human_winner\na,b,tie\n")


def test_a_mapping_of_a_column_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r'"vote".*here are: model_a, model_b, winner, judge, instruction_id'):
        battles(tmp_path / "b.csv", f"{HEADER}\na,b,tie\n", {"vote": "winner"})


def test_a_winner_may_be_called_by_the_files_own_column(tmp_path: Path) -> None:
    mapping = {"model_a": "left", "model_b": "right"}
    found = battles(tmp_path / "b.csv", "left,right,winner\na,b,left\na,b,right\na,b,model_a\na,b,tie\n", mapping)
    assert found.label.tolist() == [1, -1, 1, 0]


def test_columns_mapped_crosswise_swap_the_winners(tmp_path: Path) -> None:
    mapping = {"model_a": "model_b", "model_b": "model_a"}
    found = battles(tmp_path / "b.csv", f"{HEADER}\na,b,model_a\nb,c,model_b\n", mapping)
    assert named(found) == [("b", "a", -1, 0), ("c", "b", 1, 0)]


def test_the_recorded_votes_have_their_published_counts(shared_data: Path) -> None:
    found = read_battles(shared_data / "softelo_sample/battles.parquet", {"winner": "human_winner"})
    assert Counter(found.label.tolist()) == {1: 330, -1: 309, 0: 361}
    assert len(found.models) == 14
    mapping = {"model_a": "first", "model_b": "second", "winner": "verdict"}
    mapping |= {"judge": "annotator", "instruction_id": "prompt_id"}
    found = read_battles(shared_data / "llmfao/comparisons.parquet", mapping)
    assert len(found.label) == 15_403
    by_gpt4 = found.label[found.judge == found.judges.index("gpt-4")]
    assert Counter(by_gpt4.tolist()) == {1: 1397, -1: 1700, 0: 139}


def test_unreadable_recorded_verdicts_keep_their_rows(shared_data: Path) -> None:
    mapping = {"model_a": "first", "model_b": "second", "winner": "verdict", "judge": "annotator"}
    found = read_battles(shared_data / "pandalm/judgments.parquet", mapping)
    assert (len(found.status), int(found.status.sum())) == (4995, 25)


def test_battles_of_several_row_groups_are_read_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "b.parquet"
    query = (
        "select 'a' || hash(range) % 100 as model_a, 'b' || hash(range + 7) % 100 as model_b, "
        "case hash(range + 9) % 4 when 0 then 'model_a' when 1 then 'model_b' when 2 then 'tie' end as winner, "
        "'j' || hash(range + 3) % 50 as judge, 'i' || range as instruction_id from range(12000)"
    )
    with duckdb.connect() as connection:
        connection.sql(query).write_parquet(str(path), row_group_size=2048)
    found = read_battles(path)
    assert [int(found.instructions[code][1:]) for code in found.instruction] == list(range(12_000))


def test_headers_of_a_spreadsheet_are_ours_in_other_letters(tmp_path: Path) -> None:
    text = "Model A,Model_B,Winner,Judge,Instruction ID\nz,a,Model A,y,10\na,z,model_b,x,9\n"
    found = battles(tmp_path / "b.csv", text)
    assert named(found) == [("z", "a", 1, 0), ("a", "z", -1, 0)]
    assert (found.judges, found.instructions) == (("x", "y"), ("10", "9"))
    shown = battles(tmp_path / "c.csv", "First,Second,Verdict,Judge\nz,a,first,y\n")
    assert shown.ordered
    assert shown.judges == ("y",)
    kept = read_battles(tmp_path / "b.csv", where={"judge": "x"})
    assert named(kept) == [("a", "z", -1, 0)]


def test_other_letters_never_stand_before_ours_or_a_mapping(tmp_path: Path) -> None:
    found = battles(tmp_path / "b.csv", f"{HEADER},Winner,Judge,judge,First\nz,a,model_a,tie,n,y,?\n")
    assert (named(found), found.judges) == ([("z", "a", 1, 0)], ("y",))
    twice = battles(tmp_path / "c.csv", f"{HEADER},Judge,JUDGE\nz,a,model_a,n,y\n")
    assert twice.judges == (UNNAMED_JUDGE,)
    other = battles(tmp_path / "d.csv", f"{HEADER},Judge,who\nz,a,model_a,n,y\n", {"judge": "who"})
    assert other.judges == ("y",)
    share = battles(tmp_path / "e.csv", f"{HEADER},Score\nz,a,model_a,0\n")
    assert named(share) == [("z", "a", 1, 0)]
    lent = battles(tmp_path / "f.csv", f"{HEADER},Judge\nz,a,model_a,n\n", {"instruction_id": "Judge"})
    assert (lent.judges, lent.instructions) == ((UNNAMED_JUDGE,), ("n",))
    both = battles(tmp_path / "g.csv", f"{HEADER},First,Second,Verdict\nz,a,model_a,z,a,second\n")
    assert (named(both), both.ordered) == ([("z", "a", 1, 0)], False)


A_B = (("oak", "elm"), ("elm", "fig"), ("oak", "fig"))


def judged(folder: Path, *winners: str, head: str = HEADER) -> Path:
    path = folder / "judged.csv"
    rows = (f"{a},{b},{winner}" for (a, b), winner in zip(A_B * len(winners), winners, strict=False))
    path.write_text("\n".join([head, *rows, ""]), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "words",
    [
        ("Model_A", "MODEL_B", "Tie"),
        ("A", "B", "tie (inconsistent)"),
        ("left", "right", "draw"),
        ("x", "y", "both_bad"),
        ("1", "2", "0"),
        ("1", "2", "tie(all bad)"),
        ("model_1", "model_2", "Both Bad"),
    ],
)
def test_other_words_for_winners_are_read_where_the_column_is_certain(tmp_path: Path, words: tuple[str, ...]) -> None:
    found = read_battle_table(judged(tmp_path, *words, "", words[0]))
    assert found.battles.label.tolist() == [1, -1, 0, 0, 1]
    assert found.battles.status.tolist() == [0, 0, 0, 1, 0]
    assert set(found.values.values()) == {"model_a", "model_b", "tie"}
    shown = read_battle_table(judged(tmp_path, *words, head="first,second,verdict"))
    assert (shown.battles.label.tolist(), shown.battles.ordered) == ([1, -1, 0], True)


def test_words_for_both_bad_stand_beside_names_of_models(tmp_path: Path) -> None:
    assert read_battles(judged(tmp_path, "elm", "both_bad", "oak")).label.tolist() == [-1, 0, 1]


@pytest.mark.parametrize(
    "words",
    [
        ("1", "0", "0"),  # shares, or the first and a tie
        ("left", "b", "tie"),
        ("left", "right", "elm"),
        ("better", "worse", "tie"),
        ("A", "X", "tie"),
    ],
)
def test_words_that_may_mean_another_thing_are_not_guessed(tmp_path: Path, words: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="accepted: model_a, model_b, tie"):
        read_battles(judged(tmp_path, *words))


def test_words_that_are_names_of_models_are_not_guessed(tmp_path: Path) -> None:
    path = tmp_path / "named.csv"
    path.write_text(f"{HEADER}\nA,B,A\nA,C,B\n", encoding="utf-8")
    with pytest.raises(InputError, match=r'row 2: "winner" is "B".*it is a model, but none of the two'):
        read_battles(path)


def test_the_user_says_what_a_word_means(tmp_path: Path) -> None:
    path = judged(tmp_path, "better", "worse", "same", "n/a", "model_b")
    values = {"better": "model_a", "worse": "model_b", "same": "tie", "n/a": ""}
    found = read_battles(path, values=values)
    assert (found.label.tolist(), found.status.tolist()) == ([1, -1, 0, 0, -1], [0, 0, 0, 1, 0])
    with pytest.raises(InputError, match=r'values gives "better" as "a"; accepted: model_a, model_b, tie'):
        read_battles(path, values={"better": "a"})
    with pytest.raises(InputError, match=r'values names "best", which no row has as its winner; did you mean .better'):
        read_battles(path, values={"best": "model_a"})


@pytest.mark.parametrize(("a", "b"), [("score_a", "score_b"), ("score_first", "score_second")])
def test_the_higher_of_two_scores_wins(tmp_path: Path, a: str, b: str) -> None:
    sides = ("model_a", "model_b") if a == "score_a" else ("first", "second")
    path = tmp_path / "scored.csv"
    path.write_text(f"{','.join(sides)},{a},{b}\noak,elm,7,4.5\nelm,fig,-1,3\noak,fig,2,2.0\noak,fig,,3\n")
    found = read_battles(path)
    assert (found.label.tolist(), found.status.tolist()) == ([1, -1, 0, 0], [0, 0, 0, 1])
    assert found.score is not None
    assert found.score[:3].tolist() == [2.5, -4.0, 0.0]
    path.write_text(f"{','.join(sides)},{a},{b}\noak,elm,7,4.5\nelm,fig,high,3\n")
    with pytest.raises(InputError, match=rf'row 2: "{a}" or "{b}" is "high"; accepted: a number'):
        read_battles(path)


@pytest.mark.parametrize("name", ["annotator", "worker", "voter", "rater", "Rater"])
def test_people_are_judges_where_nobody_else_is_and_other_columns_are_told(tmp_path: Path, name: str) -> None:
    path = tmp_path / "people.csv"
    path.write_text(f"{HEADER},{name},comment\noak,elm,oak,ann,good\noak,elm,elm,bob,bad\n", encoding="utf-8")
    found = read_battle_table(path)
    assert (found.battles.judges, found.left_aside) == (("ann", "bob"), ["comment"])
    assert found.reading().columns == {"judge": name}
    assert read_battle_table(path, where={"comment!": ["bad"]}).left_aside == []
    path.write_text(f"{HEADER},{name},judge\noak,elm,oak,ann,gpt\n", encoding="utf-8")
    found = read_battle_table(path)
    assert (found.battles.judges, found.left_aside) == (("gpt",), [name])
