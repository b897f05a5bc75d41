"""The sections of a report from its document, for a page and for Markdown; pictures are drawn by who renders a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from venire.arena.wording import interval_text
from venire.reports.documents.people import intervals_below, people_blocks
from venire.reports.documents.rows import POINTS, expected, rank_range, tied, win_matrix
from venire.reports.numbers import count, dollars, elo, figure, moment, number, share
from venire.reports.sections import (
    Block,
    Bullets,
    Chart,
    Column,
    Definitions,
    Detail,
    Heading,
    Paragraph,
    Section,
    TextTable,
    Verbatim,
    faint,
)
from venire.reports.texts import clipped, name
from venire.reports.wording import IN_TIME, DifferenceWords

Rows = Sequence[Mapping[str, Any]]

_MAX_PROMPTS = 12
MAX_MATRIX = 60
"""Models of the win matrix, the best of them: more are in the JSON alone."""


def report_sections(document: Mapping[str, Any]) -> list[Section]:
    """The sections in the order in which a report has them; those about which there is nothing to say are left out."""
    every = (
        Section("board", "Leaderboard", list(_board(document))),
        Section("changes", "Differences", list(changes_blocks(document.get("changes")))),
        Section("costs", "Quality against cost", list(_costs(document["contestants"], _level(document)))),
        Section("wins", "Wins, seen and expected", list(_wins(document["board"]))),
        Section("methods", "The same verdicts by other methods", list(_methods(document["methods"]))),
        Section("figures", "Figures that were asked for", list(_figures(document["figures"]))),
        Section("categories", "By category", list(_categories(document))),
        Section("judges", "Judges", list(_judges(document))),
        Section("people", "People", list(people_blocks(document["people"]))),
        Section("doubts", "What should be doubted", list(_doubts(document["audit"]))),
        Section("how", "How it was done", list(_how(document))),
        Section("battles", "Examples of battles", [Detail([Chart("battles")])] if document["battles"] else []),
        Section("definitions", "What the figures mean", [Detail([Definitions(document["definitions"])])]),
        Section("left-out", "What was left out, and why", list(_left_out(document["left_out"]))),
        Section("repeat", "How to repeat it", list(_repeat(document))),
    )
    return [section for section in every if section.blocks]


def _wins(board: Mapping[str, Any]) -> Iterator[Block]:
    """How verdicts came out pair by pair, of the best models."""
    rows = board["models"]
    if not (rows and board["seen"]):
        return
    text = "Each row's share of verdicts won against each column in percent, ties as halves"
    text += "" if _is_ordered(rows) else "; below it, smaller, what the ratings expect"
    text += ". Columns are numbered as rows are."
    if len(rows) > MAX_MATRIX:
        text += f" The best {MAX_MATRIX} models are shown; the JSON has all."
    yield Detail([faint(text), win_matrix(rows[:MAX_MATRIX], board["seen"], numbered=True)])


def _is_ordered(rows: Rows) -> bool:
    """Whether the method gives an order and no ratings."""
    return bool(rows) and all(row.get("elo") is None for row in rows)


def _level(document: Mapping[str, Any]) -> str:
    return f"{100 * (document['board']['diagnostics'].get('level') or 0.95):g}"


def _name(text: str) -> str:
    return name(text, 60)


def _ends(rows: Rows, lo: str = "lo", hi: str = "hi", write: str | Callable[[float], str] = ".0f") -> list[str]:
    return [interval_text(row.get(lo), row.get(hi), write) or "–" for row in rows]


def _board(document: Mapping[str, Any]) -> Iterator[Block]:
    board = document["board"]
    rows, facts = board["models"], board["diagnostics"]
    ordered = _is_ordered(rows)
    if facts.get("reason"):
        yield Paragraph(clipped(facts["reason"]))
    if rows:
        columns = [
            Column("model", [_name(row["model"]) for row in rows]),
            Column("rank", [rank_range(row) for row in rows]),
            Column("Elo", [elo(row.get("elo")) for row in rows]),
            Column("interval", _ends(rows)),
            Column("judgments", [f"{row.get('battles') or 0:,.0f}" for row in rows]),
        ]
        yield Detail([Chart("board")], instead=[TextTable(columns, label="Leaderboard")])
        if facts.get("estimand"):
            yield faint(f"{_level(document)}% intervals: {facts['estimand']}.")
        if sets := tied(rows):
            named = "; ".join(", ".join(name(model, 40) for model in models) for models in sets)
            yield Paragraph(f"Not distinguished: {named}.")
        elif not ordered:
            yield Paragraph(
                "No two models share a set: each differs from the first of the set above it beyond chance, or has no "
                "interval."
            )
        yield Detail([faint(_scale_text(document, ordered))])
    else:
        yield Paragraph("No model is rated.")
    notes = [*((facts.get("source") or {}).get("notes") or ()), *document["notes"]]
    if notes:
        yield Bullets([clipped(note, 500) for note in notes[:20]])


def _scale_text(document: Mapping[str, Any], ordered: bool) -> str:
    """What the figures of the leaderboard are, and what its picture shows."""
    board = document["board"]
    text = f"{board['method']}, {clipped(board['gauge'])}"
    if not ordered:
        chances = ", ".join(f"{gap} points more win {share(expected(float(gap)), 0)} of battles" for gap in POINTS)
        text += f". {chances}"
    if any(row.get("reference") is not None for row in board["models"]):
        text += ". Diamonds are ratings known before"
    return text + _arrows(board["models"])


def _arrows(rows: Rows) -> str:
    """What an arrow of a picture means, where there is one; the end of a text."""
    is_open = any((row.get("lo") is None) != (row.get("hi") is None) for row in rows)
    return "." + (" An arrow at the edge: the interval has no end on that side." if is_open else "")


def changes_blocks(changes: Mapping[str, Any] | None, words: DifferenceWords = IN_TIME) -> Iterator[Block]:
    """Each model by both of two sides, with its difference and what is said of all of them."""
    if not changes:
        return
    rows = changes["models"]
    yield Paragraph(clipped(changes["says"], 1500))
    yield TextTable(
        [
            Column("model", [_name(row["model"]) for row in rows]),
            Column(words.first, [elo(row["before"]) for row in rows]),
            Column(words.second, [elo(row["now"]) for row in rows]),
            Column("difference", ["–" if row["change"] is None else f"{row['change']:+.0f}" for row in rows]),
            Column("interval", _ends(rows, write="+.0f")),
            Column("", [words.verb if row["changed"] else "" for row in rows]),
        ],
        label=words.all,
    )


def _costs(rows: Rows | None, level: str) -> Iterator[Block]:
    if rows is None:
        yield Detail([Paragraph("Not shown: what the contestants cost is not known here, or of one alone.")])
        return
    yield Detail(
        [
            Chart("cost"),
            faint(
                f"Elo against what one completion cost, on a logarithmic scale, with {level}% intervals of both. On "
                f"the dashed steps is the best rating that so much buys{_arrows(rows)} Points without room for a name "
                "are in the table."
            ),
        ]
    )
    yield TextTable(
        [
            Column("model", [_name(row["model"]) for row in rows]),
            Column("cost of a completion", [dollars(row["nano"]) for row in rows]),
            Column("interval", _ends(rows, "nano_lo", "nano_hi", dollars)),
            Column("completions", [count(row["completions"]) for row in rows]),
            Column("Elo", [elo(row["elo"]) for row in rows]),
            Column("interval", _ends(rows)),
            Column("frontier", ["yes" if row["frontier"] else "" for row in rows]),
        ],
        label="Costs",
    )


def _methods(methods: Mapping[str, Any] | None) -> Iterator[Block]:
    if not methods:
        return
    rows, names = methods["models"], methods["methods"]
    columns = [Column("model", [*(name(row["model"], 40) for row in rows), f"Kendall's tau with {names[0]}"])]
    for key in names:
        ranks = ["–" if row["rank"][key] is None else str(row["rank"][key]) for row in rows]
        points = ["" if row["elo"][key] is None else elo(row["elo"][key]) for row in rows]
        moved = [bool(row["moved"][key]) for row in rows]
        columns.append(
            Column(key, [*ranks, number(methods["kendall"][key], 2)], below=[*points, ""], marked=[*moved, False])
        )
    yield TextTable(columns, label="Ratings by method", divisible=True)
    yield faint(
        "Ranks, and below them or in brackets points on each method's own scale; a rank that differs from "
        f"{names[0]} is marked."
    )
    turned = [clipped(one["says"], 700) for one in methods["differences"] if one["turned"]]
    yield Bullets(turned or ["Every method puts every two neighbours in the same order."])


def _figures(tables: Rows) -> Iterator[Block]:
    for one in tables:
        yield Heading(clipped(one["title"], 200))
        for line in one["says"]:
            yield Paragraph(clipped(line, 500))
        if one["heads"]:
            cells = zip(*one["rows"], strict=True) if one["rows"] else [()] * len(one["heads"])
            columns = [
                Column(clipped(head, 40), [*map(_name, column)] if index == one["name"] else list(column))
                for index, (head, column) in enumerate(zip(one["heads"], cells, strict=True))
            ]
            yield TextTable(columns, name=one["name"], label=clipped(one["title"], 200))
        for line in one["notes"]:
            yield faint(clipped(line, 500))


def _categories(document: Mapping[str, Any]) -> Iterator[Block]:
    categories = document["categories"] or ()
    if not categories:
        return
    names = [row["model"] for row in document["board"]["models"]]
    columns = [Column("model", [name(model, 40) for model in names])]
    for one in categories:
        rows = [one["models"].get(model) or {} for model in names]
        head = f"{name(one['category'], 30)} ({count(one['instructions'])} instructions)"
        columns.append(
            Column(head, [elo(row.get("elo")) for row in rows], below=intervals_below(rows, "lo", "hi", ".0f"))
        )
    yield TextTable(columns, label="Ratings by category", divisible=True)
    yield faint(
        "Rated anew on each category's verdicts alone, on a scale of its own: compare differences, not points. Few "
        "instructions make intervals that may be too narrow."
    )


def _judges(document: Mapping[str, Any]) -> Iterator[Block]:
    rows = document["judges"]

    def shares(key: str) -> list[str]:
        return [share(row.get(key)) for row in rows]

    asked = [f"{row['protocol']}, {name(row['model'], 40)}" if "protocol" in row else "" for row in rows]
    columns = [
        Column("judge", [name(row["judge"], 40) for row in rows], below=asked),
        Column(
            "consistency",
            [number(row.get("corrected"), 3) for row in rows],
            below=intervals_below(rows, "consistency_lo", "consistency_hi"),
        ),
        Column(
            "decisive",
            [number(row.get("decisive_corrected"), 3) for row in rows],
            below=intervals_below(rows, "decisive_lo", "decisive_hi"),
        ),
        Column("slope", [number(row.get("discrimination"), 2) for row in rows]),
        *(
            [Column("reference Elo", [elo(row.get("reference_elo")) for row in rows])]
            if any(row.get("reference_elo") is not None for row in rows)
            else []
        ),
        Column("readable", shares("readable")),
        Column("flips", shares("flips")),
        Column("first place", shares("first")),
        Column("ties", shares("ties")),
        *(
            [Column("own family", [count(row.get("own_family")) for row in rows])]
            if any(row.get("own_family") for row in rows)
            else []
        ),
        Column("verdicts", [count(row.get("verdicts")) for row in rows]),
        Column("cost of a verdict", [dollars(row.get("cost_per_verdict_nano")) for row in rows]),
    ]
    yield TextTable(columns, label="Judges")
    if notes := dict.fromkeys(f"{name(row['judge'], 40)}: {clipped(row['note'])}" for row in rows if row.get("note")):
        yield Bullets(list(notes))
    if rated := document["judge_ratings"]:
        yield Detail([Heading("Consistency and rating"), Chart("judges")])
        yield faint(
            f"Consistency of each judge, with its {_level(document)}% interval, against its rating as a model "
            f"{rated['ratings']}. {clipped(rated['says'])}"
        )
    if document["reliability"]:
        yield Detail([Chart("reliability"), *_reliability(document["reliability"])])
    if agreement := document["agreement"][:30]:
        columns = [
            Column("judges", [" and ".join(name(judge, 40) for judge in row["judges"]) for row in agreement]),
            Column("same side", [share(row["share"]) for row in agreement]),
            Column("of battles", [count(row["battles"]) for row in agreement]),
        ]
        yield Detail(
            [
                Heading("Agreement"),
                TextTable(columns, label="Agreement between judges"),
                faint(
                    "Of the battles where both judges prefer a side, both orders together; those who agree least come "
                    "first."
                ),
            ]
        )
    if served := [_served(row) for row in rows if row.get("served")]:
        yield Detail([Heading("Served models"), Bullets(served)])


def _reliability(rows: Rows) -> Iterator[Block]:
    columns = [Column("expected", [name(row["judge"] or "all judges", 40) for row in rows])]
    for index, band in enumerate(rows[0]["bands"]):
        bands = [row["bands"][index] for row in rows]
        columns.append(
            Column(
                f"{share(band['from'], 0)} to {share(band['to'], 0)}",
                [share(one["seen"], 0) for one in bands],
                below=[
                    f"expected {share(one['expected'], 0)}, of {count(one['verdicts'])}" if one["verdicts"] else ""
                    for one in bands
                ],
            )
        )
    yield TextTable(columns, label="Reliability")
    yield faint(
        "Share of wins of the model rated higher: across, as ratings predict it; up, as the judge gave it. On the line "
        "a judge separates models as all do together."
    )


def _served(row: Mapping[str, Any]) -> str:
    models = "; ".join(
        f"{name(one['name'], 60)}, {count(one['replies'])} replies, {moment(one['first'])} to {moment(one['last'])}"
        for one in row["served"][:5]
    )
    return f"{name(row['judge'], 40)}: {models}" + ("; changed while it judged" if row.get("changed") else "")


def _doubts(audit: Mapping[str, Any] | None) -> Iterator[Block]:
    if not audit:
        return
    by_word: dict[str, list[Mapping[str, Any]]] = {}
    for one in audit["findings"]:
        by_word.setdefault(one["word"], []).append(one)
    worries, unsure, fine = (by_word.get(word, []) for word in ("worry", "unsure", "fine"))
    made = len(worries) + len(unsure) + len(fine)
    yield Paragraph(f"{len(worries)} of {made} checks worry." if worries else "No check worries.")
    for one in (*worries, *unsure):
        yield Heading(one["asks"], one["word"])
        basis = f"{one['check']}: {figure(one['figure'])}, threshold {figure(one['threshold'])}"
        yield Paragraph(f"{clipped(one['says'], 1000)} ({basis})")
    if fine:
        yield Detail(
            [Heading("Checked and fine"), Bullets([f"{one['asks']} {clipped(one['says'], 600)}" for one in fine])]
        )


def _how(document: Mapping[str, Any]) -> Iterator[Block]:
    for one in document["how"]:
        yield Paragraph(clipped(one, 1200))
    if prompts := document["prompts"]:
        columns = [
            Column("prompt", [name(one["name"]) for one in prompts]),
            Column("digest", [one["digest"] for one in prompts]),
        ]
        texts: list[Block] = [Heading("Prompts")]
        for index, one in enumerate(prompts[:_MAX_PROMPTS], start=1):
            texts.append(Paragraph(f"{name(one['name'])}, digest {one['digest']}"))
            texts.append(Verbatim(clipped(one["text"], 6000), f"Prompt {name(one['name'])}, {index}"))
        if len(prompts) > _MAX_PROMPTS:
            texts.append(faint(f"{len(prompts) - _MAX_PROMPTS} more are in the JSON."))
        yield Detail(texts, instead=[TextTable(columns)])


def _left_out(rows: Rows) -> Iterator[Block]:
    if rows:
        yield Bullets([f"{clipped(one['what'], 200)}: {clipped(one['why'], 500)}" for one in rows[:60]])
    else:
        yield Detail([Paragraph("Nothing.")])


def _repeat(document: Mapping[str, Any]) -> Iterator[Block]:
    repeat = document["repeat"]
    yield Verbatim(clipped(repeat["command"], 1000), "Command")
    yield Paragraph(
        f"Seed {repeat['seed']}. SHA-256 of the verdicts: {repeat['verdicts_sha256']}; a report with the same digest "
        f"and the same version has the same figures. venire {document['venire']}, {document['made_at'][:10]}."
    )
