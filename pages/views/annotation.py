"""The page on which people vote, without the names of models: one file that stands alone, or a page of a server."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import Any

from markupsafe import Markup

from venire.pages.addresses import Links
from venire.pages.rendering import render
from venire.reports.texts import visible
from venire.storage.read.blind_battles import BlindText


@dataclass(frozen=True, slots=True)
class AnnotationPage:
    """A page's HTML, and the digest of what it asks, under which a browser keeps its votes."""

    digest: str
    html: str


def annotation_page(battles: Sequence[tuple[BlindText, BlindText]], annotator: str) -> AnnotationPage:
    """The page of some battles, each the two completions in the order they are shown, for somebody of a name.

    It holds texts and the completions' codes, and loads nothing: its policy allows its own script and style alone.
    """
    content = {"annotator": annotator, "battles": shown_battles(battles)}
    digest = sha256(json.dumps(content).encode()).hexdigest()[:16]
    style, script = (_static(name) for name in ("annotate.css", "annotate.js"))
    values = {
        "policy": f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; base-uri 'none'; "
        "form-action 'none'",
        "style": Markup(style),
        "script": Markup(script),
        "data": _data({"page": digest, **content}),
        "live": False,
    }
    return AnnotationPage(digest, render("annotate.html", values))


def shown_battles(battles: Sequence[tuple[BlindText, BlindText]]) -> list[dict[str, Any]]:
    """What a page shows of some battles, in the order shown: what was asked, and each answer's code and text."""
    return [
        {
            "asked": visible(first.asked),
            "answers": [{"code": one.code, "text": visible(one.text)} for one in (first, second)],
        }
        for first, second in battles
    ]


def voting_page(links: Links, token: str) -> str:
    """The page of a server: it asks for a name, then for battles, and sends each vote with the token.

    It holds no text: its policy is that of all pages of the server, which forbids anything written into a page.
    """
    addresses = {"battles": links.to("annotate/battles"), "vote": links.to("annotate/vote"), "token": token}
    values = {"live": True, "pages": links.to("overview"), "data": _data({"live": addresses, "battles": []})}
    return render("annotate.html", values)


def _data(content: object) -> Markup:
    """JSON that ends no element and begins none, whatever its texts are."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _static(name: str) -> str:
    return files("venire.pages").joinpath("static", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
