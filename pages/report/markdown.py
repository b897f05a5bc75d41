"""A report as Markdown for a pull request: the answer, the leaderboard, judges, doubts and how to repeat it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from venire.arena.wording import interval_text
from venire.pages.bars import rank_range, tied
from venire.pages.figures import dollars, elo, number, share
from venire.pages.texts import clipped, name

_MARKUP = re.compile(r"([\\`*_{}\[\]<>()#!|~$&]|:(?=[\w+-]+:)|^[-+=])")
"""What Markdown reads as markup; the last of it at the start of a line alone."""
_LINK = re.compile(r"(?i)\b(www|https?|ftp|mailto|xmpp)(?=[.:])|@")
"""What sites turn into links and mentions after Markdown was read, where an escape is no help."""
_NUMBERED = re.compile(r"^(\d+)([.)])(?=\s|$)")


def plain_markdown(text: str) -> str:
    """A text that Markdown shows as it is, on one line; a space without width keeps addresses from becoming links.

    >>> print(plain_markdown("*a* <b> | [c](d)"))
    \\*a\\* \\<b\\> \\| \\[c\\]\\(d\\)
    """
    escaped = _MARKUP.sub(r"\\\1", " ".join(text.split()))
    return _LINK.sub("\\g<0>\u200b", _NUMBERED.sub(r"\1\\\2", escaped))


def report_markdown(document: Mapping[str, Any]) -> str:
    """The report's document as Markdown; texts in it are escaped."""
    board = document["board"]
    parts = [f"# {_name(document['title'])}", f"**{_text(document['answer']['sentence'])}**"]
    parts += [f"**{_text(coins['says'])}**"] if (coins := board["diagnostics"].get("coins")) else []
    parts += _leaderboard(board)
    notes = [*(board["diagnostics"].get("source") or {}).get("notes", ()), *document["notes"]]
    parts += ["\n".join(f"- {_text(one, 500)}" for one in notes[:20])] if notes else []
    parts += _changes(document.get("changes"))
    if document["contestants"]:
        rows = [
            [
                _name(one["model"]),
                dollars(one["nano"]),
                interval_text(one["nano_lo"], one["nano_hi"], dollars) or "–",
                elo(one["elo"]),
                _interval(one),
                "yes" if one["frontier"] else "",
            ]
            for one in document["contestants"]
        ]
        head = ["model", "cost of a completion", "interval", "Elo", "interval", "frontier"]
        parts += ["## Quality against cost", _table(head, rows)]
    if document["methods"]:
        parts += _methods(document["methods"])
    parts += _figures(document["figures"])
    parts += _judges(document["judges"])
    if rated := document["judge_ratings"]:
        parts.append(f"Consistency against ratings of the judges {rated['ratings']}. {_text(rated['says'])}")
    parts += _people(document["people"])
    if document["audit"]:
        parts += _doubts(document["audit"]["findings"])
    parts += ["## How it was done", *(_text(one) for one in document["how"])]
    if document["prompts"]:
        rows = [[_name(one["name"]), one["digest"]] for one in document["prompts"]]
        parts.append(_table(["prompt", "digest"], rows))
    if document["left_out"]:
        left = [f"- {_text(one['what'], 200)}: {_text(one['why'], 400)}" for one in document["left_out"][:30]]
        parts += ["## Left out", "\n".join(left)]
    repeat = document["repeat"]
    parts += [
        "## Repeat it",
        f"{_text(repeat['command'])}",
        f"Seed {repeat['seed']}; SHA-256 of the verdicts {repeat['verdicts_sha256']}; venire {document['venire']}, "
        f"{document['made_at'][:10]}.",
    ]
    return "\n\n".join(parts) + "\n"


def _name(text: str) -> str:
    return plain_markdown(name(text, 60))


def _text(text: str, most: int = 1500) -> str:
    return plain_markdown(clipped(text, most))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *("---:" for _ in head[1:])], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _interval(one: Mapping[str, Any]) -> str:
    return interval_text(one.get("lo"), one.get("hi")) or "–"


