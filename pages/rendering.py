"""The pages' templates: Jinja with everything escaped, and the filters by which texts and figures are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from venire.arena.wording import interval_text
from venire.pages import charts
from venire.pages.addresses import MAX_IN_ADDRESS
from venire.pages.texts import markdown, plain_text
from venire.reports import numbers, texts
from venire.reports.html import html
from venire.reports.sections import Block

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
"""What a page may load and do: what this server has, and nothing that is written into the page itself."""

SECURITY_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file that all pages share, by its name with a digest: it never changes under that name."""

    body: bytes
    content_type: str


@cache
def assets() -> Mapping[str, Asset]:
    """Stylesheet, script and icon, by the names that pages ask for."""
    found = {}
    for entry in files("venire.pages").joinpath("static").iterdir():
        stem, dot, end = entry.name.rpartition(".")
        body = entry.read_bytes()
        found[f"{stem}.{sha256(body).hexdigest()[:12]}{dot}{end}"] = Asset(body, _TYPES[dot + end])
    return found


def asset(plain: str) -> str:
    """The address of a shared file, by its plain name."""
    stem, dot, end = plain.rpartition(".")
    name = next(one for one in assets() if one.startswith(f"{stem}.") and one.endswith(dot + end))
    return f"/static/{name}"


@cache
def environment() -> Environment:
    """The templates, their filters and their globals: one for the process."""
    found = Environment(
        loader=PackageLoader("venire.pages", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    for one in (
        numbers.dollars,
        numbers.of_budget,
        numbers.seconds,
        numbers.share,
        numbers.count,
        numbers.number,
        numbers.figure,
        numbers.elo,
    ):
        found.filters[one.__name__] = one
    found.filters |= {
        "moment": numbers.moment,
        "name": texts.name,
        "visible": texts.visible,
        "clipped": texts.clipped,
        "markdown": markdown,
        "plain_text": plain_text,
        "blocks": _blocks,
        "zip_self": lambda names: [(one, one) for one in names],
        "short_ones": lambda names: [one for one in names if len(one) <= MAX_IN_ADDRESS],
        "without": lambda query, key: {name: value for name, value in query.items() if name != key},
    }
    found.globals |= {
        "asset": asset,
        "chart": charts.chart,
        "limit_shown": texts.MAX_SHOWN,
        "figures": numbers,
        "interval": interval_text,
    }
    return found


def _blocks(blocks: Sequence[Block], pictures: Mapping[str, str] | None = None) -> Markup:
    """Sections as a page shows them: texts escaped and visible, charts as the template drew them."""
    return Markup(html(blocks, shown=texts.visible, pictures=pictures))


def render(template: str, values: Mapping[str, Any]) -> str:
    """A page of a template. Raises what a template's filters raise."""
    return environment().get_template(template).render(values)
