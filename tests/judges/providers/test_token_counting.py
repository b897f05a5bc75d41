"""Tokens are counted without a network, exactly where the vocabulary is at hand and not too low elsewhere."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from venire.judges.providers.token_counting import (
    MARGIN,
    TOKEN_KINDS,
    counter,
    estimate_at_most,
    estimate_by_pieces,
    vocabulary_of,
)

PROSE = "The Volga, in Russia, is the longest river of Europe: it flows 3,531 km to the Caspian Sea.\n"
CODE = "def f(x: int) -> int:\n    return [y ** 2 for y in range(x) if y % 2][:-1]  # odd squares\n"
SAMPLES = {
    "prose": (PROSE, 28, 28),
    "code": (CODE, 36, 36),
    "Russian": ("Волга впадает в Каспийское море.", 19, 12),
    "Chinese": ("伏尔加河是欧洲最长的河流。", 18, 11),
    "emoji": ("🎉🎉🎉", 9, 6),
}


@pytest.mark.parametrize(
    ("model", "vocabulary"),
    [
        ("gpt-4o-mini", "o200k_base"),
        ("openai/gpt-4.1", "o200k_base"),
        ("gpt-oss-120b", "o200k_base"),
        ("gpt-4-1106-preview", "cl100k_base"),
        ("gpt-3.5-turbo", "cl100k_base"),
        ("claude-sonnet-4-5", "estimate"),
        ("text-davinci-003", "estimate"),  # its vocabulary is not at hand
        ("meta-llama/Llama-3.1-8B-Instruct", "estimate"),
    ],
)
def test_openais_models_are_counted_in_their_own_vocabulary(model: str, vocabulary: str) -> None:
    assert vocabulary_of(model) == vocabulary


@pytest.mark.parametrize("name", SAMPLES)
def test_a_vocabulary_that_is_at_hand_counts_exactly(name: str) -> None:
    text, in_cl100k, in_o200k = SAMPLES[name]
    assert (counter("cl100k_base")(text), counter("o200k_base")(text)) == (in_cl100k, in_o200k)


def test_nothing_is_fetched_and_litellm_is_not_imported() -> None:
    script = (
        "import socket, sys\n"
        "def refuse(*_): raise RuntimeError('a socket was used')\n"
        "socket.socket.__init__ = refuse\n"
        "from venire.judges.providers.token_counting import counter\n"
        "counts = [counter(name)('Longest river?') for name in ('cl100k_base', 'o200k_base', 'no such name')]\n"
        "print(counts, 'litellm' in sys.modules, 'requests' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == f"[4, 3, {estimate_at_most('Longest river?')}] False False\n"


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("times", [1, 50])
def test_the_estimate_with_its_margin_is_not_below_the_count(name: str, times: int) -> None:
    text = SAMPLES[name][0] * times
    assert counter("cl100k_base")(text) <= estimate_at_most(text) <= len(text.encode())


@pytest.mark.parametrize("name", ["prose", "code"])
def test_the_estimate_of_english_and_code_is_near_the_count(name: str) -> None:
    text = SAMPLES[name][0] * 20
    assert estimate_by_pieces(text) == pytest.approx(counter("cl100k_base")(text), rel=0.15)
    assert MARGIN > 1


@pytest.mark.parametrize("kind", TOKEN_KINDS, ids=lambda kind: kind.name)
def test_every_kind_finds_its_example(kind) -> None:
    assert kind.pattern.search(kind.example)


@pytest.mark.parametrize("apart", [31, pytest.param(1, marks=pytest.mark.slow)])
def test_every_character_but_a_single_space_has_a_weight(apart: int) -> None:
    assigned = (*range(0x3400), *range(0xA000, 0xAC00), *range(0xF900, 0x1FC00), *range(0xE0000, 0xE0200))
    looked = sorted({*assigned, *range(0, 0x110000, apart)})
    light = [code for code in looked if not 0xD800 <= code < 0xE000 and not estimate_by_pieces(chr(code))]
    assert [chr(code) for code in light] == ["\t", " "]


@pytest.mark.parametrize("text", ["a", "ab ", " ", "\n", "=-", "语", "A", "7", "\ud800"])
def test_counting_takes_no_longer_for_a_text_made_to_be_slow(text: str) -> None:
    start = time.perf_counter()
    assert 0 < estimate_by_pieces(text * 200_000) <= estimate_at_most(text * 200_000)
    assert time.perf_counter() - start < 5
