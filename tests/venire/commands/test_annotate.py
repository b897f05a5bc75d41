"""`venire annotate` and the import of its tables: blind pages by a seed, and every vote back at its battle."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.stores import rows_of
from tests.venire.conftest import Done
from venire.storage.store.opening import open_store

Venire = Callable[..., Done]
HEAD = ["page", "battle", "answer_1", "answer_2", "winner", "annotator", "note", "voted_at"]


def data(path: Path) -> Any:
    """What a page holds."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text(encoding="utf-8"))
    assert found is not None
    return json.loads(found[1])


def table(path: Path, page: Any, winners: str, name: str = "ann") -> Path:
    """The table of a page after votes: a digit for each battle, or a dash."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(HEAD)
        for number, (battle, key) in enumerate(zip(page["battles"], winners, strict=False), 1):
            codes = [answer["code"] for answer in battle["answers"]]
            winner = {"1": "answer_1", "2": "answer_2", "0": "tie", "-": ""}[key]
            writer.writerow([page["page"], number, *codes, winner, name, "a note", "2026-01-01T00:00:00Z"])
    return path


def test_pages_share_battles_and_the_same_seed_makes_the_same_pages(
    judged: Callable[..., Path], venire: Venire, tmp_path: Path
) -> None:
    campaign = judged()
    words = ("annotate", campaign, "--annotators", 3, "--count", 10, "--overlap", 0.2, "--seed", 7)
    done = venire(*words, "-o", tmp_path / "page.html")
    assert done.code == 0, done.err
    assert "page-1.html: 10 battles, 2" in done.out
    pages = [data(tmp_path / f"page-{number}.html") for number in (1, 2, 3)]
    texts = [{frozenset(one["code"] for one in battle["answers"]) for battle in page["battles"]} for page in pages]
    assert [len(one) for one in texts] == [10] * 3
    assert len(texts[0] & texts[1] & texts[2]) == len(texts[0] & texts[1]) == 2
    assert [page["annotator"] for page in pages] == ["annotator 1", "annotator 2", "annotator 3"]
    assert len({page["page"] for page in pages}) == 3
    venire(*words, "-o", tmp_path / "again.html")
    for number in (1, 2, 3):
        again = (tmp_path / f"again-{number}.html").read_bytes()
        assert again == (tmp_path / f"page-{number}.html").read_bytes()


def test_sides_are_by_chance_and_models_even(judged: Callable[..., Path], venire: Venire, tmp_path: Path) -> None:
    campaign = judged(instructions=4)
    found = venire("annotate", campaign, "-o", tmp_path / "p.html", "--json").json()
    assert (found["count"], found["available"], found["judged"]) == (60, 60, True)
    assert found["appearances"] == dict.fromkeys(("evasive", "sloppy", "solid", "strong", "terse", "verbose"), 20)
    page = data(tmp_path / "p.html")
    with open_store(campaign.with_suffix(".duckdb"), create=False) as store:
        rows = store.connection.execute(
            "select c.text, m.name from completion c join model m on m.id = c.model"
        ).fetchall()
    names = dict(rows)
    first = Counter(
        names[battle["answers"][0]["text"]] < names[battle["answers"][1]["text"]] for battle in page["battles"]
    )
    assert 15 < first[True] < 45


@pytest.mark.parametrize("sample", ["disputed", "decisive"])
def test_a_sample_by_verdicts_says_how_many_are_of_its_kind(
    judged: Callable[..., Path], venire: Venire, tmp_path: Path, sample: str
) -> None:
    done = venire("annotate", judged(), "-o", tmp_path / "p.html", "--sample", sample, "--count", 8)
    assert done.code == 0, done.err
    assert re.search(rf"^{sample}: 8 of 30 judged battles", done.out, re.M)
    assert re.search(r"judges differ on \d of them|order is not certain at 95 %: \d of them", done.out)


def test_a_store_without_verdicts_has_random_pages_alone(folder: Path, venire: Venire, tmp_path: Path) -> None:
    store = folder / "s.duckdb"
    for kind in ("instructions", "completions"):
        assert venire("import", "table", folder / f"{kind}.jsonl", "--kind", kind, "--store", store).code == 0
    done = venire("annotate", store, "-o", tmp_path / "p.html", "--count", 15)
    assert "random: 15 of 240 battles" in done.out
    done = venire("annotate", store, "-o", tmp_path / "q.html", "--sample", "disputed")
    assert done.code == 2
    assert "verdicts on pairs: --sample random" in done.err
    assert not (tmp_path / "q.html").exists()


def test_more_battles_than_there_are_is_refused_with_the_most(
    judged: Callable[..., Path], venire: Venire, tmp_path: Path
) -> None:
    campaign = judged()
    done = venire("annotate", campaign, "-o", tmp_path / "p.html", "--count", 20, "--annotators", 3)
    assert done.code == 2
    assert "3 pages of 20 battles" in done.err
    assert "need 52 battles" in done.err
    most = re.search(r"--count (\d+) is the most", done.err)
    assert most is not None
    again = ("annotate", campaign, "-o", tmp_path / "p.html", "--annotators", 3, "--count")
    assert venire(*again, most[1]).code == 0
    assert venire(*again, int(most[1]) + 1).code == 2


def test_tables_of_several_people_are_votes_beside_the_judges(
    judged: Callable[..., Path], venire: Venire, tmp_path: Path
) -> None:
    campaign = judged(instructions=4)
    venire("annotate", campaign, "-o", tmp_path / "p.html", "--annotators", 2, "--count", 20, "--overlap", 0.5)
    pages = [data(tmp_path / f"p-{number}.html") for number in (1, 2)]
    paths = [
        table(tmp_path / f"{name}.csv", page, "1201-" * 4, name)
        for name, page in zip(("ann", "bob"), pages, strict=True)
    ]
    done = venire("import", "votes", *paths, "--as", "crowd", "--store", campaign)
    assert "32 votes of crowd new" in done.out
    assert "2 new annotators" in done.out
    assert "32 notes kept" in done.out
    assert "8 rows without a winner" in done.out
    assert "left aside" not in done.out
    assert "0 votes of crowd new" in venire("import", "votes", *paths, "--as", "crowd", "--store", campaign).out
    people = venire("rate", campaign, "--json").json()["diagnostics"]["people"]
    assert (people["origin"], people["annotators"], people["votes"]) == ("people", 2, 32)
    assert all(one["kappa"]["lo"] < one["kappa"]["value"] < one["kappa"]["hi"] for one in people["judges"])
    changed = table(tmp_path / "changed.csv", pages[0], "2", "ann")
    done = venire("import", "votes", changed, "--as", "crowd", "--store", campaign)
    assert done.code == 2
    assert "changed.csv: row 1: 'ann'" in done.err


def _foreign(rows: list[list[str]], page: Any) -> None:
    rows[2][2] = "0123456789abcdef"


def _other_instruction(rows: list[list[str]], page: Any) -> None:
    battles = page["battles"]
    other = next(one for one in battles if one["asked"] != battles[1]["asked"])
    rows[2][3] = other["answers"][1]["code"]


def _same(rows: list[list[str]], page: Any) -> None:
    rows[2][3] = rows[2][2]


def _word(rows: list[list[str]], page: Any) -> None:
    rows[2][4] = "left"


def _nameless(rows: list[list[str]], page: Any) -> None:
    rows[2][5] = ""


def test_a_table_that_was_changed_is_refused_by_its_row_and_nothing_is_imported(
    judged: Callable[..., Path], venire: Venire, tmp_path: Path
) -> None:
    campaign = judged(instructions=4)
    venire("annotate", campaign, "-o", tmp_path / "p.html")
    page = data(tmp_path / "p.html")
    good, bad = table(tmp_path / "good.csv", page, "111", "bob"), table(tmp_path / "bad.csv", page, "1" * 30)
    with bad.open(encoding="utf-8") as file:
        sound = list(csv.reader(file))
    for spoil, says in (
        (_foreign, ("row 2: '0123456789abcdef'", "no completion")),
        (_other_instruction, ("row 2: answer_1 and answer_2", "two models on one instruction")),
        (_same, ("row 2: ",)),
        (_word, ('row 2: "winner" is "left"; accepted: ',)),
        (_nameless, ('row 2: "annotator" is empty',)),
    ):
        rows = deepcopy(sound)
        spoil(rows, page)
        with bad.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(rows)
        done = venire("import", "votes", good, bad, "--as", "crowd", "--store", campaign)
        assert done.code == 2
        assert f"bad.csv: {says[0]}" in done.err
        assert says[-1] in done.err
        assert rows_of(campaign.with_suffix(".duckdb"), "select count(*) from vote") == [(0,)]


def test_a_table_of_another_store_with_the_same_texts_is_foreign(
    judged: Callable[..., Path], folder: Path, venire: Venire, tmp_path: Path
) -> None:
    campaign, other = judged(), tmp_path / "other.duckdb"
    for kind in ("instructions", "completions"):
        venire("import", "table", folder / f"{kind}.jsonl", "--kind", kind, "--store", other)
    venire("annotate", other, "-o", tmp_path / "p.html")
    votes = table(tmp_path / "v.csv", data(tmp_path / "p.html"), "12")
    done = venire("import", "votes", votes, "--as", "crowd", "--store", campaign)
    assert done.code == 2
    assert "v.csv: row 1: " in done.err
    assert "another store, or was changed" in done.err
    copy = tmp_path / "copy.duckdb"
    shutil.copy(other, copy)
    assert venire("import", "votes", votes, "--as", "crowd", "--store", copy).code == 0


def test_a_page_that_is_there_is_replaced_on_demand_alone(
    judged: Callable[..., Path], venire: Venire, tmp_path: Path
) -> None:
    """Somebody may be voting on it: another page in its place would be asked under other battles' codes."""
    campaign, second = judged(), tmp_path / "p-2.html"
    second.write_text("mine", encoding="utf-8")
    words = ("annotate", campaign, "-o", tmp_path / "p.html", "--annotators", 2, "--count", 3)
    done = venire(*words)
    assert done.code == 2
    assert f"{second} is there already:" in done.err
    assert "--force" in done.err
    assert [one.name for one in tmp_path.glob("p*.html")] == ["p-2.html"]
    assert second.read_text(encoding="utf-8") == "mine"
    assert venire(*words, "--force").code == 0
    assert len(data(second)["battles"]) == 3
    assert venire("annotate", campaign, "--width", 0.1, "-o", second).code == 0
    for place, said in ((tmp_path, "is a folder"), (tmp_path / "none" / "p.html", "does not exist: make it first")):
        done = venire("annotate", campaign, "-o", place)
        assert (done.code, said in done.err) == (2, True)


