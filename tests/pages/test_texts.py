"""Texts of models are shown as they are: nothing in them is markup, a link, or moves what stands beside them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup, escape

from venire.pages.texts import markdown, marked_differences, with_hits
from venire.reports.texts import clipped, name, visible

HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<style>@import url(http://evil.example)</style>",
    "[a](javascript:alert(1)) ![b](http://evil.example/b.png) <http://evil.example> [c]: http://evil.example",
    '<a href="data:text/html,x">x</a>',
    "&lt;script&gt;",
    "# heading\n\n<div onclick=x>**bold**</div>",
    "\x00\u202eabc\u2066\ufeff\x1b[31m",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_has_no_links_images_attributes_or_html_of_its_own(text: str) -> None:
    tags = re.findall(r"<[^>]*>", str(markdown(text)))
    assert set(tags) <= {"<p>", "</p>", "<strong>", "</strong>", "<br>"}


def test_markdown_shows_code_lists_and_tables() -> None:
    found = str(markdown("# One\n\n- a\n- `b<c>`\n\n| x | y |\n|---|---|\n| 1 | 2 |\n"))
    assert "<p><strong>One</strong></p>" in found  # a heading of a model is none of the page
    assert "<li><code>b&lt;c&gt;</code></li>" in found
    assert "<td>1</td>" in found


@given(st.text(max_size=200))
def test_what_is_visible_has_no_controls_and_no_bidirectional_marks(text: str) -> None:
    found = visible(text)
    assert not set(found) & {chr(code) for code in (*range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0))}
    assert not set(found) & set("\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")
    assert not any(0xD800 <= ord(character) <= 0xDFFF for character in found)


def test_ordinary_texts_stay_as_they_are() -> None:
    text = "Größe: 3 €\n\tnaïve, 日本語, עברית, العربية, e\u0301, 👍🏽, 👨‍👩‍👧"
    assert visible(text) == text
    assert visible("a\r\nb\rc") == "a\nb\nc"


def test_marks_are_not_stacked_over_other_lines() -> None:
    assert visible("z" + "\u0301" * 50 + "y") == "z" + "\u0301" * 4 + "y"


def test_a_long_text_is_cut_and_a_name_is_one_line() -> None:
    assert len(clipped("x" * 10**6)) == 20_001
    assert name("a\n\n b" + "x" * 10**6, 10) == "a bxxxxxxx…"
    assert name("") == "(empty)"
    assert name(None) == "–"


def test_hits_are_marked_and_escaped() -> None:
    found = with_hits("a <b> Heliotrope </b>", "heliotrope")
    assert found == Markup("a &lt;b&gt; <mark>Heliotrope</mark> &lt;/b&gt;")
    assert with_hits("İ" * 300 + "x", "x").count("<mark>") <= 1
    assert "<i>" not in with_hits("x <i>", "<i>")


@given(st.text(max_size=80), st.text(max_size=80))
def test_differences_keep_every_word_of_both(one: str, other: str) -> None:
    found = marked_differences(one, other)
    assert found is not None
    for side, text in zip(found, (one, other), strict=True):
        bare = str(side).replace('<mark class="only">', "").replace("</mark>", "")
        assert bare == str(escape(visible(text)))


def test_texts_of_very_many_words_are_not_compared() -> None:
    assert marked_differences("a b " * 5_000, "a") is None
