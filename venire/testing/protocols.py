"""The contract of a judge protocol."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np

from venire.arena.battles import Battles
from venire.arena.clock import VirtualClock
from venire.arena.errors import InputError
from venire.arena.keys import fence
from venire.arena.records import (
    EDIT,
    GENERATE,
    RECORDED,
    Completion,
    Instruction,
    Material,
    Outcome,
    Reply,
    Request,
    Status,
    Trial,
)
from venire.arena.shapes import Shape
from venire.embedded import Embedded
from venire.judges import PROTOCOLS, ProtocolEntry
from venire.judges.conversation import advance
from venire.judges.entry import FOREIGN
from venire.judges.orientation import BOTH_ORDERS
from venire.judges.safety.sanitize import fenced_texts
from venire.orchestrator.recording.ending import Ending
from venire.prompts import render_request
from venire.render.plan import show_plan
from venire.render.screen import console
from venire.reports.board.stored import choose_campaign, read_campaign
from venire.session import Session
from venire.simulation.rehearsal import check_rehearsal
from venire.storage.plans.trial_states import load, pending_trials
from venire.storage.read.judge_quality import judge_readability
from venire.testing.campaigns import JUDGE, small_campaign

_OPTIONS = {"max_tokens": "512", "temperature": "0", "repair": "1"}
_NONSENSE = ("Hm.", "<think>1", "{", "[[", "\N{SNOWMAN}", "1 or 2, A or B, who knows?")
_MODELS = 3
"""Where all answers are shown at once, the campaign has one more."""
_INSTRUCTIONS = 6
_GAP = 300.0
"""Elo points between neighbours."""
_SHARE = 0.8
"""Minimum share of simulated replies that are read, and of comparisons at twice the gap that the better model wins."""


def check_protocol(name: str) -> None:
    """Check that a registered protocol keeps its contract. Raises AssertionError with the broken rule.

    Its number is unique; its prompts exist; each example is read as declared, and not before its last reply;
    nonsense, a refusal and a truncated reply are outcomes and never errors; texts are inside their fences and no model
    is named; texts that a judge's options prepend are sent. A small campaign is planned, forecast and printed as its
    shape says. If it can be rehearsed, that campaign runs to its end: simulated judges are readable, all models are on
    the board, and much better ones win, in both orders: a scale that is read in reverse fails here.

    >>> check_protocol("binary")
    """
    entry = PROTOCOLS[name]
    _check_facts(name, entry)
    _check_examples(name, entry)
    _check_other_replies(name, entry)
    if name != RECORDED:
        _check_request(name, entry)
    try:
        if not entry.shape.writes and name != RECORDED:
            _check_campaign(name, entry)
        elif entry.rehearse is not None:
            check_rehearsal(name, JUDGE, _OPTIONS)
    except InputError as error:
        raise AssertionError(f"{name}: {error}") from error


def _check_facts(name: str, entry: ProtocolEntry) -> None:
    if PROTOCOLS.package(name) == "venire":
        twins = [other for other in PROTOCOLS if PROTOCOLS[other].number == entry.number and other != name]
        assert not twins, f"{name}: {twins[0]} has the number {entry.number} as well: choose another"
    else:
        assert entry.number == FOREIGN, f"{name}: leave its number out: the store tells it by its name"
        assert not entry.shape.writes, f"{name}: completions are written by {GENERATE!r} and {EDIT!r} alone"
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


def _check_campaign(name: str, entry: ProtocolEntry) -> None:
    """Plan a small campaign, forecast and print it, and where the protocol can be rehearsed, run and rate it."""
    number = entry.shape.size(_MODELS) + 1
    elo = {f"model-{chr(ord('a') + n * 7 % 26)}": 1000.0 + _GAP * (n - number // 2) for n in range(number)}
    judge = {} if entry.rehearse is not None else {"model": "judge", "base_url": "http://127.0.0.1:9/v1"}
    with tempfile.TemporaryDirectory() as scratch:
        campaign = small_campaign(Path(scratch), elo, _INSTRUCTIONS, name, **judge)
        with Session(campaign, clock=VirtualClock()) as session:
            _check_plan(name, entry, session, number)
            if entry.rehearse is not None:
                _check_run(name, entry, session, elo)
        assert render_request(campaign, None, 1).request.messages, f"{name}: a planned trial has no request to show"


def _check_plan(name: str, entry: ProtocolEntry, session: Session, models: int) -> None:
    trials = _INSTRUCTIONS * entry.shape.trials(models, models * (models - 1) // 2)
    pending = pending_trials(session.store, session.planned.id).trials
    assert len(pending) == trials, f"{name}: {len(pending)} trials are planned, not {trials}"
    sizes = {len(one.shown) for one in load(session.store, pending)}
    assert sizes == {entry.shape.size(models)}, f"{name}: its trials show {sizes} completions"
    forecast, (long,) = session.forecast(), session.forecast_long()
    calls = trials * len(entry.expects)
    assert forecast.whole.calls == calls, f"{name}: {forecast.whole.calls} calls are forecast, not {calls}"
    assert not long.too_long, f"{name}: {long.too_long} trials are forecast to be too long for their judge"
    with redirect_stdout(StringIO()) as printed:
        show_plan(console(), session, forecast)
    assert f"= {trials:,} trials" in printed.getvalue(), f"{name}: its plan is printed as {printed.getvalue()!r}"


def _check_run(name: str, entry: ProtocolEntry, session: Session, elo: Mapping[str, float]) -> None:
    summary = session.run(embedded=Embedded(direct=True))
    (judge,) = judge_readability(session.store, session.planned.id)
    assert judge.read >= _SHARE * judge.settled, f"{name}: {judge.read} of {judge.settled} simulated replies are read"
    assert summary.ending is Ending.COMPLETE, f"{name}: a rehearsed campaign ends {summary.ending.value}"
    board = session.board()
    if entry.shape.grades:
        assert board.grades is not None, f"{name}: its grades are on no board"
        return
    assert {row.model for row in board.models} == set(elo), f"{name}: a model is not on the board"
    _check_sides(name, read_campaign(session.store, choose_campaign(session.store, None)).battles, elo, entry.shape)


def _check_sides(name: str, battles: Battles, elo: Mapping[str, float], shape: Shape) -> None:
    """See that much better models win: a scale that is read in reverse, or in one order alone, does not pass."""
    points = np.array([elo[model] for model in battles.models])
    gap = points[battles.model_a] - points[battles.model_b]
    clear = (battles.status == Status.OK) & (np.abs(gap) >= 2 * _GAP)
    for swapped in BOTH_ORDERS if shape.pairwise else (None,):
        shown = clear if swapped is None else clear & (battles.swapped == swapped)
        won = float((battles.label == np.sign(gap))[shown].mean())
        order = "" if swapped is None else f" with {'B' if swapped else 'A'} shown first"
        assert won >= _SHARE, f"{name}: much better models win {won:.0%} of rehearsed comparisons{order}"


def _material(shape: Shape) -> Material:
    texts = ("Which river is longest?", *(f"The river number {n}." for n in range(shape.size(_MODELS))))
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