def test_a_table_without_a_vote_is_refused(judged: Callable[..., Path], venire: Venire, tmp_path: Path) -> None:
    campaign = judged()
    venire("annotate", campaign, "-o", tmp_path / "p.html")
    votes = table(tmp_path / "v.csv", data(tmp_path / "p.html"), "")
    done = venire("import", "votes", votes, "--as", "crowd", "--store", campaign)
    assert done.code == 2
    assert "v.csv: " in done.err
    assert "no rows" in done.err


def test_a_width_says_how_many_votes_it_needs_before_and_after_there_are_some(
    judged: Callable[..., Path], venire: Venire, tmp_path: Path
) -> None:
    campaign = judged(instructions=4)
    done = venire("annotate", campaign, "--width", 0.1)
    assert done.code == 0, done.err
    assert "381 votes" in done.out
    assert "50%" in done.out
    assert "60 battles to vote" in done.out
    before = venire("annotate", campaign, "--width", 0.1, "--json").json()
    assert (before["measured"], before["by_judge"]) == (0, {})
    assert before["ratings"]["25.0"] is None or before["ratings"]["25.0"] > before["ratings"]["50.0"]
    venire("annotate", campaign, "-o", tmp_path / "p.html")
    votes = table(tmp_path / "v.csv", data(tmp_path / "p.html"), "1201" * 15)
    assert venire("import", "votes", votes, "--as", "crowd", "--store", campaign).code == 0
    wide, narrow = (venire("annotate", campaign, "--width", one, "--json").json() for one in (0.2, 0.1))
    assert narrow["measured"] == 60
    assert narrow["by_judge"].keys() == {"gpt-4-0613", "claude-3-opus"}
    assert all(narrow["by_judge"][judge] > 2 * votes for judge, votes in wide["by_judge"].items())
    (one, *_) = venire("rate", campaign, "--json").json()["diagnostics"]["people"]["judges"]
    now = venire("annotate", campaign, "--width", one["agreement_hi"] - one["agreement_lo"], "--json").json()
    assert now["by_judge"][one["judge"]] == pytest.approx(60, rel=0.1), "the width that there is needs what there is"


def test_a_width_that_is_none_is_refused(judged: Callable[..., Path], venire: Venire) -> None:
    done = venire("annotate", judged(), "--width", 30)
    assert done.code == 2
    assert "width is 30" in done.err
    assert "such as 0.1" in done.err
