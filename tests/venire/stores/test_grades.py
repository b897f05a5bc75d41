"""`venire rate` where completions were graded one at a time, with and without verdicts on pairs beside them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import venire as vn

Venire = Callable[..., Any]

GRADER = '[[judge]]\nname = "{0}"\nmodel = "simulated/{1}@1"\nprotocol = "{2}"\n'
TRUTH = GRADER.format("truth", "gpt-4-0613", "direct-reference")
DIRECT = GRADER.format("grader", "vicuna-13b", "direct")
PAIRS = '[[judge]]\nname = "pairs"\nmodel = "simulated/gpt-4-0613@1"\nprotocol = "binary"\n'
STORE = 'store = "shared.duckdb"\n'


@pytest.fixture
def campaign(folder: Path, write_campaign: Callable[..., Path], settled: Callable[[Path], Path]) -> Callable[..., Path]:
    """Writes a campaign of these judges on all instructions, with reference answers, and asks them."""
    table = folder / "instructions.jsonl"
    rows = [json.loads(line) for line in table.read_text(encoding="utf-8").splitlines()]
    table.write_text(
        "".join(json.dumps({**row, "reference": f"answer {n}"}) + "\n" for n, row in enumerate(rows)), encoding="utf-8"
    )

    def write(name: str, judges: str, *, instructions: int = 16, store: str = "") -> Path:
        path = write_campaign(name=f"{name}.toml", instructions=instructions, judges=judges)
        text = path.read_text(encoding="utf-8").replace('name = "small"', f'{store}name = "{name}"')
        path.write_text(text, encoding="utf-8")
        return settled(path)

    return write


def test_a_store_with_grades_alone_has_a_board(venire: Venire, campaign: Callable[..., Path]) -> None:
    path = campaign("grades", TRUTH + DIRECT)
    shown = venire("rate", path)
    assert shown.code == 0, shown.err
    assert "Leaderboard" not in shown.out
    assert "Accuracy   direct-reference   verdicts: simulated" in shown.out
    assert "Accuracy by category   direct-reference" in shown.out
    assert "Judges that grade" in shown.out
    board = venire("rate", path, "--json").json()
    assert board["verdicts"] == board["grades"]["verdicts"] == "simulated"
    table, without = board["grades"]["accuracy"]
    assert (table["protocol"], without["protocol"]) == ("direct-reference", "direct")
    assert table["judges"] == ["truth"]
    counted = venire(
        "sql",
        path.with_suffix(".duckdb"),
        "select model, count(*) filter (where grade = 'yes'), count(*) filter (where grade <> 'not_attempted'), "
        "count(*) from grade where judge = 'truth' group by model order by model",
        "--json",
    ).json()
    found = {row["model"]: row for row in table["models"]}
    assert len(found) == 6
    for row in counted:
        model, right, attempted, graded = row.values() if isinstance(row, dict) else row
        assert (found[model]["correct"], found[model]["attempted"], found[model]["graded"]) == (
            right,
            attempted,
            graded,
        )
        assert found[model]["accuracy"] == pytest.approx(right / attempted, abs=1e-6)
        assert found[model]["not_attempted"] == pytest.approx(1 - attempted / graded, abs=1e-6)
        assert found[model]["lo"] < found[model]["accuracy"] < found[model]["hi"]
    assert [row["model"] for row in board["models"]] == [row["model"] for row in table["models"]]
    assert all(row["elo"] is None and row["accuracy"] is not None for row in board["models"])


def test_pairs_and_grades_of_one_campaign_share_a_board(venire: Venire, campaign: Callable[..., Path]) -> None:
    path = campaign("both", PAIRS + DIRECT, instructions=4)
    shown = venire("rate", path)
    assert shown.out.index("Leaderboard") < shown.out.index("Accuracy   direct ")
    board = vn.rate(path)
    assert board.grades is not None
    accuracy = {row["model"]: row["accuracy"] for row in board.grades.rows()}
    assert {row["model"]: row["accuracy"] for row in board.rows()} == accuracy
    assert all(row["battles"] for row in board.rows())
    assert "accuracy" in board._repr_html_()


def test_a_board_of_pairs_shows_the_grades_of_the_stores_other_campaigns(
    venire: Venire, campaign: Callable[..., Path]
) -> None:
    campaign("graded", TRUTH + DIRECT, instructions=4, store=STORE)
    path = campaign("paired", PAIRS + DIRECT.replace("grader", "own"), instructions=2, store=STORE)
    store = path.with_name("shared.duckdb")
    board = venire("rate", store, "--json").json()  # the only campaign that rates models
    assert all(row["battles"] for row in board["models"])
    assert board["grades"]["campaigns"] == ["paired", "graded"]
    asked = {row["protocol"]: row["judges"] for row in board["grades"]["accuracy"]}
    assert asked == {"direct-reference": ["truth"], "direct": ["own"]}
    alone = venire("rate", store, "--campaign", "graded", "--json").json()
    assert alone["grades"]["campaigns"] == ["graded"]
    assert {row["protocol"]: row["judges"] for row in alone["grades"]["accuracy"]}["direct"] == ["grader"]


def test_ratings_of_pairs_are_held_against_accuracy(venire: Venire, campaign: Callable[..., Path]) -> None:
    path = campaign("both", PAIRS + TRUTH + DIRECT)
    shown = venire("rate", path, "--ridge", "0.1", "--accuracy-baseline", "0.2")
    assert "Rank agreement with accuracy   bradley-terry and direct-reference   verdicts: simulated" in shown.out
    assert "accuracy above 20%" in shown.out
    found = venire("rate", path, "--ridge", "0.1", "--json").json()["grades"]["rank_agreement"]
    rows = {row["ratings"]: row for row in found["rows"]}
    assert list(rows) == ["all pairs", "discriminative", "non-discriminative", "unattempted", "direct"]
    judgments = {name: row["judgments"] for name, row in rows.items()}
    assert judgments["all pairs"] == sum(judgments[name] for name in list(rows)[1:4]) == 15 * 16
    assert rows["all pairs"]["intervals"]["kendall"][0] < rows["all pairs"]["kendall"]
    assert found["filter"]["baseline"] == 0.0
    assert set(found["filter"]["kept"]) | set(found["filter"]["dropped"]) == {
        row["model"] for row in vn.rate(path, ridge=0.1, accuracy_baseline=0.2).rows()
    }
    several = venire(
        "rate", path, "--ridge", "0.1", "--json", "--accuracy-baseline", "0", "--accuracy-baseline", "0.6"
    ).json()["grades"]["rank_agreement"]
    assert {**several, "filters": None} == {**found, "filters": None}
    assert [len(one["kept"]) for one in several["filters"]] == sorted(
        (len(one["kept"]) for one in several["filters"]), reverse=True
    )
    refused = venire("rate", path, "--accuracy-baseline", "20")
    assert refused.code == 2
    assert "the accuracy baseline is 20.0" in refused.err


def test_each_judge_of_pairs_has_a_line_beside_its_own_grades(venire: Venire, campaign: Callable[..., Path]) -> None:
    second = PAIRS.replace('"pairs"', '"also"').replace("gpt-4-0613", "vicuna-13b")
    path = campaign("both", PAIRS + second + TRUTH + DIRECT)
    whole = venire("rate", path, "--ridge", "0.1", "--json").json()["grades"]["rank_agreement"]
    lines = {row["judge"]: row for row in whole["judges"]}
    assert set(lines) == {"also", "pairs"}
    assert sum(row["pairs"]["judgments"] for row in lines.values()) == whole["rows"][0]["judgments"]
    graded = {row["ratings"]: row for row in whole["rows"]}["direct"]  # by the same model, of another name
    assert lines["also"]["direct"] | {"ratings": "direct"} == graded
    assert lines["pairs"]["direct"] is None
    weighed = ("--judge-weight", "also=1", "--judge-weight", "pairs=0")
    alone = venire("rate", path, "--ridge", "0.1", "--json", *weighed).json()["grades"]["rank_agreement"]["rows"][0]
    for figure in ("kendall", "spearman", "models"):
        assert lines["also"]["pairs"][figure] == alone[figure]
    assert lines["also"]["pairs"]["pearson"] != lines["pairs"]["pairs"]["pearson"]
    shown = venire("rate", path, "--ridge", "0.1").out
    assert "Rank agreement by judge" in shown
    assert "direct: Kendall of the accuracies that the same model gives" in shown


def test_pairs_with_an_unattempted_answer_are_left_out_where_asked(
    venire: Venire, campaign: Callable[..., Path]
) -> None:
    path = campaign("both", PAIRS + TRUTH + DIRECT)
    words = ("rate", path, "--ridge", "0.1")
    whole = venire(*words, "--json").json()
    report = path.with_name("report.json")
    board = venire(*words, "--unattempted", "drop", "--json", "--report", report).json()
    rows = {row["ratings"]: row["judgments"] for row in whole["grades"]["rank_agreement"]["rows"]}
    left_out = board["diagnostics"]["unattempted"]
    assert left_out == {"protocol": "direct-reference", "judgments": rows["unattempted"], "ungraded": 0}
    assert 0 < rows["unattempted"] == whole["diagnostics"]["judgments"] - board["diagnostics"]["judgments"]
    assert "unattempted" not in whole["diagnostics"]
    assert board["grades"]["accuracy"] == whole["grades"]["accuracy"]
    assert [row["judgments"] for row in board["grades"]["rank_agreement"]["rows"]][3] == 0
    said = f"{rows['unattempted']} judgments left out: an answer was not attempted (direct-reference)"
    assert said in venire(*words, "--unattempted", "drop").out
    assert said in report.read_text(encoding="utf-8")
    for more in (("--method", "am-elo"), ("--flips", "drop")):  # whatever the board counts as a judgment
        every, kept = (
            venire("rate", path, *more, *drop, "--json").json()["diagnostics"]
            for drop in ((), ("--unattempted", "drop"))
        )
        assert every["judgments"] - kept["judgments"] == kept["unattempted"]["judgments"] > 0
    made = vn.rate(path, ridge=0.1, unattempted="drop")
    assert made.to_json()["models"] == board["models"]
    assert [row["elo"] for row in board["models"]] != [row["elo"] for row in whole["models"]]
    assert made.evidence is not None
    assert made.evidence.in_time is not None
    assert len(made.evidence.in_time().label) == len(made.evidence.battles.label)
    compared = vn.compare(path, methods=("win-rate", "elo"), unattempted="drop")
    assert said in compared.notes


def test_an_audit_and_a_report_leave_the_same_pairs_out(venire: Venire, campaign: Callable[..., Path]) -> None:
    path = campaign("both", PAIRS + TRUTH + DIRECT)
    drop = ("--unattempted", "drop")
    board = venire("rate", path, *drop, "--json").json()["diagnostics"]
    left_out = board["unattempted"]["judgments"]
    audited = venire("audit", path, *drop, "--check", "complete", "--check", "first-place", "--json").json()
    assert audited["note"].startswith(f"{left_out} judgments left out: an answer was not attempted")
    assert {one["check"]: one["word"] for one in audited["findings"]}["complete"] == "fine"
    assert audited["rows"] == 2 * (15 * 16 - left_out)
    assert vn.audit(path, unattempted="drop", checks=["complete"]).note == audited["note"]
    report = path.with_name("report.json")
    assert venire("report", path, *drop, "-o", report).code == 0
    document = json.loads(report.read_text(encoding="utf-8"))
    assert document["board"]["diagnostics"]["unattempted"] == board["unattempted"]
    assert document["asked"] == ["--unattempted drop"]
    split = venire("report", path, *drop, "--split", "before=2100-01-01", "-o", report)
    assert split.code == 2
    assert "every verdict is" in split.err


def test_answers_without_a_grade_are_left_out_with_those_not_attempted(campaign: Callable[..., Path]) -> None:
    campaign("graded", TRUTH, instructions=2, store=STORE)
    path = campaign("paired", PAIRS, instructions=3, store=STORE)
    found = vn.rate(path, unattempted="drop", ridge=0.1).diagnostics
    assert found.unattempted is not None
    assert found.unattempted.ungraded == 15
    assert found.counts.judgments + found.unattempted.judgments == 30


def test_unattempted_pairs_are_known_by_grades_alone(venire: Venire, judged: Callable[..., Path]) -> None:
    refused = venire("rate", judged(), "--unattempted", "drop")
    assert refused.code == 2
    assert "--unattempted drop takes grades of answers" in refused.err


def test_methods_are_compared_by_their_tau_with_accuracy_and_with_a_reference(
    venire: Venire, campaign: Callable[..., Path]
) -> None:
    path = campaign("both", PAIRS + TRUTH + DIRECT)
    reference = path.with_name("people.csv")
    order = ["strong", "evasive", "sloppy", "terse", "verbose", "solid"]
    reference.write_text("model,elo\n" + "".join(f"{name},{n}\n" for n, name in enumerate(order)), encoding="utf-8")
    words = ("rate", path, "--compare", "--method", "win-rate", "--method", "elo", "--method", "borda")
    found = venire(*words, "--reference", reference, "--json").json()
    board = venire("rate", path, "--method", "win-rate", "--reference", reference, "--json").json()
    assert found["accuracy"]["source"] == "grades by direct-reference"
    assert found["accuracy"]["kendall"]["win-rate"] == board["grades"]["rank_agreement"]["rows"][0]["kendall"]
    assert found["reference"]["source"].endswith("people.csv")
    assert found["reference"]["kendall"]["win-rate"] == board["diagnostics"]["agreement"]["kendall"]
    assert found["reference"]["models"] == {"win-rate": 6, "elo": 6, "borda": 6}
    bounds = [found["reference"][name]["win-rate"] for name in ("lo", "kendall", "hi")]
    assert bounds == sorted(bounds)
    own = venire(*words, "--json").json()  # ratings of people that the store has
    assert own["reference"]["source"] == "ratings of the store"
    assert own["reference"]["kendall"] != found["reference"]["kendall"]
    shown = venire(*words, "--reference", reference).out
    taus = found["reference"]["kendall"]
    (line,) = [line for line in shown.splitlines() if line.startswith("tau-b with reference")]
    assert line.split()[3:] == [f"{taus[name]:.3f}" for name in ("win-rate", "elo", "borda")]
    assert "tau-b with accuracy" in shown
    again = vn.compare(path, methods=("win-rate", "elo"), reference=reference)
    assert [one.name for one in again.agreements] == ["reference", "accuracy"]


def test_a_comparison_with_too_few_known_models_says_so(venire: Venire, judged: Callable[..., Path]) -> None:
    path = judged()
    reference = path.with_name("few.csv")
    reference.write_text("model,elo\nstrong,1200\nterse,1000\n", encoding="utf-8")
    shown = venire("rate", path, "--compare", "--method", "elo", "--method", "borda", "--reference", reference)
    assert shown.code == 0, shown.err
    assert "tau-b with reference" in shown.out  # in the note
    assert "2 models have both ratings" in shown.out
    assert "agreement needs at least 4" in shown.out


def test_models_that_a_board_does_not_have_are_not_graded_on_it(
    campaign: Callable[..., Path], settled: Callable[[Path], Path]
) -> None:
    campaign("graded", TRUTH + DIRECT, instructions=4, store=STORE)
    path = campaign("paired", PAIRS, instructions=2, store=STORE)
    some = path.with_name("some.toml")
    text = path.read_text(encoding="utf-8").replace('"paired"', '"some"')
    some.write_text(text.replace("[data]", '[data]\nmodels = ["strong", "terse", "sloppy"]'), encoding="utf-8")
    settled(some)
    found = vn.rate(path.with_name("shared.duckdb"), campaign="some").grades
    assert found is not None
    assert {row.model for row in found.tables[0].models} == {"strong", "terse", "sloppy"}
    assert found.campaigns == ("graded",)
    graded = vn.rate(path.with_name("shared.duckdb"), campaign="graded").grades
    assert graded is not None
    assert len(graded.tables[0].models) == 6


def test_grades_of_another_origin_are_left_out_and_named(venire: Venire, campaign: Callable[..., Path]) -> None:
    recorded = DIRECT.replace('"simulated/vicuna-13b@1"', '"vicuna"')
    recorded += 'provider = "replay"\nrecorded = "grades.csv"\nmap = { model = "first" }\n'
    first = campaign("paired", PAIRS, instructions=2, store=STORE)
    lines = first.with_name("instructions.jsonl").read_text(encoding="utf-8").splitlines()
    items = [json.loads(line)["instruction_id"] for line in lines]
    rows = [f"vicuna,{name},strong,A" for name in items]
    first.with_name("grades.csv").write_text(
        "\n".join(["judge,instruction_id,first,raw_output", *rows]), encoding="utf-8"
    )
    campaign("graded", recorded, instructions=2, store=STORE)
    store = first.with_name("shared.duckdb")
    noted = vn.rate(store).grades
    assert noted is not None
    assert (noted.tables, noted.notes) == ((), ("grades of another origin are left out: campaign graded",))
    assert "another origin are left out" in venire("rate", store).out
    alone = vn.rate(store, campaign="graded").grades
    assert alone is not None
    assert (alone.verdicts, alone.tables[0].accuracy) == ("recorded", {"strong": 1.0})
    campaign("also", DIRECT.replace("grader", "more"), instructions=2, store=STORE)
    found = vn.rate(store, campaign="paired").grades
    assert found is not None
    assert (found.verdicts, found.campaigns) == ("simulated", ("also",))
    assert found.notes == ("grades of another origin are left out: campaign graded",)


def test_a_board_without_grades_says_nothing_of_them(venire: Venire, judged: Callable[..., Path]) -> None:
    board = venire("rate", judged(), "--json").json()
    assert "grades" not in board
    assert "accuracy" not in board["models"][0]


def test_what_needs_pairs_is_refused_with_what_there_is(venire: Venire, campaign: Callable[..., Path]) -> None:
    path = campaign("grades", DIRECT, instructions=2)
    for words in (("audit", path), ("rate", path, "--compare")):
        refused = venire(*words)
        assert refused.code == 2
        assert "grades alone" in refused.err
        assert "no verdicts on pairs" in refused.err
    refused = venire("rate", path, "--covariate", "length")
    assert refused.code == 2
    assert "no covariates" in refused.err


def test_rows_are_independent_where_asked(venire: Venire, campaign: Callable[..., Path]) -> None:
    path = campaign("grades", TRUTH + GRADER.format("again", "claude-3-opus", "direct-reference"), instructions=8)
    boards = [venire("rate", path, "--json", *more).json()["grades"] for more in ((), ("--cluster", "none"))]
    assert [one["cluster"] for one in boards] == ["instructions", "none"]
    widths = [sum(row["hi"] - row["lo"] for row in one["accuracy"][0]["models"]) for one in boards]
    assert widths[0] > widths[1]


def test_the_end_of_a_run_shows_the_grades(venire: Venire, write_campaign: Callable[..., Path]) -> None:
    path = write_campaign(instructions=2, judges=DIRECT)
    done = venire("run", path, "--yes")
    assert done.code == 0, done.err
    assert "Accuracy   direct   verdicts: simulated" in done.out
    result = vn.run(path)
    assert result.board is not None
    assert result.board.grades is not None


def labels(path: Path, store: Path, *, models: int = 6) -> Path:
    """A file that labels the answers of so many models on all instructions, those first by name right most often."""
    lines = path.with_name("instructions.jsonl").read_text(encoding="utf-8").splitlines()
    items = [json.loads(line)["instruction_id"] for line in lines]
    names = [row.model for row in vn.rate(store, campaign="paired", ridge=0.1).models]
    rows = [
        f"{item},{name},{int(code + number % 8 < 7)}"
        for number, item in enumerate(items)
        for code, name in enumerate(sorted(names)[:models])
    ]
    file = path.with_name("gold.csv")
    file.write_text("\n".join(["instruction_id,model,correct", *rows]) + "\n", encoding="utf-8")
    return file


def test_labels_of_people_alone_are_the_accuracy_that_ratings_are_held_against(
    venire: Venire, campaign: Callable[..., Path]
) -> None:
    path = campaign("paired", PAIRS, instructions=8)
    store = path.with_suffix(".duckdb")
    imported = venire("import", "grades", labels(path, path), "--as", "experts", "--store", store)
    assert imported.code == 0, imported.err
    board = venire("rate", path, "--ridge", "0.1", "--json").json()
    (table,) = board["grades"]["accuracy"]
    assert (table["protocol"], table["judges"], board["grades"]["judges"]) == ("gold", ["experts"], [])
    assert table["estimand"] == "other instructions; this person only"
    assert "gold" not in table
    assert [row["model"] for row in table["models"]] == sorted(row["model"] for row in table["models"])
    found = board["grades"]["rank_agreement"]
    assert found["protocol"] == "gold"
    judgments = {row["ratings"]: row["judgments"] for row in found["rows"]}
    assert judgments["discriminative"] + judgments["non-discriminative"] == judgments["all pairs"] == 15 * 8
    shown = venire("rate", path, "--ridge", "0.1").out
    assert "Accuracy   gold   labels of people" in shown
    assert "votes of 0" not in shown, "those who label and do not vote are no voters"


def test_labels_of_every_graded_answer_are_the_truth_and_those_of_some_correct_the_judges(
    venire: Venire, campaign: Callable[..., Path]
) -> None:
    campaign("graded", TRUTH + DIRECT, instructions=2, store=STORE)
    path = campaign("paired", PAIRS, instructions=2, store=STORE)
    store = path.with_name("shared.duckdb")

    def protocols() -> list[str]:
        found = vn.rate(store, campaign="paired", ridge=0.1).grades
        assert found is not None
        assert all((table.gold is None) == (table.protocol == "gold") for table in found.tables)
        return [table.protocol for table in found.tables]

    for models, expected in ((5, []), (6, ["gold"])):
        gold = labels(path, store, models=models)
        assert venire("import", "grades", gold, "--as", "experts", "--store", store).code == 0
        assert protocols() == [*expected, "direct-reference", "direct"]
    agreement = venire("rate", store, "--campaign", "paired", "--ridge", "0.1", "--json").json()["grades"]
    assert [row["ratings"] for row in agreement["rank_agreement"]["rows"]][4:] == ["direct-reference", "direct"]
