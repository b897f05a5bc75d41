"""A report as Markdown for a pull request: the answer, the leaderboard, judges, doubts and how to repeat it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from venire.pages.report.sections import report_sections
from venire.pages.texts import clipped, name, visible
from venire.reports.markdown import markdown, plain_markdown


def report_markdown(document: Mapping[str, Any]) -> str:
    """The report's document as Markdown; texts in it are escaped."""
    said = [document["answer"]["sentence"]]
    said += [coins["says"]] if (coins := document["board"]["diagnostics"].get("coins")) else []
    parts = [f"# {plain_markdown(name(document['title'], 60))}"]
    parts += [f"**{plain_markdown(clipped(sentence, 1500))}**" for sentence in said]
    return "\n\n".join((*parts, markdown(report_sections(document), shown=visible))) + "\n"
