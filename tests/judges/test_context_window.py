"""What is said to fit fits, and what does not is cut where the judge's options say so, visibly and to one budget."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire.arena.errors import PromptSize
from venire.arena.records import UNSENT, Material, Outcome, Reply, Request, Status, Trial
from venire.judges import PROTOCOLS, context_window
from venire.judges.context_window import TRUNCATIONS, context_after_refusal, fits, tokens_left
from venire.judges.conversation import advance
from venire.judges.providers.token_counting import counter
from venire.judges.safety.sanitize import fenced_texts, sanitize

Say = Callable[..., Request | Outcome]
Make = Callable[..., Material]

MARK = re.compile(r"\[\.\.\. ([0-9,]+) characters cut \.\.\.\]")
LONG = " ".join(f"The {number}th river of this list is longer than the one before it." for number in range(400))
OTHER = " ".join(f"Nobody knows how long number {number} is, however often it was measured." for number in range(300))


def options(policy: str, context: int, vocabulary: str = "cl100k_base") -> dict[str, str]:
    return {"too_long": policy, "context": str(context), "vocabulary": vocabulary}


def request(*texts: str, max_tokens: int = 100) -> Request:
    return Request(tuple({"role": "user", "content": text} for text in texts), max_tokens)


def exact(asked: Request) -> int:
    """Tokens of a request as OpenAI counts them, with those around its messages and of the whole reply."""
    return sum(4 + counter("cl100k_base")(m["content"]) for m in asked.messages) + 3 + asked.max_tokens


@pytest.mark.parametrize("vocabulary", ["cl100k_base", "estimate"])
@pytest.mark.parametrize("text", [LONG, "の" * 900, "🎉" * 700, "x" * 5000, "{}();\n" * 900, "7 " * 900])
def test_what_is_said_to_fit_does_fit(text: str, vocabulary: str) -> None:
    asked = request("Be brief.", text)
    least = next(context for context in range(100, 100_000, 50) if fits(asked, context, vocabulary))
    assert exact(asked) <= least
    if vocabulary != "estimate":  # and hardly anything that would fit is refused
        assert least <= exact(asked) + 100


def test_texts_are_not_counted_where_their_length_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context_window, "count_tokens", lambda *_: pytest.fail("counted"))
    assert fits(request(LONG), 4 * len(LONG) + 200, "cl100k_base")
    assert fits(request(LONG), len(LONG) + 200, "cl100k_base")
    assert not fits(request("short"), 90, "cl100k_base")


def test_the_reply_a_schema_and_every_message_take_their_part_of_the_context() -> None:
    asked = request("a", "b")
    assert tokens_left(asked, 1000) > tokens_left(request("a", "b", "c"), 1000)
    with_schema = replace(asked, schema={"type": "object", "properties": {"winner": {"enum": ["first", "second"]}}})
    tight = next(context for context in range(100, 200) if fits(asked, context, "cl100k_base"))
    assert not fits(with_schema, tight + 10, "cl100k_base")
    assert tokens_left(asked, 1000) - 100 == tokens_left(replace(asked, max_tokens=200), 1000)


@pytest.mark.parametrize("policy", TRUNCATIONS)
@pytest.mark.parametrize(
    "protocol", [name for name, one in PROTOCOLS.items() if one.prompts and not one.needs_reference]
)
def test_what_is_cut_fits_is_marked_and_says_how_much_is_missing(
    say: Say, material: Make, protocol: str, policy: str
) -> None:
    shape = PROTOCOLS[protocol].shape
    shown = material(*{1: (LONG,), 2: (LONG, OTHER)}.get(shape.size(3), (LONG, "Short.", OTHER)))
    whole, context = say(protocol, shown=shown), 3000
    asked = say(protocol, shown=shown, options=options(policy, context))
    assert isinstance(whole, Request)
    assert isinstance(asked, Request)
    assert exact(whole) > context >= exact(asked)
    text = "\n".join(message["content"] for message in asked.messages)
    missing = [int(found.replace(",", "")) for found in MARK.findall(text)]
    assert asked.cut == sum(missing) > 0
    for place, one in enumerate(fenced_texts(text)[1:]):
        original = shown.shown[place].text
        if place == 1 and protocol == "listwise":
            assert one == original  # within the budget
        for found in MARK.finditer(one):
            head, tail = one[: found.start()].rstrip("\n"), one[found.end() :].lstrip("\n")
            assert original.startswith(head)
            assert original.endswith(tail)
            assert bool(tail) == (policy == "middle")
            assert len(head) + len(tail) + int(found[1].replace(",", "")) == pytest.approx(len(original), abs=2)


@pytest.mark.parametrize("policy", TRUNCATIONS)
def test_what_a_short_text_leaves_goes_to_the_long_one(say: Say, material: Make, policy: str) -> None:
    asked = say("binary", shown=material("Short.", LONG), options=options(policy, 2000))
    assert isinstance(asked, Request)
    assert fenced_texts(asked.messages[0]["content"])[1] == "Short."
    assert 1850 < exact(asked) <= 2000


@pytest.mark.parametrize("policy", TRUNCATIONS)
def test_all_texts_are_cut_to_one_budget_in_either_order(say: Say, material: Make, policy: str) -> None:
    count = counter("cl100k_base")
    budgets = []
    for texts in ((LONG, OTHER), (OTHER, LONG)):
        asked = say("binary", shown=material(*texts), options=options(policy, 2000))
        assert isinstance(asked, Request)
        sizes = [count(one) for one in fenced_texts(asked.messages[0]["content"])[1:]]
        assert max(sizes) - min(sizes) < 30
        budgets.append(asked.cut)
        assert exact(asked) > 1850  # no more was cut than had to be
    assert budgets[0] == budgets[1]


def test_a_cut_text_keeps_the_fence_of_the_whole_text(say: Say, material: Make) -> None:
    shown = material(LONG, OTHER)
    whole, cut = say("binary", shown=shown), say("binary", shown=shown, options=options("middle", 2000))
    fences = [re.findall("<<<([0-9a-f]{16})", asked.messages[0]["content"]) for asked in (whole, cut)]
    assert fences[0] == fences[1] == list(shown.fences)


def test_a_trial_that_fits_has_the_same_request_whatever_the_policy(say: Say) -> None:
    plain = say("two-stage")
    assert all(say("two-stage", options=options(policy, 4000)) == plain for policy in (*TRUNCATIONS, "error"))


def test_the_policy_error_shows_texts_whole(say: Say, material: Make) -> None:
    shown = material(LONG, OTHER)
    assert say("binary", shown=shown, options=options("error", 2000)) == say("binary", shown=shown)


def test_where_the_first_step_is_cut_there_is_room_for_the_second(say: Say, material: Make) -> None:
    shown, settings = material(LONG, OTHER), options("truncate-both", 4000)
    reasons = Reply(" ".join(["reasons"] * 500), output_tokens=512)
    first = say("two-stage", shown=shown, options=settings)
    second = say("two-stage", reasons, shown=shown, options=settings)
    assert isinstance(first, Request)
    assert isinstance(second, Request)
    assert second.messages[0] == first.messages[0]  # no other prompt than the one that the reasons are about
    assert exact(second) <= 4000
    assert 0 < second.cut == first.cut


def test_a_step_that_is_longer_than_the_one_before_is_cut_when_it_is_reached(say: Say, material: Make) -> None:
    shown, settings = material(LONG[:3500], OTHER[:3500]), options("truncate-both", 2700)
    reasons = Reply(" ".join(["reasons"] * 500), output_tokens=512)
    first = say("two-stage", shown=shown, options=settings)
    second = say("two-stage", reasons, shown=shown, options=settings)
    assert isinstance(first, Request)
    assert isinstance(second, Request)
    assert first.cut == 0 < second.cut
    assert exact(second) <= 2700
    assert second.messages[1]["content"] == reasons.text
    repair = say("two-stage", reasons, "Hm.", shown=shown, options=settings)
    assert isinstance(repair, Request)
    assert exact(repair) <= 2700
    ended = say("two-stage", reasons, "1", shown=shown, options=settings)
    assert isinstance(ended, Outcome)
    assert ended.status is Status.OK


@pytest.mark.parametrize("policy", TRUNCATIONS)
def test_a_trial_whose_instruction_alone_is_too_long_is_too_long(say: Say, material: Make, policy: str) -> None:
    shown = material("A.", LONG, turns=(OTHER,))
    assert say("binary", shown=shown, options=options(policy, 1500)) == Outcome(Status.TOO_LONG, rule=UNSENT)


def test_a_contestants_instruction_is_never_cut(say: Say, material: Make) -> None:
    ended = say("generate", shown=material(turns=(LONG,)), options=options("middle", 1000))
    assert ended == Outcome(Status.TOO_LONG, rule=UNSENT)


@given(
    st.lists(st.text(max_size=40).map(lambda text: text * 60), min_size=2, max_size=2),
    st.integers(900, 3000),
    st.sampled_from(sorted(TRUNCATIONS)),
)
def test_any_texts_are_cut_to_fit_or_the_trial_is_too_long(
    material: Make, texts: list[str], context: int, policy: str
) -> None:
    shown = material(*(text.encode(errors="replace").decode() for text in texts))
    settings_ = {"max_tokens": "200", **options(policy, context)}
    trial = Trial(bytes(16), bytes(16), "five-point", "i", (), 1)
    found = [advance(PROTOCOLS["five-point"].talk, trial, shown, settings_, ()) for _ in range(2)]
    assert found[0] == found[1]
    assert isinstance(found[0], Outcome) or exact(found[0]) <= context


@pytest.mark.parametrize("vocabulary", ["cl100k_base", "estimate"])
def test_a_text_of_several_scripts_keeps_as_many_tokens_as_the_budget_has(vocabulary: str) -> None:
    count = counter(vocabulary)
    for whole in (LONG[:8000] + "長江是這裡最長的河流。" * 400, "長江是這裡最長的河流。" * 400 + LONG[:8000]):
        size = count(sanitize(whole))
        for budget in (400, 1500, 3000):
            for cut in TRUNCATIONS.values():
                text, gone = context_window._cut_one(whole, budget, size, vocabulary, cut)
                assert 0.9 * budget <= count(sanitize(text)) <= budget
                assert gone > 0


@pytest.mark.parametrize("size", [None, PromptSize(9000, 4000), PromptSize(4001, 4000, at_least=True)])
def test_a_context_after_a_refusal_is_smaller_and_never_below_what_surely_fits(size: PromptSize | None) -> None:
    refused = request(LONG, max_tokens=300)
    context = context_after_refusal(refused, 4000, "cl100k_base", size)
    assert not fits(refused, context, "cl100k_base")
    dense = request("x" * 100, max_tokens=300)
    assert fits(dense, context, "cl100k_base")
