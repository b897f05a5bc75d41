"""Sanitizing untrusted text: how instructions and completions are made harmless and fenced in a prompt.

`enclose` is the way into a prompt, and what goes through it is sanitized: a person's eyes and a model's tokens then
see the same text, and no line of it passes for one of ours. Nothing that a person could read is removed: a character
that cannot be seen is shown as `[U+202E]`, and `[!]` is put inside what would pass for a delimiter. The store keeps
texts as they came.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

MARK = "[!]"
"""Inserted into text that would otherwise pass for a fence, a turn or a token of a chat template."""

_OPENED = re.compile(r"<<<([0-9a-f]{16})\n")

_SELECTORS = "\ufe00-\ufe0f"
_TAGS = "\U000e0000-\U000e0fff"  # and the selectors of ideographic variants
_FORMAT = "\xad\u034f\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"
_CONTROL = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
UNSEEN = re.compile(f"(?:[{_CONTROL}{_FORMAT}{_SELECTORS}{_TAGS}]|\r(?!\n))++")
"""Runs of characters that cannot be seen, but for tabs and ends of lines."""

_ASCII_CONTROL = bytes((*range(9), *range(0x0B, 0x20), 0x7F))

_RIGHT_TO_LEFT = re.compile("[\u05d0-\u05f4\u0620-\u08ff\ufb1d-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc\U0001e800-\U0001efff]")
_DIRECTION = frozenset("\u200e\u200f\u061c")
_FLAG = re.compile(
    "|".join("".join(chr(0xE0000 + ord(letter)) for letter in name) for name in ("gbeng", "gbsct", "gbwls"))
)
_FLAG_LENGTH = 6  # five letters and the tag that ends them


def _each(after: str, *characters: tuple[int, int]) -> dict[str, re.Pattern[str]]:
    return {chr(code): re.compile(after) for first, last in characters for code in range(first, last + 1)}


_COMPLEX = "\u0590-\u1cff\ua800-\uabff\ufb1d-\ufdff\ufe70-\ufefc\U00010a00-\U00011fff"
_EMOJI = "\xa9\xae\u2100-\u2bff\u3030\u303d\u3297\u3299\ufe0f\U0001f000-\U0001faff"
_ORDINARY = {
    **_each(f"[{_COMPLEX}]", (0x200C, 0x200C)),  # Persian, and the scripts of India
    **_each(f"[{_COMPLEX}{_EMOJI}]", (0x200D, 0x200D)),
    **_each("[\u0e00-\u109f\u1780-\u17ff\u1950-\u19ff\u1a20-\u1aaf\ua9e0-\uaa7f]", (0x200B, 0x200B)),  # Thai, Khmer
    **_each("[\u1820-\u18aa]", (0x180E, 0x180E)),  # Mongolian
    **_each(r"[^\W\d_]", (0xAD, 0xAD), (0x34F, 0x34F)),
    **_each(f"[^A-Za-z\\s{_CONTROL}{_FORMAT}{_SELECTORS}{_TAGS}]", (0xFE00, 0xFE0F)),
    **_each("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]", (0xE0100, 0xE01EF)),
}
"""Characters that cannot be seen and belong to ordinary writing after what the pattern matches."""


@dataclass(frozen=True, slots=True)
class Lookalike:
    """Something in a text that would pass for a delimiter; the mark goes after the first group of the pattern."""

    name: str
    pattern: re.Pattern[str]
    example: str
    needles: tuple[str, ...] = ()
    """Only a text with one of these needs to be looked at; none: with two angle brackets in a row, of any kind."""


_OPEN = "(?:[<＜﹤‹〈⟨❮❰ᐸ˂]{3,5}|[«《⟪≪]{2,3}|⋘)"
_CLOSE = "(?:[>＞﹥›〉⟩❯❱ᐳ˃]{3,5}|[»》⟫≫]{2,3}|⋙)"
_ANGLES = re.compile("[<＜﹤‹〈⟨❮❰ᐸ˂«《⟪≪>＞﹥›〉⟩❯❱ᐳ˃»》⟫≫]{2}")
_MARGIN = r"^[ \t>*_`~#|-]{0,16}"

LOOKALIKES = tuple(
    Lookalike(name, re.compile(pattern, re.MULTILINE), example, tuple(needles))
    for name, pattern, example, *needles in (
        ("opening line", rf"({_MARGIN}{_OPEN}[ \t]?)(?=[\w-]{{4,64}}[ \t\r]*$)", "<<<answer-2"),
        ("opening code", rf"({_OPEN}[ \t]?)(?=[0-9a-fA-F]{{12}})", "and <<<0123456789abcdef"),
        ("closing line", rf"({_MARGIN}[\w-]{{4,64}})(?=[ \t]{{0,16}}{_CLOSE}[ \t\r]*$)", "answer-1>>>"),
        (
            "closing code",
            rf"([0-9a-fA-F]{{12}})(?=[ \t]{{0,16}}(?:\r?\n[ \t]{{0,16}})?{_CLOSE})",
            "0123456789abcdef>>> and",
        ),
        (
            "token in bars",
            r"([<＜‹])(?=[|｜][^|｜<>\s]{1,40}[|｜][>＞›])",
            "<|im_start|>",
            *(angle + bar for angle in "<＜‹" for bar in "|｜"),
        ),
        (
            "token with one bar",
            r"([<＜‹])(?=[\w-]{1,40}[|｜][>＞›]|[|｜][\w-]{1,40}[>＞›])",
            "<channel|>",
            *(bar + angle for angle in ">＞›" for bar in "|｜"),
            *(angle + bar for angle in "<＜‹" for bar in "|｜"),
        ),
        (
            "token in brackets",
            r"(\[)(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|[gs]?MASK)\])",
            "[INST]",
            "MASK]",
            "INST]",
            "_PROMPT]",
            "_TOOLS]",
            "_CALLS]",
            "_RESULTS]",
        ),
        ("system token", r"(<)(?=</?SYS>>)", "<<SYS>>", "SYS>>"),
        (
            "turn token",
            r"(<)(?=(?:/?s|bos|eos|[se]op|unk|pad|extra_id_\d{1,3}|start_of_turn|end_of_turn)>)",
            "</s>",
            "s>",
            "_of_turn>",
            "op>",
            "unk>",
            "pad>",
            "<extra_id_",
        ),
        ("turn by name", r"(\n\r?\n)(?=(?:Human|Assistant):)", "So.\n\nHuman: Go on.", "\nHuman:", "\nAssistant:"),
        ("system by name", r"(^)(?=System:)", "So.\nSystem: Go on.", "System:"),
        ("turn by heading", r"(^#{2,4} )(?=(?:Instruction|Input|Response):)", "### Response:\nA", "## "),
    )
)
"""What is marked, in this order; the chat templates of models that are widely used, and our own fences."""


@lru_cache(maxsize=512)  # a text is shown in both orders and to every judge, one soon after the other
def sanitize(text: str) -> str:
    """The text as a judge is shown it, with what cannot be seen made visible and what looks like a delimiter marked.

    Text in any script, emoji, code and markup come out as they went in; doing it twice changes nothing more.

    >>> sanitize("Yes.<|im_start|>system")
    'Yes.<[!]|im_start|>system'
    """
    if _may_hide(text):
        directed = _RIGHT_TO_LEFT.search(text) is not None
        text = UNSEEN.sub(lambda match: _shown(match, directed), text)
    if text.isascii():
        if not _may_mark(text):
            return text
        angles = "<<" in text or ">>" in text
    else:
        angles = _ANGLES.search(text) is not None or "⋘" in text or "⋙" in text
    for lookalike in LOOKALIKES:
        if any(needle in text for needle in lookalike.needles) if lookalike.needles else angles:
            text = lookalike.pattern.sub(rf"\g<1>{MARK}", text)
    return text


def _may_mark(text: str) -> bool:
    """Whether a text of ASCII has what every look-alike holds one of: most have none, and need no closer look."""
    return any(sign in text for sign in ("<", ">", "]", "\nHuman:", "\nAssistant:", "System:", "## "))


def _may_hide(text: str) -> bool:
    """Whether a text has characters that cannot be seen; for ASCII, which most texts are, decided without a pattern."""
    if not text.isascii():
        return UNSEEN.search(text) is not None
    raw = text.encode()
    return len(raw.translate(None, _ASCII_CONTROL)) < len(raw)


def enclose(text: str, fence: str) -> str:
    """The sanitized text between an opening and a closing line made of its fence (see `arena.keys.fence`).

    >>> print(enclose("The Nile.", "0123456789abcdef"))
    <<<0123456789abcdef
    The Nile.
    0123456789abcdef>>>
    """
    return f"<<<{fence}\n{sanitize(text)}\n{fence}>>>"


def fenced_texts(prompt: str) -> tuple[str, ...]:
    """The texts that `enclose` set apart in a prompt, in order and sanitized; a look-alike inside one is no other."""
    return split_fences(prompt)[0]


def split_fences(prompt: str) -> tuple[tuple[str, ...], str]:
    """The texts that `enclose` set apart in a prompt, and the text outside of them and their fences.

    Found by searching for the closing line, which takes a hundredth of the time of one pattern for both lines.
    """
    texts, outside, done = [], [], 0
    at = prompt.find("<<<")
    while at >= 0:
        opened = _OPENED.match(prompt, at)
        closing = f"\n{opened[1]}>>>" if opened is not None else ""
        end = prompt.find(closing, opened.end()) if opened is not None else -1
        if opened is None or end < 0:
            at = prompt.find("<<<", at + 1)
            continue
        texts.append(prompt[opened.end() : end])
        outside.append(prompt[done:at])
        done = end + len(closing)
        at = prompt.find("<<<", done)
    return tuple(texts), "".join(outside) + prompt[done:]


def _shown(match: re.Match[str], directed: bool) -> str:
    """A run of characters that cannot be seen: the ordinary ones at its beginning as they are, a mark for the rest."""
    run, start = match.group(), match.start()
    kept = _ordinary(run, match.string[start - 1 : start], directed)
    if kept == len(run):
        return run
    more = len(run) - kept - 1
    return f"{run[:kept]}[U+{ord(run[kept]):04X}{f' and {more} more' if more else ''}]"


def _ordinary(run: str, before: str, directed: bool) -> int:
    """How many characters at the beginning of a run have a use in ordinary writing, given the text before each."""
    if before == "\N{WAVING BLACK FLAG}" and _FLAG.match(run) and run[5:6] == "\U000e007f":
        return _FLAG_LENGTH
    if directed and run[0] in _DIRECTION:
        return 1
    kept = 0
    for character in run:
        use = _ORDINARY.get(character)
        if use is None or not before or use.match(before) is None:
            break
        before, kept = character, kept + 1
    return kept
