"""The contract of a judge protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from venire.arena.keys import fence
from venire.arena.records import (
    RECORDED,
    Completion,
    Instruction,
    Material,
    Outcome,
    Preference,
    Reply,
    Request,
    Status,
    Trial,
)
from venire.arena.shapes import Shape
from venire.judges import PROTOCOLS, ProtocolEntry
from venire.judges.conversation import advance
from venire.judges.entry import FOREIGN
from venire.judges.safety.sanitize import fenced_texts
from venire.simulation.answer_key import AnswerKey
from venire.simulation.chat_requests import chat_request_of
from venire.simulation.rehearsal import answer_to, check_rehearsal

_OPTIONS = {"max_tokens": "512", "temperature": "0", "repair": "1"}
_NONSENSE = ("Hm.", "<think>1", "{", "[[", "\N{SNOWMAN}", "1 or 2, A or B, who knows?")
_JUDGE = "simulated/gpt-4-0613@1"
_QUESTIONS = 40
_WINS = 0.8
"""Minimum share of pairs that the better of two models, 1,000 Elo points apart, wins with a good judge."""


def check_protocol(name: str) -> None:
    """Check that a registered protocol keeps its contract. Raises AssertionError with the broken rule.

    Its number is unique; its prompts exist; each example is read as declared, and not before its last reply;
    nonsense, a refusal and a truncated reply are outcomes and never errors; texts are inside their fences and no model
    is named; texts that a judge's options prepend are sent. If it can be rehearsed, simulated judges are readable, and
    the better of two very different models wins in both orders: a scale that is read in reverse fails here.

    >>> check_protocol("binary")
    """
    entry = PROTOCOLS[name]
    _check_facts(name, entry)
    _check_examples(name, entry)
    _check_other_replies(name, entry)
    if name != RECORDED:
        _check_request(name, entry)
    if entry.rehearse is not None:
        check_rehearsal(name, _JUDGE, _OPTIONS)
        if entry.shape.pairwise:
            _check_side(name, entry)


def _check_facts(name: str, entry: ProtocolEntry) -> None:
    if PROTOCOLS.package(name) == "venire":
        twins = [other for other in PROTOCOLS if PROTOCOLS[other].number == entry.number and other != name]
        assert not twins, f"{name}: {twins[0]} has the number {entry.number} as well: choose another"
    else:
        assert entry.number == FOREIGN, f"{name}: leave its number out: the store tells it by its name"
    assert entry.expects, f"{name}: expects no reply"
    entry.check(_OPTIONS)
    assert len(entry.texts()) == len(entry.prompts), f"{name}: a prompt is missing"


def _check_examples(name: str, entry: ProtocolEntry) -> None:
    assert entry.examples, f"{name}: has no example of its replies"
    lengths = {len(example.replies) for example in entry.examples}
    assert len(entry.expects) in lengths, f"{name}: no example has {len(entry.expects)} replies, as many as it expects"
    for example in entry.examples:
        assert isinstance(example.reading, entry.shape.reading), f"{name}: {example.reading} is no reading of its shape"
        for count in range(len(example.replies)):
            early = _play(name, entry, example.replies[:count])
            assert isinstance(early, Request), f"{name}: ends after {count} of the replies {example.replies}"
        found = _play(name, entry, example.replies)
        assert isinstance(found, Outcome), f"{name}: goes on after the replies {example.replies}"
        read = (found.status, found.reading)
        assert read == (Status.OK, example.reading), f"{name}: {example.replies} is read as {read}"


def _check_other_replies(name: str, entry: ProtocolEntry) -> None:
    for finish in ("stop", "length", "refusal", "content_filter"):
        for text in ("", *_NONSENSE):
            found = _play(name, entry, [Reply(text, finish)] * (2 * len(entry.expects) + 4))
            assert isinstance(found, Outcome), f"{name}: does not end after many replies {text!r} ({finish})"
            refused = finish in ("refusal", "content_filter")
            assert not refused or found.status is not Status.OK, f"{name}: reads a reply that was refused: {text!r}"


def _check_request(name: str, entry: ProtocolEntry) -> None:
    shown = _material(entry.shape)
    request = _play(name, entry, ())
    assert isinstance(request, Request)
    assert request.messages, f"{name}: sends no message"
    sent = "\n".join(message["content"] for message in request.messages)
    named = [one.model for one in shown.shown if one.model in sent]
    assert not named, f"{name}: its request names the model {named[:1]}"
    texts = fenced_texts(sent)
    for completion in shown.shown:
        times = texts.count(completion.text)
        assert times == 1, f"{name}: a completion stands {times} times in a fence of its own (prompts.show_completion)"
    with_system = _play(name, entry, (), {**_OPTIONS, "system": "Be fair."})
    assert isinstance(with_system, Request)
    first = with_system.messages[0]
    assert first == {"role": "system", "content": "Be fair."}, f"{name}: wrap its conversation in prompts.with_options"


def _check_side(name: str, entry: ProtocolEntry) -> None:
    """Check that a good model beats a bad model in both orders."""
    texts = [
        (f"q{n}", f"Question {n}?", model, f"The {model} answer to question {n}.")
        for n in range(_QUESTIONS)
        for model in ("good", "poor")
    ]
    key = AnswerKey(texts, {"good": 1500.0, "poor": 500.0})
    for order, sign in ((("good", "poor"), 1), (("poor", "good"), -1)):
        readings = [_rehearsed(name, entry, n, order, key) for n in range(_QUESTIONS)]
        read = [one for one in readings if isinstance(one, Preference)]
        assert len(read) >= _WINS * _QUESTIONS, f"{name}: {len(read)} of {_QUESTIONS} simulated replies can be read"
        won = sum(one.winner == sign for one in read) / len(read)
        assert won >= _WINS, f"{name}: in the order {order} the better model wins {won:.0%} of rehearsed trials"


def _rehearsed(name: str, entry: ProtocolEntry, n: int, order: tuple[str, str], key: AnswerKey) -> object:
    answers = tuple(Completion(model, f"q{n}", f"The {model} answer to question {n}.") for model in order)
    question = Instruction(f"q{n}", (f"Question {n}?",), reference="None.")
    fences = tuple(fence(text, bytes(16)) for text in (question.turns[0], *(one.text for one in answers)))
    material, replies = Material(question, answers, fences), list[Reply]()
    trial = Trial(bytes(16), bytes(16), name, question.id, ())
    while isinstance(found := advance(entry.talk, trial, material, _OPTIONS, replies), Request):
        said = answer_to(chat_request_of(_JUDGE, found, structured=False), key)
        replies.append(Reply(said.text, said.finish, output_tokens=said.tokens))
    return found.reading


def _material(shape: Shape) -> Material:
    texts = ("Which river is longest?", *(f"The river number {n}." for n in range(shape.size(3))))
    shown = tuple(Completion(f"model-number-{n}", "i", text) for n, text in enumerate(texts[1:]))
    return Material(
        Instruction("i", texts[:1], "The Volga, of them."), shown, tuple(fence(one, bytes(16)) for one in texts)
    )


def _play(
    name: str, entry: ProtocolEntry, replies: Sequence[str | Reply], options: Mapping[str, str] = _OPTIONS
) -> Request | Outcome:
    said = [Reply(one) if isinstance(one, str) else one for one in replies]
    trial = Trial(bytes(16), bytes(16), name, "i", (), 3)
    return advance(entry.talk, trial, _material(entry.shape), options, said)
