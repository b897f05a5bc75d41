"""Prompts for eyes: the list of them, how a campaign's differ, and the messages of a trial."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console

from venire.arena.wording import plain
from venire.judges import PROTOCOLS
from venire.prompts import PromptDifference, RenderedRequest

_DIGITS = 12
"""Of a prompt's digest."""


def show_prompts(screen: Console, found: Sequence[Mapping[str, Any]]) -> None:
    """A heading for each protocol, and two lines for each of its prompts."""
    before = None
    width = max(len(one["prompt"]) for one in found)
    for one in found:
        if one["protocol"] != before:
            before = one["protocol"]
            screen.print(f"{before} ({PROTOCOLS[before].shape})")
        names = " ".join(f"${name}" for name in one["variables"]) or "no variables"
        screen.print(f"  {one['prompt']:{width}}  {one['digest'][:_DIGITS]}  {one['purpose']}", soft_wrap=True)
        screen.print(
            f"  {'':{width}}  {'':{_DIGITS}}  {names} -> {one['expected_answer']}", soft_wrap=True, style="dim"
        )
    without = [name for name, entry in PROTOCOLS.items() if not entry.prompts]
    screen.print(f"\nwithout a prompt of its own: {', '.join(without)}")
    screen.print(
        "one in full: venire prompts show PROTOCOL/NAME; a text of your own: prompts = { NAME = FILE } in a [[judge]]"
    )


def show_sources(screen: Console, sources: Mapping[str, str]) -> None:
    """Prompts as their files stand, each under its name where there are several."""
    for number, (prompt, text) in enumerate(sources.items()):
        if len(sources) > 1:
            screen.print(f"{'' if number == 0 else chr(10)}===== {prompt} =====", style="bold")
        screen.print(text.rstrip("\n"), soft_wrap=True)


def show_differences(screen: Console, found: Sequence[PromptDifference], notes: Sequence[str]) -> None:
    """Unified diffs one after the other, then what there is to say."""
    for one in found:
        for line in _screen_lines(one.diff):
            screen.print(line, soft_wrap=True)
        screen.print()
    if not any(one.against == "default" for one in found):
        screen.print("all judges are asked with Venire's own prompts")
    if not notes and not any(one.against == "store" for one in found):
        screen.print("the store's plan has the same prompts and settings")
    for sentence in notes:
        screen.print(plain(sentence), soft_wrap=True)


def show_request(screen: Console, found: RenderedRequest) -> None:
    """What was asked for in a few lines, then each message under a line with its role."""
    for line in _heading(found):
        screen.print(plain(line), soft_wrap=True, style="dim")
    messages = found.request.messages
    for number, message in enumerate(messages, 1):
        screen.print(f"\n----- message {number} of {len(messages)}: {message['role']} -----", style="bold")
        # On a screen nothing of a text may be obeyed; elsewhere it is wanted as it is.
        for line in _screen_lines(message["content"]) if screen.is_terminal else message["content"].split("\n"):
            screen.print(line, soft_wrap=True)
    if not messages:
        screen.print("\nnothing: this judgment was made elsewhere, and how the judge was asked is not on record")


def _heading(found: RenderedRequest) -> Iterator[str]:
    trial, judge, request = found.trial, found.judge, found.request
    if found.planned_now:
        yield "the store had no plan of this file: the data was imported and the plan written, as by `venire plan`"
    shown = ", ".join(one.model for one in trial.shown) or "none"
    model = "" if judge.model == judge.name else f" ({judge.model})"
    yield f"trial {trial.id}, key {trial.key.hex()}: judge {judge.name}{model}, protocol {judge.protocol}"
    yield f"instruction {trial.instruction.id}; completions in the order shown: {shown}; repeat {trial.repeat}"
    if found.outcome is not None:
        status = found.outcome.status.name.lower().replace("_", " ")
        yield f"step {found.step} of {found.steps}; the trial is settled: {status}"
    elif found.step < found.steps:
        yield f"step {found.step}, which is answered; step {found.steps} is the next to be asked"
    else:
        yield f"step {found.step}, the next to be asked"
    asked = [f"max_tokens {request.max_tokens}", f"seed {request.seed}"]
    asked += [] if request.temperature is None else [f"temperature {request.temperature:g}"]
    asked += ["an answer by a JSON schema (--json shows it)"] if request.schema is not None else []
    asked += [f"log-probabilities of the {request.top_logprobs} likeliest tokens"] if request.top_logprobs else []
    yield f"with {', '.join(asked)}, where the provider takes them"


def _screen_lines(text: str) -> Iterator[str]:
    """The lines of a text for a screen: control characters shown, tabs and spaces as they are."""
    for line in text.split("\n"):
        yield "\t".join(map(plain, line.split("\t")))
