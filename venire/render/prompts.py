"""The texts that judges are asked with: which there are, and how a campaign's differ from ours and those on record."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from rich.console import Console

from venire.arena.campaigns import CampaignSettings, JudgeSettings
from venire.arena.errors import InputError
from venire.arena.keys import prompt_digest, respondent_key
from venire.arena.records import Respondent
from venire.judges import PROTOCOLS, ProtocolEntry
from venire.judges.prompts import OVERRIDE, choose, header, load, source
from venire.orchestrator.planning.respondents import respondents
from venire.storage.plans import plans
from venire.storage.read.readings import AskedJudge, asked_judges, prompt_texts
from venire.storage.store.opening import open_store
from venire.storage.store.store import Store
from venire.wording import plain

__all__ = [
    "Difference",
    "differences",
    "known_prompts",
    "lines_of",
    "prompt_sources",
    "show_differences",
    "show_prompts",
]

_FRONT = ("system", "examples")
"""Options whose texts stand in front of a protocol's own."""
_DIGITS = 12


def known_prompts() -> list[dict[str, Any]]:
    """Every prompt of every protocol, as plain values."""
    found = []
    for protocol, entry in PROTOCOLS.items():
        for name in entry.prompts:
            template, told = load(entry.folder, name), header(entry.folder, name)
            found.append(
                {
                    "protocol": protocol,
                    "prompt": name,
                    "digest": prompt_digest(template.template).hex(),
                    "variables": template.get_identifiers(),
                    "purpose": told.get("purpose", ""),
                    "expected_answer": told.get("expected answer", ""),
                }
            )
    return found


def show_prompts(screen: Console, found: Sequence[Mapping[str, Any]]) -> None:
    """A heading for each protocol, and two lines for each of its prompts."""
    before = None
    width = max(len(one["prompt"]) for one in found)
    for one in found:
        if one["protocol"] != before:
            before = one["protocol"]
            screen.print(f"{before} ({PROTOCOLS[before].shape.value})")
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


def prompt_sources(wanted: str) -> dict[str, str]:
    """The files of a protocol's prompts, or of the one named, header included, by PROTOCOL/NAME.

    Raises InputError for a protocol or a prompt that is not there.
    """
    protocol, slash, name = wanted.partition("/")
    protocol = protocol.replace("_", "-")
    entry = PROTOCOLS.find(protocol)
    if not entry.prompts:
        raise InputError(f"protocol {protocol!r} has no prompt of its own")
    name = name.removesuffix(".txt")
    if slash and name not in entry.prompts:
        raise InputError(f"protocol {protocol!r} has no prompt {name!r}; it sends: {', '.join(entry.prompts)}")
    return {f"{protocol}/{one}": source(entry.folder, one) for one in ([name] if slash else entry.prompts)}


@dataclass(frozen=True, slots=True)
class Difference:
    """A prompt of one judge that reads otherwise: than ours ("default"), or than it was planned with ("store")."""

    judge: str
    prompt: str
    against: str
    diff: str
    """Unified."""


def differences(campaign: CampaignSettings) -> tuple[list[Difference], list[str]]:
    """How a campaign's prompts differ from the defaults and from what its store has, and what there is to say of that.

    The store is only read; where there is none, or no such campaign in it, the sentences say so.
    """
    judges = respondents(campaign)
    found = [one for judge, _ in judges for one in _from_defaults(judge)]
    if not campaign.store.exists():
        return found, [f"there is no store {campaign.store.name} yet to compare with"]
    with open_store(campaign.store, create=False) as store:
        known = plans.find_campaign(store, campaign.name)
        if known is None or not known.planned:
            return found, [f"{campaign.store.name} has no plan of campaign {campaign.name!r} to compare with"]
        told: list[str] = []
        return found + list(_from_store(store, known.id, judges, told)), told


def _from_defaults(judge: JudgeSettings) -> Iterator[Difference]:
    entry = PROTOCOLS[judge.protocol]
    for name in entry.prompts:
        ours, theirs = load(entry.folder, name).template, choose(entry.folder, name, judge.options).template
        if ours != theirs:
            yield _difference(judge, name, "default", ours, theirs)


