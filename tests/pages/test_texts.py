"""Texts of models are shown as they are: nothing in them is markup, a link, or moves what stands beside them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup, escape

from venire.pages.texts import first_line, markdown, marked_differences, plain_text, with_hits
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


CODE = st.text("ab`~\n <&", max_size=80) | st.text(max_size=80)
"""Texts that are mostly fences and quotes, and any other ones."""
TAGS = re.compile(r'<(?:/?(?:mark|code|pre|span)|mark class="only"|pre class="code"|span class="fence")>')


@given(CODE, CODE)
def test_differences_keep_every_character_of_both(one: str, other: str) -> None:
    found = marked_differences(one, other)
    assert found is not None
    assert 0.0 <= found.common <= 1.0
    for side, text in zip(found.texts, (one, other), strict=True):
        assert TAGS.sub("", side) == str(escape(visible(text)))


@given(CODE)
def test_a_plain_text_keeps_every_character_and_closes_its_tags(text: str) -> None:
    found = plain_text(text)
    assert TAGS.sub("", found) == (str(escape(visible(text))) or "(empty)")
    for tag in ("pre", "code", "span"):
        assert len(re.findall(f"<{tag}[ >]", found)) == found.count(f"</{tag}>")


def test_code_is_set_apart_in_plain_text_and_is_no_markup() -> None:
    found = str(plain_text("Use `<b>`:\n```html\n<b>`x`</b>\n```\nor\n~~~\nnot closed"))
    assert "<code>`&lt;b&gt;`</code>" in found
    assert '<span class="fence">```html\n</span>&lt;b&gt;`x`&lt;/b&gt;\n<span class="fence">```\n' in found
    assert found.count('<pre class="code">') == 2


@pytest.mark.parametrize("text", ["`" * 20_000, "`a" * 10_000, "```\n" * 5_000, "\n ~~~x" * 4_000, "``` `\n" * 3_000])
@pytest.mark.timeout(2)
def test_no_text_takes_long_to_be_shown(text: str) -> None:
    plain_text(text)


def test_a_first_line_is_cut_with_a_mark() -> None:
    assert first_line("\n---\nWhy **not**\n\nBecause.") == "Why **not** …"
    assert first_line("```python\nx = 1\n```") == "x = 1"
    assert first_line("one line") == "one line"
    assert first_line("***") == "***"
    assert len(first_line("x" * 10**6)) == 121


def test_texts_of_very_many_words_are_not_compared() -> None:
    assert marked_differences("a b " * 5_000, "a") is None