def _leaderboard(board: Mapping[str, Any]) -> list[str]:
    rows = [
        [_name(one["model"]), rank_range(one), elo(one.get("elo")), _interval(one), f"{one.get('battles') or 0:,.0f}"]
        for one in board["models"]
    ]
    found = ["## Leaderboard", _table(["model", "rank", "Elo", "interval", "judgments"], rows)]
    if sets := tied(board["models"]):
        found.append("Not distinguished: " + "; ".join(", ".join(map(_name, one)) for one in sets) + ".")
    return found


def _changes(changes: Mapping[str, Any] | None) -> list[str]:
    if not changes:
        return []
    rows = [
        [
            _name(one["model"]),
            elo(one["before"]),
            elo(one["now"]),
            "–" if one["change"] is None else f"{one['change']:+.0f}",
            interval_text(one["lo"], one["hi"], "+.0f") or "–",
        ]
        for one in changes["models"]
    ]
    head = ["model", "before", "now", "difference", "interval"]
    return ["## Differences", _text(changes["says"]), _table(head, rows)]


def _methods(methods: Mapping[str, Any]) -> list[str]:
    names = methods["methods"]
    rows = [
        [_name(one["model"]), *("–" if one["rank"][key] is None else str(one["rank"][key]) for key in names)]
        for one in methods["models"]
    ]
    says = [f"- {_text(one['says'])}" for one in methods["differences"] if one["turned"]]
    return ["## Ranks by other methods", _table(["model", *names], rows), *(["\n".join(says)] if says else [])]


def _figures(tables: Sequence[Mapping[str, Any]]) -> list[str]:
    found = ["## Figures that were asked for"] if tables else []
    for one in tables:
        found += [f"### {_text(one['title'])}", *(_text(line) for line in one["says"])]
        if one["heads"]:
            found.append(_table([_text(head) for head in one["heads"]], [list(map(_name, row)) for row in one["rows"]]))
        found += [_text(line) for line in one["notes"]]
    return found


def _judges(judges: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = [
        [
            _name(one["judge"]),
            number(one.get("corrected"), 3),
            share(one.get("flips")),
            share(one.get("first")),
            share(one.get("ties")),
            share(one.get("readable")),
            dollars(one.get("cost_per_verdict_nano")),
        ]
        for one in judges
    ]
    head = ["judge", "consistency", "flips", "first place", "ties", "readable", "cost of a verdict"]
    return ["## Judges", _table(head, rows)]


def _people(people: Mapping[str, Any] | None) -> list[str]:
    """How far judges agree with people, and people with one another."""
    if people is None:
        return []
    named = [(_name(one["judge"]), one) for one in people["judges"]]
    named += [(f"{_name(one['annotator'])}, a person", one) for one in people["each"]]
    named += [("one person beside another", people["together"])] if people["together"] else []
    rows = [
        [
            words,
            f"{one['votes']:,}",
            share(one["agreement"]) + _between(one["agreement_lo"], one["agreement_hi"], lambda end: share(end, 0)),
            _coefficient(one["kappa"]),
        ]
        for words, one in named
    ]
    simulated = "" if people["origin"] == "people" else f", {people['origin']}"
    return [
        "## People",
        f"{people['votes']:,} votes of {people['annotators']:,} annotators ({_name(people['name'])}{simulated}), with "
        f"95% intervals. Krippendorff's alpha: judges and people {_coefficient(people['alpha'])}, people among "
        f"themselves {_coefficient(people['alpha_among_people'])}.",
        _table(["beside people", "votes", "same winner", "kappa"], rows),
        *([_text(people["note"])] if people.get("note") else []),
    ]


def _coefficient(found: Mapping[str, Any] | None) -> str:
    if not found or found["value"] is None:
        return "–"
    return number(found["value"], 2) + _between(found["lo"], found["hi"], lambda end: number(end, 2))


def _between(lo: float | None, hi: float | None, words: Callable[[float], str]) -> str:
    between = interval_text(lo, hi, words)
    return f" ({between})" if between else ""


def _doubts(findings: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [
        f"- **{one['word']}** {_text(one['asks'])} {_text(one['says'])}"
        for one in findings
        if one["word"] in ("worry", "unsure")
    ]
    return ["## What should be doubted", "\n".join(lines) if lines else "No check worries."]