def _from_store(
    store: Store, campaign: int, judges: Sequence[tuple[JudgeSettings, Respondent]], told: list[str]
) -> Iterator[Difference]:
    texts = prompt_texts(store)
    before = {one.name: one for one in asked_judges(store, campaign)}
    for judge, respondent in judges:
        asked = before.pop(judge.name, None)
        if asked is None:
            told.append(f"judge {judge.name!r} is not in the plan of {store.path.name}")
        elif asked.key != respondent_key(respondent):
            sent = _sent(asked, texts)
            if sent is None:
                told.append(f"what judge {judge.name!r} was planned with cannot be told from {store.path.name}")
                continue
            yield from _from_sent(judge, sent)
            told += _other_settings(judge, asked)
    told += [f"judge {name!r} is in the plan of {store.path.name} and not in the file" for name in before]


def _sent(asked: AskedJudge, texts: Mapping[str, tuple[str, ...]]) -> Mapping[str, str] | None:
    """The texts that a judge on record is sent, by name: those of the store that make its key; None where none do."""
    entry = PROTOCOLS.get(asked.protocol)
    if entry is None:
        return None
    candidates = [_candidates(entry, name, asked.options, texts) for name in entry.prompts]
    options = tuple(sorted(asked.options.items()))
    for chosen in product(*candidates):
        digests = tuple(map(prompt_digest, chosen))
        if respondent_key(Respondent(asked.model, asked.protocol, asked.origin, options, digests)) == asked.key:
            return dict(zip(entry.prompts, chosen, strict=True)) | {
                name: asked.options.get(name, "") for name in _FRONT
            }
    return None


def _candidates(
    entry: ProtocolEntry, name: str, options: Mapping[str, str], texts: Mapping[str, tuple[str, ...]]
) -> Sequence[str]:
    """What one prompt of a judge on record may have said: a text of its own, or one that stood for ours some day.

    A text that several protocols have is in the store once, under the name of one of them.
    """
    own = options.get(OVERRIDE + name)
    if own is not None:
        return (own,)
    kept = [text for known, those in texts.items() if known.endswith(f"/{name}") for text in those]
    return tuple(dict.fromkeys((load(entry.folder, name).template, *kept)))


def _from_sent(judge: JudgeSettings, sent: Mapping[str, str]) -> Iterator[Difference]:
    entry = PROTOCOLS[judge.protocol]
    now = {name: choose(entry.folder, name, judge.options).template for name in entry.prompts}
    now |= {name: judge.options.get(name, "") for name in _FRONT}
    for name in dict.fromkeys((*now, *sent)):
        if now.get(name, "") != sent.get(name, ""):
            yield _difference(judge, name, "store", sent.get(name, ""), now.get(name, ""))


def _other_settings(judge: JudgeSettings, asked: AskedJudge) -> Iterator[str]:
    """Settings beside the texts in which a judge is another than the one that was planned."""
    before = {"model": asked.model, "protocol": asked.protocol, **asked.options}
    now = {"model": judge.model, "protocol": judge.protocol, **judge.options}
    for name in sorted({*before, *now}):
        if before.get(name) != now.get(name) and name not in _FRONT and not name.startswith(OVERRIDE):
            yield (
                f"judge {judge.name!r}: {name} was {before.get(name, 'not given')!r} and is "
                f"{now.get(name, 'not given')!r}"
            )


def _difference(judge: JudgeSettings, name: str, against: str, before: str, now: str) -> Difference:
    prompt = f"{judge.protocol}/{name}"
    was = "Venire's own" if against == "default" else "as planned"
    diff = difflib.unified_diff(
        before.splitlines(), now.splitlines(), f"{prompt} ({was})", f"{prompt} (judge {judge.name})", lineterm=""
    )
    return Difference(judge.name, prompt, against, "\n".join(diff))


def show_differences(screen: Console, found: Sequence[Difference], told: Sequence[str]) -> None:
    """Unified diffs one after the other, then what there is to say."""
    for one in found:
        for line in lines_of(one.diff):
            screen.print(line, soft_wrap=True)
        screen.print()
    if not any(one.against == "default" for one in found):
        screen.print("all judges are asked with Venire's own prompts")
    if not told and not any(one.against == "store" for one in found):
        screen.print("the store's plan has the same prompts and settings")
    for sentence in told:
        screen.print(plain(sentence), soft_wrap=True)


def lines_of(text: str) -> Iterator[str]:
    """The lines of a text for a screen: control characters shown, tabs and spaces as they are."""
    for line in text.split("\n"):
        yield "\t".join(map(plain, line.split("\t")))
