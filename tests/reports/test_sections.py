"""Sections: the three renderers show every block, and a text in any of them stays a text."""

from __future__ import annotations

import io
from typing import get_args

import pytest
from rich.console import Console

from venire.render.sections import show
from venire.reports.html import html
from venire.reports.markdown import markdown
from venire.reports.sections import (
    Block,
    Bullets,
    CellLink,
    Chart,
    Column,
    Definitions,
    Detail,
    Gap,
    Heading,
    Matrix,
    MatrixCell,
    Paragraph,
    Section,
    TextTable,
    Verbatim,
    known,
)

TRICK = "<img src=x onerror=alert(1)>|[red]*b*\x1b[31m\u202e"
BLOCKS: list[Block] = [
    Heading(TRICK, "worry"),
    Paragraph(TRICK),
    Paragraph(TRICK, "worry"),
    Bullets([TRICK]),
    TextTable([Column(TRICK, [TRICK], below=[TRICK], marked=[True]), Column("figure", [TRICK])], TRICK),
    TextTable([Column("", ["WORRY"]), Column("check", [TRICK]), Column("says", [TRICK], text=True)], name=1),
    TextTable(
        [Column("check", [TRICK], links=[[CellLink(TRICK, '/calls?"<img>')]]), Column("word", [TRICK], badges=True)]
    ),
    Matrix(TRICK, [TRICK] * 2, [TRICK] * 2, [[None, MatrixCell(TRICK, TRICK, 3, '/calls?"<img>', TRICK)]] * 2),
    Gap(),
    Definitions({TRICK: TRICK}),
    Verbatim(TRICK, TRICK),
    Chart("none"),
    Detail([Paragraph(TRICK)], instead=[Paragraph(TRICK)]),
]


def shown(blocks: list[Block], width: int = 100, *, terminal: bool = True) -> str:
    stream = io.StringIO()
    show(Console(file=stream, width=width, force_terminal=terminal, color_system=None, markup=False), blocks)
    return stream.getvalue()


def test_every_kind_of_block_is_tried_here() -> None:
    assert {type(one) for one in BLOCKS} == set(get_args(Block))


@pytest.mark.parametrize("block", BLOCKS, ids=lambda one: type(one).__name__)
def test_a_text_is_markup_in_no_form(block: Block) -> None:
    page, text = html([block]), markdown([Section("key", "title", [block])])
    assert "<img" not in page
    assert not set("\x1b\u202e") & set(page + text)
    assert "<img" not in text.replace("\\<", "")
    assert "[red]" not in text.replace("\\[", "")
    for width in (60, 100):
        said = shown([block], width) + shown([block], width, terminal=False)
        assert not set("\x1b\u202e") & set(said)
    if "src=x" in page:
        assert "[red]" in "".join(shown([block], 1000).split())


def test_a_short_form_has_what_stands_instead_of_a_detail_and_no_empty_section() -> None:
    blocks = [Detail([Chart("wins"), Paragraph("long")], instead=[Paragraph("short")])]
    assert html(blocks, pictures={"wins": "<svg></svg>"}) == "<svg></svg><p>long</p>"
    sections = [Section("a", "A", blocks), Section("b", "B", [Detail([Paragraph("long")])])]
    assert markdown(sections) == "## A\n\nshort"


def test_columns_of_which_nothing_is_known_and_those_too_wide_for_a_screen_are_left_out() -> None:
    table = TextTable(known([Column("model", ["oak"]), Column("se", [""]), Column("spread", ["1.5"], least_width=80)]))
    assert [column.head for column in table.columns] == ["model", "spread"]
    assert "1.5" in shown([table], 80)
    assert "1.5" not in shown([table], 79)


def test_a_matrix_and_links_are_in_each_form() -> None:
    """A page has addresses and shades, the others the same words."""
    cells = [[None, MatrixCell("57", "55", 6, "/calls?model=1", "oak against elm: 57%")], [MatrixCell("·"), None]]
    blocks: list[Block] = [
        Matrix("Wins", ["oak", "elm"], ["oak", "elm"], cells),
        TextTable([Column("check", ["ties"]), Column("behind it", [""], links=[[CellLink("all", "/calls")]])]),
    ]
    page, text = html(blocks), markdown([Section("key", "title", blocks)])
    assert '<td class="heat6"><a href="/calls?model=1" aria-label="oak against elm: 57%">57' in page
    assert '<td class="n"><a href="/calls">all</a></td>' in page
    assert "| oak |  | 57 (55) |" in text
    assert "| ties | all |" in text
    screen = shown(blocks, terminal=False)
    assert "57 (55)" in screen
    assert screen.split()[-2:] == ["ties", "all"]
