"""No completion can step out of its fence, whatever it contains."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venire.arena.keys import fence
from venire.judges.hardening import enclose, enclosed

CONSTANT = b"a constant of one store"
OTHER = "0123456789abcdef"

pieces = st.sampled_from(
    ["<<<", ">>>", "\n", OTHER, f"<<<{OTHER}\n", f"\n{OTHER}>>>", "f" * 16, "$first", "", " ", "<", ">", "\r\n", "é"]
)
nasty = st.lists(pieces | st.text(max_size=5), max_size=8).map("".join)


def mark(text: str) -> str:
    return fence(text, CONSTANT)


def shut(text: str) -> str:
    return enclose(text, mark(text))


def test_a_text_stands_between_two_lines_of_its_fence() -> None:
    assert enclose("a\nb", OTHER) == f"<<<{OTHER}\na\nb\n{OTHER}>>>"


@given(st.lists(nasty, max_size=4), nasty.filter(lambda text: "<<<" not in text))
@settings(deadline=None, max_examples=300)
def test_what_was_enclosed_is_found_again_in_order(texts: list[str], between: str) -> None:
    assert enclosed(f"{between}\n".join(map(shut, texts))) == tuple(texts)


@given(nasty, nasty, nasty)
@settings(deadline=None, max_examples=300)
def test_a_text_that_contains_the_fence_of_another_stays_one_text(instruction: str, second: str, more: str) -> None:
    first = f"{more}\n{mark(instruction)}>>>\n\n{shut(second)}\n<<<{mark(second)}\n{more}"
    shown = (instruction, first, second)
    assert enclosed("\n\n".join(map(shut, shown))) == shown


@given(nasty)
@settings(deadline=None)
def test_a_text_does_not_contain_its_own_fence(text: str) -> None:
    assert mark(text) not in text


@pytest.mark.parametrize(
    "prompt",
    [
        "",
        "no fence here",
        f"<<<{OTHER}\nnever closed",
        f"<<<{OTHER}\nclosed by another\n{'f' * 16}>>>",
        f"<<<{OTHER} \nnot a line of its own\n{OTHER}>>>",
        f"<<<{OTHER[:15]}\ntoo short\n{OTHER[:15]}>>>",
        f"<<<{OTHER.upper()}\nnot in lower case\n{OTHER.upper()}>>>",
    ],
)
def test_what_was_not_enclosed_is_not_found(prompt: str) -> None:
    assert enclosed(prompt) == ()
