"""A report as one file of HTML (no script, nothing fetched, its style within, its pictures drawn here) or Markdown."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Any

from markupsafe import Markup

from venire.pages.bars import drawn_board
from venire.pages.rendering import render
from venire.reports.documents.sections import report_sections
from venire.reports.markdown import markdown, plain_markdown
from venire.reports.plots import report_planes
from venire.reports.texts import clipped, name, visible

_POLICY = "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'"
"""What the page may load and do: nothing but its one style sheet, which is added by its digest."""


def report_html(document: Mapping[str, Any]) -> str:
    """The page of a report's document (docs/pages.md#report): self-contained, and safe whatever the texts in it are."""
    style = files("venire.pages").joinpath("templates/report/report.css").read_text(encoding="utf-8")
    digest = b64encode(sha256(style.encode()).digest()).decode()
    board = document["board"]
    values = {
        "d": document,
        "sections": report_sections(document),
        "board": board,
        "style": Markup(style),
        "policy": f"{_POLICY}; style-src 'sha256-{digest}'",
        **drawn_board(board["models"]),
        "planes": report_planes(document),
        "words": _by_word((document["audit"] or {}).get("findings", ())),
        "level": f"{100 * (board['diagnostics'].get('level') or 0.95):g}",
    }
    return render("report/report.html", values)


def report_markdown(document: Mapping[str, Any]) -> str:
    """The report's document as Markdown; texts in it are escaped."""
    said = [document["answer"]["sentence"]]
    said += [coins["says"]] if (coins := document["board"]["diagnostics"].get("coins")) else []
    parts = [f"# {plain_markdown(name(document['title'], 60))}"]
    parts += [f"**{plain_markdown(clipped(sentence, 1500))}**" for sentence in said]
    return "\n\n".join((*parts, markdown(report_sections(document), shown=visible))) + "\n"


def _by_word(findings: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {"worry": [], "unsure": [], "fine": [], "not made": []}
    for one in findings:
        found.setdefault(one["word"], []).append(one)
    return found
